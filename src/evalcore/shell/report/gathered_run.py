"""A recorded run with all that a page shows of it: its logs, its scores, and the report they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.task_report import Estimand, list_estimands
from evalcore.core.records.errors import RAISED
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.report import Report
from evalcore.core.records.score import Scored
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.compare.run_sides import ReadKeys, build_search, read_run
from evalcore.shell.explain.run_source import RunSource, build_run_report, find_policy, name_log
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import LogTask
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.runs.run_record import Recorded, find_closing
from evalcore.shell.run.folder import earlier_run

CONFIDENCE = 0.95


class GatheredRun(Struct, frozen=True):
    """A run by its name and letter, ``read`` by these keys. ``report`` is empty where there are results alone."""

    name: str
    label: str
    source: RunSource
    recorded: Recorded
    report: Report
    confidence: float
    read: Mapping[str, object] = FrozenDict()

    @property
    def results(self) -> Mapping[str, object]:
        return self.recorded.results

    @property
    def tables(self) -> Tables:
        """The rules by which its numbers are made."""
        return self.recorded.tables or find_policy(self.results) or EVALCORE

    def list_estimands(self, scored: Scored) -> tuple[Estimand, ...]:
        """The columns of one of its tasks, each with what closes it; none where the rules refuse one."""
        closing = find_closing(self.recorded, self.confidence)
        named = replace(scored, tables=self.tables.name)
        try:
            return tuple(list_estimands(named, inference=closing, clusters=None, tables=self.tables))
        except RAISED:
            return ()

    @property
    def folder(self) -> Path | None:
        """Its own folder; none of a file that lies among others, which need not be about it."""
        path = self.source.path
        if path.is_dir():
            return path
        return path.parent if (path.parent / "results.json").is_file() else None

    @property
    def noted(self) -> Mapping[str, object]:
        """What ``run.json`` says of it."""
        return {} if self.folder is None else earlier_run(self.folder)

    @property
    def sampled(self) -> bool:
        """Whether its scores are known by document."""
        return bool(self.recorded.side.scored)


def gather_runs(
    paths: Sequence[Path], names: Sequence[str], labels: Sequence[str], confidence: float | None, reading: ReadKeys
) -> tuple[GatheredRun, ...]:
    """Gather runs, each path read once; without a ``confidence``, each at its own."""
    read = {path: _read_source(path, **reading) for path in dict.fromkeys(paths)}
    named = zip(paths, names, labels, strict=True)
    gathered = (_gather_run(*read[path], name, label, confidence) for path, name, label in named)
    return tuple(replace(run, read=FrozenDict(reading)) for run in gathered)


def _read_source(path: Path, **reading: Unpack[ReadKeys]) -> tuple[RunSource, Recorded]:
    recorded, searched = read_run(path, **reading), build_search(reading)
    logs: tuple[LogTask, ...] = ()
    if recorded.side.scored:
        opened = open_logs([path], mapping=searched.columns, scores=True, readers=searched.readers)
        logs = tuple(name_log(log, recorded.files) for log in opened)
    told = (*recorded.warnings, *(one for log in logs for one in log.warnings))
    return RunSource(path, logs, recorded, tuple(dict.fromkeys(told)), searched), recorded


def _gather_run(source: RunSource, recorded: Recorded, name: str, label: str, confidence: float | None) -> GatheredRun:
    own = find_part(recorded.results, "evalcore").get("confidence")
    level = confidence or (own if isinstance(own, float) and 0 < own < 1 else CONFIDENCE)
    report = build_run_report(recorded, find_closing(recorded, level))
    return GatheredRun(name, label, source, replace(recorded, name=name), report, level)
