"""What the index holds, for people and programs."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase

from evalcore.shell.tasks.library.index import Entry, TaskIndex

__all__ = ["KINDS", "entry_to_dict", "list_entries"]

KINDS = ("task", "py_task", "group", "tag")


def list_entries(
    index: TaskIndex, search: str | None = None, kinds: Collection[str] = KINDS
) -> list[dict[str, object]]:
    """Every name with its kind and file, in order; ``search`` is a part of the name, or a glob.

    >>> list_entries(TaskIndex((), {"arc": Entry("arc", "task", "a.yaml", 1)}, {}, ()), "AR")
    [{'name': 'arc', 'kind': 'task', 'path': 'a.yaml', 'line': 1, 'tags': []}]
    """
    wanted = None if search is None else search.lower()
    found = (index.entries[name] for name in sorted(index.entries))
    return [entry_to_dict(one) for one in found if one.kind in kinds and (wanted is None or _matches(one.name, wanted))]


def _matches(name: str, wanted: str) -> bool:
    return wanted in name.lower() or fnmatchcase(name.lower(), wanted)


def entry_to_dict(entry: Entry) -> dict[str, object]:
    """A name as plain data.

    >>> entry_to_dict(Entry("t", "tag", None, 0, ("a", "b")))["tasks"]
    ['a', 'b']
    """
    known: dict[str, object] = {"name": entry.name, "kind": entry.kind, "path": entry.path, "line": entry.line}
    return known | {"tasks" if entry.kind == "tag" else "tags": list(entry.tags)}
