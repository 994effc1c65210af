"""The table of aggregations: each closes a column into a value and the influence of each document."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import inf, nan

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.aggregate.classes import f1, matthews
from evalcore.core.aggregate.corpus import acc_all, bleu, chrf, corpus, ter
from evalcore.core.aggregate.ratios import (
    bits_per_byte,
    brier,
    ece,
    mean,
    median,
    nanmean,
    perplexity,
    weighted_perplexity,
)
from evalcore.core.aggregate.stderr import from_bootstrap, from_influence, from_median
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.column import Rows, as_objects
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, ErrorRule, Summary
from evalcore.core.records.request import Options
from evalcore.core.stats.intervals import IDENTITY, JACCARD, LOG, Link

__all__ = ["AGGREGATIONS", "from_callable"]


def _bypass(rows: Rows, options: Options) -> Summary:
    """No number at all.

    >>> from evalcore.core.records.estimate import value_of
    >>> value_of(_bypass, [1.0, 0.0])
    nan
    """
    empty = np.zeros((0, 1))
    return Summary(empty, lambda index: np.zeros(len(index)), np.zeros(0, np.int64))


def from_callable(function: Callable[..., object]) -> Aggregation:
    """Any function of the list of scores; its error comes from a seeded bootstrap.

    >>> from evalcore.core.records.estimate import value_of
    >>> from_callable(max).name, value_of(from_callable(max).summarise, [0.2, 0.9])
    ('max', 0.9)
    """
    name = getattr(function, "__name__", "callable")

    def summarise(rows: Rows, options: Options) -> Summary:
        items = deepcopy(list(as_objects(rows)))

        def resampled(index: Ints64) -> Floats64:
            return np.array([_value(function, [items[i] for i in row], name, items) for row in index.tolist()])

        return Summary(np.zeros((len(items), 1)), resampled, np.arange(len(items)))

    return Aggregation(name=name, summarise=summarise, error=from_bootstrap, bounds=(-inf, inf))


def _value(function: Callable[..., object], drawn: list[object], name: str, items: list[object]) -> float:
    """The value on a resample; one that it is not defined on is dropped, but not the sample itself."""
    try:
        return _number(_called(function, drawn, name), name)
    except EvalError:
        if drawn == items:
            raise
        return nan


def _called(function: Callable[..., object], items: list[object], name: str) -> object:
    try:
        return function(items)
    except Exception as raised:
        raise EvalError(f"aggregation {name!r} raised {type(raised).__name__}: {raised}") from raised


def _number(value: object, name: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as wrong:
        raise EvalError(f"expected aggregation {name!r} to return a number, got {value!r}") from wrong


def _count(sums: Floats64) -> float:
    return float(sums[-1])


def _agg(
    name: str,
    summarise: Callable[[Rows, Options], Summary],
    bounds: tuple[float, float] = (0.0, 1.0),
    *,
    error: ErrorRule = from_influence,
    link: Link = IDENTITY,
    average: bool = False,
    even: bool = False,
    library: str | None = None,
) -> Aggregation:
    average = average or even
    return Aggregation(
        name=name,
        summarise=summarise,
        error=error,
        bounds=bounds,
        link=link,
        average=average,
        even=even,
        size=_count if average else None,
        library=library,
    )


AGGREGATIONS: PMap[str, Aggregation] = pmap(
    {
        "mean": _agg("mean", mean, even=True),
        "nanmean": _agg("nanmean", nanmean, even=True),
        "median": _agg("median", median, (-inf, inf), error=from_median),
        "perplexity": _agg("perplexity", perplexity, (1.0, inf), link=LOG, average=True),
        "weighted_perplexity": _agg("weighted_perplexity", weighted_perplexity, (1.0, inf), link=LOG, average=True),
        "bits_per_byte": _agg("bits_per_byte", bits_per_byte, (0.0, inf), average=True),
        "f1": _agg("f1", f1, link=JACCARD),
        "matthews_corrcoef": _agg("matthews_corrcoef", matthews, (-1.0, 1.0)),
        "bleu": _agg("bleu", corpus("bleu", bleu), (0.0, 100.0), library="sacrebleu"),
        "chrf": _agg("chrf", corpus("chrf", chrf), (0.0, 100.0), library="sacrebleu"),
        "chrf++": _agg("chrf++", corpus("chrf++", chrf), (0.0, 100.0), library="sacrebleu"),
        "ter": _agg("ter", corpus("ter", ter), (-inf, inf), library="sacrebleu"),
        "brier_score": _agg("brier_score", brier, (0.0, 2.0), even=True),
        "acc_all": _agg("acc_all", acc_all, average=True),
        "ece": _agg("ece", ece),
        "bypass": _agg("bypass", _bypass, (-inf, inf)),
    }
)
