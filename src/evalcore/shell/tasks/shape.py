"""Configs in the form in which core builds trees: only those that a selection leads to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from evalcore.core.groups.build import STRUCTURE
from evalcore.core.groups.index import items, reference
from evalcore.core.records.errors import EvalError
from evalcore.shell.config.yaml_file import FunctionTag, keep_value
from evalcore.shell.tasks.code import GroupFunction, find_function
from evalcore.shell.tasks.library.includes import is_shipped, read_includes
from evalcore.shell.tasks.library.index import Entry
from evalcore.shell.tasks.selection import Selection

Config = dict[str, object]
NOT_OF_A_TASK = ("tag", "group", "task_list", "path", "include")  # as lm_eval/tasks/_factory.py


Convert = Callable[[object], object]


class Place(NamedTuple):
    """Where a group's config is written, and how the values that it passes down are converted."""

    selection: Selection
    entry: Entry
    convert: Convert


def list_configs(selection: Selection, convert: Convert = keep_value) -> Iterator[Config]:
    """List every config that the selection leads to, tasks sorted by name (so are those of a tag); no other is read."""
    groups: dict[str, Config] = {}
    tasks: dict[str, Config] = {}
    joined: dict[str, list[str]] = {}
    todo = dict.fromkeys(selection.names)
    seen = set(todo)
    while todo:
        name = next(iter(todo))
        del todo[name]
        entry = selection.entry(name)
        below: tuple[str, ...] = ()
        if entry is not None and entry.kind == "tag":
            below = entry.tags
            for task in below:
                joined.setdefault(task, []).append(name)
        elif entry is not None and entry.kind == "group":
            config = selection.config(name)
            below = tuple(_list_references(config))
            _refuse_changed(selection, name, below)
            groups[name] = _convert_group(Place(selection, entry, convert), config) | {
                "group": name,
                "tag": None,
                "path": entry.where,
            }
        elif entry is not None:
            tasks[name] = selection.config(name)
        todo |= dict.fromkeys(one for one in below if one not in seen)
        seen.update(below)
    yield from groups.values()
    for name in sorted(tasks):
        kept = {key: convert(value) for key, value in tasks[name].items() if key not in NOT_OF_A_TASK}
        yield kept | {"task": name, "tag": joined.get(name)}


def _refuse_changed(selection: Selection, group: str, below: Iterable[str]) -> None:
    """Refuse to give a group of the index another task of the same name without a word."""
    for name in below if group not in selection.own else ():
        if name in selection.own:
            raise EvalError(
                f"{name!r} is asked for with changes, and group {group!r} lists it as it is; give the changed one "
                f"a name of its own, or a group: {{group: other, task: [{{task: {name}, ...}}]}}"
            )


def _list_references(config: Mapping[str, object]) -> Iterator[str]:
    """List every name that a group lists, also in groups defined inside it."""
    for item in items(config):
        name, sets = reference(item)
        if name is not None:
            yield name
        if isinstance(item, Mapping) and "group" in item:
            yield from _list_references(sets)


def _convert_group(place: Place, config: Mapping[str, object]) -> Config:
    """Convert what a group passes down, also in the groups and tasks that it lists."""
    made: Config = {key: value if key in STRUCTURE else place.convert(value) for key, value in config.items()}
    if "task" in config:
        made["task"] = [_convert_item(place, one) if isinstance(one, Mapping) else one for one in items(config)]
    if "metadata" in config:
        metadata = config["metadata"]
        made["metadata"] = metadata if isinstance(metadata, dict) else {"_metadata": metadata}
    if "aggregate_metric_list" in config:
        given = config["aggregate_metric_list"]
        several = given if isinstance(given, list) else [given] if given is not None else []
        shipped = place.entry.path is not None and is_shipped(place.entry.path)
        made["aggregate_metric_list"] = [
            _convert_metric(one, shipped) if isinstance(one, dict) else one for one in several
        ]
    return made


def _convert_item(place: Place, item: Mapping[str, object]) -> Config:
    if "group" in item:
        return _convert_group(place, item)
    name, _ = reference(item)
    entry = place.selection.entry(name) if name is not None else None
    if "include" in item and entry is None and place.entry.path is not None:
        folder = os.path.dirname(place.entry.path)
        item = {**read_includes(place.selection.index.roots, folder, item["include"], place.entry.where), **item}
    kept = STRUCTURE if entry is not None and entry.kind == "group" else STRUCTURE - {"metadata"}
    passed = {key: value for key, value in item.items() if key not in NOT_OF_A_TASK}
    return {key: value if key in kept else place.convert(value) for key, value in passed.items()}


def _convert_metric(given: Mapping[str, object], shipped: bool) -> Config:
    """Convert an entry of an aggregate_metric_list: a function as metric becomes its name, as aggregation itself."""
    metric, aggregation, by_size = given.get("metric"), given.get("aggregation"), given.get("weight_by_size")
    made = dict(given)
    if isinstance(metric, FunctionTag):
        made["metric"] = metric.name.rpartition(".")[2]
    if isinstance(aggregation, FunctionTag):
        made["aggregation"] = GroupFunction(find_function(aggregation))
    if shipped and by_size is not None:
        made["weight_by_size"] = bool(by_size)  # lm-eval's library has a "truez"
    return made
