"""Likelihoods as arrays: one of each document, of a continuation or of a whole text."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from evalcore.core.answers.batch import (
    Batch,
    Problems,
    ResultBatch,
    expect_one,
    explain_likelihood,
    list_first,
    read_likelihood,
    read_part,
    values_of,
)
from evalcore.core.answers.result import LLResult, RollingResult
from evalcore.core.records.array import Bools, Floats64


class LLBatch(ResultBatch, frozen=True, eq=False):
    """Likelihoods of many documents, one each."""

    lls: Floats64
    greedy: Bools
    problems: Problems

    def __getitem__(self, i: int) -> LLResult:
        sample = self.samples[i]
        heard = read_likelihood(next(iter(self.source.list_replies(i)), None))
        asked, pipeline = self.source.list_instances(i), self.source.filter
        target = "" if sample.gold is None else str(sample.gold)
        return LLResult(*heard, target, sample=sample, instances=asked, filter=pipeline)


class RollingBatch(ResultBatch, frozen=True, eq=False):
    """Likelihoods of whole texts."""

    lls: Floats64
    texts: Sequence[str]
    problems: Problems

    def __getitem__(self, i: int) -> RollingResult:
        asked, pipeline = self.source.list_instances(i), self.source.filter
        return RollingResult(
            float(self.lls[i]), self.texts[i], sample=self.samples[i], instances=asked, filter=pipeline
        )


def ll_batch(batch: Batch) -> LLBatch:
    """One likelihood per document.

    >>> from evalcore.core.answers.batch import make_batch
    >>> ll_batch(make_batch([[(-1.5, True)]], ["yes"]))[0].target
    'yes'
    """
    problems = expect_one(batch)
    firsts = list_first(batch) if problems else batch.replies
    values = values_of(firsts)
    problems |= {
        int(i): explain_likelihood(firsts[i]) for i in np.flatnonzero(np.isnan(values) | (values == inf)).tolist()
    }
    problems |= {int(i): "log-likelihood is -inf" for i in np.flatnonzero(values == -inf)}
    greedy = read_part(firsts, 1)
    problems |= {int(i): "expected is_greedy to be true or false" for i in np.flatnonzero(np.isnan(greedy))}
    return LLBatch(batch, values, greedy > 0, problems)


def rolling_batch(batch: Batch) -> RollingBatch:
    """One text per document; the text is the sample's gold.

    >>> from evalcore.core.answers.batch import make_batch
    >>> rolling_batch(make_batch([[-7.5]], ["a whole text"])).texts
    ('a whole text',)
    """
    problems = expect_one(batch)
    values = values_of(list_first(batch) if problems else batch.replies)
    replies = list_first(batch) if problems else batch.replies
    problems |= {int(i): explain_likelihood(replies[i]) for i in np.flatnonzero(~np.isfinite(values)).tolist()}
    texts = [sample.gold if isinstance(sample.gold, str) else "" for sample in batch.samples]
    problems |= {
        i: f"expected the text as gold, got {sample.gold!r}"
        for i, sample in enumerate(batch.samples)
        if not isinstance(sample.gold, str)
    }
    return RollingBatch(batch, values, texts, problems)
