"""Laws of aggregations: influence is a derivative, bits do not depend on order or split, bounds hold."""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose, sqrt

import numpy as np

from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.records.array import Array, Finalise, Floats64
from evalcore.core.records.column import Column, build_column, merge_all
from evalcore.core.records.estimate import Aggregation, Estimate, Summary
from evalcore.core.records.request import NO_OPTIONS, Options
from evalcore.core.records.row import Objects, Powers, take_rows
from evalcore.core.tally import MOST, tally_column
from evalcore.testing.fingerprints import fingerprint

STEP = 1e-5


def check_aggregation(
    aggregation: Aggregation,
    columns: Iterable[Column],
    *,
    given: Options = NO_OPTIONS,
    scale_free: bool = True,
    rtol: float = 1e-5,
) -> None:
    """Check that a value keeps its bounds and its bits in any order and split, and that influence is its derivative.

    Without ``scale_free`` (smoothed BLEU) doubling every document changes the value; its influences are centred. The
    standard error is sqrt(Σ influence² / (n (n − 1))) if the aggregation says it is found that way.

    >>> from evalcore import AGGREGATIONS
    >>> from evalcore.stats import Array, Floats
    >>> check_aggregation(AGGREGATIONS["mean"], [build_column(range(3), Floats(Array([0.0, 1.0, 0.5])))])
    """
    for one in columns:
        before = fingerprint(one)
        closed = aggregate_metric(aggregation, one, options=given)
        _check_bits(aggregation, one, given, closed)
        if closed.value is None:
            assert closed.reason, "a value that is missing has a reason"
        else:
            low, high = aggregation.bounds
            slack = 1e-9 * max(abs(closed.value), 1.0)
            inside = low - slack <= closed.value <= high + slack
            assert inside, f"a value keeps its bounds: expected {aggregation.bounds}, got {closed.value}"
            _check_influences(aggregation, one, given, closed, scale_free, rtol)
            check_resamples(aggregation, one, given=given)
            _check_tally(aggregation, one, given, closed)
        assert fingerprint(one) == before, "an aggregation leaves its column unchanged"


def check_resamples(aggregation: Aggregation, one: Column, *, given: Options = NO_OPTIONS) -> None:
    """Check that a resample has the value of the rows drawn, however many: clusters drawn whole differ in size.

    >>> from evalcore.lm_eval import LM_EVAL_0_4_13
    >>> from evalcore.stats import Array, Floats
    >>> check_resamples(LM_EVAL_0_4_13.aggregations["median"], build_column(range(3), Floats(Array([0.0, 1.0, 0.5]))))
    """
    known, n = take_rows(one.rows, one.scored), int(np.count_nonzero(one.scored))
    for index in (np.arange(n), np.tile(np.arange(n), 2), np.append(np.arange(n), [0, 0])) if n else ():
        summary, drawn = aggregation.summarise(known, given), build_column(range(len(index)), take_rows(known, index))
        closed = aggregate_metric(aggregation, drawn, options=given)
        if closed.value is not None and (len(summary.stats), closed.n) == (n, len(index)):  # units are documents
            (got,) = summary.resampled(index[None, :])
            assert np.isclose(got, closed.value, rtol=1e-9, atol=1e-12), (
                f"a resample is the value of rows {index.tolist()}: expected {closed.value}, got {got}"
            )


def _check_bits(aggregation: Aggregation, one: Column, given: Options, closed: Estimate) -> None:
    status = np.asarray(one.status.data, np.uint8)
    pieces = [
        build_column(
            one.keys.ints[i : i + 1], take_rows(one.rows, np.array([i])), status[i : i + 1], _list_reasons(one, i)
        )
        for i in range(len(one))
    ]
    merged = merge_all(pieces[1::2] + pieces[::2]) if pieces else one
    again = aggregate_metric(aggregation, merged, options=given)
    assert fingerprint(again) == fingerprint(closed), (
        f"an estimate does not depend on the split: expected {closed}, got {again}"
    )
    back = np.arange(len(one))[::-1]
    turned = Column(one.keys, take_rows(one.rows, back), Array(status[back]))
    other = aggregate_metric(aggregation, turned, options=given).value
    assert fingerprint(other) == fingerprint(closed.value), (
        f"a value does not depend on the order of rows: expected {closed.value!r}, got {other!r}"
    )


def _check_tally(aggregation: Aggregation, one: Column, given: Options, closed: Estimate) -> None:
    forms = {"rows": [MOST], "sums": [MOST, 1], "weighted": [MOST, 1]}.get(aggregation.rests_on, [])
    for most in forms:
        tallied = tally_column(one, most=most)
        if isinstance(tallied.rows, Powers) and (tallied.rows.wild or tallied.rows.kind is Objects):
            continue  # only numbers add up
        made = aggregate_metric(aggregation, tallied, options=given)
        assert fingerprint(made.value) == fingerprint(closed.value), (
            f"it rests on {aggregation.rests_on}: expected {closed.value!r} of a tally as of its documents, got {made}"
        )


def _list_reasons(one: Column, i: int) -> dict[int, str]:
    key = int(one.keys.ints[i])
    return {known: reason for known, reason in one.reasons if known == key}


def differentiate_value(finalise: Finalise, stats: Floats64) -> tuple[Floats64, Floats64]:
    """Compute n · d value / d weight of each row, by differences from the left and from the right.

    >>> left, right = differentiate_value(lambda s: s[..., 0] / s[..., 1], np.array([[0.0, 1.0], [1.0, 1.0]]))
    >>> left.round(4).tolist(), right.round(4).tolist()
    ([-0.5, 0.5], [-0.5, 0.5])
    """
    sums = stats.sum(axis=0)
    with np.errstate(all="ignore"):
        # Second order from either side, so that both sides agree unless there is a kink.
        at, left, left2, right, right2 = (
            np.real(finalise(sums + step * stats)) for step in (0.0, -STEP, -2 * STEP, STEP, 2 * STEP)
        )
        n = len(stats)
        return n * (3 * at - 4 * left + left2) / (2 * STEP), n * (4 * right - right2 - 3 * at) / (2 * STEP)


def _check_influences(
    aggregation: Aggregation, one: Column, given: Options, closed: Estimate, scale_free: bool, rtol: float
) -> None:
    summary: Summary = aggregation.summarise(take_rows(one.rows, one.scored), given)
    if summary.finalise is None:
        assert closed.spread.influence is None, "a value that is no function of sums has no influence"
        return
    if closed.spread.influence is None:
        return
    influence = closed.spread.influence.floats
    n = len(influence)
    left, right = differentiate_value(summary.finalise, np.asarray(summary.stats))
    low, high = np.minimum(left, right), np.maximum(left, right)
    if not scale_free:  # the number of documents is fixed; at a kink every unit may have its own side
        low, high = low - high.mean(), high - low.mean()
    scale = max(float(np.max(np.abs(influence), initial=0.0)), abs(closed.value or 0.0), 1e-9)
    slack = rtol * scale + n * 1e-14 / STEP * max(abs(closed.value or 0.0), 1e-9)
    wrong = (influence < low - slack) | (influence > high + slack)
    assert not wrong.any(), (
        f"influence is the derivative in a unit's weight: expected {right.tolist()}, got {influence.tolist()}"
    )
    total = float(influence.sum())
    assert abs(total) <= 1e-9 * n * scale, f"influences sum to 0: got {total}"
    if closed.signature == "delta" and n > 1:
        wanted = sqrt(float(np.sum(influence**2)) / (n * (n - 1)))
        assert closed.stderr is not None
        assert isclose(closed.stderr, wanted, rel_tol=1e-12, abs_tol=1e-150), (  # the square of smaller ones is 0
            f"stderr is sqrt(sum influence² / (n (n - 1))): expected {wanted}, got {closed.stderr}"
        )
