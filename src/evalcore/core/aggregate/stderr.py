"""Standard errors from influences, from an exact form, or from a seeded bootstrap."""

from __future__ import annotations

import numpy as np

from evalcore.core.records.array import Floats64
from evalcore.core.records.estimate import Error, Resampling, Summary
from evalcore.core.records.row import Rows
from evalcore.core.stats.bootstrap import bootstrap, median_stderr
from evalcore.core.stats.influence import CR2, independent, measure_error

ALL_IN_ONE = "one document has all of the weight"
CALLABLE_DRAWS = 200


def from_influence(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """sqrt(Σ influence² / (n (n − 1))): for the mean, sample sd / sqrt(n). With weights, corrected for each document's.

    >>> from evalcore.core.records.estimate import smooth
    >>> of_two = smooth(np.array([[1.0], [0.0]]), lambda sums: sums[..., 0] / 2)
    >>> from_influence(None, of_two, np.array([0.5, -0.5]), Resampling())
    Error(stderr=0.5, method='delta')
    """
    n = len(summary.stats)
    if n < 2:
        return _lack_documents(n)
    if influence is None:
        return Error(None, "a score is not finite" if not np.isfinite(summary.stats).all() else "no derivative here")
    if summary.weights is None or np.ptp(summary.weights) == 0:
        return Error(independent(influence)[1], "delta")
    made = measure_error(influence, weights=summary.weights)
    return Error(made.stderr, f"weighted({CR2.name})" if made.stderr is not None else ALL_IN_ONE, made)


def _lack_documents(n: int) -> Error:
    return Error(None, f"needs two documents, got {n}")


def from_median(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """The exact bootstrap error of the median, without resampling (Maritz and Jarrett 1978).

    >>> same = Summary(np.ones((4, 1)), lambda index: np.ones(len(index)), np.arange(4))
    >>> from_median(None, same, None, Resampling())
    Error(stderr=0.0, method='maritz-jarrett')
    """
    n, stderr = len(summary.stats), median_stderr(np.sort(summary.stats[:, 0]))
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
