"""Results and samples as tables of Arrow, pandas or polars: ``to_arrow``, ``to_pandas``, ``to_polars``.

What they take: a ``Report``; results as data (evalcore's ``results.json`` or lm-eval's); a run as ``read_recorded``
gives it, whose numbers are made again from the scores of its documents, with intervals; a run folder, a results file or
a sample log; or rows of a sample log, such as ``samples_of`` reads. ``docs/exchange.md`` lists the columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.core.lm_eval.result_file import lm_eval_results, num_fewshot
from evalcore.core.records.errors import EvalError, require, require_known
from evalcore.core.records.report import Report
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.lm_eval.rows import decode_fields, read_sample_rows
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.files.arrow_tables import build_results_table, build_samples_table
from evalcore.shell.output.files.parquet import write_parquet
from evalcore.shell.output.files.tracker import warn_caller

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import polars
    import pyarrow  # type: ignore[import-untyped]

__all__ = ["Framed", "samples_of", "to_arrow", "to_pandas", "to_polars", "write_parquet"]

Plain = Mapping[str, object]
Framed = Report | Recorded | Plain | str | os.PathLike[str] | Iterable[Plain]


def to_arrow(thing: Framed) -> pyarrow.Table:
    """An Arrow table: of results one row per task or group, metric and filter; of samples one per document and filter.

    >>> to_arrow({"results": {"a": {"acc,none": 0.5}}}).select(["task", "metric", "value"]).to_pylist()
    [{'task': 'a', 'metric': 'acc', 'value': 0.5}]
    """
    if isinstance(thing, Report):
        return build_results_table(lm_eval_results(thing))
    if isinstance(thing, Recorded):
        return build_results_table(_recorded_results(thing))
    if isinstance(thing, str | os.PathLike):
        return _path_table(parse_path(thing))
    if isinstance(thing, Mapping):
        return build_results_table(_checked(thing))
    if isinstance(thing, Iterable):
        return build_samples_table(thing)
    raise EvalError(f"expected a report, results, a run or its folder, or sample rows; got {type(thing).__name__}")


def to_pandas(thing: Framed) -> pandas.DataFrame:
    """The table of ``to_arrow`` in pandas; integers and booleans have the nullable types of pandas."""
    pandas, arrow = require("pandas", "frames"), require("pyarrow", "frames")
    kinds = {arrow.int64(): pandas.Int64Dtype(), arrow.bool_(): pandas.BooleanDtype()}
    return to_arrow(thing).to_pandas(types_mapper=kinds.get)


def to_polars(thing: Framed) -> polars.DataFrame:
    """The table of ``to_arrow`` in polars."""
    frame: polars.DataFrame = require("polars", "frames").from_arrow(to_arrow(thing))
    return frame


def samples_of(run: str | os.PathLike[str], tasks: Iterable[str] = ()) -> Iterator[dict[str, object]]:
    """The sample rows of a run, with the name of their task; of some tasks, or of all. They are read one by one.

    Shards of one run, as ``evalcore score`` takes them, are read one after the other.
    """
    from evalcore.shell.logs.runs.shards import pool_source
    from evalcore.shell.logs.runs.source import find_sample_logs

    path = parse_path(run)
    source = pool_source(find_sample_logs(path), path)
    warn_caller(source.warnings)
    logs = {log.task: log.files for log in source.logs}
    for task in tuple(tasks) or logs:
        require_known("task", [task], logs, f" - at {path}")
        yield from ({"task": task, **decode_fields(row.fields)} for row in read_sample_rows(*logs[task]))


def _path_table(path: Path) -> pyarrow.Table:
    from evalcore.shell.data.unpack import strip_packing
    from evalcore.shell.logs.head import read_head
    from evalcore.shell.logs.lm_eval.rows import recognise_samples
    from evalcore.shell.logs.runs.shards import pool_beside, tell_parts
    from evalcore.shell.logs.runs.source import find_results

    if path.is_file() and (recognise_samples(read_head(path)) or strip_packing(path.name).endswith(".jsonl")):
        return build_samples_table(samples_of(path))
    read, results, told = find_results(path)
    warn_caller((*told, *(tell_parts(pool_beside(read, path), path) if told else ())))
    return build_results_table(results)


def _checked(results: Plain) -> Plain:
    if not isinstance(results.get("results"), Mapping):
        found = ", ".join(map(str, list(results)[:5]))
        raise EvalError(f"expected results as data, with the key 'results'; found the keys {found or '(none)'}")
    return results


def _recorded_results(run: Recorded) -> Plain:
    """A recorded run's numbers made again from the scores of its documents, as the run itself closed them."""
    from evalcore.core.aggregate.inference import Inference
    from evalcore.core.explain.contribution import groups_above
    from evalcore.shell.explain.run_source import build_run_report
    from evalcore.shell.logs.runs.run_record import find_form, find_rule

    own = run.results.get("evalcore")
    level = own.get("confidence") if isinstance(own, Mapping) else None
    inference = Inference(
        confidence=level if isinstance(level, float) else 0.95,
        on_unscorable=find_rule(run.results),
        stderr=find_form(run.results),
    )
    report = build_run_report(run, inference)
    made = lm_eval_results(report)
    unknown = {one.task.name for one in run.side.scored if one.task.num_fewshot is None}
    unknown |= {group for name in unknown for group in groups_above(report, name)}
    shots = {name: count for name, count in num_fewshot(report).items() if name not in unknown}
    return {**made, "n-shot": shots, **{key: run.results[key] for key in ("versions", "n-shot") if key in run.results}}
