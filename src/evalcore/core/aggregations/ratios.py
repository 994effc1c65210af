"""Means, ratios and what is made of them."""

from __future__ import annotations

from math import log

import numpy as np

from evalcore.core.aggregations.rows import numbers, one_hot, pairs, two_of
from evalcore.core.arrays import Floats64
from evalcore.core.columns import Objects, Rows
from evalcore.core.errors import EvalError
from evalcore.core.estimate import Summary, Sums, smooth
from evalcore.core.records import Options

__all__ = ["bits_per_byte", "brier", "ece", "mean", "median", "nanmean", "perplexity", "ratio", "weighted_perplexity"]


def ratio(sums: Sums) -> Sums:
    """Σa / Σb."""
    return sums[..., 0] / sums[..., 1]


def mean(rows: Rows, options: Options) -> Summary:
    values = numbers(rows)
    return smooth(np.column_stack([values, np.ones(len(values))]), ratio)


def nanmean(rows: Rows, options: Options) -> Summary:
    values = numbers(rows)
    kept = np.flatnonzero(~np.isnan(values))
    return smooth(np.column_stack([values[kept], np.ones(len(kept))]), ratio, kept)


def perplexity(rows: Rows, options: Options) -> Summary:
    values = numbers(rows)
    return smooth(np.column_stack([values, np.ones(len(values))]), lambda sums: np.exp(-ratio(sums)))


def weighted_perplexity(rows: Rows, options: Options) -> Summary:
    return smooth(pairs(rows, "(log-likelihood, length)"), lambda sums: np.exp(-ratio(sums)))


def bits_per_byte(rows: Rows, options: Options) -> Summary:
    return smooth(pairs(rows, "(log-likelihood, bytes)"), lambda sums: -ratio(sums) / log(2))


def median(rows: Rows, options: Options) -> Summary:
    values = numbers(rows)
    return Summary(values[:, None], lambda index: np.median(values[index], axis=1), np.arange(len(values)))


def brier(rows: Rows, options: Options) -> Summary:
    if isinstance(rows, Objects):
        values = [
            _brier_of(gold, np.asarray(probs, np.float64)) for gold, probs in two_of(rows, "(gold, probabilities)")
        ]
        return smooth(np.column_stack([values, np.ones(len(values))]), ratio)
    return mean(rows, options)


def _brier_of(gold: object, probabilities: Floats64) -> float:
    if not isinstance(gold, int | np.integer) or not 0 <= gold < len(probabilities):
        raise EvalError(f"expected a choice index below {len(probabilities)}, got {gold!r}")
    return float(np.sum((probabilities - np.eye(len(probabilities))[gold]) ** 2))


def ece(rows: Rows, options: Options) -> Summary:
    """Expected calibration error over equal-width bins of confidence (``bins``, 10 by default)."""
    bins = int(str(options.get("bins", 10)))
    found = pairs(rows, "(confidence, correct)")
    at = np.clip((found[:, 0] * bins).astype(np.int64), 0, bins - 1)
    place = one_hot(at, bins)
    stats = np.hstack([place * (found[:, 1] - found[:, 0])[:, None], np.ones((len(found), 1))])

    def finalise(sums: Sums) -> Sums:
        gaps = sums[..., :bins]
        apart: Sums = np.where(np.real(gaps) < 0, -gaps, gaps)
        total: Sums = apart.sum(axis=-1)
        return total / sums[..., bins]

    return smooth(stats, finalise)
