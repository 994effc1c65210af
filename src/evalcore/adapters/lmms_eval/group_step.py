"""lmms-eval's group step: groups' rows from their tasks' rows, in place of its own function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import isfinite

from toolz import concat

from evalcore.adapters.lmms_eval.host import LmmsGroup
from evalcore.adapters.lmms_eval.trees import read_trees
from evalcore.core.groups.edit import has_aggregation
from evalcore.core.groups.tree import Group, all_groups
from evalcore.core.lm_eval import result_file
from evalcore.core.lm_eval.lmms_results import OWN, Plain, write_group_rows
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.pipeline import build_report
from evalcore.core.records.report import TaskReport
from evalcore.core.records.task import MetricKey

Row = Mapping[str, object]
TaskDict = Mapping[str | LmmsGroup, object]
GroupStep = tuple[defaultdict[str, Plain], defaultdict[str, object], bool, dict[str, list[str]]]


def consolidate_group_results(
    results: Mapping[str, Row],
    versions: Mapping[str, object],
    task_dict: TaskDict,
    task_root: str | None = None,
    show_group_table: bool = False,
    task_aggregation_list: Mapping[str, list[str]] | None = None,
    *,
    rank: int = 0,
) -> GroupStep:
    """Add the groups of a task dict to results and versions, in place of lmms-eval's function of this name.

    Returns both, whether any group has numbers to show, and the tasks below each group; empty off rank 0. Nothing that
    is passed in changes. With a ``task_root``, the task dict is what is below that group.
    """
    if rank != 0:
        return defaultdict(dict), defaultdict(dict), False, {}
    trees = read_trees(task_dict if task_root is None else {task_root: task_dict})
    report = build_report([_read_task(name, row) for name, row in results.items()], trees)
    rows = {name: row for name, row in write_group_rows(report).items() if name != task_root}
    added = {
        name: {**results.get(name, {}), **{key: value for key, value in row.items() if key != "alias"}}
        for name, row in rows.items()
    }
    known = {name: group for tree in trees for group in (tree, *all_groups(tree)) if (name := group.name) in added}
    stated = {name: group.metadata["version"] for name, group in known.items() if _has_version(group)}
    return (
        defaultdict(dict, {**{name: dict(row) for name, row in results.items()}, **added}),
        defaultdict(dict, {**versions, **stated}),
        show_group_table or result_file.show_group_table(report),
        {**(task_aggregation_list or {}), **result_file.task_aggregation_list(report)},
    )


def _has_version(group: Group[object]) -> bool:
    return has_aggregation(group) and "version" in group.metadata


def _read_task(name: str, row: Row) -> TaskReport:
    """Read a task's row; each number counts its own documents, if the row says how many."""
    keys = [key for text, value in row.items() if (key := MetricKey.parse(text)) is not None and _is_usable(value)]
    parts = [
        {str(key): row[str(key)], key.stderr: row.get(key.stderr), "samples": _find_count(row, str(key))}
        for key in keys
    ]
    return TaskReport(name=name, estimates=tuple(concat(leaf_from_flat(name, part).value.estimates for part in parts)))


def _is_usable(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def _find_count(row: Row, key: str) -> object:
    own = row.get(OWN)
    known = own.get(key) if isinstance(own, Mapping) else None
    return known["n"] if isinstance(known, Mapping) else row.get("samples")
