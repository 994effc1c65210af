"""The incomplete beta function and a root finder: the numerics beneath the quantiles."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p, nan, pi

_TINY = 1e-300


def _correct_stirling(x: float) -> float:
    """The remainder of Stirling's formula for log Gamma, for x >= 10 (Abramowitz and Stegun 6.1.41)."""
    s = 1 / (x * x)
    return (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360))))) / x


def log_beta(a: float, b: float) -> float:
    """log B(a, b) without the cancellation of large terms.

    >>> round(log_beta(0.5, 0.5), 12) == round(log(pi), 12)
    True
    """
    a, b = min(a, b), max(a, b)
    if b < 10:
        return lgamma(a) + lgamma(b) - lgamma(a + b)
    rest = _correct_stirling(b) - _correct_stirling(a + b) - (b - 0.5) * log1p(a / b)
    if a < 10:
        return lgamma(a) + rest - a * log(a + b) + a
    return _correct_stirling(a) + rest - a * log1p(b / a) + 0.5 * log(2 * pi / a)


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / _avoid_zero(1 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _avoid_zero(1 + even * d), _avoid_zero(1 + even / c)
        total *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _avoid_zero(1 + odd * d), _avoid_zero(1 + odd / c)
        change = d * c
        total *= change
        if abs(change - 1) < 3e-16:
            break
    return total


def _avoid_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def incomplete_beta(a: float, b: float, x: float, y: float) -> tuple[float, float]:
    """The regularised incomplete beta function at x = 1 - y, and its complement; the smaller is precise.

    >>> incomplete_beta(1, 1, 0.25, 0.75)
    (0.25, 0.75)
    """
    if x <= 0 or y <= 0:
        return (0.0, 1.0) if x <= 0 else (1.0, 0.0)
    front = exp(a * log_of(x, y) + b * log_of(y, x) - log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        lower = front * _fraction(a, b, x) / a
        return lower, 1 - lower
    upper = front * _fraction(b, a, y) / b
    return 1 - upper, upper


def log_of(x: float, y: float) -> float:
    """log x for x = 1 - y, precise at both ends.

    >>> log_of(1.0, 1e-20)
    -1e-20
    """
    return log(x) if x < 0.5 else log1p(-y)


def find_root(miss: Callable[[float], tuple[float, float]], at: float, low: float, high: float) -> float:
    """Where an increasing function (value, slope) is zero: Newton's steps, kept inside a shrinking bracket.

    >>> round(find_root(lambda x: (x * x - 2, 2 * x), 1.0, 0.0, 2.0), 9)
    1.414213562
    """
    at = min(max(at, low), high)
    for _ in range(400):
        value, slope = miss(at)
        low, high = (low, at) if value > 0 else (at, high)
        new = at - value / slope if slope else nan
        if not low <= new <= high:
            new = (low + high) / 2
        if abs(new - at) <= 1e-9 * max(1.0, abs(new)) and abs(value) < 1e-7:
            return new
        at = new
    return at
