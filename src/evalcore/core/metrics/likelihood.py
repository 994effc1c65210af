"""Metrics of one likelihood per document, and of whole texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.answers.likelihood import LLBatch, RollingBatch, ll_batch, rolling_batch
from evalcore.core.answers.result import RollingResult, count_bytes
from evalcore.core.metrics.choice import question_of
from evalcore.core.metrics.metric import Marks, Metric, only_where
from evalcore.core.metrics.verdict import tell_greedy, tell_length, tell_likelihood
from evalcore.core.records.array import Array, frozen
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats, Objects, Stats


def acc(batch: LLBatch, options: Options) -> Floats:
    """1 if greedy decoding would give the target.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.answers.likelihood import ll_batch
    >>> acc(ll_batch(make_batch([[(-0.1, False)], [(-9.0, True)]])), {}).values
    Array([0., 1.])
    """
    return Floats(frozen(batch.greedy.astype(np.float64)))


def perplexity(batch: LLBatch, options: Options) -> Floats:
    """The log-likelihood of the target; its aggregation makes the perplexity.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.answers.likelihood import ll_batch
    >>> perplexity(ll_batch(make_batch([[(-1.5, True)]])), {}).values
    Array([-1.5])
    """
    return Floats(Array(batch.lls))


def acc_all(batch: LLBatch, options: Options) -> Objects:
    """Correctness and question, for "every answer to the question is right".

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.answers.likelihood import ll_batch
    >>> acc_all(ll_batch(make_batch([[(-1.0, True)], [(-1.0, False)]])), {}).values
    ((True, ('doc', 0)), (False, ('doc', 1)))
    """
    pairs = zip(batch.greedy.tolist(), batch.samples, strict=True)
    return Objects(tuple((hit, question_of(sample)) for hit, sample in pairs))


def bypass(batch: LLBatch, options: Options) -> Objects:
    """No score: the answers are recorded, nothing is measured.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.answers.likelihood import ll_batch
    >>> len(bypass(ll_batch(make_batch([[(-1.0, True)]] * 3)), {}).values)
    3
    """
    return Objects((None,) * len(batch.samples))


def bypass_texts(batch: RollingBatch, options: Options) -> Objects:
    """No score: the answers are recorded, nothing is measured.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.answers.likelihood import rolling_batch
    >>> bypass_texts(rolling_batch(make_batch([[-9.0]], ["a text"])), {}).values
    (None,)
    """
    return Objects((None,) * len(batch.samples))


def words(text: str) -> int:
    """How many words.

    >>> words(" a b ")
    2
    """
    return len(text.split())


def per_unit(length: Callable[[str], int], unit: str) -> Callable[[RollingBatch, Options], Marks]:
    """Rows of (log-likelihood, number of units); a text without a unit is unscorable.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.answers.likelihood import rolling_batch
    >>> batch = rolling_batch(make_batch([[-9.0], [-4.0]], ["two words", " "]))
    >>> word_perplexity(batch, {}).rows.values.data[0].tolist(), word_perplexity(batch, {}).missing
    ([-9.0, 2.0], {1: (1, 'the text has no words')})
    """
    return partial(_per_unit, length, unit)


def _per_unit(length: Callable[[str], int], unit: str, batch: RollingBatch, options: Options) -> Marks:
    """The log-likelihood and the length of every text."""
    lengths = np.fromiter(map(length, batch.texts), np.float64, len(batch.texts))
    return only_where(lengths > 0, Stats(frozen(np.column_stack([batch.lls, lengths]))), f"the text has no {unit}")


word_perplexity = per_unit(words, "words")
byte_perplexity = per_unit(count_bytes, "bytes")
bits_per_byte = byte_perplexity


def _tell_words(result: RollingResult, options: Options) -> str:
    return tell_length(words, "words", result)


def _tell_bytes(result: RollingResult, options: Options) -> str:
    return tell_length(count_bytes, "bytes", result)


def _rolling(
    score: Callable[[RollingBatch, Options], Marks], aggregation: str, explain: Callable[[RollingResult, Options], str]
) -> Metric[RollingBatch]:
    return Metric(score, rolling_batch, aggregation, False, (-inf, inf), explain=explain)


LIKELIHOOD_METRICS: PMap[str, Metric[LLBatch]] = pmap(
    {
        "acc": Metric(acc, ll_batch, explain=tell_greedy, greedy=True),
        "perplexity": Metric(perplexity, ll_batch, "perplexity", False, (-inf, 0.0), explain=tell_likelihood),
        "acc_all": Metric(acc_all, ll_batch, aggregation="acc_all", greedy=True),
        "bypass": Metric(bypass, ll_batch, aggregation="bypass", higher_is_better=None),
    }
)

ROLLING_METRICS: PMap[str, Metric[RollingBatch]] = pmap(
    {
        "word_perplexity": _rolling(word_perplexity, "weighted_perplexity", _tell_words),
        "byte_perplexity": _rolling(byte_perplexity, "weighted_perplexity", _tell_bytes),
        "bits_per_byte": _rolling(bits_per_byte, "bits_per_byte", _tell_bytes),
        "bypass": Metric(bypass_texts, rolling_batch, aggregation="bypass", higher_is_better=None),
    }
)
