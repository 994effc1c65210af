"""How a run's results are shown: a table of renderers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from msgspec import Struct, field
from pyrsistent import PMap, pmap

from evalcore.core.ledger import Ledger
from evalcore.core.records.report import Report
from evalcore.shell.output.terminal.flat import render_csv, render_markdown, render_runs_csv
from evalcore.shell.output.terminal.losses import find_losses, tell_ledger, tell_losses
from evalcore.shell.output.terminal.notes import collect_notes
from evalcore.shell.output.terminal.number_rows import NumberRow, list_rows
from evalcore.shell.output.terminal.screen import PIPE, Renderer, Screen, plain_form, print_form, render_form
from evalcore.shell.safety.safe_text import visible
from evalcore.shell.safety.strict_json import dump_page


class Shown(Struct, frozen=True, kw_only=True):
    """All that can be shown of a run. ``files`` are those in its ``folder``, ``placed`` what is said of them."""

    rows: tuple[NumberRow, ...]
    results: Mapping[str, object] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    title: str = ""
    folder: str = ""
    placed: str = "Written to"
    files: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    usage: str = ""


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
    usage: str = "",
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
        usage=usage,
    )


def _render_table(shown: Shown, screen: Screen) -> str:
    from evalcore.shell.output.terminal.number_table import render_table  # draws with rich, which others do without

    where = f"\n{shown.placed} {visible(shown.folder)}{': ' * bool(shown.files)}{', '.join(shown.files)}\n"
    text = render_table(
        shown.rows,
        confidence=shown.confidence,
        losses=shown.losses,
        notes=shown.notes,
        title=shown.title,
        screen=screen,
    )
    counted = f"\n{tell_ledger(shown.ledger)}\n" if shown.ledger.documents else ""
    counted += f"{shown.usage}\n" if shown.usage else ""
    return text + counted + where if shown.folder else text + counted


def _list_losses(shown: Shown) -> tuple[str, ...]:
    return (*shown.losses, *(f"warning: {note}" for note in shown.notes))


RENDERERS: PMap[str, Renderer[Shown]] = pmap(
    {
        "table": Renderer(_render_table, quiet="path", read=True),
        "json": plain_form(lambda shown: dump_page(shown.results), _list_losses),
        "csv": plain_form(lambda shown: render_csv(shown.rows), _list_losses),
        "markdown": plain_form(lambda shown: render_markdown(shown.rows, confidence=shown.confidence), _list_losses),
        "path": plain_form(lambda shown: visible(shown.folder) + "\n", _list_losses),
    }
)
"""Only the table has a place for losses and warnings."""


Several = tuple[Shown, ...]


def _tell_apart(write: Callable[[Shown], str]) -> Callable[[Several, Screen], str]:
    """A form of several runs: each as it is alone, under its folder."""

    def text(several: Several, screen: Screen) -> str:
        alone = len(several) == 1
        return "\n".join(write(one) if alone else f"{visible(one.folder)}\n\n{write(one)}" for one in several)

    return text


def _list_all_losses(several: Several) -> Iterable[str]:
    return (line for one in several for line in _list_losses(one))


SEVERAL: PMap[str, Renderer[Several]] = pmap(
    {
        "table": Renderer(lambda several, screen: "\n".join(_render_table(one, screen) for one in several)),
        "json": plain_form(
            lambda several: dump_page(several[0].results if len(several) == 1 else [one.results for one in several]),
            _list_all_losses,
        ),
        "csv": plain_form(
            lambda several: (
                render_csv(several[0].rows)
                if len(several) == 1
                else render_runs_csv({one.folder: one.rows for one in several})
            ),
            _list_all_losses,
        ),
        "markdown": Renderer(
            _tell_apart(lambda one: render_markdown(one.rows, confidence=one.confidence)), _list_all_losses
        ),
    }
)
"""The same of several runs in one text; of one, the same text."""


def render(shown: Shown, form: str, screen: Screen = PIPE) -> str:
    """The text of a form.

    >>> render(Shown(rows=(), results={"results": {}}), "json")
    '{\\n  "results": {}\\n}\\n'
    """
    return render_form(RENDERERS, form, shown, screen)


def show(shown: Shown, form: str = "table", *, to: TextIO | None = None, aside: TextIO | None = None) -> None:
    """Print a form, and beside it what it has no place for."""
    print_form(RENDERERS, form, shown, to=to, aside=aside)
