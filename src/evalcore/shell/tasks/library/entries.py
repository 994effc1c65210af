"""The names of the index as plain data."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from evalcore.shell.config.values import Names, list_names
from evalcore.shell.tasks.library.index import Entry, TaskIndex

KINDS = ("task", "py_task", "group", "tag")


def list_entries(index: TaskIndex, search: Names = (), kinds: Collection[str] = KINDS) -> list[dict[str, object]]:
    """List every name with its kind and file, sorted; each text of ``search`` is a part of the name or a glob.

    >>> from evalcore.core.records.frozen_dict import FrozenDict
    >>> entries = FrozenDict({"arc": Entry("arc", "task", "a.yaml", 1)})
    >>> list_entries(TaskIndex((), entries, FrozenDict(), ()), "AR")
    [{'name': 'arc', 'kind': 'task', 'path': 'a.yaml', 'line': 1, 'tags': []}]
    """
    wanted = [text.lower() for text in list_names(search)]
    entries = (index.entries[name] for name in sorted(index.entries) if all(_is_match(name, text) for text in wanted))
    return [entry_to_dict(entry) for entry in entries if entry.kind in kinds]


def _is_match(name: str, wanted: str) -> bool:
    return wanted in name.lower() or fnmatchcase(name.lower(), wanted)


def entry_to_dict(entry: Entry) -> dict[str, object]:
    """Convert an entry to plain data.

    >>> entry_to_dict(Entry("t", "tag", None, 0, ("a", "b")))["tasks"]
    ['a', 'b']
    """
    known: dict[str, object] = {"name": entry.name, "kind": entry.kind, "path": entry.path, "line": entry.line}
    return known | {"tasks" if entry.kind == "tag" else "tags": list(entry.tags)}
