"""The cells of the coverage grid: a family of numbers, a number of documents, a distribution, clusters.

A cell draws the rows of one evaluation, knows the truth behind them, and closes them as a run would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from math import exp, log
from zlib import crc32

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from evalcore import AGGREGATIONS, Estimate, aggregate_metric, freeze_options
from evalcore.core.metrics.corpus import pair_statistics
from evalcore.core.records.row import Rows
from evalcore.stats import Array, Floats, Labels, Stats, build_column

Values = NDArray[np.float64]
Drawn = tuple[Rows, NDArray[np.int64] | None]
"""Rows, and the cluster of each if they have any."""


class Cell(Struct, frozen=True):
    """A cell: where it stands in the grid, how one evaluation is drawn, and what is true of all of them (``true``: the
    number, or what computes it when it is asked for).

    ``lm_eval`` names lm-eval's way to an error of this number, if it has one; ``bounds`` those of a score of one's own.
    """

    family: str
    n: int
    of: str
    draw: Callable[[Generator], Drawn]
    true: float | Callable[[], float]
    aggregation: str = "mean"
    options: tuple[tuple[str, object], ...] = ()
    clusters: str = ""
    bounds: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.family, self.of, self.clusters, f"n = {self.n:,}")))

    @property
    def truth(self) -> float:
        return self.true if isinstance(self.true, float | int) else self.true()

    def generator(self, seed: int) -> Generator:
        """Its own random numbers, whatever cells stand before it."""
        return np.random.default_rng([seed, crc32(self.name.encode())])

    def close(self, drawn: Drawn) -> Estimate:
        rows, codes = drawn
        how = AGGREGATIONS[self.aggregation]
        if self.bounds is not None:
            how = _rebound(how.name, self.bounds)
        options = freeze_options(dict(self.options))
        return aggregate_metric(how, build_column(range(self.n), rows), options=options, clusters=codes)


@cache
def _rebound(name: str, bounds: tuple[float, float]):  # type: ignore[no-untyped-def]
    from msgspec.structs import replace

    return replace(AGGREGATIONS[name], bounds=bounds)


ANY = (-np.inf, np.inf)


def numbers(values: Values) -> Drawn:
    return Floats(Array(values.astype(np.float64))), None


# --- scores of documents ---------------------------------------------------------------------------------------------


def right_or_wrong(n: int, p: float, rng: Generator) -> Drawn:
    return numbers(rng.random(n) < p)


def of_repeats(n: int, p: float, rng: Generator) -> Drawn:
    """Means of four replies to questions of unequal difficulty."""
    return numbers(rng.binomial(4, rng.beta(10 * p, 10 - 10 * p, n)) / 4)


def partial_credit(n: int, rng: Generator) -> Drawn:
    """Token F1: four in five are right, the others anything."""
    return numbers(np.where(rng.random(n) < 0.8, 1.0, rng.random(n)))


SKEWED: dict[str, tuple[Callable[[Generator, int], Values], float]] = {
    "normal": (lambda rng, n: rng.normal(0, 1, n), 0.0),
    "exponential": (lambda rng, n: rng.exponential(1, n), 1.0),
    "gamma .5": (lambda rng, n: rng.gamma(0.5, 1, n), 0.5),
    "log-normal": (lambda rng, n: rng.lognormal(0, 1, n), exp(0.5)),
}
"""Scores without bounds, and their mean."""


def without_bounds(n: int, of: str, rng: Generator) -> Drawn:
    return numbers(SKEWED[of][0](rng, n))


def likelihoods(n: int, of: str, rng: Generator) -> Drawn:
    return numbers(-SKEWED[of][0](rng, n))


def of_median(n: int, of: str, rng: Generator) -> Drawn:
    return numbers(SKEWED[of][0](rng, n))


def brier(n: int, sure: float, rng: Generator) -> Drawn:
    """A calibrated model of four choices; the surer it is, the rarer and larger its errors."""
    chances = rng.dirichlet(np.full(4, 1 / sure), n)
    gold = (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    return numbers(((chances - np.eye(4)[gold]) ** 2).sum(axis=1))


def brier_truth(sure: float) -> float:
    """E Σ(p − y)² = E(1 − Σp²) for a calibrated model, with p from a Dirichlet law of four equal parts."""
    return 1 - 4 * (1 / sure) * (1 / sure + 1) / (4 / sure * (4 / sure + 1))


# --- clusters --------------------------------------------------------------------------------------------------------


def cluster_sizes(kind: str, count: int, n: int) -> list[int]:
    """Equal clusters; or one that holds half of the documents, or two that hold 40 % each, and equal others."""
    large = {"equal": [], "one holds half": [n // 2], "two hold 40 %": [2 * n // 5] * 2}[kind]
    others = count - len(large)
    rest = np.diff(np.linspace(0, n - sum(large), others + 1).round().astype(int)).tolist()
    return [*large, *rest]


def clustered(sizes: tuple[int, ...], of: str, icc: float, rng: Generator) -> Drawn:
    """Scores with this correlation within clusters: 0/1 by a beta law, others as a sum of two parts."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    n = len(codes)
    if of.startswith("0/1"):
        p = float(of.split()[1])
        shared = np.full(len(sizes), p)
        if icc:
            shared = rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), len(sizes))
        return Floats(Array((rng.random(n) < shared[codes]).astype(np.float64))), codes
    draw = SKEWED[of][0]
    centred = np.sqrt(icc) * draw(rng, len(sizes))[codes] + np.sqrt(1 - icc) * draw(rng, n)
    return Floats(Array(centred)), codes


def clustered_truth(of: str, icc: float) -> float:
    return float(of.split()[1]) if of.startswith("0/1") else (np.sqrt(icc) + np.sqrt(1 - icc)) * SKEWED[of][1]


# --- lengths ---------------------------------------------------------------------------------------------------------


def lengths(n: int, sd: float, together: float, rng: Generator) -> Drawn:
    """(Log-likelihood, length) with log-normal lengths; ``together`` correlates length and loss per token."""
    size, loss = rng.normal(0, 1, n), rng.normal(0, 1, n)
    loss = together * size + np.sqrt(1 - together**2) * loss
    tokens = np.ceil(100 * np.exp(sd * size))
    return Stats(Array(np.column_stack([-tokens * np.exp(0.3 * loss + 0.5), tokens]))), None


@cache
def lengths_truth(sd: float, together: float) -> float:
    """The loss per token of four million documents."""
    rows, _ = lengths(4_000_000, sd, together, np.random.default_rng(1))
    assert isinstance(rows, Stats)
    sums = rows.values.floats.sum(axis=0)
    return float(-sums[0] / sums[1])


def perplexity_truth(sd: float, together: float) -> float:
    return exp(lengths_truth(sd, together))


def bits_truth(sd: float, together: float) -> float:
    return lengths_truth(sd, together) / log(2)


# --- classes ---------------------------------------------------------------------------------------------------------

CLASSES: dict[str, tuple[float, ...]] = {
    "2 classes, 9 : 1": (0.9, 0.1),
    "2 classes, even": (0.5, 0.5),
    "3 classes, 80 : 15 : 5": (0.8, 0.15, 0.05),
    "4 classes, even": (0.25,) * 4,
    "4 classes, 85 : 5 : 5 : 5": (0.85, 0.05, 0.05, 0.05),
    "20 classes, Zipf": tuple((1 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum()).tolist()),
}


def confusion(shares: tuple[float, ...], right: float) -> Values:
    """The chance of each gold and predicted class; errors are spread evenly."""
    k = len(shares)
    return np.array(shares)[:, None] * np.where(np.eye(k) > 0, right, (1 - right) / (k - 1))


def classes(n: int, shares: tuple[float, ...], right: float, rng: Generator) -> Drawn:
    k = len(shares)
    cells = rng.choice(k * k, n, p=confusion(shares, right).ravel())
    return Labels(Array(np.column_stack([cells // k, cells % k]))), None


def macro_f1(table: Values) -> float:
    return float(np.mean(2 * np.diag(table) / (table.sum(axis=0) + table.sum(axis=1))))


def mcc(table: Values) -> float:
    true, said = table.sum(axis=1), table.sum(axis=0)
    return float((np.trace(table) - true @ said) / np.sqrt((1 - true @ true) * (1 - said @ said)))


def f1(n: int, prevalence: float, value: float, rng: Generator) -> Drawn:
    """As many false claims as missed ones, so that precision = recall = F1."""
    hit, miss = prevalence * value, prevalence * (1 - value)
    kind = rng.choice(4, n, p=[hit, miss, miss, 1 - hit - 2 * miss])
    if (kind == 3).all():  # without the class there is no F1
        kind[0] = 0
    return Labels(Array(np.column_stack([np.isin(kind, (0, 2)), np.isin(kind, (0, 1))]).astype(np.int64))), None


# --- calibration -----------------------------------------------------------------------------------------------------


def confidence(n: int, of: str, rng: Generator) -> Drawn:
    """(Confidence, correct) of a model that is right as often as it says, or 10 points less often."""
    said = rng.beta(5, 2, n) if "sure" in of else rng.uniform(0.25, 1, n)
    right = rng.random(n) < said - (0.1 if "over" in of else 0.0)
    return Stats(Array(np.column_stack([said, right]))), None


# --- corpora ---------------------------------------------------------------------------------------------------------


@cache
def sentences(kind: str) -> Values:
    """The counts of 3,000 sentence pairs: a reference of random words, and a copy with some words changed."""
    rng = np.random.default_rng(7)
    words = np.array([f"w{i}" for i in range(400)])
    chance = 1 / np.arange(1, 401)
    pairs = []
    for _ in range(3000):
        length = int(np.clip(rng.lognormal(2.8, 0.6), 4, 90))
        gold = rng.choice(words, length, p=chance / chance.sum())
        said = np.where(rng.random(length) < rng.beta(1, 2), rng.choice(words, length), gold)
        pairs.append((" ".join(gold), " ".join(said[: max(3, length - int(rng.integers(0, 3)))])))
    return np.asarray(pair_statistics(kind, pairs), np.float64)


def corpus(n: int, kind: str, rng: Generator) -> Drawn:
    population = sentences(kind)
    return Stats(Array(population[rng.integers(0, len(population), n)])), None


@cache
def corpus_truth(kind: str) -> float:
    made = aggregate_metric(AGGREGATIONS[kind], build_column(range(3000), Stats(Array(sentences(kind)))))
    assert made.value is not None
    return made.value


# --- the grid --------------------------------------------------------------------------------------------------------

SIZES, CHANCES = (10, 30, 100, 1000), (0.5, 0.9, 0.99)


def list_cells() -> Iterator[Cell]:
    """Every cell that is drawn; those of right and wrong answers alone are summed exactly."""
    for n, p in product(SIZES, (0.9, 0.99)):
        yield Cell("repeats", n, f"mean of 4, {p}", partial(of_repeats, n, p), p)
    for n in SIZES:
        yield Cell("partial credit", n, "80 % ones", partial(partial_credit, n), 0.9)
    for n, of in product((10, 30, 100), SKEWED):
        yield Cell("mean without bounds", n, of, partial(without_bounds, n, of), SKEWED[of][1], bounds=ANY)
    for n, of in product((10, 30, 100), ("normal", "exponential", "log-normal")):
        middle = {"normal": 0.0, "exponential": log(2), "log-normal": 1.0}[of]
        yield Cell("median", n, of, partial(of_median, n, of), middle, "median")
    yield from _list_clusters()
    for n, of in product((10, 30, 100), ("exponential", "gamma .5", "log-normal")):
        yield Cell("perplexity", n, of, partial(likelihoods, n, of), exp(SKEWED[of][1]), "perplexity")
    for n, (sd, together) in product((10, 30, 100, 300), ((1.0, 0.0), (1.0, 0.2), (2.0, 0.0), (2.0, 0.2))):
        of = f"log-length sd {sd:g}" + (f", correlated {together}" if together else "")
        draw = partial(lengths, n, sd, together)
        yield Cell("weighted perplexity", n, of, draw, partial(perplexity_truth, sd, together), "weighted_perplexity")
        yield Cell("bits per byte", n, of, draw, partial(bits_truth, sd, together), "bits_per_byte")
    for n, sure in product((10, 30, 100), (1.0, 4.0, 16.0)):
        yield Cell("Brier", n, f"sureness {sure:g}", partial(brier, n, sure), brier_truth(sure), "brier_score")
    for n, kind in product((10, 30, 100), ("bleu", "chrf", "ter")):
        yield Cell(kind, n, "corrupted sentences", partial(corpus, n, kind), partial(corpus_truth, kind), kind)
    yield from _list_calibration()
    yield from _list_classes()


def _list_clusters() -> Iterator[Cell]:
    for n, p in product((30, 100, 1000), CHANCES):
        sizes = (5,) * (n // 5)
        yield Cell("clusters", n, f"0/1 {p}, ICC .3", partial(clustered, sizes, f"0/1 {p}", 0.3), p, clusters="of 5")
    for kind, count, icc, of in product(
        ("one holds half", "two hold 40 %"),
        (3, 5, 10, 30),
        (0.0, 0.1, 0.5),
        ("0/1 0.5", "0/1 0.9", "normal", "exponential"),
    ):
        sizes = tuple(cluster_sizes(kind, count, 10 * count))
        yield Cell(
            "clusters",
            sum(sizes),
            f"{of}, ICC {icc:g}",
            partial(clustered, sizes, of, icc),
            clustered_truth(of, icc),
            clusters=f"{count}, {kind}",
            bounds=None if of.startswith("0/1") else ANY,
        )


def _list_calibration() -> Iterator[Cell]:
    for n, of in product((30, 100, 1000), ("calibrated", "calibrated, sure", "over by .1", "over by .1, sure")):
        yield Cell("ECE", n, of, partial(confidence, n, of), 0.1 if "over" in of else 0.0, "ece")


def _list_classes() -> Iterator[Cell]:
    for (of, shares), n, right in product(CLASSES.items(), (30, 100, 400), (0.6, 0.8, 0.95)):
        draw, table = partial(classes, n, shares, right), confusion(shares, right)
        where = f"{of}, {right:g} right"
        yield Cell("macro F1", n, where, draw, macro_f1(table), "f1", (("average", "macro"),))
        yield Cell("MCC", n, where, draw, mcc(table), "matthews_corrcoef")
    for n, share, value in ((10, 0.5, 0.8), (10, 0.1, 0.9), (30, 0.3, 0.99), (100, 0.1, 0.9), (100, 0.3, 0.99)):
        yield Cell("F1", n, f"{share} of the class, {value}", partial(f1, n, share, value), value, "f1")
