"""Strategies for whole small tasks: documents and answers of each of the four output types."""

from __future__ import annotations

from math import nan

import numpy as np
from hypothesis import strategies as st
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import Batch
from evalcore.core.answers.group import group_by_doc
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Failure,
    Generate,
    Gold,
    Instance,
    Likelihood,
    LogLikelihood,
    OutputType,
    Rolling,
    Sample,
    freeze_options,
)
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task
from evalcore.testing.records import likelihoods, texts

Draw = st.DrawFn


class Case(FrozenRecord, frozen=True):
    """A task with its documents and the answers to them."""

    task: Task
    samples: tuple[Sample, ...]
    answers: tuple[Answer, ...]


NUMBERS = Step.of("regex", regex_pattern=r"(-?[0-9][0-9.,]*)")

TASKS: PMap[OutputType, Task] = pmap(
    {
        MULTIPLE_CHOICE: Task(
            "mc",
            MULTIPLE_CHOICE,
            (
                *map(MetricSpec, ("acc", "acc_norm", "acc_bytes", "exact_match", "mcc", "brier_score", "ece")),
                MetricSpec("f1", options=freeze_options(average="macro")),
                *map(MetricSpec, ("likelihood", "choice_prob", "acc_all")),
            ),
        ),
        GENERATE_UNTIL: Task(
            "gen",
            GENERATE_UNTIL,
            tuple(map(MetricSpec, ("exact_match", "f1", "anls", "includes", "extraction_rate"))),
            (
                Pipeline("none", (Step.of("take_first"),)),
                Pipeline("number", (NUMBERS, Step.of("majority_vote"))),
            ),
        ),
        LOGLIKELIHOOD: Task("ll", LOGLIKELIHOOD, (MetricSpec("perplexity"), MetricSpec("acc"))),
        LOGLIKELIHOOD_ROLLING: Task("roll", LOGLIKELIHOOD_ROLLING),
    }
)
"""A task of each output type that asks for many metrics; a host passes its own to ``cases``."""

RAGGED = Task(
    "gen",
    GENERATE_UNTIL,
    (
        MetricSpec("exact_match", reducers=("mean", "max", "pass@2", "maj@2")),
        MetricSpec("f1", reducers=("mean",)),
    ),
    ragged=True,
)
"""Generations with ragged repeats, reduced in several ways."""


def cases(
    output_type: OutputType,
    *,
    task: Task | None = None,
    ragged: bool = False,
    failures: bool = True,
    max_docs: int = 6,
) -> st.SearchStrategy[Case]:
    """Draw a task of this output type with its documents and answers, in any order.

    ``task`` is a host's own; ``ragged`` gives generations one to three repeats each; ``failures`` lets models fail now
    and then. Ties, several golds, minus infinity, empty and non-Latin texts all occur.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(cases(MULTIPLE_CHOICE))
    ... def check(case):
    ...     assert len(case.answers) == sum(len(sample.choices) for sample in case.samples)
    >>> check()
    """
    chosen = task or (RAGGED if ragged else TASKS[output_type])
    return _draw_case(chosen, ragged, failures, max_docs)


@st.composite
def _draw_case(draw: Draw, task: Task, ragged: bool, failures: bool, max_docs: int) -> Case:
    keys = draw(st.lists(st.integers(0, 40), min_size=1, max_size=max_docs, unique=True))
    made = [DOCUMENTS[task.output_type](draw, task.name, key, ragged, failures) for key in keys]
    asked = draw(st.permutations([answer for _, found in made for answer in found]))
    return Case(task, tuple(sample for sample, _ in made), tuple(asked))


Document = tuple[Sample, list[Answer]]


def _draw_choice(draw: Draw, task: str, key: int, ragged: bool, failures: bool) -> Document:
    choices = draw(st.lists(texts(), min_size=1, max_size=4).map(tuple))
    index = st.integers(0, len(choices) - 1)
    gold = draw(index | st.lists(index, min_size=1, max_size=3).map(tuple) | st.sampled_from(choices) | st.just(9))
    broken = st.just(Likelihood(nan)) if draw(st.integers(0, 9)) == 0 else st.nothing()
    reply = likelihoods() | broken | (st.just(Failure("timeout")) if _fail_sometimes(draw, failures) else st.nothing())
    asked = [Instance(task, key, i, LogLikelihood("Q", text)) for i, text in enumerate(choices)]
    return Sample(key, gold, choices, cluster=key % 3), [Answer(one, (draw(reply),)) for one in asked]


def _draw_generation(draw: Draw, task: str, key: int, ragged: bool, failures: bool) -> Document:
    golds: st.SearchStrategy[Gold] = texts() | st.lists(texts(), max_size=3).map(tuple) | st.integers(0, 50)
    repeats = draw(st.integers(1, 3)) if ragged else 1
    reply = texts() | (st.just(Failure("timeout")) if _fail_sometimes(draw, failures) else st.nothing())
    replies = tuple(draw(st.lists(reply, min_size=repeats, max_size=repeats)))
    return Sample(key, draw(golds)), [Answer(Instance(task, key, 0, Generate("Q"), 3 if ragged else 1), replies)]


def _draw_likelihood(draw: Draw, task: str, key: int, ragged: bool, failures: bool) -> Document:
    reply = Failure("timeout") if _fail_sometimes(draw, failures) else draw(likelihoods())
    return Sample(key, "target"), [Answer(Instance(task, key, 0, LogLikelihood("Q", "target")), (reply,))]


def _draw_rolling(draw: Draw, task: str, key: int, ragged: bool, failures: bool) -> Document:
    text = draw(texts())
    reply = Failure("timeout") if _fail_sometimes(draw, failures) else draw(likelihoods())
    return Sample(key, text), [Answer(Instance(task, key, 0, Rolling(text)), (reply,))]


def _fail_sometimes(draw: Draw, failures: bool) -> bool:
    return failures and draw(st.integers(0, 7)) == 7


DOCUMENTS = pmap(
    {
        MULTIPLE_CHOICE: _draw_choice,
        GENERATE_UNTIL: _draw_generation,
        LOGLIKELIHOOD: _draw_likelihood,
        LOGLIKELIHOOD_ROLLING: _draw_rolling,
    }
)


def make_batch(case: Case) -> Batch:
    """Make what a scorer receives: the documents in key order with the first reply of each instance.

    >>> one = Answer(Instance("gen", 3, 0, Generate("Q")), ("a",))
    >>> make_batch(Case(TASKS[GENERATE_UNTIL], (Sample(3, "a"),), (one,))).replies
    ('a',)
    """
    grouped = group_by_doc(case.answers)
    docs = sorted(case.samples, key=lambda sample: sample.doc_id)
    each = [grouped[sample.doc_id] for sample in docs]
    flat = tuple(answer.replies[0] for found in each for answer in found)
    offsets = np.concatenate([[0], np.cumsum([len(found) for found in each])]).astype(np.int64)
    keys = np.array([sample.doc_id for sample in docs], np.int64)
    return Batch(case.task.name, "none", tuple(docs), keys, flat, offsets, np.zeros(len(flat), np.bool_))


def batches(output_type: OutputType, *, max_docs: int = 6) -> st.SearchStrategy[Batch]:
    """Draw batches of documents as a scorer of this output type receives them.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(batches(LOGLIKELIHOOD))
    ... def check(batch):
    ...     assert batch.keys.tolist() == sorted(sample.doc_id for sample in batch.samples)
    >>> check()
    """
    return cases(output_type, failures=False, max_docs=max_docs).map(make_batch)
