"""A report as a flat table: one row per number, in the order of the group tree. Every writer reads these rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import isfinite
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace
from toolz import unique

from evalcore.core.groups.tree import Tree, fold_group
from evalcore.core.lm_eval.result_file import num_fewshot
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.task import MetricKey

T = TypeVar("T")


class NumberRow(Struct, frozen=True, kw_only=True):
    """One number of a task or group, ``depth`` levels down; ``metric`` is empty where there is none to show.

    Without ``measures``, answers were only recorded.
    """

    name: str
    alias: str
    group: bool = False
    depth: int = 0
    version: str = ""
    shots: int | None = None
    filter: str = ""
    metric: str = ""
    measures: bool = True
    higher: bool | None = None
    value: float | None = None
    stderr: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    failed: int = 0
    unscorable: int = 0
    reason: str = ""


def list_rows(report: Report) -> tuple[NumberRow, ...]:
    """Every number of a report, parents before children; a task in two groups appears in both.

    >>> from evalcore.core.groups.tree import Group, GroupMetric, Leaf
    >>> from evalcore.core.pipeline import build_report
    >>> from evalcore.core.lm_eval.result_row import leaf_from_flat
    >>> tree = Group("g", (Leaf("a", None),), (GroupMetric("acc"),))
    >>> done = build_report([leaf_from_flat("a", {"acc,none": 0.5, "sample_len": 8}).value], [tree])
    >>> [(row.depth, row.name, row.metric, row.value) for row in list_rows(done)]
    [(0, 'g', 'acc', 0.5), (1, 'a', 'acc', 0.5)]
    """
    shots = num_fewshot(report)
    known: list[TaskReport | GroupReport] = [*report.tasks, *report.groups]
    blocks = {one.name: _list_block(one, shots.get(one.name)) for one in known}
    places = list_places(report.trees)
    seen = {name for _, name in places}
    places += [(0, task.name) for task in report.tasks if task.name not in seen]
    missing = {name: (NumberRow(name=name, alias=name, reason="not run"),) for _, name in places if name not in blocks}
    return tuple(replace(row, depth=depth) for depth, name in places for row in (blocks.get(name) or missing[name]))


Place = tuple[int, str]
"""How deep in a tree, and the name of a task or a group."""


def list_places(trees: Iterable[Tree[T]], shown: Collection[str] | None = None) -> list[Place]:
    """Every task and group of some trees, or only those that are ``shown``: other groups are no level."""

    def place(name: str, parts: Sequence[tuple[Place, ...]] = ()) -> tuple[Place, ...]:
        here = shown is None or name in shown
        return (*([(0, name)] if here else []), *((depth + here, one) for part in parts for depth, one in part))

    return [
        one
        for tree in trees
        for one in fold_group(tree, lambda leaf: place(leaf.name), lambda group, parts: place(group.name, parts))
    ]


def _list_block(report: TaskReport | GroupReport, shots: int | None) -> tuple[NumberRow, ...]:
    """The rows of a task or group."""
    head = NumberRow(
        name=report.name,
        alias=report.alias or report.name,
        group=isinstance(report, GroupReport),
        version="" if report.version in (None, "N/A") else str(report.version),
        shots=shots,
    )
    rows = tuple(_fill_row(head, key, estimate) for key, estimate in report.estimates) or (head,)
    return tuple(_count_recorded(row, report.n_docs) for row in rows) if isinstance(report, TaskReport) else rows


def _count_recorded(row: NumberRow, docs: int) -> NumberRow:
    """Answers that nothing was measured on are counted all the same."""
    if row.measures or row.value is not None:
        return row
    return replace(row, n=docs - row.failed - row.unscorable, reason="recorded")


def _fill_row(head: NumberRow, key: MetricKey, estimate: Estimate) -> NumberRow:
    low, high = estimate.ci if estimate.ci is not None else (None, None)
    return replace(
        head,
        filter=key.filter,
        metric=key.metric,
        measures=estimate.scale.measures,
        higher=estimate.scale.higher_is_better,
        value=_drop_nonfinite(estimate.value),
        stderr=_drop_nonfinite(estimate.stderr),
        low=_drop_nonfinite(low),
        high=_drop_nonfinite(high),
        n=estimate.n,
        failed=estimate.counts.failed,
        unscorable=estimate.counts.unscorable,
        reason=estimate.reason or "",
    )


def _drop_nonfinite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def drop_repeats(rows: Iterable[NumberRow]) -> tuple[NumberRow, ...]:
    """Each number once, wherever its task stands in the tree."""
    return tuple(unique(rows, key=lambda row: (row.name, row.metric, row.filter)))
