"""What a command says by its exit code: one table, for every command."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from enum import IntEnum

from evalcore.core.records.errors import CannotWrite, EvalError, InternalError, ServerGone


class Exit(IntEnum):
    """How a command ended; above 2, sysexits.h and the shell's 128 + signal."""

    DONE = 0
    INCOMPLETE = 1
    BAD_INPUT = 2
    SERVER_GONE = 69
    INTERNAL = 70
    CANNOT_WRITE = 74
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.INCOMPLETE: "done, but documents lack a score (`--allow_failures`), tasks were left out, a gate failed, "
    "a task file has errors, nothing was found, or `diff` found a difference",
    Exit.BAD_INPUT: "bad input: a flag, a config, a file, or a server that cannot be used",
    Exit.SERVER_GONE: "the model's server is gone; the same command goes on once it is back",
    Exit.INTERNAL: "a mistake of evalcore's own, such as counts that do not add up; please report it",
    Exit.CANNOT_WRITE: "a file or the output could not be written: the disk is full, read-only or broken",
    Exit.HUNG_UP: "stopped by SIGHUP: the terminal or the connection was closed",
    Exit.INTERRUPTED: "stopped by SIGINT (Ctrl-C)",
    Exit.TERMINATED: "stopped by SIGTERM, as batch systems do",
}

SHORT = {
    Exit.SERVER_GONE: "the server is gone",
    Exit.INTERNAL: "a mistake of evalcore's own",
    Exit.CANNOT_WRITE: "cannot write",
    Exit.HUNG_UP: "hung up",
    Exit.INTERRUPTED: "interrupted",
    Exit.TERMINATED: "terminated",
}

BAD_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""Errors that no reader can cause by a wrong path."""


def find_exit(wrong: BaseException) -> Exit:
    """The exit code of what ended a command.

    >>> [find_exit(one).name for one in (EvalError("unknown task"), OSError(errno.ENOSPC, "full"), KeyError("x"))]
    ['BAD_INPUT', 'CANNOT_WRITE', 'INTERNAL']
    """
    causes = list(list_causes(wrong))
    if isinstance(wrong, KeyboardInterrupt):
        stopped = next((one for one in causes if isinstance(one, Signalled)), None)
        return Exit.INTERRUPTED if stopped is None else Exit(128 + stopped.number)
    if any(isinstance(one, CannotWrite) or getattr(one, "errno", None) in BAD_DISK for one in causes):
        return Exit.CANNOT_WRITE
    if isinstance(wrong, ServerGone):
        return Exit.SERVER_GONE
    if any(isinstance(one, InternalError) for one in causes):
        return Exit.INTERNAL
    return Exit.BAD_INPUT if isinstance(wrong, EvalError | OSError) else Exit.INTERNAL


def list_causes(wrong: BaseException) -> Iterator[BaseException]:
    """An error, what caused it, what caused that, and so on."""
    at: BaseException | None = wrong
    while at is not None:
        yield at
        at = at.__cause__


class Signalled(KeyboardInterrupt):
    """A signal asked to stop; its text says which, in a word."""

    def __init__(self, number: int, word: str) -> None:
        super().__init__(word)
        self.number = number
