"""The table of aggregations: each closes a column into a value and the influence of each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from math import inf, nan
from typing import Literal

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.aggregate.classes import bracket_f1, bracket_mcc, f1, matthews, read_labels
from evalcore.core.aggregate.corpus import acc_all, bleu, bracket_ter, chrf, corpus, read_texts, ter
from evalcore.core.aggregate.numbers import read_chances, read_counts
from evalcore.core.aggregate.ratios import (
    bits_per_byte,
    bracket_ece,
    brier,
    ece,
    mean,
    median,
    nanmean,
    perplexity,
    weighted_perplexity,
)
from evalcore.core.aggregate.stderr import from_bootstrap, from_influence, from_median
from evalcore.core.records.array import Floats64, Ints64, Sums
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, ErrorRule, IntervalRule, Summary
from evalcore.core.records.request import Options
from evalcore.core.records.row import Rows, as_objects
from evalcore.core.stats.links import IDENTITY, JACCARD, LOG, Link
from evalcore.core.stats.skewness import FEW


def _bypass(rows: Rows, options: Options) -> Summary:
    """Give no number at all.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(_bypass, [1.0, 0.0])
    nan
    """
    empty = np.zeros((0, 1))
    return Summary(empty, lambda index: np.zeros(len(index)), np.zeros(0, np.int64))


def from_callable(function: Callable[..., object]) -> Aggregation:
    """Build an aggregation from any function of the list of scores; its error comes from a seeded bootstrap.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> from_callable(max).name, value_of(from_callable(max).summarise, [0.2, 0.9])
    ('max', 0.9)
    """
    name = getattr(function, "__name__", "callable")

    def summarise(rows: Rows, options: Options) -> Summary:
        items = deepcopy(list(as_objects(rows)))

        def resampled(index: Ints64) -> Floats64:
            return np.array([_evaluate(function, [items[i] for i in row], name, items) for row in index.tolist()])

        return Summary(np.zeros((len(items), 1)), resampled, np.arange(len(items)))

    return Aggregation(name=name, summarise=summarise, error=from_bootstrap, bounds=(-inf, inf))


def _evaluate(function: Callable[..., object], drawn: list[object], name: str, items: list[object]) -> float:
    """Evaluate a resample; one without a value is dropped, but not the sample itself."""
    try:
        return _read_number(_call_function(function, drawn, name), name)
    except EvalError:
        if drawn == items:
            raise
        return nan


def _call_function(function: Callable[..., object], items: list[object], name: str) -> object:
    try:
        return function(items)
    except Exception as raised:
        raise EvalError(f"aggregation {name!r} raised {type(raised).__name__}: {raised}") from raised


def _read_number(value: object, name: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError) as wrong:
        raise EvalError(f"expected aggregation {name!r} to return a number, got {value!r}") from wrong


def _read_count(sums: Floats64) -> float:
    return float(sums[-1])


def _build(
    name: str,
    summarise: Callable[[Rows, Options], Summary],
    bounds: tuple[float, float] = (0.0, 1.0),
    *,
    error: ErrorRule = from_influence,
    link: Link = IDENTITY,
    average: bool = False,
    even: bool = False,
    library: str | None = None,
    read: Callable[[Sequence[object], Options], Rows] | None = None,
    measures: bool = True,
    interval: IntervalRule | None = None,
    least: int = 0,
    rests_on: Literal["sums", "weighted", "rows", "documents"] = "sums",
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
        size=_read_count if average else None,
        library=library,
        read=read,
        measures=measures,
        interval=interval,
        least=least,
        rests_on=rests_on,
    )


def _build_corpus(
    kind: str,
    finalise: Callable[[Sums, Options], Sums],
    bounds: tuple[float, float] = (0.0, 100.0),
    weight: int | None = None,
    interval: IntervalRule | None = None,
) -> Aggregation:
    return _build(
        kind,
        corpus(kind, finalise, weight),
        bounds,
        library="sacrebleu",
        read=read_texts(kind),
        interval=interval,
        least=FEW,
        rests_on="sums" if weight is None else "weighted",
    )


AGGREGATIONS: PMap[str, Aggregation] = pmap(
    {
        "mean": _build("mean", mean, even=True),
        "nanmean": _build("nanmean", nanmean, even=True),
        "median": _build("median", median, (-inf, inf), error=from_median, rests_on="rows"),
        "perplexity": _build("perplexity", perplexity, (1.0, inf), link=LOG, average=True),
        "weighted_perplexity": _build(
            "weighted_perplexity",
            weighted_perplexity,
            (1.0, inf),
            link=LOG,
            average=True,
            read=read_counts,
            rests_on="weighted",
        ),
        "bits_per_byte": _build(
            "bits_per_byte", bits_per_byte, (0.0, inf), average=True, read=read_counts, rests_on="weighted"
        ),
        "f1": _build("f1", f1, link=JACCARD, read=read_labels, interval=bracket_f1, rests_on="rows"),
        "matthews_corrcoef": _build(
            "matthews_corrcoef", matthews, (-1.0, 1.0), read=read_labels, interval=bracket_mcc, rests_on="rows"
        ),
        "bleu": _build_corpus("bleu", bleu),
        "chrf": _build_corpus("chrf", chrf),
        "chrf++": _build_corpus("chrf++", chrf),
        "ter": _build_corpus("ter", ter, (0.0, inf), weight=1, interval=bracket_ter),
        "brier_score": _build("brier_score", brier, (0.0, 2.0), even=True, read=read_chances),
        "acc_all": _build("acc_all", acc_all, average=True, rests_on="documents"),
        "ece": _build("ece", ece, read=read_counts, interval=bracket_ece, rests_on="documents"),
        "bypass": _build("bypass", _bypass, (-inf, inf), measures=False, rests_on="rows"),
    }
)
