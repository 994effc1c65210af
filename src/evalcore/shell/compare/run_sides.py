"""The runs of a command: read once, by keys in the words of its flags, and scored as they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.power import Known
from evalcore.core.lm_eval.result_file import lm_eval_results
from evalcore.core.records.errors import EvalError
from evalcore.shell.compare.alike import read_together
from evalcore.shell.config.values import Names, RunPath, list_names, split_names
from evalcore.shell.logs.runs.directions import point_sides
from evalcore.shell.logs.runs.result_errors import known_of
from evalcore.shell.logs.runs.run_record import (
    Recorded,
    close_recorded,
    comparable_side,
    read_recorded,
    refuse_other_rows,
    run_path,
)
from evalcore.shell.logs.runs.source import find_results
from evalcore.shell.logs.runs.totals import read_with_totals

__all__ = ["ReadKeys", "read_known", "read_run", "read_sides"]


class ReadKeys(TypedDict, total=False):
    """What no log says: which documents count together, which are the same, which way a metric points."""

    cluster: str | None
    match: Names | None
    higher_is_better: Names
    lower_is_better: Names


def read_sides(
    paths: Sequence[RunPath],
    *,
    cluster: str | None = None,
    match: Names | None = None,
    higher_is_better: Names = (),
    lower_is_better: Names = (),
) -> tuple[tuple[Recorded, ...], tuple[ComparisonSide, ...]]:
    """Runs, each read once, and their scores to compare: counted as the run did, metrics pointing as asked."""
    runs = read_together([run_path(str(path)) for path in paths], cluster=cluster, match=_fields(match))
    sides = [comparable_side(run) for run in runs]
    return runs, point_sides(sides, list_names(higher_is_better), list_names(lower_is_better))


def read_run(path: RunPath, **reading: Unpack[ReadKeys]) -> Recorded:
    """A run by itself; one without samples has the totals of its results."""
    return read_with_totals(run_path(str(path)), cluster=reading.get("cluster"), match=_fields(reading.get("match")))


def read_known(path: RunPath, cluster: str | None = None) -> tuple[tuple[Known, ...], str, tuple[str, ...]]:
    """What is known of the error of each number, the file that says so, and warnings."""
    read, results, warnings = _read_results(run_path(str(path)), cluster)
    known = known_of(results)
    if not known:
        raise EvalError(f"{read}: expected metrics under results, found none")
    return known, str(read), warnings


def _read_results(path: Path, cluster: str | None) -> tuple[Path, Mapping[str, object], tuple[str, ...]]:
    """The results of a run; those its samples give where there are none, or where other clusters are asked for."""
    refuse_other_rows(path)
    if cluster is None:
        try:
            return find_results(path)
        except EvalError:  # there may be samples; if not, reading them raises the same error
            pass
    run = read_recorded(path, cluster=cluster)
    return path, lm_eval_results(close_recorded(run)), run.warnings


def _fields(match: Names | None) -> tuple[str, ...]:
    fields = split_names(match or ())
    if match is not None and not fields:
        raise EvalError(f"expected --match with a field of the documents, got {match!r}")
    return fields
