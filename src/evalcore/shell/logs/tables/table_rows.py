"""The rows of plain tables, one by one: JSON lines or an array, CSV and TSV, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.arrow_files import bound_batches, map_arrow, read_batches
from evalcore.shell.data.csv_files import name_columns, read_rows
from evalcore.shell.data.doubled_keys import decode_once, is_checked
from evalcore.shell.data.json_files import USUAL
from evalcore.shell.data.unpack import LineFault, open_bytes, read_lines
from evalcore.shell.data.wire import MOST_BYTES, decode_line, encode_line
from evalcore.shell.logs.head import LogFile, is_torn
from evalcore.shell.logs.json_records import MARK, Record, locate_problem, read_records
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.tables.column_map import ColumnMap

BATCH = 1024
NEAR = 100
SEPARATORS = (",", "\t", ";", "|")


class TableRow(Struct, frozen=True, gc=False):
    """A row of a table, and where it is; its cells stay as decoded, since freezing them would slow down every row."""

    at: Record
    cells: Mapping[str, object]


Rows = Iterator[TableRow | Problem]


def read_table(path: Path, form: str, mapping: ColumnMap) -> Rows:
    """Read the rows of a table of any form; an unreadable row is a problem, and a fault of the file is the last one."""
    at = Record(1, 0, b"")
    try:
        for one in FORMS[form](path, mapping):
            at = one.at if isinstance(one, TableRow) else at
            yield one
    except EvalError as wrong:
        yield locate_problem(path, at, wrong)


def _read_json(path: Path, mapping: ColumnMap) -> Rows:
    if is_whole(path, mapping):
        yield from _read_object(path)
        return
    for at in read_records(path):
        if isinstance(at, Problem):
            yield at
            continue
        yield read_json_row(path, at)


def read_json_row(path: Path, at: Record) -> TableRow | Problem:
    """Read a row that is a JSON object."""
    try:
        cells = decode_once(at.data, "") if is_checked(at.byte) else decode_line(at.data, "")
        if not isinstance(cells, dict):
            raise EvalError(f"expected a JSON object, got {str(cells)[:60]!r}")
    except EvalError as wrong:
        return locate_problem(path, at, wrong)
    return TableRow(at, cells)


def is_whole(path: Path, mapping: ColumnMap) -> bool:
    """Whether a file is an object that holds the rows: over several lines, or on one line without declared columns."""
    first, *more = *islice(read_records(path), 2), None
    if not isinstance(first, Record):
        return False
    if not first.data.endswith(b"}"):
        return not _has_rows(path)
    return more == [None] and _holds_rows(first.data, mapping)


def _has_rows(path: Path) -> bool:
    """Whether a later line is an object and the file is not, so that only the first line is torn."""
    if not any(isinstance(one, Record) and _is_object(one.data) for one in islice(read_records(path), 1, NEAR)):
        return False
    with open_bytes(path) as file:
        return not _is_object(file.read(MOST_BYTES + 1).removeprefix(MARK).lstrip())


def _is_object(line: bytes) -> bool:
    try:
        return line.startswith(b"{") and len(line) > 2 and isinstance(decode_line(line, ""), dict)
    except EvalError:
        return False


def _holds_rows(line: bytes, mapping: ColumnMap) -> bool:
    whole = decode_line(line, "") if _is_object(line) else None
    return isinstance(whole, dict) and whole.keys().isdisjoint(mapping.named.values()) and len(_held(whole)) == 1


def _held(whole: object) -> list[list[object]]:
    return [whole[name] for name in USUAL if isinstance(whole.get(name), list)] if isinstance(whole, dict) else []


def _read_object(path: Path) -> Rows:
    """A JSON object that holds its rows under a usual name; it is read as a whole."""
    with open_bytes(path) as file:
        held = _held(decode_once(file.read().removeprefix(MARK), str(path)))
    if len(held) != 1:
        raise EvalError(f"{path}: expected rows, or an object that holds them as one of {', '.join(USUAL)}")
    for place, cells in enumerate(held[0], 1):
        at = Record(place, 0, b"", item=True)
        if isinstance(cells, dict):
            yield TableRow(at, cells)
        else:
            yield locate_problem(path, at, EvalError(f"expected a JSON object, got {str(cells)[:60]!r}"))


def _read_text(path: Path, mapping: ColumnMap) -> Rows:
    """Cells stay text, so that an id of 007 or an answer of 1.0 is kept as written. Only answers may be empty."""
    filled = {mapping.gold, mapping.id, mapping.task, mapping.cluster} - {None, mapping.answer}
    options = {"sep": _separator(_head(path), mapping)}
    with open_bytes(path) as file:
        rows = read_rows(file, path, options)
        head = next(rows, (1, []))
        if isinstance(head, LineFault):
            raise head
        _refuse_doubled(head[1], mapping)
        names = name_columns(head[1])
        for one in rows:
            if isinstance(one, LineFault):
                yield locate_problem(path, Record(one.line, one.byte, b""), one)
                continue
            end, row = one
            at = Record(end - sum(cell.count("\n") for cell in row), 0, b"")  # where it begins
            if len(row) != len(names):
                wrong = EvalError(f"expected {len(names)} cells, got {len(row)}")
                yield locate_problem(path, at, wrong)
            else:
                cells = dict(zip(names, row, strict=True))
                yield TableRow(at, {key: None if cell == "" and key in filled else cell for key, cell in cells.items()})


def _refuse_doubled(header: Sequence[str], mapping: ColumnMap) -> None:
    for key, name in mapping.named.items():
        if (count := header.count(name)) > 1:
            raise EvalError(f"expected one {key} column {name!r}, got {count}; rename all but the one that is meant")


def _head(path: Path) -> str:
    with open_bytes(path) as file:
        return next(read_lines(file, str(path)), b"").removeprefix(MARK).decode("utf-8", "replace")


def _separator(head: str, mapping: ColumnMap) -> str:
    """The separator that finds the most declared columns in the first line."""
    return max(SEPARATORS, key=lambda one: len(_declared(head, one, mapping)))


def _declared(head: str, separator: str, mapping: ColumnMap) -> set[str]:
    return set(mapping.named.values()) & {cell.strip('"\r\n ') for cell in head.split(separator)}


def may_be_table(file: LogFile, mapping: ColumnMap) -> bool:
    """Whether a file without readable rows may be a damaged table with these columns."""
    if file.form == "text":
        head = _head(file.path)
        return _declared(head, _separator(head, mapping), mapping) == set(mapping.named.values())
    return file.form != "json" or is_torn(file)


def _read_arrow(path: Path, mapping: ColumnMap) -> Rows:
    return read_arrow_rows(path, _batches(path), mapping)


def read_arrow_rows(path: Path, batches: Iterable[object], mapping: ColumnMap, number: int = 0) -> Rows:
    """Read the rows of Arrow's batches, counted from ``number`` on."""
    arrow = require("pyarrow", "parquet")
    try:
        for batch in batches:
            _refuse_doubled(batch.schema.names, mapping)  # type: ignore[attr-defined]  # a pyarrow.RecordBatch
            for cells in batch.to_pylist():  # type: ignore[attr-defined]
                number += 1
                yield TableRow(Record(number, 0, b"", item=True), cells)
    except EvalError:
        raise
    except (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError) as wrong:
        raise EvalError(f"{path}: cannot be read: {(str(wrong).splitlines() or [type(wrong).__name__])[0]}") from wrong


def _batches(path: Path) -> Iterator[object]:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        yield from read_batches(path, size=BATCH)
        return
    ipc = require("pyarrow.ipc", "parquet")
    with map_arrow(path) as source:
        if magic == b"ARROW1":
            file = ipc.open_file(source)
            yield from bound_batches(map(file.get_batch, range(file.num_record_batches)), path)
        else:
            yield from bound_batches(ipc.open_stream(source), path)


FORMS: Mapping[str, Callable[[Path, ColumnMap], Rows]] = {
    "json": _read_json,
    "text": _read_text,
    "parquet": _read_arrow,
    "arrow": _read_arrow,
}


def encode_cells(cells: Mapping[str, object]) -> bytes:
    """Encode a row as the JSON of a document."""
    return encode_line(cells).rstrip(b"\n")
