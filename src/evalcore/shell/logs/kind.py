"""What a file holds, told by its first bytes and its first record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path

from msgspec import Struct, field

from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog.line import PREFIX
from evalcore.shell.data.unpack import open_bytes, strip_packing
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.json_records import MARK, Record, open_lines, read_records

__all__ = ["Found", "is_sample_name", "is_torn", "read_torn", "tell_kind"]

HEAD = 1 << 16
NEAR = 1000
SAMPLES = re.compile(r"(\d{8}_\d{4,6}_)?samples_")
MAGIC = {b"PK\x03\x04": "inspect", b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
OBJECTS = (
    ("inspect-json", re.compile(rb'"eval"\s*:\s*\{')),
    ("lmms-json", re.compile(rb'"model_configs"\s*:')),
    ("results", re.compile(rb'"results"\s*:\s*\{')),
)
"""Files that are one JSON object, by a key near their beginning."""

JSON = frozenset({".json", ".jsonl", ".ndjson"})
REPLIED = frozenset({"doc", "arguments", "resps", "filtered_resps"})


class Found(Struct, frozen=True):
    """A file, its kind, and the first record of a file of records.

    Kinds: samples, inspect, inspect-json, lmms-json, results, answers, json, text, parquet, arrow, empty, binary.
    """

    path: Path
    kind: str
    first: Mapping[str, object] = field(default_factory=dict)


def tell_kind(path: Path) -> Found:
    """What a file holds, whatever it is called.

    >>> tell_kind(Path("no/such.jsonl"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such.jsonl: no such file
    """
    with open_lines(path) as file:
        head = file.read1(HEAD) if isinstance(file, BufferedReader) else file.read(HEAD)
    start = head.removeprefix(MARK).lstrip()
    if not start:
        return Found(path, "empty")
    magic = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)
    if magic is not None:
        return Found(path, magic)
    if start.startswith(PREFIX):
        return Found(path, "answers")
    if start[:1] in b"{[":
        return _tell_json(path, start)
    return Found(path, "binary" if b"\0" in head else "text")


def is_sample_name(path: Path) -> bool:
    """Whether a file is called what sample logs are called.

    >>> is_sample_name(Path("samples_gsm8k.jsonl.gz")), is_sample_name(Path("gsm8k.jsonl"))
    (True, False)
    """
    name = strip_packing(path.name)
    return name.endswith(".jsonl") and SAMPLES.match(name) is not None


def is_torn(found: Found) -> bool:
    """Whether a file that is called JSON begins with no value, and is not one as a whole."""
    if found.first or Path(strip_packing(found.path.name)).suffix.lower() not in JSON:
        return False
    first = next(read_records(found.path), None)
    if isinstance(first, Record) and _is_json(first.data):
        return False
    try:
        with open_bytes(found.path) as file:
            return not _is_json(file.read())
    except EvalError:
        return True


def _is_json(data: bytes) -> bool:
    try:
        decode_line(data, "")
    except EvalError:
        return False
    return True


def read_torn(path: Path) -> Found:
    """A sample log whose first line is damaged, with the first row that is not."""
    for one in islice(read_records(path), NEAR):
        with suppress(EvalError):
            row = decode_line(one.data, "") if isinstance(one, Record) else None
            if isinstance(row, dict) and "doc_id" in row:
                return Found(path, "samples", row)
    return Found(path, "samples")


def _tell_json(path: Path, start: bytes) -> Found:
    first = next(read_records(path), None)
    row: object = None
    if isinstance(first, Record):
        with suppress(EvalError):  # an object over several lines, or a torn line
            row = decode_line(first.data, "")
    if not isinstance(row, dict):
        named = next((kind for kind, key in OBJECTS if key.search(start)), None)
        sampled = is_sample_name(path) or (named is None and b'"doc_id"' in start)
        return read_torn(path) if sampled else Found(path, named or "json")
    if "doc_id" in row and not REPLIED.isdisjoint(row):
        return Found(path, "samples", row)
    if isinstance(row.get("eval"), dict) and ("samples" in row or "status" in row):
        return Found(path, "inspect-json")
    if isinstance(row.get("results"), dict):
        return Found(path, "results")
    return Found(path, "lmms-json" if isinstance(row.get("logs"), list) and "model_configs" in row else "json", row)
