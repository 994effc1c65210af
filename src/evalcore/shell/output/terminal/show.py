"""How a run's results are shown: a table of renderers by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TextIO

from msgspec import Struct, field
from pyrsistent import PMap, pmap

from evalcore.core.records.report import Report
from evalcore.shell.output.terminal.flat import render_csv, render_markdown
from evalcore.shell.output.terminal.losses import lost_of, told_losses
from evalcore.shell.output.terminal.notes import notes_of
from evalcore.shell.output.terminal.number_rows import NumberRow, rows_of
from evalcore.shell.output.terminal.screen import PIPE, Renderer, Screen, plain_form, print_form, render_form
from evalcore.shell.safety.safe_text import visible
from evalcore.shell.safety.strict_json import json_text

__all__ = ["RENDERERS", "Shown", "render", "show", "shown_of"]


class Shown(Struct, frozen=True, kw_only=True):
    """All that can be shown of a run."""

    rows: tuple[NumberRow, ...]
    results: Mapping[str, object] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    title: str = ""
    folder: str = ""
    files: tuple[str, ...] = ()


def shown_of(
    report: Report,
    results: Mapping[str, object] | None = None,
    *,
    warnings: Iterable[str] = (),
    confidence: float = 0.95,
    title: str = "",
    folder: str = "",
    files: Iterable[str] = (),
) -> Shown:
    """A report, its results and the warnings of its run, ready for any renderer."""
    return Shown(
        rows=rows_of(report),
        results=results or {},
        losses=told_losses(lost_of(report)),
        notes=notes_of(report, warnings),
        confidence=confidence,
        title=title,
        folder=folder,
        files=tuple(files),
    )


def _table(shown: Shown, screen: Screen) -> str:
    from evalcore.shell.output.terminal.number_table import render_table  # draws with rich, which others do without

    where = f"\nWritten to {visible(shown.folder)}{': ' * bool(shown.files)}{', '.join(shown.files)}\n"
    text = render_table(
        shown.rows,
        confidence=shown.confidence,
        losses=shown.losses,
        notes=shown.notes,
        title=shown.title,
        screen=screen,
    )
    return text + where if shown.folder else text


def _losses(shown: Shown) -> tuple[str, ...]:
    return (*shown.losses, *(f"warning: {note}" for note in shown.notes))


RENDERERS: PMap[str, Renderer[Shown]] = pmap(
    {
        "table": Renderer(_table),
        "json": plain_form(lambda shown: json_text(shown.results), _losses),
        "csv": plain_form(lambda shown: render_csv(shown.rows), _losses),
        "markdown": plain_form(lambda shown: render_markdown(shown.rows, confidence=shown.confidence), _losses),
        "path": plain_form(lambda shown: visible(shown.folder) + "\n", _losses),
    }
)
"""Only the table has a place for losses and warnings."""


def render(shown: Shown, form: str, screen: Screen = PIPE) -> str:
    """The text of a form.

    >>> render(Shown(rows=(), results={"results": {}}), "json")
    '{\\n  "results": {}\\n}\\n'
    """
    return render_form(RENDERERS, form, shown, screen)


def show(shown: Shown, form: str = "table", *, to: TextIO | None = None, aside: TextIO | None = None) -> None:
    """Print a form, and beside it what it has no place for."""
    print_form(RENDERERS, form, shown, to=to, aside=aside)
