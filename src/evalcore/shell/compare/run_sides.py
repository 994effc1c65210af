"""The runs of a command: read once, by keys in the words of its flags, and scored as they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Unpack

from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.power import Known
from evalcore.core.lm_eval.result_file import lm_eval_results
from evalcore.core.records.errors import EvalError
from evalcore.core.records.report import Report
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.compare.alike import rename_alone
from evalcore.shell.compare.filter_names import match_filters, rename_filter
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.config.values import Names, RunPath, list_names, split_names
from evalcore.shell.logs.declarations import DeclaredKeys, read_declarations
from evalcore.shell.logs.log import Reader
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.runs.directions import declare_sides
from evalcore.shell.logs.runs.result_errors import list_known
from evalcore.shell.logs.runs.run_record import Recorded, check_run_path, close_recorded, make_comparable
from evalcore.shell.logs.runs.source import find_results
from evalcore.shell.logs.runs.totals import read_totals
from evalcore.shell.logs.search import NO_SAMPLES, Searched
from evalcore.shell.logs.tables.column_map import ColumnKeys, declare_columns


class LogKeys(ColumnKeys, total=False):
    """What no log says: what the columns of tables hold, which documents count together, what reduces repeated scores.

    Also a host's own readers and tables.
    """

    cluster: str | None
    reducer: Names
    readers: PMap[str, Reader]
    tables: Tables


class ReadKeys(LogKeys, DeclaredKeys, total=False):
    """What else no log says: which documents and filters are the same, which way a metric points, its bounds."""

    match: Names | None
    match_filter: Names


def read_sides(
    paths: Sequence[RunPath], **reading: Unpack[ReadKeys]
) -> tuple[tuple[Recorded, ...], tuple[ComparisonSide, ...]]:
    """Runs, each read once, and their scores to compare: counted as the run did, metrics pointing as asked."""
    named = [check_run_path(path) for path in paths]
    read = {path: _read_path(path, reading, reading.get("match")) for path in dict.fromkeys(named)}
    alone = match_filters(rename_alone([read[path] for path in named]), list_names(reading.get("match_filter", ())))
    runs = _declare_runs(alone, reading)
    return runs, tuple(map(make_comparable, runs))


def _declare_runs(runs: Sequence[Recorded], reading: ReadKeys) -> tuple[Recorded, ...]:
    sides = declare_sides([run.side for run in runs], read_declarations(reading))
    return tuple(replace(run, side=side) for run, side in zip(runs, sides, strict=True))


def read_run(path: RunPath, **reading: Unpack[ReadKeys]) -> Recorded:
    """A run by itself; one without samples has the totals of its results."""
    where = check_run_path(path)
    try:
        return _declare_runs([_read_path(where, reading, reading.get("match"))], reading)[0]
    except EvalError as wrong:
        if NO_SAMPLES not in str(wrong) or reading.get("cluster") is not None or reading.get("match"):
            raise
    return read_totals(where, build_search(reading))


def _read_path(path: Path, reading: LogKeys, match: Names | None = None) -> Recorded:
    searched = build_search(reading)
    return read_recorded(
        path,
        cluster=reading.get("cluster"),
        match=_split_fields(match),
        columns=searched.columns,
        reducers=searched.reducers,
        readers=searched.readers,
        tables=searched.tables,
    )


def build_search(reading: LogKeys) -> Searched:
    """What logs are looked for."""
    reducers = list_names(reading.get("reducer", ()))
    return Searched(reading.get("readers", READERS), declare_columns(reading), reading.get("tables"), reducers)


class KnownRun(NamedTuple):
    """What is known of the error of each number of a run, its results, the file that has them, and warnings."""

    numbers: tuple[Known, ...]
    results: Mapping[str, object]
    file: str
    warnings: tuple[str, ...]


def read_known(path: RunPath, **reading: Unpack[LogKeys]) -> KnownRun:
    """Read what is known of the error of each number of a run."""
    read, results, warnings = _read_results(check_run_path(path), reading)
    known = list_known(results, reading.get("tables", EVALCORE))
    if not known:
        raise EvalError(f"{read}: expected metrics under results, found none")
    return KnownRun(known, results, str(read), warnings)


Spreads = Mapping[tuple[str, MetricKey], Known]
"""What is known of the error of each number."""


def list_spreads(run: Recorded, report: Report | None = None) -> Spreads:
    """List what is known of the error of each number: as the run's results have it, else as its ``report`` gives it.

    A task or filter that was renamed is known by its new name.
    """
    recorded = run.results or (lm_eval_results(report) if report is not None else {})
    results, filters = (recorded, run.filters) if recorded else (lm_eval_results(close_recorded(run)), {})
    names = {} if run.renamed is None else {run.renamed: run.side.scored[0].task.name}
    listed = ((known, rename_filter(known.key, filters)) for known in list_known(results, run.tables or EVALCORE))
    return {(names.get(known.name, known.name), key): known for known, key in listed if key is not None}


def _read_results(path: Path, reading: LogKeys) -> tuple[Path, Mapping[str, object], tuple[str, ...]]:
    """The results of a run; those its samples give where there are none, or where other clusters are asked for."""
    if reading.get("cluster") is None:
        try:
            return find_results(path, build_search(reading))
        except EvalError:  # there may be samples; if not, reading them raises the same error
            pass
    run = _read_path(path, reading)
    return path, lm_eval_results(close_recorded(run)), run.warnings


def _split_fields(match: Names | None) -> tuple[str, ...]:
    fields = split_names(match or ())
    if match is not None and not fields:
        raise EvalError(f"expected --match with a field of the documents, got {match!r}")
    return fields
