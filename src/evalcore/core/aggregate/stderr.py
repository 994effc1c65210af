"""Standard errors from influences, from sums of very many rows, from an exact form, or from a seeded bootstrap."""

from __future__ import annotations

import operator
from fractions import Fraction
from math import isfinite, sqrt

import numpy as np
from msgspec.structs import replace

from evalcore.core.records.array import (
    Array,
    ColumnRecord,
    Floats64,
    Ints64,
    add_up,
    exact_sum,
    frozen,
)
from evalcore.core.records.estimate import Aggregation, Error, Resampling, Summary
from evalcore.core.records.lean.blend import Blend, Table
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats, Objects, Powers, Rows
from evalcore.core.stats.bootstrap import at_ranks, bootstrap, median_stderr
from evalcore.core.stats.influence import CR2, ErrorForm, gradient, independent, measure_error, multiply_columns

ALL_IN_ONE = "one document has all of the weight"
UNEVEN = "a tally of so many different scores does not keep what each document weighs; stderr: cr1 takes all for equal"
CALLABLE_DRAWS = 200


Evaluated = tuple[float | None, Array | None, Floats64 | None]


def evaluate(aggregation: Aggregation, summary: Summary) -> Evaluated:
    """Return the value, the influence of each unit (n · d value / d weight), and the summed statistics."""
    if not len(summary.stats):
        return None, None, None
    if summary.finalise is None:
        value = float(summary.resampled(_list_units(summary)[None, :])[0])
        return (value if isfinite(value) else None), None, None
    n, times = summary.count, summary.times
    sums = aggregation.total(summary.stats) if times is None else exact_sum(summary.stats, times)
    with np.errstate(all="ignore"):
        value = float(np.real(summary.finalise(sums)))
    if not isfinite(value):
        return None, None, None
    return value, _find_influence(summary, gradient(summary.finalise, sums) * n), sums


def _find_influence(summary: Summary, slopes: Floats64) -> Array | None:
    """Find the influence of each unit, centred; None if one is not finite. That of a table is made when it is read."""
    stats, times = summary.stats, summary.times
    blend = Blend(stats, tuple(slopes.tolist())) if isinstance(stats, Table) else None
    with np.errstate(invalid="ignore"):
        found = multiply_columns(np.asarray(stats), slopes) if blend is None else blend.make(0, len(blend))
    if not bool(np.isfinite(found).all()):
        return None
    less = _find_centre(found if blend is not None else found.copy(), times)
    if blend is not None:
        return Array(replace(blend, less=less))
    return frozen(found - less if less else found)


def _list_units(summary: Summary) -> Ints64:
    """List the units that decide a value: all, or of those that stand for several documents, the middle ones."""
    if summary.times is None or not summary.middle:
        return np.arange(len(summary.stats))
    order = np.argsort(summary.stats[:, 0], kind="stable")
    middle = np.array([(summary.count - 1) // 2, summary.count // 2])
    return order[at_ranks(middle, summary.times[order])]


def _find_centre(influence: Floats64, times: Ints64 | None) -> float:
    """Find what influences are to be centred by. They sum to zero but for rounding, unless a value grows with the
    number of documents (smoothed BLEU does); a resample has as many as the sample, so that part is no error.
    These are sorted here, so that no bit depends on their order, and so that it takes no copy."""
    largest = max(float(influence.max()), -float(influence.min()))
    if times is None:
        influence.sort()
    mean = float(influence.sum()) / len(influence) if times is None else add_up(influence, times) / int(times.sum())
    return mean if abs(mean) > 1e-9 * largest else 0.0


def from_influence(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """sqrt(Σ influence² / (n (n − 1))): for the mean, sample sd / sqrt(n). With weights, corrected for each document's.

    >>> from evalcore.core.records.estimate import smooth
    >>> of_two = smooth(np.array([[1.0], [0.0]]), lambda sums: sums[..., 0] / 2)
    >>> from_influence(None, of_two, np.array([0.5, -0.5]), Resampling())
    Error(stderr=0.5, method='delta')
    """
    n = summary.count
    if n < 2:
        return _lack_documents(n)
    if influence is None:
        return Error(None, "a score is not finite" if not np.isfinite(summary.stats).all() else "no derivative here")
    if summary.weights is None or np.ptp(summary.weights) == 0:
        return Error(independent(influence, summary.times)[1], "delta")
    made = measure_error(influence, weights=summary.weights, times=summary.times)
    return Error(made.stderr, f"weighted({CR2.name})" if made.stderr is not None else ALL_IN_ONE, made)


class SumMeasure(ColumnRecord, frozen=True, eq=False):
    """A value of very many rows, its summed statistics, its error, the variance behind that, and its skewness."""

    value: float
    sums: Floats64
    count: int
    error: Error
    variance: float | None = None
    skewness: float = 0.0


def measure_sums(aggregation: Aggregation, rows: Powers, options: Options, form: ErrorForm) -> SumMeasure:
    """Measure a value of linear statistics, which the rows of a unit matrix tell, from the sums of rows and products.

    >>> from evalcore.core.aggregate.aggregations import AGGREGATIONS
    >>> from evalcore.core.records.row import Floats, sum_powers
    >>> made = measure_sums(AGGREGATIONS["mean"], sum_powers(Floats([1.0, 0.0]), None), {}, CR2)
    >>> made.value, made.count, made.error
    (0.5, 2, Error(stderr=0.5, method='delta'))
    """
    width = len(rows.low)
    units = np.vstack([np.zeros(width), np.eye(width)])
    kind = rows.kind
    if issubclass(kind, Objects):
        raise AssertionError("what is not a number has no sums")
    summary = aggregation.summarise(kind(Array(units[:, 0] if kind is Floats else units)), options)
    base, *ends = ([Fraction(one) for one in row] for row in np.asarray(summary.stats).tolist())
    slopes = [base, *([one - start for one, start in zip(end, base, strict=True)] for end in ends)]
    exact = [rows.add([row[at] for row in slopes], 1) for at in range(len(base))]
    sums, count, finalise = np.array([float(one) for one in exact]), int(rows.sums[0]), summary.finalise
    if finalise is None:
        raise AssertionError(f"{aggregation.name} is no function of sums")
    with np.errstate(all="ignore"):
        value, moves = float(np.real(finalise(sums))), gradient(finalise, sums) * count
    if count < 2:
        return SumMeasure(value, sums, count, _lack_documents(count))
    if not np.isfinite(moves).all():
        return SumMeasure(value, sums, count, Error(None, "no derivative here"))
    if summary.weights is not None and np.ptp(form.weigh(np.array([1.0, 2.0]))) > 0:
        return SumMeasure(value, sums, count, Error(None, UNEVEN))
    by_row = [sum(map(operator.mul, row, map(Fraction, moves.tolist())), Fraction(0)) for row in slopes]
    by_row[0] -= rows.add(by_row, 1) / count  # centred: see _find_centre
    squares, cubes = rows.add(by_row, 2), rows.add(by_row, 3)
    variance = float(squares / count**2)
    skewness = float(cubes) / (float(squares) * sqrt(squares)) if squares else 0.0
    return SumMeasure(value, sums, count, Error(sqrt(count / (count - 1) * variance), "delta"), variance, skewness)


def _lack_documents(n: int) -> Error:
    return Error(None, f"needs two documents, got {n}")


def from_median(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """The exact bootstrap error of the median, without resampling (Maritz and Jarrett 1978).

    >>> same = Summary(np.ones((4, 1)), lambda index: np.ones(len(index)), np.arange(4))
    >>> from_median(None, same, None, Resampling())
    Error(stderr=0.0, method='maritz-jarrett')
    """
    order = np.argsort(summary.stats[:, 0], kind="stable")
    n, times = summary.count, None if summary.times is None else summary.times[order]
    stderr = median_stderr(summary.stats[order, 0], times)
    if n < 2:
        return _lack_documents(n)
    return Error(stderr, "maritz-jarrett" if stderr is not None else "a score is not finite")


def from_bootstrap(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """A seeded bootstrap, corrected by sqrt(n / (n − 1)).

    >>> alone = Summary(np.ones((1, 1)), lambda index: np.ones(len(index)), np.arange(1))
    >>> from_bootstrap(None, alone, None, Resampling(draws=50, seed=3))
    Error(stderr=None, method='needs two documents, got 1')
    """
    draws = resampling.draws or CALLABLE_DRAWS
    n = len(summary.stats)
    if n < 2:
        return _lack_documents(n)
    stderr = bootstrap(lambda index: float(summary.resampled(index[None, :])[0]), n, draws=draws, seed=resampling.seed)
    made = f"bootstrap(draws={draws},seed={resampling.seed})"
    return Error(stderr, made if stderr is not None else "fewer than two resamples have a value")
