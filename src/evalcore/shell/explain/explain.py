"""Everything that is known of one document of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Unpack

from evalcore.core.explain.contribution import Contribution, contributions
from evalcore.core.records.errors import require_known
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.task import MetricKey, Task
from evalcore.shell.compare.run_names import Aliases
from evalcore.shell.compare.run_sides import LogKeys, build_search
from evalcore.shell.config.values import Names, RunPath, list_names
from evalcore.shell.explain.agreement import Traced, list_score_keys, trace_logged
from evalcore.shell.explain.lookup import MARK, add_past, find_document, hash_document, hash_row, list_hashes
from evalcore.shell.explain.run_source import (
    RunSource,
    build_run_report,
    find_inference,
    find_tables,
    find_task,
    open_run,
)
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.logs.open import open_logs
from evalcore.shell.output.terminal.screen import DisplayedResult
from evalcore.shell.safety.timer import BUDGET, allow_seconds


class Explained(DisplayedResult, FrozenRecord, frozen=True):
    """One document: as it was asked and answered, traced through each filter, and its part in every number above.

    ``found_by`` is what it was asked for by: its id, its number, a name in its data, or its hash. ``full``: prompts and
    answers are shown whole. ``aliases`` are what tables call tasks and groups.
    """

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
    found_by: str = "number"
    full: bool = False
    aliases: Aliases = FrozenDict()


def explain_document(
    run: RunPath,
    doc: str | int,
    *,
    task: str | None = None,
    filter: Names = (),
    metric: Names = (),
    task_file: RunPath | None = None,
    full: bool = False,
    doc_timeout: float = BUDGET,
    **reading: Unpack[LogKeys],
) -> Explained:
    """Find a document in a run and trace it; the keys are the flags of ``evalcore explain``.

    ``task_file`` is what to trace a log by that came without a config.
    """
    file = None if task_file is None else Path(task_file)
    known_by: Literal["content", "number"] = "content" if str(doc).startswith(MARK) else "number"
    source = open_run(parse_path(run), build_search(reading), scores=False, traced=file is None, known_by=known_by)
    log = source.log(task)
    table = source.recorded.side.documents.get(log.name, ()) if source.recorded is not None else ()
    logged, by = find_document(log, str(doc), table, intact=source.find_hashes(log) is not None)
    logged = add_past(log, logged) or _read_whole(source, log, logged)
    behind = find_task(source, log, file)
    with allow_seconds(doc_timeout):
        traces = trace_logged(behind, logged, find_tables(source))
    parts = _find_parts(source, log, logged)
    logged_keys = [*(part.key for part in parts), *list_score_keys(logged)]
    # What the log does not measure is only shown where it was asked for, or where the log measures nothing at all.
    asked = traces if file is not None or not logged_keys else ()
    traced_keys = (key for one in asked if one.trace is not None for key, _ in one.trace.outcomes)
    known = dict.fromkeys([*logged_keys, *traced_keys])
    kept = _choose_filters([traced.filter for traced in traces], list_names(filter))
    keys = _choose_keys([key for key in known if key.filter in kept], list_names(metric))
    return Explained(
        source.path,
        log,
        behind,
        logged,
        logged.path or log.path,
        _hash_content(source, log, logged),
        tuple(traced for traced in traces if traced.filter in {key.filter for key in keys} or not keys),
        keys,
        tuple(part for part in parts if part.key in keys),
        (*source.warnings, *_tell_left_out(source, log, logged, parts)),
        by,
        full,
        source.aliases,
    )


def _hash_content(run: RunSource, log: LogTask, logged: Logged) -> str:
    """The hash of a document as others are matched with it."""
    files = run.recorded.files.get(log.name, ()) if run.recorded is not None else ()
    known = run.recorded.side.documents.get(log.name, ()) if run.recorded is not None else ()
    found = hash_row(files, logged.doc_id) if log.reader.sample_rows else list_hashes(known).get(logged.doc_id)
    return found or hash_document(logged)


def _read_whole(run: RunSource, log: LogTask, logged: Logged) -> Logged:
    """The document of the same log, read with what was logged for all of its documents."""
    logs = open_logs([run.path], mapping=run.searched.columns, scores=True, readers=run.searched.readers)
    same = logs[run.logs.index(log)]
    return find_document(same, f"#{logged.doc_id}")[0]


def _find_parts(run: RunSource, log: LogTask, logged: Logged) -> tuple[Contribution, ...]:
    if run.recorded is None or log.name not in {one.task.name for one in run.recorded.side.scored}:
        return ()
    inference, tables = find_inference(run.recorded.results), find_tables(run)[0]
    report = build_run_report(run.recorded, inference)
    if not any(logged.doc_id in column.keys.ints for _, column in report.task(log.name).columns):
        return ()
    return contributions(report, log.name, logged.doc_id, inference=inference, tables=tables)


def _tell_left_out(run: RunSource, log: LogTask, logged: Logged, parts: Sequence[Contribution]) -> tuple[str, ...]:
    """Why a document has no part in the numbers, where nothing else says so."""
    if parts or run.recorded is None:
        return ()
    read = [str(one) for one in run.recorded.files.get(log.name, ())]
    of = f"those of {log.name} are of {', '.join(read)}" if read else f"they are of {', '.join(run.recorded.files)}"
    return (f"{log.name}: document {logged.doc_id} has no part in the numbers: {of}",)


def _choose_filters(names: Sequence[str], wanted: Sequence[str]) -> set[str]:
    require_known("filter", wanted, names)
    return {*wanted} or {*names}


def _choose_keys(keys: Sequence[MetricKey], wanted: Sequence[str]) -> tuple[MetricKey, ...]:
    """Those that are named: ``exact_match``, ``exact_match@mean`` or ``exact_match,strict``."""
    spellings = {key: {key.metric, str(key), key.metric.partition("@")[0]} for key in keys}
    known = {spelling for some in spellings.values() for spelling in some}
    require_known("metric", wanted, known)
    return tuple(key for key in keys if not wanted or not spellings[key].isdisjoint(wanted))
