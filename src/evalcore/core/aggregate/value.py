"""A closed column: a value, the influence of each document, and the errors and intervals that follow."""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.clusters import NO_ERRORS, UnitSpread, find_skewness, pick_units, spread_of
from evalcore.core.aggregate.inference import DEFAULT, Inference, add_interval, refuse_documents
from evalcore.core.aggregate.resample import resample_task
from evalcore.core.aggregate.stderr import Evaluated, evaluate, measure_sums
from evalcore.core.records.array import Array, Floats64, Ints64, frozen, list_blocks
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, Error, Estimate, Evidence, Scale, Spread, Summary
from evalcore.core.records.lean.blend import Table
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, OK, UNSCORABLE, Counts, Rule
from evalcore.core.records.request import NO_OPTIONS, Options
from evalcore.core.records.row import WILD, Floats, Powers, Rows, add_powers, as_objects, sum_powers, take_rows
from evalcore.core.stats.skewness import hidden_of_sums, hidden_variance


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
    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import build_column
    >>> aggregate_metric(AGGREGATIONS["mean"], build_column(range(4), Floats(Array([1.0, 1.0, 0.0, 1.0]))))
    Estimate(0.75 ± 0.25, n=4)
    """
    if column.times is not None:
        refuse_documents(aggregation, inference, clusters is not None)
    closed = close(column, inference.on_unscorable)
    empty = _count_documents(aggregation, column, closed, options)
    if not empty.counts.scored:
        return replace(empty, reason=_explain_empty(column))
    rows = take_rows(closed.rows, closed.scored)
    if isinstance(rows, Powers):
        return _close_powers(aggregation, closed, rows, empty, inference, score_bounds)
    times = None if closed.times is None else closed.times.ints[closed.scored]
    summary, (value, moves, sums) = _evaluate_rows(aggregation, rows, options, times)
    if value is None:
        return replace(empty, reason=f"{aggregation.name} has no finite value on these documents")
    influence = None if moves is None else moves.floats
    codes = None if clusters is None else pick_units(summary, clusters[closed.scored])
    each, form = len(summary.stats) == len(closed), inference.form  # no copy where each document is a unit
    keys = closed.keys if each else frozen(pick_units(summary, closed.keys.ints[closed.scored]))
    spread = spread_of(aggregation, rows, summary, influence, codes, inference.resampling, keys=keys, form=form)
    trials = summary.trials(sums) if summary.trials is not None and sums is not None else spread.trials
    made = Spread(
        skewness=_find_skewness(summary, influence, codes),
        trials=min(trials, spread.trials),  # documents of one cluster may all agree
        clusters=None if codes is None else frozen(codes),
        sums=None if sums is None else frozen(sums),
        weights=None if summary.weights is None else frozen(summary.weights),
        form=form,
    )
    made = replace(made, influence=moves, keys=keys) if summary.times is None else made
    hidden = _find_hidden(aggregation, summary, spread.trials)
    filled = _fill(empty, aggregation, closed, value, summary.count, spread, made, hidden, score_bounds)
    together = codes if codes is not None and len(np.unique(codes)) < len(codes) else None  # those of one are plain
    evidence = Evidence(rows, options, summary, value, spread.df, together, inference.resampling.seed)
    own = None if aggregation.interval is None else partial(aggregation.interval, evidence)
    return add_interval(filled, inference, partial(resample_task, summary, codes), own)


def _fill(
    empty: Estimate,
    aggregation: Aggregation,
    closed: Column,
    value: float,
    units: int,
    spread: UnitSpread,
    made: Spread,
    hidden: float,
    score_bounds: tuple[float, float] | None,
) -> Estimate:
    size, sums = aggregation.size, None if made.sums is None else made.sums.floats
    lowest, highest = _find_extremes(aggregation, closed, value, sums, score_bounds)
    variance = None if spread.variance is None else spread.variance + hidden
    return replace(
        empty,
        value=value,
        stderr=spread.error.stderr,
        n=units,
        reason=None if spread.error.stderr is not None else spread.error.method,
        warnings=spread.warnings,
        signature=spread.error.method,
        counts=replace(empty.counts, lowest=lowest, highest=highest),
        scale=replace(empty.scale, size=float(units) if size is None or sums is None else size(sums)),
        spread=replace(made, variance=variance, hidden=hidden, df=spread.df),
    )


def _close_powers(
    aggregation: Aggregation,
    closed: Column,
    rows: Powers,
    empty: Estimate,
    inference: Inference,
    score_bounds: tuple[float, float] | None,
) -> Estimate:
    """Close very many rows of which only sums are kept."""
    if aggregation.rests_on not in ("sums", "weighted") or not rows.low:
        return replace(empty, reason=f"{aggregation.name} needs every score, and these are too many to {TALLIED}")
    if rows.wild:
        return replace(empty, reason=f"{rows.wild:,} scores are not finite or beyond {WILD}, and too many to {TALLIED}")
    found = measure_sums(aggregation, rows, empty.scale.options, inference.form)
    if not isfinite(found.value):
        return replace(empty, reason=f"{aggregation.name} has no finite value on these documents")
    n = found.count
    spread = UnitSpread(found.error, found.variance, float(n), n - 1.0)
    if inference.resampling.draws == 0:
        spread = UnitSpread(Error(None, NO_ERRORS), None, float(n), n - 1.0)
    made = Spread(skewness=found.skewness, trials=float(n), sums=frozen(found.sums), form=inference.form)
    low, high = aggregation.bounds
    hidden = 0.0
    if aggregation.even and isfinite(high - low) and low <= rows.low[0] and rows.high[0] <= high:
        hidden = hidden_of_sums(n, rows.inside, *map(float, rows.near)) * (high - low) ** 2 / n
    return add_interval(
        _fill(empty, aggregation, closed, found.value, n, spread, made, hidden, score_bounds), inference
    )


TALLIED = "be tallied; score them without tally"


def _find_hidden(aggregation: Aggregation, summary: Summary, trials: float) -> float:
    """Find the variance of a mean between bounds that its documents may hide."""
    low, high = aggregation.bounds
    if not aggregation.even or not isfinite(high - low):
        return 0.0
    scores = summary.stats.columns[0] if isinstance(summary.stats, Table) else summary.stats[:, 0]
    shares = ((some - low) / (high - low) for some in list_blocks(scores))
    inside = all(bool(((some >= 0) & (some <= 1)).all()) for some in shares)  # one beyond them, and there are no bounds
    return hidden_variance(scores, summary.times, (low, high)) * (high - low) ** 2 / trials if inside else 0.0


def _find_skewness(summary: Summary, influence: Floats64 | None, codes: Ints64 | None) -> float:
    """Find the skewness of a value; right and wrong ones have one that Wilson's interval knows."""
    blocks = (some for column in summary.stats.T for some in list_blocks(column))
    plain = all(bool(((some == 0) | (some == 1)).all()) for some in blocks)
    return 0.0 if influence is None or plain else find_skewness(influence, codes, summary.times)


def _evaluate_rows(
    aggregation: Aggregation, rows: Rows, options: Options, times: Ints64 | None
) -> tuple[Summary, Evaluated]:
    try:
        summary = aggregation.summarise(rows, options)
        summary = summary if times is None else replace(summary, times=pick_units(summary, times))
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

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import build_column
    >>> lost = build_column([0, 1], Floats(Array([1.0, float("nan")])), np.array([0, 1], np.uint8), {1: "no answer"})
    >>> close(lost, "zero").rows
    Floats(values=Array([1., 0.]))
    """
    lost = (column.status.data == UNSCORABLE) | (column.status.data == FAILED)
    count = column.count(UNSCORABLE) + column.count(FAILED)
    if rule == "exclude" or not lost.any():
        return column
    if rule == "fail":
        first = next((reason for _, reason in column.reasons), "")
        raise EvalError(f"expected a score for every document, but {count} have none; the first: {first}")
    status = frozen(np.where(lost, OK, column.status.data).astype(np.uint8))
    if isinstance(column.rows, Powers) and column.rows.kind is Floats:
        zeros = sum_powers(Floats(Array([0.0])), np.array([count]), column.rows.bounds)
        return replace(column, rows=add_powers(column.rows, zeros), status=status)
    if not isinstance(column.rows, Floats):
        raise EvalError(f"on_unscorable: zero needs numbers, got {type(column.rows).__name__}; use exclude or fail")
    return replace(column, rows=Floats(frozen(np.where(lost, 0.0, column.rows.values.floats))), status=status)


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
