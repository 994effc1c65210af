"""What becomes of values and errors when a group makes one number of its tasks' numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, hypot, isfinite, nan

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap, pmap
from toolz import unique

from evalcore.core.columns import Column
from evalcore.core.errors import EvalError, unknown
from evalcore.core.estimate import Estimate, Part
from evalcore.core.groups import GroupMetric
from evalcore.core.stats.intervals import IDENTITY, LINKS, satterthwaite

__all__ = ["GROUP_RULES", "GroupRule", "Term", "combined", "macro", "merged_terms"]


class Term(Struct, frozen=True):
    """One task's part in a group's number."""

    name: str
    weight: float
    size: float
    estimate: Estimate
    column: Column | None = None


GroupRule = Callable[[GroupMetric, Sequence[Term]], Estimate]


def mean_of_means(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """Σ w·value with error sqrt(Σ (w·stderr)²), on the log scale for perplexities; refuses what is no mean.

    >>> two = [Term(name, 0.5, 9.0, Estimate(value=v, stderr=1.0, link="log")) for name, v in (("a", 2.0), ("b", 8.0))]
    >>> round(mean_of_means(GroupMetric("perplexity"), two).value, 12)
    4.0
    """
    refused = next((term for term in terms if not term.estimate.average), None)
    if refused is not None:
        return Estimate(
            value=None,
            reason=f"{spec.metric} ({refused.estimate.aggregation}) is not a mean; declare aggregation: macro "
            "(average the task scores) or pool (all documents as one task)",
        )
    return macro(spec, terms)


def macro(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """The weighted average of task scores, whatever they are; exact for any weights and shared leaves.

    >>> shared = [Term("a", w, 9.0, Estimate(value=0.6, stderr=0.1, average=False)) for w in (0.75, 0.25)]
    >>> macro(GroupMetric("f1"), shared)      # one task by two paths: the same error
    Estimate(0.6 ± 0.1, n=0)
    """
    merged = merged_terms(terms)
    if len(merged) == 1 and merged[0].weight == 1.0:
        return combined(spec, merged, _value(merged[0]), [1.0])
    kinds = {(term.estimate.link if term.estimate.average else "identity") for term in merged}
    link = LINKS[kinds.pop()] if len(kinds) == 1 else IDENTITY
    values = [_value(term) for term in merged]
    value = link.inverse(fsum(term.weight * link.forward(v) for term, v in zip(merged, values, strict=True)))
    slopes = [term.weight * link.slope(v) / link.slope(value) for term, v in zip(merged, values, strict=True)]
    return combined(spec, merged, value, slopes)


def by_callable(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """A callable of (values, sizes); its error by the derivative in each task's value.

    >>> two = [Term(name, 0.5, 9.0, Estimate(value=v, stderr=0.1)) for name, v in (("a", 0.4), ("b", 0.8))]
    >>> by_callable(GroupMetric("acc", aggregation=lambda values, sizes: min(values)), two)
    Estimate(0.4 ± 0.1, n=0)
    """
    function = spec.aggregation
    if not callable(function):
        raise unknown("group aggregation", str(function), GROUP_RULES)
    sizes = [term.size for term in terms]
    values = [_value(term) for term in terms]

    def at(i: int, shift: float) -> float:
        moved = [v + (shift if j == i else 0.0) for j, v in enumerate(values)]
        try:
            return float(function(moved, list(sizes)))  # type: ignore[arg-type]
        except Exception as wrong:
            if shift:
                return nan
            raise EvalError(f"the group's aggregation raised {type(wrong).__name__}: {wrong}") from wrong

    value = at(-1, 0.0)
    if not isfinite(value):
        return Estimate(value=None, reason=f"the group's aggregation gave {value}")
    slopes: dict[str, float] = {}
    for i, term in enumerate(terms):
        slopes[term.name] = slopes.get(term.name, 0.0) + _slope(at, i, value, values[i])
    merged = merged_terms(terms)
    if not all(map(isfinite, slopes.values())):
        made = combined(spec, merged, value, [0.0] * len(merged))
        reason = "the group's aggregation has no derivative here"
        return replace(made, stderr=None, variance=None, df=None, reason=reason, lowest=None, highest=None)
    return combined(spec, merged, value, [slopes[term.name] for term in merged])


def _slope(at: Callable[[int, float], float], i: int, value: float, around: float) -> float:
    """The derivative in one task's value; one-sided where a step would leave where the function is defined."""
    step = 1e-6 * max(abs(around), 1.0)
    up, down = at(i, step), at(i, -step)
    if isfinite(up) and isfinite(down):
        return (up - down) / (2 * step)
    return (up - value) / step if isfinite(up) else (value - down) / step


def merged_terms(terms: Sequence[Term]) -> list[Term]:
    """A leaf reached by several paths is one leaf with the sum of its weights: its covariance is exact."""
    weights: dict[str, list[float]] = {}
    for term in terms:
        weights.setdefault(term.name, []).append(term.weight)
    return [
        Term(term.name, fsum(weights[term.name]), term.size, term.estimate, term.column)
        for term in unique(terms, key=lambda term: term.name)
    ]


def _value(term: Term) -> float:
    if term.estimate.value is None:
        raise EvalError(f"expected a value, got none - at {term.name}")
    return term.estimate.value


def combined(spec: GroupMetric, terms: Sequence[Term], value: float, slopes: Sequence[float]) -> Estimate:
    """A function of independent (or commonly clustered) estimates with these derivatives."""
    estimates = [term.estimate for term in terms]
    stderr, variance, df, why = _spread(terms, slopes)
    kinds = {estimate.link for estimate in estimates}
    link = LINKS[kinds.pop()] if len(kinds) == 1 and estimates[0].average else IDENTITY
    bounds = _common([estimate.bounds for estimate in estimates])
    trials = _trials(slopes, [estimate.trials for estimate in estimates])
    return Estimate(
        value=value,
        stderr=stderr,
        n=sum(estimate.n for estimate in estimates),
        n_scored=sum(estimate.n_scored for estimate in estimates),
        n_unscorable=sum(estimate.n_unscorable for estimate in estimates),
        n_failed=sum(estimate.n_failed for estimate in estimates),
        n_not_emitted=sum(estimate.n_not_emitted for estimate in estimates),
        lowest=_end(slopes, [estimate.lowest for estimate in estimates], value, estimates),
        highest=_end(slopes, [estimate.highest for estimate in estimates], value, estimates),
        reason=why,
        signature="stratified",
        size=fsum(estimate.size for estimate in estimates),
        aggregation=spec.aggregation if isinstance(spec.aggregation, str) else "callable",
        bounds=bounds,
        link=link.name,
        variance=variance,
        df=df,
        trials=trials,
        parts=tuple(Part(term.name, slope) for term, slope in zip(terms, slopes, strict=True)),
    )


Spread = tuple[float | None, float | None, float | None, str | None]


def _spread(terms: Sequence[Term], slopes: Sequence[float]) -> Spread:
    """Standard error, the variance behind the interval, degrees of freedom, or why there is none."""
    counted = [(term, slope) for term, slope in zip(terms, slopes, strict=True) if slope != 0]
    lacking = next((term for term, _ in counted if term.estimate.stderr is None), None)
    if lacking is not None:
        return (
            None,
            None,
            None,
            f"{lacking.name} has no standard error: {lacking.estimate.reason or 'not given'}",
        )
    if _share_clusters([term for term, _ in counted]):
        return _clustered(counted)
    errors = [slope * (term.estimate.stderr or 0.0) for term, slope in counted]
    # One task keeps its own variance, so that a group of one equals its task. In a sum of many the correction for small
    # tasks does not vanish with their number: 57 tasks of 2 documents each would seem twice as precise as they are.
    alone = counted[0][0].estimate.variance if len(counted) == 1 else None
    known = all(term.estimate.variance is not None for term, _ in counted)
    variance = counted[0][1] ** 2 * alone if alone is not None else fsum(e**2 for e in errors) if known else None
    dfs = [term.estimate.df for term, _ in counted]
    df = satterthwaite([error**2 for error in errors], [d for d in dfs if d is not None]) if None not in dfs else None
    return hypot(*errors), variance, df, None


def _share_clusters(terms: Sequence[Term]) -> bool:
    kinds = [set(term.estimate.clusters.ints.tolist()) for term in terms if term.estimate.clusters is not None]
    return len(kinds) > 1 and len(set().union(*kinds)) < sum(map(len, kinds))


def _clustered(counted: Sequence[tuple[Term, float]]) -> Spread:
    """Tasks that share clusters are not independent: add up each cluster's influence over all of them."""
    totals: dict[int, list[float]] = {}
    apart: list[tuple[Term, float]] = []
    for term, slope in counted:
        estimate = term.estimate
        if estimate.influence is None or estimate.clusters is None:
            apart.append((term, slope))
            continue
        for code, part in zip(estimate.clusters.ints.tolist(), estimate.influence.floats.tolist(), strict=True):
            totals.setdefault(code, []).append(slope * part / len(estimate.influence))
    variance = fsum(fsum(parts) ** 2 for parts in totals.values())
    count = len(totals)
    if count < 2:
        return None, variance, None, "needs two clusters, got 1"
    together = (variance * count / (count - 1)) ** 0.5
    if not apart:
        return together, variance, float(count - 1), None
    error, more, df, why = _spread(*zip(*apart, strict=True))
    if error is None or more is None or df is None:
        return None, None, None, why
    joint = satterthwaite([together**2, error**2], [count - 1.0, df])
    return hypot(together, error), variance + more, joint, None


def _common(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return bounds[0] if len(set(bounds)) == 1 else (float("-inf"), float("inf"))


def _trials(slopes: Sequence[float], trials: Sequence[float]) -> float:
    inverse = fsum(slope**2 / n for slope, n in zip(slopes, trials, strict=True) if n > 0)
    return 1 / inverse if inverse > 0 else 0.0


def _end(
    slopes: Sequence[float], ends: Sequence[float | None], value: float, estimates: Sequence[Estimate]
) -> float | None:
    if any(end is None for end in ends):
        return None
    moves = [slope * ((end or 0.0) - (e.value or 0.0)) for slope, end, e in zip(slopes, ends, estimates, strict=True)]
    return value + fsum(moves)


GROUP_RULES: PMap[str, GroupRule] = pmap({"mean": mean_of_means, "macro": macro, "callable": by_callable})
