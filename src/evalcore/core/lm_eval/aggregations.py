"""lm-eval's aggregations and errors (E01, E02, E03, E17, E18, E24), its resamples replayed draw by draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregations.corpora import answered
from evalcore.core.aggregations.ratios import ratio
from evalcore.core.aggregations.rows import numbers, two_of
from evalcore.core.arrays import Floats64, Ints64
from evalcore.core.columns import Rows, as_objects
from evalcore.core.estimate import Aggregation, Error, ErrorRule, Resampling, Summary, smooth
from evalcore.core.records import (
    Options,
)

__all__ = ["as_lm_eval", "from_callable_without_error", "left_fold"]

LM_DRAWS = 100_000
LM_CORPUS_DRAWS = 100


def left_fold(stats: Floats64) -> Floats64:
    """Sums in order of arrival, as Python's own sum before 3.12.

    >>> left_fold(np.array([[1e16], [1.0], [-1e16]])).tolist()
    [0.0]
    """
    return np.asarray(np.cumsum(stats, axis=0)[-1], np.float64)


def mean_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """Sample sd / sqrt(n), every sum a left fold."""
    return _sample_error(summary.stats[:, 0])


def _sample_error(values: Floats64) -> Error:
    n = len(values)
    if n < 2:
        return Error(None, "N/A")
    squares = (values - np.cumsum(values)[-1] / n) ** 2
    return Error(float(sqrt(np.cumsum(squares)[-1] / (n - 1)) / sqrt(n)), "lm-eval")


def acc_all_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """E03: questions of different paragraphs that share a number are one question."""
    right: dict[object, bool] = {}
    for hit, key in map(answered, two_of(rows, "(correct, question)")):
        question = key[-1] if isinstance(key, tuple) else key
        right[question] = right.get(question, True) and hit
    return _sample_error(np.array([float(hit) for hit in right.values()]))


def no_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """lm-eval has no formula."""
    return Error(None, "N/A")


def replay(most: int = LM_DRAWS) -> ErrorRule:
    """lm-eval's own resamples, draw by draw, on sufficient statistics (E17: whole thousands; E18: uncorrected)."""
    return partial(_replayed, most)


def _replayed(most: int, rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """The spread of the replicates that lm-eval would draw."""
    n = len(summary.stats)
    if n < 2:
        return Error(None, "N/A")
    asked = min(resampling.draws or LM_DRAWS, most)
    chunk = min(1000, asked)
    if asked < 2:
        return Error(None, "needs two draws, got 1")
    drawn = np.concatenate([_replicates(summary, seed, chunk, n) for seed in range(asked // chunk)])
    return Error(float(np.std(drawn, ddof=1)), f"lm-eval-bootstrap(draws={len(drawn)})")


def _replicates(summary: Summary, seed: int, chunk: int, n: int) -> Floats64:
    # A list, not a number: numpy's Mersenne Twister then starts where Python's random.Random(seed) does.
    stream = np.random.RandomState([seed])
    block = max(1, min(chunk, 4_000_000 // n))
    sizes = [min(block, chunk - start) for start in range(0, chunk, block)]
    return np.concatenate([summary.resampled(_indices(stream, size, n)) for size in sizes])


def _indices(stream: np.random.RandomState, size: int, n: int) -> Ints64:
    return np.floor(stream.random_sample((size, n)) * n).astype(np.int64)


def nanmean(rows: Rows, options: Options) -> Summary:
    """Rows that are NaN are drawn too, and count for nothing."""
    values = numbers(rows)
    known = ~np.isnan(values)
    return smooth(np.column_stack([np.where(known, values, 0.0), known.astype(np.float64)]), ratio)


def upper_median(rows: Rows, options: Options) -> Summary:
    """E01: the upper middle of an even number of scores."""
    values = numbers(rows)
    middle = len(values) // 2
    return Summary(
        values[:, None],
        lambda index: np.partition(values[index], middle, axis=1)[:, middle],
        np.arange(len(values)),
    )


def bypass(rows: Rows, options: Options) -> Summary:
    """E02: 999."""
    count = len(as_objects(rows))
    return smooth(np.ones((count, 1)), lambda sums: np.real(sums[..., 0]) * 0 + 999.0)


def from_callable_without_error(function: Callable[..., object]) -> Aggregation:
    """E24: lm-eval has no error for a callable."""
    return replace(from_callable(function), error=no_error)


def as_lm_eval(name: str) -> Aggregation:
    changed: Mapping[str, Mapping[str, object]] = {
        "mean": {"error": mean_error},
        "acc_all": {"error": acc_all_error},
        "median": {"summarise": upper_median, "error": replay()},
        "bypass": {"summarise": bypass, "error": no_error},
        **{corpus: {"error": replay(LM_CORPUS_DRAWS)} for corpus in ("bleu", "chrf", "chrf++", "ter")},
        "nanmean": {"summarise": nanmean, "error": replay()},
        **{other: {"error": replay()} for other in ("perplexity", "f1", "matthews_corrcoef")},
    }
    return replace(AGGREGATIONS[name], **{"total": left_fold, "error": no_error, **changed.get(name, {})})
