"""Sign flips without draws: against every pattern, exact laws and many draws; what skewed differences do to them."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evalcore.core.records.array import Floats64
from evalcore.core.stats.sign_flips import flip_sum, flip_tests
from evalcore.core.stats.skewness import marked_skewness, skew_test

ROUNDS = 1000


def list_patterns(parts: Floats64) -> float:
    signs = np.array(list(product((-1.0, 1.0), repeat=len(parts))))
    return float(np.mean(np.abs(signs @ parts) >= abs(parts.sum()) - 1e-12 * np.abs(parts).sum()))


# --- the law itself ---------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.25, -0.25, 1.0, -1.0, 1 / 3, -0.7]), min_size=1, max_size=12))
def test_few_parts_are_every_pattern(parts: list[float]) -> None:
    assert flip_sum(np.array(parts)) == pytest.approx(list_patterns(np.array(parts)), abs=1e-12)
    assert flip_sum(np.array(parts)) == flip_sum(-np.array(parts)[::-1])


def meet(parts: Floats64) -> float:
    """Every pattern of 30 parts, half against half."""
    halves = [np.array(list(product((-1.0, 1.0), repeat=15))) @ half for half in (parts[:15], parts[15:])]
    found = np.searchsorted(np.sort(halves[1]), abs(parts.sum()) - 1e-12 * np.abs(parts).sum() - halves[0])
    return 2 * float(np.sum(2**15 - found)) / 2.0**30


@pytest.mark.parametrize("shift", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("law", ["normal", "lognormal", "quarters", "heavy"])
def test_the_saddlepoint_is_every_pattern_of_thirty(law: str, shift: float) -> None:
    rng = np.random.default_rng(40)
    drawn = {
        "normal": rng.normal(size=30),
        "lognormal": rng.lognormal(size=30) * rng.choice([-1, 1], 30),
        "quarters": rng.integers(-4, 5, 30) / 4.0,
        "heavy": rng.standard_t(1.5, 30),
    }[law]
    parts = drawn + shift * (np.abs(drawn).mean() if law != "quarters" else 0) + (law == "quarters") * 0.25
    assert flip_sum(parts) == pytest.approx(meet(parts), rel=0.01)


@pytest.mark.parametrize(("wins", "losses"), [(60, 40), (700, 300), (5100, 4900), (520_000, 480_000)])
def test_many_equal_parts_are_the_binomial(wins: int, losses: int) -> None:
    found = flip_sum(np.repeat([1.0, -1.0], [wins, losses]))
    assert found == pytest.approx(2 * stats.binom.cdf(losses, wins + losses, 0.5), rel=1e-3)


@pytest.mark.parametrize(("few", "many"), [(10, 1000), (30, 300), (50, 5000)])
def test_tasks_of_very_different_sizes_are_two_binomials(few: int, many: int) -> None:
    """The documents of the small task move the group's mean far more: the law has many peaks."""
    differing = 2 * few // 5, 3 * many // 10
    for wins, more in ((0.5, 0.52), (0.75, 0.5), (0.75, 0.53)):
        counts = round(wins * differing[0]), round(more * differing[1])
        parts = np.concatenate(
            [
                np.repeat([1.0, -1.0], [count, total - count]) / size / 2
                for count, total, size in zip(counts, differing, (few, many), strict=True)
            ]
        )
        large = np.arange(differing[0] + 1)
        rest = abs(parts.sum()) - 1e-12 - (2 * large - differing[0]) / few / 2
        least = np.ceil((rest * 2 * many + differing[1]) / 2 - 1e-9)
        exact = 2 * np.sum(stats.binom.pmf(large, differing[0], 0.5) * stats.binom.sf(least - 1, differing[1], 0.5))
        assert flip_sum(parts) == pytest.approx(min(exact, 1.0), rel=0.01)


@pytest.mark.parametrize("n", [60, 400])
def test_many_parts_are_many_draws(n: int) -> None:
    rng = np.random.default_rng(41)
    parts = rng.beta(0.3, 2, n) * rng.choice([-1, 1], n, p=[0.4, 0.6])
    draws = 100_000
    drawn = flip_tests(
        lambda signs: (signs @ parts)[:, None], parts.sum(keepdims=True), np.zeros(1), n, draws=draws, seed=1
    )[0]
    assert flip_sum(parts) == pytest.approx(drawn, abs=4 * sqrt(drawn / draws))


def test_tiny_p_values_are_those_of_the_normal_law() -> None:
    parts = np.random.default_rng(42).normal(0.02, 1.0, 100_000)
    want = 2 * stats.norm.sf(parts.sum() / np.sqrt(np.sum(parts**2)))
    assert want < 1e-5
    assert flip_sum(parts) == pytest.approx(want, rel=1e-2)
    assert 0 < flip_sum(np.ones(100_000)) < 1e-300


def test_edges() -> None:
    assert flip_sum(np.zeros(0)) == flip_sum(np.zeros(9)) == flip_sum(np.array([1.0, -1.0])) == 1
    assert flip_sum(np.full(40, 0.03)) == 2.0**-39
    noise = np.concatenate([np.ones(5), np.full(100, 1e-17)])
    assert flip_sum(noise) == 2.0**-4, "rounding errors are no differences"


# --- skewed differences -----------------------------------------------------------------------------------------------


def find_p(d: Floats64) -> tuple[float, float]:
    """The p-value of sign flips alone, and that of a comparison."""
    flipped, centred = flip_sum(d), d - d.mean()
    skewness = marked_skewness(centred)
    statistic = d.mean() / (d.std(ddof=1) / sqrt(len(d)))
    return flipped, max(flipped, skew_test(statistic, skewness, len(d) - 1)) if skewness else flipped


LAWS = {
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "gamma": lambda rng, n: rng.gamma(0.5, size=n) - 0.5,
    "lognormal": lambda rng, n: rng.lognormal(size=n) - np.exp(0.5),
    "bounded": lambda rng, n: rng.beta(0.5, 4, n) - 1 / 9,
    "jumps": lambda rng, n: np.where(rng.random(n) < 0.2, -rng.random(n), 0.1 * rng.random(n)) + 0.06,
}


def count_alarms(law: str, n: int, rounds: int = ROUNDS) -> tuple[float, float]:
    rng = np.random.default_rng(43)
    found = np.array([find_p(LAWS[law](rng, n)) for _ in range(rounds)])
    plain, corrected = np.mean(found <= 0.05, axis=0).tolist()
    return plain, corrected


@pytest.mark.parametrize(
    ("law", "n"),
    [("gamma", 20), ("exponential", 30)]
    + [
        pytest.param(law, n, marks=pytest.mark.slow)
        for law in LAWS
        for n in (20, 30, 50, 100)
        if (law, n) not in (("gamma", 20), ("exponential", 30))
    ],
)
def test_skewed_differences_are_found_in_about_five_per_cent(law: str, n: int) -> None:
    plain, corrected = count_alarms(law, n)
    assert corrected <= (0.075 if law == "lognormal" else 0.065), "6 % and the luck of 1,000 samples"
    assert plain > corrected
    if n <= 20:
        assert plain > 0.07, "what sign flips alone find"


@pytest.mark.parametrize("n", [20, 50])
def test_symmetric_differences_keep_their_power(n: int) -> None:
    """A shift that a t test finds in 80 % of samples."""
    rng = np.random.default_rng(44)
    shift = (stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) / sqrt(n)
    samples = rng.normal(shift, 1.0, (1000, n))
    found = np.mean([find_p(one)[1] <= 0.05 for one in samples])
    theirs = np.mean(stats.ttest_1samp(samples, 0, axis=1).pvalue <= 0.05)
    assert found >= theirs - 0.03
