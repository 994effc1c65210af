"""The row of a sample log, of every lm-eval since 2023, of lmms-eval and of evalcore, and its fields.

A field is decoded on demand. What scoring needs of a row is decoded in one go by ``forms``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from math import inf
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Request
from evalcore.shell.data.doubled_keys import check_row, decode_once
from evalcore.shell.logs.head import FileHead
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.names import is_sample_name
from evalcore.shell.logs.log import NOTHING

Fields = Mapping[str, object]
AnyFields = TypeVar("AnyFields", bound=Fields)

FIELDS = msgspec.json.Decoder(dict[str, Raw])
VALUE = msgspec.json.Decoder()

LEAST, GREATEST = -(2**63), 2**63 - 1

HASHES = ("doc_hash", "prompt_hash", "target_hash")
SCHEMA = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", *HASHES, "evalcore")
)
"""The fields of a row besides its scores, which stand under the names of their metrics."""
REPLIED = frozenset({"doc", "arguments", "resps", "filtered_resps"})
WHOLE_OBJECTS = re.compile(rb'"(eval|results)"\s*:\s*\{|"model_configs"\s*:')
"""A key near the beginning of a file that is one JSON object: of Inspect, of results, of lmms-eval."""
NEAR = 1000
WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Row(Struct, frozen=True, gc=False):
    """A line of a log: its number, its document, and its fields, each decoded on demand.

    The fields stay as decoded: freezing them would slow down every row.
    """

    line: int
    key: int
    fields: Fields


class AskedRow(Struct, frozen=True, gc=False):
    """A row of a log: a document, what was asked of it, and the replies as they are written.

    ``own`` is what only evalcore writes, as decoded: freezing it would slow down every row. ``raw`` is the bytes of
    the replies.
    """

    key: int
    filter: str | None
    doc: bytes
    target: object
    requests: tuple[Request, ...]
    raw: bytes
    own: Mapping[str, object] = NOTHING


def recognise_samples(head: FileHead) -> bool:
    """Whether a file holds rows of a sample log; one with such a name may begin with a torn line."""
    if head.first is not None:
        return "doc_id" in head.first and not REPLIED.isdisjoint(head.first)
    if head.form not in ("json", "results"):
        return False
    return is_sample_name(head.path) or (b'"doc_id"' in head.start and WHOLE_OBJECTS.search(head.start) is None)


def read_near_row(path: Path) -> Fields:
    """Read the first intact row of a sample log that begins with a damaged one; empty if it is far."""
    for one in islice(read_records(path), NEAR):
        with suppress(EvalError):
            row = decode_once(one.data, "") if isinstance(one, Record) else None
            if isinstance(row, dict) and "doc_id" in row:
                return row
    return {}


def read_sample_rows(*paths: Path) -> Iterator[Row]:
    """Read every row of a sample log or its shards, in lines or in one array; anything else is a located error."""
    for path in paths:
        for at in read_records(path):
            if not isinstance(at, Record):
                raise EvalError(f"{at.place}: {at.message}")
            check_row(at.data, at.byte, f"{path}:{at.line}")
            yield read_row(at.data, at.line, str(path))


def read_row(data: bytes, line: int, path: str) -> Row:
    """Read a row of a sample log.

    >>> row = read_row(b'{"doc_id": 3, "doc": {"q": "?"}, "acc": 1}', 1, "samples.jsonl")
    >>> row.line, row.key, read_value(row.fields, "doc"), read_row_scores(row.fields)
    (1, 3, {'q': '?'}, {'acc': 1})
    """
    fields = split_fields(data, where := f"{path}:{line}", "doc_id, doc, scores", ("doc_id",))
    key = read_value(fields, "doc_id")
    if type(key) is not int:
        raise EvalError(f"{where}: expected the number of a document under doc_id, got {str(key)[:60]!r}")
    if not LEAST <= key <= GREATEST:
        raise EvalError(f"{where}: expected a doc_id of at most 64 bits, got {str(key)[:60]}")
    return Row(line, key, fields)


def split_fields(data: bytes, where: str, expected: str, needed: Sequence[str]) -> Fields:
    """Split a row into fields, which ``read_value`` decodes."""
    try:
        return _with_needed(FIELDS.decode(data), data, where, expected, needed)
    except (ValueError, RecursionError):  # NaN, lone surrogates, torn lines, or no row at all
        return decode_row(data, where, expected, needed)


def decode_row(data: bytes, where: str, expected: str, needed: Sequence[str]) -> dict[str, object]:
    """Decode a row with all its fields; if a ``needed`` one is missing, the error says what was ``expected``.

    >>> decode_row(b'{"acc": 1}', "samples.jsonl:3", "doc_id, doc, scores", ["doc_id"])
    Traceback (most recent call last):
    evalcore.EvalError: samples.jsonl:3: expected a row of a sample log (doc_id, doc, scores), got b'{"acc": 1}'
    """
    row = decode_once(data, where)
    return _with_needed(row if isinstance(row, dict) else {}, data, where, expected, needed)


def _with_needed(row: AnyFields, data: bytes, where: str, expected: str, needed: Sequence[str]) -> AnyFields:
    if not row.keys() >= set(needed):
        raise EvalError(f"{where}: expected a row of a sample log ({expected}), got {data[:60]!r}")
    return row


def decode_fields(fields: Fields) -> dict[str, object]:
    """Decode all fields of a row that was split.

    >>> decode_fields({"acc": Raw(b"[1, NaN]"), "f1": 0.5})
    {'acc': [1, nan], 'f1': 0.5}
    """
    return {name: read_value(fields, name) for name in fields}


def read_value(fields: Fields, name: str) -> object:
    """Read a field; None if there is no such field.

    >>> read_value({"acc": msgspec.Raw(b"[1, NaN]"), "f1": 0.5}, "acc"), read_value({}, "f1")
    ([1, nan], None)
    """
    given = fields.get(name)
    if not isinstance(given, Raw):
        return given
    try:
        return VALUE.decode(given)
    except (ValueError, RecursionError):
        return decode_once(bytes(given), name)


def read_row_scores(fields: Fields) -> dict[str, object]:
    """Read the logged scores by metric; logs from before 2025 do not list their metrics.

    >>> list(map(read_row_scores, [{"metrics": ["acc"], "acc": 1.0, "note": "x"}, {"doc_id": 0, "acc": 1.0}]))
    [{'acc': 1.0}, {'acc': 1.0}]
    """
    given = fields.get("metrics")
    names = _names(bytes(given)) if isinstance(given, Raw) else given
    if not isinstance(names, list | tuple):
        names = [name for name in fields if name not in SCHEMA]
    return {name: read_value(fields, name) for name in names if isinstance(name, str) and name in fields}


@lru_cache(maxsize=256)
def _names(given: bytes) -> tuple[object, ...] | None:
    """The metrics that a row lists; most rows list the same."""
    listed = read_value({"metrics": Raw(given)}, "metrics")
    return tuple(listed) if isinstance(listed, list) else None


def name_filter(named: object, nth: int, filters: Sequence[str]) -> str | None:
    """Name the filter of a row; None if it has none.

    Before 2025 rows did not name theirs: the rows of a document are of the filters of its task, in their order.

    >>> name_filter("strict", 0, ()), name_filter(None, 1, ("strict", "loose")), name_filter(None, 2, ("strict",))
    ('strict', 'loose', None)
    """
    if isinstance(named, str):
        return named
    return filters[nth] if nth < len(filters) else None


# --- numbers ---------------------------------------------------------------------------------------------------------


def read_float(value: object) -> float | None:
    """Read a number as a float, infinite if it is too large; None for anything else.

    >>> read_float(3), read_float(-(10**400)), read_float("3"), read_float(None)
    (3.0, -inf, None, None)
    """
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def keep_in_range(score: object) -> object:
    """A score as a value that cannot change; integers of more than 64 bits become floats.

    >>> keep_in_range([1, [10**400]])
    (1, (inf,))
    """
    if type(score) is list:
        return tuple(map(keep_in_range, score))
    if type(score) is dict:
        return FrozenDict({key: keep_in_range(one) for key, one in score.items()})
    return read_float(score) if type(score) is int and not LEAST <= score <= GREATEST else score


def restore_nonfinite(row: dict[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Restore NaN and infinities, which JSON lacks, where evalcore noted them.

    >>> restore_nonfinite({"doc": {"x": [1, None]}}, {"nonfinite": {"doc.x.1": "-inf"}})
    {'doc': {'x': [1, -inf]}}
    """
    words = own.get("nonfinite")
    if not isinstance(words, Mapping):
        return row
    return {key: _restored(value, key, words) for key, value in row.items()}


def _restored(value: object, path: str, words: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _restored(one, f"{path}.{key}", words) for key, one in value.items()}
    if isinstance(value, list):
        return [_restored(one, f"{path}.{at}", words) for at, one in enumerate(value)]
    return WORDS.get(str(words.get(path)), value) if value is None else value
