"""Reducers with a k: what k replies to a question come to."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from evalcore.core.filters.select import ballot, vote
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.errors import EvalError
from evalcore.core.repeats.repeat import Reducer, Repeats


def pass_at(k: int, threshold: float = 1.0) -> Reducer:
    """The chance that at least one of ``k`` replies passes, unbiased: 1 − C(n−c, k)/C(n, k).

    >>> pass_at(2)(Repeats(np.array([[1.0, 0.0, 0.0], [0.0, nan, nan]]))).tolist()
    [0.6666666666666667, nan]
    """

    def reduce(repeats: Repeats, times: int = 1) -> Floats64:
        return 1.0 - _chance_of_all(repeats, times * k, _count_failures(repeats, threshold))

    def noise(repeats: Repeats) -> tuple[Floats64, Ints64]:
        return _vary(1 - reduce(repeats), 1 - reduce(repeats, 2)), repeats.counts

    return Reducer(reduce, answers=False, noise=noise, least=k)


def pass_all(k: int, threshold: float = 1.0) -> Reducer:
    """The chance that all of ``k`` replies pass, unbiased: C(c, k)/C(n, k).

    >>> round(float(pass_all(3)(Repeats(np.array([[1.0] * 9 + [0.0]])))[0]), 3)
    0.7
    """

    def reduce(repeats: Repeats, times: int = 1) -> Floats64:
        return _chance_of_all(repeats, times * k, repeats.counts - _count_failures(repeats, threshold))

    def noise(repeats: Repeats) -> tuple[Floats64, Ints64]:
        return _vary(reduce(repeats), reduce(repeats, 2)), repeats.counts

    return Reducer(reduce, answers=False, noise=noise, least=k)


def _vary(once: Floats64, twice: Floats64) -> Floats64:
    """U is unbiased for θ, and with 2k for θ²; so U² minus the latter is unbiased for the variance of U."""
    return np.maximum(once * once - twice, 0.0)


def at_least(k: int, threshold: float = 1.0) -> Reducer:
    """1 if at least ``k`` replies pass.

    >>> at_least(2)(Repeats(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))).tolist()
    [1.0, 0.0]
    """

    def reduce(repeats: Repeats) -> Floats64:
        passes = repeats.counts - _count_failures(repeats, threshold)
        return np.where(repeats.counts >= k, 1.0 * (passes >= k), nan)

    return Reducer(reduce, answers=False, least=k)


def majority_at(k: int) -> Reducer:
    """The score of the answer that most of the first ``k`` replies give; fallbacks cannot win.

    >>> r = Repeats(np.array([[0.0, 0.0, 1.0, 1.0, 0.0]]), [["x", "x", "4", "4", "x"]],
    ...             np.array([[True, True, False, False, True]]))
    >>> majority_at(5)(r).tolist()
    [1.0]
    """

    def reduce(repeats: Repeats) -> Floats64:
        if not repeats.answers and len(repeats.scores):
            raise EvalError("maj@k votes on answers, but none are known here; use mode to vote on scores")
        fell = np.zeros(repeats.scores.shape, np.bool_) if repeats.fell_back is None else repeats.fell_back
        rows = zip(repeats.answers, repeats.scores.tolist(), fell.tolist(), strict=True)
        return np.array(
            [_score_vote(answers[:k], scores, fallen) if len(answers) >= k else nan for answers, scores, fallen in rows]
        )

    return Reducer(reduce, least=k)


def _score_vote(answers: Sequence[object], scores: Sequence[float], fell: Sequence[bool]) -> float:
    winner, rule = vote(answers, [-int(one) for one in fell[: len(answers)]])
    cast = zip(answers, scores, fell, strict=False)
    return next(s for a, s, f in cast if ballot(a) == ballot(winner) and -int(f) == rule)


def _count_failures(repeats: Repeats, threshold: float) -> Ints64:
    return np.asarray(np.count_nonzero(repeats.scores < threshold, axis=1), np.int64)


def _chance_of_all(repeats: Repeats, k: int, kind: Ints64) -> Floats64:
    """The chance that ``k`` replies drawn without replacement are all of one kind: C(kind, k)/C(n, k)."""
    total = repeats.counts
    chance = np.where(total >= k, 1.0, nan)
    for j in range(k):
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = chance * np.where(total >= k, np.maximum(kind - j, 0) / (total - j), nan)
    return chance
