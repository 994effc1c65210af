"""The table for people, drawn by rich: as wide as a terminal allows, as wide as it likes in a pipe."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from msgspec import Struct
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evalcore.shell.output.flat import ARROWS, shown_interval, shown_number, shown_percent
from evalcore.shell.output.rows import Row
from evalcore.shell.output.text import shorten, visible

__all__ = ["render_table"]

UNBOUNDED = 100_000
MOST_NOTES = 20
DEEPEST = 20


class Column(Struct, frozen=True):
    """A column: its head, its cells (of a row, in so many decimals), and whether they are numbers: never folded."""

    head: str
    cell: Callable[[Row, int], str]
    number: bool = False


COLUMNS = (
    Column("Tasks", lambda row, _: " " * min(row.depth, DEEPEST) + "- " * bool(row.depth) + row.alias),
    Column("Version", lambda row, _: row.version),
    Column("Filter", lambda row, _: row.filter),
    Column("n-shot", lambda row, _: "" if row.shots is None else str(row.shots), number=True),
    Column("Metric", lambda row, _: row.metric),
    Column("", lambda row, _: ARROWS[row.higher], number=True),
    Column("Value", lambda row, decimals: _value(row, decimals), number=True),
    Column(
        "interval", lambda row, decimals: shown_interval(row, decimals, " to " if decimals == 4 else "–"), number=True
    ),
    Column("n", lambda row, _: "" if row.n is None else f"{row.n:,}", number=True),
    Column("unscored", lambda row, _: f"{_unscored(row):,}" if _unscored(row) else "", number=True),
)
ONCE = ("Tasks", "Version", "n-shot")
"""Said in the first row of a task and not again."""

SHAPES = (((), 4, 2), (("Version",), 4, 2), (("Version", "n-shot"), 4, 2), (("Version", "n-shot"), 3, 1))
"""What is left out, how many decimals, and how much space between columns: from the widest to the narrowest.

Names that still do not fit are folded; where numbers do not fit either, the terminal wraps the lines.
"""

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
        return "N/A" if row.metric else row.reason
    return shown_number(row.value, decimals)


def _fitting(console: Console, rows: Sequence[Row], heads: Sequence[str], level: str) -> Table:
    """The widest shape that fits."""
    unbounded = console.options.update(max_width=UNBOUNDED)
    for dropped, decimals, gap in SHAPES:
        table = _table(rows, [head for head in heads if head not in dropped], level, decimals, gap)
        size = Measurement.get(console, unbounded, table)
        if size.maximum <= console.width:
            break
    console.width = max(console.width, size.minimum)
    return table


def _table(rows: Sequence[Row], heads: Sequence[str], level: str, decimals: int, gap: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    columns = [column for column in COLUMNS if column.head in heads]
    for column in columns:
        head = Text(f"{level} interval" if column.head == "interval" else column.head)
        if column.number:
            table.add_column(head, justify="right", no_wrap=True)
        else:
            table.add_column(head, overflow="fold", min_width=6)
    before: tuple[str, int] | None = None
    for row in rows:
        again, before = (row.name, row.depth) == before, (row.name, row.depth)
        texts = ["" if again and column.head in ONCE else column.cell(row, decimals) for column in columns]
        style = "bold" if row.group else ""
        table.add_row(*(Text(shorten(visible(text), 200), style=style) for text in texts))
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
