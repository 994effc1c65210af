"""What a metric receives: many documents under one pipeline and one repeat, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan

import numpy as np
from msgspec.structs import replace

from evalcore.core.answers.table import Likelihoods, as_number
from evalcore.core.records.array import Bools, ColumnRecord, Floats64, Ints64
from evalcore.core.records.request import Gold, Sample


class Batch(ColumnRecord, frozen=True, eq=False):
    """Documents of one task with the replies that one pipeline left of one repeat.

    Document ``i`` holds ``replies[offsets[i]:offsets[i + 1]]``, one per instance, in idx order.
    """

    task: str
    filter: str
    samples: Sequence[Sample]
    keys: Ints64
    replies: Sequence[object]
    offsets: Ints64
    fell_back: Bools

    def list_replies(self, i: int) -> list[object]:
        return list(self.replies[self.offsets[i] : self.offsets[i + 1]])


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
    )


def make_batch(replies: Sequence[Sequence[object]], golds: Sequence[Gold] = (), choices: Sequence[str] = ()) -> Batch:
    """Make a batch from plain lists, to try a metric or a scorer by hand: the replies and gold of each document.

    >>> gen_batch(make_batch([["4"], ["V"]], ["4", ("5", "five")])).golds
    (('4',), ('5', 'five'))
    """
    wanted = golds or [None] * len(replies)
    samples = [Sample(i, gold, tuple(choices)) for i, (_, gold) in enumerate(zip(replies, wanted, strict=True))]
    flat = [reply for unit in replies for reply in unit]
    offsets = np.cumsum([0, *map(len, replies)])
    return Batch("plain", "none", samples, np.arange(len(samples)), flat, offsets, np.zeros(len(flat), np.bool_))


Problems = Mapping[int, str]
"""Position in the batch -> why the document cannot be scored."""


# --- batches: many documents -------------------------------------------------------------------------------


class LLBatch(ColumnRecord, frozen=True, eq=False):
    """Likelihoods of many documents, one each."""

    samples: Sequence[Sample]
    lls: Floats64
    greedy: Bools
    problems: Problems


class RollingBatch(ColumnRecord, frozen=True, eq=False):
    """Likelihoods of whole texts."""

    samples: Sequence[Sample]
    lls: Floats64
    texts: Sequence[str]
    problems: Problems


class GenBatch(ColumnRecord, frozen=True, eq=False):
    """Predictions of many documents, one each, with all golds of each."""

    samples: Sequence[Sample]
    predictions: Sequence[str]
    golds: Sequence[tuple[str, ...]]
    fell_back: Bools
    problems: Problems


# --- factories: by output type -------------------------------------------------------------------------------


def ll_batch(batch: Batch) -> LLBatch:
    """One likelihood per document.

    >>> b = Batch("t", "none", [Sample(0)], np.array([0]), [(-1.5, True)], np.array([0, 1]), np.array([False]))
    >>> ll_batch(b).lls.tolist()
    [-1.5]
    """
    problems = _expect_one(batch)
    firsts = _list_first(batch) if problems else batch.replies
    values = values_of(firsts)
    problems |= {
        int(i): explain_likelihood(firsts[i]) for i in np.flatnonzero(np.isnan(values) | (values == inf)).tolist()
    }
    problems |= {int(i): "log-likelihood is -inf" for i in np.flatnonzero(values == -inf)}
    greedy = read_part(firsts, 1)
    problems |= {int(i): "expected is_greedy to be true or false" for i in np.flatnonzero(np.isnan(greedy))}
    return LLBatch(batch.samples, values, greedy > 0, problems)


def rolling_batch(batch: Batch) -> RollingBatch:
    """One text per document; the text is the sample's gold.

    >>> rolling_batch(make_batch([[-7.5]], ["a whole text"])).texts
    ('a whole text',)
    """
    problems = _expect_one(batch)
    values = values_of(_list_first(batch) if problems else batch.replies)
    replies = _list_first(batch) if problems else batch.replies
    problems |= {int(i): explain_likelihood(replies[i]) for i in np.flatnonzero(~np.isfinite(values)).tolist()}
    texts = [sample.gold if isinstance(sample.gold, str) else "" for sample in batch.samples]
    problems |= {
        i: f"expected the text as gold, got {sample.gold!r}"
        for i, sample in enumerate(batch.samples)
        if not isinstance(sample.gold, str)
    }
    return RollingBatch(batch.samples, values, texts, problems)


def gen_batch(batch: Batch) -> GenBatch:
    """One prediction per document.

    >>> b = Batch("t", "none", [Sample(0, gold="4")], np.array([0]), ["4"], np.array([0, 1]), np.array([False]))
    >>> gen_batch(b).golds
    (('4',),)
    """
    problems = _expect_one(batch)
    replies = _list_first(batch) if problems else batch.replies
    if set(map(type, replies)) <= {str}:
        predictions: Sequence[str] = replies  # type: ignore[assignment]  # just checked: all are str
    else:
        predictions = [_read_prediction(value) for value in replies]
        problems |= {
            i: f"expected one text after filter {batch.filter!r}, got {value!r}"
            for i, value in enumerate(replies)
            if isinstance(value, tuple | type(None)) and i not in problems
        }
    golds = [(gold,) if isinstance(gold := sample.gold, str) else list_gold_texts(sample) for sample in batch.samples]
    problems |= _find_gold_problems(batch.samples)
    fell = batch.fell_back if len(batch.fell_back) == len(golds) else batch.fell_back[batch.offsets[:-1]]
    return GenBatch(batch.samples, predictions, golds, fell, problems)


def _read_prediction(value: object) -> str:
    if isinstance(value, list):
        return value  # type: ignore[return-value]  # all replies at once, for a user's own function
    return "" if isinstance(value, tuple | type(None)) else str(value)


def make_texts(predictions: Sequence[str], golds: Sequence[Gold], fell_back: Sequence[bool] = ()) -> GenBatch:
    """Make a batch from plain lists, to try a metric by hand: the prediction and gold(s) of each document.

    >>> make_texts(["4"], [("4", "four")]).golds
    (('4', 'four'),)
    """
    fell = np.array(fell_back or [False] * len(predictions), np.bool_)
    return replace(gen_batch(make_batch([[text] for text in predictions], golds)), fell_back=fell)


def count_bytes(text: str) -> int:
    """Count the bytes of a text in UTF-8; a lone surrogate counts as three.

    >>> count_bytes("é"), count_bytes("\\ud83d")
    (2, 3)
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


# --- small parts ---------------------------------------------------------------------------------------------


def values_of(replies: Sequence[object]) -> Floats64:
    """The log-likelihoods of replies; NaN for anything else."""
    if isinstance(replies, Likelihoods):
        return replies.values
    return np.array([_read_value(reply) for reply in replies], np.float64)


def read_part(replies: Sequence[object], at: int) -> Floats64:
    """A field of every likelihood reply: 0 the value, 1 greedy, 2 tokens."""
    if at == 0:
        return values_of(replies)
    if isinstance(replies, Likelihoods):
        return replies.part(at)
    return np.array([as_number(r[at]) if isinstance(r, tuple) and len(r) > at else 0.0 for r in replies], np.float64)


def _read_value(reply: object) -> float:
    if isinstance(reply, tuple):
        return _read_value(reply[0]) if reply else nan
    return nan if isinstance(reply, bool | str) else as_number(reply)


def _list_first(batch: Batch) -> list[object]:
    starts, ends = batch.offsets[:-1].tolist(), batch.offsets[1:].tolist()
    return [batch.replies[a] if b > a else None for a, b in zip(starts, ends, strict=True)]


def _expect_one(batch: Batch) -> dict[int, str]:
    counts = batch.offsets[1:] - batch.offsets[:-1]  # np.diff and flatnonzero are slow for one document
    return {i: f"expected one reply, got {counts[i]}" for i in (counts != 1).nonzero()[0].tolist()}


def list_gold_texts(sample: Sample) -> tuple[str, ...]:
    gold = sample.gold
    if gold is None:
        return ()
    many = gold if isinstance(gold, tuple) else (gold,)
    return tuple(_read_gold_text(one, sample.choices) for one in many)


def _find_gold_problems(samples: Sequence[Sample]) -> dict[int, str]:
    """Find golds that are no text, or an index beyond the choices."""
    out: dict[int, str] = {}
    for i, sample in enumerate(samples):
        gold = sample.gold
        if type(gold) is str or gold is None:
            continue
        many = gold if isinstance(gold, tuple) else (gold,)
        wrong = next((one for one in many if type(one) is int and not 0 <= one < len(sample.choices)), None)
        if sample.choices and wrong is not None:
            out[i] = f"expected a choice index below {len(sample.choices)}, got {wrong}"
        elif not isinstance(gold, int | float | tuple | np.number):
            out[i] = f"expected a text or texts as gold, got {gold!r}"
    return out


def _read_gold_text(gold: object, choices: Sequence[str]) -> str:
    if isinstance(gold, int) and not isinstance(gold, bool) and 0 <= gold < len(choices):
        return choices[gold]
    return str(gold)


def explain_likelihood(value: object) -> str:
    return f"expected a finite log-likelihood (a number, or (value, is_greedy)), got {value!r}"
