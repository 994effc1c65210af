"""Tests of paired differences: a million pairs without draws beside 10,000 draws, by scipy and by plain numpy.

Draws swap every document, so they get fewer documents; their time for a million is what that many more would take. The
last row is a whole comparison, from scores to the difference with its interval and p-value.

    python bench/compare.py [--docs 1000000] [--theirs 2000] [--draws 10000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from evalcore import AGGREGATIONS, aggregate_metric
from evalcore.comparisons import compare_estimates
from evalcore.core.records.array import Floats64
from evalcore.core.stats.sign_flips import flip_sum, flip_tests
from evalcore.stats import Array, Floats, build_column


def draw_scores(n: int, seed: int = 0) -> tuple[Floats64, Floats64]:
    """Two runs' scores between 0 and 1, the first a little better."""
    rng = np.random.default_rng(seed)
    ease = rng.beta(2, 1, n)
    first, second = (np.clip(ease + 0.2 * rng.normal(size=n), 0, 1) for _ in "ab")
    return np.clip(first + 1 / np.sqrt(n) / 4, 0, 1), second


def measure(work: Callable[[], float], times: int = 3) -> tuple[float, float]:
    """The best of some times in seconds, and the p-value."""
    best, found = float("inf"), 0.0
    for _ in range(times):
        start = time.perf_counter()
        found = work()
        best = min(best, time.perf_counter() - start)
    return best, found


def test_by_scipy(a: Floats64, b: Floats64, draws: int) -> float:
    done = stats.permutation_test(
        (a, b),
        lambda one, two, axis: np.mean(one - two, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws,
        batch=100,
        random_state=0,
    )
    return float(done.pvalue)


def test_by_draws(a: Floats64, b: Floats64, draws: int) -> float:
    apart = (a - b)[:, None]
    return float(
        flip_tests(lambda signs: signs @ apart, apart.sum(axis=0), np.zeros(1), len(a), draws=draws, seed=0)[0]
    )


def compare_whole(a: Floats64, b: Floats64) -> float:
    runs = [aggregate_metric(AGGREGATIONS["mean"], build_column(range(len(one)), Floats(Array(one)))) for one in (a, b)]
    return compare_estimates(runs[0], runs[1]).p_value or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=1_000_000)
    parser.add_argument("--theirs", type=int, default=2_000)
    parser.add_argument("--draws", type=int, default=10_000)
    given = parser.parse_args()
    few, many = draw_scores(given.theirs), draw_scores(given.docs)
    exact, p_value = measure(lambda: flip_sum(few[0] - few[1]))
    large, p_large = measure(lambda: flip_sum(many[0] - many[1]))
    print(f"evalcore: {given.theirs:,} pairs {exact:.5f} s (p {p_value:.4f}), {given.docs:,} pairs {large:.3f} s")
    for name, test in (("scipy", test_by_scipy), ("numpy", test_by_draws)):
        theirs, drawn = measure(lambda test=test: test(*few, given.draws), 1)
        more = theirs * given.docs / given.theirs
        print(f"{name}, {given.draws:,} draws: {theirs:.3f} s (p {drawn:.4f}), ratio {theirs / exact:,.0f}; ", end="")
        print(f"{given.docs:,} pairs would take {more:,.0f} s, ratio {more / large:,.0f}")
    whole, again = measure(lambda: compare_whole(*many), 1)
    print(f"evalcore, from {given.docs:,} scores to the line: {whole:.2f} s (p {again:.4g}, alone {p_large:.4g})")


if __name__ == "__main__":
    main()
