"""Two recorded scorings side by side, the changes that are to be shown traced by either side's own filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, Unpack

from msgspec import Struct

from evalcore.core.records.errors import EvalError, require_known, unknown
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.report import Report
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricKey, Task
from evalcore.shell.compare.run_names import Aliases, agree_aliases, find_aliased
from evalcore.shell.compare.run_sides import LogKeys, build_search
from evalcore.shell.config.values import Names, RunPath, list_names
from evalcore.shell.explain.agreement import Traced, trace_logged
from evalcore.shell.explain.answers import hash_answers, pick_documents
from evalcore.shell.explain.backends import BackendDiff, are_apart, diff_backends, name_backend
from evalcore.shell.explain.changes import Change, TaskDiff, diff_task, pair_documents
from evalcore.shell.explain.run_source import (
    RunSource,
    build_run_report,
    find_inference,
    find_tables,
    find_task,
    open_run,
)
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.log import Logged
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.terminal.screen import DisplayedResult
from evalcore.shell.safety.timer import BUDGET, allow_seconds


class Detail(Struct, frozen=True):
    """A change that is shown: the document, and its filter as either side ran it."""

    task: str
    change: Change
    logged: Logged
    before: Traced | None
    after: Traced | None


class NumberChange(Struct, frozen=True):
    """A number of a task or group in both scorings."""

    name: str
    key: MetricKey
    group: bool
    before: float | None
    after: float | None

    @property
    def moved(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before


class Diffed(DisplayedResult, FrozenRecord, frozen=True):
    """Two scorings: the tasks of both, what only one has, the numbers before and after, and the changes to show.

    ``stages`` says where two backends part; None where it was not looked for.
    """

    a: RunSource
    b: RunSource
    tasks: tuple[TaskDiff, ...]
    tasks_a: tuple[str, ...]
    tasks_b: tuple[str, ...]
    numbers: tuple[NumberChange, ...]
    details: tuple[Detail, ...]
    stages: BackendDiff | None = None

    @property
    def aliases(self) -> Aliases:
        return _agree_aliases(self.a, self.b)

    @property
    def changed(self) -> bool:
        """Whether anything differs: a verdict, an answer, or what either side has at all."""
        parts = (
            one.changes or one.answered or one.only_a or one.only_b or one.keys_a or one.keys_b for one in self.tasks
        )
        parted = self.stages is not None and any(task.parted for task in self.stages.tasks)
        return bool(self.tasks_a or self.tasks_b or parted) or any(map(bool, parts))


def diff_runs(
    a: RunPath,
    b: RunPath,
    *,
    task: Names = (),
    metric: Names = (),
    limit: int | None = 20,
    doc_timeout: float = BUDGET,
    stages: bool = False,
    **reading: Unpack[LogKeys],
) -> Diffed:
    """Compare two scorings; the keys are the flags of ``evalcore diff``.

    ``limit`` is how many changes of each task are looked at closely. ``stages`` looks for where documents part, which
    is done anyway where the runs are of two backends.
    """
    tasks, metrics = list_names(task), list_names(metric)
    run_a, run_b = _open_both(a, b, tasks, reading)
    recorded = _require_recorded(run_a), _require_recorded(run_b)
    tasks = find_aliased(tasks, _agree_aliases(run_a, run_b))
    of_a, of_b = ({one.task.name: one for one in run.side.scored} for run in recorded)
    names = [name for name in of_a if name in of_b and _fits(name, tasks)]
    _refuse_unknown(
        [*of_a, *of_b], tasks, [str(c.key) for s in (*of_a.values(), *of_b.values()) for c in s.columns], metrics
    )
    diffs = tuple(_diff_task(run_a, run_b, of_a[name], of_b[name], metrics) for name in names)
    keys = {(diff.task, key) for diff in diffs for key in diff.keys}
    before, after = (build_run_report(run, find_inference(run.results)) for run in recorded)
    with allow_seconds(doc_timeout):
        details = tuple(detail for diff in diffs for detail in _trace_details(run_a, run_b, diff, limit))
    return Diffed(
        run_a,
        run_b,
        diffs,
        tuple(name for name in of_a if name not in of_b and _fits(name, tasks)),
        tuple(name for name in of_b if name not in of_a and _fits(name, tasks)),
        tuple(_list_numbers(before, after, keys, {key for _, key in keys})),
        details,
        _find_stages(run_a, run_b, names, asked=stages),
    )


def _find_stages(a: RunSource, b: RunSource, names: Sequence[str], *, asked: bool) -> BackendDiff | None:
    if not (asked or are_apart(name_backend(a), name_backend(b))):
        return None
    of_a, of_b = (_require_recorded(run).side.documents for run in (a, b))
    return diff_backends(a, b, {name: pair_documents(of_a[name], of_b[name]) for name in names})


def _open_both(a: RunPath, b: RunPath, tasks: Sequence[str], reading: LogKeys) -> tuple[RunSource, RunSource]:
    """Both runs, their documents known by the bytes of their rows if these are the same, else by what they say."""
    ways: tuple[Literal["bytes", "content"], ...] = ("bytes", "content")
    for known_by in ways:
        run_a, run_b = (open_run(parse_path(path), build_search(reading), known_by=known_by) for path in (a, b))
        of_a, of_b = (run.recorded.side.documents if run.recorded is not None else {} for run in (run_a, run_b))
        asked = find_aliased(tasks, _agree_aliases(run_a, run_b))
        if all(of_a[name] == of_b[name] for name in of_a if name in of_b and _fits(name, asked)):
            break
    return run_a, run_b


def _agree_aliases(*runs: RunSource) -> Aliases:
    return agree_aliases(run.recorded.results for run in runs if run.recorded is not None)


def _require_recorded(run: RunSource) -> Recorded:
    if run.recorded is None:
        raise EvalError(f"{run.path}: expected scores by document; {run.warnings[0]}")
    return run.recorded


def _fits(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def _refuse_unknown(names: Sequence[str], globs: Sequence[str], keys: Sequence[str], metrics: Sequence[str]) -> None:
    strange = next((glob for glob in globs if not any(fnmatchcase(name, glob) for name in names)), None)
    if strange is not None:
        raise unknown("task", strange, set(names))
    parsed = [key for text in keys if (key := MetricKey.parse(text)) is not None]
    known = {spelling for key in parsed for spelling in (str(key), key.metric, key.metric.partition("@")[0])}
    require_known("metric", metrics, known)


def _diff_task(a: RunSource, b: RunSource, before: Scored, after: Scored, metrics: Sequence[str]) -> TaskDiff:
    name = before.task.name
    of_a, of_b = _require_recorded(a), _require_recorded(b)
    log_a, log_b = a.log(name), b.log(name)
    hashes = hash_answers(log_a, log_b, (a.find_hashes(log_a), b.find_hashes(log_b)))
    return diff_task(before, after, (of_a.side.documents[name], of_b.side.documents[name]), hashes, metrics)


def _list_numbers(
    a: Report, b: Report, keys: set[tuple[str, MetricKey]], shared: set[MetricKey]
) -> Iterable[NumberChange]:
    """The numbers of tasks, and of groups that both sides have, made of the same tasks."""
    for task in a.tasks:
        for key, estimate in task.estimates:
            if (task.name, key) in keys:
                yield NumberChange(task.name, key, False, estimate.value, b.task(task.name)[key].value)
    others = {group.name: group for group in b.groups}
    for group in a.groups:
        for key, estimate in group.estimates if group.name in others else ():
            other = others[group.name].get(key)
            if other is not None and key in shared and other.group.missing == estimate.group.missing:
                yield NumberChange(group.name, key, True, estimate.value, other.value)


def _trace_details(a: RunSource, b: RunSource, diff: TaskDiff, limit: int | None) -> list[Detail]:
    shown = diff.changes if limit is None else diff.changes[:limit]
    if not shown:
        return []
    before, after = _fetch(a, diff.task, {one.a for one in shown}), _fetch(b, diff.task, {one.b for one in shown})
    tasks = find_task(a, a.log(diff.task)), find_task(b, b.log(diff.task))
    return [
        Detail(
            diff.task,
            one,
            before[one.a],
            _trace_filter(a, tasks[0], before[one.a], one.key.filter),
            _trace_filter(b, tasks[1], after[one.b], one.key.filter),
        )
        for one in shown
    ]


def _fetch(run: RunSource, task: str, wanted: set[int]) -> Mapping[int, Logged]:
    log = run.log(task)
    rows = log.read_some(pick_documents(wanted, run.find_hashes(log)))
    return {one.doc_id: one for one in rows if one.doc_id in wanted}


def _trace_filter(run: RunSource, task: Task | None, logged: Logged, wanted: str) -> Traced | None:
    traces = trace_logged(task, logged, find_tables(run))
    return next((one for one in traces if one.filter == wanted), None)
