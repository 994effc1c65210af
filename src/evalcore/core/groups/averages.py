"""The weights of tasks in a group's number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum, isfinite

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap, pmap
from toolz import concat, unique

from evalcore.core.groups.tree import Group, GroupMetric, Leaf, Tree, all_tasks, child_names, fold_group
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.estimate import Aggregation, Estimate
from evalcore.core.records.report import TaskReport
from evalcore.core.records.request import freeze_options
from evalcore.core.records.task import MetricKey


class Share(Struct, frozen=True):
    """The weights of tasks in a node, normalised to 1, the weight of the node itself, and its missing tasks."""

    terms: tuple[tuple[str, float], ...]
    size: float
    missing: tuple[str, ...] = ()


Average = Callable[[Group[Share], GroupMetric, Sequence[Share], Mapping[str, float]], Share]
SizeOf = Callable[[TaskReport, MetricKey], float]


def own_size(task: TaskReport, key: MetricKey) -> float:
    """The weight of a task under a metric: the metric's own count (for ratios, its denominator)."""
    estimate = task.get(key)
    return 0.0 if estimate is None else estimate.scale.size


def shares(
    tree: Group[TaskReport],
    spec: GroupMetric,
    key: MetricKey,
    averages: PMap[str, Average],
    size_of: SizeOf = own_size,
) -> Share:
    """Weigh the tasks of a group's number: a fold whose carrier is the weights of leaves.

    A subgroup with its own rule for the metric keeps it, with all below it, so that it counts with the number
    it reports; the others follow the given rule.
    """
    names = {leaf.name for leaf in all_tasks(tree)} | set(child_names(tree))
    strange = next((name for name in sorted(spec.weights) if name not in names), None)
    if strange is not None:
        raise unknown("child in weights", strange, names, f" - at group {tree.name}")
    sizes = {leaf.name: size_of(leaf.value, key) for leaf in all_tasks(tree) if _has_value(leaf.value, key)}

    def leaf(node: Leaf[TaskReport]) -> Tree[Share]:
        known = node.name in sizes
        return Leaf(node.name, Share(((node.name, 1.0),), sizes[node.name]) if known else Share((), 0.0, (node.name,)))

    def group(node: Group[TaskReport], parts: tuple[Tree[Share], ...]) -> Tree[Share]:
        own = spec if node is tree else _find_own_rule(node, spec, key)
        below = Group(node.name, parts)
        return below if own is None else Leaf(node.name, _close_tree(below, own, averages, sizes))

    whole = fold_group(tree, leaf, group)
    return whole.value if isinstance(whole, Leaf) else _close_tree(whole, spec, averages, sizes)


def _close_tree(
    tree: Group[Share], spec: GroupMetric, averages: PMap[str, Average], sizes: Mapping[str, float]
) -> Share:
    """Close a tree of shares by one rule; given weights are for the children of the root."""
    plain = replace(spec, weights=freeze_options())
    average = averages.get(spec.average)
    if average is None:
        raise unknown("average", spec.average, averages, f" - at group {tree.name}")
    return fold_group(
        tree,
        lambda leaf: leaf.value,
        lambda group, parts: average(group, spec if group is tree else plain, parts, sizes),
    )


def _has_value(task: TaskReport, key: MetricKey) -> bool:
    estimate = task.get(key)
    return estimate is not None and estimate.value is not None


def _find_own_rule(node: Group[TaskReport], spec: GroupMetric, key: MetricKey) -> GroupMetric | None:
    """Find a subgroup's own rule for the metric under this filter."""
    for metric in node.metrics:
        if metric.metric == spec.metric and (metric.filters is None or key.filter in metric.filters):
            return metric
    return None


def over_leaves(group: Group[Share], spec: GroupMetric, parts: Sequence[Share], sizes: Mapping[str, float]) -> Share:
    """Every task below counts once, by its size or equally.

    >>> parts = [Share((("a", 1.0),), 1.0), Share((("a", 0.25), ("b", 0.75)), 4.0)]
    >>> over_leaves(Group("g"), GroupMetric("acc"), parts, {"a": 1.0, "b": 3.0}).terms
    (('a', 0.25), ('b', 0.75))
    """
    names = tuple(unique(name for part in parts for name, _ in part.terms))
    return _normalise_weights(names, [weight_of(spec, name, sizes[name]) for name in names], sizes, parts)


def over_children(group: Group[Share], spec: GroupMetric, parts: Sequence[Share], sizes: Mapping[str, float]) -> Share:
    """Every child counts, by its size or equally; a task below two of them counts on both paths.

    >>> parts, sizes = [Share((("a", 1.0),), 1.0), Share((("a", 0.5), ("b", 0.5)), 2.0)], {"a": 1.0, "b": 1.0}
    >>> children = Group("g", (Leaf("a", None), Group("h")))
    >>> over_children(children, GroupMetric("acc", weight_by_size=False), parts, sizes).terms
    (('a', 0.5), ('a', 0.25), ('b', 0.25))
    """
    present = [(child.name, part) for child, part in zip(group.children, parts, strict=True) if part.terms]
    weights = [weight_of(spec, name, part.size) for name, part in present]
    total = _sum_positive(weights, [name for name, _ in present])
    terms = tuple(
        (leaf, weight * share / total)
        for weight, (_, part) in zip(weights, present, strict=True)
        for leaf, share in part.terms
    )
    return Share(terms, _find_size(terms, sizes), _list_missing(parts))


def weight_of(spec: GroupMetric, name: str, size: float) -> float:
    """The weight of a child: its given weight, its size, or 1."""
    given = spec.weights.get(name)
    if isinstance(given, int | float) and isfinite(given) and given >= 0:
        return float(given)
    if spec.weights:
        shown = "none" if given is None else repr(given)
        raise EvalError(f"expected a weight of at least 0 for {name!r}, got {shown} in weights of {spec.metric}")
    return size if spec.weight_by_size else 1.0


def _normalise_weights(
    names: Sequence[str], weights: Sequence[float], sizes: Mapping[str, float], parts: Sequence[Share]
) -> Share:
    total = _sum_positive(weights, names)
    terms = tuple((name, weight / total) for name, weight in zip(names, weights, strict=True))
    return Share(terms, _find_size(terms, sizes), _list_missing(parts))


def _sum_positive(weights: Sequence[float], names: Sequence[str]) -> float:
    total = fsum(weights)
    if names and total <= 0:
        raise EvalError(f"expected weights with a positive sum, got {list(weights)} for {', '.join(names[:5])}")
    return total


def _find_size(terms: Iterable[tuple[str, float]], sizes: Mapping[str, float]) -> float:
    return fsum(sizes[name] for name in unique(name for name, _ in terms))


def _list_missing(parts: Iterable[Share]) -> tuple[str, ...]:
    return tuple(unique(concat(part.missing for part in parts)))


AVERAGES: PMap[str, Average] = pmap({"leaves": over_leaves, "children": over_children})


class Term(Struct, frozen=True):
    """One task's part in a group's number."""

    name: str
    weight: float
    size: float
    estimate: Estimate
    column: Column | None = None
    aggregation: Aggregation | None = None


def merge_terms(terms: Sequence[Term]) -> list[Term]:
    """Merge a leaf reached by several paths into one with the sum of its weights, so that its covariance is exact.

    >>> one = Estimate(value=0.5)
    >>> [(term.name, term.weight) for term in merge_terms([Term("a", 0.25, 9.0, one), Term("a", 0.75, 9.0, one)])]
    [('a', 1.0)]
    """
    weights: dict[str, list[float]] = {}
    for term in terms:
        weights.setdefault(term.name, []).append(term.weight)
    return [replace(term, weight=fsum(weights[term.name])) for term in unique(terms, key=lambda term: term.name)]


def value_of_term(term: Term) -> float:
    """Return the task's number; tasks without one are no terms."""
    if term.estimate.value is None:
        raise EvalError(f"expected a value, got none - at {term.name}")
    return term.estimate.value
