"""Points where shares are meant: 62 on a number between 0 and 1 is refused, not judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalcore.core.compare.gates import Limit, Number, match_limits
from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate


def refuse_points(limits: Iterable[Limit], known: Mapping[Number, Estimate]) -> None:
    """Refuse a limit in points on a number between 0 and 1.

    >>> from evalcore.core.records.estimate import Spread
    >>> from evalcore.core.records.task import MetricKey
    >>> share = Estimate(value=0.6, spread=Spread(variance=0.006, trials=40.0))
    >>> refuse_points([Limit("min", "acc", 62)], {("t", MetricKey("acc")): share})
    Traceback (most recent call last):
    evalcore.EvalError: t acc,none lies between 0 and 1, where 62 points are 0.62; write --min acc=0.62, or ...
    """
    for limit, number in match_limits(limits, known):
        if limit.value > 1 and _is_share(known[number]):
            instead = (
                f"write --{limit.kind} {limit.key}={limit.value / 100:g}, or name other numbers if you mean others"
            )
            raise explain_points(number, limit.value, instead)


def explain_points(number: Number, points: float, instead: str) -> EvalError:
    """Explain that a number is no percentage, and what to do instead."""
    many = "1 point is" if points == 1 else f"{points:g} points are"
    return EvalError(f"{number[0]} {number[1]} lies between 0 and 1, where {many} {points / 100:g}; {instead}")


def _is_share(estimate: Estimate) -> bool:
    """Whether a number averages scores between 0 and 1, as far as its value and its error tell.

    No such scores vary more than 0s and 1s do; twice that leaves room for groups of very uneven tasks.
    """
    value, spread = estimate.value, estimate.spread
    if value is None or estimate.scale.bounds != (0.0, 1.0) or not 0 <= value <= 1:
        return False
    return spread.variance is None or spread.variance * spread.trials <= 4 * value * (1 - value)


def refuse_margin(lines: Iterable[ComparisonLine], margin: float | None) -> None:
    """Refuse a margin in points on numbers between 0 and 1.

    >>> from evalcore.core.records.task import MetricKey
    >>> refuse_margin([ComparisonLine(name="t", key=MetricKey("acc"), a=0.5, b=0.6)], 2)
    Traceback (most recent call last):
    evalcore.EvalError: t acc,none lies between 0 and 1, where 2 points are 0.02; write --margin 0.02, or choose ...
    """
    for line in lines if margin is not None and margin >= 1 else ():
        if margin is not None and all(value is not None and 0 <= value <= 1 for value in (line.a, line.b)):
            instead = f"write --margin {margin / 100:g}, or choose other numbers with --task or --metric"
            raise explain_points((line.name, line.key), margin, instead)
