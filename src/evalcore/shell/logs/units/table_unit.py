"""Tables in parts: lines of JSON, row groups of Parquet. Documents go by their places until all are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from evalcore.core.records.errors import require
from evalcore.shell.data.arrow_files import read_batches
from evalcore.shell.logs.head import LogFile
from evalcore.shell.logs.json_records import MARK, Record
from evalcore.shell.logs.log import Logged, Problem
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.logs.tables.table_rows import BATCH, Rows, TableRow, is_whole, read_arrow_rows, read_json_row
from evalcore.shell.logs.units.unit import Cut, Unit, UnitNotes, count_lines, cut_lines, has_lines, mark_id, read_range


def cut_table(file: LogFile, mapping: ColumnMap, documents: Callable[..., Iterator[Logged | Problem]]) -> Cut:
    """Cut a table at its lines or row groups, unless the rows of a document or task may stand anywhere."""
    if mapping.task is not None or mapping.repeat is not None:
        return Cut(why="rows of one task or document may stand anywhere")
    if file.form == "json" and has_lines(file.path) and not is_whole(file.path, mapping):
        return Cut(partial(cut_lines, file.path), partial(_read_unit, documents, _read_lines))
    if file.form == "parquet":
        return Cut(partial(_cut_groups, file.path), partial(_read_unit, documents, partial(_read_groups, mapping)))
    return Cut(why=f"{file.path.name} is compressed, or of a form without units")


def _read_unit(
    documents: Callable[..., Iterator[Logged | Problem]], read: Callable[[Unit], Rows], unit: Unit, seen: UnitNotes
) -> Iterator[Logged | Problem]:
    for made in documents(rows=partial(read, unit)):
        if isinstance(made, Logged):
            made = replace(made, doc_id=made.line)
            seen.places.append(made.doc_id)
            if made.id is not None:
                seen.ids.append(mark_id(made.id))
        yield made


def _read_lines(unit: Unit) -> Rows:
    """The rows of a range of bytes; the place of a row is its first byte."""
    for byte, line in read_range(unit):
        content = line.removeprefix(MARK).strip() if byte == 0 else line.strip()
        if content:
            row = read_json_row(unit.path, Record(byte, byte, content))
            yield row if isinstance(row, TableRow) else replace(row, line=count_lines(unit.path, byte) + 1)


def _cut_groups(path: Path, size: int) -> tuple[Unit, ...]:
    """Cut a Parquet file at its row groups, several together where they are small."""
    held = require("pyarrow.parquet", "parquet").ParquetFile(path).metadata
    total, ends, bytes_held = held.num_rows, [0], 0
    row = 0
    for at in range(held.num_row_groups):
        group = held.row_group(at)
        row, bytes_held = row + group.num_rows, bytes_held + group.total_byte_size
        if bytes_held >= size or at == held.num_row_groups - 1:
            ends, bytes_held = [*ends, row], 0
    return tuple(Unit(path, "rows", a, b, total) for a, b in itertools.pairwise(ends))


def _read_groups(mapping: ColumnMap, unit: Unit) -> Rows:
    """The rows of a range of rows that begins and ends with row groups; the place of a row is its number."""
    parquet = require("pyarrow.parquet", "parquet").ParquetFile(unit.path)
    groups, row = [], 0
    for at in range(parquet.metadata.num_row_groups):
        if unit.start <= row and (unit.stop is None or row < unit.stop):
            groups.append(at)
        row += parquet.metadata.row_group(at).num_rows
    return read_arrow_rows(unit.path, read_batches(unit.path, row_groups=groups, size=BATCH), mapping, unit.start)
