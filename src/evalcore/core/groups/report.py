"""A group's report: its estimates from those of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import fsum, isfinite, sqrt

from msgspec.structs import replace
from toolz import concat

from evalcore.core.aggregate.inference import DEFAULT, Inference, add_group_interval, add_interval
from evalcore.core.aggregate.signature import sign
from evalcore.core.groups.averages import Term, shares, value_of_term
from evalcore.core.groups.rules import GroupRule
from evalcore.core.groups.tree import (
    Group,
    GroupMetric,
    Leaf,
    Tree,
    alias_of,
    all_tasks,
    fold_group,
    leaves,
    map_leaves,
    version_of,
)
from evalcore.core.lm_eval.errata import group_errata
from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.estimate import AcrossTasks, Estimate, Scale, Spread
from evalcore.core.records.report import GroupReport, TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.influence import scale_of
from evalcore.core.tables import EVALCORE, Tables


def place_tasks(trees: Iterable[Tree[object]], tasks: Iterable[TaskReport]) -> tuple[Tree[TaskReport], ...]:
    """Place the reports of tasks in their trees. A task that was not run gets an empty one.

    A name stands for one group, never for a group and a task.
    """
    by_name = {task.name: task for task in tasks}
    placed = tuple(map_leaves(lambda leaf: by_name.get(leaf.name, TaskReport(name=leaf.name)), tree) for tree in trees)
    leaf_names = {leaf.name for tree in placed for leaf in leaves(tree)}
    seen: dict[str, Group[TaskReport]] = {}
    for group in concat(map(_list_groups, placed)):
        if group.name in leaf_names:
            raise EvalError(f"expected a group name of its own, got the name of a task - at group {group.name}")
        if seen.setdefault(group.name, group) != group:
            raise EvalError(f"expected each group once, got two different ones - at group {group.name}")
    return placed


def _list_groups(tree: Tree[TaskReport]) -> tuple[Group[TaskReport], ...]:
    """List every group as often as it occurs, parents first."""
    return fold_group(tree, lambda leaf: (), lambda group, parts: (group, *concat(parts)))


def report_group(group: Group[TaskReport], *, inference: Inference = DEFAULT, tables: Tables = EVALCORE) -> GroupReport:
    """Report a group's own numbers. Without an aggregation list it has only a name and an alias."""
    if not group.metrics:
        return GroupReport(name=group.name, alias=alias_of(group), version=version_of(group))
    tasks = all_tasks(group)
    wanted = [(spec, key) for spec in group.metrics for key in _list_keys(spec, tasks)]
    rows = [(key, *_build_estimate(group, spec, key, inference, tables)) for spec, key in wanted]
    return GroupReport(
        name=group.name,
        alias=alias_of(group),
        estimates=tuple((key, estimate) for key, estimate, _ in rows if estimate is not None),
        sample_len=_count_documents(tables.members(group)),
        version=version_of(group),
        warnings=tuple(warning for _, _, warnings in rows for warning in warnings),
    )


def _count_documents(tasks: Sequence[Leaf[TaskReport]]) -> int | None:
    """Count the documents of tasks, as far as they say how many they have; None if none does."""
    known = [count for leaf in tasks if (count := leaf.value.sample_len) is not None]
    return sum(known) if known or not tasks else None


def _list_keys(spec: GroupMetric, tasks: Sequence[Leaf[TaskReport]]) -> list[MetricKey]:
    """List the keys of a group metric: the listed filters, or those of its own tasks."""
    if spec.filters is not None:
        return [MetricKey(spec.metric, name) for name in spec.filters]
    filters = {key.filter for leaf in tasks for key, _ in leaf.value.estimates if key.metric == spec.metric}
    return [MetricKey(spec.metric, name) for name in sorted(filters)] or [MetricKey(spec.metric)]


def _build_estimate(
    group: Group[TaskReport], spec: GroupMetric, key: MetricKey, inference: Inference, tables: Tables
) -> tuple[Estimate | None, tuple[str, ...]]:
    share = shares(group, spec, key, tables.averages, tables.size_of)
    by_name = {leaf.name: leaf.value for leaf in all_tasks(group)}
    lacking = _explain_lacking(group, key, share.missing, len(tables.members(group)))
    if share.missing and spec.missing == "fail":
        raise EvalError(lacking)
    if not share.terms:
        return None, (f"group {group.name!r}: no values found for {key} in any task",)
    terms = tuple(_build_term(by_name[name], name, weight, key, tables) for name, weight in share.terms)
    rule = _find_rule(group, spec, tables)
    estimate = add_group_interval(rule.fold(spec, terms), inference, {term.name: term.estimate for term in terms})
    values = {term.name: value_of_term(term) for term in terms}
    across = across_tasks(estimate, values, inference) if rule.mean else None
    directions = {term.estimate.scale.higher_is_better for term in terms}
    sample_lens = [by_name[term.name].sample_len or 0 for term in terms]
    named = replace(
        estimate,
        scale=replace(
            estimate.scale,
            higher_is_better=directions.pop() if len(directions) == 1 else None,
            measures=any(term.estimate.scale.measures for term in terms),
        ),
        group=replace(estimate.group, missing=share.missing, across=across),
        errata=group_errata(spec, terms, share.missing, len(leaves(group)), sample_lens),
    )
    parts = {
        "group": group.name,
        "metric": key.metric,
        "filter": key.filter,
        "average": spec.average,
        "weights": "given" if spec.weights else "size" if spec.weight_by_size else "equal",
        "tasks": len({term.name for term in terms}),
        "missing": len(share.missing) or None,
    }
    signed = sign(named, parts, tables=tables.name, interval=inference.method)
    doubts = (f"{group.name}: {key}: {warning}" for warning in signed.warnings)
    return signed, (*((lacking,) if share.missing else ()), *doubts)


def _find_rule(group: Group[TaskReport], spec: GroupMetric, tables: Tables) -> GroupRule:
    if callable(spec.aggregation):
        return tables.group_callable
    if spec.aggregation not in tables.group_rules:
        raise unknown("group aggregation", str(spec.aggregation), tables.group_rules, place(group.name))
    return tables.group_rules[spec.aggregation]


def _build_term(task: TaskReport, name: str, weight: float, key: MetricKey, tables: Tables) -> Term:
    estimate = task.get(key)
    if estimate is None:
        raise EvalError(f"expected {key} in {name}, got {[str(known) for known, _ in task.estimates]}")
    aggregation = tables.aggregations.get(estimate.scale.aggregation)
    return Term(name, weight, tables.size_of(task, key), estimate, task.column(key), aggregation)


def _explain_lacking(group: Group[TaskReport], key: MetricKey, missing: Sequence[str], total: int) -> str:
    """Say how many tasks lack a metric, and name the first five.

    >>> _explain_lacking(Group("g"), MetricKey("acc"), list("abcdefg"), 9)
    "group 'g': acc,none is missing in 7/9 tasks: a, b, c, d, e and 2 more"
    """
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return f"group {group.name!r}: {key} is missing in {len(missing)}/{total} tasks: {', '.join(missing[:5])}{more}"


def across_tasks(made: Estimate, values: Mapping[str, float], inference: Inference = DEFAULT) -> AcrossTasks | None:
    """The error of a group's mean over other tasks of their kind; None unless it is a mean of two tasks or more.

    It answers a different question from the group's error, which is about other documents of the same tasks. Between
    finite bounds the interval is Wilson's on an effective count, as everywhere: Student's misses a mean near a bound.

    >>> from evalcore.core.records.estimate import Makeup, Part
    >>> made = Estimate(value=0.6, group=Makeup((Part("a", 0.5), Part("b", 0.5))))
    >>> found = across_tasks(made, {"a": 0.5, "b": 0.7})
    >>> found.tasks, round(found.stderr, 12)      # the standard deviation of 0.5 and 0.7 by sqrt(2)
    (2, 0.1)
    """
    parts = [part for part in made.group.parts if part.slope != 0]
    pooled = any(part.influence is not None for part in parts)
    if made.value is None or len(parts) < 2 or pooled:
        return None
    link = made.scale.link
    at = [link.forward(values[part.name]) for part in parts]
    slope = link.slope(made.value)
    if not all(map(isfinite, (*at, slope))):
        return None
    weights = [part.slope * slope / link.slope(values[part.name]) for part in parts]
    if max(map(abs, weights)) > 1 - 1e-6:  # one task decides it all, and one is no sample
        return None
    error, df = sample_of_tasks(weights, at)
    stderr = error / slope
    closed = Estimate(
        value=made.value,
        stderr=stderr,
        spread=Spread(variance=stderr * stderr, df=df, trials=1 / fsum(weight**2 for weight in weights)),
        scale=Scale(bounds=made.scale.bounds, link=made.scale.link),
    )
    return AcrossTasks(len(parts), stderr, add_interval(closed, Inference(confidence=inference.confidence)).ci)


def sample_of_tasks(weights: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The standard error of Σ w·value over draws of values, and its degrees of freedom.

    Σ (w·(value - mean))² is made unbiased, and the degrees are those of a chi-square with its mean and variance, both
    for independent normal values. With equal weights: the standard deviation by sqrt(k), and k - 1.

    >>> error, df = sample_of_tasks([0.25] * 4, [0.0, 1.0, 2.0, 3.0])
    >>> round(error, 6), round(df, 12)
    (0.645497, 3.0)
    """
    mean = fsum(weight * value for weight, value in zip(weights, values, strict=True))
    moves = [weight * (value - mean) for weight, value in zip(weights, values, strict=True)]
    scale = scale_of(moves)
    squares = fsum((move / scale) ** 2 for move in moves)
    exact = [Fraction(weight) for weight in weights]  # what follows is tiny if one task has nearly all of the weight
    w2, w3, w4, w5 = (sum(weight**power for weight in exact) for power in (2, 3, 4, 5))
    # the quadratic form is x' A x with A = (I - 1w')' diag(w²) (I - 1w'): its trace, and that of its square
    trace = w2 - 2 * w3 + w2**2
    square = w4 - 4 * w5 + 4 * w2 * w4 + 2 * w3**2 - 4 * w2**2 * w3 + w2**4
    return scale * sqrt(squares * float(w2 / trace)), float(trace**2 / square)
