"""Whole records appended to the answer log, on the disk before they count."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evalcore.core.records.errors import CannotWrite, EvalError
from evalcore.core.records.request import Reply
from evalcore.shell.answerlog.fold import LogState, fold_lines
from evalcore.shell.answerlog.line import HEADER, Line, ModelLine, encode_record, make_record, name_model
from evalcore.shell.answerlog.lock import hold_lock, touch_lock
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.safety.replacement import refuse_write

Stored = tuple[str, str, int, Reply, str, Spent | None]
"""An answer to store: its key, its request, the repeat, the reply, why it ended and, where known, what it took."""


class LogWriter:
    """The open end of an answer log. ``state`` is the content of the log when it was opened."""

    def __init__(self, fd: int, path: Path, state: LogState, model: str) -> None:
        self.path, self.state, self.model = path, state, name_model(model)
        self._fd, self._failed = fd, ""
        if self.model not in state.models:
            self._write([ModelLine(self.model, model)])

    def append(
        self, key: str, request: str, repeat: int, reply: Reply, finish: str = "", spent: Spent | None = None
    ) -> None:
        """Store an answer. On return it is on the disk; on an error nothing of it is in the log."""
        self.append_all([(key, request, repeat, reply, finish, spent)])

    def append_all(self, answers: Iterable[Stored]) -> None:
        """Store answers together, with one wait for the disk. On an error none of them is in the log."""
        self._write([make_record(*one[:3], self.model, *one[3:]) for one in answers])

    def _write(self, records: Iterable[Line]) -> None:
        if self._failed:
            raise CannotWrite(self._failed)
        touch_lock(self.path)
        try:
            append_bytes(self._fd, b"".join(map(encode_record, records)))
        except OSError as wrong:
            # After a failed write or fsync the content of the disk is unknown: this writer stops for good.
            self._failed = f"{self.path}: cannot store the answer: {wrong.strerror}; all earlier answers are kept"
            raise CannotWrite(self._failed) from wrong


@contextmanager
def open_log(path: str | Path, model: str = "") -> Iterator[LogWriter]:
    """Open a log for the answers of ``model`` (its identity): created or repaired, and closed to other writers."""
    path = Path(path)
    fd = _open_file(path)
    try:
        with hold_lock(fd, path):
            try:
                state = _repair_log(fd, path)
            except OSError as wrong:
                raise refuse_write(f"{path}: cannot prepare the answer log: {wrong.strerror}", wrong) from wrong
            yield LogWriter(fd, path, state, model)
    finally:
        os.close(fd)


def append_bytes(fd: int, data: bytes) -> None:
    """Append bytes and wait for the disk; on failure, undo the write."""
    before = os.fstat(fd).st_size
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, before)
        raise


def _open_file(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o644)
    except OSError as wrong:
        raise refuse_write(f"{path}: cannot open the answer log for writing: {wrong.strerror}", wrong) from wrong
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise EvalError(f"{path}: the answer log must be a regular file")
    return fd


def _repair_log(fd: int, path: Path) -> LogState:
    """Read the log; move a torn tail aside, end the last line, and start an empty file with its header."""
    with open(fd, "rb", closefd=False) as file:
        file.seek(0)
        state = fold_lines(file, str(path))
    if state.torn:
        _keep_torn(path, state.torn)
        os.ftruncate(fd, state.whole)
        os.fsync(fd)
    if not state.ends:
        append_bytes(fd, b"\n")
    if not state.whole:
        append_bytes(fd, HEADER)
        _sync_folder(path.parent)
    return state


def _keep_torn(path: Path, torn: bytes) -> None:
    fd = os.open(path.with_name(path.name + ".torn"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        append_bytes(fd, torn + b"\n")
    finally:
        os.close(fd)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable, on systems that can."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
