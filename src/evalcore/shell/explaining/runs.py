"""A recorded run with both of its sides: answers by document, and the scores and groups they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate import Inference
from evalcore.core.closing import report_task
from evalcore.core.errors import EvalError, unknown
from evalcore.core.estimate import Resampling
from evalcore.core.pipeline import build_report
from evalcore.core.policy import POLICIES
from evalcore.core.records import Task
from evalcore.core.reports import Report
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.answers import LogTask, open_logs
from evalcore.shell.recorded import Recorded, read_recorded
from evalcore.shell.recorded.reading import rule_of
from evalcore.shell.recorded.tasks import recorded_task

__all__ = ["Run", "inference_of", "open_run", "policy_of", "report_of", "tables_of", "task_behind", "task_of_file"]

Plain = Mapping[str, object]

SAMPLE_LOGS = ("evalcore", "lm-eval", "lmms-eval")
NO_SCORES = (
    "contributions and diff need the sample logs of a run of evalcore or lm-eval, with the scores of all documents; "
    "`evalcore score {} -o DIR` makes one"
)


class Run(Struct, frozen=True):
    """A run: its tasks with their answers, and its scores; None where only answers were recorded."""

    path: Path
    logs: tuple[LogTask, ...]
    recorded: Recorded | None
    warnings: tuple[str, ...]

    def log(self, name: str | None) -> LogTask:
        """The task of that name; without a name, the only one there is."""
        if name is None and len(self.logs) == 1:
            return self.logs[0]
        names = [one.name for one in self.logs]
        if name is None:
            raise EvalError(f"{self.path} has {len(names)} tasks: say which by --task. There are {', '.join(names)}")
        found = next((one for one in self.logs if one.name == name), None)
        if found is None:
            raise unknown("task", name, names, f" - in {self.path}")
        return found


def open_run(path: Path) -> Run:
    """A run folder, an output of lm-eval, or any log of answers."""
    logs = open_logs([path], scores=True)
    recorded, told = _scores_of(path, logs)
    warnings = (
        *told,
        *(recorded.warnings if recorded is not None else ()),
        *(one for log in logs for one in log.warnings),
    )
    return Run(path, logs, recorded, tuple(dict.fromkeys(warnings)))


def _scores_of(path: Path, logs: Sequence[LogTask]) -> tuple[Recorded | None, tuple[str, ...]]:
    """The scores of a run, or what is to be done where they cannot be read; of a sample log also why."""
    try:
        return read_recorded(path), ()
    except EvalError as wrong:
        ours = all(one.source in SAMPLE_LOGS for one in logs)
        return None, (NO_SCORES.format(path) + (f" ({wrong})" if ours else ""),)


def task_behind(run: Run, log: LogTask, file: Path | None = None) -> Task | None:
    """The task that a log was scored by: of a file that was given, else of its results; None where neither says."""
    if file is not None:
        return task_of_file(file, log)
    sides = run.recorded.side.scored if run.recorded is not None else ()
    scored = next((one.task for one in sides if one.task.name == log.name and one.task.config), None)
    return scored or (recorded_task(log.name, log.config, log.output_type, ()).task if log.config else None)


def task_of_file(path: Path, log: LogTask) -> Task:
    """The task of a file, as far as it is no code: what is code stays a name and is never run."""
    from evalcore.shell.tasks import build_index
    from evalcore.shell.tasks.showing import show_file

    config = show_file(build_index([]), str(path)).get("config")
    if not isinstance(config, Mapping):
        raise EvalError(f"{path}: expected the file of a task")
    return recorded_task(log.name, config, log.output_type, ()).task


def tables_of(run: Run) -> tuple[Tables, ...]:
    """The rules that a run was scored by, as far as it says; else ours, then lm-eval's."""
    known = policy_of(run.recorded.results) if run.recorded is not None else None
    return (known,) if known is not None else tuple(POLICIES[name] for name in ("evalcore", "lm-eval-0.4.13"))


def policy_of(results: Plain) -> Tables | None:
    """The rules that results name as theirs, None where they name none that is known.

    >>> policy_of({}), policy_of({"evalcore": {"policy": "lm-eval-0.4.13"}}).name
    (None, 'lm-eval-0.4.13')
    """
    own = results.get("evalcore")
    named = own.get("policy") if isinstance(own, Mapping) else None
    return POLICIES.get(named) if isinstance(named, str) else None


def inference_of(results: Plain) -> Inference:
    """How a run closed its columns, without errors: values are all that is needed here."""
    return Inference(resampling=Resampling(0), on_unscorable=rule_of(results))


def report_of(recorded: Recorded, inference: Inference) -> Report:
    """The numbers of a recorded run, its groups among them, made again by the rules that it names."""
    tables = policy_of(recorded.results) or EVALCORE
    scored = [replace(one, tables=tables.name) for one in recorded.side.scored]
    tasks = [report_task(one, inference=inference, tables=tables) for one in scored]
    return build_report(tasks, recorded.side.trees, inference=inference, tables=tables)
