"""The pipe in one place, each step a name: answers, columns, estimates, groups, report.

group_by_doc · score_doc / score_task · reduce_repeats · merge_scored · aggregate_metric / report_task
· fold_group / report_groups · build_report
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from toolz import unique

from evalcore.core.aggregate.task_report import clusters_of, report_task
from evalcore.core.aggregate.value import DEFAULT, Inference, aggregate_metric
from evalcore.core.answers.filtrate import merge_scored, score_doc, score_task
from evalcore.core.answers.group import group_by_doc
from evalcore.core.groups.report import report_group, report_groups
from evalcore.core.groups.tree import Group, Tree, fold_group, leaves, map_leaves
from evalcore.core.records.errors import EvalError
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.repeats.reduce import reduce_repeats
from evalcore.core.tables import EVALCORE, Tables

__all__ = [
    "aggregate_metric",
    "build_report",
    "clusters_of",
    "fold_group",
    "group_by_doc",
    "merge_scored",
    "reduce_repeats",
    "report_group",
    "report_groups",
    "report_task",
    "score_doc",
    "score_task",
]


def build_report(
    tasks: Iterable[TaskReport],
    trees: Iterable[Tree[object]] = (),
    *,
    inference: Inference = DEFAULT,
    tables: Tables = EVALCORE,
) -> Report:
    """Task reports placed in their trees, and every group's numbers. A task named in a tree but not run is missing.

    >>> from evalcore.core.groups.tree import Group, GroupMetric, Leaf
    >>> from evalcore.core.records.task import MetricKey
    >>> from evalcore.core.records.report import leaf_from_flat
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
    _refuse_namesakes(placed)
    groups = unique(
        (g for tree in placed for g in report_groups(tree, inference=inference, tables=tables)), key=attrgetter("name")
    )
    return Report(tasks=done, groups=tuple(groups), trees=placed)


def _refuse_namesakes(trees: Iterable[Tree[TaskReport]]) -> None:
    """A name stands for one group, and not for a group and a task."""
    trees = tuple(trees)
    groups = [one for tree in trees if isinstance(tree, Group) for one in (tree, *_below(tree))]
    tasks = {leaf.name for tree in trees for leaf in leaves(tree)}
    seen: dict[str, Group[TaskReport]] = {}
    for group in groups:
        if group.name in tasks:
            raise EvalError(f"expected a name for the group of its own, got that of a task - at group {group.name}")
        if seen.setdefault(group.name, group) != group:
            raise EvalError(f"expected each group once, got two different ones - at group {group.name}")


def _below(tree: Group[TaskReport]) -> tuple[Group[TaskReport], ...]:
    """Every group below, as often as it is there."""
    found: tuple[Group[TaskReport], ...] = fold_group(
        tree, lambda leaf: (), lambda group, parts: (group, *(one for part in parts for one in part))
    )
    return found[1:]


def _placed(tree: Tree[object], by_name: Mapping[str, TaskReport]) -> Tree[TaskReport]:
    return map_leaves(lambda leaf: by_name.get(leaf.name, TaskReport(name=leaf.name)), tree)
