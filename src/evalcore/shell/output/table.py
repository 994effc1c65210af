"""The table for people, drawn by rich: as wide as a terminal allows, as wide as it likes in a pipe."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from msgspec import Struct
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evalcore.shell.output.flat import ARROWS, shown_interval, shown_number, shown_percent
from evalcore.shell.output.folding import fold, share_width
from evalcore.shell.output.rows import BYPASS, Row
from evalcore.shell.output.text import shorten, visible

__all__ = ["render_table"]

UNBOUNDED = 100_000
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
    out = io.StringIO()
    console = Console(
        file=out,
        width=width or UNBOUNDED,
        force_terminal=colour,
        color_system="standard" if colour else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    if title:
        console.print(Text(visible(title), style="bold"))
    lost = any(map(_unscored, rows))
    heads = [column.head for column in COLUMNS if column.head != "unscored" or lost]
    console.print(_fitting(console, rows, heads, shown_percent(confidence)))
    console.width = width or UNBOUNDED
    _legend(console, heads, shown_percent(confidence))
    _listed(console, "Documents without a score:", losses, "red")
    _listed(console, "Warnings:", notes, "yellow")
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def _unscored(row: Row) -> int:
    return row.failed + row.unscorable


def _value(row: Row, decimals: int) -> str:
    if row.value is None:
        return row.reason if row.metric in ("", BYPASS) else "N/A"
    return shown_number(row.value, decimals)


def _fitting(console: Console, rows: Sequence[Row], heads: Sequence[str], level: str) -> Table:
    """The widest shape that fits; else the narrowest, its names folded."""
    unbounded = console.options.update(max_width=UNBOUNDED)
    for shape in SHAPES:
        columns = _columns(rows, heads, shape)
        lines = _lines(rows, columns, shape)
        size = Measurement.get(console, unbounded, table := _table(rows, columns, lines, level, shape)).maximum
        if size <= console.width:
            return table
    names = [at for at, column in enumerate(columns) if not column.number]
    widths = [max(map(cell_len, (columns[at].head, *(line[at] for line in lines)))) for at in names]
    kept = dict(zip(names, share_width(widths, console.width - size + sum(widths)), strict=True))
    console.width = max(console.width, size - sum(widths) + sum(kept.values()))
    folded = [[fold(cell, kept[at]) if at in kept else cell for at, cell in enumerate(line)] for line in lines]
    return _table(rows, columns, folded, level, shape)


def _columns(rows: Sequence[Row], heads: Sequence[str], shape: Shape) -> list[Column]:
    silent = ("Filter",) if shape.plain and all(row.filter in ("", "none") for row in rows) else ()
    return [column for column in COLUMNS if column.head in heads and column.head not in (*shape.dropped, *silent)]


def _lines(rows: Sequence[Row], columns: Sequence[Column], shape: Shape) -> list[list[str]]:
    """The cells of every row, safe to print."""
    out: list[list[str]] = []
    before: tuple[str, int] | None = None
    for row in rows:
        again, before = (row.name, row.depth) == before, (row.name, row.depth)
        texts = ["" if again and column.head in ONCE else column.cell(row, shape) for column in columns]
        out.append([shorten(visible(text), 200) for text in texts])
    return out


def _table(
    rows: Sequence[Row], columns: Sequence[Column], lines: Sequence[Sequence[str]], level: str, shape: Shape
) -> Table:
    space = (0, shape.gap - 1, 0, 0)
    table = Table(box=box.SIMPLE_HEAD, padding=space, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        ranged = column.head == "interval" and not shape.plain
        head = Text(f"{level} interval" if ranged else column.head)
        table.add_column(head, justify="right" if column.number else "left", no_wrap=True)
    for row, line in zip(rows, lines, strict=True):
        table.add_row(*(Text(cell, style="bold" if row.group else "") for cell in line))
    return table


def _legend(console: Console, heads: Sequence[str], level: str) -> None:
    console.print()
    for head, meaning in LEGEND:
        if head in heads:
            name = f"{level} interval" if head == "interval" else head
            console.print(Text(f"{name}: {meaning.format(level=level)}", style="dim"))


def _listed(console: Console, head: str, lines: Sequence[str], style: str) -> None:
    """A headed list, each entry on a line of its own, cut where it gets too long to read."""
    if not lines:
        return
    console.print()
    console.print(Text(head, style=style))
    for line in lines[:MOST_NOTES]:
        console.print(Text("- " + shorten(visible(line))))
    if len(lines) > MOST_NOTES:
        console.print(Text(f"- and {len(lines) - MOST_NOTES} more, in results.json"))
