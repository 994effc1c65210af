"""How a run's results are shown: a table of renderers by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from msgspec import Struct, field

from evalcore.core.records.errors import unknown
from evalcore.core.records.report import Report
from evalcore.shell.output.files.strict_json import dump_json
from evalcore.shell.output.terminal.flat import render_csv, render_markdown
from evalcore.shell.output.terminal.losses import lost_of, told_losses
from evalcore.shell.output.terminal.notes import notes_of
from evalcore.shell.output.terminal.number_rows import Row, rows_of
from evalcore.shell.output.terminal.safe_text import shorten, visible

__all__ = ["RENDERERS", "Shown", "render", "show", "shown_of", "terminal_width", "wants_colour", "write_text"]


class Shown(Struct, frozen=True, kw_only=True):
    """All that can be shown of a run. ``width=None``: not a terminal."""

    rows: tuple[Row, ...]
    results: Mapping[str, object] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    title: str = ""
    folder: str = ""
    files: tuple[str, ...] = ()
    width: int | None = None
    colour: bool = False


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


def _table(shown: Shown) -> str:
    from evalcore.shell.output.terminal.number_table import render_table

    where = f"\nWritten to {visible(shown.folder)}{': ' * bool(shown.files)}{', '.join(shown.files)}\n"
    text = render_table(
        shown.rows,
        confidence=shown.confidence,
        losses=shown.losses,
        notes=shown.notes,
        title=shown.title,
        width=shown.width,
        colour=shown.colour,
    )
    return text + where if shown.folder else text


RENDERERS: Mapping[str, Callable[[Shown], str]] = {
    "table": _table,
    "json": lambda shown: dump_json(shown.results, indent=2) + "\n",
    "csv": lambda shown: render_csv(shown.rows),
    "markdown": lambda shown: render_markdown(shown.rows, confidence=shown.confidence),
    "path": lambda shown: visible(shown.folder) + "\n",
}


def render(shown: Shown, form: str) -> str:
    """The text of a form.

    >>> render(Shown(rows=(), results={"results": {}}), "json")
    '{\\n  "results": {}\\n}\\n'
    """
    if form not in RENDERERS:
        raise unknown("form of output", form, RENDERERS)
    return RENDERERS[form](shown)


def show(shown: Shown, form: str = "table", *, to: TextIO | None = None, aside: TextIO | None = None) -> None:
    """Print a form. Only the table tells losses and warnings itself; beside the others they go to stderr."""
    from msgspec.structs import replace

    stream, beside = to or sys.stdout, aside or sys.stderr
    write_text(stream, render(replace(shown, width=terminal_width(stream), colour=wants_colour(stream)), form))
    if form != "table":
        told = [*shown.losses, *(f"warning: {note}" for note in shown.notes)]
        write_text(beside, "".join(f"{shorten(visible(line))}\n" for line in told))


def terminal_width(stream: TextIO) -> int | None:
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return max(get_terminal_size().columns, 40)


def wants_colour(stream: TextIO) -> bool:
    """As no-color.org asks."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_text(stream: TextIO, text: str) -> None:
    """Write what the stream's encoding can hold, the rest as escapes."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
