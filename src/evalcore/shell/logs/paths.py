"""The files that paths, folders and globs name."""

from __future__ import annotations

from collections.abc import Sequence
from glob import has_magic
from pathlib import Path

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.files.given import expand_glob, find_shared_folder, parse_path


class Named(Struct, frozen=True):
    """A file, and whether it was named directly or found through a folder or a glob."""

    path: Path
    directly: bool


def expand_path(given: str | Path) -> tuple[list[Path], bool]:
    """List the files and folders that a path or glob names, and whether it is a path; none if nothing is there.

    >>> expand_path("no/such/log")
    ([], True)
    """
    path = parse_path(given).expanduser()
    there = path.is_file() or path.is_dir()
    if there or not has_magic(str(path)):
        return ([path] if there else []), True
    return expand_glob(path), False


def list_paths(given: Sequence[str | Path], what: str = "recorded answers") -> list[Named]:
    """List every file once, in the order given; files of folders and globs by name, without hidden ones.

    >>> list_paths(["no/such/log"])
    Traceback (most recent call last):
    evalcore.EvalError: no/such/log: no such file or folder
    """
    out: dict[Path, Named] = {}
    for one in map(parse_path, given):
        paths, directly = expand_path(one)
        if directly and not paths:
            raise EvalError(f"{one}: no such file or folder")
        found = [each for path in paths for each in (_below(path) if path.is_dir() else [Named(path, directly)])]
        if not found:
            where = "there" if paths else "of such a name"
            raise EvalError(f"{one}: expected {what}, found no file {where}")
        for each in found:
            known = out.setdefault(each.path.resolve(), each)
            if each.directly and not known.directly:
                out[each.path.resolve()] = each
    return list(out.values())


def _below(folder: Path) -> list[Named]:
    """List the files of a folder, without hidden ones and what later results replaced."""
    return [Named(path, False) for path in sorted(folder.rglob("*")) if path.is_file() and not is_aside(path, folder)]


EARLIER = "earlier_"
"""The beginning of the names of folders in which a run folder keeps the results it held before."""


def is_aside(path: Path, folder: Path) -> bool:
    """Whether a file of a folder is hidden, or of results that later ones in the folder replaced."""
    below = (folder / part for part in reversed(path.relative_to(folder).parents[:-1]))
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return hidden or any(one.name.startswith(EARLIER) and (one.parent / "results.json").is_file() for one in below)


def show_names(names: Sequence[object], most: int = 5) -> str:
    """The first of some names, for a message.

    >>> show_names("abc"), show_names("abc", 2)
    ('a, b, c', 'a, b, ...')
    """
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def name_apart(name: str, paths: Sequence[Path]) -> list[str]:
    """Name each of several logs of one task that are not its shards, by the part of the path in which they differ.

    >>> name_apart("gsm8k", [Path("a/x/s.jsonl"), Path("a/y/s.jsonl")])
    ['gsm8k (x/s.jsonl)', 'gsm8k (y/s.jsonl)']
    """
    if len(paths) < 2:
        return [name] * len(paths)
    whole = [path.resolve() for path in paths]
    shared = find_shared_folder(whole)
    return [f"{name} ({'/'.join(path.relative_to(shared).parts)})" for path in whole]
