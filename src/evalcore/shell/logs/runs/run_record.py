"""A recorded run as a side of a comparison: scores by document, documents by content, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from evalcore.core.aggregate.spread import cluster_codes
from evalcore.core.aggregate.value import Inference, close
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.column import Floats
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Rule
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.stats.intervals import INTERVALS
from evalcore.shell.answerlog.line import PREFIX
from evalcore.shell.data.unpack import open_bytes, read_lines, strip_packing
from evalcore.shell.data.wire import decode_line, number_lines
from evalcore.shell.logs.head import read_head
from evalcore.shell.logs.lm_eval.rows import recognise_samples
from evalcore.shell.logs.runs.columns import Closed, close_columns
from evalcore.shell.logs.runs.directions import point_column
from evalcore.shell.logs.runs.log_table import LogTable, read_log_table
from evalcore.shell.logs.runs.shards import pool_source
from evalcore.shell.logs.runs.source import Log, find_source
from evalcore.shell.logs.runs.tasks import filter_names, recorded_task
from evalcore.shell.logs.runs.trees import grow_trees

__all__ = ["Recorded", "close_recorded", "comparable_side", "read_recorded", "refuse_other_rows", "rule_of", "run_path"]

Plain = Mapping[str, object]


class Recorded(Struct, frozen=True):
    """A run as it was written down. ``texts`` has a line of each document, by task and key, for people.

    ``results`` is its results file as data, empty where there was none. ``fields`` are those that the documents of each
    task have; ``match`` those that documents were told apart by, if not by all; ``files`` what each task is read from.
    ``renamed`` is what its one task is called, where it goes under another name.
    """

    name: str
    path: Path
    side: ComparisonSide
    results: Plain
    texts: Mapping[str, Mapping[int, str]]
    warnings: tuple[str, ...]
    fields: Mapping[str, frozenset[str]] = field(default_factory=dict)
    match: tuple[str, ...] = ()
    files: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    renamed: str | None = None


class Part(Struct, frozen=True):
    """A task of a recorded run."""

    scored: Scored
    report: TaskReport
    table: LogTable
    warnings: tuple[str, ...]


def read_recorded(path: Path, *, cluster: str | None = None, match: Sequence[str] = (), texts: bool = True) -> Recorded:
    """A run folder of evalcore, an output of lm-eval or a sample log, told apart by content.

    ``cluster`` names the field or template of a document by which documents belong together, where the run did not.
    ``match`` names the fields that make two documents the same; without any, ids, prompts and all that they say count.
    Without ``texts`` no line of a document is kept for people, which is quicker.
    """
    refuse_other_rows(path)
    source = pool_source(find_source(path), path)
    parts = [_read_part(log, source.results, cluster, match, texts) for log in source.logs]
    grown = grow_trees(source.results, [part.report for part in parts], str(path))
    side = ComparisonSide(
        source.name,
        tuple(part.scored for part in parts),
        {part.report.name: part.table.documents for part in parts},
        grown.trees,
    )
    told = (*source.warnings, *(one for part in parts for one in part.warnings), *grown.warnings)
    shown = {part.report.name: part.table.texts for part in parts}
    fields = {part.report.name: part.table.fields for part in parts}
    files = {log.task: log.files for log in source.logs}
    return Recorded(
        source.name, path, side, source.results, shown, tuple(dict.fromkeys(told)), fields, tuple(match), files
    )


def _read_part(log: Log, results: Plain, cluster: str | None, match: Sequence[str], texts: bool) -> Part:
    config = _part_of(results, "configs", log.task) if results else None
    row = _part_of(results, "results", log.task) or {}
    table = read_log_table(log.path, filter_names(config, row), cluster, match, files=log.files, texts=texts)
    version = (_part_of(results, "versions") or {}).get(log.task)
    recorded = recorded_task(log.task, config, table.output_type, table.filters, version)
    recorded = replace(recorded, on_unscorable=rule_of(results))
    closed = close_columns(recorded, table, row if log.whole else {})
    told = _part_of(results, "higher_is_better", log.task) or {}
    columns = tuple(point_column(one, told) for one in closed.columns)
    scored = Scored(recorded.task, columns, (), "evalcore", _clusters(log.task, table.documents))
    report = TaskReport(name=log.task, estimates=closed.estimates, n_docs=len(table.documents))
    return Part(scored, report, table, (*recorded.warnings, *closed.warnings, *_shortfall(log, results, table, closed)))


def run_path(text: str) -> Path:
    """The path of a run; an empty one, which would mean this folder, is what an unset variable leaves of it.

    >>> run_path("runs/a")
    PosixPath('runs/a')
    >>> run_path(" ")
    Traceback (most recent call last):
    evalcore.EvalError: expected the path of a run, got an empty one (a shell variable that is not set?)
    """
    if not text.strip():
        raise EvalError("expected the path of a run, got an empty one (a shell variable that is not set?)")
    return Path(text)


def refuse_other_rows(path: Path) -> None:
    """Rows of JSON that are no sample log, of another tool or none: the error says what is missing."""
    path = path.expanduser()
    if not path.is_file() or recognise_samples(read_head(path)):
        return
    with open_bytes(path) as file:
        lines = [line for _, (_, line) in zip(range(2), number_lines(read_lines(file, str(path))), strict=False)]
    rows = len(lines) == 2 or (lines and strip_packing(path.name).endswith(".jsonl"))
    if not rows or lines[0].startswith(PREFIX):
        return
    try:
        row = decode_line(lines[0], "")
    except EvalError:
        return
    if isinstance(row, dict) and ("doc_id" not in row or {"doc", "arguments"}.isdisjoint(row)):
        raise EvalError(
            f"{path}: rows of JSON, but no sample log: its rows need doc_id, doc, target, arguments, resps, and a score"
            f" under the name of each metric; these have {', '.join(map(str, row)) or 'nothing'}. "
            f"Of a table of answers, `evalcore score {path} --answer COLUMN --gold COLUMN -o DIR` makes one"
        )


def close_recorded(run: Recorded, confidence: float = 0.95) -> Report:
    """A run's numbers, closed by its own rule and with its own kind of intervals, of any confidence."""
    ci = (_part_of(run.results, "evalcore") or {}).get("ci")
    inference = Inference(
        interval=ci if isinstance(ci, str) and ci in INTERVALS else "wilson",
        confidence=confidence,
        on_unscorable=rule_of(run.results),
    )
    tasks = [report_task(one, inference=inference) for one in run.side.scored]
    return build_report(tasks, run.side.trees, inference=inference)


def comparable_side(recorded: Recorded) -> ComparisonSide:
    """The run's scores as it counted them itself: under ``on_unscorable: zero`` what has no score has 0."""
    if rule_of(recorded.results) != "zero":
        return recorded.side

    def counted(one: ScoredColumn) -> ScoredColumn:
        falls = one.spec is not None and one.spec.higher_is_better is False
        zero = isinstance(one.column.rows, Floats) and not falls
        return replace(one, column=close(one.column, "zero")) if zero else one

    scored = (replace(one, columns=tuple(map(counted, one.columns))) for one in recorded.side.scored)
    return replace(recorded.side, scored=tuple(scored))


def rule_of(results: Plain) -> Rule:
    """How a run closed its documents without a score.

    >>> rule_of({}), rule_of({"evalcore": {"on_unscorable": "zero"}})
    ('exclude', 'zero')
    """
    return "zero" if (_part_of(results, "evalcore") or {}).get("on_unscorable") == "zero" else "exclude"


def _clusters(task: str, documents: tuple[DocumentRow, ...]) -> tuple[tuple[int, int], ...]:
    named = [(row.key, row.cluster) for row in documents if row.cluster is not None]
    codes = cluster_codes([cluster for _, cluster in named], task=task)
    return tuple(zip((key for key, _ in named), codes.tolist(), strict=True))


def _shortfall(log: Log, results: Plain, table: LogTable, closed: Closed) -> list[str]:
    """What is missing of what the results count, or of what can be compared."""
    counts = _part_of(results, "n-samples", log.task) or {}
    wanted, there = counts.get("effective"), len(table.documents)
    out = []
    if isinstance(wanted, int) and there < wanted:
        out.append(f"{log.task}: {log.path.name} has {there} of the {wanted} documents that the results count")
    if not closed.columns:
        out.append(f"{log.task}: no document has a score in {log.path.name}")
    return out


def _part_of(results: Plain, *keys: str) -> Plain | None:
    """A mapping inside another, None if it is not there."""
    found: object = results
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None
