"""Quantiles against scipy, closed forms where scipy itself is loose, and the edges."""

from __future__ import annotations

from math import inf, isnan, log, nan, pi, sqrt, tan

import pytest
from scipy import stats
from scipy.special import betaln

from evalcore.core.records.errors import EvalError
from evalcore.core.stats.quantiles import beta_quantile, binomial_cdf, normal_quantile, t_cdf, t_quantile
from evalcore.core.stats.special import find_root, incomplete_beta, log_beta

LEVELS = (0.501, 0.55, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995)
REAL_DF = (1.0001, 1.5, 2.7, 3.01, 7.3, 11.9, 55.5, 333.3, 999.5)


def near(value: float, rel: float = 1e-10) -> object:
    return pytest.approx(value, rel=rel, abs=1e-300)


@pytest.mark.parametrize("p", LEVELS)
def test_t_quantile_agrees_with_scipy(p: float) -> None:
    for df in (*range(1, 1001, 3), 1000, *REAL_DF):
        assert t_quantile(p, df) == near(float(stats.t.ppf(p, df)))


@pytest.mark.parametrize("df", [1999.0, 2000.5, 2001.0, 5e4, 1e7, 1e12])
def test_t_quantile_is_seamless_where_the_expansion_takes_over(df: float) -> None:
    for p in LEVELS:
        assert t_quantile(p, df) == near(float(stats.t.ppf(p, df)), 1e-10)


@pytest.mark.parametrize("p", [0.5 + 1e-9, 0.5001, 0.6, 0.99, 1 - 1e-9])
def test_t_quantile_closed_forms(p: float) -> None:
    assert t_quantile(p, 1) == near(tan(pi * (p - 0.5)) if p < 0.9 else 1 / tan(pi * (1 - p)))
    assert t_quantile(p, 2) == near((2 * p - 1) / sqrt(2 * p * (1 - p)))


@pytest.mark.parametrize("df", [0.3, 0.9, 2.5, 40])
@pytest.mark.parametrize("p", [1e-12, 0.001, 0.3, 0.7, 0.999])
def test_t_quantile_inverts_t_cdf(p: float, df: float) -> None:
    assert t_cdf(t_quantile(p, df), df) == near(p)


def test_t_edges() -> None:
    assert t_quantile(0.5, 3) == 0
    assert (t_quantile(0.0, 3), t_quantile(1.0, 3)) == (-inf, inf)
    assert t_quantile(0.025, 7.3) == near(-t_quantile(0.975, 7.3), 1e-14)
    assert t_quantile(0.975, inf) == near(normal_quantile(0.975), 1e-15)
    assert isnan(t_cdf(nan, 3))
    assert (t_cdf(-inf, 3), t_cdf(inf, 3), t_cdf(inf, 1e6), t_cdf(1e300, 0.5)) == (0, 1, 1, 1)


@pytest.mark.parametrize("x", [-30.0, -8.0, -2.0, -0.01, 0.5, 5.0])
def test_t_cdf_agrees_with_scipy(x: float) -> None:
    for df in (1, 2.5, 30, 999.5, 1999, 2001, 1e4, 1e6):
        assert t_cdf(x, df) == near(float(stats.t.cdf(x, df)), 1e-9)


@pytest.mark.parametrize("p", [1e-12, 0.025, 0.5, 0.975, 0.99999])
def test_normal_quantile_agrees_with_scipy(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(float(stats.norm.ppf(p)), rel=1e-13, abs=1e-15)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 30), (20, 1), (3, 8), (0.5, 0.5), (500, 501), (9, 9991), (2e4, 8e4)])
def test_beta_agrees_with_scipy(a: float, b: float) -> None:
    for p in (1e-6, 0.0005, 0.025, 0.5, 0.975, 0.9995):
        x = float(stats.beta.ppf(p, a, b))
        assert beta_quantile(p, a, b) == near(x)
        assert incomplete_beta(a, b, x, 1 - x)[0] == near(p)
    assert log_beta(a, b) == pytest.approx(float(betaln(a, b)), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("n", [1, 5, 30, 1000, 100_000])
def test_binomial_agrees_with_scipy(n: int) -> None:
    for k in {0, n // 3, n // 2, n - 1, n}:
        for p in (0.0, 0.01, 0.5, 0.9, 1.0):
            assert binomial_cdf(k, n, p) == pytest.approx(float(stats.binom.cdf(k, n, p)), rel=1e-10, abs=1e-250)


def test_wrong_arguments_are_named() -> None:
    for call in (lambda: t_quantile(0.9, 0), lambda: t_cdf(1, -1), lambda: beta_quantile(0.5, 0, 1)):
        with pytest.raises(EvalError, match="above 0"):
            call()
    for p in (-0.1, 1.1, nan):
        with pytest.raises(EvalError, match="between 0 and 1"):
            t_quantile(p, 3)


def test_numerics_beneath() -> None:
    assert incomplete_beta(2, 3, 0.0, 1.0) == (0.0, 1.0)
    assert incomplete_beta(2, 3, 1.0, 0.0) == (1.0, 0.0)
    assert find_root(lambda x: (log(x), 0.0), 3.0, 0.5, 4.0) == pytest.approx(1, abs=1e-7), "bisects without a slope"
