"""Task files of a folder: found, read once, their includes followed but never out of the indexed folders."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.yaml_file import MOST_BYTES, Loaded, read_yaml
from evalcore.shell.files.confinement import find_inside
from evalcore.shell.tasks.library.pack import hold_value, pack, unpack

IGNORED = frozenset({"__pycache__", ".ipynb_checkpoints"})  # as lm_eval/tasks/_index.py
HEAD = ("class", "group", "task", "tag")

Head = dict[str, object]
"""The keys of a file that name it: those of ``HEAD``."""

Stamp = tuple[int, int, int, int]
"""Size, times of change (of the content, of the inode) and inode: with the same stamp, a file is unchanged."""
ABSENT: Stamp = (-1, -1, -1, -1)


class TaskProblem(Struct, frozen=True):
    """Something wrong with task files: its kind, a message, ``file:line``, and whether the file can be used."""

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
    """One file: its own content (packed, without ``include``), the files that it includes, the line of its name."""

    body: Raw
    includes: tuple[str, ...]
    line: int


def scan_folder(root: str) -> dict[str, Stamp]:
    """Find every ``*.yaml`` below a folder with its stamp, in the order in which lm-eval reads them.

    Folders that are symbolic links are not entered.
    """
    stamps: dict[str, Stamp] = {}
    todo = [root]
    while todo:
        folder = todo.pop()
        try:
            for entry in os.scandir(folder):
                if entry.name.endswith(".yaml"):
                    stamps[entry.path] = take_stamp(entry)
                elif entry.name not in IGNORED and entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
        except OSError:
            stamps[folder] = ABSENT  # reading it will say why
    return dict(sorted(stamps.items()))


def take_stamp(file: os.DirEntry[str] | str) -> Stamp:
    """Take the stamp of a file; ``ABSENT`` if it does not exist."""
    try:
        seen = os.stat(file) if isinstance(file, str) else file.stat()
    except (OSError, ValueError):  # a NUL in the name
        return ABSENT
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino


def read_document(
    path: str, roots: Sequence[str], *, scanned: bool = False, shipped: bool = False
) -> tuple[Document | TaskProblem, Head, tuple[TaskProblem, ...]]:
    """Read a file (or say why it cannot be used), the keys that name it, and warnings.

    A duplicate key makes a user's own file unusable; in a shipped library it is a warning.
    """
    try:
        loaded = read_yaml(_read_scanned(path, roots, scanned), path, duplicates="warn", hold=hold_value)
        value = loaded.value
        if not isinstance(value, dict):
            raise EvalError(f"{path}:1: expected a mapping (task: ..., or group: ...), got {type(value).__name__}")
        twice = tuple(
            _make_problem("duplicate_key", one, path, "warning" if shipped else "error") for one in loaded.warnings
        )
        if twice and not shipped:
            return twice[0], {}, twice
        includes = _list_includes(value.pop("include"), loaded, path) if "include" in value else ()
        head = {key: value[key] for key in HEAD if key in value}
        line = loaded.line_of("group" if "group" in head else "task") if head else 1
        return Document(Raw(pack(value)), includes, line), head, twice
    except (OSError, OverflowError, TypeError, ValueError) as wrong:
        return _make_problem("unreadable", wrong, path), {}, ()


def _list_includes(given: object, loaded: Loaded, path: str) -> tuple[str, ...]:
    folder = path.rpartition("/")[0]
    made: list[str] = []
    for name in given if isinstance(given, list) else [given]:
        if not isinstance(name, str) or not name or "\0" in name:
            place = f"{path}:{loaded.line_of('include')}"
            raise EvalError(f"{place}: expected include: a file or a list of files, got {given!r}")
        made.append(f"{folder}/{name}" if "/" not in name else os.path.normpath(os.path.join(folder, name)))
    return tuple(made)


def _make_problem(kind: str, wrong: object, path: str, level: Literal["error", "warning"] = "error") -> TaskProblem:
    """Make a problem of this file; its message may begin with the file and the line."""
    text = str(wrong.strerror) if isinstance(wrong, OSError) else str(wrong)
    line, _, rest = text[len(path) :].partition(": ") if text.startswith(path) else ("", "", text)
    return TaskProblem(kind, rest, path + line, level)


def _read_scanned(path: str, roots: Sequence[str], scanned: bool) -> bytes:
    """Read a file of these folders. Scanning enters no links, so only the file itself can be one."""
    try:
        return _read_bytes(path if scanned else _resolve_inside(path, roots))
    except OSError as wrong:
        if wrong.errno != errno.ELOOP:
            raise
        return _read_bytes(_resolve_inside(path, roots))


def _read_bytes(path: str) -> bytes:
    # Not blocking, or opening a pipe would wait forever. Checked once open: nobody can exchange it in between.
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


def _resolve_inside(path: str, roots: Sequence[str]) -> str:
    """Resolve a path; nothing outside these folders is read, whatever a ``..`` or a link says."""
    real = find_inside(path, roots)
    if real is None:
        inside = "inside it" if len(roots) == 1 else "inside these"
        raise EvalError(
            f"lies outside {', '.join(roots)}, and files are only read {inside}; index a folder that holds both"
        )
    return real


def merge_document(documents: Mapping[str, Document], path: str) -> dict[object, object]:
    """Merge a file with what it includes: includes in order, its own keys last; ``task_list`` is not inherited."""
    document = documents[path]
    merged: dict[object, object] = {}
    for included in document.includes:
        merged.update(merge_document(documents, included))
        merged.pop("task_list", None)
    own = unpack(document.body)
    return {**merged, **own} if isinstance(own, dict) else merged
