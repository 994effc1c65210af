"""Task files as they lie in a folder: found, read once, their includes followed and kept inside the folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from typing import Literal

from msgspec import Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.yaml_file import MOST_BYTES, Loaded, read_yaml
from evalcore.shell.tasks.library.pack import hold, pack, unpack

__all__ = [
    "ABSENT",
    "Document",
    "Head",
    "Stamp",
    "TaskProblem",
    "merge_document",
    "read_document",
    "scan_folder",
    "stamp_of",
]

IGNORED = frozenset({"__pycache__", ".ipynb_checkpoints"})  # as lm_eval/tasks/_index.py
HEAD = ("class", "group", "task", "tag")

Head = dict[str, object]
"""What a file says of its name: the keys ``HEAD``."""

Stamp = tuple[int, int, int, int]
"""Size, times of change (of the content, of the inode) and inode: a file with the same stamp was not edited."""
ABSENT: Stamp = (-1, -1, -1, -1)


class TaskProblem(Struct, frozen=True):
    """Something wrong with task files: its kind, what to read, ``file:line``, and whether the file can be used."""

    kind: str
    message: str
    where: str
    level: Literal["error", "warning"] = "error"

    @property
    def file(self) -> str:
        path, _, line = self.where.rpartition(":")
        return path if line.isdigit() else self.where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class Document(Struct, frozen=True, array_like=True, gc=False):
    """One file: what it says itself (packed, without ``include``), which files it includes, where its name stands."""

    body: Raw
    includes: tuple[str, ...]
    line: int


def scan_folder(root: str) -> dict[str, Stamp]:
    """Every ``*.yaml`` below a folder with its stamp, in the order in which lm-eval reads them.

    Folders that are symbolic links are not entered.
    """
    found: dict[str, Stamp] = {}
    todo = [root]
    while todo:
        folder = todo.pop()
        try:
            for entry in os.scandir(folder):
                if entry.name.endswith(".yaml"):
                    found[entry.path] = stamp_of(entry)
                elif entry.name not in IGNORED and entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
        except OSError:
            found[folder] = ABSENT  # reading it will tell why
    return dict(sorted(found.items()))


def stamp_of(file: os.DirEntry[str] | str) -> Stamp:
    """The stamp of a file, ``ABSENT`` if it is not there."""
    try:
        seen = os.stat(file) if isinstance(file, str) else file.stat()
    except (OSError, ValueError):  # a NUL in a name
        return ABSENT
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino


def read_document(
    path: str, root: str, *, scanned: bool = False, shipped: bool = False
) -> tuple[Document | TaskProblem, Head, tuple[TaskProblem, ...]]:
    """One file (or why it cannot be used), what it says of its name, and what is odd about it.

    A key given twice makes a user's own file unusable; in a shipped library it is a warning.
    """
    try:
        loaded = read_yaml(_read(path, root, scanned), path, duplicates="warn", hold=hold)
        value = loaded.value
        if not isinstance(value, dict):
            raise EvalError(f"{path}:1: expected a mapping (task: ..., or group: ...), got {type(value).__name__}")
        twice = tuple(
            _problem("duplicate_key", one, path, "warning" if shipped else "error") for one in loaded.warnings
        )
        if twice and not shipped:
            return twice[0], {}, twice
        includes = _includes(value.pop("include"), loaded, path) if "include" in value else ()
        head = {key: value[key] for key in HEAD if key in value}
        line = loaded.line_of("group" if "group" in head else "task") if head else 1
        return Document(Raw(pack(value)), includes, line), head, twice
    except (OSError, OverflowError, TypeError, ValueError) as wrong:
        return _problem("unreadable", wrong, path), {}, ()


def _includes(given: object, loaded: Loaded, path: str) -> tuple[str, ...]:
    folder = path.rpartition("/")[0]
    made: list[str] = []
    for one in given if isinstance(given, list) else [given]:
        if not isinstance(one, str) or not one or "\0" in one:
            place = f"{path}:{loaded.line_of('include')}"
            raise EvalError(f"{place}: expected include: a file or a list of files, got {given!r}")
        made.append(f"{folder}/{one}" if "/" not in one else os.path.normpath(os.path.join(folder, one)))
    return tuple(made)


def _problem(kind: str, wrong: object, path: str, level: Literal["error", "warning"] = "error") -> TaskProblem:
    """A problem of this file; its message may begin with the file and the line."""
    text = str(wrong.strerror) if isinstance(wrong, OSError) else str(wrong)
    line, _, rest = text[len(path) :].partition(": ") if text.startswith(path) else ("", "", text)
    return TaskProblem(kind, rest, path + line, level)


def _read(path: str, root: str, scanned: bool) -> bytes:
    """A file of the folder. Scanning enters no links, so of a path found that way only the file itself can be one."""
    try:
        return _bytes(path if scanned else _inside(path, root))
    except OSError as wrong:
        if wrong.errno != errno.ELOOP:
            raise
        return _bytes(_inside(path, root))


def _bytes(path: str) -> bytes:
    # Not blocking: opening a pipe would else wait for ever. Looked at once open: nobody can change it in between.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode):
            raise EvalError("expected a file, found a folder, pipe or device")
        if seen.st_size > MOST_BYTES:
            raise EvalError(f"expected at most {MOST_BYTES // 1_000_000} MB, got {seen.st_size:,} bytes")
        data = os.read(handle, seen.st_size)
        while len(data) < seen.st_size and (more := os.read(handle, seen.st_size - len(data))):
            data += more
        return data
    finally:
        os.close(handle)


def _inside(path: str, root: str) -> str:
    """The file that a path leads to; nothing outside the task folder is read, whatever a ``..`` or a link says."""
    real = os.path.realpath(path)
    if not real.startswith(root.rstrip("/") + "/"):
        raise EvalError(f"lies outside {root}, and files are only read inside it; index a folder that holds both")
    return real


def merge_document(documents: Mapping[str, Document], path: str) -> dict[object, object]:
    """A file with what it includes: includes in order, its own keys last; ``task_list`` is not handed on."""
    document = documents[path]
    merged: dict[object, object] = {}
    for included in document.includes:
        merged.update(merge_document(documents, included))
        merged.pop("task_list", None)
    own = unpack(document.body)
    return {**merged, **own} if isinstance(own, dict) else merged
