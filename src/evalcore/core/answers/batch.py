"""What a metric receives: many documents under one pipeline and one repeat, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from evalcore.core.answers.table import AnswerTable, Likelihoods, as_number, read_value
from evalcore.core.records.array import Bools, ColumnRecord, Floats64, Ints64
from evalcore.core.records.request import Gold, Instance, Likelihood, Sample


class Batch(ColumnRecord, frozen=True, eq=False):
    """Documents of one task with the replies that one pipeline left of one repeat.

    Document ``i`` holds ``replies[offsets[i]:offsets[i + 1]]``, one per instance, in idx order. ``table`` holds what
    was asked, where a host's own function may want to know.
    """

    task: str
    filter: str
    samples: Sequence[Sample]
    keys: Ints64
    replies: Sequence[object]
    offsets: Ints64
    fell_back: Bools
    table: AnswerTable | None = None

    def list_replies(self, i: int) -> list[object]:
        return list(self.replies[self.offsets[i] : self.offsets[i + 1]])

    def list_instances(self, i: int) -> tuple[Instance, ...]:
        """The requests that were made for document ``i``; none if they are not known."""
        return () if self.table is None else self.table.list_instances(int(self.keys[i]))


Problems = Mapping[int, str]
"""Position in the batch -> why the document cannot be scored."""


class ResultBatch(ColumnRecord, frozen=True, eq=False):
    """A batch as the metrics of one output type take it: ``batch[i]`` is the result of document ``i``."""

    source: Batch

    @property
    def samples(self) -> Sequence[Sample]:
        return self.source.samples

    def __len__(self) -> int:
        return len(self.source.samples)


def take_documents(batch: Batch, here: Bools) -> Batch:
    """Keep these documents of a batch."""
    if here.all():
        return batch
    replies = np.repeat(here, np.diff(batch.offsets))
    return Batch(
        batch.task,
        batch.filter,
        [sample for sample, kept in zip(batch.samples, here.tolist(), strict=True) if kept],
        batch.keys[here],
        [reply for reply, kept in zip(batch.replies, replies.tolist(), strict=True) if kept],
        np.concatenate([[0], np.cumsum(np.diff(batch.offsets)[here])]),
        batch.fell_back[replies],
        batch.table,
    )


def split_documents(batch: Batch) -> Iterator[Batch]:
    """Split a batch into those of one document each."""
    for i, (a, b) in enumerate(pairwise(batch.offsets.tolist())):
        yield Batch(
            batch.task,
            batch.filter,
            batch.samples[i : i + 1],
            batch.keys[i : i + 1],
            batch.replies[a:b],
            np.array([0, b - a]),
            batch.fell_back[a:b],
            batch.table,
        )


def make_batch(replies: Sequence[Sequence[object]], golds: Sequence[Gold] = (), choices: Sequence[str] = ()) -> Batch:
    """Make a batch from plain lists, to try a metric or a scorer by hand: the replies and gold of each document.

    >>> make_batch([["4"], ["V"]], ["4", ("5", "five")]).samples[1].gold
    ('5', 'five')
    """
    wanted = golds or [None] * len(replies)
    samples = [Sample(i, gold, tuple(choices)) for i, (_, gold) in enumerate(zip(replies, wanted, strict=True))]
    flat = [reply for unit in replies for reply in unit]
    offsets = np.cumsum([0, *map(len, replies)])
    return Batch("plain", "none", samples, np.arange(len(samples)), flat, offsets, np.zeros(len(flat), np.bool_))


# --- small parts ---------------------------------------------------------------------------------------------


def values_of(replies: Sequence[object]) -> Floats64:
    """The log-likelihoods of replies; NaN for anything else."""
    if isinstance(replies, Likelihoods):
        return replies.values
    return np.array([read_value(reply) for reply in replies], np.float64)


def read_part(replies: Sequence[object], at: int) -> Floats64:
    """A field of every likelihood reply: 0 the value, 1 greedy, 2 tokens."""
    if at == 0:
        return values_of(replies)
    if isinstance(replies, Likelihoods):
        return replies.part(at)
    return np.array([as_number(r[at]) if isinstance(r, tuple) and len(r) > at else 0.0 for r in replies], np.float64)


def read_likelihood(reply: object) -> Likelihood:
    """A likelihood reply of any form as a record."""
    value, greedy, tokens = (read_part([reply], at)[0] for at in range(3))
    return Likelihood(float(value), bool(greedy > 0), 0 if np.isnan(tokens) else int(tokens))


def list_first(batch: Batch) -> list[object]:
    starts, ends = batch.offsets[:-1].tolist(), batch.offsets[1:].tolist()
    return [batch.replies[a] if b > a else None for a, b in zip(starts, ends, strict=True)]


def expect_one(batch: Batch) -> dict[int, str]:
    counts = batch.offsets[1:] - batch.offsets[:-1]  # np.diff and flatnonzero are slow for one document
    return {i: f"expected one reply, got {counts[i]}" for i in (counts != 1).nonzero()[0].tolist()}


def explain_likelihood(value: object) -> str:
    return f"expected a finite log-likelihood (a number, or (value, is_greedy)), got {value!r}"
