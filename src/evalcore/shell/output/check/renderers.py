"""How gates are shown: a table of renderers by name."""

from __future__ import annotations

from pyrsistent import PMap, pmap

from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.gate_data import write_json
from evalcore.shell.output.check.gate_tables import draw_gates, write_gates
from evalcore.shell.output.terminal.screen import Renderer

__all__ = ["RENDERERS"]

RENDERERS: PMap[str, Renderer[Checked]] = pmap(
    {
        "table": Renderer(draw_gates),
        "markdown": Renderer(lambda checked, _: write_gates(checked)),
        "json": Renderer(lambda checked, _: write_json(checked)),
    }
)
