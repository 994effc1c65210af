"""Configs by name: the three ways to join a group, who names whom, and cycles among groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from msgspec import Struct
from toolz import unique

from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict

Config = Mapping[str, object]
TASK_KEYS = frozenset({"dataset_path", "output_type", "doc_to_text", "doc_to_target", "metric_list"})


class Finding(Struct, frozen=True):
    """A problem in configs: its kind, a message, and where (a file, else a name)."""

    kind: str
    message: str
    where: str


class Index(NamedTuple):
    """Configs by name; ``tags`` are groups that exist only because tasks name them."""

    tasks: FrozenDict[str, Config]
    groups: FrozenDict[str, Config]
    tags: FrozenDict[str, tuple[str, ...]]

    def names(self) -> list[str]:
        return [*self.groups, *self.tags, *self.tasks]

    def finding(self, kind: str, message: str, group: str) -> Finding:
        """Build a finding located in the group's file, if known."""
        return Finding(kind, message, str(self.groups.get(group, {}).get("path", group)))

    def unknown(self, name: str, wanted_by: str, group: str) -> Finding:
        # Only names that begin alike: comparing with all of a library's 14,000 names takes 0.2 s.
        alike = [one for one in self.names() if one[:1] == name[:1] and one != group]
        near = get_close_matches(name, alike, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return self.finding("unknown_child", f"unknown task or group {name!r} in {wanted_by}{hint}", group)

    def cycle(self, chain: Sequence[str]) -> Finding:
        shown = chain if len(chain) < 12 else [*chain[:5], "...", *chain[-5:]]
        return self.finding("cycle", f"groups contain each other: {' -> '.join(shown)}", chain[0])


def index_configs(configs: Sequence[Config]) -> tuple[Index, list[Finding]]:
    """Index configs by name, and report duplicates; the first of a name wins.

    >>> index, problems = index_configs([{"task": "a", "tag": ["t", "u"]}, {"task": "a", "path": "b.yaml"}])
    >>> index.tags, problems[0].message, problems[0].where
    ({'t': ('a',), 'u': ('a',)}, "task 'a' is already defined in config 0", 'b.yaml')
    """
    tasks: dict[str, Config] = {}
    groups: dict[str, Config] = {}
    joined: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    problems: list[Finding] = []
    for at, config in enumerate(configs):
        kind, where = ("task" if _is_task(config) else "group"), str(config.get("path", f"config {at}"))
        name = config.get(kind)
        if not isinstance(name, str):
            problems.append(Finding("bad_config", f"expected {kind}: a name, got {name!r}", where))
        elif name in places:
            message = f"{kind} {name!r} is already defined in {places[name]}"
            problems.append(Finding("duplicate_name", message, where))
        else:
            (tasks if kind == "task" else groups)[name] = freeze_dict(config)
            places[name] = where
            for tag in _list_tags(config) if kind == "task" else ():
                joined.setdefault(tag, []).append(name)
    clashes = [tag for tag in joined if tag in tasks]
    problems += [_report_clash(tag, joined[tag], places[tag]) for tag in clashes]
    groups |= {tag: _add_members(groups[tag], joined[tag]) for tag in joined if tag in groups}
    tags = FrozenDict({tag: tuple(names) for tag, names in joined.items() if tag not in places})
    return Index(FrozenDict(tasks), FrozenDict(groups), tags), problems


def _report_clash(tag: str, members: Sequence[str], where: str) -> Finding:
    return Finding("duplicate_name", f"{tag!r} is a task, and also a tag of {', '.join(members[:5])}", where)


def _add_members(config: Config, names: Sequence[str]) -> Config:
    listed = items(config)
    return FrozenDict({**config, "task": (*listed, *(name for name in names if name not in listed))})


def _is_task(config: Config) -> bool:
    """Whether a config has a ``class`` or a lone task name; beside a legacy ``group:``, keys of tasks decide."""
    legacy = isinstance(config.get("task"), str) and not TASK_KEYS.isdisjoint(config)
    return "group" not in config or "class" in config or legacy


def _list_tags(config: Config) -> list[str]:
    given = [config.get("tag"), config.get("group")]
    several = [one for some in given for one in (some if isinstance(some, list | tuple) else [some])]
    return list(unique(one for one in several if isinstance(one, str)))


def items(config: Config) -> list[object]:
    """List the children of a group; a single name stands for a list of one.

    >>> items({"group": "g", "task": "a"})
    ['a']
    """
    given = config.get("task")
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def reference(item: object) -> tuple[str | None, Config]:
    """Read the name of a listed child, and the settings beside it.

    >>> reference({"task": "a", "num_fewshot": 5})
    ('a', {'num_fewshot': 5})
    """
    if isinstance(item, Mapping):
        key = "group" if "group" in item else "task"
        name = item.get(key)
        return (name if isinstance(name, str) else None), {k: v for k, v in item.items() if k != key}
    return (item if isinstance(item, str) else None), {}


def _list_references(config: Config) -> Iterator[str]:
    """List every name in a group's list, and in the lists of groups defined inside it."""
    todo = items(config)[::-1]
    while todo:
        name, sets = reference(todo.pop())
        todo.extend(items(sets)[::-1])
        if name is not None:
            yield name


def subgroups(index: Index, name: str) -> list[str]:
    """List the declared groups that a group names.

    >>> subgroups(index_configs([{"group": "g", "task": ["h", "a"]}, {"group": "h"}, {"task": "a"}])[0], "g")
    ['h']
    """
    return [child for child in unique(_list_references(index.groups[name])) if child in index.groups]


def tops(index: Index) -> list[str]:
    """List every group that no other contains, then every task in no group.

    >>> tops(index_configs([{"task": "b"}, {"task": "a"}, {"group": "g", "task": ["a"]}])[0])
    ['g', 'b']
    """
    inside = {child for config in index.groups.values() for child in _list_references(config)}
    inside |= {task for tasks in index.tags.values() for task in tasks}
    return [name for name in index.names() if name not in inside]


def find_cycles(edges: Mapping[str, Sequence[str]], starts: Iterable[str]) -> list[tuple[str, ...]]:
    """Find a chain for every edge that closes a cycle; without these edges there is no cycle.

    >>> find_cycles({"a": ["b"], "b": ["a"]}, ["a"])
    [('a', 'b', 'a')]
    """
    # An explicit stack: a hostile tree may be deeper than Python's own.
    chains: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for start in starts:
        path = [] if start in seen else [(start, iter(edges.get(start, ())))]
        above = {start}
        while path:
            name, children = path[-1]
            child = next(children, None)
            if child is None:
                seen.add(name)
                above.discard(name)
                path.pop()
            elif child in above:
                names = [one for one, _ in path]
                chains.append((*names[names.index(child) :], child))
            elif child not in seen:
                above.add(child)
                path.append((child, iter(edges.get(child, ()))))
    return chains
