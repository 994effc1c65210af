"""Parquet files beside a run's own: results and samples as the tables of ``evalcore.frames``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalcore.core.records.errors import require
from evalcore.shell.data.arrow_files import name_parquet
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.lm_eval.rows import read_sample_rows
from evalcore.shell.output.files.arrow_tables import build_batches, build_results_table
from evalcore.shell.output.files.sample_frames import find_metric_kinds
from evalcore.shell.safety.replacement import replace_with

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]


def write_parquet(run: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write ``results.parquet`` and ``samples_<task>.parquet`` beside a run's JSON, each whole or not at all.

    Samples are read twice and never held: memory does not grow with the log. An lm-eval output gets files of the same
    names as its own, and each of several shards of a run its own file, all of the same columns.
    """
    from evalcore.shell.logs.runs.shards import pool_beside
    from evalcore.shell.logs.runs.source import find_results

    require("pyarrow.parquet", "parquet")
    path, results, _ = find_results(parse_path(run))
    logs = pool_beside(path, parse_path(run))
    written = [_write(path.with_suffix(".parquet"), [build_results_table(results)])]
    for log in logs:
        kinds = find_metric_kinds(row.fields for row in read_sample_rows(*log.files))
        for file in log.files:
            rows = ({"task": log.task, **row.fields} for row in read_sample_rows(file))
            beside = file.with_name(file.name[: file.name.rindex(".json")] + ".parquet")
            written.append(_write(beside, build_batches(rows, kinds)))
    _drop_stale(path.parent, written)
    return tuple(written)


def _write(path: Path, tables: Iterable[pyarrow.Table]) -> Path:
    parquet = require("pyarrow.parquet", "parquet")

    def write(part: Path) -> None:
        left = iter(tables)
        first = next(left)
        with parquet.ParquetWriter(part, first.schema, compression="zstd") as writer:
            writer.write_table(first)
            for table in left:
                writer.write_table(table)

    return replace_with(path, write)


def _drop_stale(folder: Path, written: Iterable[Path]) -> None:
    """Tables that evalcore made of samples which are no longer there are not of these results."""
    kept = set(written)
    for path in folder.glob("samples_*.parquet"):
        logged = any(folder.glob(f"{path.stem}.json*"))
        if path not in kept and not logged and _is_ours(path):
            path.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    parquet, arrow = require("pyarrow.parquet", "parquet"), require("pyarrow", "parquet")
    try:
        return b"evalcore" in (parquet.read_schema(name_parquet(path)).metadata or {})
    except (arrow.ArrowException, OSError):
        return False
