"""How runs side by side are shown: a table of renderers by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TextIO

from msgspec.structs import replace

from evalcore.shell.output.compare.export import write_csv, write_json
from evalcore.shell.output.compare.footnotes import sections_of
from evalcore.shell.output.compare.line_order import Compared
from evalcore.shell.output.compare.matrix import matrix_page
from evalcore.shell.output.compare.pair_table import pair_page
from evalcore.shell.output.terminal.grid import Page, draw_page, write_markdown
from evalcore.shell.output.terminal.safe_text import shorten, visible
from evalcore.shell.output.terminal.show import terminal_width, wants_colour, write_text

__all__ = ["RENDERERS", "page_of", "show_comparison"]


def page_of(compared: Compared) -> Page:
    """A row for every number of two runs, a matrix for every number of more."""
    return pair_page(compared) if len(compared.runs) == 2 else matrix_page(compared)


RENDERERS: Mapping[str, Callable[[Compared], str]] = {
    "table": lambda shown: draw_page(page_of(shown), width=shown.width, colour=shown.colour),
    "markdown": lambda shown: write_markdown(page_of(shown)),
    "json": write_json,
    "csv": write_csv,
}


def show_comparison(
    compared: Compared, form: str = "table", *, to: TextIO | None = None, aside: TextIO | None = None
) -> None:
    """Print a form. CSV has no place for what could not be compared: beside it that goes to stderr."""
    stream, beside = to or sys.stdout, aside or sys.stderr
    shown = replace(compared, width=terminal_width(stream), colour=wants_colour(stream))
    write_text(stream, RENDERERS[form](shown))
    if form == "csv":
        rest = (f"{section.head} {line}" for section in sections_of(compared) for line in section.lines)
        told = [*(f"warning: {line}" for line in compared.lead), *rest]
        write_text(beside, "".join(f"{shorten(visible(line))}\n" for line in told))
