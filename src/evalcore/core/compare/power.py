"""What a run's own spread says about the next one: documents and repeats for a difference or an interval."""

from __future__ import annotations

from math import ceil, isfinite, sqrt

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.records.errors import EvalError
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.noise import combine_noise
from evalcore.core.stats.sample_size import (
    Variances,
    distance_at,
    find_distance,
    questions_for,
    reach_of_interval,
    reach_of_test,
    repeats_for,
    variances_of_difference,
)


class Known(Struct, frozen=True, kw_only=True):
    """The error of one number or, if ``paired``, of the difference between two runs.

    ``units`` counts what is independent: documents or clusters. ``sampling`` is the part of ``stderr`` that
    comes from drawing ``repeats`` replies; ``fewest`` is the fewest replies it is defined for. A ``share`` lies between
    0 and 1; its ``coarseness`` is its variance relative to that of right/wrong scores with the same mean (1 for these).
    ``value`` is the number, or the difference. ``df`` are the degrees of freedom, where they are not those of equal
    units.
    """

    name: str
    key: MetricKey
    depth: int = 0
    group: bool = False
    paired: bool = False
    n: int = 0
    units: int = 0
    stderr: float | None = None
    sampling: float | None = None
    repeats: float | None = None
    fewest: float = 1
    share: bool = False
    df: float | None = None
    value: float | None = None
    coarseness: float = 0.0
    reason: str = ""

    @property
    def variances(self) -> Variances | None:
        """The variances per unit; None if nothing can be planned from them."""
        if not self.stderr or self.units < 2 or not isfinite(self.units * self.stderr * self.stderr):
            return None
        drawn = 0.0 if self.sampling is None or self.repeats is None else min(self.sampling, self.stderr) ** 2
        return Variances(self.units * (self.stderr**2 - drawn), self.units * drawn * (self.repeats or 1.0))


class PowerGoal(Struct, frozen=True, kw_only=True):
    """The goal: a difference to be found or a half-width, and the repeats to plan for.

    ``correlation`` is that of the questions' scores between two models, for plans from a single run;
    between four published systems on GSM8K it is 0.30 to 0.46, 0.40 on average.
    """

    difference: float | None = None
    half_width: float | None = None
    alpha: float = 0.05
    power: float = 0.8
    correlation: float = 0.4
    repeats: tuple[int, ...] = (1, 2, 4, 8)

    def __post_init__(self) -> None:
        if any(one < 1 for one in self.repeats):
            raise EvalError(f"expected repeats of at least 1, got {min(self.repeats)}")


class PowerPlan(Struct, frozen=True, kw_only=True):
    """What the run's documents show now, what they would show with unlimited repeats, and what the goal takes.

    ``documents`` has a count for the run's own repeats (None) and for each number of repeats asked about;
    ``more_repeats`` is the number of repeats that suffices on the run's documents, None if none does.
    """

    known: Known
    half_width: float | None = None
    finds: float | None = None
    best: float | None = None
    documents: tuple[tuple[int | None, int | None], ...] = ()
    more_repeats: int | None = None


def plan_next(known: Known, asked: PowerGoal) -> PowerPlan:
    """Plan the next run from a number's own spread.

    >>> seen = Known(name="t", key=MetricKey("acc"), n=400, units=400, stderr=0.025, sampling=0.015, repeats=1.0)
    >>> plan = plan_next(seen, PowerGoal(half_width=0.045, repeats=(1, 2)))
    >>> round(plan.half_width, 3), round(plan.best, 3), plan.documents, plan.more_repeats
    (0.049, 0.039, ((None, 477), (1, 477), (2, 392)), 2)
    """
    own = known.variances
    if own is None:
        return PowerPlan(known=known)
    repeats = known.repeats if known.repeats is not None and known.sampling is not None else 1.0
    width, test = reach_of_interval(1 - asked.alpha), reach_of_test(asked.alpha, asked.power)

    def spread_at(difference: float) -> Variances:
        return _spread_at(known, own, difference, asked.correlation)

    def keep_own(_: float) -> Variances:
        return own

    goal, spreads, reach = (
        (asked.difference, spread_at, test) if asked.half_width is None else (asked.half_width, keep_own, width)
    )
    plan = PowerPlan(
        known=known,
        half_width=distance_at(known.units, own, repeats, width),
        finds=find_distance(known.units, spread_at, repeats, test),
        best=find_distance(known.units, lambda found: Variances(spreads(found).question), 1.0, reach)
        if known.sampling is not None
        else None,
    )
    if goal is None:
        return plan
    spread = spreads(goal)

    def documents(replies: float) -> int:
        return ceil(questions_for(goal, spread, replies, reach) * known.n / known.units)

    tried = [k for k in asked.repeats if known.sampling is not None]
    more = repeats_for(goal, known.units, spread, reach) if known.sampling is not None else None
    return replace(
        plan,
        documents=((None, documents(repeats)), *((k, documents(k) if k >= known.fewest else None) for k in tried)),
        more_repeats=None if more is None else max(more, ceil(known.fewest)),
    )


def _spread_at(known: Known, own: Variances, difference: float, correlation: float) -> Variances:
    """The variances of a difference of this size.

    A model that is worse near the ceiling varies more than the one at it, and right/wrong scores that differ by d on
    average differ on a share d of the documents at least: their difference has a variance of d (1 - d) or more.
    """
    least = known.coarseness * _vary_share(min(difference, 0.5))
    if known.paired:  # the documents on which the two runs differ already, and those that a larger difference adds
        seen = max(abs(known.value or 0.0) - (known.stderr or 0.0), 0.0)  # what luck does not explain
        now = known.coarseness * _vary_share(min(seen, 0.5))
        return replace(own, question=own.question + max(least - now, 0.0))
    value = known.value if known.coarseness and known.value is not None else 0.5
    widest = min(max(0.5, value - difference), value + difference)
    apart = variances_of_difference(own, correlation, _vary_share(widest) / _vary_share(value))
    return replace(apart, question=max(apart.question, least - apart.reply / (known.repeats or 1.0)))


def _vary_share(share: float) -> float:
    """The variance of right/wrong scores of which this share is right."""
    return share * (1 - share)


def pair_known(line: ComparisonLine, a: Known | None, b: Known | None) -> Known:
    """Combine two runs into their difference; replies were drawn independently, so their sampling variances add up.

    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), n=100, stderr=0.05)
    >>> one = Known(name="t", key=MetricKey("acc"), n=100, units=100, stderr=0.04, sampling=0.03, repeats=4.0)
    >>> pair_known(line, one, one).sampling == 0.03 * 2**0.5
    True
    """
    sides = [one for one in (a, b) if one is not None]
    share = bool(sides) and all(one.share for one in sides)
    noise, repeats = combine_noise([1.0, -1.0], [_scale_noise(one, line.n) for one in (a, b)])
    return Known(
        name=line.name,
        key=line.key,
        depth=next((one.depth for one in sides), 0),
        group=line.group,
        paired=True,
        n=line.n,
        units=line.n if line.clusters is None else line.clusters,
        stderr=line.stderr,
        sampling=None if noise is None else sqrt(noise),
        repeats=repeats,
        fewest=max((one.fewest for one in sides), default=1),
        share=share,
        value=line.difference,
        coarseness=sum(one.coarseness for one in sides) / len(sides) if share else 0.0,
        reason="" if line.stderr else line.reason or "both runs have the same score on every document",
    )


def _scale_noise(known: Known | None, n: int) -> tuple[float | None, float | None]:
    """Return the noise of a run on n of its documents."""
    return (
        (None, None)
        if known is None or known.sampling is None
        else (known.sampling**2 * known.n / max(n, 1), known.repeats)
    )
