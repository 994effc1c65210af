"""Many tests in one table, and how many documents a difference takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

from evalcore.core.errors import EvalError
from evalcore.core.stats.quantiles import normal_quantile

__all__ = ["detectable", "holm", "required_n"]


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's adjusted p-values, in the order given; an undefined one stays so and is no part of the family.

    >>> holm([0.01, 0.04, None, 0.03])
    (0.03, 0.06, None, 0.06)
    """
    ranked = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (p, at) in enumerate(ranked):
        if not 0 <= p <= 1:
            raise EvalError(f"expected p-values between 0 and 1, got {p}")
        highest = adjusted[at] = max(highest, min(1.0, p * (len(ranked) - rank)))
    return tuple(adjusted.get(at) for at in range(len(p_values)))


def required_n(delta: float, sd_diff: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """How many documents show a true difference with the given power; sd_diff is that of one document's.

    >>> required_n(0.03, 0.5)
    2181
    """
    if not delta:
        raise EvalError("expected a difference other than 0: no number of documents shows none")
    return max(2, ceil((_reach(alpha, power) * sd_diff / delta) ** 2))


def detectable(n: int, sd_diff: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest true difference that n documents show with the given power.

    >>> round(detectable(2181, 0.5), 4)
    0.03
    """
    if n < 1:
        raise EvalError(f"expected at least one document, got {n}")
    return _reach(alpha, power) * sd_diff / sqrt(n)


def _reach(alpha: float, power: float) -> float:
    """Standard errors between no difference and one found with this power (Miller 2024, section 5)."""
    return normal_quantile(1 - alpha / 2) + normal_quantile(power)
