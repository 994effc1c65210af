"""A worker process: it reads a function, then units, and answers each; it holds no threads and no handlers."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

from evalcore.core.records.errors import CannotWrite, EvalError, InternalError
from evalcore.shell.engines.interface import WorkerLost
from evalcore.shell.safety.exit_codes import Exit, find_exit

HEAD = struct.Struct("<BQ")
DONE, WRONG, UNEXPECTED, UNWRITTEN, LOST = 0, 1, 2, 3, 4


def write_frame(pipe: IO[bytes], kind: int, data: bytes) -> None:
    """Write a message: its kind, its length, its bytes."""
    pipe.write(HEAD.pack(kind, len(data)))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> tuple[int, bytes]:
    """Read a message; the end of the pipe is an ``EOFError``."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    kind, length = HEAD.unpack(head)
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError
    return kind, data


def do_work(work: Callable[[Any], bytes], given: object) -> tuple[int, bytes]:
    """Do the work; what goes wrong is a result as well.

    >>> do_work(lambda unit: b"%d" % unit, 7)
    (0, b'7')
    """
    try:
        return DONE, work(given)
    except WorkerLost as wrong:
        return LOST, str(wrong).encode("utf-8", "replace")
    except EvalError as wrong:
        unwritten = find_exit(wrong) is Exit.CANNOT_WRITE
        return UNWRITTEN if unwritten else WRONG, str(wrong).encode("utf-8", "replace")
    except Exception as wrong:
        return UNEXPECTED, f"{type(wrong).__name__}: {wrong}".encode("utf-8", "replace")


def expect_done(kind: int, data: bytes, where: str) -> bytes:
    """Return the result of work that was done ``where`` it says; what went wrong there is an error here.

    >>> expect_done(WRONG, b"line 3: no JSON", "a worker process")
    Traceback (most recent call last):
    evalcore.EvalError: line 3: no JSON
    """
    if kind == DONE:
        return data
    text = data.decode("utf-8", "replace")
    if kind == LOST:
        raise WorkerLost(text)
    if kind == UNEXPECTED:
        raise InternalError(f"unexpected {text} (in {where})")
    raise (CannotWrite if kind == UNWRITTEN else EvalError)(text)


def open_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """The pipes from and to the one who asks. What is printed goes to stderr, for stdout is the pipe."""
    for name in {"SIGINT", "SIGHUP"} & set(dir(signal)):  # which a whole group hears; the one who asked stops us
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    pipe_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, pipe_out


def main() -> None:
    """Serve until the pipe is closed."""
    pipe_in, pipe_out = open_pipes()
    try:
        work = pickle.loads(read_frame(pipe_in)[1])
        while True:
            unit = pickle.loads(read_frame(pipe_in)[1])
            write_frame(pipe_out, *do_work(work, unit))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # without waiting for what a library may have started


if __name__ == "__main__":
    main()
