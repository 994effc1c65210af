"""A closed column: a value, the influence of each document, and the errors and intervals that follow."""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.clusters import find_skewness, spread_of
from evalcore.core.aggregate.inference import DEFAULT, Inference, add_interval
from evalcore.core.aggregate.resample import resample_task
from evalcore.core.records.array import Floats64, Ints64, frozen, gradient, multiply_columns
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, Estimate, Evidence, Scale, Spread, Summary
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, OK, UNSCORABLE, Counts, Rule
from evalcore.core.records.request import NO_OPTIONS, Options
from evalcore.core.records.row import Floats, Rows, as_objects, take_rows
from evalcore.core.stats.skewness import hidden_variance

Evaluated = tuple[float | None, Floats64 | None, Floats64 | None]


def aggregate_metric(
    aggregation: Aggregation,
    column: Column,
    *,
    options: Options = NO_OPTIONS,
    inference: Inference = DEFAULT,
    clusters: Ints64 | None = None,
    score_bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Close a column into an estimate; ``clusters`` holds a code for every row of the column.

    ``score_bounds`` are those of a document's score, by default the aggregation's own.

    >>> from evalcore.core.aggregate.aggregations import AGGREGATIONS
    >>> from evalcore.core.records.array import multiply_columns, Array
    >>> from evalcore.core.records.column import build_column
    >>> aggregate_metric(AGGREGATIONS["mean"], build_column(range(4), Floats(Array([1.0, 1.0, 0.0, 1.0]))))
    Estimate(0.75 ± 0.25, n=4)
    """
    closed = close(column, inference.on_unscorable)
    empty = _count_documents(aggregation, column, closed, options)
    if not empty.counts.scored:
        return replace(empty, reason=_explain_empty(column))
    rows = take_rows(closed.rows, closed.scored)
    summary, (value, influence, sums) = _evaluate_rows(aggregation, rows, options)
    if value is None:
        return replace(empty, reason=f"{aggregation.name} has no finite value on these documents")
    codes = None if clusters is None else clusters[closed.scored][summary.units]
    keys, form = closed.keys.ints[closed.scored][summary.units], inference.form
    spread = spread_of(aggregation, rows, summary, influence, codes, inference.resampling, keys=keys, form=form)
    trials = summary.trials(sums) if summary.trials is not None and sums is not None else spread.trials
    trials = min(trials, spread.trials)  # documents of one cluster may all agree
    hidden = _find_hidden(aggregation, summary, spread.trials)
    lowest, highest = _find_extremes(aggregation, closed, value, sums, score_bounds)
    units, size = len(summary.units), aggregation.size
    filled = replace(
        empty,
        value=value,
        stderr=spread.error.stderr,
        n=units,
        reason=None if spread.error.stderr is not None else spread.error.method,
        warnings=spread.warnings,
        signature=spread.error.method,
        counts=replace(empty.counts, lowest=lowest, highest=highest),
        scale=replace(empty.scale, size=float(units) if size is None or sums is None else size(sums)),
        spread=Spread(
            variance=None if spread.variance is None else spread.variance + hidden,
            hidden=hidden,
            skewness=_find_skewness(summary, influence, codes),
            df=spread.df,
            trials=trials,
            influence=None if influence is None else frozen(influence),
            keys=frozen(keys),
            clusters=None if codes is None else frozen(codes),
            sums=None if sums is None else frozen(sums),
            weights=None if summary.weights is None else frozen(summary.weights),
            form=form,
        ),
    )
    together = codes if codes is not None and len(np.unique(codes)) < len(codes) else None  # those of one are plain
    evidence = Evidence(rows, options, summary, value, spread.df, together, inference.resampling.seed)
    own = None if aggregation.interval is None else partial(aggregation.interval, evidence)
    return add_interval(filled, inference, partial(resample_task, summary, codes), own)


def _find_hidden(aggregation: Aggregation, summary: Summary, trials: float) -> float:
    """Find the variance of a mean between bounds that its documents may hide."""
    low, high = aggregation.bounds
    if not aggregation.even or not isfinite(high - low):
        return 0.0
    shares = (summary.stats[:, 0] - low) / (high - low)
    inside = bool(((shares >= 0) & (shares <= 1)).all())  # one score beyond them, and there are no bounds
    return hidden_variance(shares) * (high - low) ** 2 / trials if inside else 0.0


def _find_skewness(summary: Summary, influence: Floats64 | None, codes: Ints64 | None) -> float:
    """Find the skewness of a value; right and wrong ones have one that Wilson's interval knows."""
    if influence is None or bool(((summary.stats == 0) | (summary.stats == 1)).all()):
        return 0.0
    return find_skewness(influence, codes)


def _evaluate_rows(aggregation: Aggregation, rows: Rows, options: Options) -> tuple[Summary, Evaluated]:
    try:
        summary = aggregation.summarise(rows, options)
        return summary, evaluate(aggregation, summary)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as wrong:
        raise (
            wrong if isinstance(wrong, EvalError) else EvalError(_explain_failure(aggregation, rows, wrong))
        ) from wrong


def _explain_failure(aggregation: Aggregation, rows: Rows, wrong: Exception) -> str:
    shown = as_objects(rows)[:1]
    return f"{aggregation.name} cannot aggregate rows such as {shown!r}: {type(wrong).__name__}: {wrong}"


def close(column: Column, rule: Rule) -> Column:
    """Treat documents without a score by a rule: leave them out, count them as 0, or refuse.

    >>> from evalcore.core.records.array import multiply_columns, Array
    >>> from evalcore.core.records.column import build_column
    >>> lost = build_column([0, 1], Floats(Array([1.0, float("nan")])), np.array([0, 1], np.uint8), {1: "no answer"})
    >>> close(lost, "zero").rows
    Floats(values=Array([1., 0.]))
    """
    lost = (column.status.data == UNSCORABLE) | (column.status.data == FAILED)
    if rule == "exclude" or not lost.any():
        return column
    if rule == "fail":
        first = next((reason for _, reason in column.reasons), "")
        raise EvalError(f"expected a score for every document, but {int(lost.sum())} have none; the first: {first}")
    if not isinstance(column.rows, Floats):
        raise EvalError(f"on_unscorable: zero needs numbers, got {type(column.rows).__name__}; use exclude or fail")
    return replace(
        column,
        rows=Floats(frozen(np.where(lost, 0.0, column.rows.values.floats))),
        status=frozen(np.where(lost, OK, column.status.data).astype(np.uint8)),
    )


def evaluate(aggregation: Aggregation, summary: Summary) -> Evaluated:
    """Return the value, the influence of each unit (n · d value / d weight), and the summed statistics."""
    if not len(summary.stats):
        return None, None, None
    if summary.finalise is None:
        value = float(summary.resampled(np.arange(len(summary.stats))[None, :])[0])
        return (value if isfinite(value) else None), None, None
    sums = aggregation.total(summary.stats)
    with np.errstate(all="ignore"):
        value = float(np.real(summary.finalise(sums)))
    if not isfinite(value):
        return None, None, None
    with np.errstate(invalid="ignore"):
        influence = multiply_columns(summary.stats, gradient(summary.finalise, sums) * len(summary.stats))
    return value, (_centre(influence) if bool(np.isfinite(influence).all()) else None), sums


def _centre(influence: Floats64) -> Floats64:
    """Centre influences. They sum to zero but for rounding, unless a value grows with the number of documents (smoothed
    BLEU does); a resample has as many documents as the sample, so that part is no error."""
    mean = float(np.sort(influence).sum()) / len(influence)  # sorted, so that no bit depends on the order
    return influence - mean if abs(mean) > 1e-9 * float(np.abs(influence).max()) else influence


def _count_documents(aggregation: Aggregation, column: Column, closed: Column, options: Options) -> Estimate:
    return Estimate(
        value=None,
        counts=Counts(
            scored=closed.count(OK),
            unscorable=column.count(UNSCORABLE),
            failed=column.count(FAILED),
            not_emitted=column.count(NOT_EMITTED),
        ),
        scale=Scale(
            aggregation=aggregation.name,
            options=options,
            bounds=aggregation.bounds,
            link=aggregation.link,
            average=aggregation.average,
            even=aggregation.even,
            measures=aggregation.measures,
            least=aggregation.least,
        ),
    )


def _explain_empty(column: Column) -> str:
    if not len(column):
        return "cannot score empty instances: there are no documents"
    first = next((reason for _, reason in column.reasons), "no document emitted this metric")
    return f"no document was scored; the first: {first}"


def _find_extremes(
    aggregation: Aggregation,
    closed: Column,
    value: float,
    sums: Floats64 | None,
    score_bounds: tuple[float, float] | None,
) -> tuple[float | None, float | None]:
    """Find the lowest and highest value, whatever the documents without a score would have scored, if that is known."""
    lost = closed.count(UNSCORABLE) + closed.count(FAILED)
    if not lost:
        return value, value
    if aggregation.even and sums is not None:
        known = aggregation.bounds if score_bounds is None else score_bounds
        ends = [(float(sums[0]) + lost * bound) / (float(sums[1]) + lost) for bound in known]
    else:
        ends = list(aggregation.bounds)
    low, high = (end if isfinite(end) else None for end in ends)
    return low, high
