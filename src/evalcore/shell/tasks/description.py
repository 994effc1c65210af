"""One name of the index, explained as plain data."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from datetime import date
from math import isfinite
from pathlib import Path
from types import MappingProxyType

from evalcore.core.groups.config import group_to_dict
from evalcore.core.groups.tree import Group, Leaf, Tree, fold_group
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Options
from evalcore.shell.config.yaml_file import FunctionTag
from evalcore.shell.tasks.code import find_function, hash_code, map_values
from evalcore.shell.tasks.library.entries import entry_to_dict
from evalcore.shell.tasks.library.index import TaskIndex, read_entry, read_file
from evalcore.shell.tasks.resolution import draw_trees
from evalcore.shell.tasks.selection import refuse_name

OWN_KEYS = ("task", "group")


def show_names(index: TaskIndex, names: Iterable[str]) -> list[dict[str, object]]:
    """Show all that these names, globs and paths of task files stand for."""
    globs = ((name, sorted(fnmatch.filter(index.entries, name)) if set(name) & set("*?[") else []) for name in names)
    known = [match for name, matches in globs for match in (matches or [name])]
    return [
        show_file(index, name) if name not in index.entries and Path(name).is_file() else show_name(index, name)
        for name in known
    ]


def show_name(index: TaskIndex, name: str) -> dict[str, object]:
    """Show a name as plain data: a task with its merged config and the code it runs, a group with its tree, a tag.

    A group that cannot be built is shown as written, with the problem.
    """
    entry = index.entries.get(name)
    if entry is None:
        raise refuse_name(index, name)
    known = entry_to_dict(entry)
    if entry.kind == "tag":
        return known
    if entry.kind != "group":
        return known | _show_config(read_entry(index, name))
    made = known | {"config": to_json(locate_functions(read_entry(index, name)))}
    try:
        drawn = draw_trees(index, [name])
    except EvalError as wrong:
        return made | {"problem": str(wrong)}
    return made | {"tree": tree_to_dict(drawn.trees[0], drawn.renames)}


def show_file(index: TaskIndex, path: str) -> dict[str, object]:
    """Show the task of a file that need not be in the index; a group as written."""
    entry, config = read_file(index, path)
    return entry_to_dict(entry) | _show_config(config)


def _show_config(config: Mapping[str, object]) -> dict[str, object]:
    located = locate_functions(config)
    return {
        "config": {key: to_json(value) for key, value in located.items() if key != "group"},
        "code": hash_code(located),
    }


def locate_functions(config: Mapping[str, object]) -> dict[str, object]:
    """Locate the functions of a config; a function that does not exist stays a name."""
    return {key: map_values(_find_tagged, value) for key, value in config.items()}


def tree_to_dict(tree: Tree[Options], names: Mapping[str, str] = MappingProxyType({})) -> dict[str, object]:
    """Convert a tree to nested plain data: each group in lm-eval's schema with its children under ``task``.

    >>> tree_to_dict(Group("g", (Leaf("g::a", 1),)), {"g::a": "a"})
    {'group': 'g', 'task': [{'task': 'a'}]}
    """

    def leaf(node: Leaf[Options]) -> dict[str, object]:
        return {"task": names.get(node.name, node.name)}

    def group(node: Group[Options], parts: tuple[dict[str, object], ...]) -> dict[str, object]:
        own = {key: _sort_keys(to_json(value)) for key, value in group_to_dict(node).items() if key not in OWN_KEYS}
        return {"group": names.get(node.name, node.name)} | own | {"task": list(parts)}

    return fold_group(tree, leaf, group)


def _sort_keys(value: object) -> object:
    """Sort keys at every level: those of a group's metadata have lost the order of their file."""
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(one) for one in value] if isinstance(value, list) else value


def _find_tagged(value: object) -> object:
    try:
        return find_function(value) if isinstance(value, FunctionTag) else value
    except EvalError:
        return value


def to_json(value: object) -> object:
    """Convert a config value to JSON: functions as ``path:name``, dates as text.

    >>> to_json({1: [date(2024, 2, 29), float("inf"), FunctionTag("no_such_module.f", 1)]})
    {'1': ['2024-02-29', 'inf', 'no_such_module.f (not found)']}
    """
    if isinstance(value, str):  # first, because nearly all values are
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if isinstance(value, FunctionTag):
        return f"{value.name} (not found)"
    if isinstance(value, date):
        return value.isoformat()
    plain = isinstance(value, str | bool | int | type(None)) or (isinstance(value, float) and isfinite(value))
    return value if plain else str(value)
