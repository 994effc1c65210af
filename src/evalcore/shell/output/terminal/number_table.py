"""The table for people, drawn by rich: as wide as a terminal allows, as wide as it likes in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

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

MOST_NOTES = 20


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


NAMES: Columns = (
    GridColumn(TASKS, lambda row: indent_name(row.depth, row.alias), number=False, once=True),
    GridColumn("Version", lambda row: row.version, number=False, once=True, spare=1),
    GridColumn(FILTER, lambda row: row.filter, number=False),
    GridColumn("n-shot", lambda row: "" if row.shots is None else str(row.shots), once=True, spare=2),
    GridColumn(METRIC, lambda row: row.metric, number=False),
)
JOINED: GridColumn[NumberRow] = GridColumn(TASKS, lambda row: indent_name(row.depth, _join_names(row)), number=False)


def _join_names(row: NumberRow) -> str:
    return name_number(row.alias, MetricKey(row.metric, row.filter)) if row.metric else row.alias


def _build_columns(confidence: float, shape: TableShape) -> Columns:
    level, interval = show_share(confidence), head_interval(confidence)
    dash = " to " if shape.interval == 4 else "–"
    return (
        *([JOINED] if shape.joined else NAMES),
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
