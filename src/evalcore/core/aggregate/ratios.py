"""Means, ratios and functions of them; and the calibration error, with its own interval."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from msgspec import Struct

from evalcore.core.aggregate.numbers import list_numbers, numbers, one_hot, pairs, two_of
from evalcore.core.records.array import Floats64, Ints64, Sums
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Bracket, Evidence, Summary, smooth
from evalcore.core.records.lean.blend import count_scores
from evalcore.core.records.request import Options
from evalcore.core.records.row import Objects, Rows
from evalcore.core.stats.bootstrap import AT_ONCE
from evalcore.core.stats.quantiles import normal_quantile

CALIBRATION_DRAWS = 400
_SLACK = 1e-9


def ratio(sums: Sums) -> Sums:
    """Σa / Σb."""
    return sums[..., 0] / sums[..., 1]


def mean(rows: Rows, options: Options) -> Summary:
    """The average score.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(mean, [True, 0, 0.5, 0.5])
    0.5
    """
    return smooth(count_scores(list_numbers(rows)), ratio)


def nanmean(rows: Rows, options: Options) -> Summary:
    """The average of the scores that are numbers; the others do not count.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(nanmean, [1.0, float("nan"), 0.0])
    0.5
    """
    values = numbers(rows)
    kept = np.flatnonzero(~np.isnan(values))
    return smooth(np.column_stack([values[kept], np.ones(len(kept))]), ratio, kept)


def perplexity(rows: Rows, options: Options) -> Summary:
    """exp(−mean log-likelihood): the geometric mean of 1 / likelihood.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> round(value_of(perplexity, [log(1 / 2), log(1 / 8)]), 12)
    4.0
    """
    return smooth(count_scores(list_numbers(rows)), lambda sums: np.exp(-ratio(sums)))


def weighted_perplexity(rows: Rows, options: Options) -> Summary:
    """exp(−Σ log-likelihood / Σ length): long texts count more than short ones.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> round(value_of(weighted_perplexity, [(3 * log(1 / 2), 3), (log(1 / 32), 1)]), 12)
    4.0
    """
    scores = pairs(rows, "(log-likelihood, length)")
    return smooth(scores, lambda sums: np.exp(-ratio(sums)), weights=scores[:, 1])


def bits_per_byte(rows: Rows, options: Options) -> Summary:
    """−Σ log-likelihood / Σ bytes, in bits.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(bits_per_byte, [(-log(2), 1), (-log(2), 3)])
    0.5
    """
    scores = pairs(rows, "(log-likelihood, bytes)")
    return smooth(scores, lambda sums: -ratio(sums) / log(2), weights=scores[:, 1])


def median(rows: Rows, options: Options) -> Summary:
    """The middle score, or the mean of the two middle ones.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(median, [1.0, 2.0, 3.0, 10.0])
    2.5
    """
    values = numbers(rows)
    units = np.arange(len(values))
    return Summary(values[:, None], lambda index: np.median(values[index], axis=1), units, middle=True)


def brier(rows: Rows, options: Options) -> Summary:
    """The mean squared distance of probabilities from the truth; also takes lm-eval's (gold, probabilities).

    >>> from evalcore.core.aggregate.numbers import value_of
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


# --- calibration -----------------------------------------------------------------------------------------------------


def ece(rows: Rows, options: Options) -> Summary:
    """Expected calibration error over equal-width bins of confidence (``bins``, 10 by default).

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> sure = [(0.9, 1), (0.9, 0), (0.6, 1)]      # off by 0.4 in one bin, by 0.4 the other way in another
    >>> round(value_of(ece, sure), 12), round(value_of(ece, sure, bins=1), 12)
    (0.4, 0.133333333333)
    """
    scores, bins = pairs(rows, "(confidence, correct)"), _read_bins(options)
    gaps = one_hot(_find_bins(scores, bins), bins) * (scores[:, 1] - scores[:, 0])[:, None]

    def finalise(sums: Sums) -> Sums:
        apart: Sums = np.where(np.real(sums[..., :bins]) < 0, -sums[..., :bins], sums[..., :bins])
        total: Sums = apart.sum(axis=-1)
        return total / sums[..., bins]

    return smooth(np.hstack([gaps, np.ones((len(scores), 1))]), finalise)


def _read_bins(options: Options) -> int:
    bins = int(str(options.get("bins", 10)))
    if bins < 1:
        raise EvalError(f"expected bins to be an integer of at least 1, got {bins}")
    return bins


def _find_bins(scores: Floats64, bins: int) -> Ints64:
    return np.minimum(np.clip(np.nan_to_num(scores[:, 0]), 0, 1) * bins, bins - 1).astype(np.int64)


def bracket_ece(evidence: Evidence, confidence: float) -> Bracket | None:
    """The interval of a calibration error, which reaches 0 for a calibrated model, and what such a model would get.

    Chance adds to each bin's gap, so that the value is too large, and an interval around it would be wrong. The lower
    end is 0 unless the value is beyond what calibrated models get (correctness drawn with the confidence as its
    chance); else it is the value less what random signs add to the gaps, each first shrunk by its error. The upper end
    is the value and the error of a mean gap. The documents of a cluster share their draws, as if they all agreed.
    """
    given, bins = pairs(evidence.rows, "(confidence, correct)"), _read_bins(evidence.options)
    if not ((given >= -_SLACK) & (given <= 1 + _SLACK)).all():  # a rounding error is no score beyond 0 and 1
        return None
    order, units = _order_rows(given, evidence.clusters)
    scores = given[order]
    places, gaps = _find_bins(scores, bins), scores[:, 1] - scores[:, 0]
    starts = np.flatnonzero(np.diff(units, prepend=-1))
    totals = np.add.reduceat(one_hot(places, bins) * gaps[:, None], starts) / len(scores)
    own, squares = totals.sum(axis=0), (totals * totals).sum(axis=0)
    shrunk = np.sign(own) * np.maximum(np.abs(own) - np.sqrt(squares), 0.0)
    signed, calibrated = _draw_gaps(scores[:, 0], gaps, places, units, bins, evidence.seed)
    added = np.abs(shrunk[:, None] + signed).sum(axis=0) - np.abs(shrunk).sum()
    by_chance = np.abs(calibrated).sum(axis=0)
    level, value = (1 + confidence) / 2, evidence.value
    low = value - float(np.quantile(added, level)) if value > float(np.quantile(by_chance, level)) else 0.0
    reach = normal_quantile(level) * sqrt(float((np.abs(totals).sum(axis=1) ** 2).sum()))
    return Bracket(
        ci=(min(max(low, 0.0), value), max(min(value + reach, 1.0), value)),
        method=f"calibration(draws={CALIBRATION_DRAWS},seed={evidence.seed})",
        reference=("a calibrated model", float(by_chance.mean())),
    )


class CalibrationBin(Struct, frozen=True):
    """Documents of like confidence: how many, the means of both, and between what a calibrated model's accuracy is."""

    count: int
    confidence: float
    accuracy: float
    low: float
    high: float


def bin_confidences(given: Floats64, bins: int, confidence: float, seed: int = 0) -> tuple[CalibrationBin, ...]:
    """Bin rows of (confidence, correct) as ``ece`` does; a calibrated model is in each bar at this ``confidence``.

    >>> [one] = bin_confidences(np.array([[0.75, 1.0], [0.75, 0.0]]), 2, 0.5)
    >>> one.count, one.confidence, one.accuracy, one.low, one.high
    (2, 0.75, 0.5, 0.5, 1.0)
    """
    order, units = _order_rows(given, None)
    scores = given[order]
    places = _find_bins(scores, bins)
    _, calibrated = _draw_gaps(scores[:, 0], scores[:, 1] - scores[:, 0], places, units, bins, seed)
    out = []
    for at in np.unique(places).tolist():
        here = scores[places == at]
        sure, right = (float(one) for one in here.mean(axis=0))
        drawn = sure + calibrated[at] * len(scores) / len(here)
        low, high = np.clip(np.quantile(drawn, ((1 - confidence) / 2, (1 + confidence) / 2)), 0, 1).tolist()
        out.append(CalibrationBin(len(here), sure, right, low, high))
    return tuple(out)


def _order_rows(scores: Floats64, clusters: Ints64 | None) -> tuple[Ints64, Ints64]:
    """Order rows by what they hold, so that neither ids nor their order decide who draws what; and number the units.

    >>> _order_rows(np.array([[0.9, 1.0], [0.5, 0.0], [0.7, 1.0]]), np.array([8, 4, 8]))[0].tolist()
    [1, 2, 0]
    """
    if clusters is None:
        return np.lexsort((scores[:, 1], scores[:, 0])), np.arange(len(scores))
    order = np.lexsort((scores[:, 1], scores[:, 0], clusters))
    parts = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    parts.sort(key=lambda part: (len(part), scores[part].tobytes()))
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _draw_gaps(
    confidences: Floats64, gaps: Floats64, places: Ints64, units: Ints64, bins: int, seed: int
) -> tuple[Floats64, Floats64]:
    """Draw the bins' gaps with random signs, and those of a calibrated model; a unit draws once for all its rows."""
    generator = np.random.Generator(np.random.PCG64(seed))
    signed, calibrated = np.zeros((2, bins, CALIBRATION_DRAWS))
    n, rows, drawn = len(units), AT_ONCE // CALIBRATION_DRAWS, np.zeros((0, CALIBRATION_DRAWS))
    for at in (slice(start, min(start + rows, n)) for start in range(0, n, rows)):
        begun = drawn[-1:] if at.start and units[at.start] == units[at.start - 1] else drawn[:0]
        within = units[at] - units[at.start]
        drawn = np.concatenate([begun, generator.random((int(within[-1]) + 1 - len(begun), CALIBRATION_DRAWS))])
        order = np.argsort(places[at], kind="stable")
        found, starts = np.unique(places[at][order], return_index=True)
        each, gap, chance = drawn[within[order]], gaps[at][order, None], confidences[at][order, None]
        # not a matrix product, whose threads cost more than they win
        signed[found] += np.add.reduceat(np.where(each < 0.5, -gap, gap), starts)
        calibrated[found] += np.add.reduceat((each < chance) - chance, starts)
    return signed / n, calibrated / n
