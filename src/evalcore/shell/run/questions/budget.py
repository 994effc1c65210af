"""How much a run may take: money and requests, those of earlier commands that it resumes included."""

from __future__ import annotations

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.config.plan import Plan
from evalcore.shell.config.prices import Prices
from evalcore.shell.run.questions.usage import Meter


class Budget(Struct, frozen=True):
    """The limits of a run; without any, all is asked.

    >>> str(Budget(max_requests=100)), bool(Budget())
    ('budget reached (max_requests 100)', False)
    """

    max_cost: float | None = None
    max_requests: int | None = None
    prices: Prices | None = None

    def __bool__(self) -> bool:
        return self.max_cost is not None or self.max_requests is not None

    def __str__(self) -> str:
        limits = (("max_cost", self.max_cost), ("max_requests", self.max_requests))
        return f"budget reached ({', '.join(f'{name} {one:g}' for name, one in limits if one is not None)})"


def find_budget(plan: Plan) -> Budget:
    """The limits that a plan sets."""
    return Budget(plan.max_cost, plan.max_requests, plan.prices)


class Bill:
    """What a run took so far, ``before`` and ``now``, held against its budget. It grows while a model is asked.

    >>> bill = Bill(Budget(max_cost=1.0, prices=Prices(input=0, output=1_000_000)))
    >>> bill.add(Spent(10, 1), failed=False)
    >>> bill.has_room()
    False
    """

    def __init__(self, budget: Budget, before: Meter | None = None, *, free: bool = False) -> None:
        self.budget, self.before, self.now, self.free = budget, before or Meter(), Meter(), free
        self._paid = self.before.charge(budget.prices) or 0.0

    def add(self, spent: Spent | None, *, failed: bool) -> None:
        """Count one question that was asked; an error if its cost is limited but not known."""
        self.now.add(spent, failed=failed)
        if self.budget.max_cost is not None and self.now.uncounted and not self.free:
            raise EvalError(
                "max_cost cannot be kept: a reply came without a count of its tokens (`usage`), so its cost is not "
                "known; limit the run by max_requests instead"
            )

    def has_room(self) -> bool:
        """Whether more may be asked."""
        most = self.budget.max_cost
        return most is None or self._paid + (self.now.charge(self.budget.prices) or 0.0) < most

    def count_room(self) -> int | None:
        """How many questions may be asked from the start; None if any number."""
        if not self.has_room():
            return 0
        most = self.budget.max_requests
        return None if most is None else max(0, most - self.before.requests)

    def tell_start(self) -> str:
        """What to say before anything is asked."""
        if self.budget.max_cost is None or not self.before.uncounted:
            return ""
        return (
            f"max_cost leaves out what {self.before.uncounted:,} answers of the log cost, "
            "as they came without a count of tokens"
        )


def refuse_rest(budget: Budget) -> Failure:
    """What stands for a reply that was not asked for."""
    return Failure(str(budget))
