"""How runs side by side are shown: a table of renderers by name."""

from __future__ import annotations

from collections.abc import Iterator

from pyrsistent import PMap, pmap

from evalcore.shell.compare.compare import Compared
from evalcore.shell.output.compare.export import write_csv, write_json
from evalcore.shell.output.compare.footnotes import sections_of
from evalcore.shell.output.compare.matrix import matrix_page
from evalcore.shell.output.compare.pair_table import pair_page
from evalcore.shell.output.terminal.grid import Page, draw_page, write_markdown
from evalcore.shell.output.terminal.screen import Renderer

__all__ = ["RENDERERS", "page_of"]


def page_of(compared: Compared) -> Page:
    """A row for every number of two runs, a matrix for every number of more."""
    return pair_page(compared) if len(compared.runs) == 2 else matrix_page(compared)


def _notes(compared: Compared) -> Iterator[str]:
    """What could not be compared."""
    yield from (f"warning: {line}" for line in compared.lead)
    yield from (f"{section.head} {line}" for section in sections_of(compared) for line in section.lines)


RENDERERS: PMap[str, Renderer[Compared]] = pmap(
    {
        "table": Renderer(lambda compared, screen: draw_page(page_of(compared), screen)),
        "markdown": Renderer(lambda compared, _: write_markdown(page_of(compared))),
        "json": Renderer(lambda compared, _: write_json(compared)),
        "csv": Renderer(lambda compared, _: write_csv(compared), _notes),
    }
)
