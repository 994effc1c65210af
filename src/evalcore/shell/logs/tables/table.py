"""Plain tables with declared columns as tasks: every row a document, or rows of one id its repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import OutputType
from evalcore.shell.data.unpack import strip_packing
from evalcore.shell.logs.head import FileHead, LogFile
from evalcore.shell.logs.json_records import locate_problem
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.logs.log import Logged, LogTask, Opening, Problem, Reader
from evalcore.shell.logs.tables.column_map import ColumnMap, check_columns
from evalcore.shell.logs.tables.row_document import make_document, read_id
from evalcore.shell.logs.tables.table_golds import settle_golds
from evalcore.shell.logs.tables.table_kinds import USUAL, find_kind
from evalcore.shell.logs.tables.table_rows import FORMS, TableRow, may_be_table, read_table
from evalcore.shell.logs.tables.table_tasks import split_tasks, weigh_row
from evalcore.shell.logs.units.table_unit import cut_table

GATHERED = 64 << 20
"""Up to this size, unpacked, the repeats of a document may stand anywhere; beyond it they must be adjacent."""

Rows = Iterator[TableRow | Problem]


def recognise_table(head: FileHead) -> bool:
    """Whether a file has the form of a table."""
    return head.form in FORMS


def open_table(files: Sequence[LogFile], opening: Opening) -> list[LogTask]:
    """Open the task of a table, or one task for each value of its task column, which takes a pass over the table."""
    file, mapping = files[0], opening.columns or ColumnMap()
    path = file.path
    read = partial(read_table, path, file.form, mapping)
    first = next((one for one in read() if isinstance(one, TableRow)), None)
    if first is not None:
        check_columns(mapping, first.cells.keys(), f"{path}:{first.at.line}")
    whole = Path(strip_packing(path.name)).stem
    parts = {whole: read} if mapping.task is None or first is None else split_tasks(read, mapping.task)
    kind = find_kind(read(), mapping)
    return [_task(name, file, kind, mapping, rows) for name, rows in parts.items()]


def _task(name: str, file: LogFile, kind: OutputType, mapping: ColumnMap, rows: Callable[[], Rows]) -> LogTask:
    settled, told = None, ""
    if mapping.gold is not None and mapping.choices is not None:
        settled, told = settle_golds(rows(), mapping, text=file.form == "text" and mapping.loglikelihoods is not None)
    documents = partial(_documents, file.path, mapping, rows, settled, kind)
    warnings = (f"{name}: {told}",) if told else ()
    return LogTask(
        name=name,
        path=file.path,
        output_type=kind,
        rows=documents,
        usual=USUAL[kind] if mapping.choices is None and mapping.loglikelihoods is not None else (),
        warnings=warnings,
        written=mapping.written,
        cut=cut_table(file, mapping, partial(_documents, file.path, mapping, settled=settled, kind=kind)),
    )


def has_columns(file: LogFile, mapping: ColumnMap) -> bool:
    """Whether the first row of a table has all declared columns; a damaged table without readable rows may."""
    one: TableRow | Problem | None = None
    for one in read_table(file.path, file.form, mapping):
        if isinstance(one, TableRow):
            return one.cells.keys() >= set(mapping.columns)
    return one is not None and may_be_table(file, mapping)


TABLE = Reader(
    recognises=recognise_table, opens=open_table, order=100, title="a table", tabular=True, has_columns=has_columns
)


def _documents(
    path: Path, mapping: ColumnMap, rows: Callable[[], Rows], settled: Targets | None, kind: OutputType
) -> Iterator[Logged | Problem]:
    """The documents of one task, numbered in their order."""
    seen: set[int | str] = set()
    number = 0
    for group in _grouped(path, mapping, rows()):
        if isinstance(group, Problem):
            yield group
            continue
        try:
            made = make_document(number, group, mapping, settled, kind)
            if made.id is not None and made.id in seen:
                raise EvalError(_twice(made.id, mapping))
        except EvalError as wrong:
            yield locate_problem(path, group[0].at, wrong)
            continue
        if made.id is not None:
            seen.add(made.id)
        number += 1
        yield made


def _twice(name: object, mapping: ColumnMap) -> str:
    if mapping.repeat is None:
        return f"expected each id once, got {name!r} again; if rows are repeats, name the column that counts (--repeat)"
    return f"expected the repeats of {name!r} one after another in a file of this size, got more; sort it by id"


# --- repeats --------------------------------------------------------------------------------------------------------


def _grouped(path: Path, mapping: ColumnMap, rows: Rows) -> Iterator[list[TableRow] | Problem]:
    """The rows of each document: one, or all that share an id."""
    if mapping.repeat is None:
        yield from (one if isinstance(one, Problem) else [one] for one in rows)
        return
    size = 0
    groups: dict[int | str, list[TableRow]] = {}
    for one in rows:
        if isinstance(one, Problem):
            yield one
            continue
        try:
            name = read_id(one, mapping.id or "")
        except EvalError as wrong:
            yield locate_problem(path, one.at, wrong)
            continue
        size += weigh_row(one)
        if size > GATHERED and name not in groups:
            yield from groups.values()
            groups = {}
        groups.setdefault(name, []).append(one)
    yield from groups.values()
