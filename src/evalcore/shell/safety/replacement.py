"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from evalcore.core.records.errors import CannotWrite, EvalError
from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.safety.credentials import hide_credentials


def replace_file(path: Path, parts: Iterable[str]) -> Path:
    """Put a text in place at once, without the credentials in use."""

    def write(part: Path) -> None:
        with open(part, "x", encoding="ascii", newline="\n") as file:
            for text in parts:
                file.write(hide_credentials(text))

    return replace_with(path, write)


def replace_with(path: Path, write: Callable[[Path], object], *, shared: bool = False) -> Path:
    """Put a file in place at once: written beside it, made durable, renamed. A crash leaves the old one or the new.

    ``shared``: several processes may write it at the same time; the last one wins, and a crash may lose it.
    """
    if isinstance(path, RemotePath):
        return _put_in_store(path, write)
    refuse_folder(path)
    part = path.with_name(f".{path.name}.{os.getpid() if shared else 'part'}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        try:
            write(part)
            if not shared:
                _sync(part)
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        if not shared and os.name == "posix":  # Windows cannot sync a folder
            _sync(path.parent)
    except OSError as wrong:
        why = wrong.strerror or str(wrong)
        advice = "make room, or name another place (answers already logged are kept)"
        raise refuse_write(f"cannot write {path}: {why}; {BAD_PLACES.get(wrong.errno or 0, advice)}", wrong) from wrong
    return path


ELSEWHERE = "name another place"
BAD_PLACES = {
    errno.EISDIR: "name a file in it",
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP), ELSEWHERE),
}
"""What to do where the path itself is wrong."""


def refuse_folder(path: Path) -> None:
    """Refuse a folder where a file is to be written.

    >>> refuse_folder(Path(""))
    Traceback (most recent call last):
    evalcore.EvalError: cannot write .: Is a directory; name a file in it
    """
    if not isinstance(path, RemotePath) and path.is_dir():
        raise EvalError(f"cannot write {path}: {os.strerror(errno.EISDIR)}; {BAD_PLACES[errno.EISDIR]}")


def refuse_write(told: str, wrong: OSError) -> EvalError:
    """An error of the disk or, where the path itself is wrong, of whoever named it.

    >>> type(refuse_write("full", OSError(errno.ENOSPC, ""))).__name__
    'CannotWrite'
    """
    return EvalError(told) if wrong.errno in BAD_PLACES else CannotWrite(told)


def _put_in_store(path: RemotePath, write: Callable[[Path], object]) -> Path:
    """Write a file here, then put it in its store at once."""
    from tempfile import TemporaryDirectory

    try:
        with TemporaryDirectory(prefix="evalcore-") as folder:
            draft = Path(folder) / path.name
            write(draft)
            path.put(draft)
    except OSError as wrong:
        told = f"cannot write {path}: {wrong.strerror or wrong}; make room, or name another place"
        raise refuse_write(told, wrong) from wrong
    return path


def _sync(path: Path) -> None:
    """Make the content of a file durable, or the renames in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
