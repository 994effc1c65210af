"""The cells of the comparison grid: two runs on the same documents, drawn again and again, and what is true of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from zlib import crc32

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from bench.simulations.cells import SKEWED, Values, cluster_sizes, sentences
from evalcore import GENERATE_UNTIL, LOGLIKELIHOOD, MULTIPLE_CHOICE, MetricKey, MetricSpec, Task
from evalcore.comparisons import ComparisonLine, ComparisonSide, adjust_comparisons, compare_sides
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.stats.quantiles import normal_quantile
from evalcore.stats import Array, Floats, Stats, build_column

Runs = tuple[Values, Values]
KINDS = {"acc": MULTIPLE_CHOICE, "exact_match": GENERATE_UNTIL, "bleu": GENERATE_UNTIL, "perplexity": LOGLIKELIHOOD}
"""The output type of each metric used here; scores of one's own are those of generated texts."""


class PairCell(Struct, frozen=True):
    """Two runs: how their scores are drawn, and by how much the first is truly ahead."""

    family: str
    n: int
    of: str
    draw: Callable[[Generator], Runs]
    truth: float = 0.0
    metric: str = "exact_match"
    sizes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return ", ".join((self.family, self.of, f"n = {self.n:,}"))

    def generator(self, seed: int) -> Generator:
        return np.random.default_rng([seed, crc32(self.name.encode())])

    def compare(self, runs: Runs) -> ComparisonLine:
        codes = np.repeat(np.arange(len(self.sizes)), self.sizes) if self.sizes else None
        a, b = (build_side(scores, self.metric, codes) for scores in runs)
        return adjust_comparisons([compare_sides(a, b)])[0].lines[0]


def build_side(scores: Values, metric: str, codes: NDArray[np.int64] | None) -> ComparisonSide:
    rows = Floats(Array(scores)) if scores.ndim == 1 else Stats(Array(scores))
    spec = MetricSpec(metric)
    column = ScoredColumn(MetricKey(metric), build_column(range(len(scores)), rows), spec)
    task = Task("t", KINDS.get(metric, GENERATE_UNTIL), (spec,))
    named = () if codes is None else tuple(enumerate(codes.tolist()))
    return ComparisonSide("run", (Scored(task, (column,), clusters=named),))


def right_or_wrong(n: int, p: float, q: float, rng: Generator) -> Runs:
    """Two models' right answers to the same questions, with a latent correlation of .8."""
    x, y = rng.normal(size=(2, n))
    z = 0.8 * x + 0.6 * y
    return (x < normal_quantile(p)).astype(float), (z < normal_quantile(q)).astype(float)


def shifted(n: int, by: float, spread: float, rng: Generator) -> Runs:
    """Scores between 0 and 1 of which the first run's are higher by nearly the same on every document."""
    base = rng.uniform(0.2, 0.7, n)
    return base + by + spread * rng.normal(size=n).clip(-3, 3), base


def of_betas(n: int, rng: Generator) -> Runs:
    """Scores between 0 and 1 that share the difficulty of the question."""
    middle = rng.beta(4, 2, n)
    return rng.beta(8 * middle, 8 - 8 * middle), rng.beta(8 * middle, 8 - 8 * middle)


def partial_credit(n: int, rng: Generator) -> Runs:
    """Token F1: four in five are right in both runs."""
    draw = [np.where(rng.random(n) < 0.8, 1.0, rng.random(n)) for _ in "ab"]
    return draw[0], draw[1]


def of_repeats(n: int, rng: Generator) -> Runs:
    """Means of four replies to the same questions."""
    chance = rng.beta(7, 3, n)
    return rng.binomial(4, chance) / 4, rng.binomial(4, chance) / 4


def skewed(n: int, of: str, rng: Generator) -> Runs:
    """Differences of mean 0 that are far from symmetric."""
    draw, mean = SKEWED[of]
    base = rng.normal(size=n)
    return base + draw(rng, n) - mean, base


def rare_jumps(n: int, rng: Generator) -> Runs:
    """Scores between 0 and 1: a little better on most documents, much worse on one in ten."""
    base = np.full(n, 0.85)
    return base + np.where(rng.random(n) < 0.1, -0.45, 0.05), base


def by_cluster(sizes: tuple[int, ...], of: str, rng: Generator) -> Runs:
    codes = np.repeat(np.arange(len(sizes)), sizes)
    n = len(codes)
    if of == "0/1":
        chance = rng.beta(0.7, 0.3, (2, len(sizes)))[:, codes]
        return (rng.random(n) < chance[0]).astype(float), (rng.random(n) < chance[1]).astype(float)
    return (rng.normal(size=len(sizes))[codes] + rng.normal(size=n)), rng.normal(size=n)


def of_corpora(n: int, rng: Generator) -> Runs:
    """Two systems whose sentences come from the same population, each with its own luck."""
    population = sentences("bleu")
    at = rng.integers(0, len(population), (2, n))
    return population[at[0]], population[at[1]]


def of_likelihoods(n: int, rng: Generator) -> Runs:
    """Losses that share the difficulty of the text."""
    base = rng.gamma(2, 0.5, n)
    return -base * rng.gamma(20, 1 / 20, n), -base * rng.gamma(20, 1 / 20, n)


def list_null_cells() -> Iterator[PairCell]:
    """Runs that are truly equal: how often is one called better?"""
    for n, p in product((30, 100, 1000), (0.7, 0.9, 0.99)):
        yield PairCell("right or wrong", n, f"{p} and {p}", partial(right_or_wrong, n, p, p), metric="acc")
    for n in (20, 50, 200):
        yield PairCell("between 0 and 1", n, "beta", partial(of_betas, n))
        yield PairCell("between 0 and 1", n, "token F1", partial(partial_credit, n))
        yield PairCell("between 0 and 1", n, "mean of 4", partial(of_repeats, n))
        yield PairCell("between 0 and 1", n, "rare jumps", partial(rare_jumps, n))
    for n, of in product((20, 30, 50, 100), ("normal", "exponential", "gamma .5", "log-normal")):
        yield PairCell("without bounds", n, of, partial(skewed, n, of), metric="own_score")
    for count, of in product((6, 10, 30), ("0/1", "normal")):
        sizes = tuple(cluster_sizes("one holds half", count, 10 * count))
        draw = partial(by_cluster, sizes, of)
        metric = "acc" if of == "0/1" else "own_score"
        yield PairCell("clusters", sum(sizes), f"{of}, {count}, one holds half", draw, metric=metric, sizes=sizes)
    for n in (20, 100):
        yield PairCell("perplexity", n, "gamma", partial(of_likelihoods, n), metric="perplexity")
        yield PairCell("bleu", n, "same population", partial(of_corpora, n), metric="bleu")


def list_other_cells() -> Iterator[PairCell]:
    """Runs of which the first is truly better: how often is that found, and does the interval hold it?"""
    for n, (p, q) in product((30, 100, 1000), ((0.75, 0.7), (0.9, 0.85), (0.99, 0.97))):
        yield PairCell("right or wrong", n, f"{p} and {q}", partial(right_or_wrong, n, p, q), p - q, "acc")
    for n, spread in product((20, 100), (0.01, 0.05)):
        yield PairCell("between 0 and 1", n, f"up by .03 ± {spread}", partial(shifted, n, 0.03, spread), 0.03)
