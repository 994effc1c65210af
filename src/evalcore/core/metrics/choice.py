"""Multiple-choice metrics: array expressions over a padded (documents × choices) matrix.

Ties: the first of the best choices wins, as with ``numpy.argmax``.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import read_part
from evalcore.core.answers.choice import MCBatch, mc_batch, spread, spread_choices
from evalcore.core.answers.result import count_bytes
from evalcore.core.metrics.metric import Marks, Metric, only_where
from evalcore.core.metrics.verdict import tell_likeliest, tell_likeliest_by_byte, tell_likeliest_by_character
from evalcore.core.records.array import Floats64, frozen
from evalcore.core.records.document import decode_doc
from evalcore.core.records.request import Options, Sample, freeze_options
from evalcore.core.records.row import Floats, Labels, Objects, Stats


def _hit(batch: MCBatch, scores: Floats64) -> Floats:
    best = np.argmax(np.where(batch.valid, scores, -inf), axis=1)
    return Floats(frozen(batch.is_gold[np.arange(len(best)), best].astype(np.float64)))


def _normed(batch: MCBatch, lengths: Floats64, unit: str) -> Marks:
    known = np.all((lengths > 0) | ~batch.valid, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        marks = _hit(batch, batch.lls / lengths)
    return only_where(known, marks, f"needs the length of every choice in {unit}, and none may be 0")


def acc(batch: MCBatch, options: Options) -> Floats:
    """1 if the likeliest choice is right.

    >>> from evalcore.core.answers.choice import make_choices
    >>> acc(make_choices([[-1.0, -1.0], [-2.0, -1.0]], golds=[1, 1]), {}).values      # in a tie the first wins
    Array([0., 1.])
    """
    return _hit(batch, batch.lls)


def acc_norm(batch: MCBatch, options: Options) -> Marks:
    """``acc`` on log-likelihood per character of the choice.

    >>> from evalcore.core.answers.choice import make_choices
    >>> batch = make_choices([[-2.0, -3.0]], [1], choices=("no", "not yet"))
    >>> acc(batch, {}).values, acc_norm(batch, {}).rows.values      # -2/2 < -3/7
    (Array([0.]), Array([1.]))
    """
    return _normed(batch, spread_choices(batch, len), "characters")


def acc_bytes(batch: MCBatch, options: Options) -> Marks:
    """``acc`` on log-likelihood per UTF-8 byte of the choice.

    >>> from evalcore.core.answers.choice import make_choices
    >>> batch = make_choices([[-3.0, -4.0]], [1], choices=("ab", "日本"))
    >>> acc_norm(batch, {}).rows.values, acc_bytes(batch, {}).rows.values      # -4/2, but -4/6
    (Array([0.]), Array([1.]))
    """
    return _normed(batch, spread_choices(batch, count_bytes), "bytes")


def acc_token(batch: MCBatch, options: Options) -> Marks:
    """``acc`` on log-likelihood per token of the choice, where the model told its tokens.

    >>> from evalcore.core.answers.choice import make_choices
    >>> acc_token(make_choices([[(-3.0, False, 1), (-4.0, False, 2)]], golds=[1]), {}).rows.values
    Array([1.])
    >>> acc_token(make_choices([[-3.0, -4.0]], golds=[1]), {}).missing
    {0: (1, 'needs the length of every choice in tokens, and none may be 0')}
    """
    return _normed(batch, spread(batch, read_part(batch.flat, 2), nan), "tokens")


def acc_mutual_info(batch: MCBatch, options: Options) -> Marks:
    """``acc`` on log P(choice | context) − log P(choice).

    >>> from evalcore.core.answers.choice import make_choices
    >>> asked_twice = [[-1.0, -2.0, -1.5, -9.0]]      # first in context, then without
    >>> acc_mutual_info(make_choices(asked_twice, [1], choices=("often said", "rarely said")), {}).rows.values
    Array([1.])
    """
    prior = spread(batch, read_part(batch.flat, 0), nan, unconditional=True)
    usable = np.all(np.isfinite(prior) | ~batch.valid, axis=1)
    with np.errstate(invalid="ignore"):
        marks = _hit(batch, batch.lls - prior)
    return only_where(usable, marks, "needs finite unconditional log-likelihoods: ask for each choice without context")


def exact_match(batch: MCBatch, options: Options) -> Marks:
    """1 if greedy decoding would give a right choice.

    >>> from evalcore.core.answers.choice import make_choices
    >>> exact_match(make_choices([[(-1.0, False), (-2.0, True)]], golds=[1]), {}).rows.values      # not the likeliest
    Array([1.])
    """
    greedy = spread(batch, read_part(batch.flat, 1), 0.0)
    hits = np.any((greedy > 0) & batch.is_gold, axis=1)
    known = ~np.any(np.isnan(greedy), axis=1)
    return only_where(known, Floats(frozen(hits.astype(np.float64))), "expected is_greedy to be true or false")


def label_pair(batch: MCBatch, options: Options) -> Labels:
    """Gold and predicted class, for F1 and MCC. With several golds, the predicted one if it is among them.

    >>> from evalcore.core.answers.choice import make_choices
    >>> label_pair(make_choices([[-2.0, -1.0], [-2.0, -1.0]], golds=[0, (0, 1)]), {}).values.data.tolist()
    [[0, 1], [1, 1]]
    """
    best = np.argmax(np.where(batch.valid, batch.lls, -inf), axis=1)
    right = batch.is_gold[np.arange(len(best)), best]
    return Labels(frozen(np.column_stack([np.where(right, best, batch.gold), best])))


def probabilities(batch: MCBatch) -> Floats64:
    """Choice probabilities, summed choice by choice so that padding cannot change a bit."""
    raised = np.where(batch.valid, np.exp(batch.lls - batch.lls.max(axis=1, keepdims=True, initial=-inf)), 0.0)
    return raised / _across(raised)[:, None]


def _across(matrix: Floats64) -> Floats64:
    total = np.zeros(len(matrix))
    for choice in matrix.T:
        total = total + choice
    return total


def _target(batch: MCBatch) -> Floats64:
    """All mass on the gold; shared equally where there are several."""
    return np.asarray(batch.is_gold / np.maximum(batch.is_gold.sum(axis=1, keepdims=True), 1), np.float64)


def brier_score(batch: MCBatch, options: Options) -> Floats:
    """Squared distance between the choice probabilities and the truth (0 best, 2 worst).

    >>> from evalcore.core.answers.choice import make_choices
    >>> brier_score(make_choices([[-1.0, -1.0], [0.0, -900.0]], golds=[0, 1]), {}).values
    Array([0.5, 2. ])
    """
    with np.errstate(invalid="ignore"):
        return Floats(frozen(_across((probabilities(batch) - _target(batch)) ** 2)))


def choice_prob(batch: MCBatch, options: Options) -> Floats:
    """The probability given to the right choice(s).

    >>> from evalcore.core.answers.choice import make_choices
    >>> choice_prob(make_choices([[-5.0, -5.0, -5.0, -5.0]] * 2, golds=[0, (0, 3)]), {}).values
    Array([0.25, 0.5 ])
    """
    with np.errstate(invalid="ignore"):
        return Floats(frozen(_across(np.where(batch.is_gold, probabilities(batch), 0.0))))


def likelihood(batch: MCBatch, options: Options) -> Marks:
    """The log-likelihood of the right choice, the best of them if several.

    >>> from evalcore.core.answers.choice import make_choices
    >>> likelihood(make_choices([[-1.0, -2.0, -4.0]], golds=[(1, 2)]), {}).rows.values
    Array([-2.])
    """
    best = np.max(np.where(batch.is_gold, batch.lls, -inf), axis=1)
    return only_where(np.isfinite(best), Floats(frozen(best)), "the right choice has log-likelihood -inf")


def ece(batch: MCBatch, options: Options) -> Stats:
    """Confidence and correctness, for the expected calibration error.

    >>> from evalcore.core.answers.choice import make_choices
    >>> ece(make_choices([[-1.0, -1.0]], golds=[1]), {}).values.data.tolist()
    [[0.5, 0.0]]
    """
    with np.errstate(invalid="ignore"):
        confidence = probabilities(batch).max(axis=1)
    return Stats(frozen(np.column_stack([confidence, acc(batch, options).values.floats])))


def acc_all(batch: MCBatch, options: Options) -> Objects:
    """Correctness and question, for "every answer to the question is right".

    >>> from evalcore.core.answers.choice import make_choices
    >>> acc_all(make_choices([[-1.0, -2.0]], golds=[0]), {}).values      # alone: its own question
    ((True, ('doc', 0)),)
    """
    hits = acc(batch, options).values.floats.tolist()
    return Objects(tuple((hit > 0, question_of(sample)) for hit, sample in zip(hits, batch.samples, strict=True)))


def bypass(batch: MCBatch, options: Options) -> Objects:
    """No score: the answers are recorded, nothing is measured.

    >>> from evalcore.core.answers.choice import make_choices
    >>> bypass(make_choices([[-1.0, -2.0]], golds=[0]), {})
    Objects(values=(None,))
    """
    return Objects((None,) * len(batch.samples))


def question_of(sample: Sample) -> object:
    """The question a document belongs to: lm-eval's ``idx`` of paragraph and question, else its cluster.

    >>> question_of(Sample(3, doc=b'{"idx": {"paragraph": 1, "question": 2}}'))
    (1, 2)
    """
    doc = decode_doc(sample)
    idx = doc.get("idx") if isinstance(doc, dict) else None
    if isinstance(idx, dict) and "question" in idx:
        return (idx.get("paragraph"), idx["question"])
    return ("doc", sample.doc_id) if sample.cluster is None else sample.cluster


F1_DEFAULTS = freeze_options(average="binary", pos_label=1)
CHOICE_METRICS: PMap[str, Metric[MCBatch]] = pmap(
    {
        "acc": Metric(acc, mc_batch, explain=tell_likeliest),
        "acc_norm": Metric(acc_norm, mc_batch, explain=tell_likeliest_by_character),
        "acc_bytes": Metric(acc_bytes, mc_batch, explain=tell_likeliest_by_byte),
        "acc_token": Metric(acc_token, mc_batch),
        "acc_mutual_info": Metric(acc_mutual_info, mc_batch, unconditional=True),
        "exact_match": Metric(exact_match, mc_batch),
        "f1": Metric(label_pair, mc_batch, "f1", options=("average", "pos_label"), defaults=F1_DEFAULTS),
        "mcc": Metric(label_pair, mc_batch, aggregation="matthews_corrcoef", bounds=(-1.0, 1.0)),
        "brier_score": Metric(brier_score, mc_batch, "brier_score", False, (0.0, 2.0)),
        "likelihood": Metric(likelihood, mc_batch, bounds=(-inf, 0.0)),
        "choice_prob": Metric(choice_prob, mc_batch),
        "ece": Metric(ece, mc_batch, "ece", False, options=("bins",), defaults=freeze_options(bins=10)),
        "acc_all": Metric(acc_all, mc_batch, aggregation="acc_all"),
        "bypass": Metric(bypass, mc_batch, aggregation="bypass", higher_is_better=None),
    }
)
