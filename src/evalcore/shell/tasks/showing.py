"""One name of the index with all that it stands for, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from math import isfinite

from evalcore.core.errors import EvalError
from evalcore.core.groups import Group, Leaf, Tree, fold_group
from evalcore.core.groups.config import group_to_dict
from evalcore.core.records import Options
from evalcore.shell.config.documents import FunctionTag
from evalcore.shell.tasks.code import find_function, map_values, trusted
from evalcore.shell.tasks.index import TaskIndex, config_of
from evalcore.shell.tasks.listing import entry_to_dict
from evalcore.shell.tasks.resolving import resolve
from evalcore.shell.tasks.select import unknown_name

__all__ = ["show", "to_json", "tree_to_dict"]


def show(index: TaskIndex, name: str) -> dict[str, object]:
    """One name as plain data: a task with its merged config and the code it runs, a group with its tree, a tag.

    A group that cannot be built is shown as it stands, with the problem.
    """
    entry = index.entries.get(name)
    if entry is None:
        raise unknown_name(index, name)
    known = entry_to_dict(entry)
    if entry.kind == "tag":
        return known
    config = config_of(index, name)
    made = known | {
        "config": {key: to_json(value) for key, value in config.items() if key != "group" or entry.kind == "group"}
    }
    if entry.kind != "group":
        found = {key: map_values(_found, value) for key, value in config.items()}
        return made | {"code": trusted(found)}
    try:
        (tree,) = resolve(index, [name]).trees
    except EvalError as wrong:
        return made | {"problem": str(wrong)}
    return made | {"tree": tree_to_dict(tree)}


def tree_to_dict(tree: Tree[Options]) -> dict[str, object]:
    """A tree as nested plain data: each group in lm-eval's schema with its children under ``task``.

    >>> tree_to_dict(Group("g", (Leaf("a", 1),)))
    {'group': 'g', 'task': [{'task': 'a'}]}
    """

    def leaf(node: Leaf[Options]) -> dict[str, object]:
        return {"task": node.name}

    def group(node: Group[Options], parts: tuple[dict[str, object], ...]) -> dict[str, object]:
        own = {key: to_json(value) for key, value in group_to_dict(node).items() if key != "task"}
        return own | {"task": list(parts)}

    return fold_group(tree, leaf, group)


def _found(value: object) -> object:
    try:
        return find_function(value) if isinstance(value, FunctionTag) else value
    except EvalError:
        return value


def to_json(value: object) -> object:
    """A config value as JSON has it: functions as ``path:name``, dates as text.

    >>> to_json({1: [date(2024, 2, 29), float("inf"), FunctionTag("no_such_module.f", 1)]})
    {'1': ['2024-02-29', 'inf', 'no_such_module.f (not found)']}
    """
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    value = _found(value)
    if isinstance(value, FunctionTag):
        return f"{value.name} (not found)"
    if isinstance(value, date):
        return value.isoformat()
    plain = isinstance(value, str | bool | int | type(None)) or (isinstance(value, float) and isfinite(value))
    return value if plain else str(value)
