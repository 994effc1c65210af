"""Sign-flip tests: swap the runs' results at random and see how often they come out as far apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erfc, fsum, isfinite, log, pi, sqrt

import numpy as np

from evalcore.core.records.array import Floats64
from evalcore.core.stats.pair_tests import Difference, check_lengths

_BLOCK = 1 << 22
_FEW = 24
_CELLS = 1 << 15
_KINDS = 1000
_TINY = 2.0**-1022


def flip_sum(parts: Floats64) -> float:
    """The p-value of a sum: how likely random signs of its parts bring it at least as far from 0, without any draws.

    Up to 24 parts it is the share of all sign patterns. Beyond that, the sums of the largest parts are listed, and the
    others follow by Lugannani and Rice's saddlepoint formula, with Daniels' (1987) correction for lattices.

    >>> flip_sum(np.ones(8)), flip_sum(np.array([0.5, -0.25, 0.0]))      # 2 patterns of 256, all patterns
    (0.0078125, 1.0)
    >>> from evalcore.core.stats.quantiles import binomial_cdf
    >>> round(flip_sum(np.repeat([1.0, -1.0], [70, 30])) / (2 * binomial_cdf(30, 100, 0.5)), 3)
    1.0
    """
    parts = np.ldexp(parts, -np.frexp(np.max(np.abs(parts), initial=0.0))[1])  # squares neither overflow nor vanish
    size = np.sort(np.abs(parts))
    total = float(np.sum(size))
    size = size[size > 1e-13 * total]  # rounding errors are no differences
    at_least = abs(fsum(parts.tolist())) - 1e-12 * total
    if at_least <= 0:
        return 1.0
    if len(size) <= _FEW:
        return 2 * _count_beyond(size, at_least) / 2.0 ** len(size)
    sums, chances, rest = _list_largest(size)
    tail = fsum((chances * _find_tails(rest, at_least - sums)).tolist())
    return min(1.0, max(2 * tail, 2.0 ** (1 - len(size)), _TINY))


def sign_flip_test(
    stats_a: Floats64,
    stats_b: Floats64,
    finalise: Callable[[Floats64], float],
    *,
    draws: int,
    seed: int,
) -> Difference:
    """Approximate randomisation for corpus metrics: swap the runs' statistics document by document.

    ``finalise`` closes the sums of the (documents × k) statistics; draws at least as far apart as the runs,
    ties included, are counted: p = (count + 1) / (draws + 1) (Riezler and Maxwell 2005).

    >>> a, b = np.ones((8, 1)), np.zeros((8, 1))
    >>> sign_flip_test(a, b, lambda sums: float(sums[0]), draws=999, seed=0).p_value < 0.03
    True
    """
    check_lengths(len(stats_a), len(stats_b))
    ends = float(finalise(stats_a.sum(axis=0))), float(finalise(stats_b.sum(axis=0)))
    value, n = ends[0] - ends[1], len(stats_a)
    method = f"sign-flip, draws {draws}, seed {seed}"
    if not n or not isfinite(value):
        return Difference(value, None, None, None, n, method)
    total, gap = (stats_a + stats_b).sum(axis=0), np.asarray(stats_a - stats_b, dtype=np.float64)

    def swap_documents(signs: Floats64) -> Floats64:
        return np.array([[finalise((total + g) / 2) - finalise((total - g) / 2)] for g in signs @ gap])

    slack = np.array([1e-12 * (abs(ends[0]) + abs(ends[1]))])
    p_value = flip_tests(swap_documents, np.array([value]), slack, n, draws=draws, seed=seed)
    return Difference(value, None, None, float(p_value[0]), n, method)


def flip_tests(
    differ: Callable[[Floats64], Floats64], observed: Floats64, slack: Floats64, units: int, *, draws: int, seed: int
) -> Floats64:
    """The p-value of each observed difference: how often random swaps bring the runs at least as far apart.

    ``differ`` maps signs (draws × units, -1 where a unit is swapped) to differences (draws × tests). Ties count, within
    ``slack`` for rounding, and so does the sample itself: p = (count + 1) / (draws + 1) (Riezler and Maxwell 2005).

    >>> means = lambda signs: (signs @ np.ones(8) / 8)[:, None]
    >>> bool(flip_tests(means, np.array([1.0]), np.array([1e-12]), 8, draws=999, seed=0)[0] < 0.03)
    True
    """
    counts = np.zeros(len(observed), np.int64)
    for signs in sign_blocks(units, draws, seed):
        # a draw without a value is no evidence of a difference, so it counts
        with np.errstate(invalid="ignore"):
            counts += np.count_nonzero(~(np.abs(differ(signs)) < np.abs(observed) - slack), axis=0)
    return (counts + 1) / (draws + 1)


def sign_blocks(units: int, draws: int, seed: int) -> Iterator[Floats64]:
    """Random signs, some rows at a time, the same for the same seed.

    >>> next(sign_blocks(3, 2, 0)).shape
    (2, 3)
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    block = max(1, _BLOCK // max(units, 1))
    for start in range(0, draws, block):
        drawn = generator.integers(0, 2, size=(min(block, draws - start), units), dtype=np.int8)
        yield 2 * drawn.astype(np.float64) - 1


# --- the law of a sum with random signs ------------------------------------------------------------------------------


def _list_sums(size: Floats64) -> Floats64:
    """List the sums of every sign pattern.

    >>> _list_sums(np.array([1.0, 3.0])).tolist()
    [-4.0, 2.0, -2.0, 4.0]
    """
    sums = np.zeros(1)
    for one in size.tolist():
        sums = np.stack([sums - one, sums + one]).T.reshape(-1)
    return sums


def _count_beyond(size: Floats64, at_least: float) -> int:
    """Count the sign patterns with a sum of at least so much, half of the parts against the other half."""
    first, second = _list_sums(size[::2]), np.sort(_list_sums(size[1::2]))
    return len(first) * len(second) - int(np.searchsorted(second, at_least - first).sum())


def _list_largest(size: Floats64) -> tuple[Floats64, Floats64, Floats64]:
    """List the sums of the largest parts with their probabilities, as long as they are few, and the parts left over.

    >>> sums, chances, rest = _list_largest(np.ones(3))
    >>> sums.tolist(), chances.tolist(), rest.tolist()
    ([-3.0, -1.0, 1.0, 3.0], [0.125, 0.375, 0.375, 0.125], [])
    """
    sums: Floats64 = np.zeros(1)
    chances: Floats64 = np.ones(1)
    left, grain = len(size), 1e-12 * float(np.sum(size))
    while left:
        both = np.concatenate([sums - size[left - 1], sums + size[left - 1]])
        _, first, merged = np.unique(np.rint(both / grain), return_index=True, return_inverse=True)
        if len(first) * len(size) > _CELLS:
            break
        sums, left = both[first], left - 1
        chances = np.asarray(np.bincount(merged, np.tile(chances / 2, 2)), np.float64)
    return sums, chances, size[:left]


def _find_tails(size: Floats64, at_least: Floats64) -> Floats64:
    """The probability that the sum with random signs is at least each of these."""
    if not len(size):
        return (at_least <= 0).astype(np.float64)
    total, step = float(np.sum(size)), _find_step(size)
    points = at_least
    if step:  # the middle between the last sum below and the first that is far enough
        points = 2 * step * np.ceil((at_least + total) / (2 * step)) - total - step
    tails = np.where(points > 0, 0.0, 1.0)
    inside = np.abs(points) < total * (1 - 1e-9)
    upper = _find_upper_tails(size, np.abs(points[inside]), step)
    tails[inside] = np.where(points[inside] > 0, upper, 1 - upper)
    return tails


def _find_upper_tails(size: Floats64, points: Floats64, step: float) -> Floats64:
    """Lugannani and Rice's tails at points of at least 0; the cumulant function is Σ log cosh(s · size)."""
    squares = size * size
    at = points / squares.sum()
    for _ in range(100):  # Newton's method rises to the saddlepoint from below: tanh is concave
        bent = np.tanh(np.outer(at, size))
        curved = squares.sum() - (bent * bent) @ squares
        step_up = (points - bent @ size) / np.maximum(curved, _TINY)
        at = at + step_up
        if np.all(np.abs(step_up) <= 1e-12 * at):
            break
    grown = np.outer(at, size)
    cumulant = np.sum(grown + np.log1p(np.exp(-2 * grown)) - log(2), axis=1)
    far = np.sqrt(np.maximum(2 * (at * points - cumulant), 0.0))
    curved = np.sum(squares / np.cosh(np.minimum(grown, 300.0)) ** 2, axis=1)
    fine = far > 3e-3  # nearer to 0 the terms of the correction cancel
    with np.errstate(all="ignore"):
        slope = np.sinh(at * step) / step if step else at
        correction = np.where(fine, 1 / (slope * np.sqrt(curved)) - 1 / far, 0.0)
    normal = np.array([0.5 * erfc(one / sqrt(2)) for one in far.tolist()])
    tails = normal + np.exp(-far * far / 2) / sqrt(2 * pi) * correction
    return np.asarray(np.clip(tails, 0.0, 1.0), np.float64)


def _find_step(size: Floats64) -> float:
    """Find the largest number of which all sizes, given in order, are multiples; 0 if the sums lie too close to matter.

    >>> _find_step(np.array([0.5, 0.75, 0.75])), _find_step(np.array([0.5, 0.7071]))
    (0.25, 0.0)
    """
    slack = 1e-9 * float(size[-1])
    kinds = size[np.diff(size, prepend=-1.0) > slack]
    least = 1e-3 * sqrt(float(np.sum(size * size)))
    step = 0.0
    for one in kinds.tolist() if len(kinds) <= _KINDS else ():
        whole, step = step, one
        while whole > slack:
            left = step % whole
            step, whole = whole, left if left > slack and whole - left > slack else 0.0
        if step < least:
            return 0.0
    return step
