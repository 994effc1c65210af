"""Metrics and groups in which two runs differ: not compared, or warned of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from msgspec.structs import replace

from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Group, Tree, child_names
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import Tables


def drop_mismatches(
    a: ComparisonSide, b: ComparisonSide, tables: Tables
) -> tuple[ComparisonSide, ComparisonSide, list[str]]:
    """Drop the metrics that the runs close by different rules, and say which."""
    mine, theirs = (
        {
            (one.task.name, column.key): _describe_rule(one, column, tables)
            for one in side.scored
            for column in one.columns
        }
        for side in (a, b)
    )
    unlike = {at: (rule, theirs[at]) for at, rule in mine.items() if rule != theirs.get(at, rule)}
    warnings = [
        f"{name}: {key} is not compared: {one} in one run, {other} in the other"
        for (name, key), (one, other) in unlike.items()
    ]
    return _drop_metrics(a, unlike.keys()), _drop_metrics(b, unlike.keys()), warnings


def _describe_rule(scored: Scored, column: ScoredColumn, tables: Tables) -> str:
    """Describe what makes a number: its aggregation, and its options unless they only shape scores."""
    closing = aggregation_of(scored.task, column, tables)
    options = column.spec.options if column.spec is not None and not closing.even else {}
    return " ".join([closing.name, *(f"{key}={value}" for key, value in sorted(options.items()))])


def _drop_metrics(side: ComparisonSide, dropped: Set[tuple[str, MetricKey]]) -> ComparisonSide:
    kept = (
        replace(one, columns=tuple(column for column in one.columns if (one.task.name, column.key) not in dropped))
        for one in side.scored
    )
    return replace(side, scored=tuple(kept)) if dropped else side


def warn_of_metrics(a: ComparisonSide, b: ComparisonSide) -> Iterator[str]:
    """Name the metrics of each common task that only one run has."""
    theirs = {one.task.name: {str(column.key) for column in one.columns} for one in b.scored}
    for task in a.scored:
        mine = {str(column.key) for column in task.columns}
        for key in sorted(mine ^ theirs.get(task.task.name, mine)):
            yield f"{task.task.name}: only {a.name if key in mine else b.name} has {key}"


def warn_of_groups(a: Iterable[Tree[object]], b: Iterable[Tree[object]]) -> Iterator[str]:
    """Name the groups that differ between the runs, and those that only the second run has."""
    mine, theirs = ({group.name: group for group in list_groups(trees)} for trees in (a, b))
    for name, group in mine.items():
        if _list_rules(group) != _list_rules(theirs.get(name, group)):
            yield f"group {name} differs between the runs; the first run's tasks and weights are used for both"
    for name in theirs if mine else ():
        if name not in mine:
            yield f"group {name} is only in the second run and is not compared"


def _list_rules(group: Group[object]) -> tuple[object, ...]:
    """List what decides a group's numbers: its children and metrics, without the filters, which its tasks decide."""
    return child_names(group), tuple(sorted((replace(one, filters=None) for one in group.metrics), key=repr))
