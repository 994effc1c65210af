"""The beginning of a file, from which readers detect its format; its name does not matter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from msgspec import Struct
from pyrsistent import PMap

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import freeze_dict
from evalcore.shell.answerlog.line import PREFIX
from evalcore.shell.data.unpack import open_bytes, strip_packing
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.json_records import MARK, Record, open_lines, read_records
from evalcore.shell.logs.log import NOTHING, Reader

HEAD = 1 << 16
MAGIC = {b"PK\x03\x04": "zip", b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
RESULTS = re.compile(rb'"results"\s*:\s*\{')
JSON = frozenset({".json", ".jsonl", ".ndjson"})


class FileHead(Struct, frozen=True):
    """The beginning of a file: its bytes, its form, and the first record of JSON if that is an object.

    Forms: zip, parquet, arrow, answers (an answer log), results (in lm-eval's form), json, text, binary, empty.
    """

    path: Path
    form: str
    start: bytes = b""
    first: Mapping[str, object] | None = None


class LogFile(Struct, frozen=True):
    """A file, its form, the reader that recognises it, and its first JSON record; results files have no reader."""

    path: Path
    form: str
    reader: Reader | None = None
    first: Mapping[str, object] = NOTHING

    @property
    def is_results(self) -> bool:
        """Whether it holds results in lm-eval's form rather than a log."""
        return self.reader is None and self.form == "results"

    @property
    def has_rows(self) -> bool:
        """Whether it holds lm-eval's rows."""
        return self.reader is not None and self.reader.sample_rows


def read_head(path: Path) -> FileHead:
    """Read the beginning of a file.

    >>> read_head(Path("no/such.jsonl"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such.jsonl: no such file
    """
    with open_lines(path) as file:
        head = file.read1(HEAD) if isinstance(file, BufferedReader) else file.read(HEAD)
    start = head.removeprefix(MARK).lstrip()
    if not start:
        return FileHead(path, "empty")
    magic = next((form for magic, form in MAGIC.items() if head.startswith(magic)), None)
    if magic is not None:
        return FileHead(path, magic, head)
    if start.startswith(PREFIX):
        return FileHead(path, "answers", start)
    if start[:1] not in b"{[":
        return FileHead(path, "binary" if b"\0" in head else "text", start)
    first = _read_first(path)
    held = RESULTS.search(start) is not None if first is None else isinstance(first.get("results"), Mapping)
    return FileHead(path, "results" if held else "json", start, first)


def _read_first(path: Path) -> Mapping[str, object] | None:
    record = next(read_records(path), None)
    if isinstance(record, Record):
        with suppress(EvalError):  # an object over several lines, or a torn line
            row = decode_line(record.data, "")
            return freeze_dict(row) if isinstance(row, dict) else None
    return None


def tell_file(path: Path, readers: PMap[str, Reader]) -> LogFile:
    """Detect the format of a file: the first reader that recognises it."""
    head = read_head(path)
    ordered = sorted(readers.items(), key=lambda entry: (entry[1].order, entry[0]))
    reader = next((reader for _, reader in ordered if reader.recognises(head)), None)
    first = head.first if head.form != "results" else None  # a whole file, not a row of it
    return LogFile(path, head.form, reader, first or NOTHING)


def is_torn(file: LogFile) -> bool:
    """Whether a file with a JSON suffix neither begins with a JSON value nor is one as a whole."""
    if file.first or Path(strip_packing(file.path.name)).suffix.lower() not in JSON:
        return False
    first = next(read_records(file.path), None)
    if isinstance(first, Record) and _is_json(first.data):
        return False
    try:
        with open_bytes(file.path) as opened:
            return not _is_json(opened.read())
    except EvalError:
        return True


def _is_json(data: bytes) -> bool:
    try:
        decode_line(data, "")
    except EvalError:
        return False
    return True
