"""Reducers: several scores of a question become one. Each is a function over a batch of questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import nan
from typing import SupportsFloat

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.filters.select import ballot, vote
from evalcore.core.records.array import Bools, ColumnRecord, Floats64, Ints64
from evalcore.core.records.errors import EvalError, unknown

__all__ = ["COLLECT", "REDUCERS", "SCORES_ONLY", "WITH_K", "Reducer", "Repeats", "reducer", "split_name"]


class Repeats(ColumnRecord, frozen=True, eq=False):
    """Scores (documents × repeats, NaN if missing), their answers, and which are fallbacks."""

    scores: Floats64
    answers: Sequence[Sequence[object]] = ()
    fell_back: Bools | None = None

    @property
    def counts(self) -> Ints64:
        return np.asarray(np.count_nonzero(~np.isnan(self.scores), axis=1), np.int64)


Reducer = Callable[[Repeats], Floats64]
"""One score per document; NaN if undefined (pass@5 of three replies)."""


def first(repeats: Repeats) -> Floats64:
    """The first score.

    >>> first(Repeats(np.array([[0.2, 1.0]]))).tolist()
    [0.2]
    """
    at = np.argmax(~np.isnan(repeats.scores), axis=1)
    return np.asarray(repeats.scores[np.arange(len(at)), at], np.float64)


def last(repeats: Repeats) -> Floats64:
    """The last score.

    >>> last(Repeats(np.array([[0.2, 1.0]]))).tolist()
    [1.0]
    """
    return first(Repeats(repeats.scores[:, ::-1]))


def mean(repeats: Repeats) -> Floats64:
    """The average score: expected accuracy.

    >>> mean(Repeats(np.array([[0.0, 1.0]]))).tolist()
    [0.5]
    """
    total = np.zeros(len(repeats.scores))
    for scores in np.nan_to_num(repeats.scores, nan=0.0).T:
        total = total + scores
    return total / np.where(repeats.counts > 0, repeats.counts, nan)


def median(repeats: Repeats) -> Floats64:
    """The middle score, or the mean of the two middle ones.

    >>> median(Repeats(np.array([[0.0, 1.0, 1.0]]))).tolist()
    [1.0]
    """
    return _map_rows(repeats, np.median)


def lowest(repeats: Repeats) -> Floats64:
    """The worst score.

    >>> lowest(Repeats(np.array([[0.0, 1.0]]))).tolist()
    [0.0]
    """
    return _map_rows(repeats, np.min)


def highest(repeats: Repeats) -> Floats64:
    """The best score.

    >>> highest(Repeats(np.array([[0.8, 0.75, 0.78], [0.9, 0.85, 0.92], [0.7, 0.72, 0.69]]))).tolist()
    [0.8, 0.92, 0.72]
    """
    return _map_rows(repeats, np.max)


def mode(repeats: Repeats) -> Floats64:
    """The most frequent score; of several, the first.

    >>> mode(Repeats(np.array([[0.0, 1.0, 1.0]]))).tolist()
    [1.0]
    """
    return _map_rows(repeats, lambda row: Counter(row.tolist()).most_common(1)[0][0])


def variance(repeats: Repeats) -> Floats64:
    """Internal variance: how much the scores of one question differ (population form).

    >>> variance(Repeats(np.array([[0.0, 1.0], [1.0, 1.0]]))).tolist()
    [0.25, 0.0]
    """
    return _map_rows(repeats, np.var)


def consensus(repeats: Repeats) -> Floats64:
    """Consensus accuracy: 1 if more than half of the replies score at least one half.

    >>> consensus(Repeats(np.array([[1.0, 0.0], [1.0, 1.0]]))).tolist()
    [0.0, 1.0]
    """
    return _map_rows(repeats, lambda row: float(2 * np.count_nonzero(row >= 0.5) > len(row)))


def consistency(repeats: Repeats) -> Floats64:
    """Consistency rate: the share of replies that give the most frequent answer (score, if no answers are known).

    >>> consistency(Repeats(np.array([[1.0, 0.0, 0.0]]), [["4", "5", "5"]])).tolist()
    [0.6666666666666666]
    """
    if not repeats.answers:
        return _map_rows(repeats, lambda row: _find_top_share(row.tolist()))
    return np.array([_find_top_share(answers) if len(answers) else nan for answers in repeats.answers])


def pass_at(k: int, threshold: float = 1.0) -> Reducer:
    """The chance that at least one of ``k`` replies passes, unbiased: 1 − C(n−c, k)/C(n, k).

    >>> pass_at(2)(Repeats(np.array([[1.0, 0.0, 0.0], [0.0, nan, nan]]))).tolist()
    [0.6666666666666667, nan]
    """
    return lambda repeats: 1.0 - _chance_of_all(repeats, k, _count_failures(repeats, threshold))


def pass_all(k: int, threshold: float = 1.0) -> Reducer:
    """The chance that all of ``k`` replies pass, unbiased: C(c, k)/C(n, k).

    >>> round(float(pass_all(3)(Repeats(np.array([[1.0] * 9 + [0.0]])))[0]), 3)
    0.7
    """
    return lambda repeats: _chance_of_all(repeats, k, repeats.counts - _count_failures(repeats, threshold))


def at_least(k: int, threshold: float = 1.0) -> Reducer:
    """1 if at least ``k`` replies pass.

    >>> at_least(2)(Repeats(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))).tolist()
    [1.0, 0.0]
    """
    return lambda repeats: np.where(
        repeats.counts >= k, 1.0 * (repeats.counts - _count_failures(repeats, threshold) >= k), nan
    )


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

    return reduce


def _score_vote(answers: Sequence[object], scores: Sequence[float], fell: Sequence[bool]) -> float:
    winner, rule = vote(answers, [-int(one) for one in fell[: len(answers)]])
    cast = zip(answers, scores, fell, strict=False)
    return next(s for a, s, f in cast if ballot(a) == ballot(winner) and -int(f) == rule)


REDUCERS: PMap[str, Reducer] = pmap(
    {
        "first": first,
        "last": last,
        "mean": mean,
        "median": median,
        "min": lowest,
        "max": highest,
        "mode": mode,
        "variance": variance,
        "consensus": consensus,
        "consistency": consistency,
    }
)

WITH_K: PMap[str, Callable[..., Reducer]] = pmap(
    {"pass@": pass_at, "pass^": pass_all, "at_least": at_least, "maj@": majority_at}
)

COLLECT = "collect"

SCORES_ONLY = re.compile(r"(first|last|mean|median|min|max|mode|variance|consensus|collect|(pass[@^]|at_least).*)")
"""Our own reducers that look at scores alone; every other one is handed the answers too."""


def reducer(name: str, reducers: PMap[str, Reducer] = REDUCERS) -> Reducer:
    """A reducer by name: ``mean``, ``pass@5``, ``pass^3``, ``at_least(2)``, ``maj@8``.

    >>> reducer("pass@1")(Repeats(np.array([[1.0, 0.0]]))).tolist()
    [0.5]
    """
    if name in reducers:
        return reducers[name]
    found = split_name(name)
    if found is None:
        raise unknown("reducer", name, [*reducers, *(f"{stem}k" for stem in WITH_K), COLLECT])
    return WITH_K[found[0]](found[1], *found[2])


def split_name(name: str) -> tuple[str, int, tuple[float, ...]] | None:
    """The parts of a reducer's name that has a number in it.

    >>> split_name("pass@5"), split_name("at_least(2, 0.5)"), split_name("mean")
    (('pass@', 5, ()), ('at_least', 2, (0.5,)), None)
    """
    match = re.fullmatch(r"(pass@|pass\^|maj@|at_least)\(?([1-9][0-9]*)(?:,\s*([0-9]+(?:\.[0-9]+)?))?\)?", name)
    return None if match is None else (match[1], int(match[2]), () if match[3] is None else (float(match[3]),))


def _map_rows(repeats: Repeats, function: Callable[[Floats64], SupportsFloat]) -> Floats64:
    present = ~np.isnan(repeats.scores)
    rows = zip(repeats.scores, present, strict=True)
    return np.array([float(function(row[here])) if here.any() else nan for row, here in rows])


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


def _find_top_share(values: Sequence[object]) -> float:
    return Counter(map(ballot, values)).most_common(1)[0][1] / len(values)
