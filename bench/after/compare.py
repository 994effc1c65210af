"""Tests of paired differences: a million pairs without draws beside 10,000 draws, by scipy and by plain numpy.

Draws swap every document, so they get fewer documents; their time for a million is what that many more would take. The
last row is a whole comparison, from scores to the difference with its interval and p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from bench.measure import best_seconds
from bench.rows import Row, at_least
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
    found: list[float] = []
    return best_seconds(lambda: found.append(work()), times), found[-1]


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


def measure_rows(*, docs: int = 1_000_000, theirs: int = 2_000, draws: int = 10_000) -> Iterator[Row]:
    few, many = draw_scores(theirs), draw_scores(docs)
    exact, p_value = measure(lambda: flip_sum(few[0] - few[1]))
    large, p_large = measure(lambda: flip_sum(many[0] - many[1]))
    for name, test in (("scipy", test_by_scipy), ("numpy", test_by_draws)):
        taken, drawn = measure(lambda test=test: test(*few, draws), 1)
        note = f"p {p_value:.4f}, of {draws:,} draws {drawn:.4f}"
        yield Row(
            what=f"{theirs:,} pairs", peer=taken, of=name, ours=exact, unit="s", targets=(at_least(50),), note=note
        )
        yield Row(
            what=f"{docs:,} pairs",
            peer=taken * docs / theirs,
            of=name,
            ours=large,
            unit="s",
            targets=(at_least(100),),
            note="multiplied",
        )
    whole, again = measure(lambda: compare_whole(*many), 1)
    yield Row(what=f"{docs:,} scores to the line", ours=whole, unit="s", note=f"p {again:.4g}, alone {p_large:.4g}")
