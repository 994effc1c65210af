"""The answer log of a run in a store, which can neither append nor lock: kept here while it grows, then put there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.run.folder import find_spool, hold_folder
from evalcore.shell.safety.replacement import refuse_write

PIECE = 1 << 20


@contextmanager
def hold_answers(path: Path, shown: Progress) -> Iterator[Path]:
    """Give the local file of an answer log: itself or, of one in a store, a copy that is put back however a run ends.

    Until it is put back, the copy stays, and the next run goes on with it.
    """
    if not isinstance(path, RemotePath):
        yield path
        return
    with hold_folder(path):
        copy = find_spool(path) / path.name
        seen = _fetch(path, copy)
        try:
            yield copy
        except BaseException:
            try:
                _put(path, copy, seen)
            except EvalError as wrong:
                shown.warn(str(wrong))
            else:
                shown.warn(f"the answers so far are in {path}")
            raise
        _put(path, copy, seen)


def _fetch(path: RemotePath, copy: Path) -> str:
    """Fetch what the store has, unless the copy of an earlier run has all of it and more; the version it has."""
    seen = path.version()
    if not seen:
        return seen
    fetched = copy.with_name(copy.name + ".fetched")
    try:
        with path.open("rb") as source, fetched.open("wb") as target:
            shutil.copyfileobj(source, target, PIECE)
    except OSError as wrong:
        raise refuse_write(f"cannot fetch {path} to {fetched}: {wrong.strerror}", wrong) from wrong
    if not copy.exists() or _begins(fetched, copy):
        fetched.replace(copy)
    elif not _begins(copy, fetched):
        raise EvalError(
            f"{path} and {copy}, which an interrupted run left, both have answers that the other has not; "
            "move one of them away, and give the same command again"
        )
    fetched.unlink(missing_ok=True)
    return seen


def _put(path: RemotePath, copy: Path, seen: str) -> None:
    if not copy.exists():
        return
    try:
        if path.version() != seen:
            raise EvalError(f"{path} changed while this run went on, so another run writes there; it was left alone")
        path.put(copy)
    except (EvalError, OSError) as wrong:
        raise EvalError(f"{wrong}; the answers of this run are in {copy}") from wrong
    with suppress(OSError):
        copy.unlink()


def _begins(whole: Path, start: Path) -> bool:
    """Whether a log begins with all whole lines of another."""
    with whole.open("rb") as one, start.open("rb") as other:
        return all(one.readline() == line for line in other if line.endswith(b"\n"))
