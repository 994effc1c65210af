"""A recorded run with both of its sides: answers by document, and the scores and groups they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.inference import Inference
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import all_tasks
from evalcore.core.lm_eval.policy import LM_EVAL_0_4_13, POLICIES
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.estimate import Resampling
from evalcore.core.records.report import Report
from evalcore.core.records.task import Task
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.compare.run_names import Aliases, agree_aliases, find_aliased
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.log import AnswerHashes, LogTask
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.runs.run_record import Recorded, find_rule
from evalcore.shell.logs.runs.tasks import build_recorded_task
from evalcore.shell.logs.search import ALL, Searched
from evalcore.shell.logs.tables.column_map import ColumnMap

Plain = Mapping[str, object]

RENAMED = {"task": "task_column"}
NO_SCORES = (
    "contributions and diff need the sample logs of a run of evalcore or lm-eval, with the scores of all documents; "
    "`evalcore score {} -o DIR` makes one"
)
USUAL = "nothing says how this table is scored: it is traced by what `score` does with it if not told otherwise"


class RunSource(Struct, frozen=True):
    """A run: its tasks with their answers, and its scores; None where only answers were recorded."""

    path: Path
    logs: tuple[LogTask, ...]
    recorded: Recorded | None
    warnings: tuple[str, ...]
    searched: Searched = ALL

    def log(self, name: str | None) -> LogTask:
        """The task of that name; without a name, the only one there is."""
        if name is None and len(self.logs) == 1:
            return self.logs[0]
        names = [one.name for one in self.logs]
        if name is None:
            raise EvalError(f"{self.path} has {len(names)} tasks: say which by --task. There are {', '.join(names)}")
        (meant,) = (name,) if name in names else find_aliased([name], self.aliases)
        if meant not in names:
            raise self._unknown(meant, names)
        return self.logs[names.index(meant)]

    @property
    def aliases(self) -> Aliases:
        return agree_aliases([] if self.recorded is None else [self.recorded.results])

    def find_hashes(self, log: LogTask) -> AnswerHashes | None:
        """The hashes of a log's bytes, if its scores were read so and of the same files."""
        read = () if self.recorded is None else self.recorded.files.get(log.name, ())
        same = {one.resolve() for one in read} == {one.resolve() for one in log.paths}
        return self.recorded.hashes.get(log.name) if self.recorded is not None and same else None

    def _unknown(self, name: str, names: Sequence[str]) -> EvalError:
        """No such task: a group of the run, whose tasks are meant, or no name of it at all."""
        trees = self.recorded.side.trees if self.recorded is not None else ()
        groups = list_groups(trees)
        below = [leaf.name for one in groups if one.name == name for leaf in all_tasks(one) if leaf.name in names]
        if below:
            return EvalError(f"--task {name} is a group: say which of its tasks, {', '.join(dict.fromkeys(below))}")
        return unknown("task", name, names, f" - in {self.path}")


def open_run(
    path: Path,
    searched: Searched = ALL,
    *,
    scores: bool = True,
    traced: bool = False,
    known_by: Literal["content", "bytes", "number"] = "content",
) -> RunSource:
    """A run folder, an output of lm-eval, or a log of any format.

    Without ``scores``, documents of sample logs come without what was logged for them, which is held in memory.
    ``traced`` is whether its documents are to be traced by what is known of the run alone; ``known_by`` is what
    tells them from others (see ``Matching``).
    """
    logs = open_logs([path], mapping=searched.columns, scores=scores, readers=searched.readers)
    recorded, missing = _read_scores(path, logs, searched, known_by)
    logs = tuple(name_log(log, recorded.files) for log in logs) if recorded is not None else logs
    warnings = (
        *missing,
        *(recorded.warnings if recorded is not None else ()),
        *((USUAL,) if traced and any(log.reader.tabular for log in logs) else ()),
        *(one for log in logs for one in log.warnings),
    )
    return RunSource(path, logs, recorded, tuple(dict.fromkeys(warnings)), searched)


def name_log(log: LogTask, files: Mapping[str, tuple[Path, ...]]) -> LogTask:
    """A log by the name that its scores have; logs of the same task that are not read with it keep their own."""
    mine = {one.resolve() for one in log.paths}
    if mine == {one.resolve() for one in files.get(log.name, ())}:
        return log
    name = next((task for task, some in files.items() if mine == {one.resolve() for one in some}), log.name)
    return replace(log, name=name)


def _read_scores(
    path: Path, logs: Sequence[LogTask], searched: Searched, known_by: Literal["content", "bytes", "number"]
) -> tuple[Recorded | None, tuple[str, ...]]:
    """The scores of a run, or what is to be done where they cannot be read; of a sample log also why."""
    readers, columns, tables = searched.readers, searched.columns, searched.tables
    try:
        return read_recorded(path, texts=False, columns=columns, readers=readers, tables=tables, known_by=known_by), ()
    except EvalError as wrong:
        ours = all(one.reader.results_beside for one in logs)
        return None, (NO_SCORES.format(_write_arguments(path, searched.columns)) + (f" ({wrong})" if ours else ""),)


def _write_arguments(path: Path, columns: ColumnMap | None) -> str:
    """Write the arguments by which `score` reads a log."""
    named = columns.named if columns is not None else {}
    flags = [(f"--{RENAMED.get(key, key)}", quote(column)) for key, column in named.items()]
    return " ".join([quote(str(path)), *(part for pair in flags for part in pair)])


def find_task(run: RunSource, log: LogTask, file: Path | None = None) -> Task | None:
    """The task that a log was scored by: of a file that was given, else of its results; None where neither says.

    A log that results never lie beside has the task that scoring makes of it.
    """
    if file is not None:
        return read_task_file(file, log, run.searched.tables or EVALCORE)
    if not log.reader.results_beside:
        return Task(log.name, log.output_type)
    sides = run.recorded.side.scored if run.recorded is not None else ()
    scored = next((one.task for one in sides if one.task.name == log.name and one.task.config), None)
    if scored is not None or not log.config:
        return scored
    return build_recorded_task(log.name, log.config, log.output_type, (), tables=run.searched.tables or EVALCORE).task


def read_task_file(path: Path, log: LogTask, tables: Tables) -> Task:
    """The task of a file, as far as it is no code: what is code stays a name and is never run."""
    from evalcore.shell.tasks.description import show_file
    from evalcore.shell.tasks.library.cache import build_index

    config = show_file(build_index([]), str(path)).get("config")
    if not isinstance(config, Mapping):
        raise EvalError(f"{path}: expected the file of a task")
    return build_recorded_task(log.name, config, log.output_type, (), tables=tables).task


def find_tables(run: RunSource) -> tuple[Tables, ...]:
    """The rules that a run was scored by, as far as it or a host says; else ours, then lm-eval's."""
    if run.searched.tables is not None:
        return (run.searched.tables,)
    known = find_policy(run.recorded.results) if run.recorded is not None else None
    return (known,) if known is not None else (EVALCORE, LM_EVAL_0_4_13)


def find_policy(results: Plain) -> Tables | None:
    """The rules that results name as theirs, None where they name none that is known.

    >>> find_policy({}), find_policy({"evalcore": {"policy": "lm-eval-0.4.13"}}).name
    (None, 'lm-eval-0.4.13')
    """
    own = results.get("evalcore")
    named = own.get("policy") if isinstance(own, Mapping) else None
    return POLICIES.get(named) if isinstance(named, str) else None


def find_inference(results: Plain) -> Inference:
    """How a run closed its columns, without errors: values are all that is needed here."""
    return Inference(resampling=Resampling(0), on_unscorable=find_rule(results))


def build_run_report(recorded: Recorded, inference: Inference) -> Report:
    """The numbers of a recorded run, its groups among them, made again by the rules that it names."""
    tables = recorded.tables or find_policy(recorded.results) or EVALCORE
    scored = [replace(one, tables=tables.name) for one in recorded.side.scored]
    tasks = [report_task(one, inference=inference, tables=tables) for one in scored]
    return build_report(tasks, recorded.side.trees, inference=inference, tables=tables)
