"""A grid of cells drawn for people: by rich in a terminal or a pipe, or as Markdown."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap, pmap
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evalcore.shell.output.terminal.flat import escape_markdown, write_markdown_table
from evalcore.shell.output.terminal.screen import PIPE, Renderer, Screen, plain_form
from evalcore.shell.output.terminal.wrap import fold_name, share_width
from evalcore.shell.safety.safe_text import shorten, visible

T = TypeVar("T")

UNBOUNDED = 100_000
LONGEST = 200


class Grid(Struct, frozen=True, kw_only=True):
    """Heads and lines of cells. ``numbers`` says which columns are never folded; ``bold`` which lines stand out;
    ``gap`` is the space between columns; ``legend`` says what the columns mean. Names are folded to no less than what
    is ``readable`` as long as there is a narrower grid.
    """

    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    lines: tuple[tuple[str, ...], ...]
    bold: tuple[bool, ...] = ()
    gap: int = 2
    legend: tuple[str, ...] = ()
    readable: int = 14


class GridColumn(Struct, Generic[T], frozen=True):
    """A column: its head, its cell of a row, what it means, and whether it holds numbers.

    ``spare`` says when it gives way to a narrow screen (0: never). ``once``: its cell is empty where the row above is
    of the same task.
    """

    head: str
    cell: Callable[[T], str]
    meaning: str = ""
    number: bool = True
    spare: int = 0
    once: bool = False


def lay_grid(
    columns: Sequence[GridColumn[T]],
    rows: Sequence[T],
    *,
    bold: Callable[[T], bool],
    place: Callable[[T], object] = lambda row: object(),
    gap: int = 2,
    readable: int = 14,
) -> Grid:
    """The cells of every row, and what the columns mean; rows of the same ``place`` are of the same task.

    >>> letter = GridColumn("letter", lambda text: text[0], once=True)
    >>> size = GridColumn("size", lambda text: str(len(text)), "how long it is")
    >>> grid = lay_grid([letter, size], ["a", "abc"], bold=bool, place=lambda text: text[0])
    >>> grid.lines, grid.legend
    ((('a', '1'), ('', '3')), ('size: how long it is',))
    """
    places = [place(row) for row in rows]
    again = [at > 0 and places[at] == places[at - 1] for at in range(len(rows))]
    return Grid(
        heads=tuple(column.head for column in columns),
        numbers=tuple(column.number for column in columns),
        lines=tuple(
            tuple("" if same and column.once else column.cell(row) for column in columns)
            for row, same in zip(rows, again, strict=True)
        ),
        bold=tuple(map(bold, rows)),
        gap=gap,
        legend=tuple(f"{column.head}: {column.meaning}" for column in columns if column.meaning),
        readable=readable,
    )


class Section(Struct, frozen=True):
    """A headed list under a grid."""

    head: str
    lines: tuple[str, ...]
    style: str = ""


class Page(Struct, frozen=True, kw_only=True):
    """The same grid from the widest to the narrowest, what stands over it, what holds for all of it, what to know.

    ``lead`` are warnings that come before all else.
    """

    grids: tuple[Grid, ...]
    lead: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


def draw_page(page: Page, screen: Screen = PIPE) -> str:
    """The page as text.

    >>> grid = Grid(heads=("task", "n"), numbers=(False, True), lines=(("t", "12"),))
    >>> print(draw_page(Page(grids=(grid,), legend=("n: documents",))))
    task   n
    ────────
    t     12
    <BLANKLINE>
    n: documents
    <BLANKLINE>
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=screen.width or UNBOUNDED,
        force_terminal=screen.colour,
        color_system="standard" if screen.colour else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for line in page.lead:
        console.print(Text(f"Warning: {shorten(visible(line), LONGEST * 4)}", style="bold red"))
    if page.lead:
        console.print()
    for line in page.title:
        console.print(Text(visible(line), style="bold"))
    if page.title:
        console.print()
    grid, table = _fit_grid(console, page.grids)
    console.print(table)
    console.width = screen.width or UNBOUNDED
    legend = (*grid.legend, *page.legend)
    if legend:
        console.print()
    for line in legend:
        console.print(Text(visible(line), style="dim"))
    for section in page.sections:
        console.print()
        console.print(Text(visible(section.head), style=section.style))
        for line in section.lines:
            console.print(Text("- " + shorten(visible(line), LONGEST * 2)))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def build_renderers(page_of: Callable[[T], Page]) -> PMap[str, Renderer[T]]:
    """The forms of what has a page: drawn for a screen, and in Markdown."""
    return pmap(
        {
            "table": Renderer(lambda record, screen: draw_page(page_of(record), screen), read=True),
            "markdown": plain_form(lambda record: write_markdown(page_of(record))),
        }
    )


def _fit_grid(console: Console, grids: Sequence[Grid]) -> tuple[Grid, Table]:
    """The widest grid that fits without names folded to less than is readable; else the narrowest."""
    unbounded = console.options.update(max_width=UNBOUNDED)
    for grid in map(_make_safe, grids):
        size = Measurement.get(console, unbounded, _build_table(grid)).maximum
        names = [at for at, number in enumerate(grid.numbers) if not number]
        widths = [max(cell_len(line[at]) for line in (grid.heads, *grid.lines)) for at in names]
        if size - sum(widths) + sum(min(width, grid.readable) for width in widths) <= console.width:
            break
    kept = dict(zip(names, share_width(widths, console.width - size + sum(widths)), strict=True))
    console.width = max(console.width, size - sum(widths) + sum(kept.values()))
    lines = tuple(
        tuple(fold_name(cell, kept[at]) if at in kept else cell for at, cell in enumerate(line)) for line in grid.lines
    )
    return grid, _build_table(replace(grid, lines=lines))


def _make_safe(grid: Grid) -> Grid:
    lines = tuple(tuple(shorten(visible(cell), LONGEST) for cell in line) for line in grid.lines)
    return replace(grid, heads=tuple(map(visible, grid.heads)), lines=lines)


def _build_table(grid: Grid) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, grid.gap - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
    )
    for head, number in zip(grid.heads, grid.numbers, strict=True):
        table.add_column(Text(head), justify="right" if number else "left", no_wrap=True)
    for line, bold in zip(grid.lines, grid.bold or (False,) * len(grid.lines), strict=True):
        table.add_row(*(Text(cell, style="bold" if bold else "") for cell in line))
    return table


def write_markdown(page: Page) -> str:
    r"""The page as Markdown: its widest grid, and lists.

    >>> grid = Grid(heads=("task", "n"), numbers=(False, True), lines=(("a|b", "12"),))
    >>> print(write_markdown(Page(grids=(grid,), title=("A: x",))))
    A: x
    <BLANKLINE>
    |task|  n|
    |----|--:|
    |a\|b| 12|
    <BLANKLINE>
    """
    grid = page.grids[0]
    heads, *lines = ([escape_markdown(shorten(cell, LONGEST)) for cell in line] for line in (grid.heads, *grid.lines))
    table = write_markdown_table(heads, lines, grid.numbers)
    legend = Section("", (*grid.legend, *page.legend))
    lists = (
        "\n".join([*([f"{escape_markdown(one.head)}\n"] if one.head else []), *map(_write_item, one.lines)])
        for one in (legend, *page.sections)
        if one.lines
    )
    title = "  \n".join(map(escape_markdown, page.title))
    lead = "\n\n".join(f"> **Warning:** {escape_markdown(shorten(line, LONGEST * 4))}" for line in page.lead)
    return "\n\n".join(filter(None, (lead, title, table, *lists))) + "\n"


def _write_item(line: str) -> str:
    return "- " + escape_markdown(shorten(line, LONGEST * 2))
