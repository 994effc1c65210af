"""How a run's results are shown: a table of renderers by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TextIO

from msgspec import Struct, field
from pyrsistent import PMap, pmap

from evalcore.core.ledger import Ledger
from evalcore.core.records.report import Report
from evalcore.shell.output.terminal.flat import render_csv, render_markdown
from evalcore.shell.output.terminal.losses import find_losses, tell_ledger, tell_losses
from evalcore.shell.output.terminal.notes import collect_notes
from evalcore.shell.output.terminal.number_rows import NumberRow, list_rows
from evalcore.shell.output.terminal.screen import PIPE, Renderer, Screen, plain_form, print_form, render_form
from evalcore.shell.safety.safe_text import visible
from evalcore.shell.safety.strict_json import dump_page


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
    ledger: Ledger = Ledger()


def prepare_shown(
    report: Report,
    results: Mapping[str, object] | None = None,
    *,
    warnings: Iterable[str] = (),
    confidence: float = 0.95,
    title: str = "",
    folder: str = "",
    files: Iterable[str] = (),
    ledger: Ledger = Ledger(),  # noqa: B008 (it is frozen)
) -> Shown:
    """A report, its results and the warnings of its run, ready for any renderer."""
    return Shown(
        rows=list_rows(report),
        results=results or {},
        losses=tell_losses(find_losses(report)),
        notes=collect_notes(report, warnings),
        confidence=confidence,
        title=title,
        folder=folder,
        files=tuple(files),
        ledger=ledger,
    )


def _render_table(shown: Shown, screen: Screen) -> str:
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
    counted = f"\n{tell_ledger(shown.ledger)}\n" if shown.ledger.documents else ""
    return text + counted + where if shown.folder else text + counted


def _list_losses(shown: Shown) -> tuple[str, ...]:
    return (*shown.losses, *(f"warning: {note}" for note in shown.notes))


RENDERERS: PMap[str, Renderer[Shown]] = pmap(
    {
        "table": Renderer(_render_table, quiet="path"),
        "json": plain_form(lambda shown: dump_page(shown.results), _list_losses),
        "csv": plain_form(lambda shown: render_csv(shown.rows), _list_losses),
        "markdown": plain_form(lambda shown: render_markdown(shown.rows, confidence=shown.confidence), _list_losses),
        "path": plain_form(lambda shown: visible(shown.folder) + "\n", _list_losses),
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
