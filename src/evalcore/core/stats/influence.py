"""Standard errors of estimates from the influence of each document."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.errors import EvalError

_LARGE = 1e150


def scale_of(values: Sequence[float] | Floats64) -> float:
    """What to divide values by before they are squared: 1, or the largest if its square would overflow.

    >>> scale_of([3.0, -4.0]), scale_of([1.0, -1e200])
    (1.0, 1e+200)
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    return largest if largest > _LARGE else 1.0


def independent(influence: Floats64) -> tuple[float, float | None, int]:
    """Uncorrected variance, standard error and count of an estimate whose documents are independent.

    >>> variance, stderr, n = independent(np.array([-1.0, 0.0, 1.0]))
    >>> round(variance, 6), round(stderr, 6), n      # 2 / 9 and sd / sqrt(3)
    (0.222222, 0.57735, 3)
    """
    return _measure_totals(influence, len(influence))


def clustered(influence: Floats64, clusters: Sequence[object] | NDArray[np.generic]) -> tuple[float, float | None, int]:
    """Uncorrected variance, standard error and number of clusters if documents within a cluster are dependent.

    >>> variance, stderr, count = clustered(np.array([-1.0, -1.0, 1.0, 1.0]), ["a", "a", "b", "b"])
    >>> round(variance, 6), round(stderr, 6), count
    (0.5, 1.0, 2)
    """
    codes = _encode_clusters(clusters, len(influence))
    if len(codes) == 0:
        return _measure_totals(influence, 0)
    return _measure_totals(sum_clusters(influence, codes), len(influence))


def sum_clusters(values: Floats64, codes: Ints64) -> Floats64:
    """The sum of each cluster's values, in the order of the codes, which are 0, 1, 2, ...

    >>> sum_clusters(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1])).tolist()
    [2.0, 4.0]
    """
    # sorted by value within a cluster, so that the order of documents does not change a bit
    order = np.lexsort((values, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts), dtype=np.float64)


def _measure_totals(totals: Floats64, n: int) -> tuple[float, float | None, int]:
    count = len(totals)
    if count == 0:
        return nan, None, 0
    scale = scale_of(totals)
    shares = totals / scale
    variance = fsum((shares * shares).tolist()) / (n * n)
    return scale * scale * variance, scale * sqrt(count / (count - 1) * variance) if count > 1 else None, count


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
