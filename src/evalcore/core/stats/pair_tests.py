"""Two runs on the same documents: paired differences and their tests."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Floats64
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import Displayed, FrozenRecord
from evalcore.core.stats.influence import independent
from evalcore.core.stats.links import IDENTITY, Link
from evalcore.core.stats.quantiles import binomial_cdf, t_cdf, t_quantile
from evalcore.core.stats.skewness import skew_quantiles


class Difference(FrozenRecord, Displayed, frozen=True):
    """First run minus second, with its error, interval and p-value if defined."""

    difference: float
    stderr: float | None
    ci: tuple[float, float] | None
    p_value: float | None
    n: int
    method: str


class RunEnds(Struct, frozen=True):
    """A run's number, its standard error, the ends of its own interval, its degrees of freedom and skewness."""

    value: float
    stderr: float
    low: float
    high: float
    df: float = inf
    skewness: float = 0.0

    def remake(self, was: float, confidence: float, link: Link) -> RunEnds:
        """Make the interval of another confidence from what it was, on the scale of its link."""
        middle, before, after = link.forward(self.value), self._reach(was), self._reach(confidence)
        low, high = (
            link.inverse(middle + new / old * (link.forward(end) - middle))
            for end, old, new in zip((self.low, self.high), before, after, strict=True)
        )
        return RunEnds(self.value, self.stderr, low, high, self.df, self.skewness)

    def _reach(self, confidence: float) -> tuple[float, float]:
        return _find_quantiles(confidence, self.df, self.skewness)


class PairInterval(Struct, frozen=True):
    """The interval of a difference, which can be made at any confidence: ``middle`` ± quantile · ``error``.

    It stays within ± ``most``, contains the ``value``, and is longer on the side of its ``skewness``. If ``runs`` are
    given, with their intervals at this ``confidence``, the distances of their ends from their values take the place of
    standard errors (Zou and Donner 2008, "MOVER").
    """

    value: float
    middle: float
    error: float
    df: float = inf
    most: float = inf
    skewness: float = 0.0
    runs: tuple[RunEnds, RunEnds] | None = None
    link: Link = IDENTITY
    confidence: float = 0.95

    def at(self, confidence: float) -> tuple[float, float]:
        """The interval at this confidence.

        >>> wide = PairInterval(0.0, 0.0, 0.1, df=9)
        >>> [round(wide.at(confidence)[1], 3) for confidence in (0.95, 0.99)]
        [0.226, 0.325]
        """
        left, right = self.measure_sides(confidence)
        if self.runs is not None:
            return self.value - left, self.value + right
        low, high = max(self.middle - left, -self.most), min(self.middle + right, self.most)
        return min(low, self.value), max(high, self.value)

    def measure_sides(self, confidence: float) -> tuple[float, float]:
        """How far the interval reaches from its middle, whatever differences are possible.

        >>> PairInterval(0.9, 0.9, 0.1, most=1.0).measure_sides(0.95)[1] > 0.1
        True
        """
        if self.runs is None:
            low, high = _find_quantiles(confidence, self.df, self.skewness)
            return self.error * low, self.error * high
        sides = self._combine_runs(confidence)
        if confidence <= self.confidence:
            return sides
        least = self._combine_runs(self.confidence)  # of correlated runs that are skewed, the sides need not grow
        return max(sides[0], least[0]), max(sides[1], least[1])

    def _combine_runs(self, confidence: float) -> tuple[float, float]:
        if self.runs is None:
            raise AssertionError("only the intervals of two runs are combined")
        same = confidence == self.confidence
        a, b = self.runs if same else (run.remake(self.confidence, confidence, self.link) for run in self.runs)
        scale = max(a.stderr, b.stderr)
        one, two, both = a.stderr / scale, b.stderr / scale, self.error / scale
        apart = 2 * one * two
        together = min(max((one * one + two * two - both * both) / apart, -1.0), 1.0) if apart else 0.0

        def reach(left: float, right: float) -> float:
            longest = max(left, right)
            if not 0 < longest < inf:
                return longest
            short = min(left, right) / longest
            return longest * sqrt(max(1 + short * short - 2 * together * short, 0.0))

        return reach(a.value - a.low, b.high - b.value), reach(a.high - a.value, b.value - b.low)


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
    check_lengths(len(a01), len(b01))
    n = len(a01)
    if not n or not np.isin(np.concatenate([a01, b01]), (0, 1)).all():
        raise EvalError("expected scores of 0 and 1 for at least one document; use compare_estimates for other scores")
    difference = np.asarray(a01, dtype=np.float64) - b01
    wins, losses = int(np.sum(difference > 0)), int(np.sum(difference < 0))
    value = (wins - losses) / n
    stderr = independent(difference - value)[1]
    ci = bound_binary(wins, losses, n).at(confidence)
    return Difference(value, stderr, ci, _mcnemar(wins, losses), n, "Bonett-Price interval, McNemar mid-p")


def bound_binary(wins: int, losses: int, n: int) -> PairInterval:
    """Bonett and Price's interval of 0/1 scores that differ this way and that on so many of n documents.

    >>> [round(end, 3) for end in bound_binary(4, 0, 10).at(0.95)]
    [-0.02, 0.686]
    """
    value = (wins - losses) / n
    centre = effective_difference(value, variance=(wins + losses) / n**2 - value * value / n, n=n)
    return PairInterval(value, *centre, most=1.0)


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


def bound_difference(
    value: float, *, variance: float, n: float, df: float, reach: float, far: float
) -> tuple[PairInterval, str]:
    """Make an interval within ± ``reach`` that rests on n effective documents, and name it.

    Two documents are added, as ``far`` from the mean as any that was seen. If ``far`` is 0, they are Bonett and
    Price's, which differ by the whole reach: too wide where differences are as small as 0.03.

    >>> made = bound_difference(0.03, variance=0.0001 / 20, n=20, df=19, reach=1.0, far=0.02)[0]
    >>> [round(end, 3) for end in made.at(0.95)]      # 20 documents with a standard deviation of 0.01
    [0.025, 0.035]
    """
    if far > 1e-9 * reach:
        error = sqrt(variance * n * n + 2 * far * far) / (n + 2)
        return PairInterval(value, value, error, df, reach), "t interval with two documents added"
    middle, error = effective_difference(value, variance=variance, n=n, reach=reach)
    return PairInterval(value, middle, error, df, reach), "Bonett-Price interval on the effective count"


def t_test(value: float, stderr: float, df: float) -> float | None:
    """The two-sided p-value of a difference; None if there is one but no error.

    >>> round(t_test(0.2, 0.1, 9), 3), t_test(0.0, 0.0, 9), t_test(0.2, 0.0, 9)
    (0.077, 1.0, None)
    """
    if not stderr:
        return 1.0 if value == 0 else None
    return 2 * t_cdf(-abs(value) / stderr, df)


# --- parts -----------------------------------------------------------------------------------------------


def _find_quantiles(confidence: float, df: float, skewness: float) -> tuple[float, float]:
    return skew_quantiles(t_quantile((1 + confidence) / 2, df), skewness, df + 1)


def _mcnemar(wins: int, losses: int) -> float:
    """Twice the smaller tail of the discordant pairs, without half of the observed count (mid-p)."""
    fewer, pairs = min(wins, losses), wins + losses
    return min(1.0, binomial_cdf(fewer, pairs, 0.5) + binomial_cdf(fewer - 1, pairs, 0.5))


def _find_largest(values: Floats64) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def check_lengths(a: int, b: int) -> None:
    if a != b:
        raise EvalError(f"expected the same documents in both runs, got {a} and {b}; see match_keys")
