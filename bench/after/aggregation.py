"""Columns closed by kind: the time a document, and how costs grow with documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bench.measure import best_seconds, fit_exponent, list_sizes
from bench.rows import Row, at_most
from evalcore import AGGREGATIONS, aggregate_metric
from evalcore.comparisons import compare_estimates
from evalcore.core.records.row import Rows
from evalcore.stats import Array, Floats, Labels, Stats, build_column

Work = Callable[[], object]


def close(name: str, rows: Rows, n: int, clusters: np.ndarray | None = None) -> Work:
    column = build_column(range(n), rows)
    return lambda: aggregate_metric(AGGREGATIONS[name], column, clusters=clusters)


def draw_scores(n: int) -> Floats:
    return Floats(Array(np.random.default_rng(0).random(n)))


def draw_losses(n: int) -> Floats:
    return Floats(Array(-np.random.default_rng(0).exponential(1, n)))


def draw_classes(n: int, k: int) -> Labels:
    return Labels(Array(np.random.default_rng(0).integers(k, size=(n, 2))))


def draw_confidences(n: int) -> Stats:
    rng = np.random.default_rng(0)
    said = rng.random(n)
    return Stats(Array(np.column_stack([said, rng.random(n) < said])))


def draw_lengths(n: int) -> Stats:
    rng = np.random.default_rng(0)
    return Stats(Array(np.column_stack([-20 * rng.exponential(1, n), np.ceil(20 * rng.random(n) + 1)])))


def draw_counts(n: int) -> Stats:
    """n-gram counts of sentences of about 18 words, as BLEU sums them."""
    few = np.random.default_rng(0).integers(0, 3, (n, 10))
    return Stats(Array(np.array([18.0, 18, 12, 9, 7, 5, 18, 17, 16, 15]) - few))


def compare(n: int) -> Work:
    rng = np.random.default_rng(0)
    a, b = (close("mean", Floats(Array(rng.random(n))), n)() for _ in "ab")
    return lambda: compare_estimates(a, b)  # type: ignore[arg-type]


KINDS: dict[str, Callable[[int], Work]] = {
    "mean of 0/1": lambda n: close("mean", Floats(Array(np.round(draw_scores(n).values.floats))), n),
    "mean": lambda n: close("mean", draw_scores(n), n),
    "mean, clusters of 5": lambda n: close("mean", draw_scores(n), n, np.arange(n) // 5),
    "mean, clusters of unequal size": lambda n: close("mean", draw_scores(n), n, np.sqrt(np.arange(n)).astype(int)),
    "median": lambda n: close("median", draw_losses(n), n),
    "perplexity": lambda n: close("perplexity", draw_losses(n), n),
    "weighted_perplexity": lambda n: close("weighted_perplexity", draw_lengths(n), n),
    "f1": lambda n: close("f1", draw_classes(n, 2), n),
    "matthews_corrcoef": lambda n: close("matthews_corrcoef", draw_classes(n, 4), n),
    "ece": lambda n: close("ece", draw_confidences(n), n),
    "bleu, counted before": lambda n: close("bleu", draw_counts(n), n),
    "two means compared": compare,
}
"""What is closed: from a number of documents to the work that is measured."""


def measure_rows(*, least: int = 1_000, most: int = 1_000_000, rounds: int = 3) -> Iterator[Row]:
    sizes = list_sizes(least, most)
    for what, prepare in KINDS.items():
        costs = [best_seconds(prepare(n), rounds) for n in sizes]
        told = ", ".join(f"{cost / n * 1e6:.2f}" for n, cost in zip(sizes, costs, strict=True))
        yield Row(
            what=what,
            ours=costs[-1] / sizes[-1] * 1e6,
            unit="µs a document",
            exponent=fit_exponent(sizes, costs) if len(sizes) > 1 else None,
            targets=(at_most(1.15, "exponent"),) if len(sizes) > 1 else (),  # larger arrays leave the caches
            note=f"by size: {told}",
        )
