"""How plans for the next run are shown: a table of renderers by name."""

from __future__ import annotations

from pyrsistent import PMap, pmap

from evalcore.shell.compare.power import Planned
from evalcore.shell.output.power.plan_data import write_csv, write_json
from evalcore.shell.output.power.plan_page import page_of
from evalcore.shell.output.terminal.grid import draw_page, write_markdown
from evalcore.shell.output.terminal.screen import Renderer

__all__ = ["RENDERERS"]

RENDERERS: PMap[str, Renderer[Planned]] = pmap(
    {
        "table": Renderer(lambda planned, screen: draw_page(page_of(planned), screen)),
        "markdown": Renderer(lambda planned, _: write_markdown(page_of(planned))),
        "json": Renderer(lambda planned, _: write_json(planned)),
        "csv": Renderer(lambda planned, _: write_csv(planned)),
    }
)
