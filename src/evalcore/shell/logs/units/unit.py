"""Logs cut into units of work: byte ranges of lines, rows, members; each line belongs to the unit it begins in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from evalcore.core.partials.span import RowCount, Span
from evalcore.core.records.errors import EvalError
from evalcore.shell.data.unpack import LineFault, find_packing
from evalcore.shell.data.wire import MOST_BYTES

if TYPE_CHECKING:
    from evalcore.shell.logs.log import Logged, Problem

UNIT = 32 << 20
"""About how many bytes a unit has; where they begin does not change while a log grows."""


class Unit(Struct, frozen=True):
    """A range of a log's file; its whole if ``stop`` is None."""

    path: Path
    kind: str = "bytes"
    start: int = 0
    stop: int | None = None
    total: int | None = None


class UnitNotes:
    """What was noticed while a unit was read: the rows of each filter, places and ids of documents without numbers.

    >>> seen = UnitNotes()
    >>> seen.count("none", 0, b"reply")
    >>> seen.row_counts()[0].rows
    1
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._marks: dict[str, int] = {}
        self.places: list[int] = []
        self.ids: list[int] = []

    def count(self, name: str, key: int, replies: bytes) -> None:
        """Count a row of a filter."""
        self._rows[name] = self._rows.get(name, 0) + 1
        self._marks[name] = self._marks.get(name, 0) + mark_row(key, replies)

    def row_counts(self) -> tuple[RowCount, ...]:
        return tuple(RowCount(name, rows, self._marks[name] % (1 << 63)) for name, rows in sorted(self._rows.items()))


class Cut(Struct, frozen=True):
    """How a log is cut: its units, and a function that reads the documents of one of them.

    Without any units a log is one unit, for the reason ``why``.
    """

    units: Callable[[int], tuple[Unit, ...]] | None = None
    read: Callable[[Unit, UnitNotes], Iterator[Logged | Problem]] | None = None
    why: str = ""


UNCUT = Cut()


def cut_lines(path: Path, size: int = UNIT) -> tuple[Unit, ...]:
    """Cut a file of lines into ranges of about ``size`` bytes."""
    total = path.stat().st_size
    return tuple(Unit(path, "bytes", at, min(at + size, total), total) for at in range(0, total, size))


def has_lines(path: Path) -> bool:
    """Whether a file can be cut at its lines: neither packed nor one JSON array."""
    if find_packing(path):
        return False
    with path.open("rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def read_range(unit: Unit) -> Iterator[tuple[int, bytes]]:
    """Read the lines that begin in a range, each with its offset."""
    stop = unit.total if unit.stop is None else unit.stop
    with unit.path.open("rb", buffering=1 << 18) as file:
        at = unit.start
        if at:
            file.seek(at - 1)
            at += len(file.readline()) - 1
        while stop is None or at < stop:
            line = file.readline(MOST_BYTES + 1)
            if not line:
                return
            if len(line) > MOST_BYTES:
                raise LineFault(
                    str(unit.path), count_lines(unit.path, at) + 1, f"a line of more than {MOST_BYTES:,} bytes"
                )
            yield at, line
            at += len(line)


def count_lines(path: Path, stop: int) -> int:
    """Count the lines that end before a byte of a file."""
    count, left = 0, stop
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            count, left = count + block.count(b"\n"), left - len(block)
    return count


def span_of(unit: Unit, *, digest: bool = False) -> Span:
    """Say what a unit is, with the hash of its bytes if that is wanted."""
    stop = unit.stop if unit.stop is not None else unit.path.stat().st_size
    found = Span(unit.path.name, unit.kind, unit.start, stop, unit.total if unit.stop is not None else stop)
    if not digest:
        return found
    hashed = blake2b(digest_size=16)
    try:
        for block in _blocks(unit):
            hashed.update(block)
    except OSError as wrong:
        raise EvalError(f"{unit.path}: cannot be read: {wrong.strerror or wrong}") from wrong
    return Span(found.source, found.unit, found.start, found.stop, found.total, hashed.hexdigest())


def _blocks(unit: Unit) -> Iterator[bytes]:
    """The bytes of a unit; of units other than ranges of bytes, those of the whole file."""
    if unit.kind == "bytes" and unit.stop is not None:
        yield from (line for _, line in read_range(unit))
        return
    with unit.path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def mark_row(key: int, replies: bytes) -> int:
    """Hash a document's number and replies; sums of such marks tell whether two sets of rows are the same.

    >>> mark_row(1, b"a") == mark_row(1, b"a"), mark_row(1, b"a") == mark_row(2, b"a")
    (True, False)
    """
    return int.from_bytes(blake2b(replies, digest_size=8, key=b"%d" % key).digest(), "little") >> 1


def mark_id(name: int | str) -> int:
    """Hash the id of a document.

    >>> mark_id(1) == mark_id("1")
    False
    """
    return int.from_bytes(blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") >> 1
