"""The table for people, drawn by rich: as wide as a terminal allows, as wide as it likes in a pipe.

Its cells that name a number are those of the tables of every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.task import MetricKey
from evalcore.shell.output.terminal.grid import LONGEST, Grid, GridColumn, Page, Section, draw_page, lay_grid
from evalcore.shell.output.terminal.number_rows import NumberRow
from evalcore.shell.output.terminal.number_text import (
    ARROWS,
    FILTER,
    METRIC,
    TASKS,
    VALUE,
    N,
    head_interval,
    indent_name,
    name_number,
    show_interval,
    show_number,
    show_share,
)
from evalcore.shell.output.terminal.screen import PIPE, Screen
from evalcore.shell.safety.safe_text import shorten

T = TypeVar("T")

MOST_NOTES = 20


class NumberName(Struct, frozen=True):
    """A number in a table: the task or group as the table calls it, metric and filter, and how deep it stands."""

    task: str
    key: MetricKey
    depth: int = 0


def build_name_columns(
    name: Callable[[T], NumberName], rows: Iterable[T] = (), *, filtered: bool = False, joined: bool = False
) -> tuple[GridColumn[T], ...]:
    """The cells that name a number, in one order everywhere: task, filter and metric; ``joined``, all in one.

    There is no column of filters where no row has any, unless there is one anyway (``filtered``).

    >>> columns = build_name_columns(lambda row: NumberName(row, MetricKey("em", "raw"), 1), ["t"])
    >>> [(column.head, column.cell("t")) for column in columns]
    [('Tasks', ' - t'), ('Filter', 'raw'), ('Metric', 'em')]
    >>> [column.cell("t") for column in build_name_columns(lambda row: NumberName(row, MetricKey("em")), joined=True)]
    ['t/em']
    """

    def join(row: T) -> str:
        number = name(row)
        whole = name_number(number.task, number.key) if number.key.metric else number.task
        return indent_name(number.depth, whole)

    def indent(row: T) -> str:
        return indent_name(name(row).depth, name(row).task)

    if joined:
        return (GridColumn(TASKS, join, number=False),)
    filters = GridColumn[T](FILTER, lambda row: name(row).key.filter, number=False)
    return (
        GridColumn(TASKS, indent, number=False, once=True),
        *((filters,) if filtered or any(name(row).key.filter != "none" for row in rows) else ()),
        GridColumn(METRIC, lambda row: name(row).key.metric, number=False),
    )


class TableShape(Struct, frozen=True):
    """How a table is drawn: how many columns it leaves out, decimals of values and of intervals, the space between.

    Four decimals are lm-eval's; with fewer, large numbers have fewer still. ``plain``: no column of filters if all
    are ``none``, and a short head for the interval. Names are folded to no less than what is ``readable``, as long as
    there is a narrower table; at last all names of a number are ``joined`` in one column.
    """

    dropped: int = 0
    value: int = 4
    interval: int = 4
    gap: int = 2
    plain: bool = False
    readable: int = LONGEST
    joined: bool = False


SHAPES = (
    TableShape(),
    TableShape(1),
    TableShape(2),
    TableShape(2, 3, 3, 1),
    TableShape(2, 3, 3, 1, True),
    TableShape(2, 3, 2, 1, True),
    TableShape(2, 3, 2, 1, True, readable=10),
    TableShape(2, 3, 2, 1, True, readable=14, joined=True),
)
"""From the widest to the narrowest. Value, interval and n stay. Names that still do not fit are folded; where numbers
do not fit either, the terminal wraps the lines.
"""

Columns = tuple[GridColumn[NumberRow], ...]


VERSION: GridColumn[NumberRow] = GridColumn("Version", lambda row: row.version, number=False, once=True, spare=1)
SHOTS: GridColumn[NumberRow] = GridColumn(
    "n-shot", lambda row: "" if row.shots is None else str(row.shots), once=True, spare=2
)


def _name_row(row: NumberRow) -> NumberName:
    return NumberName(row.alias, MetricKey(row.metric, row.filter), row.depth)


def _list_name_columns(*, joined: bool) -> Columns:
    """The names of a number and, as lm-eval has them between these, its task's version and shots."""
    task, *key = build_name_columns(_name_row, filtered=True, joined=joined)
    return (task, VERSION, key[0], SHOTS, key[1]) if key else (task,)


def _build_columns(confidence: float, shape: TableShape) -> Columns:
    level, interval = show_share(confidence), head_interval(confidence)
    dash = " to " if shape.interval == 4 else "–"
    return (
        *_list_name_columns(joined=shape.joined),
        GridColumn("", lambda row: ARROWS[row.higher]),
        GridColumn(
            VALUE,
            lambda row: _show_value(row, shape.value),
            "the model's score; ↑ higher is better, ↓ lower is better",
        ),
        GridColumn(
            "interval" if shape.plain else interval,
            lambda row: show_interval(row.low, row.high, shape.interval, dash),
            f"about {level} of intervals made this way contain the score on all documents like these",
        ),
        GridColumn(
            N,
            lambda row: "" if row.n is None else f"{row.n:,}",
            "documents (or questions) that the value rests on; for a group, those of all its tasks",
        ),
        GridColumn(
            "unscored",
            lambda row: f"{_count_unscored(row):,}" if _count_unscored(row) else "",
            "documents without a score, not counted in n; the reasons are below",
        ),
    )


def render_table(
    rows: Sequence[NumberRow],
    *,
    confidence: float = 0.95,
    losses: Sequence[str] = (),
    notes: Sequence[str] = (),
    title: str = "",
    screen: Screen = PIPE,
) -> str:
    """The table, what its columns mean, what was lost, what to know.

    >>> print(render_table([NumberRow(name="t", alias="t", metric="acc", value=0.5, n=4)]).splitlines()[0].split())
    ['Tasks', 'Version', 'Filter', 'n-shot', 'Metric', 'Value', '95', '%', 'interval', 'n']
    """
    grids = [_build_grid(rows, confidence, shape) for shape in SHAPES]
    page = Page(
        grids=tuple(replace(grid, legend=()) for grid in grids),
        title=(title,) if title else (),
        legend=grids[0].legend,  # the same, with the head of the widest, for all
        sections=(
            *_list_section("Documents without a score:", losses, "red"),
            *_list_section("Warnings:", notes, "yellow"),
        ),
    )
    return draw_page(page, screen)


def _count_unscored(row: NumberRow) -> int:
    return row.failed + row.unscorable


def _show_value(row: NumberRow, decimals: int) -> str:
    return show_number(row.value, decimals, none="N/A" if row.metric and row.measures else row.reason)


def _build_grid(rows: Sequence[NumberRow], confidence: float, shape: TableShape) -> Grid:
    unfiltered = shape.plain and all(row.filter in ("", "none") for row in rows)
    silent = {*([FILTER] if unfiltered else []), *([] if any(map(_count_unscored, rows)) else ["unscored"])}
    columns = [
        column
        for column in _build_columns(confidence, shape)
        if column.head not in silent and (not column.spare or column.spare > shape.dropped)
    ]
    return lay_grid(
        columns,
        rows,
        bold=lambda row: row.group,
        place=lambda row: (row.name, row.depth),
        gap=shape.gap,
        readable=shape.readable,
    )


def _list_section(head: str, lines: Sequence[str], style: str) -> tuple[Section, ...]:
    """A headed list, cut where it gets too long to read."""
    more = (f"and {len(lines) - MOST_NOTES} more, in results.json",) if len(lines) > MOST_NOTES else ()
    return (Section(head, (*map(shorten, lines[:MOST_NOTES]), *more), style),) if lines else ()
