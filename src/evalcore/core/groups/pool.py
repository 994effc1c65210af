"""Pooling: all documents of a group's tasks as one task, with errors stratified by task."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.clusters import pick_units
from evalcore.core.aggregate.stderr import evaluate
from evalcore.core.groups.averages import Term, merge_terms
from evalcore.core.groups.combination import combine_terms, drop_error, macro, name_method
from evalcore.core.groups.covariance import all_clusters
from evalcore.core.groups.tree import GroupMetric
from evalcore.core.records.array import Floats64, Ints64, frozen
from evalcore.core.records.column import concat_rows, scored_part
from evalcore.core.records.estimate import Aggregation, Estimate, Makeup, Part, Summary
from evalcore.core.stats.influence import measure_error

POOL_DRAWS = 1000


def pool(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """Pool all documents of all tasks as one task, with errors stratified by task.

    >>> from evalcore.core.records.estimate import Scale
    >>> a = Term("a", 0.5, 3.0, Estimate(value=0.0, stderr=0.1, scale=Scale(size=3.0)))
    >>> b = Term("b", 0.5, 1.0, Estimate(value=1.0, stderr=0.1, scale=Scale(size=1.0)))
    >>> pool(GroupMetric("acc"), [a, b]).value      # of means: whatever the weights, by size
    0.25
    """
    merged = merge_terms(terms)
    if len(merged) == 1:
        only = merged[0].estimate
        return replace(only, signature=name_method([only]), group=Makeup((Part(merged[0].name, 1.0),)))
    if all(term.estimate.scale.average for term in merged):
        return macro(spec, by_size(merged))
    columns = [term.column for term in merged if term.column is not None and term.column.times is None]
    aggregation = merged[0].aggregation
    alike = len({term.estimate.scale.aggregation for term in merged}) == 1
    if len(columns) < len(merged) or not alike or aggregation is None:
        return Estimate(value=None, reason="pool needs every task's rows, all under the same aggregation")
    rows = concat_rows([scored_part(column) for column in columns])
    summary = aggregation.summarise(rows, merged[0].estimate.scale.options)
    value, influence, sums = evaluate(aggregation, summary)
    if value is None:
        return Estimate(value=None, reason=f"{aggregation.name} has no finite value on these documents")
    strata = np.repeat(np.arange(len(columns), dtype=np.int64), [int(column.scored.sum()) for column in columns])
    moves = None if influence is None else influence.floats
    made = _add_spread(spec, merged, aggregation, summary, moves, pick_units(summary, strata), value)
    known = summary.trials(sums) if summary.trials is not None and sums is not None else made.spread.trials
    return replace(
        made,
        counts=replace(made.counts, lowest=None, highest=None),
        scale=replace(made.scale, bounds=aggregation.bounds, link=aggregation.link),
        spread=replace(made.spread, trials=min(known, made.spread.trials)),
    )


def by_size(terms: Sequence[Term]) -> list[Term]:
    """Weight terms by their own size, which for means is the same as pooling."""
    total = fsum(term.estimate.scale.size for term in terms)
    return [replace(term, weight=term.estimate.scale.size / total) for term in terms]


def _add_spread(
    spec: GroupMetric,
    terms: Sequence[Term],
    aggregation: Aggregation,
    summary: Summary,
    influence: Floats64 | None,
    strata: Ints64,
    value: float,
) -> Estimate:
    """Add its error to the pooled value: from its documents' influences, from a bootstrap, or none."""
    made = drop_error(combine_terms(spec, terms, value, [0.0] * len(terms)))
    made = replace(made, group=Makeup())
    lacking = next((term for term in terms if term.estimate.stderr is None), None)
    if lacking is not None:
        return replace(made, reason=f"{lacking.name} has no standard error: {lacking.estimate.reason}")
    if influence is not None:
        parts = [influence[strata == k] for k in range(len(terms))]
        shares = [len(one) / len(influence) for one in parts]
        tasks = [_build_task(term, one) for term, one in zip(terms, parts, strict=True)]
        pooled = combine_terms(spec, tasks, value, shares)
        return replace(pooled, group=Makeup(tuple(_build_part(*one) for one in zip(tasks, shares, strict=True))))
    if all_clusters(terms) is not None:
        return replace(made, reason=f"{aggregation.name} of clustered documents of several tasks has no standard error")
    return _bootstrap_within(made, summary, strata)


def _build_task(term: Term, influence: Floats64) -> Term:
    """Build a task whose number moves as its documents move the pooled one, about their mean, for fixed sizes."""
    centred, own = influence - influence.mean(), term.estimate.spread
    codes = None if own.clusters is None else own.clusters.ints
    weights = None if own.weights is None else own.weights.floats
    made = measure_error(centred, codes, weights=weights, form=own.form)
    spread = replace(own, variance=made.variance, df=made.df, trials=made.trials, influence=frozen(centred), noise=None)
    return replace(term, estimate=replace(term.estimate, stderr=made.stderr, spread=spread))


def _build_part(task: Term, share: float) -> Part:
    """Build a task's part: the influence of its documents on the pooled value, on the task's scale."""
    centred = task.estimate.spread.influence
    return Part(task.name, 1.0, None if centred is None else frozen(centred.floats * share))


def _bootstrap_within(made: Estimate, summary: Summary, strata: Ints64) -> Estimate:
    """Bootstrap within each task, for a value without influences."""
    stream = np.random.default_rng(0)
    places = [np.flatnonzero(strata == k) for k in np.unique(strata)]
    index = np.hstack([place[stream.integers(0, len(place), (POOL_DRAWS, len(place)))] for place in places])
    stderr = float(np.std(summary.resampled(index), ddof=1))
    return replace(
        made,
        stderr=stderr,
        spread=replace(made.spread, variance=stderr**2, df=float(len(strata) - len(places)), trials=float(len(strata))),
        signature=f"bootstrap(draws={POOL_DRAWS},seed=0,stratified)",
        reason=None,
    )
