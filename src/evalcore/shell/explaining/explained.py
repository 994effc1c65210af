"""Everything that is known of one document of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from evalcore.core.contributions import Contribution, contributions
from evalcore.core.documents import DocumentRow
from evalcore.core.errors import unknown
from evalcore.core.records import MetricKey, Task
from evalcore.shell.answers import Logged, LogTask
from evalcore.shell.explaining.documents import find_document, hash_of, hashes_of
from evalcore.shell.explaining.runs import Run, inference_of, open_run, report_of, tables_of, task_behind
from evalcore.shell.explaining.traces import Traced, score_keys, trace_logged

__all__ = ["Explained", "explain_document"]


class Explained(Struct, frozen=True):
    """One document: as it was asked and answered, traced through each filter, and its part in every number above."""

    path: Path
    log: LogTask
    task: Task | None
    logged: Logged
    file: Path
    content: str
    traces: tuple[Traced, ...]
    keys: tuple[MetricKey, ...]
    contributions: tuple[Contribution, ...]
    warnings: tuple[str, ...]


def explain_document(
    path: Path,
    task: str | None,
    doc: str,
    *,
    file: Path | None = None,
    filters: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> Explained:
    """Find a document in a run and trace it; ``file`` is a task file to trace a log by that came without a config."""
    run = open_run(path)
    log = run.log(task)
    table = _table(run, log)
    logged = find_document(log, doc, table)
    behind = task_behind(run, log, file)
    traces = trace_logged(behind, logged, tables_of(run))
    parts = _parts(run, log, logged)
    logged_keys = [*(one.key for one in parts), *score_keys(logged)]
    # What the log does not measure is only shown where it was asked for, or where the log measures nothing at all.
    known = dict.fromkeys([*logged_keys, *(_traced_keys(traces) if file is not None or not logged_keys else ())])
    kept = _chosen_filters([one.filter for one in traces], filters)
    keys = _chosen([key for key in known if key.filter in kept], metrics)
    return Explained(
        path,
        log,
        behind,
        logged,
        logged.path or log.path,
        hashes_of(table).get(logged.doc_id) or hash_of(logged),
        tuple(one for one in traces if one.filter in {key.filter for key in keys} or not keys),
        keys,
        tuple(one for one in parts if one.key in keys),
        run.warnings,
    )


def _table(run: Run, log: LogTask) -> Sequence[DocumentRow]:
    return run.recorded.side.documents.get(log.name, ()) if run.recorded is not None else ()


def _parts(run: Run, log: LogTask, logged: Logged) -> tuple[Contribution, ...]:
    if run.recorded is None or log.name not in {one.task.name for one in run.recorded.side.scored}:
        return ()
    inference, tables = inference_of(run.recorded.results), tables_of(run)[0]
    report = report_of(run.recorded, inference)
    if not any(logged.doc_id in column.keys.ints for _, column in report.task(log.name).columns):
        return ()
    return contributions(report, log.name, logged.doc_id, inference=inference, tables=tables)


def _traced_keys(traces: Sequence[Traced]) -> list[MetricKey]:
    return [key for one in traces if one.trace is not None for key, _ in one.trace.outcomes]


def _chosen_filters(names: Sequence[str], wanted: Sequence[str]) -> set[str]:
    strange = next((one for one in wanted if one not in names), None)
    if strange is not None:
        raise unknown("filter", strange, names)
    return {*wanted} or {*names}


def _chosen(keys: Sequence[MetricKey], wanted: Sequence[str]) -> tuple[MetricKey, ...]:
    """Those that are named: ``exact_match``, ``exact_match@mean`` or ``exact_match,strict``."""
    spellings = {key: {key.metric, str(key), key.metric.partition("@")[0]} for key in keys}
    known = {spelling for some in spellings.values() for spelling in some}
    strange = next((one for one in wanted if one not in known), None)
    if strange is not None:
        raise unknown("metric", strange, known)
    return tuple(key for key in keys if not wanted or not spellings[key].isdisjoint(wanted))
