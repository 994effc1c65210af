"""Standard errors of statistics without a usable influence: by seeded resampling, or exactly (the median)."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.stats.influence import scale_of

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
    if n < 2:
        return None

    def evaluate_each(index: Ints64) -> Floats64:
        return np.array([float(statistic(row)) for row in index])

    values = resample(evaluate_each, n, draws=draws, generator=np.random.Generator(np.random.PCG64(seed)))
    finite = values[np.isfinite(values)]
    scale = scale_of(finite)
    return scale * float(np.std(finite / scale, ddof=1)) * sqrt(n / (n - 1)) if len(finite) > 1 else None


def median_stderr(sorted_values: Floats64) -> float | None:
    """Maritz and Jarrett's standard error of the median: for odd n, the bootstrap's in the limit of many draws.

    For even n the median counts as the order statistic at rank (n + 1) / 2.

    >>> round(median_stderr(np.array([1.0, 2.0, 3.0])), 6)      # weights 7/27, 13/27, 7/27
    0.720082
    >>> median_stderr(np.array([1.0])) is None
    True
    """
    n = len(sorted_values)
    if n < 2 or not np.all(np.isfinite(sorted_values)):
        return None
    first, weights = _median_weights(n)
    near = sorted_values[first : first + len(weights)] - sorted_values[n // 2]
    centred = near - np.sum(weights * near)
    scale = scale_of(centred)
    shares = centred / scale
    return scale * sqrt(float(np.sum(weights * shares * shares)))


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
