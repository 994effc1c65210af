"""What is named, as paths: a path, an address, or a glob of either."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from urllib.parse import unquote

from evalcore.core.records.errors import EvalError
from evalcore.shell.files.address import split_address
from evalcore.shell.files.remote_path import RemotePath


def parse_path(given: str | os.PathLike[str]) -> Path:
    """Find the path that is named: a local one or, of an address (``s3://bucket/run``), one of its store.

    >>> parse_path("runs/a").as_posix(), parse_path("file:///runs/a%20b").as_posix()
    ('runs/a', '/runs/a b')
    >>> parse_path("s3://me:pw@bucket/run") / "x"
    RemotePath('s3://bucket/run/x')
    >>> parse_path(Path("s3://bucket/run"))
    RemotePath('s3://bucket/run')
    """
    if isinstance(given, RemotePath):
        return given
    text = str(given)
    if isinstance(given, Path) and given.parts and len(given.parts[0]) > 2 and given.parts[0].endswith(":"):
        text = text.replace(":/", "://", 1)  # which a path makes one slash of
    address = split_address(text)
    if address is None:
        return Path(given)
    return Path(unquote(address.place)) if address.scheme == "file" else RemotePath.at(address)


def parse_output(given: str | os.PathLike[str]) -> Path:
    """Find the folder to write to; an address that can only be read is refused.

    >>> parse_output("https://host/run?sig=1")
    Traceback (most recent call last):
    evalcore.EvalError: https://host/run: such an address can only be read; write to a folder or a store (s3://, gs://)
    """
    path = parse_path(given).expanduser()
    if isinstance(path, RemotePath):
        path.store.refuse_writing(path)
    return path


def expand_glob(path: Path) -> list[Path]:
    """List the files and folders that a glob names, by name; none if it is no glob.

    >>> expand_glob(Path("no/such/*.jsonl")), expand_glob(Path("."))
    ([], [])
    """
    if not has_magic(str(path)):
        return []
    if not isinstance(path, RemotePath):
        return [Path(name) for name in sorted(glob(str(path), recursive=True))]
    if path.store.reads_only:
        raise EvalError(f"{path}: such an address has no folders to list; name each file")
    base = next(one for one in path.parents if not has_magic(str(one)))
    return sorted(base.glob("/".join(path.relative_to(base).parts)))


def find_shared_folder(paths: Sequence[Path]) -> Path:
    """Find the innermost folder that holds all of these paths, which are absolute.

    >>> find_shared_folder([Path("/a/b/x"), Path("/a/b/c/y")]).as_posix()
    '/a/b'
    """
    return next(one for one in paths[0].parents if all(path.is_relative_to(one) for path in paths))


def name_fully(path: Path) -> str:
    """Name a path so that it means the same from anywhere."""
    return str(path) if isinstance(path, RemotePath) else os.path.abspath(path)


def find_cache() -> Path:
    """Find the folder of what can be made or fetched again."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "evalcore"
