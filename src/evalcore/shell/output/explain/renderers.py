"""How a document, and two scorings of the same answers, are shown: tables of renderers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pyrsistent import PMap, pmap

from evalcore.shell.explain.diff import Diffed
from evalcore.shell.explain.explain import Explained
from evalcore.shell.output.explain.blocks import Block, draw_blocks, write_blocks
from evalcore.shell.output.explain.diff_data import describe_diff
from evalcore.shell.output.explain.diff_page import build_diff
from evalcore.shell.output.explain.document_data import describe_document
from evalcore.shell.output.explain.document_page import build_document
from evalcore.shell.output.terminal.screen import Renderer, plain_form
from evalcore.shell.safety.strict_json import dump_page

T = TypeVar("T")


def _build_renderers(blocks: Callable[[T], Iterable[Block]], data: Callable[[T], object]) -> PMap[str, Renderer[T]]:
    return pmap(
        {
            "table": Renderer(lambda record, screen: draw_blocks(blocks(record), screen)),
            "markdown": plain_form(lambda record: write_blocks(blocks(record))),
            "json": plain_form(lambda record: dump_page(data(record))),
        }
    )


RENDERERS: PMap[str, Renderer[Explained]] = _build_renderers(build_document, describe_document)
DIFF_RENDERERS: PMap[str, Renderer[Diffed]] = _build_renderers(build_diff, describe_diff)
