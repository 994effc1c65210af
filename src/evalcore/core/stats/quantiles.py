"""Quantiles and distribution functions of the normal, t, beta and binomial laws, without scipy."""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, inf, isnan, log, log1p, nan, sqrt
from statistics import NormalDist

from evalcore.core.records.errors import EvalError
from evalcore.core.stats.special import find_root, incomplete_beta, log_beta, log_of

_NORMAL = NormalDist()
_TINY = 1e-300
_LARGE_DF = 2000.0


def normal_quantile(p: float) -> float:
    """The point below which a standard normal falls with probability p.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    _check_probability(p)
    return _NORMAL.inv_cdf(p) if 0 < p < 1 else (inf if p else -inf)


def t_cdf(x: float, df: float) -> float:
    """The probability that Student's t with df (any positive real) degrees of freedom is at most x.

    >>> round(t_cdf(1.0, 1), 12), t_cdf(0.0, 3.5)
    (0.75, 0.5)
    """
    _check_positive("degrees of freedom", df)
    if isnan(x):
        return nan
    tail = 0.5 * _t_parts(abs(x), df)[1]
    return tail if x < 0 else 1.0 - tail


def t_quantile(p: float, df: float) -> float:
    """The point below which Student's t falls with probability p; df may be any positive real or infinity.

    >>> round(t_quantile(0.975, 9), 6), round(t_quantile(0.975, 7.3), 6), t_quantile(0.5, 2)
    (2.262157, 2.345067, 0.0)
    """
    _check_probability(p)
    _check_positive("degrees of freedom", df)
    size = _t_point(2 * min(p, 1 - p), abs(2 * p - 1), df)
    return -size if p < 0.5 else size


def beta_quantile(p: float, a: float, b: float) -> float:
    """The point below which a Beta(a, b) variable falls with probability p.

    >>> round(beta_quantile(0.025, 20, 1), 6)
    0.831567
    """
    _check_probability(p)
    _check_positive("a", a)
    _check_positive("b", b)
    return _beta_point(p, float(a), float(b)) if 0 < p < 1 else p


def binomial_cdf(k: int, n: int, p: float) -> float:
    """The probability of at most k successes in n trials.

    >>> binomial_cdf(1, 2, 0.5), binomial_cdf(-1, 2, 0.5), binomial_cdf(2, 2, 0.5)
    (0.75, 0.0, 1.0)
    """
    _check_probability(p)
    if k < 0 or k >= n:
        return float(k >= 0)
    return incomplete_beta(n - k, k + 1, 1 - p, p)[0]


# --- parts -----------------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise EvalError(f"expected a probability between 0 and 1, got {p}")


def _check_positive(what: str, value: float) -> None:
    if not value > 0:
        raise EvalError(f"expected {what} above 0, got {value}")


def _t_parts(t: float, df: float) -> tuple[float, float]:
    """P(|T| <= t) and P(|T| > t), for t >= 0."""
    if df > _LARGE_DF:
        tail = erfc(_as_normal(t, df) / sqrt(2))
        return 1 - tail, tail
    square = t * t
    if square == inf:
        return 1.0, 0.0
    tail, central = incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))
    return central, tail


def _as_normal(t: float, df: float) -> float:
    """The normal deviate with the same tail (Hill 1970, CACM algorithm 395), for df in the thousands."""
    if df == inf or t == inf:
        return t
    a = df - 0.5
    b = 48 * a * a
    y = a * log1p(t * t / df)
    return (((((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b) + y + 3) / b + 1) * sqrt(y)


def _from_normal(z: float, df: float) -> float:
    """Cornish-Fisher expansion of the t quantile (Abramowitz and Stegun 26.7.5)."""
    s = z * z
    terms = (
        (s + 1) / 4,
        ((5 * s + 16) * s + 3) / 96,
        (((3 * s + 19) * s + 17) * s - 15) / 384,
        ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92160,
    )
    total = 0.0
    for term in reversed(terms):
        total = (total + term) / df
    return z * (1 + total)


@lru_cache(maxsize=4096)
def _t_point(tail: float, central: float, df: float) -> float:
    """The t with P(|T| > t) = tail and P(|T| <= t) = central."""
    if tail <= 0 or central <= 0:
        return inf if tail <= 0 else 0.0
    z = -_NORMAL.inv_cdf(tail / 2)
    if df > _LARGE_DF:
        return z if df == inf else _from_normal(z, df)
    constant = log_beta(df / 2, 0.5)
    # far out, P(|T| > t) is 2 (sqrt(df) / t)^df / (df B(df/2, 1/2))
    power = 0.5 * log(df) - (log(tail * df / 2) + constant) / df
    guess = log(_from_normal(z, df)) if df > 3 and z < 2 * sqrt(df) else max(log(z), power)

    def miss(s: float) -> tuple[float, float]:
        t = exp(s)
        inner, outer = _t_parts(t, df)
        slope = exp(s - 0.5 * (df + 1) * log1p(t * t / df) - 0.5 * log(df) - constant) * 2
        if central < tail:
            return _relative(inner, central), slope / (inner or _TINY)
        return -_relative(outer, tail), slope / (outer or _TINY)

    return exp(find_root(miss, guess, -350.0, 350.0))


@lru_cache(maxsize=4096)
def _beta_point(p: float, a: float, b: float) -> float:
    constant = log_beta(a, b)

    def miss(s: float) -> tuple[float, float]:
        x, y = 1 / (1 + exp(-s)), 1 / (1 + exp(s))
        lower, upper = incomplete_beta(a, b, x, y)
        slope = exp(a * log_of(x, y) + b * log_of(y, x) - constant)
        if p < 0.5:
            return _relative(lower, p), slope / (lower or _TINY)
        return -_relative(upper, 1 - p), slope / (upper or _TINY)

    guess = log(a / b) + _NORMAL.inv_cdf(p) * sqrt(1 / a + 1 / b)
    return 1 / (1 + exp(-find_root(miss, guess, -700.0, 700.0)))


def _relative(value: float, wanted: float) -> float:
    return log(value / wanted) if value > 0 else -inf
