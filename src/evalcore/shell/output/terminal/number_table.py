"""The table for people, drawn by rich: as wide as a terminal allows, as wide as it likes in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from evalcore.shell.output.terminal.flat import ARROWS, shown_interval, shown_number, shown_percent
from evalcore.shell.output.terminal.grid import LONGEST, Grid, Page, Section, draw_page
from evalcore.shell.output.terminal.number_rows import BYPASS, Row
from evalcore.shell.output.terminal.safe_text import shorten

__all__ = ["render_table"]

MOST_NOTES = 20
DEEPEST = 20


class Shape(Struct, frozen=True):
    """How a table is drawn: what it leaves out, decimals of values and of intervals, the space between columns.

    Four decimals are lm-eval's; with fewer, large numbers have fewer still. ``plain``: no column of filters if all
    are ``none``, and a short head for the interval.
    """

    dropped: tuple[str, ...] = ()
    value: int = 4
    interval: int = 4
    gap: int = 2
    plain: bool = False


NUMBERS = ("Version", "n-shot")
SHAPES = (
    Shape(),
    Shape(("Version",)),
    Shape(NUMBERS),
    Shape(NUMBERS, 3, 3, 1),
    Shape(NUMBERS, 3, 3, 1, True),
    Shape(NUMBERS, 3, 2, 1, True),
)
"""From the widest to the narrowest. Names that still do not fit are folded; where numbers do not fit either, the
terminal wraps the lines.
"""


class Column(Struct, frozen=True):
    """A column: its head, its cells (of a row, in a shape), and whether they are numbers: never folded."""

    head: str
    cell: Callable[[Row, Shape], str]
    number: bool = False


COLUMNS = (
    Column("Tasks", lambda row, _: " " * min(row.depth, DEEPEST) + "- " * bool(row.depth) + row.alias),
    Column("Version", lambda row, _: row.version),
    Column("Filter", lambda row, _: row.filter),
    Column("n-shot", lambda row, _: "" if row.shots is None else str(row.shots), number=True),
    Column("Metric", lambda row, _: row.metric),
    Column("", lambda row, _: ARROWS[row.higher], number=True),
    Column("Value", lambda row, shape: _value(row, shape.value), number=True),
    Column(
        "interval",
        lambda row, shape: shown_interval(row, shape.interval, " to " if shape.interval == 4 else "–"),
        number=True,
    ),
    Column("n", lambda row, _: "" if row.n is None else f"{row.n:,}", number=True),
    Column("unscored", lambda row, _: f"{_unscored(row):,}" if _unscored(row) else "", number=True),
)
ONCE = ("Tasks", "Version", "n-shot")
"""Said in the first row of a task and not again."""

LEGEND = (
    ("Value", "the model's score; ↑ higher is better, ↓ lower is better"),
    ("interval", "the score on endlessly many documents like these would lie in here, with {level} confidence"),
    ("n", "how many documents (or questions) the value rests on; a group's are those of all its tasks"),
    ("unscored", "documents without a score, which n leaves out; the reasons are below"),
)


def render_table(
    rows: Sequence[Row],
    *,
    confidence: float = 0.95,
    losses: Sequence[str] = (),
    notes: Sequence[str] = (),
    title: str = "",
    width: int | None = None,
    colour: bool = False,
) -> str:
    """The table, what its columns mean, what was lost, what to know. ``width=None``: for a file or a pipe.

    >>> print(render_table([Row(name="t", alias="t", metric="acc", value=0.5, n=4)]).splitlines()[0].split())
    ['Tasks', 'Version', 'Filter', 'n-shot', 'Metric', 'Value', '95', '%', 'interval', 'n']
    """
    lost, level = any(map(_unscored, rows)), shown_percent(confidence)
    heads = [column.head for column in COLUMNS if column.head != "unscored" or lost]
    page = Page(
        grids=tuple(_grid(rows, heads, level, shape) for shape in SHAPES),
        title=(title,) if title else (),
        legend=tuple(
            f"{_head(head, level)}: {meaning.format(level=level)}" for head, meaning in LEGEND if head in heads
        ),
        sections=(*_listed("Documents without a score:", losses, "red"), *_listed("Warnings:", notes, "yellow")),
    )
    return draw_page(page, width=width, colour=colour)


def _unscored(row: Row) -> int:
    return row.failed + row.unscorable


def _value(row: Row, decimals: int) -> str:
    if row.value is None:
        return row.reason if row.metric in ("", BYPASS) else "N/A"
    return shown_number(row.value, decimals)


def _grid(rows: Sequence[Row], heads: Sequence[str], level: str, shape: Shape) -> Grid:
    silent = ("Filter",) if shape.plain and all(row.filter in ("", "none") for row in rows) else ()
    columns = [column for column in COLUMNS if column.head in heads and column.head not in (*shape.dropped, *silent)]
    return Grid(
        heads=tuple(column.head if shape.plain else _head(column.head, level) for column in columns),
        numbers=tuple(column.number for column in columns),
        lines=_lines(rows, columns, shape),
        bold=tuple(row.group for row in rows),
        gap=shape.gap,
        readable=LONGEST,  # names are folded only where nothing else can be left out
    )


def _head(head: str, level: str) -> str:
    return f"{level} interval" if head == "interval" else head


def _lines(rows: Sequence[Row], columns: Sequence[Column], shape: Shape) -> tuple[tuple[str, ...], ...]:
    """The cells of every row."""
    out: list[tuple[str, ...]] = []
    before: tuple[str, int] | None = None
    for row in rows:
        again, before = (row.name, row.depth) == before, (row.name, row.depth)
        out.append(tuple("" if again and column.head in ONCE else column.cell(row, shape) for column in columns))
    return tuple(out)


def _listed(head: str, lines: Sequence[str], style: str) -> tuple[Section, ...]:
    """A headed list, cut where it gets too long to read."""
    more = (f"and {len(lines) - MOST_NOTES} more, in results.json",) if len(lines) > MOST_NOTES else ()
    return (Section(head, (*map(shorten, lines[:MOST_NOTES]), *more), style),) if lines else ()
