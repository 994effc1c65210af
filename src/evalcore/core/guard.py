"""What an entry of the tables fails on, or a guard stops, is lost alone: other documents keep their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from msgspec import Struct

from evalcore.core.answers.batch import Batch
from evalcore.core.answers.chunk import Chunk, split_chunks
from evalcore.core.metrics.dispatch import Score, Scores
from evalcore.core.records.array import Array
from evalcore.core.records.errors import RAISED, EntryError, EvalError, blame_entry, fails_alike, place
from evalcore.core.records.score import Provenance, Scored, merge_scored
from evalcore.core.records.task import MetricSpec
from evalcore.core.repeats.repeat import lose_documents
from evalcore.core.repeats.repeated_score import add_losses
from evalcore.core.tables import BoundPipeline


class StepLoss(Struct, frozen=True):
    """Why a step has no scores: a guard stopped it, or an entry failed."""

    reason: str


Step = Callable[[Chunk], Scored]

MapChunks = Callable[[Step, Iterable[Chunk]], Iterable[Scored]]
"""A function that maps over chunks as ``map`` does; a pool's ``map`` spreads them over workers."""

Guard = Callable[[Step, Chunk], Scored | StepLoss]
"""Runs a step on a chunk, or says why it stopped it. Clocks and budgets are the guard's: the core knows none."""


def run_freely(step: Step, chunk: Chunk) -> Scored:
    """Run a step with no budget: the guard of whoever gives none."""
    return step(chunk)


def contain_step(step: Step, guard: Guard, chunk: Chunk, *, keep_replies: bool = False) -> Scored:
    """Run a step on a chunk; if it fails or is stopped, on each document, so that only those to blame are lost.

    An entry that fails in the same way on no document at all is wrong itself, which is an error. A filter that looks at
    all documents at once loses them all.
    """
    try:
        made = guard(step, chunk)
    except EntryError as wrong:
        nothing = Chunk(chunk.bound, (), chunk.keys[:0], chunk.table.rows(0, 0))
        if not len(chunk.docs) or fails_alike(wrong, partial(step, nothing)):
            raise EvalError(str(wrong)) from wrong
        made = StepLoss(wrong.told)
    if isinstance(made, Scored):
        return made
    if not len(chunk.docs):
        raise EvalError(f"{made.reason} (filter {chunk.bound.pipeline.name!r}){place(chunk.bound.task.name)}")
    if len(chunk.docs) == 1 or chunk.bound.whole:
        return lose_chunk(chunk, made.reason, keep_replies=keep_replies)
    singles = split_chunks(chunk.bound, chunk.docs, chunk.keys, chunk.table, 1)
    return merge_scored([contain_step(step, guard, one, keep_replies=keep_replies) for one in singles])


def lose_chunk(chunk: Chunk, reason: str, *, keep_replies: bool = False) -> Scored:
    """Make every document of a chunk unscorable under its pipeline, for this reason."""
    bound = chunk.bound
    lost = lose_documents(chunk.keys, reason, bound.task.name)
    none = Provenance(bound.pipeline.name, NO_INTS, Array(np.zeros(1, np.int64)), (), Array(np.zeros(0, np.int8)))
    return Scored(bound.task, add_losses(bound, (), lost, ()), (none,) if keep_replies else (), bound.tables.name)


NO_INTS = Array(np.zeros(0, np.int64))


# --- scorers ----------------------------------------------------------------------------------------------------------


def score_batch(bound: BoundPipeline, batch: Batch) -> Scores:
    """Score a batch of documents by the metrics that take one reply of each; ``score_doc`` is the batch of one."""
    return () if bound.each is None else _score(bound, bound.each, batch)


def score_together(bound: BoundPipeline, batch: Batch) -> Scores:
    """Score a batch of all replies of each document by the metrics that take them at once."""
    return () if bound.together is None else _score(bound, bound.together, batch)


def _score(bound: BoundPipeline, specs: tuple[MetricSpec, ...], batch: Batch) -> Scores:
    """The scores that a scorer, whoever wrote it, gives the documents of a batch, and no others."""
    try:
        made: object = bound.score(bound.task, specs, batch)
        if not isinstance(made, tuple) or not all(isinstance(one, Score) for one in made):
            raise EvalError(f"expected a tuple of Score, got {made!r:.200}")
        for one in made:
            keys = one.column.keys.data
            if keys is not batch.keys and not np.isin(keys, batch.keys).all():
                raise EvalError(f"expected scores of the documents of the batch, got others under {one.name!r}")
    except RAISED as raised:
        raise blame_entry(raised, "the scorer", place(bound.task.name)) from raised
    return made
