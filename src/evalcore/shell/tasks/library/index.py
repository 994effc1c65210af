"""The index of task folders: every task, group and tag by name, as lm-eval's TaskManager names them."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.tasks.library.files import Document, Head, Stamp, TaskProblem, scan_folder
from evalcore.shell.tasks.library.includes import FolderReading, merge_config, read_config, read_head, start_reading

Kind = Literal["task", "py_task", "group", "tag"]
NO_NAME = "expected task: or group: with a name"


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """A name, what it stands for, and the file and line of its definition; of a tag its tasks, of others their tags."""

    name: str
    kind: Kind
    path: str | None
    line: int
    tags: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return (
            f"{self.path}:{self.line}" if self.path else "inline" if self.kind != "tag" else "tasks that name the tag"
        )


class TaskIndex(Struct, frozen=True):
    """Every name of some task folders, every file behind them (packed), and every problem met on the way."""

    roots: tuple[str, ...]
    entries: FrozenDict[str, Entry]
    documents: Mapping[str, Document]
    problems: tuple[TaskProblem, ...]

    def __repr__(self) -> str:
        return f"TaskIndex({', '.join(self.roots)}: {len(self.entries)} names, {len(self.problems)} problems)"


def read_entry(index: TaskIndex, name: str) -> dict[str, object]:
    """Read the config of a task or group, with what its file includes; a tag has none."""
    path = index.entries[name].path
    return {} if path is None else merge_config(index.documents, path)


def read_file(index: TaskIndex, path: str) -> tuple[Entry, dict[str, object]]:
    """Read the task or group of one file, which need not be in the index."""
    real = os.path.realpath(os.path.expanduser(path))
    head, config, document = read_config(index.roots, real)
    made = _make_entry(head, real, document.line) or TaskProblem("bad_config", NO_NAME, f"{real}:1")
    if isinstance(made, TaskProblem):
        raise EvalError(str(made))
    return made, config


def find_library() -> Path | None:
    """Find the task folder of an installed lm-eval; the package is not imported."""
    spec = PathFinder.find_spec("lm_eval")
    folders = [Path(one) / "tasks" for one in (spec.submodule_search_locations or ())] if spec is not None else []
    return next((folder for folder in folders if folder.is_dir()), None)


def find_root(path: str | Path) -> str:
    """Find a task folder's own path, whatever links lead to it."""
    root = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(root):
        kind = "a file" if os.path.exists(root) else "nothing"
        raise EvalError(f"expected a folder of task files, found {kind}: {path}")
    return root


# --- one folder --------------------------------------------------------------------------------------------


def index_folder(root: str, beside: Iterable[str] = ()) -> tuple[TaskIndex, Mapping[str, Stamp], Mapping[str, Stamp]]:
    """Index one folder, with the stamps of its files before they were read: of a scan, and of further includes.

    Its files may include those of the folders ``beside`` it. Of two files with one name the first counts, in the order
    of their paths.
    """
    stamps = scan_folder(root)
    reading = start_reading(root, stamps, beside)
    entries: dict[str, Entry] = {}
    members: dict[str, list[str]] = {}
    for path in stamps:
        made = _define_name(path, reading, entries)
        if isinstance(made, TaskProblem):
            reading.odd.append(made)
        elif made is not None:
            entries[made.name] = made
            for tag in made.tags if made.kind != "group" else ():
                entries.setdefault(tag, Entry(tag, "tag", None, 0))
                members.setdefault(tag, []).append(made.name)
    for tag, names in members.items():
        if entries[tag].kind == "tag":
            entries[tag] = Entry(tag, "tag", None, 0, tuple(sorted(names)))
    documents = FrozenDict({path: one for path, one in reading.loaded.items() if isinstance(one, Document)})
    return TaskIndex((root,), FrozenDict(entries), documents, tuple(dict.fromkeys(reading.odd))), stamps, reading.others


def _define_name(path: str, reading: FolderReading, entries: Mapping[str, Entry]) -> Entry | TaskProblem | None:
    """Define the name that a file adds to those so far."""
    head, document = read_head(path, reading), reading.loaded[path]
    if isinstance(head, TaskProblem) or isinstance(document, TaskProblem):
        return head if isinstance(head, TaskProblem) else None
    made = _make_entry(head, path, document.line)
    if not isinstance(made, Entry) or made.name not in entries:
        return made
    message = f"{made.kind} {made.name!r} is already defined in {entries[made.name].where}, which counts"
    return TaskProblem("duplicate_name", message, made.where, "warning" if reading.shipped else "error")


def _make_entry(head: Head, path: str, line: int) -> Entry | TaskProblem | None:
    """Make the entry that a file defines; None for a template. ``class`` comes first, then ``group``, then ``task``."""
    kind: Kind = "py_task" if "class" in head else "group" if "group" in head else "task"
    key = "group" if kind == "group" else "task"
    if key not in head:
        return None if kind == "task" else TaskProblem("bad_config", "a class without task: its name", f"{path}:{line}")
    name = head[key]
    if not isinstance(name, str) or not name:
        return TaskProblem("bad_config", f"expected {key}: a name, got {name!r}", f"{path}:{line}")
    return Entry(name, kind, path, line, tuple(dict.fromkeys(_list_texts(head["tag"]))) if "tag" in head else ())


def _list_texts(given: object) -> Iterator[str]:
    several = given if isinstance(given, list) else [given]
    yield from (one for one in several if isinstance(one, str) and one)


# --- several folders ---------------------------------------------------------------------------------------


def join_indexes(parts: Sequence[TaskIndex]) -> TaskIndex:
    """Join several indexes, the later over the earlier; every overridden name is reported with both places."""
    if len(parts) == 1:
        return parts[0]
    entries: dict[str, Entry] = {}
    overridden: list[TaskProblem] = []
    for part in parts:
        for name, entry in part.entries.items():
            if name in entries:
                text = f"{entry.kind} {name!r} overrides the {entries[name].kind} in {entries[name].where}"
                overridden.append(TaskProblem("overridden", text, entry.where, "warning"))
            entries[name] = entry
    return TaskIndex(
        tuple(root for part in parts for root in part.roots),
        FrozenDict(entries),
        MappingProxyType(ChainMap(*(part.documents for part in reversed(parts)))),  # type: ignore[arg-type]  # only read
        (*(one for part in parts for one in part.problems), *overridden),
    )
