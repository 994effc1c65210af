"""The files that paths, folders and globs name."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from os.path import commonpath
from pathlib import Path

from msgspec import Struct

from evalcore.core.records.errors import EvalError

__all__ = ["Named", "list_paths", "name_apart"]


class Named(Struct, frozen=True):
    """A file, and whether it was named itself or only caught by a folder or a glob."""

    path: Path
    directly: bool


def list_paths(given: Sequence[str | Path]) -> list[Named]:
    """Every file once, in the order given; those of folders and globs by name, without hidden ones.

    >>> list_paths(["no/such/log"])
    Traceback (most recent call last):
    evalcore.EvalError: no/such/log: no such file or folder
    """
    out: dict[Path, Named] = {}
    for one in given:
        path = Path(one).expanduser()
        if path.is_file():
            found = [Named(path, True)]
        elif path.is_dir():
            found = _below(path)
        elif has_magic(str(path)):
            caught = [Path(name) for name in sorted(glob(str(path), recursive=True))]
            found = [each for name in caught for each in (_below(name) if name.is_dir() else [Named(name, False)])]
        else:
            raise EvalError(f"{one}: no such file or folder")
        if not found:
            raise EvalError(f"{one}: expected recorded answers, found no file there")
        for each in found:
            known = out.setdefault(each.path.resolve(), each)
            if each.directly and not known.directly:
                out[each.path.resolve()] = each
    return list(out.values())


def _below(folder: Path) -> list[Named]:
    return [
        Named(path, False)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def name_apart(name: str, paths: Sequence[Path]) -> list[str]:
    """A name for each of several logs of one task that are not its parts: with where it is, as far as they differ.

    >>> name_apart("gsm8k", [Path("a/x/s.jsonl"), Path("a/y/s.jsonl")])
    ['gsm8k (x/s.jsonl)', 'gsm8k (y/s.jsonl)']
    """
    if len(paths) < 2:
        return [name] * len(paths)
    shared = Path(commonpath([path.resolve().parent for path in paths]))
    return [f"{name} ({path.resolve().relative_to(shared).as_posix()})" for path in paths]
