"""Intervals from the values that a statistic takes on resamples of its documents."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.stats.quantiles import normal_quantile, t_cdf

Pair = tuple[float, float]
MOST_LEFT_OUT = 200


class Resamples(Struct, frozen=True, eq=False):
    """A value, its values on resamples, and the share of each unit that moves it."""

    value: float
    values: Floats64
    shares: Floats64

    @property
    def all_equal(self) -> bool:
        """Whether every resample gives the same value, from which nothing can be learnt."""
        values = self.finite
        return len(values) < 2 or float(np.ptp(values)) <= 1e-12 * float(np.max(np.abs(values)))

    @property
    def finite(self) -> Floats64:
        """The values on the resamples where the statistic is defined."""
        return self.values[np.isfinite(self.values)]


def percentile(drawn: Resamples, confidence: float) -> Pair:
    """The middle part of the values on resamples.

    >>> [round(end, 1) for end in percentile(Resamples(50.0, np.arange(101.0), np.ones(1)), 0.9)]
    [5.0, 95.0]
    """
    return _cut_between(drawn, (1 - confidence) / 2, (1 + confidence) / 2)


def bca(drawn: Resamples, confidence: float) -> Pair:
    """Efron's interval: percentiles moved for the bias of the resamples and for the skewness of the documents.

    >>> [round(end, 1) for end in bca(Resamples(60.0, np.arange(101.0), np.array([-1.0, 1.0])), 0.9)]
    [12.6, 98.4]
    """
    values = drawn.finite
    slack = 1e-9 * float(np.ptp(values))
    below = float(np.mean(values < drawn.value - slack) + np.mean(values <= drawn.value + slack)) / 2
    least = 0.5 / len(values)  # a finite number of draws shows no infinite bias
    bias, skew = normal_quantile(min(max(below, least), 1 - least)), acceleration(drawn.shares)
    low, high = (_shift_quantile(normal_quantile(p), bias, skew) for p in ((1 - confidence) / 2, (1 + confidence) / 2))
    return _cut_between(drawn, low, high)


def _shift_quantile(z: float, bias: float, skew: float) -> float:
    shift = bias + z
    room = 1 - skew * shift
    return t_cdf(bias + shift / room, inf) if room > 0 else float(shift > 0)


def _cut_between(drawn: Resamples, low: float, high: float) -> Pair:
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

    If there are many units, equal runs of them are left out together.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> jackknife(lambda index: x[index].mean(axis=1), 3).tolist()
    [-1.0, -0.5, 1.5]
    """
    every = np.arange(n)
    blocks = np.array_split(every, min(n, MOST_LEFT_OUT))
    left = (np.delete(every, block) for block in blocks)  # lazily: each is nearly as long as all units
    values = np.array([float(statistic(index[None, :])[0]) for index in left if len(index)])
    finite = values[np.isfinite(values)]
    return finite.mean() - finite if len(finite) else np.zeros(0)
