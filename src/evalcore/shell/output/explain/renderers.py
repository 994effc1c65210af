"""How a document, and two scorings of the same answers, are shown: tables of renderers by name."""

from __future__ import annotations

from pyrsistent import PMap, pmap

from evalcore.shell.explain.diff import Diffed
from evalcore.shell.explain.explain import Explained
from evalcore.shell.output.explain.blocks import draw_blocks, write_blocks
from evalcore.shell.output.explain.diff_data import diff_data
from evalcore.shell.output.explain.diff_page import diff_blocks
from evalcore.shell.output.explain.document_data import document_data
from evalcore.shell.output.explain.document_page import document_blocks
from evalcore.shell.output.terminal.screen import Renderer
from evalcore.shell.safety.strict_json import json_text

__all__ = ["DIFF_RENDERERS", "RENDERERS"]

RENDERERS: PMap[str, Renderer[Explained]] = pmap(
    {
        "table": Renderer(lambda explained, screen: draw_blocks(document_blocks(explained), screen)),
        "markdown": Renderer(lambda explained, _: write_blocks(document_blocks(explained))),
        "json": Renderer(lambda explained, _: json_text(document_data(explained))),
    }
)
DIFF_RENDERERS: PMap[str, Renderer[Diffed]] = pmap(
    {
        "table": Renderer(lambda diffed, screen: draw_blocks(diff_blocks(diffed), screen)),
        "markdown": Renderer(lambda diffed, _: write_blocks(diff_blocks(diffed))),
        "json": Renderer(lambda diffed, _: json_text(diff_data(diffed))),
    }
)
