"""The JSON records of a file one by one, each with its line and byte; unreadable records become problems."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.unpack import LineFault, open_bytes, read_lines
from evalcore.shell.data.wire import MOST_BYTES, decode_line, encode_line
from evalcore.shell.logs.log import NOTHING, Logged, Problem

MARK = b"\xef\xbb\xbf"
SMALL, LARGE = 1 << 13, 1 << 18
PLACE = re.compile(r"^(:\d+)*: ")
ITEMS = msgspec.json.Decoder(list[Raw])


class Record(Struct, frozen=True, gc=False):
    """A JSON value of a file: its line, offset and bytes; in a file without lines its number and no offset."""

    line: int
    byte: int
    data: bytes
    item: bool = False


def read_records(path: Path) -> Iterator[Record | Problem]:
    """Read the values of a file with one per line, or of an array; only an array on a single line is held in memory.

    A fault of the file itself, such as a truncated compressed file, ends the records with a problem.
    """
    at = Record(1, 0, b"")
    try:
        with open_lines(path) as file:
            for at in _records(read_lines(file, str(path))):
                yield at
    except EvalError as wrong:
        yield locate_problem(path, at, wrong)


@contextmanager
def open_lines(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read by lines. They are often longer than Python's buffer; a larger one is three times as fast.

    The end of a truncated compressed file takes the buffer with it, so there the buffer is small.
    """
    with open_bytes(path) as file:
        if not isinstance(file, io.BufferedReader):
            yield file
            return
        yield io.BufferedReader(file.raw, LARGE if isinstance(file.raw, io.FileIO) else SMALL)


def _records(given: Iterable[bytes]) -> Iterator[Record]:
    lines = _lines(given)
    first = next(lines, None)
    if first is None:
        return
    if not first.data.startswith(b"["):
        yield first
        yield from lines
    elif first.data == b"[":
        yield from _array_lines(lines)
    else:
        yield from _array_items(first, lines)


def _lines(given: Iterable[bytes]) -> Iterator[Record]:
    """The lines that are not blank."""
    byte = 0
    for number, line in enumerate(given, 1):
        content = line.strip() if number > 1 else line.removeprefix(MARK).strip()
        if content:
            yield Record(number, byte, content)
        byte += len(line)


def _array_lines(lines: Iterator[Record]) -> Iterator[Record]:
    """An array as ``json.dumps(rows, indent=...)`` writes it: an item ends at the brace that closes its first.

    lm-eval's logs of 2023 and early 2024 are such arrays.
    """
    parts: list[bytes] = []
    start, depth = Record(1, 0, b""), 0
    for one in lines:
        if not parts and one.data in (b"]", b","):
            continue
        start = start if parts else one
        parts.append(one.data)
        # Outside of texts, which have no line breaks of their own, brackets that open end a line or are closed in it.
        depth += (one.data[-1:] in b"{[") - (one.data[:1] in b"}]")
        if depth <= 0:
            yield Record(start.line, start.byte, b"\n".join(parts).removesuffix(b","))
            parts, depth = [], 0
    if parts:
        yield Record(start.line, start.byte, b"\n".join(parts))


def _array_items(first: Record, lines: Iterator[Record]) -> Iterator[Record]:
    """An array whose items are not on lines of their own."""
    parts, size = [first.data], len(first.data)
    for one in lines:
        parts.append(one.data)
        size += len(one.data)
        if size > MOST_BYTES:
            raise EvalError(f"an array of more than {MOST_BYTES:,} bytes; write it in lines (JSONL)")
    whole = b"\n".join(parts)
    try:
        items = ITEMS.decode(whole)
    except (ValueError, RecursionError):  # NaN, lone surrogates, or no array at all
        found = decode_line(whole, "the array")
        items = [Raw(encode_line(one)) for one in found] if isinstance(found, list) else [Raw(whole)]
    for place, item in enumerate(items, 1):
        yield Record(place, first.byte, bytes(item), item=True)


def find_part(data: object, *keys: str) -> Mapping[str, object]:
    """The mapping under these keys, each inside the one before; an empty one if there is none.

    >>> find_part({"configs": {"t": {"repeats": 2}}}, "configs", "t"), find_part({"configs": 1}, "configs")
    ({'repeats': 2}, {})
    """
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else NOTHING


# --- problems -------------------------------------------------------------------------------------------------------


def locate_problem(path: Path, record: Record, wrong: Exception) -> Problem:
    """Make a problem of an error and the place of its record, which the message then need not repeat.

    >>> wrong = EvalError("x:2: not JSON: Unterminated string starting at at byte 3")
    >>> locate_problem(Path("x"), Record(7, 9, b""), wrong)
    Problem(path=PosixPath('x'), line=7, byte=9, message='not JSON: Unterminated string starting at byte 3', item=False)
    """
    text = str(wrong).removeprefix(str(path))
    message = PLACE.sub("", text).replace(" at at byte ", " at byte ")
    if isinstance(wrong, LineFault):
        return Problem(path, wrong.line, wrong.byte, message)
    return Problem(path, record.line, record.byte, message, record.item)


def refuse_problems(rows: Iterable[Logged | Problem], name: str) -> Iterator[Logged]:
    """Yield documents up to the first problem, which is raised with the number of documents before it."""
    for good, one in enumerate(rows):
        if not isinstance(one, Logged):  # its own class is known faster than another
            at = f"byte {one.byte:,}; " if one.byte else ""
            before = f"{at}{good:,} good document{'s' * (good != 1)} of {name} before it"
            raise EvalError(f"{one.place}: {one.message} ({before}; score --keep-going lists all that is wrong)")
        yield one
