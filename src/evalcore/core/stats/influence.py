"""Standard errors of estimates from the influence of each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, nan, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from pyrsistent import PMap, pmap

from evalcore.core.records.array import ColumnRecord, Finalise, Floats64, Ints64, add_up
from evalcore.core.records.errors import EvalError

_LARGE = 1e150


def scale_of(values: Sequence[float] | Floats64) -> float:
    """What to divide values by before they are squared: 1, or the largest if its square would overflow.

    >>> scale_of([3.0, -4.0]), scale_of([1.0, -1e200])
    (1.0, 1e+200)
    """
    largest = max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0)))
    return largest if largest > _LARGE else 1.0


def multiply_columns(matrix: Floats64, weights: Floats64) -> Floats64:
    """``matrix @ weights``, added column by column: BLAS does not promise an order.

    >>> multiply_columns(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 1.0])).tolist()
    [12.0, 34.0]
    """
    total = np.zeros(len(matrix))
    for column, weight in zip(matrix.T, weights.tolist(), strict=True):
        total += column * weight
    return total


def gradient(finalise: Finalise, sums: Floats64) -> Floats64:
    """Differentiate a finaliser at these sums, to machine precision, by the complex step.

    >>> gradient(lambda s: s[..., 0] / s[..., 1], np.array([3.0, 4.0])).tolist()
    [0.25, -0.1875]
    """
    step = 1e-30
    with np.errstate(all="ignore"):
        moved = finalise(sums + 1j * step * np.eye(len(sums)))
    return np.asarray(np.imag(moved) / step, dtype=np.float64)


def independent(influence: Floats64, times: Ints64 | None = None) -> tuple[float, float | None, int]:
    """Uncorrected variance, standard error and count of an estimate whose documents are independent.

    With ``times``, here and below, a number stands for so many documents.

    >>> variance, stderr, n = independent(np.array([-1.0, 0.0, 1.0]))
    >>> round(variance, 6), round(stderr, 6), n      # 2 / 9 and sd / sqrt(3)
    (0.222222, 0.57735, 3)
    """
    count = len(influence) if times is None else int(times.sum())
    if count == 0:
        return nan, None, 0
    scale = scale_of(influence)
    variance = add_up(influence, times, lambda some: (some if scale == 1 else some / scale) ** 2) / (count * count)
    return scale * scale * variance, scale * sqrt(count / (count - 1) * variance) if count > 1 else None, count


class ErrorForm(Struct, frozen=True):
    """A form of errors: its name, and what documents or clusters are taken to weigh, given what they weigh."""

    name: str
    weigh: Callable[[Floats64], Floats64]


def _level(weights: Floats64) -> Floats64:
    return np.full(len(weights), weights.mean())


CR2 = ErrorForm("cr2", np.asarray)
ERROR_FORMS: PMap[str, ErrorForm] = pmap({"cr2": CR2, "cr1": ErrorForm("cr1", _level)})
"""``cr2`` corrects each cluster for its weight; ``cr1`` takes all for equal: C/(C - 1), C - 1 degrees of freedom."""


class Leverage(ColumnRecord, frozen=True, eq=False):
    """Each unit's share of all weights, and its variance if that of a document is its share squared."""

    shares: Floats64
    variances: Floats64
    times: Ints64 | None = None

    @property
    def count(self) -> int:
        return len(self.shares) if self.times is None else int(self.times.sum())

    @property
    def factors(self) -> Floats64:
        """What 1/(1 - share), the correction of each unit's square, is beside C/(C - 1): 1 if all shares are equal."""
        even = np.ptp(self.shares) == 0
        return np.ones(len(self.shares)) if even else (1 - 1 / self.count) / (1 - self.shares)

    @property
    def df(self) -> float:
        """Bell and McCaffrey's degrees of freedom: C - 1 if all units are equal."""
        if np.ptp(self.shares) == np.ptp(self.variances) == 0:
            return self.count - 1.0
        whole = add_up(self.variances, self.times)
        return min(find_degrees(self.shares, self.variances / whole, self.times), self.count - 1.0)

    @property
    def trials(self) -> float:
        """Kish's number of equal units that would be worth as much."""
        return float(self.count) if np.ptp(self.shares) == 0 else 1 / add_up(self.shares**2, self.times)


class UnitError(Struct, frozen=True):
    """A standard error, degrees of freedom, and the variance behind an interval: stderr² without C/(C - 1).

    ``trials`` is what an interval rests on if the variance is 0.
    """

    stderr: float | None
    variance: float
    df: float
    trials: float
    units: int


def measure_error(
    influence: Floats64,
    clusters: Sequence[object] | NDArray[np.generic] | None = None,
    *,
    weights: Floats64 | None = None,
    times: Ints64 | None = None,
    form: ErrorForm = CR2,
) -> UnitError:
    """The error of a mean or, with ``weights``, of a ratio to their sum, if documents of a cluster are dependent.

    A heavy unit draws the estimate towards itself, which hides its own deviation: its square is divided by 1 - its
    share of all weights (Bell and McCaffrey 2002).

    >>> even = measure_error(np.array([-1.0, -1.0, 1.0, 1.0]), ["a", "a", "b", "b"])
    >>> round(even.variance, 6), round(even.stderr, 6), even.df, even.units
    (0.5, 1.0, 1.0, 2)
    >>> uneven = measure_error(np.array([-1.0, -1.0, 0.0, 2.0]), ["a", "a", "b", "c"])
    >>> round(uneven.stderr, 6), round(uneven.df, 6), round(uneven.trials, 6)
    (0.912871, 1.8, 2.666667)
    """
    n = len(influence) if times is None else int(times.sum())
    codes = None if clusters is None else _encode_clusters(clusters, n)
    weights = None if weights is None or n == 0 or np.ptp(weights) == 0 else weights
    if n == 0 or (codes is None and weights is None):
        variance, stderr, count = independent(influence, times)
        return UnitError(stderr, variance, count - 1.0, float(count), count)
    totals = influence if codes is None else sum_clusters(influence, codes)
    leverage = weigh_units(np.ones(n) if weights is None else weights, codes, form, times)
    count, scale = leverage.count, scale_of(totals)
    squares = (totals / scale) ** 2
    if count < 2 or not leverage.shares.max() < 1:
        return UnitError(None, scale * scale * (add_up(squares, times) / (n * n)), 0.0, 1.0, count)
    variance = add_up(squares * leverage.factors, times) / (n * n)
    stderr = scale * sqrt(count / (count - 1) * variance)
    return UnitError(stderr, scale * scale * variance, leverage.df, leverage.trials, count)


def weigh_units(
    weights: Floats64, codes: Ints64 | None, form: ErrorForm = CR2, times: Ints64 | None = None
) -> Leverage:
    """Weigh documents, or clusters in the order of their codes, which are 0, 1, 2, ...

    >>> weigh_units(np.array([1.0, 1.0, 2.0]), np.array([1, 0, 0])).shares.tolist()
    [0.75, 0.25]
    """
    weights = np.ldexp(weights, -np.frexp(weights.max(initial=0.0))[1])  # so that no square is too large or too small
    sums = [part if codes is None else sum_clusters(part, codes) for part in (weights, weights * weights)]
    whole = add_up(weights, times)
    with np.errstate(divide="ignore", invalid="ignore"):  # weights that add up to nothing leave no error
        return Leverage(form.weigh(sums[0]) / whole, form.weigh(sums[1]) / whole**2, times)


def find_degrees(shares: Floats64, variances: Floats64, times: Ints64 | None = None) -> float:
    """Degrees of freedom (tr A)² / tr(A²) of a sum of squares that are corrected for these shares.

    A is the covariance of the units' sums, given their shares of the whole variance: diagonal, but for what the
    estimate itself takes away, a matrix of rank 2. So it takes sums over the units, and no table of all pairs.

    >>> find_degrees(np.full(5, 0.2), np.full(5, 0.2))
    4.0
    """
    h, q, w = shares, variances, 1 / (1 - shares)

    def add(values: Floats64) -> float:
        return add_up(values, times)

    hh, hq, qq = add(w * h * h), add(w * h * q), add(w * q * q)
    alone = add(w * w * q * (q * (1 - 4 * h) + 2 * h * h))
    squares = alone + 2 * hh * qq + hh * hh + 2 * hq * hq - 4 * hh * hq
    found = max(add(w * (q * (1 - 2 * h) + h * h)) ** 2 / squares, 1.0) if squares > 0 else 1.0
    return float(round(found)) if abs(found - round(found)) < 1e-9 * found else found  # of equal units: an integer


def sum_clusters(values: Floats64, codes: Ints64) -> Floats64:
    """The sum of each cluster's values, in the order of the codes, which are 0, 1, 2, ...

    >>> sum_clusters(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1])).tolist()
    [2.0, 4.0]
    """
    # sorted by value within a cluster, so that the order of documents does not change a bit
    order = np.lexsort((values, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts), dtype=np.float64)


def _encode_clusters(clusters: Sequence[object] | NDArray[np.generic], n: int) -> Ints64:
    if isinstance(clusters, np.ndarray) and clusters.dtype.kind in "iub" and len(clusters) == n:
        return np.asarray(np.unique(clusters, return_inverse=True)[1], dtype=np.int64)
    ids = clusters.tolist() if isinstance(clusters, np.ndarray) else list(clusters)
    if len(ids) != n:
        raise EvalError(f"expected a cluster id for each of {n} documents, got {len(ids)}")
    missing = [i for i, one in enumerate(ids) if one is None or one != one]
    if missing:
        raise EvalError(
            f"expected a cluster id for every document, got none for {len(missing)} of {n}, "
            f"first at row {missing[0]}; give each its own id if they stand alone"
        )
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(one, len(seen)) for one in ids], dtype=np.int64)


def satterthwaite(variances: Sequence[float], dfs: Sequence[float]) -> float:
    """Degrees of freedom of a sum of independent estimates; without any variance, as if all were equal.

    >>> satterthwaite([1.0, 1.0], [9, 9]), satterthwaite([2.0, 0.0], [4, 0]), satterthwaite([0.0], [9])
    (18.0, 4.0, 9.0)
    """
    pairs = [(v, df) for v, df in zip(variances, dfs, strict=True) if v > 0] or [(1.0, df) for df in dfs]
    if not pairs or any(df <= 0 for _, df in pairs):
        return 0.0
    top = max(v for v, _ in pairs)
    shares = [(v / top, df) for v, df in pairs]
    return fsum(v for v, _ in shares) ** 2 / fsum(v * v / df for v, df in shares)
