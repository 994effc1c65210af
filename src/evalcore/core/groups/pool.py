"""Pooling: all documents of a group's tasks as one task, with errors stratified by task."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import fsum

import numpy as np
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.aggregate import evaluate
from evalcore.core.arrays import Floats64, Ints64, frozen
from evalcore.core.columns import concat_rows, scored_part
from evalcore.core.estimate import Aggregation, Estimate, Part, Summary
from evalcore.core.groups import GroupMetric
from evalcore.core.groups.rules import GroupRule, Term, combined, macro, merged_terms
from evalcore.core.stats.intervals import clustered, satterthwaite

__all__ = ["pool"]

POOL_DRAWS = 1000


def pool(aggregations: PMap[str, Aggregation]) -> GroupRule:
    """All documents of all tasks as one task, with errors stratified by task.

    >>> two = [Term(name, 0.5, n, Estimate(value=v, stderr=0.1, size=n)) for name, v, n in (("a", 0, 3), ("b", 1, 1))]
    >>> pool({})(GroupMetric("acc"), two).value      # of means: whatever the weights, by size
    0.25
    """
    return partial(_pooled, aggregations)


def _pooled(aggregations: PMap[str, Aggregation], spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """One column of all tasks' rows, closed with errors stratified by task."""
    merged = merged_terms(terms)
    if len(merged) == 1:
        return replace(merged[0].estimate, signature="stratified", parts=(Part(merged[0].name, 1.0),))
    if all(term.estimate.average for term in merged):
        return macro(spec, by_size(merged))
    columns = [term.column for term in merged if term.column is not None]
    names = {term.estimate.aggregation for term in merged}
    if len(columns) < len(merged) or len(names) != 1 or next(iter(names)) not in aggregations:
        return Estimate(value=None, reason="pool needs every task's rows, under one and the same aggregation")
    aggregation = aggregations[next(iter(names))]
    rows = concat_rows([scored_part(column) for column in columns])
    strata = np.repeat(np.arange(len(columns), dtype=np.int64), [int(column.scored.sum()) for column in columns])
    summary = aggregation.summarise(rows, merged[0].estimate.options)
    value, influence, _ = evaluate(aggregation, summary)
    if value is None:
        return Estimate(value=None, reason=f"{aggregation.name} has no finite value on these documents")
    made = combined(spec, merged, value, [0.0] * len(merged))
    lacking = next((term for term in merged if term.estimate.stderr is None), None)
    if lacking is not None:
        reason = f"{lacking.name} has no standard error: {lacking.estimate.reason}"
        return replace(made, stderr=None, variance=None, df=None, reason=reason, lowest=None, highest=None)
    if influence is None:
        return _resampled(replace(made, parts=()), aggregation, summary, strata[summary.units])
    made = replace(made, parts=_parts([term.name for term in merged], influence, strata[summary.units]))
    clusters = [term.estimate.clusters for term in merged]
    if all(codes is not None for codes in clusters):
        codes = np.concatenate([code.ints for code in clusters if code is not None])
        return _clustered(made, aggregation, influence, codes)
    return _stratified(made, aggregation, influence, strata[summary.units])


def _parts(names: Sequence[str], influence: Floats64, strata: Ints64) -> tuple[Part, ...]:
    """What each task's documents have on the pooled value, on the scale of the task: their mean is the task's part."""
    found = [influence[strata == k] for k in range(len(names))]
    scaled = [(one - one.mean()) * (len(one) / len(influence)) for one in found]
    return tuple(Part(name, 1.0, frozen(one)) for name, one in zip(names, scaled, strict=True))


def by_size(terms: Sequence[Term]) -> list[Term]:
    """Terms weighted by their own size: of means, that is what pooling comes to."""
    total = fsum(term.estimate.size for term in terms)
    return [replace(term, weight=term.estimate.size / total) for term in terms]


def _clustered(made: Estimate, aggregation: Aggregation, influence: Floats64, codes: Ints64) -> Estimate:
    variance, stderr, count = clustered(influence, codes)
    return replace(
        made,
        stderr=stderr,
        variance=variance,
        df=float(count - 1),
        trials=float(count),
        bounds=aggregation.bounds,
        link=aggregation.link.name,
        signature="clustered",
        lowest=None,
        highest=None,
    )


def _resampled(made: Estimate, aggregation: Aggregation, summary: Summary, strata: Ints64) -> Estimate:
    """Without influences: a seeded bootstrap that draws within each task."""
    stream = np.random.default_rng(0)
    places = [np.flatnonzero(strata == k) for k in np.unique(strata)]
    index = np.hstack([place[stream.integers(0, len(place), (POOL_DRAWS, len(place)))] for place in places])
    stderr = float(np.std(summary.resampled(index), ddof=1))
    n = len(strata)
    return replace(
        made,
        stderr=stderr,
        variance=stderr**2,
        df=float(n - len(places)),
        trials=float(n),
        bounds=aggregation.bounds,
        signature=f"bootstrap(draws={POOL_DRAWS},seed=0,stratified)",
        reason=None,
        lowest=None,
        highest=None,
    )


def _stratified(made: Estimate, aggregation: Aggregation, influence: Floats64, strata: Ints64) -> Estimate:
    n = len(influence)
    groups = [influence[strata == k] for k in np.unique(strata)]
    scatters = [float(np.sum((part - part.mean()) ** 2)) for part in groups]
    small = any(len(part) < 2 for part in groups)
    corrected = [s * len(part) / max(len(part) - 1, 1) for s, part in zip(scatters, groups, strict=True)]
    stderr = None if small else fsum(corrected) ** 0.5 / n
    # As in ``rules``: one task keeps its own variance; in a sum of many, small tasks need their correction.
    variance = fsum(scatters if len(groups) == 1 else corrected) / n**2
    df = satterthwaite(corrected, [max(len(part) - 1.0, 1.0) for part in groups])
    return replace(
        made,
        stderr=stderr,
        variance=variance,
        df=df,
        influence=frozen(influence),
        trials=float(n),
        bounds=aggregation.bounds,
        link=aggregation.link.name,
        reason="a task has only one document" if small else None,
        lowest=None,
        highest=None,
    )
