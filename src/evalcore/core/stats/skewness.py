"""Skewed scores: how skewed a sum is, its test, how much longer its interval must be, and jumps that no score shows."""

from __future__ import annotations

from collections.abc import Callable
from math import cbrt, expm1, inf, log, log1p, sqrt

import numpy as np

from evalcore.core.records.array import Array, Floats64, Ints64, add_up
from evalcore.core.stats.quantiles import t_cdf

FEW = 30
"""Below this many units a law may be more skewed than its sample shows."""

_SHORTFALL = 1.25
_CROWDED = 0.05
_PLAIN = 1e-9


def skewness_of_sum(parts: Floats64, times: Ints64 | None = None) -> float:
    """The skewness of a sum of independent centred parts: between −1 and 1, and near them if one part is nearly all.

    Each part is one, or ``times`` as many.

    >>> skewness_of_sum(np.array([-1.0, 1.0])), round(skewness_of_sum(np.array([-1.0, -1.0, 2.0])), 4)
    (0.0, 0.4082)
    """
    largest = max(float(np.max(parts, initial=0.0)), -float(np.min(parts, initial=0.0)))
    if not 0 < largest < np.inf:
        return 0.0
    variance = add_up(parts, times, lambda some: (some / largest) * (some / largest))
    cubes = add_up(parts, times, lambda some: (some / largest) * (some / largest) * (some / largest))
    return cubes / (variance * sqrt(variance))


def marked_skewness(parts: Floats64) -> float:
    """The skewness of a sum, corrected for the number of its parts; 0 if a symmetric law would often show as much.

    Up to 1.5 standard deviations of a normal sample's skewness is taken for chance: seven samples of eight.

    >>> marked_skewness(np.array([-2.0, -1.0, 1.0, 2.0])), round(marked_skewness(np.array([-1.0] * 9 + [9.0])), 3)
    (0.0, 1.0)
    """
    n, skewness = len(parts), _correct_skewness(skewness_of_sum(parts), len(parts))
    return skewness if n > 2 and abs(skewness) > 1.5 * sqrt(6) / n else 0.0


def _correct_skewness(skewness: float, units: float) -> float:
    """Correct a sample's skewness for the number of its units."""
    count = max(units, 3.0)
    return skewness * sqrt(count * (count - 1)) / (count - 2)


# --- Hall's transformation -------------------------------------------------------------------------------------------


def remove_skewness(statistic: float, skewness: float) -> float:
    """Transform the t statistic of a skewed sum into one that is nearly Student's.

    Hall (1992), On the removal of skewness by transformation: a cubic polynomial, which rises everywhere.

    >>> remove_skewness(2.0, 0.0), round(restore_skewness(remove_skewness(2.0, 0.3), 0.3), 12)
    (2.0, 2.0)
    """
    return statistic + skewness * statistic**2 / 3 + skewness**2 * statistic**3 / 27 + skewness / 6


def restore_skewness(statistic: float, skewness: float) -> float:
    """Undo ``remove_skewness``; the skewness is not 0."""
    return 3 / skewness * (cbrt(1 + skewness * (statistic - skewness / 6)) - 1)


def skew_test(statistic: float, skewness: float, df: float) -> float:
    """The two-sided p-value of a t statistic of a skewed sum.

    Random signs make every law symmetric, so that sign flips alone find too much where a few documents differ by far
    more than the others, all in one direction.

    >>> [round(skew_test(-3.0, skewness, 19), 3) for skewness in (0.0, 0.5, -0.5)]
    [0.007, 0.112, 0.0]
    """
    return 2 * t_cdf(-abs(remove_skewness(statistic, skewness)), df)


def skew_quantiles(quantile: float, skewness: float, units: float) -> tuple[float, float]:
    """How many standard errors the lower and the upper part of an interval are long.

    No side becomes shorter: what is lost there is more than what is won (tests/core/test_coverage.py).

    >>> skew_quantiles(2.0, 0.0, 10), [round(side, 2) for side in skew_quantiles(2.0, -0.2, 10)]
    ((2.0, 2.0), [2.71, 2.0])
    """
    low, high = stretch_sides(quantile, skewness, units)
    return quantile * max(low, 1.0), quantile * max(high, 1.0)


def stretch_sides(quantile: float, skewness: float, units: float) -> tuple[float, float]:
    """How much longer or shorter the lower and the upper part of an interval are if its estimate is skewed.

    The quantiles of the studentised value are Hall's, of the sample's skewness corrected for ``units`` and a quarter
    more, for a few scores show less of it than their law has.

    >>> stretch_sides(2.0, 0.0, 10), [round(side, 2) for side in stretch_sides(2.0, 0.2, 10)]
    ((1.0, 1.0), [0.83, 1.36])
    """
    if abs(skewness) < _PLAIN:
        return 1.0, 1.0
    full = _correct_skewness(_SHORTFALL * skewness, units)
    low, high = (restore_skewness(point, full) / point for point in (quantile, -quantile))
    return low, high


def reach_farthest(ends_at: Callable[[float], tuple[float, float]], confidence: float) -> tuple[float, float]:
    """Find the farthest ends at this confidence or less (down to a half): more confidence never narrows an interval.

    Lengthened by Hall's quantiles, the interval of a few very skewed scores would shrink beyond some confidence.
    """
    here, tail = ends_at(confidence), log1p(-confidence)
    if tail >= _HALF:
        return here
    before = ends_at(-expm1(0.999 * tail))
    low = here[0] if here[0] <= before[0] else -_find_peak(lambda level: -ends_at(level)[0], tail)
    high = here[1] if here[1] >= before[1] else _find_peak(lambda level: ends_at(level)[1], tail)
    return low, high


def _find_peak(end_at: Callable[[float], float], tail: float) -> float:
    """Find the greatest value up to a confidence, by golden section of the logarithm of the tail."""
    least, most, best = tail, _HALF, -inf
    for _ in range(44):
        a, b = least + _GOLDEN * (most - least), most - _GOLDEN * (most - least)
        at_a, at_b = end_at(-expm1(a)), end_at(-expm1(b))
        best = max(best, at_a, at_b)
        least, most = (least, b) if at_a >= at_b else (a, most)
    return best


_HALF, _GOLDEN = log(0.5), (3 - sqrt(5)) / 2


# --- jumps -----------------------------------------------------------------------------------------------------------


def hidden_variance(
    scores: Floats64 | Array, times: Ints64 | None = None, bounds: tuple[float, float] = (0.0, 1.0)
) -> float:
    """The variance, as a share of 1, that scores between bounds may hide if they crowd at one without touching it.

    A confident model's Brier scores are 0.001 until one is 0.9. Such scores count as right or wrong ones, with the
    variance of these; the farther they are from the bounds (mean distance 0.05), the less. Scores of exactly 0 and 1
    hide nothing that Wilson's interval does not know.

    >>> round(hidden_variance(np.array([0.001, 0.002])), 6), hidden_variance(np.array([0.3, 0.4]))
    (0.001453, 0.0)
    >>> hidden_variance(np.array([1.0, 1.0, 0.0]))
    0.0
    """
    low, high = bounds

    def add(of: Callable[[Floats64], Floats64]) -> float:
        """Add up what is made of shares strictly inside; others count as 0, of which all these are 0."""

        def of_inside(some: Floats64) -> Floats64:
            shares = (some - low) / (high - low)
            return of(np.where((shares > 0) & (shares < 1), shares, 0.0))

        return add_up(scores, times, of_inside)

    count, inside = len(scores) if times is None else int(times.sum()), int(add(np.sign))
    near, products = add(lambda some: np.minimum(some, 1 - some)), add(lambda some: some * (1 - some))
    return hidden_of_sums(count, inside, near, products)


def hidden_of_sums(count: int, inside: int, near: float, products: float) -> float:
    """The same from sums over scores strictly inside: of the distance from the nearer bound, and of s (1 − s)."""
    return max(1 - near / inside / _CROWDED, 0.0) * products / count if inside else 0.0
