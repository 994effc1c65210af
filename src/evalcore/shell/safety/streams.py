"""Standard streams that break no command: what a closed, broken or full one cannot take is lost, and reported."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

from evalcore.shell.safety.exit_codes import Exit


class Sink(io.RawIOBase):
    """A stream that takes everything; ``wrong`` is the first error that cost some of it."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self.raw = raw
        self.wrong: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.raw.fileno()

    def isatty(self) -> bool:
        return self.raw.isatty()

    def write(self, data: Any) -> int | None:
        try:
            return self.raw.write(data)
        except OSError as wrong:
            self.wrong = self.wrong or wrong
            return memoryview(data).nbytes


class Streams:
    """The standard streams of this process, made safe for as long as it lives."""

    def __init__(self) -> None:
        _fill_closed()
        self.out, sys.stdout = _open_sink(1, sys.stdout)
        self.err, sys.stderr = _open_sink(2, sys.stderr)

    def settle(self, code: int) -> int:
        """Write what is left. Output that was lost fails a command that succeeded, unless its reader just left."""
        sys.stdout.flush()
        lost = self.out and self.out.wrong
        if not lost or lost.errno == errno.EPIPE:
            sys.stderr.flush()
            return code
        sys.stderr.write(f"evalcore: cannot write the output: {lost.strerror}\n")
        sys.stderr.flush()
        return code or Exit.CANNOT_WRITE


def _fill_closed() -> None:
    """Give closed standard streams a place, lest the next file that is opened become stdout."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)


def _open_sink(number: int, known: TextIO | None) -> tuple[Sink | None, TextIO]:
    """A stream as Python had it, or a new one where it was closed; one that is no file stays as it is."""
    if known is None:
        return None, open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    buffer = getattr(known, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if not isinstance(known, io.TextIOWrapper) or not isinstance(raw, io.RawIOBase):
        return None, known
    sink, at_once = Sink(raw), known.line_buffering or known.write_through
    made = io.TextIOWrapper(io.BufferedWriter(sink), known.encoding, "backslashreplace", line_buffering=at_once)
    return sink, made
