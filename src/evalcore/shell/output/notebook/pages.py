"""Pages, grids and blocks, which terminals and Markdown show as well, as HTML."""

from __future__ import annotations

from collections.abc import Iterable

from evalcore.core.notebook.markup import (
    Html,
    HtmlTable,
    escape_text,
    write_fold,
    write_line,
    write_list,
    write_panel,
    write_table,
    write_text,
)
from evalcore.shell.output.explain.blocks import Block
from evalcore.shell.output.terminal.grid import Grid, Page

MOST_BLOCKS = 40
"""Of a page; what is left out is counted."""


def write_page(page: Page) -> Html:
    """A page: its widest grid, and what its columns mean for those who ask.

    >>> grid = Grid(heads=("task",), numbers=(False,), lines=(("<i>",),))
    >>> "&lt;i&gt;" in write_page(Page(grids=(grid,), title=("A",)))
    True
    """
    title, *more = page.title or ("",)
    grid = page.grids[0]
    sections = (write_list(section.lines, section.head) for section in page.sections)
    lines = (*map(write_line, more), write_grid(grid), write_meaning((*grid.legend, *page.legend)), *sections)
    return write_panel(title, *lines, lead=page.lead)


def write_grid(grid: Grid) -> Html:
    """The grid as a table."""
    lines = tuple(tuple(map(escape_text, line)) for line in grid.lines)
    return write_table(HtmlTable(heads=grid.heads, numbers=grid.numbers, lines=lines, bold=grid.bold))


def write_meaning(legend: Iterable[str]) -> Html:
    """What the columns of a table mean, folded away."""
    return write_fold("What the columns mean", write_list(legend, most=40))


def write_blocks(blocks: Iterable[Block]) -> Html:
    """Headed blocks one under the other.

    >>> write_blocks([Block("Answer", text=("<b>",))])[-27:]
    '&lt;b&gt;</pre></div></div>'
    """
    given = list(blocks)
    shown = [_write_block(block) for block in given[:MOST_BLOCKS]]
    left = len(given) - len(shown)
    return write_panel("", *shown, write_line(f"and {left:,} more parts, not shown" if left > 0 else "", small=True))


def _write_block(block: Block) -> Html:
    grid = write_grid(block.grid) if block.grid is not None else Html("")
    return write_panel(
        block.head, *map(write_line, block.notes), write_text(block.text), grid, write_meaning(block.legend)
    )
