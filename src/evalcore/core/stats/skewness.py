"""Skewed scores: how skewed an estimate is, how much longer its interval must be, and jumps that no score shows."""

from __future__ import annotations

from math import cbrt, fsum, sqrt

import numpy as np

from evalcore.core.records.array import Floats64

FEW = 30
"""Below this many units a law may be more skewed than its sample shows."""

_SHORTFALL = 1.25
_CROWDED = 0.05
_PLAIN = 1e-9


def skewness_of_sum(parts: Floats64) -> float:
    """The skewness of a sum of independent centred parts: between −1 and 1, and near them if one part is nearly all.

    >>> skewness_of_sum(np.array([-1.0, 1.0])), round(skewness_of_sum(np.array([-1.0, -1.0, 2.0])), 4)
    (0.0, 0.4082)
    """
    largest = float(np.max(np.abs(parts), initial=0.0))
    if not 0 < largest < np.inf:
        return 0.0
    shares = parts / largest
    squares = shares * shares
    variance = fsum(squares.tolist())
    return fsum((squares * shares).tolist()) / (variance * sqrt(variance))


def lengthen_sides(quantile: float, skewness: float, units: float) -> tuple[float, float]:
    """How much longer the lower and the upper part of an interval are if its estimate is skewed.

    The quantiles of the studentised value are Hall's (1992, On the removal of skewness by transformation), of the
    sample's skewness corrected for ``units`` and a quarter more, for a few scores show less of it than their law has.
    No side becomes shorter: what is lost there is more than what is won (tests/core/test_coverage.py).

    >>> lengthen_sides(2.0, 0.0, 10), [round(side, 2) for side in lengthen_sides(2.0, 0.2, 10)]
    ((1.0, 1.0), [1.0, 1.36])
    """
    if abs(skewness) < _PLAIN:
        return 1.0, 1.0
    count = max(units, 3.0)
    full = _SHORTFALL * skewness * sqrt(count * (count - 1)) / (count - 2)
    low, high = (_undo_skewness(point, full) / point for point in (quantile, -quantile))
    return max(low, 1.0), max(high, 1.0)


def _undo_skewness(point: float, skewness: float) -> float:
    return 3 / skewness * (cbrt(1 + skewness * (point - skewness / 6)) - 1)


def hidden_variance(shares: Floats64) -> float:
    """The variance that scores from 0 to 1 may hide if they crowd at a bound without touching it.

    A confident model's Brier scores are 0.001 until one is 0.9. Such scores count as right or wrong ones, with the
    variance of these; the farther they are from the bounds (mean distance 0.05), the less. Scores of exactly 0 and 1
    hide nothing that Wilson's interval does not know.

    >>> round(hidden_variance(np.array([0.001, 0.002])), 6), hidden_variance(np.array([0.3, 0.4]))
    (0.001453, 0.0)
    >>> hidden_variance(np.array([1.0, 1.0, 0.0]))
    0.0
    """
    inside = shares[(shares > 0) & (shares < 1)]
    if not len(inside):
        return 0.0
    distance = fsum(np.minimum(inside, 1 - inside).tolist()) / len(inside)
    weight = max(1 - distance / _CROWDED, 0.0)
    return weight * fsum((inside * (1 - inside)).tolist()) / len(shares)
