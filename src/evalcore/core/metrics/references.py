"""Scores of (prediction, gold) pairs as scores of documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import nan

import numpy as np

from evalcore.core.answers.batch import GenBatch
from evalcore.core.metrics.metric import Marks, only_where
from evalcore.core.metrics.normalise import NO_GOLD
from evalcore.core.records.array import frozen
from evalcore.core.records.row import Floats

Texts = Sequence[str]
ScorePairs = Callable[[Texts, Texts], Sequence[float]]
"""Scores of many (prediction, gold) pairs at once."""


def best_over_golds(batch: GenBatch, score: ScorePairs) -> Floats | Marks:
    """The best score of each document over its golds; a document without a gold is unscorable.

    >>> batch = GenBatch((), ["a", "b"], [("b", "a"), ()], np.zeros(2, np.bool_), {})
    >>> best_over_golds(batch, lambda predictions, golds: [p == g for p, g in zip(predictions, golds)])
    Marks(rows=Floats(values=Array([ 1., nan])), missing={1: (1, 'expected a gold answer, got none')})
    """
    counts = list(map(len, batch.golds))
    if counts.count(1) == len(counts):
        only = [gold for (gold,) in batch.golds]
        return Floats(frozen(np.array(score(batch.predictions, only), dtype=np.float64)))
    sizes = np.array(counts, dtype=np.int64)
    known = sizes > 0
    values = np.full(len(sizes), nan)
    if known.any():
        repeated = [text for text, n in zip(batch.predictions, counts, strict=True) for _ in range(n)]
        flat = np.array(score(repeated, list(chain.from_iterable(batch.golds))), dtype=np.float64)
        values[known] = np.maximum.reduceat(flat, (np.cumsum(sizes) - sizes)[known])
    return only_where(known, Floats(frozen(values)), NO_GOLD)


def each_pair(score: Callable[[str, str], float], predictions: Texts, golds: Texts) -> list[float]:
    """Score pairs one by one, for scores that gain nothing from seeing many at once.

    >>> each_pair(lambda prediction, gold: float(gold in prediction), ["it is 4", "5"], ["4", "4"])
    [1.0, 0.0]
    """
    return list(map(score, predictions, golds))
