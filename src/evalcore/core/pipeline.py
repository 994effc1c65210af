"""The pipe in one place: answers, columns, estimates, groups, report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import numpy as np
from msgspec.structs import replace
from toolz import unique

from evalcore.core.aggregate import DEFAULT, Inference, aggregate_metric, cluster_codes
from evalcore.core.arrays import Ints64
from evalcore.core.columns import Column, Floats
from evalcore.core.errata import Facts, group_errata, task_errata
from evalcore.core.errors import EvalError, locate, place, unknown
from evalcore.core.estimate import Aggregation, Estimate
from evalcore.core.groups import (
    Group,
    GroupMetric,
    Leaf,
    Tree,
    alias_of,
    all_tasks,
    fold_group,
    leaves,
    version_of,
)
from evalcore.core.groups.rules import Term, shares
from evalcore.core.records import MetricKey, MetricSpec, Pipeline, Sample, Task
from evalcore.core.reports import GroupReport, Report, TaskReport
from evalcore.core.scoring import Scored, ScoredColumn
from evalcore.core.signature import shown_options, sign
from evalcore.core.tables import EVALCORE, AnyMetric, Tables, pipelines_of

__all__ = ["build_report", "clusters_of", "report_group", "report_groups", "report_task"]


# --- tasks --------------------------------------------------------------------------------------------------


def report_task(
    scored: Scored,
    *,
    inference: Inference = DEFAULT,
    clusters: Mapping[int, int] | None = None,
    n_original: int | None = None,
    tables: Tables = EVALCORE,
) -> TaskReport:
    """Close every column of a task; ``clusters`` maps document keys to cluster codes (see ``clusters_of``)."""
    task = scored.task
    pipelines = {pipeline.name: pipeline for pipeline in pipelines_of(task, tables)}
    closed = [
        (one, _estimate(task, one, pipelines[one.key.filter], inference, clusters, tables)) for one in scored.columns
    ]
    return TaskReport(
        name=task.name,
        estimates=tuple((one.key, estimate) for one, estimate in closed),
        columns=tuple((one.key, one.column) for one in scored.columns),
        n_docs=max((len(one.column) for one in scored.columns), default=0),
        n_original=n_original,
        alias=task.alias,
        version=task.version,
        num_fewshot=task.num_fewshot,
        config=task.config,
        warnings=tuple(unique(warning for one in scored.columns for warning in _warnings(task, one, tables))),
    )


def clusters_of(task: str, samples: Iterable[Sample], *, singletons: bool = False) -> Mapping[int, int]:
    """Cluster codes by document key, from the samples' own clusters.

    >>> codes = clusters_of("t", [Sample(0, cluster="p"), Sample(1, cluster="p")])
    >>> codes[0] == codes[1]
    True
    """
    docs = list(samples)
    codes = cluster_codes([doc.cluster for doc in docs], singletons=singletons, task=task)
    return dict(zip(map(attrgetter("doc_id"), docs), codes.tolist(), strict=True))


def _estimate(
    task: Task,
    one: ScoredColumn,
    pipeline: Pipeline,
    inference: Inference,
    clusters: Mapping[int, int] | None,
    tables: Tables,
) -> Estimate:
    entry = _entry(task, one, tables)
    spec = one.spec or MetricSpec(one.key.metric)
    try:
        estimate = aggregate_metric(
            _aggregation(spec, entry, tables),
            one.column,
            options=spec.options,
            inference=inference,
            clusters=None if clusters is None else _codes(task, one, clusters),
            score_bounds=entry.bounds if entry is not None else (0.0, 1.0),
        )
    except EvalError as wrong:
        raise locate(wrong, place(task.name, key=one.key)) from wrong
    higher = spec.higher_is_better if spec.higher_is_better is not None else entry.higher_is_better if entry else True
    facts = Facts(
        one.key,
        estimate,
        pipeline,
        one.traits,
        pipeline.metrics or task.metrics,
        _partial_credit(one.column),
        inference.resampling.draws,
    )
    named = replace(estimate, higher_is_better=higher, errata=task_errata(facts))
    parts = {
        "task": task.name,
        "metric": one.key.metric,
        "options": shown_options(spec.options),
        "filter": one.key.filter,
        "reducer": one.reducer,
        "repeats": _span(one.repeats),
        "unscored": inference.on_unscorable,
    }
    return sign(named, parts, tables=tables.name, interval=inference.interval)


def _partial_credit(column: Column) -> bool:
    """Whether any score lies strictly between 0 and 1."""
    if not isinstance(column.rows, Floats):
        return False
    values = column.rows.values.floats
    return bool(np.any((values > 0) & (values < 1)))


def _span(repeats: tuple[int, int] | None) -> str | None:
    return None if repeats is None else "-".join(map(str, sorted(set(repeats))))


def _entry(task: Task, one: ScoredColumn, tables: Tables) -> AnyMetric | None:
    """What is known about a metric by its name: of the task's own output type, else of any."""
    name = one.spec.name if one.spec is not None else one.key.metric
    if one.spec is not None and one.spec.function is not None:
        return None
    own = tables.metrics.get(task.output_type)
    if own is not None and name in own:
        return own[name]
    if task.process_results is None:
        return None
    return next((tables.metrics[kind][name] for kind in sorted(tables.metrics) if name in tables.metrics[kind]), None)


def _aggregation(spec: MetricSpec, entry: AnyMetric | None, tables: Tables) -> Aggregation:
    wanted = spec.aggregation if spec.aggregation is not None else entry.aggregation if entry is not None else "mean"
    if callable(wanted):
        return tables.from_callable(wanted)
    if wanted not in tables.aggregations:
        raise unknown("aggregation", wanted, tables.aggregations)
    return tables.aggregations[wanted]


def _codes(task: Task, one: ScoredColumn, clusters: Mapping[int, int]) -> Ints64:
    keys = one.column.keys.ints.tolist()
    missing = next((key for key in keys if key not in clusters), None)
    if missing is not None:
        raise EvalError(f"expected a cluster for every document, got none{place(task.name, missing)}")
    return np.array([clusters[key] for key in keys], np.int64)


def _warnings(task: Task, one: ScoredColumn, tables: Tables) -> Iterable[str]:
    if one.spec is None:
        yield f"{task.name}: metric {one.key.metric!r} was emitted without being declared; aggregated by mean"
        return
    entry = _entry(task, one, tables)
    if entry is None and one.spec.aggregation is None:
        yield f"{task.name}: no aggregation defined for {one.key.metric!r}, using mean"
    known = None if entry is None else entry.options
    for name in sorted(one.spec.options) if known is not None else ():
        if name not in (known or ()):
            yield f"{task.name}: {one.spec.name} has no option {name!r}; it is ignored"


# --- groups -------------------------------------------------------------------------------------------------


def report_groups(tree: Tree[TaskReport], *, tables: Tables = EVALCORE) -> tuple[GroupReport, ...]:
    """Every group of a tree, children before parents, each once: a fold whose carrier is the reports below."""
    found: tuple[GroupReport, ...] = fold_group(
        tree,
        lambda leaf: (),
        lambda group, parts: (
            *(report for part in parts for report in part),
            report_group(group, tables=tables),
        ),
    )
    return tuple(unique(found, key=attrgetter("name")))


def report_group(group: Group[TaskReport], *, tables: Tables = EVALCORE) -> GroupReport:
    """A group's own numbers. Without an aggregation list it has a name and an alias only."""
    if not group.metrics:
        return GroupReport(name=group.name, alias=alias_of(group), version=version_of(group))
    tasks = all_tasks(group)
    wanted = [(spec, key) for spec in group.metrics for key in _keys(spec, tasks)]
    rows = [(key, *_group_estimate(group, spec, key, tables)) for spec, key in wanted]
    return GroupReport(
        name=group.name,
        alias=alias_of(group),
        estimates=tuple((key, estimate) for key, estimate, _ in rows if estimate is not None),
        sample_len=sum(leaf.value.sample_len for leaf in tables.members(group)),
        version=version_of(group),
        warnings=tuple(warning for _, _, warnings in rows for warning in warnings),
    )


def _keys(spec: GroupMetric, tasks: Sequence[Leaf[TaskReport]]) -> list[MetricKey]:
    """The keys a group metric asks for: the listed filters, or those found among its own tasks."""
    if spec.filters is not None:
        return [MetricKey(spec.metric, name) for name in spec.filters]
    found = {key.filter for leaf in tasks for key, _ in leaf.value.estimates if key.metric == spec.metric}
    return [MetricKey(spec.metric, name) for name in sorted(found)] or [MetricKey(spec.metric)]


def _group_estimate(
    group: Group[TaskReport], spec: GroupMetric, key: MetricKey, tables: Tables
) -> tuple[Estimate | None, tuple[str, ...]]:
    share = shares(group, spec, key, tables.averages, tables.size_of)
    by_name = {leaf.name: leaf.value for leaf in all_tasks(group)}
    if not share.terms:
        return None, (f"group {group.name!r}: no values found for {key} in any task",)
    if share.missing and spec.missing == "fail":
        raise EvalError(_lacking(group, key, share.missing, len(by_name)))
    terms = tuple(_term(by_name[name], name, weight, key, tables) for name, weight in share.terms)
    rule = tables.group_rules.get("callable" if callable(spec.aggregation) else spec.aggregation)
    if rule is None:
        raise unknown("group aggregation", str(spec.aggregation), tables.group_rules, place(group.name))
    estimate = rule(spec, terms)
    directions = {term.estimate.higher_is_better for term in terms}
    sample_lens = [by_name[term.name].sample_len for term in terms]
    named = replace(
        estimate,
        partial=share.missing,
        higher_is_better=directions.pop() if len(directions) == 1 else None,
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
    warnings = (_lacking(group, key, share.missing, len(by_name)),) if share.missing else ()
    return sign(named, parts, tables=tables.name, interval="wilson"), warnings


def _term(task: TaskReport, name: str, weight: float, key: MetricKey, tables: Tables) -> Term:
    estimate = task.get(key)
    if estimate is None:
        raise EvalError(f"expected {key} in {name}, got {[str(known) for known, _ in task.estimates]}")
    return Term(name, weight, tables.size_of(task, key), estimate, task.column(key))


def _lacking(group: Group[TaskReport], key: MetricKey, missing: Sequence[str], total: int) -> str:
    """How many tasks lack a metric, the first five by name.

    >>> _lacking(Group("g"), MetricKey("acc"), list("abcdefg"), 9)
    "group 'g': acc,none is missing in 7/9 tasks: a, b, c, d, e and 2 more"
    """
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    return f"group {group.name!r}: {key} is missing in {len(missing)}/{total} tasks: {', '.join(missing[:5])}{more}"


# --- everything ------------------------------------------------------------------------------------------------


def build_report(
    tasks: Iterable[TaskReport], trees: Iterable[Tree[object]] = (), *, tables: Tables = EVALCORE
) -> Report:
    """Task reports placed in their trees, and every group's numbers. A task named in a tree but not run is missing.

    >>> from evalcore.core.reports import leaf_from_flat
    >>> done = [leaf_from_flat(name, {"acc,none": v}).value for name, v in [("a", 0.8), ("b", 0.9)]]
    >>> tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("acc"),))
    >>> round(build_report(done, [tree]).group("g").get(MetricKey("acc")).value, 2)
    0.85
    """
    done = tuple(tasks)
    by_name = {task.name: task for task in done}
    if len(by_name) < len(done):
        raise EvalError(f"expected each task once, got {[task.name for task in done]}")
    placed = tuple(_placed(tree, by_name) for tree in trees)
    groups = unique((g for tree in placed for g in report_groups(tree, tables=tables)), key=attrgetter("name"))
    return Report(tasks=done, groups=tuple(groups), trees=placed)


def _placed(tree: Tree[object], by_name: Mapping[str, TaskReport]) -> Tree[TaskReport]:
    from evalcore.core.groups import map_leaves

    return map_leaves(lambda leaf: by_name.get(leaf.name, TaskReport(name=leaf.name)), tree)
