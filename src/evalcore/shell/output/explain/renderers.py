"""How a document, and two scorings of the same answers, are shown: tables of renderers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pyrsistent import PMap, pmap

from evalcore.shell.explain.diff import Diffed
from evalcore.shell.explain.explain import Explained
from evalcore.shell.output.explain.blocks import Block, draw_blocks, write_blocks
from evalcore.shell.output.explain.diff_data import diff_data
from evalcore.shell.output.explain.diff_page import diff_blocks
from evalcore.shell.output.explain.document_data import document_data
from evalcore.shell.output.explain.document_page import document_blocks
from evalcore.shell.output.terminal.screen import Renderer, plain_form
from evalcore.shell.safety.strict_json import json_text

__all__ = ["DIFF_RENDERERS", "RENDERERS"]

T = TypeVar("T")


def _block_renderers(blocks: Callable[[T], Iterable[Block]], data: Callable[[T], object]) -> PMap[str, Renderer[T]]:
    return pmap(
        {
            "table": Renderer(lambda record, screen: draw_blocks(blocks(record), screen)),
            "markdown": plain_form(lambda record: write_blocks(blocks(record))),
            "json": plain_form(lambda record: json_text(data(record))),
        }
    )


RENDERERS: PMap[str, Renderer[Explained]] = _block_renderers(document_blocks, document_data)
DIFF_RENDERERS: PMap[str, Renderer[Diffed]] = _block_renderers(diff_blocks, diff_data)
