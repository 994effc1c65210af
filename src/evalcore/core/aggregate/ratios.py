"""Means, ratios and functions of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from evalcore.core.aggregate.numbers import is_pair, numbers, one_hot, pairs, read_objects, two_of
from evalcore.core.records.array import Floats64, frozen
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Summary, Sums, smooth
from evalcore.core.records.request import Options
from evalcore.core.records.row import Objects, Rows, Stats


def ratio(sums: Sums) -> Sums:
    """Σa / Σb."""
    return sums[..., 0] / sums[..., 1]


def mean(rows: Rows, options: Options) -> Summary:
    """The average score.

    >>> from evalcore.core.records.estimate import value_of
    >>> value_of(mean, [True, 0, 0.5, 0.5])
    0.5
    """
    values = numbers(rows)
    return smooth(np.column_stack([values, np.ones(len(values))]), ratio)


def nanmean(rows: Rows, options: Options) -> Summary:
    """The average of the scores that are numbers; the others do not count.

    >>> from evalcore.core.records.estimate import value_of
    >>> value_of(nanmean, [1.0, float("nan"), 0.0])
    0.5
    """
    values = numbers(rows)
    kept = np.flatnonzero(~np.isnan(values))
    return smooth(np.column_stack([values[kept], np.ones(len(kept))]), ratio, kept)


def perplexity(rows: Rows, options: Options) -> Summary:
    """exp(−mean log-likelihood): the geometric mean of 1 / likelihood.

    >>> from evalcore.core.records.estimate import value_of
    >>> round(value_of(perplexity, [log(1 / 2), log(1 / 8)]), 12)
    4.0
    """
    values = numbers(rows)
    return smooth(np.column_stack([values, np.ones(len(values))]), lambda sums: np.exp(-ratio(sums)))


def weighted_perplexity(rows: Rows, options: Options) -> Summary:
    """exp(−Σ log-likelihood / Σ length): long texts count more than short ones.

    >>> from evalcore.core.records.estimate import value_of
    >>> round(value_of(weighted_perplexity, [(3 * log(1 / 2), 3), (log(1 / 32), 1)]), 12)
    4.0
    """
    scores = pairs(rows, "(log-likelihood, length)")
    return smooth(scores, lambda sums: np.exp(-ratio(sums)), weights=scores[:, 1])


def bits_per_byte(rows: Rows, options: Options) -> Summary:
    """−Σ log-likelihood / Σ bytes, in bits.

    >>> from evalcore.core.records.estimate import value_of
    >>> value_of(bits_per_byte, [(-log(2), 1), (-log(2), 3)])
    0.5
    """
    scores = pairs(rows, "(log-likelihood, bytes)")
    return smooth(scores, lambda sums: -ratio(sums) / log(2), weights=scores[:, 1])


def median(rows: Rows, options: Options) -> Summary:
    """The middle score, or the mean of the two middle ones.

    >>> from evalcore.core.records.estimate import value_of
    >>> value_of(median, [1.0, 2.0, 3.0, 10.0])
    2.5
    """
    values = numbers(rows)
    return Summary(values[:, None], lambda index: np.median(values[index], axis=1), np.arange(len(values)))


def brier(rows: Rows, options: Options) -> Summary:
    """The mean squared distance of probabilities from the truth; also takes lm-eval's (gold, probabilities).

    >>> from evalcore.core.records.estimate import value_of
    >>> value_of(brier, [(0, [1.0, 0.0]), (1, [0.5, 0.5])])
    0.25
    """
    if isinstance(rows, Objects):
        values = [
            _score_brier(gold, np.asarray(probs, np.float64)) for gold, probs in two_of(rows, "(gold, probabilities)")
        ]
        return smooth(np.column_stack([values, np.ones(len(values))]), ratio)
    return mean(rows, options)


def _score_brier(gold: object, probabilities: Floats64) -> float:
    if not isinstance(gold, int | np.integer) or not 0 <= gold < len(probabilities):
        raise EvalError(f"expected a choice index below {len(probabilities)}, got {gold!r}")
    return float(np.sum((probabilities - np.eye(len(probabilities))[gold]) ** 2))


def ece(rows: Rows, options: Options) -> Summary:
    """Expected calibration error over equal-width bins of confidence (``bins``, 10 by default).

    >>> from evalcore.core.records.estimate import value_of
    >>> sure = [(0.9, 1), (0.9, 0), (0.6, 1)]      # off by 0.4 in one bin, by 0.4 the other way in another
    >>> round(value_of(ece, sure), 12), round(value_of(ece, sure, bins=1), 12)
    (0.4, 0.133333333333)
    """
    bins = int(str(options.get("bins", 10)))
    if bins < 1:
        raise EvalError(f"expected bins to be an integer of at least 1, got {bins}")
    scores = pairs(rows, "(confidence, correct)")
    at = np.clip(np.nan_to_num(scores[:, 0]) * bins, 0, bins - 1).astype(np.int64)
    place = one_hot(at, bins)
    stats = np.hstack([place * (scores[:, 1] - scores[:, 0])[:, None], np.ones((len(scores), 1))])

    def finalise(sums: Sums) -> Sums:
        gaps = sums[..., :bins]
        apart: Sums = np.where(np.real(gaps) < 0, -gaps, gaps)
        total: Sums = apart.sum(axis=-1)
        return total / sums[..., bins]

    return smooth(stats, finalise)


def read_counts(values: Sequence[object], given: Options) -> Rows:
    """Read numbers that add up, equally many for every document.

    >>> read_counts([[1, 2], [3, 4]], {}).values.data.tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    return Stats(frozen(found)) if found.ndim == 2 else read_objects(values, given)


def read_chances(values: Sequence[object], given: Options) -> Rows:
    """Read (gold, probabilities), which lm-eval writes as numpy prints them.

    >>> read_chances([[1, "[0.25 0.75]"], (0, [0.5, 0.5])], {})
    Objects(values=((1, (0.25, 0.75)), (0, (0.5, 0.5))))
    """
    return read_objects([(one[0], _parse_floats(one[1])) if is_pair(one) else one for one in values], given)


def _parse_floats(text: object) -> object:
    try:
        return tuple(map(float, text.strip("[]").split())) if isinstance(text, str) else text
    except ValueError as wrong:
        raise EvalError(f"expected probabilities, got {str(text)[:60]!r}") from wrong
