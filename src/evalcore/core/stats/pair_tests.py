"""Two runs on the same documents: paired differences and their tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.stats.influence import independent
from evalcore.core.stats.quantiles import binomial_cdf, normal_quantile

_BLOCK = 1 << 22
Keys = Sequence[Hashable] | NDArray[np.generic]


class Difference(FrozenRecord, frozen=True):
    """First run minus second, with its error, interval and p-value if defined."""

    difference: float
    stderr: float | None
    ci: tuple[float, float] | None
    p_value: float | None
    n: int
    method: str


def match_keys(keys_a: Keys, keys_b: Keys) -> Ints64:
    """Find each document of the first run in the second; an error if the documents differ.

    >>> match_keys(["x", "y"], ["y", "x"]).tolist()
    [1, 0]
    >>> match_keys([1, 2], [2])
    Traceback (most recent call last):
    evalcore.EvalError: expected the same documents in both runs; only in the first: 1 (1)...
    """
    a, b = _list_keys(keys_a), _list_keys(keys_b)
    place_a, place_b = _find_places(a, "first"), _find_places(b, "second")
    only_a = [key for key in a if key not in place_b]
    only_b = [key for key in b if key not in place_a]
    if only_a or only_b:
        raise EvalError(
            "expected the same documents in both runs; only in the first: "
            f"{_format_some(only_a)}; only in the second: {_format_some(only_b)}"
        )
    return np.array([place_b[key] for key in a], dtype=np.int64)


def drop_rounding(apart: Floats64, of: Sequence[Floats64]) -> Floats64:
    """Replace differences by zeros if they are only rounding errors, which are no spread.

    >>> drop_rounding(np.array([1e-17, 0.0]), [np.array([1.0, 0.5])]).tolist()
    [0.0, 0.0]
    """
    return np.zeros_like(apart) if _find_largest(apart) <= 1e-15 * max(map(_find_largest, of)) else apart


def paired_binary(a01: Floats64, b01: Floats64, *, confidence: float = 0.95) -> Difference:
    """The difference of two runs' 0/1 scores with Bonett and Price's interval and McNemar's mid-p test.

    >>> found = paired_binary(np.array([1.0] * 10), np.array([1.0] * 6 + [0.0] * 4))
    >>> found.difference, round(found.p_value, 6), [round(end, 3) for end in found.ci]
    (0.4, 0.0625, [-0.02, 0.686])
    """
    _check_lengths(len(a01), len(b01))
    n = len(a01)
    if not n or not np.isin(np.concatenate([a01, b01]), (0, 1)).all():
        raise EvalError("expected scores of 0 and 1 for at least one document; use compare_estimates for other scores")
    difference = np.asarray(a01, dtype=np.float64) - b01
    wins, losses = int(np.sum(difference > 0)), int(np.sum(difference < 0))
    value = (wins - losses) / n
    variance = (wins + losses) / n**2 - value * value / n
    ci = clip_around(value, effective_difference(value, variance=variance, n=n), normal_quantile((1 + confidence) / 2))
    stderr = independent(difference - value)[1]
    return Difference(value, stderr, ci, _mcnemar(wins, losses), n, "Bonett-Price interval, McNemar mid-p")


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
    _check_lengths(len(stats_a), len(stats_b))
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


def effective_difference(value: float, *, variance: float, n: float, reach: float = 1.0) -> tuple[float, float]:
    """Bonett and Price's middle and standard error of a paired difference that rests on n effective documents.

    Their rule adds two documents to the sample, one where each run alone is right; ``reach`` is the most that one
    document can differ by. For plain 0/1 scores it is exactly theirs; with an effective count and a variance that
    reflects clusters, repeats or weights it serves those too, and is never a point.

    >>> middle, error = effective_difference(0.0, variance=0.0, n=10)
    >>> round(middle, 3), round(error, 3)
    (0.0, 0.118)
    """
    square = variance * n + value * value
    middle = value * n / (n + 2)
    return middle, sqrt(((square * n + 2 * reach * reach) / (n + 2) - middle * middle) / (n + 2))


# --- parts -----------------------------------------------------------------------------------------------


def clip_around(value: float, centre: tuple[float, float], quantile: float, reach: float = 1.0) -> tuple[float, float]:
    """Build an interval from its middle and standard error, clipped to what is possible and around the value.

    >>> clip_around(1.0, (0.9, 0.1), 2.0)
    (0.7, 1.0)
    """
    middle, error = centre
    low, high = middle - quantile * error, middle + quantile * error
    return min(max(low, -reach), value), max(min(high, reach), value)


def _mcnemar(wins: int, losses: int) -> float:
    """Twice the smaller tail of the discordant pairs, without half of the observed count (mid-p)."""
    fewer, pairs = min(wins, losses), wins + losses
    return min(1.0, binomial_cdf(fewer, pairs, 0.5) + binomial_cdf(fewer - 1, pairs, 0.5))


def _find_largest(values: Floats64) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _check_lengths(a: int, b: int) -> None:
    if a != b:
        raise EvalError(f"expected the same documents in both runs, got {a} and {b}; see match_keys")


def _list_keys(keys: Keys) -> list[Hashable]:
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def _find_places(keys: list[Hashable], which: str) -> dict[Hashable, int]:
    places = {key: at for at, key in enumerate(keys)}
    if len(places) < len(keys):
        twice = next(key for at, key in enumerate(keys) if places[key] != at)
        raise EvalError(f"expected each document once in the {which} run, got {twice!r} twice")
    return places


def _format_some(keys: list[Hashable]) -> str:
    if not keys:
        return "none"
    shown = ", ".join(repr(key) for key in keys[:3])
    return f"{len(keys)} ({shown}{', ...' if len(keys) > 3 else ''})"
