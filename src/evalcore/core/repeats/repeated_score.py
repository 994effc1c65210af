"""A metric's scores repeat by repeat, before and after they are reduced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import isfinite

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.answers.batch import Batch, values_of
from evalcore.core.metrics.custom import read_number
from evalcore.core.metrics.dispatch import Score, Scores
from evalcore.core.metrics.metric import keep_within
from evalcore.core.records.array import Array, Ints64
from evalcore.core.records.column import EMPTY, Column, build_column, merge_all
from evalcore.core.records.errors import RAISED, EvalError, blame_entry, located, place
from evalcore.core.records.lean.slim import slim_keys, slim_numbers
from evalcore.core.records.outcome import NOT_EMITTED, OK, UNSCORABLE
from evalcore.core.records.row import Floats, Objects, as_objects, blank_rows
from evalcore.core.records.score import ScoredColumn, column_key
from evalcore.core.records.task import MetricKey, MetricSpec
from evalcore.core.repeats.reduce import NO_VOTES, Votes, measure_noise
from evalcore.core.repeats.reducers import Reducers, own_reducers, reducer
from evalcore.core.tables import BoundPipeline


class RepeatedScore(Struct, frozen=True, eq=False):
    """A metric's column for each repeat, the reducer that combines them, and the key of the result."""

    key: MetricKey
    metric: str
    spec: MetricSpec | None
    reducer: str | None
    columns: tuple[Column, ...]
    votes: Votes
    span: tuple[int, int] | None


def list_repeats(bound: BoundPipeline, scores: Sequence[Scores], batches: Sequence[Batch]) -> Iterator[RepeatedScore]:
    """List every scored metric with each of its reducers."""
    by_name: dict[str, list[Score]] = {}
    for score in chain.from_iterable(scores):
        by_name.setdefault(score.name, []).append(score)
    span = _find_span(batches)
    for metric, each in by_name.items():
        spec = each[0].spec
        columns = tuple(keep_within(score.column, spec, bound.task.name) for score in each)
        _refuse_doubles(bound, metric, each)
        reducers = _list_reducers(bound, metric, spec, len(columns))
        for name in reducers:
            key = column_key(metric, name, reducers, bound.pipeline.name)
            with located(place(bound.task.name, key=metric)):
                known = own_reducers(spec, bound.tables.reducers)
                votes = name is not None and reducer(name, known).answers
            yield RepeatedScore(
                key, metric, spec, name, columns, _collect_votes(batches, columns) if votes else NO_VOTES, span
            )


def _refuse_doubles(bound: BoundPipeline, metric: str, scores: Sequence[Score]) -> None:
    """Refuse one name for what two metrics of a task emit."""
    sources = sorted({score.spec.name for score in scores if score.spec is not None})
    if len(sources) > 1:
        told = f"expected metrics of different names, got {metric!r} from {' and '.join(sources)}"
        raise EvalError(told + place(bound.task.name))


def split_generations(scores: Scores) -> list[Scores]:
    """Split scores that are lists, one for each generation, into scores repeat by repeat, for reducers.

    >>> from evalcore.core.records.column import build_column
    >>> from evalcore.core.records.row import Objects
    >>> both = Score("m", build_column([0, 1], Objects(([1.0, 0.5], 0.25))))
    >>> [[(one.column.keys, one.column.rows) for one in part] for part in split_generations((both,))]
    [[(Array([0, 1]), Floats(values=Array([1. , 0.25])))], [(Array([0]), Floats(values=Array([0.5])))]]
    """
    most = max((len(value) for score in scores for value in _list_lists(score)), default=1)
    listed = [score for score in scores if _list_lists(score)]
    return [tuple(_take_generation(score, at) for score in (listed if at else scores)) for at in range(most)]


def _list_lists(score: Score) -> Sequence[list[object]]:
    """The lists among a metric's values, unless an aggregation of the task's own takes them as they are."""
    rows, spec = score.column.rows, score.spec
    if not isinstance(rows, Objects) or (spec is not None and callable(spec.aggregation) and not spec.reducers):
        return ()
    return [value for value in rows.values if isinstance(value, list)]


def _take_generation(score: Score, at: int) -> Score:
    if not _list_lists(score):
        return score
    column, values = score.column, as_objects(score.column.rows)
    here = [i for i, value in enumerate(values) if (len(value) > at if isinstance(value, list) else not at)]
    kept = [value[at] if isinstance(value, list) else value for value in map(values.__getitem__, here)]
    numbers = list(map(read_number, kept))
    status = column.status.data[here].astype(np.uint8)
    odd = [i for i in range(len(here)) if status[i] == OK and not isfinite(numbers[i])]
    status[odd] = UNSCORABLE
    keys = column.keys.ints[here]
    reasons = dict(column.reasons) if not at else {}
    reasons |= {int(keys[i]): f"expected a finite number, got {kept[i]!r}" for i in odd}
    return replace(score, column=build_column(keys, Floats(Array(numbers)), status, reasons))


def build_reduced(repeated: RepeatedScore, column: Column, reducers: Reducers) -> ScoredColumn:
    """Build the scored column of reduced repeats, with its key and the noise of its replies."""
    name = repeated.reducer
    try:
        noise = None if name is None else measure_noise(name, repeated.columns, reducers)
    except RAISED as raised:
        raise blame_entry(raised, f"the noise of reducer {name!r}", "") from raised
    return ScoredColumn(repeated.key, slim_column(column), repeated.spec, name, repeated.span, noise=noise)


FEW = 256
"""Below this, a column takes too little to be looked at."""


def slim_column(column: Column) -> Column:
    """Keep a column in less memory, if its numbers allow it: very many of these may have to wait for the others."""
    if len(column) < FEW:
        return column
    rows = column.rows
    slim = Floats(slim_numbers(rows.values)) if isinstance(rows, Floats) else rows
    return replace(column, keys=slim_keys(column.keys), rows=slim)


def blank_columns(bound: BoundPipeline) -> tuple[ScoredColumn, ...]:
    """Make the columns of a pipeline, without any document."""
    return tuple(
        ScoredColumn(column_key(spec.name, name, spec.reducer_names, bound.pipeline.name), EMPTY, spec, name)
        for spec in bound.specs
        for name in spec.reducer_names or (None,)
    )


def add_losses(
    bound: BoundPipeline, columns: Sequence[ScoredColumn], lost: Column, traits: tuple[str, ...]
) -> tuple[ScoredColumn, ...]:
    """Add the documents lost before scoring to the columns, and the columns that nothing was scored for."""
    asked = blank_columns(bound)
    known, declared = {one.key for one in columns}, {one.key for one in asked}
    every = (*columns, *(one for one in asked if one.key not in known))
    return tuple(
        replace(one, traits=traits, column=merge_all((one.column, lost)) if one.key in declared else one.column)
        for one in every
    )


def fill_unemitted(columns: Sequence[ScoredColumn]) -> tuple[ScoredColumn, ...]:
    """Enter documents that a metric which nobody declared lacks, and others of its filter have, as not emitted."""
    if all(one.spec is not None or one.column.times is not None for one in columns):
        return tuple(columns)
    keys: dict[str, Ints64] = {}
    for one in columns:
        own = one.column.keys.ints
        known = keys.get(one.key.filter, own)
        keys[one.key.filter] = known if np.array_equal(known, own) else np.union1d(known, own)
    return tuple(_fill_column(one, keys[one.key.filter]) for one in columns)


def _fill_column(one: ScoredColumn, keys: Ints64) -> ScoredColumn:
    if one.spec is not None or one.column.times is not None or len(one.column) == len(keys):
        return one
    missing = np.setdiff1d(keys, one.column.keys.ints, assume_unique=True)
    silent = build_column(missing, blank_rows(len(missing)), np.full(len(missing), NOT_EMITTED, np.uint8))
    return replace(one, column=merge_all((one.column, silent)))


def _list_reducers(bound: BoundPipeline, metric: str, spec: MetricSpec | None, repeats: int) -> tuple[str | None, ...]:
    if spec is not None and spec.reducers:
        return spec.reducer_names
    if repeats <= 1:
        return (None,)
    if bound.tables.unreduced is None:
        raise EvalError(
            f"expected one reply per document or a reducer, got {repeats} replies for {metric}"
            f"{place(bound.task.name)}; add a filter such as take_first, or reducers such as mean or pass@1"
        )
    # where no filter is named, one reply counts: beside metrics that have reducers, others take the first
    return (bound.tables.unreduced if bound.task.filters else "first",)


def _collect_votes(batches: Sequence[Batch], columns: Sequence[Column]) -> Votes:
    """Collect the answers of the documents of these columns: a text, or the likeliest of several choices."""
    keys = sorted({key for one in columns for key in one.keys.ints.tolist()})
    at = {key: i for i, key in enumerate(keys)}
    answers: list[list[object]] = [[] for _ in keys]
    fell = np.zeros((len(at), len(batches)), np.bool_)
    for repeat, batch in enumerate(batches):
        for i, sample in enumerate(batch.samples):
            if sample.doc_id in at:
                answers[at[sample.doc_id]].append(_read_answer(batch.list_replies(i)))
                fell[at[sample.doc_id], repeat] = batch.fell_back[int(batch.offsets[i])]
    return Votes(tuple(map(tuple, answers)), fell)


def _read_answer(replies: Sequence[object]) -> object:
    return replies[0] if len(replies) == 1 else int(np.argmax(values_of(replies)))


def _find_span(batches: Sequence[Batch]) -> tuple[int, int] | None:
    """Find the fewest and the most replies of any document."""
    most = len(batches)
    if not most or not len(batches[0].samples):
        return None
    return next((i for i, batch in enumerate(batches) if len(batch.samples) < len(batches[0].samples)), most), most
