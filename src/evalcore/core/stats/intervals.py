"""Confidence intervals that are never a point, not even at 0 % or 100 %."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, isnan, sqrt

import numpy as np
from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.stats.bootstrap import Resamples, bca, percentile
from evalcore.core.stats.links import IDENTITY, Link
from evalcore.core.stats.quantiles import beta_quantile, normal_quantile, t_quantile
from evalcore.core.stats.skewness import reach_farthest, skew_quantiles, stretch_sides

Pair = tuple[float, float]
Between = Callable[[float, float, float, float, float], Pair]
"""An interval from 0 to 1: of a mean, its effective count, degrees of freedom, confidence, number of documents."""


class Interval(Struct, frozen=True):
    """How an interval is made, and its name in the recipe of a number.

    ``between`` is for values between finite bounds, on the scale from 0 to 1. Without it, and beyond bounds, the
    interval is value ± quantile · stderr, a quantile of Student's t or (``normal``) of the normal distribution.
    ``resampled`` makes it from the values on resamples, where there are any. ``lengthens`` says that it is longer on
    the side to which a value is skewed.
    """

    name: str
    between: Between | None = None
    normal: bool = False
    lengthens: bool = False
    resampled: Callable[[Resamples, float], Pair] | None = None


# below this, a standard error on [0, 1] is what rounding leaves of equal scores, and below its square a variance
_ROUNDING_ERROR = 16 * float(np.finfo(np.float64).eps)
_ROUNDING = _ROUNDING_ERROR**2


def wilson(mean: float, n_eff: float, quantile: float) -> Pair:
    """Wilson's score interval for a mean of scores in [0, 1] that is worth n_eff independent 0/1 documents.

    >>> [round(end, 3) for end in wilson(1.0, 20, 1.959964)]
    [0.839, 1.0]
    """
    middle = mean + (share := quantile * quantile / n_eff) / 2
    reach = sqrt(share) * sqrt(mean * (1 - mean) + share / 4)
    return _clip_around(mean, (middle - reach) / (1 + share), (middle + reach) / (1 + share))


def exact_binomial(successes: float, n: float, confidence: float) -> Pair:
    """Clopper and Pearson's interval: its coverage is never below the confidence, for any proportion.

    Counts need not be integers: those of a survey are effective counts (Korn and Graubard 1998).

    >>> [round(end, 4) for end in exact_binomial(20, 20, 0.95)]
    [0.8316, 1.0]
    """
    if not 0 <= successes <= n or n < 1:
        raise EvalError(f"expected between 0 and n successes of n >= 1, got {successes} of {n}")
    tail = (1 - confidence) / 2
    low = beta_quantile(tail, successes, n - successes + 1) if successes else 0.0
    high = beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0
    return low, high


def interval(
    value: float,
    *,
    variance: float | None,
    n: float,
    df: float,
    bounds: Pair = (0.0, 1.0),
    link: Link = IDENTITY,
    confidence: float = 0.95,
    method: Interval | str = "wilson",
    stderr: float | None = None,
    documents: float | None = None,
    skewness: float = 0.0,
) -> Pair | None:
    """The interval of an estimate from its uncorrected variance; None if undefined.

    Between finite bounds it is Wilson's with the effective count (``n`` where the variance is 0) and a t
    quantile (``method`` "z": a normal one; "exact": Clopper and Pearson's). Otherwise, or where the value breaks its
    bounds, or for "t", it is value ± t · ``stderr`` on the scale of the link. ``documents`` counts them all where they
    are not independent units. All but "t" and "z" are longer on the side to which the value is skewed.

    >>> [round(end, 3) for end in interval(1.0, variance=0.0, n=20, df=19) or ()]
    [0.82, 1.0]
    >>> from evalcore.core.stats.links import LOG
    >>> ends = interval(10.0, variance=1.0, n=9, df=8, bounds=(0.0, inf), link=LOG, stderr=1.0)
    >>> [round(end, 2) for end in ends or ()]
    [7.94, 12.59]
    """
    if variance is None or isnan(variance) or not (df > 0 and n > 0 and isfinite(value)):
        return None
    chosen = choose_interval(method, value, variance=variance, bounds=bounds, link=link)
    known = inf if chosen.normal else df
    if chosen.between is None:
        quantiles = skew_quantiles(_find_quantile(confidence, known), skewness if chosen.lengthens else 0.0, df + 1)
        return _bound_by_link(value, stderr, quantiles, link, bounds)
    low, high = link.forward(bounds[0]), link.forward(bounds[1])
    mean = min(max((link.forward(value) - low) / (high - low), 0.0), 1.0)
    spread = _rescale_variance(value, variance, bounds, link)
    count = _count_effective(mean, spread, n)
    counted, between = df + 1 if documents is None else documents, chosen.between
    ends = between(mean, count, df, confidence, counted)
    if skewness and chosen.lengthens and spread > _ROUNDING:  # rounding errors have a skewness too
        excess = _find_excess(skewness, mean, count)

        def stretch(level: float) -> Pair:
            sides = stretch_sides(_find_quantile(level, known), excess, df + 1)
            return _lengthen_between(mean, between(mean, count, df, level, counted), sides)

        farthest = reach_farthest(stretch, confidence)
        ends = min(farthest[0], ends[0]), max(farthest[1], ends[1])
    start, end = (link.inverse(low + share * (high - low)) for share in ends)
    return min(start, value), max(end, value)


def interval_name(
    method: Interval | str,
    value: float,
    *,
    variance: float,
    bounds: Pair = (0.0, 1.0),
    link: Link = IDENTITY,
    skewness: float = 0.0,
) -> str:
    """Name the method that makes the interval asked for, for the recipe of a number.

    >>> interval_name("exact", 7.0, variance=1.0, bounds=(0.0, inf)), interval_name("t", 1.0, variance=0.0)
    ('t', 'wilson-t')
    >>> interval_name("wilson", 7.0, variance=1.0, bounds=(0.0, inf), skewness=0.2)
    't-hall'
    """
    chosen = choose_interval(method, value, variance=variance, bounds=bounds, link=link)
    name = f"{chosen.name}-hall" if skewness and chosen.lengthens else chosen.name
    return name if chosen.between is not None or link.plain else f"{name}-{link.name}"


def choose_interval(
    method: Interval | str, value: float, *, variance: float, bounds: Pair = (0.0, 1.0), link: Link = IDENTITY
) -> Interval:
    """Choose the interval that is made when this one is asked for.

    Outside bounds there is no proportion; without spread, value ± t · 0 claims too much.

    >>> choose_interval("z", 7.0, variance=1.0, bounds=(0.0, inf)).name
    'z'
    """
    asked = _closed_form(method) if isinstance(method, str) else method
    low, high = link.forward(bounds[0]), link.forward(bounds[1])
    slack = 1e-9 * (high - low)
    if not (0 < high - low < inf and low - slack <= link.forward(value) <= high + slack):
        return _Z if asked.normal else _BEYOND if asked.lengthens else _T
    flat = _rescale_variance(value, variance, bounds, link) <= _ROUNDING
    return WILSON if asked.between is None and flat else asked


def _closed_form(name: str) -> Interval:
    known = {key: one for key, one in INTERVALS.items() if one.resampled is None}
    require_known("interval method", [name], known)
    return known[name]


def _rescale_variance(value: float, variance: float, bounds: Pair, link: Link) -> float:
    """Rescale the variance to bounds of 0 and 1."""
    return variance * (link.slope(value) / (link.forward(bounds[1]) - link.forward(bounds[0]))) ** 2


def _count_effective(mean: float, variance: float, n: float) -> float:
    return max(mean * (1 - mean) / variance if variance > _ROUNDING else n, 1.0)


def _clip_around(mean: float, low: float, high: float) -> Pair:
    return min(max(low, 0.0), mean), max(min(high, 1.0), mean)


def _find_excess(skewness: float, mean: float, count: float) -> float:
    """Find the skewness beyond that of a share of right answers, which Wilson's interval knows."""
    known = (1 - 2 * mean) / sqrt(count * mean * (1 - mean)) if 0 < mean < 1 else 0.0
    return min(max(skewness - known, min(skewness, 0.0)), max(skewness, 0.0))


def _lengthen_between(mean: float, ends: Pair, sides: Pair) -> Pair:
    return _clip_around(mean, mean - (mean - ends[0]) * sides[0], mean + (ends[1] - mean) * sides[1])


def _bound_by_link(value: float, stderr: float | None, quantiles: Pair, link: Link, bounds: Pair) -> Pair | None:
    """If all scores are equal, only bounds could say how far off the value may be."""
    if stderr is None or not isfinite(stderr) or stderr <= _ROUNDING_ERROR * abs(value):
        return None
    if not isfinite(link.slope(value)):
        return None
    middle, error = link.forward(value), stderr * link.slope(value)
    low, high = middle - quantiles[0] * error, middle + quantiles[1] * error
    if not bounds[0] <= value <= bounds[1]:
        return link.inverse(low), link.inverse(high)
    # before the way back, which may be defined between the bounds alone
    start, end = link.inverse(max(low, link.forward(bounds[0]))), link.inverse(min(high, link.forward(bounds[1])))
    return max(start, bounds[0]), min(end, bounds[1])


def _find_quantile(confidence: float, df: float) -> float:
    return t_quantile((1 + confidence) / 2, df)


def _wilson_t(mean: float, count: float, df: float, confidence: float, documents: float) -> Pair:
    return wilson(mean, count, _find_quantile(confidence, df))


def _wilson_z(mean: float, count: float, df: float, confidence: float, documents: float) -> Pair:
    return wilson(mean, count, normal_quantile((1 + confidence) / 2))


def _exact(mean: float, count: float, df: float, confidence: float, documents: float) -> Pair:
    """Korn and Graubard's: if df is less than that of as many independent documents, the count shrinks too.

    Scores that vary less than right and wrong ones do are worth more of these than there are documents.
    """
    most = max(documents, count) - 1
    short = 0 < df < most * (1 - 1e-9)
    less = (_find_quantile(confidence, most) / _find_quantile(confidence, df)) ** 2 if short else 1.0
    trials = max(_round_count(count * less), 1.0)
    return _clip_around(mean, *exact_binomial(_round_count(mean * trials), trials, confidence))


def _round_count(count: float) -> float:
    """Drop the rounding error of an integer count."""
    return float(round(count)) if abs(count - round(count)) <= 1e-9 * count else count


WILSON = Interval("wilson-t", _wilson_t, lengthens=True)
_T, _Z, _BEYOND = Interval("t"), Interval("z", normal=True), Interval("t", lengthens=True)

INTERVALS: PMap[str, Interval] = pmap(
    {
        "wilson": WILSON,
        "z": Interval("wilson-z", _wilson_z, normal=True),
        "exact": Interval("exact", _exact, lengthens=True),
        "t": _T,
        "percentile": Interval("percentile", resampled=percentile),
        "bca": Interval("bca", resampled=bca),
    }
)
