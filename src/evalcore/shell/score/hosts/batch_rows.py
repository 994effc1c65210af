"""The rows of an Arrow batch as documents, which go by their ids: batches have no order, and may be scored twice."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import OutputType
from evalcore.shell.logs.lm_eval.golds import read_both_ways
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.logs.tables.column_map import ColumnMap, check_columns
from evalcore.shell.logs.tables.row_document import has_failed, make_document, read_id
from evalcore.shell.logs.tables.table import TABLE
from evalcore.shell.logs.tables.table_kinds import USUAL, find_failure, find_kind
from evalcore.shell.logs.tables.table_rows import TableRow, read_arrow_rows

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

    Batch: TypeAlias = pyarrow.Table | pyarrow.RecordBatch

KEYS = range(-(2**63), 2**63)


class BatchDocuments(Struct, frozen=True):
    """The documents of a batch in the order of their keys, as a log of their own.

    ``marks`` tell documents of one key apart that have different ids; ``failed`` counts those without an answer.
    """

    log: LogTask
    keys: tuple[int, ...]
    marks: tuple[int, ...]
    failed: int


def read_block(name: str, batch: Batch, mapping: ColumnMap, kind: OutputType | None = None) -> BatchDocuments:
    """Read the rows of a batch. Equal rows of one id are one document; different ones are an error.

    ``kind`` is what the answers are if none of them shows it, because all rows failed.
    """
    path = Path(name)
    check_columns(mapping, batch.schema.names, name)
    rows = [row for row in read_arrow_rows(path, [batch], mapping) if isinstance(row, TableRow)]
    if kind is None or not all(find_failure(row, mapping) for row in rows):
        kind = find_kind(rows, mapping)
    known: dict[int, tuple[int, Logged]] = {}
    for row in rows:
        key, mark, made = _read_row(name, row, mapping, kind)
        other = known.setdefault(key, (mark, made))[1]
        if other is not made and (other.id, other.doc) != (made.id, made.doc):
            raise EvalError(_tell_two(other, made) + _place(name, mapping, made.id))
    keys = sorted(known)
    documents = [known[key][1] for key in keys]
    log = LogTask(
        name=name,
        path=path,
        output_type=kind,
        rows=partial(iter, documents),
        reader=TABLE,
        usual=USUAL[kind] if mapping.choices is None and mapping.loglikelihoods is not None else (),
        written=mapping.written,
    )
    return BatchDocuments(log, tuple(keys), tuple(known[key][0] for key in keys), sum(map(has_failed, documents)))


def key_document(name: int | str) -> tuple[int, int]:
    """The key of a document: its id, or 63 bits of the hash of a text; and other bits, which tell two texts apart.

    >>> key_document(7)[0], key_document("a") == key_document("b")
    (7, False)
    """
    if isinstance(name, int) and name not in KEYS:
        raise EvalError(f"expected an id of at most 64 bits, got {name}; make it a text")
    bits = int.from_bytes(blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=16).digest(), "little")
    return name if isinstance(name, int) else bits >> 65, bits & (2**63 - 1)


def _read_row(name: str, row: TableRow, mapping: ColumnMap, kind: OutputType) -> tuple[int, int, Logged]:
    found: int | str | None = None
    try:
        found = read_id(row, mapping.id or "")
        key, mark = key_document(found)
        made = make_document(key, [row], mapping, None, kind)
        _expect_index(made, mapping)
    except EvalError as wrong:
        raise EvalError(f"{wrong}{_place(name, mapping, found, row.at.line)}") from wrong
    return key, mark, made


def _place(name: str, mapping: ColumnMap, found: object, line: int = 0) -> str:
    return f" - at {name} row {line} of its batch" if found is None else f" - at {name} {mapping.id} {found!r}"


def _expect_index(made: Logged, mapping: ColumnMap) -> None:
    """Refuse a number that is the text of a choice but no index: no batch can settle what all numbers are."""
    for gold in made.gold if isinstance(made.gold, tuple) else (made.gold,):
        index, text = read_both_ways(str(gold), made.choices) if type(gold) is int else (0, 0)
        if index is None and text is not None:
            told = f"expected the index of one of {len(made.choices)} choices (from 0), got {gold}"
            raise EvalError(f"{told} under {mapping.gold!r}, the text of one; make golds texts if they are")


def _tell_two(other: Logged, made: Logged) -> str:
    if other.id == made.id:
        return "expected one row per id, got two different ones"
    return f"expected ids with hashes of their own, got {other.id!r} and {made.id!r} with one; rename one of them"
