"""A recorded run as a side of a comparison: scores by document, documents by content, groups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.clusters import cluster_codes
from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.value import close
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.rules import RuleSource
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.outcome import Rule
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.stats.influence import CR2, ERROR_FORMS
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.names import list_filters
from evalcore.shell.logs.lm_eval.results import Placed, tell_contradictions
from evalcore.shell.logs.log import AnswerHashes
from evalcore.shell.logs.runs.columns import Closed, close_columns
from evalcore.shell.logs.runs.directions import point_column
from evalcore.shell.logs.runs.identity import Matching
from evalcore.shell.logs.runs.log_table import LogTable, read_log_table
from evalcore.shell.logs.runs.shards import pool_source
from evalcore.shell.logs.runs.source import RunFiles, RunLog
from evalcore.shell.logs.runs.tasks import build_recorded_task, find_rule_source
from evalcore.shell.logs.runs.trees import grow_trees
from evalcore.shell.logs.search import Searched

Plain = Mapping[str, object]


class Recorded(FrozenRecord, frozen=True):
    """A recorded run. ``texts`` has a line of each document for display, by task and key.

    ``results`` is its results file as data, empty if there is none. ``fields`` are the fields of each task's documents;
    ``match`` those that identify documents, if not all; ``files`` the files of each task. ``renamed`` is the original
    name of its only task if that was renamed; ``filters`` are those that were, with their new names. ``searched`` is
    how its logs were found if they are not sample logs.
    ``tables`` are a host's own. ``options`` are those of each task's requests, each once; ``hashes`` those of its
    answers' bytes, where documents are known by theirs.
    """

    name: str
    path: Path
    side: ComparisonSide
    results: Plain
    texts: Mapping[str, Mapping[int, str]]
    warnings: tuple[str, ...]
    fields: Mapping[str, frozenset[str]] = FrozenDict()
    match: tuple[str, ...] = ()
    files: Mapping[str, tuple[Path, ...]] = FrozenDict()
    renamed: str | None = None
    filters: Mapping[str, str] = FrozenDict()
    searched: Searched | None = None
    tables: Tables | None = None
    options: Mapping[str, tuple[Plain, ...]] = FrozenDict()
    hashes: Mapping[str, AnswerHashes] = FrozenDict()


class TaskRecord(Struct, frozen=True):
    """A task of a recorded run."""

    scored: Scored
    report: TaskReport
    table: LogTable
    warnings: tuple[str, ...]
    rules: RuleSource = RuleSource()


def read_sample_run(path: Path, source: RunFiles, matching: Matching, tables: Tables | None = None) -> Recorded:
    """Read a run of evalcore or lm-eval, whose logs have scores in their rows."""
    source = pool_source(source, path)
    parts = [_read_part(log, source.results, matching, tables or EVALCORE) for log in source.logs]
    grown = grow_trees(source.results, [part.report for part in parts], str(path), tables or EVALCORE)
    side = ComparisonSide(
        source.name,
        tuple(part.scored for part in parts),
        {part.report.name: part.table.documents for part in parts},
        grown.trees,
        {part.report.name: part.rules for part in parts},
    )
    told = (*source.warnings, *(one for part in parts for one in part.warnings), *grown.warnings)
    shown = {part.report.name: part.table.texts for part in parts}
    fields = {part.report.name: part.table.fields for part in parts}
    return Recorded(
        name=source.name,
        path=path,
        side=side,
        results=source.results,
        texts=shown,
        warnings=tuple(dict.fromkeys(told)),
        fields=fields,
        match=matching.match,
        files={log.task: log.files for log in source.logs},
        tables=tables,
        options={part.report.name: part.table.options for part in parts},
        hashes={part.report.name: part.table.hashes for part in parts if part.table.hashes is not None},
    )


def _read_part(log: RunLog, results: Plain, matching: Matching, tables: Tables) -> TaskRecord:
    config = find_part(results, "configs").get(log.task)
    config = config if isinstance(config, Mapping) else None
    row = find_part(results, "results", log.task)
    table = read_log_table(log.files, list_filters(config, row), matching)
    version = find_part(results, "versions").get(log.task)
    recorded = build_recorded_task(log.task, config, table.output_type, table.filters, version, tables)
    recorded = replace(recorded, on_unscorable=find_rule(results))
    point = partial(point_column, told=find_part(results, "higher_is_better", log.task), metrics=tables.metrics)
    closed = close_columns(recorded, table, row if log.whole else {}, point)
    scored = Scored(recorded.task, closed.columns, (), tables.name, cluster_documents(log.task, table.documents))
    report = TaskReport(name=log.task, estimates=closed.estimates, n_docs=len(table.documents))
    rules = find_rule_source(results, config, table.filters, tables)
    held = closed.estimates if log.whole else ()
    unlike = tell_contradictions(Placed(log.task, results), log.task, held, source="by the logged scores", torn=True)
    warnings = (*recorded.warnings, *closed.warnings, *unlike, *_shortfall(log, results, table, closed))
    return TaskRecord(scored, report, table, warnings, rules)


def check_run_path(given: str | Path) -> Path:
    """Refuse an empty path, which an unset variable leaves and which would mean this folder.

    >>> check_run_path("runs/a")
    PosixPath('runs/a')
    >>> check_run_path(" ")
    Traceback (most recent call last):
    evalcore.EvalError: expected the path of a run, got an empty one (a shell variable that is not set?)
    """
    if not str(given).strip():
        raise EvalError("expected the path of a run, got an empty one (a shell variable that is not set?)")
    return parse_path(given)


def close_recorded(run: Recorded, confidence: float = 0.95, interval: str | None = None) -> Report:
    """Close a run by its own rule, with intervals of any confidence and of this kind; if none is given, of its own."""
    tables = run.tables or EVALCORE
    inference = find_closing(run, confidence, interval)
    tasks = [report_task(one, inference=inference, tables=tables) for one in run.side.scored]
    return build_report(tasks, run.side.trees, inference=inference, tables=tables)


def find_closing(run: Recorded, confidence: float = 0.95, interval: str | None = None) -> Inference:
    """Find how a run closed its numbers; intervals are of any confidence, and of this kind if one is given."""
    ci = interval or find_part(run.results, "evalcore").get("ci")
    tables = run.tables or EVALCORE
    return Inference(
        interval=ci if isinstance(ci, str) and ci in tables.intervals else "wilson",
        intervals=tables.intervals,
        confidence=confidence,
        on_unscorable=find_rule(run.results),
        stderr=find_form(run.results),
    )


def make_comparable(recorded: Recorded) -> ComparisonSide:
    """Make a run comparable as it counted itself: under ``on_unscorable: zero`` a missing score is 0."""
    if find_rule(recorded.results) != "zero":
        return recorded.side

    def counted(one: ScoredColumn) -> ScoredColumn:
        rises = one.spec is not None and one.spec.higher_is_better is True
        zero = isinstance(one.column.rows, Floats) and rises
        return replace(one, column=close(one.column, "zero")) if zero else one

    scored = (replace(one, columns=tuple(map(counted, one.columns))) for one in recorded.side.scored)
    return replace(recorded.side, scored=tuple(scored))


def find_form(results: Plain) -> str:
    """Find the form of a run's standard errors.

    >>> find_form({}), find_form({"evalcore": {"stderr": "cr1"}})
    ('cr2', 'cr1')
    """
    form = find_part(results, "evalcore").get("stderr")
    return form if isinstance(form, str) and form in ERROR_FORMS else CR2.name


def find_rule(results: Plain) -> Rule:
    """Find how a run counted documents without a score.

    >>> find_rule({}), find_rule({"evalcore": {"on_unscorable": "zero"}})
    ('exclude', 'zero')
    """
    return "zero" if find_part(results, "evalcore").get("on_unscorable") == "zero" else "exclude"


def cluster_documents(task: str, documents: tuple[DocumentRow, ...]) -> tuple[tuple[int, int], ...]:
    """Number the clusters of a task's documents."""
    named = [(row.key, row.cluster) for row in documents if row.cluster is not None]
    codes = cluster_codes([cluster for _, cluster in named], task=task)
    return tuple(zip((key for key, _ in named), codes.tolist(), strict=True))


def _shortfall(log: RunLog, results: Plain, table: LogTable, closed: Closed) -> list[str]:
    """Warn of documents that the results count and the log lacks, or of a log without scores."""
    counts = find_part(results, "n-samples", log.task)
    wanted, there = counts.get("effective"), len(table.documents)
    out = []
    if isinstance(wanted, int) and there < wanted:
        out.append(f"{log.task}: {log.path.name} has {there} of the {wanted} documents that the results count")
    if not closed.columns:
        out.append(f"{log.task}: no document has a score in {log.path.name}")
    return out
