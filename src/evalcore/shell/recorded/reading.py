"""A recorded run as a side of a comparison: scores by document, documents by content, groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.documents import DocumentRow
from evalcore.core.outcome import Rule
from evalcore.core.reports import TaskReport
from evalcore.core.scored import Scored
from evalcore.core.sides import Side
from evalcore.core.spreads import cluster_codes
from evalcore.shell.recorded.columns import Closed, close_columns
from evalcore.shell.recorded.finding import Log, find_source
from evalcore.shell.recorded.logs import LogTable, read_log
from evalcore.shell.recorded.tasks import filter_names, recorded_task
from evalcore.shell.recorded.trees import grow_trees

__all__ = ["Recorded", "read_recorded", "rule_of"]

Plain = Mapping[str, object]


class Recorded(Struct, frozen=True):
    """A run as it was written down. ``texts`` has a line of each document, by task and key, for people.

    ``results`` is its results file as data, empty where there was none.
    """

    name: str
    path: Path
    side: Side
    results: Plain
    texts: Mapping[str, Mapping[int, str]]
    warnings: tuple[str, ...]


class Part(Struct, frozen=True):
    """A task of a recorded run."""

    scored: Scored
    report: TaskReport
    table: LogTable
    warnings: tuple[str, ...]


def read_recorded(path: Path, *, cluster: str | None = None) -> Recorded:
    """A run folder of evalcore, an output of lm-eval or a sample log, told apart by content.

    ``cluster`` names the field or template of a document by which documents belong together, where the run did not.
    """
    source = find_source(path)
    parts = [_read_part(log, source.results, cluster) for log in source.logs]
    grown = grow_trees(source.results, [part.report for part in parts])
    side = Side(
        source.name,
        tuple(part.scored for part in parts),
        {part.report.name: part.table.documents for part in parts},
        grown.trees,
    )
    told = (*source.warnings, *(one for part in parts for one in part.warnings), *grown.warnings)
    texts = {part.report.name: part.table.texts for part in parts}
    return Recorded(source.name, path, side, source.results, texts, tuple(dict.fromkeys(told)))


def _read_part(log: Log, results: Plain, cluster: str | None) -> Part:
    config = _part_of(results, "configs", log.task) if results else None
    row = _part_of(results, "results", log.task) or {}
    table = read_log(log.path, filter_names(config, row), cluster)
    version = (_part_of(results, "versions") or {}).get(log.task)
    recorded = recorded_task(log.task, config, table.output_type, table.filters, version)
    recorded = replace(recorded, on_unscorable=rule_of(results))
    closed = close_columns(recorded, table, row)
    scored = Scored(recorded.task, closed.columns, (), "evalcore", _clusters(log.task, table.documents))
    report = TaskReport(name=log.task, estimates=closed.estimates, n_docs=len(table.documents))
    return Part(scored, report, table, (*recorded.warnings, *closed.warnings, *_shortfall(log, results, table, closed)))


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
