"""Comparisons: oracles, coverage and false positives of paired methods (trust.md 1.7), erratum E25."""

from __future__ import annotations

from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.compare.estimates import compare_estimates, match_keys
from evalcore.core.records.array import Array, Floats64, Ints64, frozen
from evalcore.core.records.column import Floats, build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Scale, Spread
from evalcore.core.stats.families import holm
from evalcore.core.stats.pair_tests import Difference, paired_binary
from evalcore.core.stats.quantiles import normal_quantile
from evalcore.core.stats.sample_size import Variances, distance_at, questions_for, reach_of_test
from evalcore.core.stats.sign_flips import sign_flip_test


def two_runs(seed: int, n: int) -> tuple[Floats64, Floats64]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=n)
    return shared + rng.normal(size=n), shared + rng.normal(size=n) + 0.2


def mean_of(values: Floats64, clusters: Ints64 | None = None) -> Estimate:
    column = build_column(range(len(values)), Floats(Array(values)))
    made = aggregate_metric(AGGREGATIONS["mean"], column, clusters=clusters)
    return replace(made, scale=replace(made.scale, bounds=(-inf, inf)))


def ratio_of(parts: Floats64, sizes: Floats64) -> Estimate:
    value, keys = parts.sum() / sizes.sum(), frozen(np.arange(len(parts)))
    spread = Spread(influence=frozen((parts - value * sizes) / sizes.mean()), keys=keys)
    return Estimate(value=value, stderr=None, n=len(parts), spread=spread, scale=Scale(average=False))


def test_e25_paired_uses_what_the_runs_share() -> None:
    a, b = two_runs(1, 400)
    unpaired = sqrt(a.var(ddof=1) / 400 + b.var(ddof=1) / 400)
    assert compare_estimates(mean_of(a), mean_of(b)).stderr < 0.8 * unpaired


def test_paired_influences_of_a_ratio_agree_with_its_bootstrap() -> None:
    rng = np.random.default_rng(2)
    size = rng.integers(5, 50, 300).astype(float)
    errors_a, errors_b = rng.binomial(size.astype(int), 0.2) * 1.0, rng.binomial(size.astype(int), 0.25) * 1.0
    ratio_a, ratio_b = errors_a.sum() / size.sum(), errors_b.sum() / size.sum()
    found = compare_estimates(ratio_of(errors_a, size), ratio_of(errors_b, size))
    at = rng.integers(0, 300, (4000, 300))
    drawn = (errors_a - errors_b)[at].sum(1) / size[at].sum(1)
    assert found.stderr == pytest.approx(drawn.std(), rel=0.05)
    assert found.difference == pytest.approx(ratio_a - ratio_b)


def test_paired_with_clusters_of_one_is_plain() -> None:
    a, b = two_runs(3, 30)
    plain, one_each, twos = (
        compare_estimates(mean_of(a, clusters), mean_of(b, clusters))
        for clusters in (None, np.arange(30), np.arange(30) // 2)
    )
    assert (plain.stderr, plain.ci, plain.p_value) == (one_each.stderr, one_each.ci, one_each.p_value)
    assert twos.ci != plain.ci


def test_equal_differences_are_not_certainty() -> None:
    b = np.array([0.1, 0.2, 0.7])
    found = compare_estimates(mean_of(b + 0.1), mean_of(b))
    assert (found.stderr, found.ci) == (0, None)
    same = compare_estimates(mean_of(b), mean_of(b))
    assert (same.difference, same.ci, same.p_value) == (0, None, 1.0)
    assert compare_estimates(mean_of(b[:1]), mean_of(b[1:2])).stderr is None


@pytest.mark.parametrize(("wins", "losses", "n"), [(0, 0, 5), (3, 1, 10), (12, 30, 100), (5, 5, 20), (40, 0, 41)])
def test_paired_binary_formulas(wins: int, losses: int, n: int) -> None:
    a = np.array([1.0] * wins + [0.0] * losses + [1.0] * (n - wins - losses))
    b = np.array([0.0] * wins + [1.0] * losses + [1.0] * (n - wins - losses))
    found = paired_binary(a, b)
    fewer, pairs = min(wins, losses), wins + losses
    mid = 2 * stats.binom.cdf(fewer, pairs, 0.5) - stats.binom.pmf(fewer, pairs, 0.5)
    assert found.p_value == pytest.approx(min(1, mid), rel=1e-10)
    up, down = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    reach = normal_quantile(0.975) * sqrt((up + down - (up - down) ** 2) / (n + 2))
    assert found.ci == pytest.approx((max(-1, up - down - reach), min(1, up - down + reach)))
    assert found.ci[0] < found.difference < found.ci[1]
    assert found.stderr == pytest.approx(np.std(a - b, ddof=1) / sqrt(n), abs=1e-15)


def test_paired_binary_covers_where_paired_t_does_not() -> None:
    # latent correlation .8, truth .99 and .97, n 30: 100 % and 56 % in trust.md 1.7
    rng = np.random.default_rng(4)
    cut = normal_quantile(0.99), normal_quantile(0.97)
    inside = [0, 0]
    for _ in range(1000):
        x, y = rng.normal(size=(2, 30))
        a, b = (x < cut[0]).astype(float), (0.8 * x + 0.6 * y < cut[1]).astype(float)
        apart = a - b
        reach = stats.t.ppf(0.975, 29) * apart.std(ddof=1) / sqrt(30)
        ends = paired_binary(a, b).ci, (apart.mean() - reach, apart.mean() + reach) if reach else (1.0, -1.0)
        for at, (low, high) in enumerate(ends):
            inside[at] += low <= 0.02 <= high
    assert inside[0] >= 990
    assert inside[1] <= 700


def test_paired_binary_wants_zeros_and_ones() -> None:
    with pytest.raises(EvalError, match="use compare_estimates"):
        paired_binary(np.array([0.5]), np.array([1.0]))
    with pytest.raises(EvalError, match="got 1 and 2"):
        paired_binary(np.array([1.0]), np.array([1.0, 0.0]))
    with pytest.raises(EvalError, match="at least one"):
        paired_binary(np.zeros(0), np.zeros(0))


def ratio(sums: Floats64) -> float:
    return float(sums[0] / sums[1])


def test_sign_flip_agrees_with_every_flip() -> None:
    rng = np.random.default_rng(5)
    a = np.column_stack([rng.integers(0, 9, 8), np.full(8, 10)]).astype(float)
    b = np.column_stack([rng.integers(2, 11, 8), np.full(8, 10)]).astype(float)
    observed = abs(ratio(a.sum(0)) - ratio(b.sum(0)))
    masks = np.array(list(product((0, 1), repeat=8)))
    gaps = [abs(ratio(np.where(m[:, None], b, a).sum(0)) - ratio(np.where(m[:, None], a, b).sum(0))) for m in masks]
    exact = np.mean(np.array(gaps) >= observed - 1e-12)
    found = sign_flip_test(a, b, ratio, draws=20_000, seed=1)
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert found == sign_flip_test(a, b, ratio, draws=20_000, seed=1)
    assert found.difference == pytest.approx(ratio(a.sum(0)) - ratio(b.sum(0)))


def test_sign_flip_edges() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert sign_flip_test(a, a, ratio, draws=99, seed=0).p_value == 1, "ties count"
    assert sign_flip_test(a + 9, a, lambda sums: float(sums[0]), draws=0, seed=0).p_value == 1
    assert sign_flip_test(a, a, lambda sums: float("nan"), draws=9, seed=0).p_value is None
    big = np.ones((50, 1))
    assert sign_flip_test(big, 0 * big, lambda sums: float(sums[0]), draws=999, seed=0).p_value == 1 / 1000


def test_sign_flip_false_positives() -> None:
    rng = np.random.default_rng(6)
    hits = 0
    for seed in range(300):
        a, b = rng.poisson(3, (2, 40, 1)).astype(float)
        found = sign_flip_test(a, b, lambda sums: float(sums[0]), draws=199, seed=seed)
        hits += found.p_value <= 0.05
    assert hits <= 28, "5 % of 300 is 15, sd 3.8"


def test_holm_on_known_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.6, 0.7]) == (1.0, 1.0)
    assert holm([]) == ()
    assert holm([None, 0.02]) == (None, 0.02)
    with pytest.raises(EvalError, match="between 0 and 1"):
        holm([1.5])


def test_holm_keeps_the_family_error() -> None:
    p = np.random.default_rng(7).random((2000, 10))
    assert np.mean([min(holm(row)) <= 0.05 for row in p.tolist()]) <= 0.065


def test_power_is_reached() -> None:
    own, reach = Variances(1.0), reach_of_test()
    n = questions_for(0.2, own, reach=reach)
    assert n == 199
    assert distance_at(n, own, reach=reach) <= 0.2 < distance_at(n - 1, own, reach=reach)
    drawn = np.random.default_rng(8).normal(0.2, 1.0, (4000, n))
    z = drawn.mean(1) / (drawn.std(1, ddof=1) / sqrt(n))
    assert np.mean(np.abs(z) > normal_quantile(0.975)) == pytest.approx(0.8, abs=0.03)
    with pytest.raises(EvalError, match="above 0"):
        questions_for(0.0, own, reach=reach)
    with pytest.raises(EvalError, match="at least two"):
        distance_at(0, own, reach=reach)


def test_keys_must_match() -> None:
    assert match_keys(np.array([3, 1, 2]), [1, 2, 3]).tolist() == [2, 0, 1]
    assert match_keys([("hash", 0), ("hash", 1)], [("hash", 1), ("hash", 0)]).tolist() == [1, 0]
    with pytest.raises(EvalError, match=r"only in the first: 5 \(0, 1, 2, \.\.\.\); only in the second: none"):
        match_keys(range(9), range(5, 9))
    with pytest.raises(EvalError, match="once in the second run, got 1 twice"):
        match_keys([1, 2], [1, 1])


def test_difference_is_a_value() -> None:
    made = Difference(0.1, None, None, None, 3, "paired t")
    assert made == Difference(0.1, None, None, None, 3, "paired t")
    with pytest.raises(AttributeError):
        made.n = 4
