"""The groups of recorded results: as evalcore wrote them, or as inferred from lm-eval's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.groups.build import build_trees
from evalcore.core.groups.config import group_metric_from_config
from evalcore.core.groups.report import report_group
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, Tree, fold_group, map_leaves
from evalcore.core.records.errors import EvalError
from evalcore.core.records.report import TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.rows import read_float
from evalcore.shell.logs.runs.columns import VALUES, same_number

Plain = Mapping[str, object]

MOST_PLACES = 100_000
"""Many times the places of the largest suites; the groups of a hostile file could have endless ones."""


class Grown(Struct, frozen=True):
    """Trees without numbers, and warnings about metrics that are left out."""

    trees: tuple[Tree[object], ...]
    warnings: tuple[str, ...] = ()


def grow_trees(
    results: Plain, tasks: Iterable[TaskReport], where: str = "the results", tables: Tables = EVALCORE
) -> Grown:
    """Grow the trees of results. How lm-eval averaged a group is inferred from its number.

    >>> from evalcore.core.lm_eval.result_row import leaf_from_flat
    >>> done = [leaf_from_flat(name, {"acc,none": v, "sample_len": n}).value for name, v, n in
    ...         [("a", 0.5, 10), ("b", 0.8, 20)]]
    >>> rows = {"g": {"acc,none": 0.65}}
    >>> grown = grow_trees({"group_subtasks": {"g": ["a", "b"]}, "groups": rows, "results": rows}, done)
    >>> grown.trees[0].metrics[0].weight_by_size
    False
    """
    written = find_part(results, "evalcore").get("groups")
    try:
        if isinstance(written, list | tuple):
            return _written_trees([one for one in written if isinstance(one, Mapping)], tables)
        return _fitted_trees(results, {task.name: task for task in tasks})
    except EvalError as wrong:
        return Grown((), (f"the groups of {where} are left out: {wrong}",))


# --- evalcore's -----------------------------------------------------------------------------------------------------


def _written_trees(groups: Sequence[Plain], tables: Tables) -> Grown:
    told: list[str] = []
    plain = [{**group, "aggregate_metric_list": list(_readable(group, told, tables))} for group in groups]
    return Grown(_built(plain), tuple(told))


def _readable(group: Plain, told: list[str], tables: Tables) -> Iterable[GroupMetric]:
    """The metrics of a group except those whose aggregation was code, of which only the name is written."""
    given = group.get("aggregate_metric_list")
    for entry in given if isinstance(given, list | tuple) else ():
        try:
            yield group_metric_from_config(entry if isinstance(entry, Mapping) else {}, tables.group_tables)
        except EvalError as wrong:
            told.append(f"group {group.get('group')}: a metric is left out: {wrong}")


def _built(groups: Sequence[Plain]) -> tuple[Tree[object], ...]:
    names = {str(group.get("group")) for group in groups}
    below = [child for group in groups for child in _listed(group.get("task")) if child not in names]
    trees = build_trees([*groups, *({"task": child} for child in dict.fromkeys(below))])
    places = _count_places(trees)
    if places > MOST_PLACES:
        raise EvalError(f"expected at most {MOST_PLACES:,} places of tasks in groups, got {places:,}")
    return tuple(map_leaves(lambda leaf: None, tree) for tree in trees if isinstance(tree, Group))


def _count_places(trees: Iterable[Tree[object]]) -> int:
    """Count tasks and groups on every path; groups that share groups can have more than anyone can walk."""
    sizes: dict[str, int] = {}
    stack = list(trees)
    total = [tree.name for tree in stack]
    while stack:
        node = stack[-1]
        children = node.children if isinstance(node, Group) else ()
        waiting = [child for child in children if child.name not in sizes]
        if waiting and node.name not in sizes:
            stack.extend(waiting)
        else:
            sizes.setdefault(node.name, 1 + sum(sizes[child.name] for child in children))
            stack.pop()
    return sum(sizes[name] for name in total)


# --- lm-eval's ------------------------------------------------------------------------------------------------------


def _fitted_trees(results: Plain, tasks: Mapping[str, TaskReport]) -> Grown:
    below = find_part(results, "group_subtasks")
    # Before 0.4.4 every task is there as a group of nothing.
    groups = [{"group": name, "task": _listed(given)} for name, given in below.items() if _listed(given)]
    told: list[str] = []

    def leaf(node: Leaf[object]) -> Tree[TaskReport]:
        return Leaf(node.name, tasks.get(node.name) or TaskReport(name=node.name))

    def group(node: Group[object], parts: tuple[Tree[TaskReport], ...]) -> Tree[TaskReport]:
        row = {**find_part(results, "results", node.name), **find_part(results, "groups", node.name)}
        alias = str(row.get("alias") or "").lstrip(" -")
        bare: Group[TaskReport] = Group(node.name, parts, (), alias if alias != node.name else None)
        found = {key: _fit(bare, key, value) for key, value in _numbers(row)}
        lost = [key for key, metric in found.items() if metric is None]
        told.extend(f"group {node.name}: {key} is left out: {UNFIT} {str(row[str(key)])[:60]}" for key in lost)
        return replace(bare, metrics=tuple(metric for metric in found.values() if metric is not None))

    fitted = [fold_group(tree, leaf, group) for tree in _built(groups)]
    # A group in two trees is fitted in each, and tells the same.
    return Grown(tuple(map_leaves(lambda leaf: None, tree) for tree in fitted), tuple(dict.fromkeys(told)))


CANDIDATES = tuple(product(("mean", "macro"), (True, False), ("leaves", "children")))
"""Ways to average a group (aggregation, by size, over what), lm-eval's default first."""


UNFIT = "no mean of its tasks, by size or in equal parts, gives the recorded"


def _fit(bare: Group[TaskReport], key: MetricKey, value: float) -> GroupMetric | None:
    """The first way to average that reproduces the recorded number."""
    for aggregation, by_size, average in CANDIDATES:
        metric = GroupMetric(key.metric, (key.filter,), aggregation, by_size, average)
        try:
            found = report_group(replace(bare, metrics=(metric,)), inference=VALUES).get(key)
        except EvalError:
            continue
        if found is not None and same_number(found.value, value):
            return metric
    return None


def _numbers(row: Plain) -> list[tuple[MetricKey, float]]:
    pairs = [(MetricKey.parse(text), value) for text, value in row.items()]
    return [(key, number) for key, value in pairs if key is not None and (number := read_float(value)) is not None]


def _listed(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []
