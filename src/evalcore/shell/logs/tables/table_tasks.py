"""The rows of each task of a table with a task column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.tables.table_rows import TableRow

HELD = 32 << 20
"""Up to this much text is held in memory, so that a table of many tasks is read once; a larger one once per task."""

Rows = Iterator[TableRow | Problem]


def split_tasks(read: Callable[[], Rows], column: str) -> Mapping[str, Callable[[], Rows]]:
    """Split rows by task, in the order of their first rows. Rows without a task are reported under the first.

    >>> from evalcore.shell.logs.json_records import Record
    >>> rows = [TableRow(Record(at, 0, b""), {"t": name}) for at, name in enumerate("aba")]
    >>> {name: len(list(part())) for name, part in split_tasks(lambda: iter(rows), "t").items()}
    {'a': 2, 'b': 1}
    """
    held: dict[str, list[TableRow | Problem]] = {}
    astray: list[TableRow | Problem] = []
    size = 0
    for one in read():
        name = _task_of(one, column)
        size += weigh_row(one)
        rows = astray if name is None else held.setdefault(name, [])
        if size <= HELD:
            rows.append(one)
    first = next(iter(held), "")
    if size > HELD:
        return {name: partial(_of_task, read, column, name, name == first) for name in held}
    return {name: partial(iter, [*astray, *rows] if name == first else rows) for name, rows in held.items()}


def _of_task(read: Callable[[], Rows], column: str, task: str, first: bool) -> Rows:
    for one in read():
        name = _task_of(one, column)
        if name == task or (name is None and first):
            yield one


def _task_of(row: TableRow | Problem, column: str) -> str | None:
    given = row.cells.get(column) if isinstance(row, TableRow) else None
    return str(given) if isinstance(given, int | str) else None


def weigh_row(row: TableRow | Problem) -> int:
    """Estimate the bytes that a row takes in memory.

    >>> from evalcore.shell.logs.json_records import Record
    >>> weigh_row(TableRow(Record(1, 0, b""), {"a": "x" * 100, "b": ["y" * 10]}))
    238
    """
    return len(row.at.data) + _weigh(row.cells) if isinstance(row, TableRow) else 64


def _weigh(cell: object) -> int:
    if isinstance(cell, Mapping):
        return 64 + sum(map(_weigh, cell.values()))
    if isinstance(cell, list | tuple):
        return 64 + sum(map(_weigh, cell))
    return len(cell) if isinstance(cell, str | bytes) else 64
