"""What ``run`` and ``score`` return."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from evalcore.core.ledger import Ledger
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord, thaw_dict
from evalcore.core.records.report import Report
from evalcore.shell.logs.log import Problem
from evalcore.shell.output.terminal.screen import DisplayedResult
from evalcore.shell.output.terminal.show import Shown, prepare_shown, render
from evalcore.shell.run.failures import tell_failures
from evalcore.shell.run.questions.usage import Usage, tell_usage


class RunResult(DisplayedResult, FrozenRecord, frozen=True, kw_only=True):
    """A finished run, or logs that were scored again.

    ``report`` has the numbers as records, ``results`` what ``results.json`` holds, ``folder`` and ``files`` where that
    was written, ``ledger`` what became of the documents. ``complete`` is false if more of them lack a score than
    ``allow_failures`` allows (a record that could not be read, listed in ``problems``, counts as one), or if a task
    could not be built (``failed``, by name with the reason). ``warnings`` are all of them, ``early_warnings`` those
    shown before anything was asked; ``bounds`` says between what numbers lie, whatever the documents without
    a score would have got. ``usage`` is what the answers took: requests, tokens, seconds and, with prices, cost.

    >>> str(RunResult(report=Report(tasks=()), results={}, title="nothing")).splitlines()[0]
    'nothing'
    """

    report: Report
    results: Mapping[str, object]
    title: str = ""
    confidence: float = 0.95
    folder: Path | None = None
    files: tuple[str, ...] = ()
    ledger: Ledger = Ledger()
    complete: bool = True
    warnings: tuple[str, ...] = ()
    early_warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    bounds: tuple[str, ...] = ()
    unknown_shots: frozenset[str] = frozenset()
    failed: Mapping[str, str] = FrozenDict()
    usage: Usage | None = None

    def __repr__(self) -> str:
        where = f", written to {self.folder}" if self.folder is not None else ""
        return f"RunResult({self.title!r}, {len(self.report.tasks)} tasks{where})"

    def __str__(self) -> str:
        return render(self.shown(), "table").rstrip("\n")

    def shown(self, *, early: bool = True) -> Shown:
        """All that can be shown of it; without ``early`` warnings that were shown before."""
        shown = prepare_shown(
            self.report,
            thaw_dict(self.results),
            warnings=[one for one in self.warnings if early or one not in self.early_warnings],
            confidence=self.confidence,
            title=self.title,
            folder="" if self.folder is None else str(self.folder),
            files=self.files,
            ledger=self.ledger,
            usage=tell_usage(self.usage),
        )
        rows = tuple(replace(row, shots=None) if row.name in self.unknown_shots else row for row in shown.rows)
        return replace(shown, rows=rows, losses=(*tell_failures(self.failed), *self.bounds, *shown.losses))
