"""Generated texts: a prediction of each document, and its golds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from evalcore.core.answers.batch import Batch, Problems, ResultBatch, expect_one, list_first, make_batch
from evalcore.core.answers.result import GenResult
from evalcore.core.records.array import Bools
from evalcore.core.records.request import Gold, Sample


class GenBatch(ResultBatch, frozen=True, eq=False):
    """Predictions of many documents, one each, with all golds of each."""

    predictions: Sequence[str]
    golds: Sequence[tuple[str, ...]]
    fell_back: Bools
    problems: Problems

    def __getitem__(self, i: int) -> GenResult:
        """All generations that the source holds of a document; a metric scores ``predictions``, one each."""
        source = self.source
        a, b = int(source.offsets[i]), int(source.offsets[i + 1])
        return GenResult(
            tuple(map(_read_prediction, source.replies[a:b])) if b - a != 1 else (self.predictions[i],),
            self.golds[i],
            tuple(map(bool, source.fell_back[a:b].tolist())),
            sample=self.samples[i],
            instances=source.list_instances(i),
            filter=source.filter,
        )


def gen_batch(batch: Batch) -> GenBatch:
    """One prediction per document.

    >>> gen_batch(make_batch([["4"]], ["4"])).golds
    (('4',),)
    """
    problems = expect_one(batch)
    fell = _find_fallbacks(batch) if problems else batch.fell_back
    replies = list_first(batch) if problems else batch.replies
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
    return GenBatch(batch, predictions, golds, fell, problems)


def _find_fallbacks(batch: Batch) -> Bools:
    """Whether the first reply of each document is a fallback; a document without any has none."""
    counts = np.diff(batch.offsets)
    if not len(batch.fell_back):
        return np.zeros(len(counts), np.bool_)
    return (counts > 0) & batch.fell_back[np.minimum(batch.offsets[:-1], len(batch.fell_back) - 1)]


def all_generations(batch: Batch) -> GenBatch:
    """All replies of each document, for functions of ``GenResult``.

    >>> all_generations(make_batch([["4", "5"]], ["4"]))[0].generations
    ('4', '5')
    """
    golds = list(map(list_gold_texts, batch.samples))
    firsts = [_read_prediction(value) for value in list_first(batch)]
    problems = _find_gold_problems(batch.samples)
    problems |= dict.fromkeys(np.flatnonzero(np.diff(batch.offsets) == 0).tolist(), "expected a reply, got none")
    return GenBatch(batch, firsts, golds, _find_fallbacks(batch), problems)


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
