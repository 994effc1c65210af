"""Sample logs in parts: each document from its row under the leading filter; the rows of other filters are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.doubled_keys import check_row
from evalcore.shell.logs.json_records import MARK, Record, locate_problem
from evalcore.shell.logs.lm_eval.forms import read_asked
from evalcore.shell.logs.lm_eval.rows import AskedRow
from evalcore.shell.logs.lm_eval.samples import LARGEST, Reading, SampleLog, build_logged, learn_reading
from evalcore.shell.logs.log import Logged, Problem
from evalcore.shell.logs.units.unit import Cut, Unit, UnitNotes, count_lines, cut_lines, has_lines, read_range


def cut_samples(log: SampleLog, leading: object) -> Cut:
    """Cut a log at its lines. Documents are read from their rows under the ``leading`` filter, that of the first."""
    if log.past is not None:
        return Cut(why="recorded scores under all filters are held in memory")
    if not isinstance(leading, str):
        return Cut(why="its rows do not name their filters")
    packed = next((path for path in log.paths if not has_lines(path)), None)
    if packed is not None:
        return Cut(why=f"{packed.name} is compressed, or no file of lines")
    return Cut(partial(_cut_each, log.paths), partial(_read_unit, log, leading))


def _cut_each(paths: Sequence[Path], size: int) -> tuple[Unit, ...]:
    return tuple(unit for path in paths for unit in cut_lines(path, size))


def _read_unit(log: SampleLog, leading: str, unit: Unit, seen: UnitNotes) -> Iterator[Logged | Problem]:
    """Read the documents of a unit, and count the rows of every filter."""
    reading: Reading | None = None
    for byte, line in read_range(unit):
        content = line.removeprefix(MARK).strip() if byte == 0 else line.strip()
        if not content:
            continue
        at = Record(0, byte, content)
        try:
            check_row(content, byte)
            row = read_asked(content, log.output_type, prompts=log.requests)
            if row.filter is None or not -LARGEST < row.key < LARGEST:
                raise EvalError(f"expected a row with its filter and a document's number, got {row.filter}, {row.key}")
            seen.count(row.filter, row.key, row.raw)
            if row.filter != leading:
                continue
            reading = learn_reading(log, _read_first(log)) if reading is None else reading
            made = build_logged(row, reading, log, at, unit.path)
        except EvalError as wrong:
            yield locate_problem(unit.path, Record(count_lines(unit.path, byte) + 1, byte, b""), wrong)
            continue
        yield made


def _read_first(log: SampleLog) -> AskedRow:
    """The first row of a log that can be read, which says how targets are written."""
    for at in (at for path in log.paths for at in log.records(path)):
        if isinstance(at, Record):
            with suppress(EvalError):
                return read_asked(at.data, log.output_type, prompts=log.requests)
    raise EvalError(f"{log.paths[0]}: no row can be read")
