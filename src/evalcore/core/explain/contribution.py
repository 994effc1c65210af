"""The effect of one document on every number above it: its task's, and those of its task's groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.inference import DEFAULT, Inference
from evalcore.core.compare.moves import influence_of
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import all_tasks, map_leaves
from evalcore.core.pipeline import aggregate_again, build_report
from evalcore.core.records.array import frozen
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.estimate import Estimate, Part, Resampling
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.row import take_rows
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables


class Contribution(FrozenRecord, frozen=True):
    """A document in one number. ``without`` is exactly the number without the document.

    ``influence`` is how far the document pulls the number away from the others of its task, for given sizes of the
    tasks; over the documents of a task it sums to 0. ``weight`` is its share if all documents weigh the same.
    ``reason`` says why something is missing.
    """

    name: str
    key: MetricKey
    group: bool
    value: float | None
    without: float | None
    influence: float | None = None
    weight: float | None = None
    n: int = 0
    reason: str | None = None

    @property
    def moved(self) -> float | None:
        """The number minus the number without the document."""
        return None if self.value is None or self.without is None else self.value - self.without


def contributions(
    report: Report, task: str, doc: int, *, inference: Inference = DEFAULT, tables: Tables = EVALCORE
) -> tuple[Contribution, ...]:
    """List every number that a document is part of: its task's first, then groups, the nearest first.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import Floats, build_column
    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> from evalcore.core.records.task import Task
    >>> from evalcore.core.pipeline import report_task
    >>> from evalcore.core.records.score import Scored, ScoredColumn
    >>> scores = build_column([0, 1, 2, 3], Floats(Array([1.0, 1.0, 0.0, 1.0])))
    >>> scored = Scored(Task("t", GENERATE_UNTIL), (ScoredColumn(MetricKey("acc"), scores, None),))
    >>> [one] = contributions(build_report([report_task(scored)]), "t", 2)
    >>> one.value, one.without, one.influence, one.weight
    (0.75, 1.0, -0.1875, 0.25)
    """
    whole, quick = report.task(task), replace(inference, resampling=Resampling(0))
    rest = _drop_document(whole, doc, quick, tables)
    left, why = _report_groups(report, rest, quick, tables)
    own = [_measure_in_task(whole, rest, key, doc) for key, _ in whole.estimates if _has_document(whole, key, doc)]
    above = [
        _measure_in_group(group, left.get(group.name), key, whole, doc, why)
        for group in report.groups
        if group.name in groups_above(report, task)
        for key, estimate in group.estimates
        if estimate.value is not None and _has_document(whole, key, doc)
        if not estimate.group.parts or _find_part(estimate, task) is not None
    ]
    return (*own, *above)


def groups_above(report: Report, task: str) -> frozenset[str]:
    """Find the groups that contain a task, at any depth.

    >>> from evalcore.core.groups.tree import Group, Leaf
    >>> tree = Group("g", (Leaf("a", None), Group("h", (Leaf("b", None),))))
    >>> sorted(groups_above(build_report([], [tree]), "b"))
    ['g', 'h']
    """
    return frozenset(one.name for one in list_groups(report.trees) if task in {leaf.name for leaf in all_tasks(one)})


def _report_groups(
    report: Report, rest: TaskReport, inference: Inference, tables: Tables
) -> tuple[Mapping[str, GroupReport], str]:
    """Report every group with one task changed; or none, and why, if a group cannot do without the task."""
    tasks = [rest if one.name == rest.name else one for one in report.tasks]
    trees = tuple(map_leaves(lambda leaf: None, tree) for tree in report.trees)
    try:
        made = build_report(tasks, trees, inference=inference, tables=tables)
    except EvalError as wrong:
        return {}, str(wrong)
    return {group.name: group for group in made.groups}, "without it the group has no number"


def _has_document(task: TaskReport, key: MetricKey, doc: int) -> bool:
    column = task.column(key)
    return column is not None and column.times is None and doc in column.keys.ints


def _drop_document(task: TaskReport, doc: int, inference: Inference, tables: Tables) -> TaskReport:
    """Report the task as if it had never had the document."""
    if not any(_has_document(task, key, doc) for key, _ in task.columns):
        raise EvalError(f"expected a document of this task, got an unknown key{place(task.name, doc)}")
    columns = tuple((key, _drop_row(column, doc)) for key, column in task.columns)
    kept = dict(columns)
    estimates = tuple(
        (key, aggregate_again(one, kept.get(key), inference=inference, tables=tables)) for key, one in task.estimates
    )
    return replace(task, estimates=estimates, columns=columns, n_docs=task.n_docs - 1)


def _drop_row(column: Column, doc: int) -> Column:
    here = np.asarray(column.keys.ints != doc)
    return Column(
        frozen(column.keys.ints[here]),
        take_rows(column.rows, here),
        frozen(column.status.data[here].astype(np.uint8)),
        tuple(pair for pair in column.reasons if pair[0] != doc),
    )


def _measure_in_task(whole: TaskReport, rest: TaskReport, key: MetricKey, doc: int) -> Contribution:
    estimate, other = whole[key], rest[key]
    moved = _find_influence(Part(whole.name, 1.0), estimate, doc)
    weight = 1 / estimate.count if estimate.scale.even and moved is not None else None
    reason = other.reason if other.value is None else _explain_silence(estimate, doc)
    return Contribution(whole.name, key, False, estimate.value, other.value, moved, weight, estimate.count, reason)


def _measure_in_group(
    group: GroupReport, left: GroupReport | None, key: MetricKey, task: TaskReport, doc: int, why: str
) -> Contribution:
    estimate, other, own = group[key], None if left is None else left.get(key), task[key]
    part = _find_part(estimate, task.name)
    moved = None if part is None else _find_influence(part, own, doc)
    weight = part.slope / own.count if own.scale.even and moved is not None and part is not None else None
    without = None if other is None else other.value
    reason = _explain_silence(own, doc) if without is not None else why
    return Contribution(group.name, key, True, estimate.value, without, moved, weight, estimate.count, reason)


def _explain_silence(estimate: Estimate, doc: int) -> str | None:
    """Explain why a document has no influence of its own."""
    if estimate.spread.keys is None or doc not in estimate.spread.keys.ints:
        return "it has no score here, or counts only together with other documents"
    return (
        None if estimate.spread.influence is not None else f"{estimate.scale.aggregation} has no influences by document"
    )


def _find_part(estimate: Estimate, task: str) -> Part | None:
    return next((part for part in estimate.group.parts if part.name == task), None)


def _find_influence(part: Part, estimate: Estimate, doc: int) -> float | None:
    """Find how far a document moves a number, through its task's part in it."""
    moved = influence_of(part, estimate)
    if moved is None or estimate.spread.keys is None:
        return None
    at = np.flatnonzero(estimate.spread.keys.ints == doc).tolist()
    return float(moved[at[0]]) / len(moved) if at else None
