"""Corpus scores, and questions made of several documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from evalcore.core.aggregate.numbers import is_pair, read_counts, two_of
from evalcore.core.aggregate.ratios import ratio
from evalcore.core.metrics.corpus import CORPUS_KINDS, pair_statistics
from evalcore.core.metrics.corpus_score import bleu_score, chrf_score, ter_score
from evalcore.core.records.array import Sums, frozen
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Bracket, Evidence, Summary, smooth
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Rows, Stats
from evalcore.core.stats.intervals import interval


def corpus(
    kind: str, finalise: Callable[[Sums, Options], Sums], weight: int | None = None
) -> Callable[[Rows, Options], Summary]:
    """A corpus score of summed sentence counts, not a mean of sentence scores; ``weight`` is the count it divides by.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(corpus("ter", ter), [("a b c d", "a b c d"), ("a", "b")])      # 1 edit in 5 words
    20.0
    """
    return partial(_corpus, kind, finalise, weight)


def _corpus(
    kind: str, finalise: Callable[[Sums, Options], Sums], weight: int | None, rows: Rows, options: Options
) -> Summary:
    """Summarise sentence counts, given as they are or as (reference, prediction) pairs."""
    stats = (
        rows.values.floats
        if isinstance(rows, Stats)
        else pair_statistics(kind, list(two_of(rows, "(reference, prediction)")))
    )
    weights = None if weight is None else stats[:, weight]
    return smooth(stats, lambda sums: finalise(sums, options), weights=weights)


def bleu(sums: Sums, options: Options) -> Sums:
    """BLEU of summed counts; the counts do not depend on its smoothing.

    >>> sums = np.array([4.0, 4, 4, 3, 2, 0, 4, 3, 2, 1])      # no 4-gram in common
    >>> [float(bleu(sums, {"smooth_method": how}).round(3)) for how in ("exp", "none")]
    [84.09, 0.0]
    """
    known = ("smooth_method", "smooth_value", "effective_order")
    return bleu_score(sums, **{key: options[key] for key in known if key in options})  # type: ignore[arg-type]


def chrf(sums: Sums, options: Options) -> Sums:
    """chrF of summed counts, with recall ``beta`` times as important as precision.

    >>> sums = np.array([2.0, 4, 2])      # 2 characters said, 4 wanted, 2 common
    >>> [float(chrf(sums, {"beta": beta}).round(3)) for beta in (1, 2)]
    [66.667, 55.556]
    """
    return chrf_score(sums, **{key: options[key] for key in ("beta", "eps_smoothing") if key in options})  # type: ignore[arg-type]


def ter(sums: Sums, options: Options) -> Sums:
    """TER of summed counts: edits per 100 words of reference, so it can exceed 100.

    >>> float(ter(np.array([3.0, 2.0]), {}))
    150.0
    """
    return ter_score(sums)


def bracket_ter(evidence: Evidence, confidence: float) -> Bracket | None:
    """The interval of a TER without a single edit: Wilson's, of sentences that have no edit or one a word.

    >>> none = smooth(np.array([[0.0, 5.0], [0.0, 7.0]]), lambda sums: ter(sums, {}))
    >>> made = bracket_ter(Evidence(Stats(frozen(none.stats)), {}, none, 0.0, 1.0, None, 0), 0.95)
    >>> made.ci[0], made.ci[1] > 90      # two sentences say little
    (0.0, True)
    """
    if evidence.summary.stats[:, 0].any():
        return None
    ci = interval(0.0, variance=0.0, n=evidence.df + 1, df=evidence.df, bounds=(0.0, 100.0), confidence=confidence)
    told = "no sentence has an edit: the interval takes one that has any to have as many as words"
    return None if ci is None else Bracket(ci=ci, method="wilson-t", warnings=(told,))


def acc_all(rows: Rows, options: Options) -> Summary:
    """The share of questions all of whose answers are right; the unit is the question.

    >>> from evalcore.core.aggregate.numbers import value_of
    >>> value_of(acc_all, [(True, "q1"), (True, "q1"), (True, "q2"), (False, "q2")])
    0.5
    """
    firsts: dict[object, int] = {}
    right: dict[object, bool] = {}
    for i, (hit, key) in enumerate(map(read_answer, two_of(rows, "(correct, question)"))):
        firsts.setdefault(key, i)
        right[key] = right.get(key, True) and hit
    values = np.array([float(right[key]) for key in firsts])
    return smooth(np.column_stack([values, np.ones(len(values))]), ratio, np.array(list(firsts.values()), np.int64))


def read_answer(row: Sequence[object]) -> tuple[bool, object]:
    """Read our (correct, question), or lm-eval's (prediction, document with idx and label)."""
    said, other = row
    if isinstance(other, Mapping):
        idx = other["idx"]
        return bool((other["label"] == 1) == said), (idx["paragraph"], idx["question"])
    return bool(said), tuple(other) if isinstance(other, list) else other


def read_texts(kind: str) -> Callable[[Sequence[object], Options], Rows]:
    """A reader of logged counts, or of (reference, prediction) to count with the options of the metric.

    >>> read_texts("ter")([["a b", "a c"], ("a", "a")], {}).values.data.tolist()      # edits, words
    [[1.0, 2.0], [0.0, 1.0]]
    """
    return partial(_read_texts, kind)


def _read_texts(kind: str, values: Sequence[object], given: Options) -> Rows:
    if any(isinstance(one, list | tuple) and one and isinstance(one[0], int | float) for one in values):
        return read_counts(values, given)
    pairs = [one for one in values if is_pair(one)]
    if len(pairs) < len(values):
        other = next(one for one in values if not is_pair(one))
        raise EvalError(f"expected (reference, prediction) for every document, got {str(other)[:60]}")
    known = CORPUS_KINDS[kind].defaults
    chosen = freeze_options({name: value for name, value in given.items() if name in known})
    return Stats(frozen(pair_statistics(kind, pairs, chosen)))
