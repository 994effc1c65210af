"""Numbers of groups: who counts with which weight, and what becomes of values and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, hypot, isfinite, nan

from msgspec import Struct
from pyrsistent import PMap, pmap
from toolz import concat, unique

from evalcore.core.columns import Column
from evalcore.core.errors import EvalError, unknown
from evalcore.core.estimate import Estimate
from evalcore.core.groups import Group, GroupMetric, Leaf, fold_group
from evalcore.core.records import MetricKey
from evalcore.core.reports import TaskReport
from evalcore.core.stats.intervals import IDENTITY, LINKS, satterthwaite

__all__ = ["AVERAGES", "GROUP_RULES", "Average", "GroupRule", "Share", "Term", "shares"]


class Share(Struct, frozen=True):
    """The weights of tasks in a node, normalised to 1, how much the node itself weighs, and what it lacks."""

    terms: tuple[tuple[str, float], ...]
    size: float
    missing: tuple[str, ...] = ()


class Term(Struct, frozen=True):
    """One task's part in a group's number."""

    name: str
    weight: float
    size: float
    estimate: Estimate
    column: Column | None = None


Average = Callable[[Group[TaskReport], GroupMetric, Sequence[Share], Mapping[str, float]], Share]
GroupRule = Callable[[GroupMetric, Sequence[Term]], Estimate]
SizeOf = Callable[[TaskReport, MetricKey], float]


def own_size(task: TaskReport, key: MetricKey) -> float:
    """What a task weighs under a metric: that metric's own count (for ratios, its own denominator)."""
    estimate = task.get(key)
    return 0.0 if estimate is None else estimate.size


def shares(
    tree: Group[TaskReport],
    spec: GroupMetric,
    key: MetricKey,
    averages: PMap[str, Average],
    size_of: SizeOf = own_size,
) -> Share:
    """Who counts how much in a group's number: a fold whose carrier is the weights of leaves.

    A group below with a rule of its own for the metric keeps it; the others follow the one asked for.
    """
    sizes: dict[str, float] = {}

    def leaf(node: Leaf[TaskReport]) -> Share:
        estimate = node.value.get(key)
        if estimate is None or estimate.value is None:
            return Share((), 0.0, (node.name,))
        sizes[node.name] = size_of(node.value, key)
        return Share(((node.name, 1.0),), sizes[node.name])

    def group(node: Group[TaskReport], parts: tuple[Share, ...]) -> Share:
        own = spec if node is tree else next((m for m in node.metrics if m.metric == spec.metric), spec)
        return averages[own.average](node, own, parts, sizes)

    return fold_group(tree, leaf, group)


def over_leaves(
    group: Group[TaskReport], spec: GroupMetric, parts: Sequence[Share], sizes: Mapping[str, float]
) -> Share:
    """Every task below counts once, by its size or equally.

    >>> parts = [Share((("a", 1.0),), 1.0), Share((("a", 0.25), ("b", 0.75)), 4.0)]
    >>> over_leaves(Group("g"), GroupMetric("acc"), parts, {"a": 1.0, "b": 3.0}).terms
    (('a', 0.25), ('b', 0.75))
    """
    names = tuple(unique(name for part in parts for name, _ in part.terms))
    return _normalised(names, [_weight(spec, name, sizes[name]) for name in names], sizes, parts)


def over_children(
    group: Group[TaskReport], spec: GroupMetric, parts: Sequence[Share], sizes: Mapping[str, float]
) -> Share:
    """Every child counts, by its size or equally; a task below two of them counts by both paths.

    >>> parts, sizes = [Share((("a", 1.0),), 1.0), Share((("a", 0.5), ("b", 0.5)), 2.0)], {"a": 1.0, "b": 1.0}
    >>> children = Group("g", (Leaf("a", None), Group("h")))
    >>> over_children(children, GroupMetric("acc", weight_by_size=False), parts, sizes).terms
    (('a', 0.5), ('a', 0.25), ('b', 0.25))
    """
    present = [(child.name, part) for child, part in zip(group.children, parts, strict=True) if part.terms]
    weights = [_weight(spec, name, part.size) for name, part in present]
    total = _positive(weights, [name for name, _ in present])
    terms = tuple(
        (leaf, weight * share / total)
        for weight, (_, part) in zip(weights, present, strict=True)
        for leaf, share in part.terms
    )
    return Share(terms, _size(terms, sizes), _missing(parts))


def _weight(spec: GroupMetric, name: str, size: float) -> float:
    given = spec.weights.get(name)
    if isinstance(given, int | float):
        return float(given)
    if spec.weights:
        raise EvalError(f"expected a weight for every child, got none for {name!r} in weights of {spec.metric}")
    return size if spec.weight_by_size else 1.0


def _normalised(
    names: Sequence[str], weights: Sequence[float], sizes: Mapping[str, float], parts: Sequence[Share]
) -> Share:
    total = _positive(weights, names)
    terms = tuple((name, weight / total) for name, weight in zip(names, weights, strict=True))
    return Share(terms, _size(terms, sizes), _missing(parts))


def _positive(weights: Sequence[float], names: Sequence[str]) -> float:
    total = fsum(weights)
    if names and total <= 0:
        raise EvalError(f"expected weights with a positive sum, got {list(weights)} for {', '.join(names[:5])}")
    return total


def _size(terms: Iterable[tuple[str, float]], sizes: Mapping[str, float]) -> float:
    return fsum(sizes[name] for name in unique(name for name, _ in terms))


def _missing(parts: Iterable[Share]) -> tuple[str, ...]:
    return tuple(unique(concat(part.missing for part in parts)))


AVERAGES: PMap[str, Average] = pmap({"leaves": over_leaves, "children": over_children})


# --- rules: what becomes of values and errors -----------------------------------------------------------------


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
        except (ArithmeticError, ValueError) as wrong:
            if shift:
                return nan
            raise EvalError(f"the group's aggregation raised {type(wrong).__name__}: {wrong}") from wrong

    value = at(-1, 0.0)
    return combined(spec, terms, value, [_slope(at, i, value, values[i]) for i in range(len(values))])


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
    )


def _spread(
    terms: Sequence[Term], slopes: Sequence[float]
) -> tuple[float | None, float | None, float | None, str | None]:
    """Standard error, uncorrected variance, degrees of freedom, or why there is none."""
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
    known = [(slope, term.estimate.variance) for term, slope in counted]
    variance = (
        fsum(slope**2 * v for slope, v in known if v is not None) if all(v is not None for _, v in known) else None
    )
    dfs = [term.estimate.df for term, _ in counted]
    df = satterthwaite([error**2 for error in errors], [d for d in dfs if d is not None]) if None not in dfs else None
    return hypot(*errors), variance, df, None


def _share_clusters(terms: Sequence[Term]) -> bool:
    codes = [term.estimate.clusters for term in terms]
    if len(codes) < 2 or any(code is None for code in codes):
        return False
    kinds = [set(code.ints.tolist()) for code in codes if code is not None]
    return len(set().union(*kinds)) < sum(map(len, kinds))


def _clustered(counted: Sequence[tuple[Term, float]]) -> tuple[float | None, float, float, str | None]:
    """Tasks that share clusters are not independent: add up each cluster's influence over all of them."""
    totals: dict[int, list[float]] = {}
    for term, slope in counted:
        estimate = term.estimate
        if estimate.influence is None or estimate.clusters is None:
            continue
        for code, part in zip(estimate.clusters.ints.tolist(), estimate.influence.floats.tolist(), strict=True):
            totals.setdefault(code, []).append(slope * part / len(estimate.influence))
    variance = fsum(fsum(parts) ** 2 for parts in totals.values())
    count = len(totals)
    stderr = (variance * count / (count - 1)) ** 0.5 if count > 1 else None
    return stderr, variance, float(count - 1), None if stderr is not None else "needs two clusters, got 1"


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
