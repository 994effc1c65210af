"""A finished run shown again, from its folder or its results alone: what ``run`` printed at its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from evalcore.core.ledger import Ledger
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord, thaw_dict
from evalcore.core.records.report import Report
from evalcore.shell.config.values import RunPath
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.results import list_tasks
from evalcore.shell.logs.runs.run_record import check_run_path
from evalcore.shell.logs.runs.source import find_results
from evalcore.shell.output.files.results import UNFINISHED, RunFacts, title_run
from evalcore.shell.output.files.run_files import list_files
from evalcore.shell.output.terminal.losses import Lost, tell_losses
from evalcore.shell.output.terminal.number_rows import NumberRow
from evalcore.shell.output.terminal.show import Shown, prepare_shown, render
from evalcore.shell.report.recorded_report import read_ledger, read_losses, read_report
from evalcore.shell.run.failures import tell_failures
from evalcore.shell.run.folder import earlier_run
from evalcore.shell.run.questions.usage import Usage, tell_usage

CONFIDENCE = 0.95


class ShownRun(FrozenRecord, frozen=True, kw_only=True):
    """A run as its results have it: ``report`` its numbers as records, ``results`` the file, ``path`` where that is.

    ``unfinished`` are tasks that have no numbers yet, as the run goes on or was stopped; ``failed`` those it went
    without, with the reason. ``print`` shows the table.
    """

    path: Path
    report: Report
    results: Mapping[str, object]
    title: str = ""
    confidence: float = CONFIDENCE
    ledger: Ledger = Ledger()
    losses: tuple[Lost, ...] = ()
    warnings: tuple[str, ...] = ()
    failed: Mapping[str, str] = FrozenDict()
    unfinished: tuple[str, ...] = ()
    usage: Usage | None = None

    def __repr__(self) -> str:
        return f"ShownRun({str(self.path)!r}, {len(self.report.tasks)} tasks)"

    def __str__(self) -> str:
        return render(self.shown(), "table").rstrip("\n")

    def shown(self) -> Shown:
        """All that can be shown of it."""
        folder = self.path.parent
        shown = prepare_shown(
            self.report,
            thaw_dict(self.results),
            warnings=self.warnings,
            confidence=self.confidence,
            title=self.title,
            folder=str(folder),
            files=list_files(folder, list_tasks(self.results)) or (self.path.name,),
            ledger=self.ledger,
            usage=tell_usage(self.usage),
        )
        shots = find_part(self.results, "n-shot")
        known = tuple(row if row.name in shots else replace(row, shots=None) for row in shown.rows)
        late = (NumberRow(name=name, alias=name, reason="not run yet") for name in self.unfinished)
        losses = (*_tell_unfinished(self.unfinished), *tell_failures(self.failed), *tell_losses(self.losses))
        return replace(shown, rows=(*known, *late), losses=losses, placed="Files in")


def show_run(run: RunPath) -> ShownRun:
    """Read a run to show it again: a run folder, an lm-eval output, or a results file alone.

    The numbers are those of the results file, to the last bit; intervals that it lacks are made from its errors.

    >>> show_run("no/such/run")
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder; expected an evalcore run folder, ...
    """
    file, results, told = find_results(check_run_path(run))
    own, report = find_part(results, "evalcore"), read_report(results)
    about = {one for task in report.tasks for one in task.warnings}
    about |= {one for group in report.groups for one in group.warnings}
    level, late, given = own.get("confidence"), own.get(UNFINISHED), own.get("warnings")
    noted = [str(one) for one in given if one not in about] if isinstance(given, list | tuple) else []
    return ShownRun(
        path=file,
        report=report,
        results=results,
        title=title_results(results),
        confidence=level if isinstance(level, float) and 0 < level < 1 else CONFIDENCE,
        ledger=read_ledger(results),
        losses=read_losses(results),
        warnings=(*told, *noted),
        failed={name: str(why) for name, why in find_part(own, "failed_tasks").items()},
        unfinished=tuple(map(str, late)) if isinstance(late, list | tuple) else (),
        usage=_read_usage(file.parent),
    )


def _tell_unfinished(names: tuple[str, ...]) -> tuple[str, ...]:
    many = f"{len(names)} task{'s have' if len(names) > 1 else ' has'} no numbers yet"
    return (f"this run is unfinished, {many}; the same `evalcore run` goes on",) if names else ()


def title_results(results: Mapping[str, object]) -> str:
    """What was run, as far as the results say it."""
    config, policy = find_part(results, "config"), find_part(results, "evalcore").get("policy")
    model = config.get("model")
    if not isinstance(model, str):
        return ""
    args, limit, generation = (config.get(key) for key in ("model_args", "limit", "gen_kwargs"))
    return title_run(
        RunFacts(
            model=model,
            model_args=args if isinstance(args, Mapping | str) else {},
            limit=float(limit) if isinstance(limit, int | float) else None,
            gen_kwargs=generation if isinstance(generation, Mapping | str) else None,
            policy=policy if isinstance(policy, str) else "evalcore",
        )
    )


def _read_usage(folder: Path) -> Usage | None:
    """What answers took, as ``run.json`` beside the results has it."""
    try:
        return msgspec.convert(earlier_run(folder).get("usage"), Usage | None)
    except (msgspec.ValidationError, EvalError):
        return None
