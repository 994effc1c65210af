"""Scores of every repeat become the columns that a task asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain as flatten

import numpy as np

from evalcore.core.answers.batch import Batch, values_of
from evalcore.core.metrics.dispatch import Score
from evalcore.core.records.array import Bools
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError, locate, place
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.repeats.reduce import noise_of_repeats, reduce_repeats
from evalcore.core.repeats.reducers import SCORES_ONLY
from evalcore.core.tables import Tables

__all__ = ["column_key", "reduce_scores"]


def reduce_scores(
    task: Task, name: str, scores: Sequence[Sequence[Score]], passes: Sequence[Batch], tables: Tables
) -> list[ScoredColumn]:
    by_name: dict[str, list[Score]] = {}
    for score in flatten.from_iterable(scores):
        by_name.setdefault(score.name, []).append(score)
    out: list[ScoredColumn] = []
    for metric, found in by_name.items():
        spec = found[0].spec
        reducers = _reducers(task, metric, spec, len(passes), tables)
        for one in reducers:
            key = column_key(metric, one, reducers, name)
            if one is None:
                out.append(ScoredColumn(key, found[0].column, spec, None, _spread(passes)))
            else:
                keys = sorted({key for score in found for key in score.column.keys.ints.tolist()})
                answers, fell = ((), None) if SCORES_ONLY.fullmatch(one) else _votes(passes, keys)
                reduced = _reduced(task, metric, one, found, answers, fell, tables)
                noise = noise_of_repeats(one, [score.column for score in found], tables.reducers)
                out.append(ScoredColumn(key, reduced, spec, one, _spread(passes), noise=noise))
    return out


def column_key(metric: str, reducer: str | None, reducers: Sequence[str | None], pipeline: str) -> MetricKey:
    return MetricKey(f"{metric}@{reducer}" if len(reducers) > 1 else metric, pipeline)


def _reduced(
    task: Task,
    metric: str,
    reducer: str,
    found: Sequence[Score],
    answers: Sequence[Sequence[object]],
    fell: Bools | None,
    tables: Tables,
) -> Column:
    try:
        columns = [score.column for score in found]
        return reduce_repeats(reducer, columns, answers, fell, tables.reducers, task.name)
    except EvalError as wrong:
        raise locate(wrong, place(task.name, key=metric)) from wrong


def _reducers(task: Task, metric: str, spec: MetricSpec | None, repeats: int, tables: Tables) -> tuple[str | None, ...]:
    declared = spec.reducers if spec is not None else ()
    if declared:
        return declared
    if repeats <= 1:
        return (None,)
    if tables.unreduced is None:
        raise EvalError(
            f"expected one reply per document or a reducer, got {repeats} replies for {metric}"
            f"{place(task.name)}; add a filter such as take_first, or reducers such as mean or pass@1"
        )
    return (tables.unreduced,)


def _votes(passes: Sequence[Batch], keys: Sequence[int]) -> tuple[list[list[object]], Bools]:
    """The answers of these documents over all repeats: a text, or of several choices the likeliest one."""
    at = {key: i for i, key in enumerate(keys)}
    answers: list[list[object]] = [[] for _ in keys]
    fell = np.zeros((len(at), len(passes)), np.bool_)
    for repeat, batch in enumerate(passes):
        for i, sample in enumerate(batch.samples):
            if sample.doc_id in at:
                answers[at[sample.doc_id]].append(_answer(batch.of_doc(i)))
                fell[at[sample.doc_id], repeat] = batch.fell_back[int(batch.offsets[i])]
    return answers, fell


def _answer(replies: Sequence[object]) -> object:
    return replies[0] if len(replies) == 1 else int(np.argmax(values_of(replies)))


def _spread(batches: Sequence[Batch]) -> tuple[int, int] | None:
    """The fewest and the most replies of any document."""
    most = len(batches)
    if not most or not len(batches[0].samples):
        return None
    return next((i for i, batch in enumerate(batches) if len(batch.samples) < len(batches[0].samples)), most), most
