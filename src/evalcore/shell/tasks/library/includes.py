"""Files merged with what they include: each is read once, cycles are reported with their chain, diamonds are fine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.yaml_file import read_yaml
from evalcore.shell.tasks.library.files import (
    Document,
    Head,
    Stamp,
    TaskProblem,
    merge_document,
    read_document,
    take_stamp,
)
from evalcore.shell.tasks.library.workers import Ready, read_many

MOST_INCLUDES = 50


class FolderReading(Struct):
    """A folder while it is read: its scanned files, ``others`` found by includes, and what was read so far.

    ``roots`` are the folders that includes may lead to, its own first.
    """

    root: str
    roots: tuple[str, ...]
    shipped: bool
    stamps: Mapping[str, Stamp]
    others: dict[str, Stamp]
    loaded: dict[str, Document | TaskProblem]
    heads: dict[str, Head | TaskProblem]
    odd: list[TaskProblem]
    ready: Mapping[str, Ready]


def start_reading(root: str, stamps: Mapping[str, Stamp], beside: Iterable[str] = ()) -> FolderReading:
    """Start reading a folder, with nothing merged; the files of a large folder are read ahead.

    ``beside`` are the other indexed folders, into which its files may include; a shipped library's include its own.
    """
    shipped = is_shipped(root)
    roots = tuple(dict.fromkeys((root, *(() if shipped else beside))))
    ahead = read_many(list(stamps), roots, shipped=shipped)
    return FolderReading(root, roots, shipped, stamps, {}, {}, {}, [], ahead)


def is_shipped(root: str) -> bool:
    """Whether a folder belongs to an installed library (or a checkout of lm-eval) rather than to the user.

    >>> is_shipped("/env/site-packages/lm_eval/tasks"), is_shipped("/home/me/tasks")
    (True, False)
    """
    parts = Path(root).parts
    return "site-packages" in parts or "dist-packages" in parts or ("lm_eval", "tasks") in pairwise(parts)


def read_head(path: str, reading: FolderReading, above: tuple[str, ...] = ()) -> Head | TaskProblem:
    """Read the keys that name a file, with what it includes; or say why it cannot be used."""
    if path not in reading.heads:
        reading.heads[path] = _read_merged(path, reading, above)
    return reading.heads[path]


def _read_merged(path: str, reading: FolderReading, above: tuple[str, ...]) -> Head | TaskProblem:
    scanned = path in reading.stamps
    if not scanned:
        reading.others[path] = take_stamp(path)
    ahead = reading.ready.get(path)
    shipped = reading.shipped if scanned else is_shipped(os.path.realpath(path))
    document, own, problems = ahead or read_document(path, reading.roots, scanned=scanned, shipped=shipped)
    reading.loaded[path] = document
    reading.odd.extend(problems)
    if isinstance(document, TaskProblem):
        return document
    made: Head = {}
    chain = (*above, path)
    for included in document.includes:
        ends = included in chain or len(chain) > MOST_INCLUDES
        inner = _describe_cycle(chain, included, reading) if ends else read_head(included, reading, chain)
        if isinstance(inner, TaskProblem):
            return _describe_include(inner, path)
        made |= inner
    return made | own


def _describe_cycle(chain: Sequence[str], included: str, reading: FolderReading) -> TaskProblem:
    shown = " -> ".join(os.path.relpath(one, reading.root) for one in (*chain, included)[-12:])
    return TaskProblem("cycle", f"files include each other: {shown}", chain[-1])


def _describe_include(inner: TaskProblem, path: str) -> TaskProblem:
    if inner.kind == "include":
        return inner
    line = read_yaml(Path(path).read_bytes(), path, duplicates="warn").line_of("include")
    message = inner.message if inner.kind == "cycle" else f"cannot include {inner.where}: {inner.message}"
    return TaskProblem("include", message, f"{path}:{line}")


def read_config(roots: Sequence[str], path: str) -> tuple[Head, dict[str, object], Document]:
    """Read one file with what it includes; a file outside all roots may include files of its own folder and theirs."""
    root = next((one for one in roots if path.startswith(one.rstrip("/") + "/")), os.path.dirname(path))
    reading = start_reading(root, {}, roots)
    head = read_head(path, reading)
    if isinstance(head, TaskProblem):
        raise EvalError(str(head))
    documents = {key: one for key, one in reading.loaded.items() if isinstance(one, Document)}
    return head, merge_config(documents, path), documents[path]


def read_includes(roots: Sequence[str], folder: str, given: object, where: str) -> dict[str, object]:
    """Read what a listed task gets from the files that it includes itself."""
    merged: dict[str, object] = {}
    for name in given if isinstance(given, list) else [given]:
        if not isinstance(name, str) or not name:
            raise EvalError(f"expected include: a file or a list of files, got {given!r} - at {where}")
        merged |= read_config(roots, os.path.normpath(os.path.join(folder, name)))[1]
    return merged


def merge_config(documents: Mapping[str, Document], path: str) -> dict[str, object]:
    """Merge a file with what it includes, its keys as text."""
    return {str(key): value for key, value in merge_document(documents, path).items()}


def list_files_behind(documents: Mapping[str, Document], paths: Iterable[str]) -> dict[str, None]:
    """List these files and all that they include."""
    todo = list(paths)[::-1]
    seen: dict[str, None] = {}
    while todo:
        path = todo.pop()
        if path not in seen and path in documents:
            seen[path] = None
            todo += documents[path].includes
    return seen
