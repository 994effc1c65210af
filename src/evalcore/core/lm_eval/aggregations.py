"""lm-eval's aggregations and errors (E01 to E03, E17, E18, E24, E46, E47), its resamples replayed draw by draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import exp, inf, log, sqrt

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregate.corpus import read_answer
from evalcore.core.aggregate.numbers import numbers, two_of
from evalcore.core.aggregate.ratios import ratio
from evalcore.core.lm_eval.errata import count_references
from evalcore.core.metrics.corpus import CORPUS_KINDS
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, Error, Resampling, Summary, smooth
from evalcore.core.records.lean.blend import Table
from evalcore.core.records.request import NO_OPTIONS, Options
from evalcore.core.records.row import Objects, Rows, as_objects

LM_DRAWS = 100_000
LM_CORPUS_DRAWS = 100
BLOCK = 1 << 15
"""Documents drawn at a time, so that a resample stays in the processor's cache."""
LARGEST = log(np.finfo(np.float64).max)
LM_FUNCTIONS = {"f1_score": "f1", "chrfpp": "chrf++", "bypass_agg": "bypass"}
"""Functions of lm-eval that are not called as the aggregation they are registered as."""


def left_fold(stats: Floats64 | Table) -> Floats64:
    """Sum in order of arrival, as Python's own sum before 3.12.

    >>> left_fold(np.array([[1e16], [1.0], [-1e16]])).tolist()
    [0.0]
    """
    return np.asarray(np.cumsum(np.asarray(stats), axis=0)[-1], np.float64)


def mean_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """Sample sd / sqrt(n), every sum a left fold."""
    return _find_mean_error(summary.stats[:, 0])


def _find_mean_error(values: Floats64) -> Error:
    return Error(_find_deviation(values) / sqrt(len(values)), "lm-eval") if len(values) > 1 else Error(None, "N/A")


def _find_deviation(values: Floats64) -> float:
    """The sample sd, every sum a left fold; of equal values, the same rounding error as in lm-eval."""
    centred = values - np.cumsum(values)[-1] / len(values)
    return sqrt(np.cumsum(centred**2)[-1] / (len(values) - 1))


def acc_all_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """E03: questions of different paragraphs that share a number are one question."""
    right: dict[object, bool] = {}
    for hit, key in map(read_answer, two_of(rows, "(correct, question)")):
        question = key[-1] if isinstance(key, tuple) else key
        right[question] = right.get(question, True) and hit
    return _find_mean_error(np.array([float(hit) for hit in right.values()]))


def no_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """lm-eval has no formula."""
    return Error(None, "N/A")


def resampling_of(metric: str, asked: Resampling) -> Resampling:
    """At most 100 resamples for a metric that is called like a corpus metric, whatever its aggregation.

    >>> resampling_of("bleu", Resampling(1000)).draws, resampling_of("my_bleu", Resampling(1000)).draws
    (100, 1000)
    """
    draws = LM_DRAWS if asked.draws is None else asked.draws
    return replace(asked, draws=min(draws, LM_CORPUS_DRAWS)) if metric in CORPUS_KINDS else asked


def replay(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    """Replay lm-eval's resamples, draw by draw, on sufficient statistics (E17: whole thousands; E18: uncorrected)."""
    n = len(summary.stats)
    if n < 2:
        return Error(None, "N/A")
    asked = resampling.draws or LM_DRAWS
    chunk = min(1000, asked)
    if asked < 2:
        return Error(None, "needs two draws, got 1")
    drawn = np.concatenate([_draw_replicates(summary, seed, chunk, n) for seed in range(asked // chunk)])
    if not np.isfinite(drawn).all():
        return Error(None, "a resample has no value")
    return Error(_find_deviation(drawn), f"lm-eval-bootstrap(draws={len(drawn)})")


def _draw_replicates(summary: Summary, seed: int, chunk: int, n: int) -> Floats64:
    # A list, not a number: numpy's Mersenne Twister then starts where Python's random.Random(seed) does.
    stream = np.random.RandomState([seed])
    block = max(1, BLOCK // n)
    sizes = [min(block, chunk - start) for start in range(0, chunk, block)]
    with np.errstate(invalid="ignore"):
        return np.concatenate([summary.resampled(_draw_indices(stream, size, n)) for size in sizes])


def _draw_indices(stream: np.random.RandomState, size: int, n: int) -> Ints64:
    """Draw the documents that ``random.choices`` would draw: floor(u · n) for each uniform number."""
    drawn = stream.random_sample((size, n))
    drawn *= n
    return drawn.astype(np.int64)


def by_cell(summarise: Callable[[Rows, Options], Summary], rows: Rows, options: Options) -> Summary:
    """Compute the same value from how often each cell of a table, a distinct row of counts, is drawn."""
    summary = summarise(rows, options)
    cells, codes = np.unique(summary.stats, axis=0, return_inverse=True)
    codes, k, finalise = codes.ravel(), len(cells), summary.finalise
    if finalise is None:
        return summary

    def resampled(index: Ints64) -> Floats64:
        drawn = codes.take(index)
        drawn += np.arange(0, k * len(index), k)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=k * len(index)).reshape(-1, k)
        return np.asarray(finalise(counts @ cells), np.float64)

    return replace(summary, resampled=resampled)


def perplexity(rows: Rows, options: Options) -> Summary:
    """exp(−mean) with every sum a left fold."""
    values = numbers(rows)

    def resampled(index: Ints64) -> Floats64:
        # numpy adds the rows of a matrix one after another, but the numbers within a row in pairs.
        means = values.take(np.ascontiguousarray(index.T)).sum(axis=0) / index.shape[1]
        return np.array([exp(-one) if -one < LARGEST else inf for one in means.tolist()])

    return replace(AGGREGATIONS["perplexity"].summarise(rows, options), resampled=resampled)


def nanmean(rows: Rows, options: Options) -> Summary:
    """Rows that are NaN are drawn too, but do not count."""
    values = numbers(rows)
    known = (~np.isnan(values)).astype(np.float64)
    filled = np.nan_to_num(values, nan=0.0, posinf=inf, neginf=-inf)

    def resampled(index: Ints64) -> Floats64:
        return np.asarray(filled.take(index).sum(axis=1) / known.take(index).sum(axis=1), np.float64)

    return replace(smooth(np.column_stack([filled, known]), ratio), resampled=resampled)


def upper_median(rows: Rows, options: Options) -> Summary:
    """E01: the upper middle of an even number of scores."""
    values = numbers(rows)
    ordered = np.sort(values)
    ranks = np.searchsorted(ordered, values).astype(np.min_scalar_type(len(values)))

    def resampled(index: Ints64) -> Floats64:
        middle = index.shape[1] // 2
        if np.isnan(values).any():  # where a sort puts NaN depends on the order of the values
            return np.array([sorted(row)[middle] for row in values[index].tolist()])
        return np.asarray(ordered[np.partition(ranks[index], middle, axis=1)[:, middle]], np.float64)

    return Summary(values[:, None], resampled, np.arange(len(values)))


def bypass(rows: Rows, options: Options) -> Summary:
    """E02: 999."""
    count = len(as_objects(rows))
    return smooth(np.ones((count, 1)), lambda sums: np.real(sums[..., 0]) * 0 + 999.0)


def without_options(summarise: Callable[[Rows, Options], Summary], rows: Rows, options: Options) -> Summary:
    """E46: the options of a metric never reach its aggregation."""
    try:
        return summarise(rows, NO_OPTIONS)
    except EvalError as wrong:
        raise EvalError(f"{wrong} (lm-eval ignores {', '.join(options)}: E46)") if options else wrong from wrong


def zipped(kind: str, rows: Rows, options: Options) -> Summary:
    """E47: references cut to the fewest of any document, in each resample to the fewest of those drawn.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> said = [(["a b", "a c"], "a c"), (["a b"], "a b")]
    >>> [value_of(one, said) for one in (partial(zipped, "ter"), AGGREGATIONS["ter"].summarise)]
    [25.0, 0.0]
    """
    summarise = AGGREGATIONS[kind].summarise
    counts = count_references(rows)
    if len(set(counts)) < 2:
        return summarise(rows, NO_OPTIONS)
    pairs = two_of(rows, "(reference, prediction)")
    cuts = {k: summarise(Objects(tuple((refs[:k], said) for refs, said in pairs)), NO_OPTIONS) for k in set(counts)}  # type: ignore[index]

    def resampled(index: Ints64) -> Floats64:
        least, out = np.array(counts)[index].min(axis=1), np.zeros(len(index))
        for k, summary in cuts.items():
            out[least == k] = summary.resampled(index[least == k])
        return out

    return replace(cuts[min(counts)], resampled=resampled)


def from_callable_without_error(function: Callable[..., object]) -> Aggregation:
    """E24: lm-eval has no error for a callable, unless it is a function of its own."""
    called = getattr(function, "__name__", "")
    name = LM_FUNCTIONS.get(called, called)
    if getattr(function, "__module__", "") == "lm_eval.api.metrics" and name in AGGREGATIONS:
        return as_lm_eval(name)
    return replace(from_callable(function), error=no_error)


def as_lm_eval(name: str) -> Aggregation:
    changed: Mapping[str, Mapping[str, object]] = {
        "mean": {"error": mean_error},
        "acc_all": {"error": acc_all_error},
        "median": {"summarise": upper_median, "error": replay},
        "bypass": {"summarise": bypass, "error": no_error},
        **{kind: {"summarise": partial(zipped, kind), "error": replay} for kind in CORPUS_KINDS},
        "nanmean": {"summarise": nanmean, "error": replay},
        "perplexity": {"summarise": perplexity, "error": replay},
        **{
            table: {
                "summarise": partial(without_options, partial(by_cell, AGGREGATIONS[table].summarise)),
                "error": replay,
            }
            for table in ("f1", "matthews_corrcoef")
        },
    }
    own = {"total": left_fold, "error": no_error, "rests_on": "documents"}  # a left fold has an order
    return replace(AGGREGATIONS[name], **{**own, **changed.get(name, {})})
