"""What a plan says of its tasks, task by task: by their names, by globs, or by the groups that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Tree, leaves
from evalcore.core.records.errors import unknown
from evalcore.core.records.request import Options

T = TypeVar("T")


def spread_data(
    data: Mapping[str, T], trees: Iterable[Tree[Options]], tasks: Iterable[str], key: str = "data"
) -> Mapping[str, T]:
    """``data:`` by task: the name of a group stands for its tasks, and a name or glob that fits none is a mistake.

    >>> from evalcore.core.groups.tree import Group, Leaf
    >>> spread_data({"g": "x.jsonl"}, [Group("g", (Leaf("a", None), Leaf("b", None)))], ["a", "b"])
    {'a': 'x.jsonl', 'b': 'x.jsonl'}
    """
    groups = {one.name: one for one in list_groups(trees)}
    names, out = list(tasks), dict[str, T]()
    for name, value in data.items():
        if name in groups and name not in names:
            out |= {leaf.name: value for leaf in leaves(groups[name]) if leaf.name not in data}
        elif any(task == name or fnmatchcase(task, name) for task in names):
            out[name] = value
        else:
            raise unknown(f"task in {key}", name, [*names, *groups])
    return out


def list_paths(data: object) -> Iterator[str]:
    """List the paths that ``data:`` names, in any of its forms; documents in place are none.

    >>> list(list_paths({"a": "x.jsonl", "b": {"test": ("y.csv",)}, "c": [{"q": "a/b"}]}))
    ['x.jsonl', 'y.csv']
    """
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for one in data.values():
            yield from list_paths(one)
    elif isinstance(data, list | tuple):
        yield from (one for one in data if isinstance(one, str))


def has_include(spec: object) -> bool:
    """Whether a task that is written in place includes a file, at any depth.

    >>> has_include({"group": "g", "task": [{"task": "a", "include": "b.yaml"}]}), has_include({"task": "a"})
    (True, False)
    """
    if isinstance(spec, Mapping):
        return "include" in spec or any(map(has_include, spec.values()))
    return isinstance(spec, list | tuple) and any(map(has_include, spec))


def clusters_by_task(
    given: str | Mapping[str, str] | None, trees: Iterable[Tree[Options]], tasks: Iterable[str]
) -> Mapping[str, str]:
    """What a run's ``cluster`` says of each task: one field for all, or by the names or globs of tasks and groups.

    >>> clusters_by_task("passage", [], ["a"]), clusters_by_task({"*_en": "id", "a": "key"}, [], ["a", "b_en", "c"])
    ({'a': 'passage'}, {'a': 'key', 'b_en': 'id'})
    """
    names = list(tasks)
    if given is None or isinstance(given, str):
        return dict.fromkeys(names, given) if given else {}
    known = spread_data(given, trees, names, "cluster")
    found = {name: known.get(name) or _fitting(known, name) for name in names}
    return {name: field for name, field in found.items() if field}


def _fitting(known: Mapping[str, str], task: str) -> str | None:
    return next((field for glob, field in known.items() if fnmatchcase(task, glob)), None)
