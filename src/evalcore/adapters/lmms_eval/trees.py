"""lmms-eval's nested task dict as group trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

from msgspec.structs import replace

from evalcore.adapters.lmms_eval.host import LmmsGroup
from evalcore.core.groups.config import group_from_config
from evalcore.core.groups.tree import Group, Leaf

TaskDict = Mapping[str | LmmsGroup, object]


def read_trees(task_dict: TaskDict) -> tuple[Group[object], ...]:
    """Read the groups of a nested task dict: a key with a config, or a bare name, over a dict of tasks and groups.

    >>> read_trees({"suite": {"a": object(), "inner": {"b": object()}}, "alone": object()})
    (Group('suite', 2 children: [a, inner], version=N/A),)
    """
    return tuple(_read_tree(key, value) for key, value in task_dict.items() if isinstance(value, Mapping))


def _read_tree(key: str | LmmsGroup, members: TaskDict) -> Group[object]:
    children = tuple(
        _read_tree(name, value)
        if isinstance(value, Mapping)
        else Leaf(str(getattr(value, "task_name", None) or name), None)
        for name, value in members.items()
    )
    shell: Group[object] = Group(key) if isinstance(key, str) else _read_group(key)
    return replace(shell, children=children)


def _read_group(group: LmmsGroup) -> Group[object]:
    config = dict(group.config)
    metadata, listed = config.get("metadata"), config.get("aggregate_metric_list")
    entries = listed if isinstance(listed, list | tuple) else [] if listed is None else [listed]
    return cast(
        Group[object],
        group_from_config(
            {
                "group": group.group_name,
                "group_alias": config.get("group_alias"),
                "metadata": {"version": None, **metadata} if isinstance(metadata, Mapping) else None,
                "aggregate_metric_list": [_read_metric(one) if isinstance(one, Mapping) else one for one in entries],
            }
        ),
    )


def _read_metric(entry: Mapping[str, object]) -> Mapping[str, object]:
    """Read an entry: sizes count only if it says so, and a function is told whether they do."""
    read = {"weight_by_size": False, **entry}  # lmms-eval's default, lmms_eval/api/group.py
    function = read.get("aggregation")
    if not callable(function):
        return read
    return {**read, "aggregation": partial(_call_sizes, function, read["weight_by_size"])}


def _call_sizes(function: Callable[..., object], by_size: object, values: object, sizes: object) -> object:
    return function(values, sizes, by_size)
