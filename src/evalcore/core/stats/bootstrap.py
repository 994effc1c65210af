"""Errors of statistics without a usable influence, by seeded resampling or exactly; intervals from resampled values."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.stats.influence import scale_of
from evalcore.core.stats.quantiles import normal_quantile, t_cdf
from evalcore.core.stats.skewness import skewness_of_sum

AT_ONCE = 2**20
"""The most drawn positions held at a time."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def resample(
    statistic: Callable[[Ints64], Floats64], n: int, *, draws: int, generator: np.random.Generator
) -> Floats64:
    """Evaluate a statistic on resamples of n units, each a row of drawn positions.

    >>> x = np.array([0.0, 1.0])
    >>> values = resample(lambda index: x[index].mean(axis=1), 2, draws=100, generator=np.random.default_rng(0))
    >>> len(values), sorted(set(values.tolist()))
    (100, [0.0, 0.5, 1.0])
    """
    rows = max(AT_ONCE // n, 1)
    sizes = [min(rows, draws - start) for start in range(0, draws, rows)]
    return np.concatenate([np.zeros(0), *(statistic(generator.integers(0, n, size=(size, n))) for size in sizes)])


def bootstrap(statistic: Callable[[Ints64], float], n: int, *, draws: int, seed: int) -> float | None:
    """The standard deviation of a statistic over seeded resamples of n documents, times sqrt(n / (n - 1)).

    ``statistic`` maps the positions of drawn documents to a value; values that are not finite are dropped.

    >>> x = np.arange(100.0)
    >>> stderr = bootstrap(lambda at: float(x[at].mean()), 100, draws=2000, seed=1)
    >>> abs(stderr - 2.901) < 0.1      # sd / sqrt(n) = 2.901
    True
    >>> bootstrap(lambda at: 0.5, 1, draws=10, seed=1) is None
    True
    """

    def evaluate_each(index: Ints64) -> Floats64:
        return np.array([float(statistic(row)) for row in index])

    return bootstrap_rows(evaluate_each, n, draws=draws, seed=seed)


def bootstrap_rows(statistic: Callable[[Ints64], Floats64], n: int, *, draws: int, seed: int) -> float | None:
    """The same for a statistic that maps many resamples at once, each a row of drawn positions, to a value each.

    >>> bootstrap_rows(lambda index: index.mean(axis=1), 1, draws=10, seed=1) is None
    True
    """
    if n < 2:
        return None
    values = resample(statistic, n, draws=draws, generator=np.random.Generator(np.random.PCG64(seed)))
    finite = values[np.isfinite(values)]
    scale = scale_of(finite)
    return scale * float(np.std(finite / scale, ddof=1)) * sqrt(n / (n - 1)) if len(finite) > 1 else None


def median_stderr(sorted_values: Floats64, times: Ints64 | None = None) -> float | None:
    """Maritz and Jarrett's standard error of the median: for odd n, the bootstrap's in the limit of many draws.

    For even n the median counts as the order statistic at rank (n + 1) / 2.

    >>> round(median_stderr(np.array([1.0, 2.0, 3.0])), 6)      # weights 7/27, 13/27, 7/27
    0.720082
    >>> median_stderr(np.array([1.0])) is None
    True
    """
    n = len(sorted_values) if times is None else int(times.sum())
    if n < 2 or not np.all(np.isfinite(sorted_values)):
        return None
    first, weights = _median_weights(n)
    ranks = np.arange(first, first + len(weights))
    near = sorted_values[at_ranks(ranks, times)] - sorted_values[at_ranks(np.array([n // 2]), times)]
    centred = near - np.sum(weights * near)
    scale = scale_of(centred)
    shares = centred / scale
    return scale * sqrt(float(np.sum(weights * shares * shares)))


def at_ranks(ranks: Ints64, times: Ints64 | None) -> Ints64:
    """Where the values at these ranks are in a sorted list in which each occurs once, or so many times.

    >>> at_ranks(np.array([0, 2, 3]), np.array([3, 1])).tolist()
    [0, 0, 1]
    """
    return ranks if times is None else np.searchsorted(np.cumsum(times), ranks, side="right")


def _median_weights(n: int) -> tuple[int, Floats64]:
    """Where the order statistics that matter begin, and the mass of Beta((n+1)/2, (n+1)/2) in each 1/n-th.

    With x = (1 + sin u) / 2 the density is cos(u)^n, smooth for every n, so that 12 Gauss nodes a cell are
    exact to rounding; beyond 39 / sqrt(n) from the middle it underflows.
    """
    first = max(0, int(n / 2 - 19.5 * sqrt(n)) - 1)
    edges = np.arcsin(2 * np.arange(first, n - first + 1) / n - 1)
    middles, halves = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    sines = np.sin(middles[:, None] + halves[:, None] * _NODES)
    masses = halves * np.sum(np.exp(0.5 * n * np.log1p(-sines * sines)) * _WEIGHTS, axis=1)
    return first, masses / masses.sum()


# --- intervals from values on resamples ----------------------------------------------------------------------------

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
    bias, acceleration = normal_quantile(min(max(below, least), 1 - least)), skewness_of_sum(drawn.shares) / 6
    low, high = (
        _shift_quantile(normal_quantile(p), bias, acceleration) for p in ((1 - confidence) / 2, (1 + confidence) / 2)
    )
    return _cut_between(drawn, low, high)


def _shift_quantile(z: float, bias: float, acceleration: float) -> float:
    shift = bias + z
    room = 1 - acceleration * shift
    return t_cdf(bias + shift / room, inf) if room > 0 else float(shift > 0)


def _cut_between(drawn: Resamples, low: float, high: float) -> Pair:
    start, end = np.quantile(drawn.finite, [low, high]).tolist()
    return start, end


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
