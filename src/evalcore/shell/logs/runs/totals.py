"""Results without samples: numbers known only by value, standard error and count."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path

from msgspec.structs import replace

from evalcore.core.aggregate.inference import DEFAULT, Inference, add_interval
from evalcore.core.compare.gates import Number
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.power import Known
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.records.estimate import Estimate
from evalcore.shell.logs.lm_eval.rows import read_float
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.logs.runs.source import find_results
from evalcore.shell.logs.search import Searched


def read_totals(path: Path, searched: Searched) -> Recorded:
    """Read a run without samples: its results, and no scores by document."""
    read, results, warnings = find_results(path, searched)
    judged = f"{read} has no samples beside it: its numbers are judged by their standard errors and counts there"
    return Recorded(path.name, path, ComparisonSide(path.name, ()), results, {}, (*warnings, judged))


def list_total_estimates(results: Mapping[str, object], inference: Inference = DEFAULT) -> dict[Number, Estimate]:
    """List every number of a results file, ours or lm-eval's, with the interval from its standard error.

    >>> row = {"acc,none": 0.5, "acc_stderr,none": 0.05, "sample_len": 101}
    >>> found = list_total_estimates({"results": {"t": row}})
    >>> [round(end, 2) for one in found.values() for end in one.ci]
    [0.4, 0.6]
    """
    from evalcore.shell.logs.runs.result_errors import list_known

    parts = [results.get(part) for part in ("groups", "results")]
    rows = {name: row for part in parts if isinstance(part, Mapping) for name, row in part.items()}
    return {
        (known.name, known.key): _estimate(known, rows[known.name], inference)
        for known in list_known(results)
        if isinstance(rows.get(known.name), Mapping)
    }


def _estimate(known: Known, row: Mapping[str, object], inference: Inference) -> Estimate:
    value = read_float(row.get(str(known.key)))
    if value is None or not isfinite(value):
        return Estimate(value=None, reason="the results have no number for it")
    flat = {str(known.key): value, known.key.stderr: known.stderr, "sample_len": known.n or None}
    ((_, estimate),) = leaf_from_flat(known.name, flat).value.estimates
    if known.units < known.n or known.df is not None:
        df = known.df if known.df is not None else known.units - 1.0
        estimate = replace(estimate, spread=replace(estimate.spread, df=df, trials=float(known.units)))
    if not known.share:  # a value between 0 and 1 alone does not bound the scores behind it
        estimate = replace(estimate, scale=replace(estimate.scale, bounds=(-inf, inf)))
    return add_interval(estimate, inference)
