"""Multiple choice as arrays: a padded (documents × choices) matrix of log-likelihoods and its golds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import inf, nan
from operator import attrgetter

import numpy as np

from evalcore.core.answers.batch import (
    Batch,
    Problems,
    ResultBatch,
    explain_likelihood,
    make_batch,
    read_likelihood,
    values_of,
)
from evalcore.core.answers.result import MCResult
from evalcore.core.records.array import Bools, Floats64, Ints64
from evalcore.core.records.request import Gold, Sample


class MCBatch(ResultBatch, frozen=True, eq=False):
    """Choices of many documents in a padded (documents × choices) matrix; ``valid`` marks what is not padding.

    The replies of document ``i`` begin at ``starts[i]`` of ``flat``; if it is ``paired``, those of its choices
    without context follow. ``listed`` counts the choices whose text is known.
    """

    lls: Floats64
    valid: Bools
    is_gold: Bools
    gold: Ints64
    starts: Ints64
    counts: Ints64
    listed: Ints64
    paired: Bools
    problems: Problems

    @property
    def flat(self) -> Sequence[object]:
        return self.source.replies

    def __getitem__(self, i: int) -> MCResult:
        n, sample = int(self.counts[i]), self.samples[i]
        heard = list(map(read_likelihood, self.source.list_replies(i)))
        return MCResult(
            tuple(one.value for one in heard[:n]),
            tuple(one.greedy for one in heard[:n]),
            tuple(np.flatnonzero(self.is_gold[i]).tolist()),
            tuple(sample.choices),
            tuple(one.tokens for one in heard[:n]),
            tuple(one.value for one in heard[n:]) if self.paired[i] else (),
            sample=sample,
            instances=self.source.list_instances(i),
            filter=self.source.filter,
        )


def mc_batch(batch: Batch) -> MCBatch:
    """Every document's choices, padded to the longest.

    >>> b = Batch("t", "none", [Sample(0, gold=1, choices=("a", "b"))], np.array([0]), [(-2.0, False), (-1.0, True)],
    ...           np.array([0, 2]), np.array([False, False]))
    >>> mc_batch(b).is_gold.tolist()
    [[False, True]]
    """
    replies = np.diff(batch.offsets)
    listed = np.fromiter(map(len, map(attrgetter("choices"), batch.samples)), np.int64, len(batch.samples))
    counts = np.where(listed > 0, listed, replies)
    paired = (replies == 2 * counts) & (counts > 0)
    problems = _find_count_problems(counts, replies, paired)
    width = max(int(counts.max(initial=0)), 1)
    valid = np.arange(width) < counts[:, None]
    valid[list(problems)] = False
    starts = batch.offsets[:-1]
    lls = _fill_matrix(values_of(batch.replies), starts, valid, -inf)
    problems |= _find_likelihood_problems(batch, lls, valid, problems)
    is_gold, gold = _build_gold_matrix(batch.samples, counts, width, problems)
    return MCBatch(batch, lls, valid, is_gold, gold, starts, counts, listed, paired, problems)


def make_choices(replies: Sequence[Sequence[object]], golds: Sequence[Gold], choices: Sequence[str] = ()) -> MCBatch:
    """Make a batch from plain lists, to try a metric by hand: the log-likelihoods and gold of each document.

    >>> make_choices([[-2.0, -1.0], [-1.0, -3.0, -4.0]], golds=[1, (0, 2)]).is_gold.tolist()
    [[False, True, False], [True, False, True]]
    """
    return mc_batch(make_batch(replies, golds, choices))


def spread(batch: MCBatch, values: Floats64, padding: float, *, unconditional: bool = False) -> Floats64:
    """Spread a field of every reply over a padded matrix: of the choices in context, or without it."""
    if not unconditional:
        return _fill_matrix(values, batch.starts, batch.valid, padding)
    return _fill_matrix(values, batch.starts + batch.counts, batch.valid & batch.paired[:, None], padding)


def spread_choices(batch: MCBatch, length: Callable[[str], int]) -> Floats64:
    """Spread a length of every choice over a padded matrix; NaN if a document lists no choices."""
    texts = chain.from_iterable(map(attrgetter("choices"), batch.samples))
    lengths = np.fromiter(map(length, texts), np.float64, int(batch.listed.sum()))
    return _fill_matrix(lengths, np.cumsum(batch.listed) - batch.listed, batch.valid & (batch.listed > 0)[:, None], nan)


def _fill_matrix(flat: Floats64, starts: Ints64, valid: Bools, padding: float) -> Floats64:
    if not len(flat):
        return np.full(valid.shape, padding)
    at = starts[:, None] + np.arange(valid.shape[1])
    if bool(valid.all()):
        return np.asarray(flat[at], np.float64)
    return np.where(valid, flat[np.where(valid, at, 0)], padding)


def _find_count_problems(counts: Ints64, replies: Ints64, paired: Bools) -> dict[int, str]:
    out = {
        int(i): f"expected {counts[i]} log-likelihoods for {counts[i]} choices, got {replies[i]}"
        for i in np.flatnonzero((replies != counts) & ~paired)
    }
    return out | {int(i): "expected choices, got none" for i in np.flatnonzero(counts == 0)}


def _find_likelihood_problems(batch: Batch, lls: Floats64, valid: Bools, known: Problems) -> dict[int, str]:
    wrong = (np.isnan(lls) | (lls == inf)) & valid
    hopeless = np.all((lls == -inf) | ~valid, axis=1)
    if not wrong.any() and not hopeless.any():
        return {}
    out = {
        int(i): explain_likelihood(batch.replies[int(batch.offsets[i]) + int(np.argmax(wrong[i]))])
        for i in np.flatnonzero(wrong.any(axis=1))
    }
    out |= {int(i): "every choice has log-likelihood -inf" for i in np.flatnonzero(hopeless)}
    return {i: reason for i, reason in out.items() if i not in known}


def _build_gold_matrix(
    samples: Sequence[Sample], counts: Ints64, width: int, problems: dict[int, str]
) -> tuple[Bools, Ints64]:
    golds = list(map(attrgetter("gold"), samples))
    is_gold = np.zeros((len(golds), width), np.bool_)
    if set(map(type, golds)) <= {int} and min(golds, default=0) > -1 and max(golds, default=0) < width:
        first = np.array(golds, dtype=np.int64)
        is_gold[np.arange(len(first)), first] = True
        for i in np.flatnonzero(first >= counts).tolist():
            problems.setdefault(i, _explain_gold(golds[i], int(counts[i])))
        return is_gold, first
    for i, sample in enumerate(samples):
        picked = find_gold_indices(sample, int(counts[i]))
        if isinstance(picked, str):
            problems.setdefault(i, picked)
        else:
            is_gold[i, list(picked)] = True
    return is_gold, np.argmax(is_gold, axis=1)


def find_gold_indices(sample: Sample, count: int) -> tuple[int, ...] | str:
    """Find the right choices of a document, or why there are none. A fraction makes a whole column of indices floats.

    >>> find_gold_indices(Sample(0, gold="b", choices=("a", "b")), 2), find_gold_indices(Sample(0, gold=7), 4)
    ((1,), 'expected a choice index below 4, got 7')
    >>> find_gold_indices(Sample(0, gold=1.0), 2), find_gold_indices(Sample(0, gold=1.5), 2)
    ((1,), 'expected a choice index below 2, got 1.5')
    """
    many = sample.gold if isinstance(sample.gold, tuple) else (sample.gold,)
    out: list[int] = []
    for gold in many:
        if isinstance(gold, bool):
            return f"expected a choice index or a choice, got {gold!r}"
        index = sample.choices.index(gold) if isinstance(gold, str) and gold in sample.choices else gold
        if isinstance(index, np.integer) or (isinstance(index, float) and index.is_integer()):
            index = int(index)
        if not isinstance(index, int) or not 0 <= index < count:
            return _explain_gold(gold, count)
        out.append(index)
    return tuple(out) if out else "expected a gold choice, got none"


def _explain_gold(gold: object, count: int) -> str:
    if isinstance(gold, str):
        return f"expected one of the {count} choices, got {gold!r}"
    return f"expected a choice index below {count}, got {gold!r}"
