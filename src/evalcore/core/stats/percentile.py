"""Intervals from the values that a statistic takes on resamples of its documents."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.stats.quantiles import normal_quantile, t_cdf

__all__ = ["Resamples", "acceleration", "bca", "jackknife", "percentile"]

Pair = tuple[float, float]
MOST_LEFT_OUT = 200


class Resamples(Struct, frozen=True, eq=False):
    """The value itself, what it is on each resample, and each unit's share in it, as far as they move the value."""

    value: float
    values: Floats64
    shares: Floats64

    @property
    def all_equal(self) -> bool:
        """Whether nothing can be learnt from them: every resample gives one and the same value."""
        found = self.finite
        return len(found) < 2 or float(np.ptp(found)) <= 1e-12 * float(np.max(np.abs(found)))

    @property
    def finite(self) -> Floats64:
        """The values on those resamples that the statistic is defined on."""
        return self.values[np.isfinite(self.values)]


def percentile(drawn: Resamples, confidence: float) -> Pair:
    """The middle part of the values on resamples.

    >>> [round(end, 1) for end in percentile(Resamples(50.0, np.arange(101.0), np.ones(1)), 0.9)]
    [5.0, 95.0]
    """
    return _between(drawn, (1 - confidence) / 2, (1 + confidence) / 2)


def bca(drawn: Resamples, confidence: float) -> Pair:
    """Efron's interval: percentiles moved for the bias of the resamples and for the skewness of the documents.

    >>> [round(end, 1) for end in bca(Resamples(60.0, np.arange(101.0), np.array([-1.0, 1.0])), 0.9)]
    [12.6, 98.4]
    """
    found = drawn.finite
    slack = 1e-9 * float(np.ptp(found))
    below = float(np.mean(found < drawn.value - slack) + np.mean(found <= drawn.value + slack)) / 2
    least = 0.5 / len(found)  # not to claim an endless bias from a finite number of draws
    bias, skew = normal_quantile(min(max(below, least), 1 - least)), acceleration(drawn.shares)
    low, high = (_moved(normal_quantile(p), bias, skew) for p in ((1 - confidence) / 2, (1 + confidence) / 2))
    return _between(drawn, low, high)


def _moved(z: float, bias: float, skew: float) -> float:
    shift = bias + z
    room = 1 - skew * shift
    return t_cdf(bias + shift / room, inf) if room > 0 else float(shift > 0)


def _between(drawn: Resamples, low: float, high: float) -> Pair:
    start, end = np.quantile(drawn.finite, [low, high]).tolist()
    return start, end


def acceleration(shares: Floats64) -> float:
    """How fast the error changes with the value: a sixth of the skewness of the units' shares.

    >>> acceleration(np.array([-1.0, 1.0])), round(acceleration(np.array([-1.0, -1.0, 2.0])), 4)
    (0.0, 0.068)
    """
    squares = float(np.sum(shares**2))
    return float(np.sum(shares**3)) / (6 * squares**1.5) if squares > 0 else 0.0


def jackknife(statistic: Callable[[Ints64], Floats64], n: int) -> Floats64:
    """The shares of units in a statistic without influences: what it loses where they are left out.

    Of many units, equal runs are left out together.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> jackknife(lambda index: x[index].mean(axis=1), 3).tolist()
    [-1.0, -0.5, 1.5]
    """
    every = np.arange(n)
    blocks = np.array_split(every, min(n, MOST_LEFT_OUT))
    left = (np.delete(every, block) for block in blocks)  # one at a time: each is nearly as long as all units
    found = np.array([float(statistic(index[None, :])[0]) for index in left if len(index)])
    finite = found[np.isfinite(found)]
    return finite.mean() - finite if len(finite) else np.zeros(0)
