"""Which batch and which result belong to each output type, and results without a pipe around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import Batch, take_documents
from evalcore.core.answers.choice import MCBatch, mc_batch
from evalcore.core.answers.likelihood import LLBatch, RollingBatch, ll_batch, rolling_batch
from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult
from evalcore.core.answers.table import request_table
from evalcore.core.answers.text import GenBatch, all_generations
from evalcore.core.records.array import Bools
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Generate,
    LogLikelihood,
    OutputType,
    Rolling,
    Sample,
)

AnyBatch = LLBatch | RollingBatch | MCBatch | GenBatch
Build = Callable[[Batch], AnyBatch]


def _one_or_several(batch: Batch) -> AnyBatch:
    """Likelihoods of documents with choices as multiple choice, of others as plain ones."""
    return mc_batch(batch) if _find_several(batch).any() else ll_batch(batch)


def _find_several(batch: Batch) -> Bools:
    """Find the documents with choices."""
    listed = np.fromiter((len(sample.choices) > 0 for sample in batch.samples), np.bool_, len(batch.samples))
    return (np.diff(batch.offsets) > 1) | listed


KINDS: PMap[object, Build] = pmap(
    dict[object, Build](
        {
            MULTIPLE_CHOICE: mc_batch,
            GENERATE_UNTIL: all_generations,
            LOGLIKELIHOOD: _one_or_several,
            LOGLIKELIHOOD_ROLLING: rolling_batch,
            MCResult: mc_batch,
            GenResult: all_generations,
            LLResult: _one_or_several,
            RollingResult: rolling_batch,
            LogLikelihood: _one_or_several,
            Generate: all_generations,
            Rolling: rolling_batch,
        }
    )
)
"""What makes the batch whose items are the results of an output type, a kind of result or a kind of request."""


def results_of(wanted: OutputType | type[object], batch: Batch) -> Sequence[Result | str]:
    """Return a result per document, or the reason why there is none, by output type or kind of record.

    >>> from evalcore.core.answers.batch import make_batch
    >>> results_of(GENERATE_UNTIL, make_batch([["4", "5"]], ["4"]))[0].generations
    ('4', '5')
    """
    build = KINDS.get(wanted)
    if build is None:
        known = [kind.__name__ for kind in (MCResult, GenResult, LLResult, RollingResult)]
        raise EvalError(f"no result record for {wanted!r}; known are {', '.join(known)}")
    several = _find_several(batch)
    if build is _one_or_several and several.any() and not several.all():
        alone = [_one_or_several(take_documents(batch, np.arange(len(several)) == i)) for i in range(len(several))]
        return tuple(one.problems.get(0) or one[0] for one in alone)
    built = build(batch)
    return tuple(built.problems.get(i) or built[i] for i in range(len(built)))


def result_of(sample: Sample, answers: Iterable[Answer], *, filter: str = "none") -> Result:
    """Make the result of one document from its answers, of the kind that its requests call for.

    >>> from evalcore.core.records.request import Instance
    >>> asked = [Instance("t", 0, i, LogLikelihood("Q", c)) for i, c in enumerate("ab")]
    >>> made = result_of(Sample(0, 1, ("a", "b")), [Answer(one, ((-1.0, False),)) for one in asked])
    >>> made.lls, made.gold, made.instances[1].request.continuation
    ((-1.0, -1.0), (1,), 'b')
    """
    key = sample.doc_id
    found = sorted((answer for answer in answers if answer.doc_id == key), key=attrgetter("idx"))
    if not found:
        raise EvalError(f"cannot score empty instances: document {key} has no answer")
    replies = [reply for answer in found for reply in answer.replies]
    requests, counts = [one.instance.request for one in found], [len(one.replies) for one in found]
    asked = request_table(found[0].task, [key] * len(found), [one.idx for one in found], counts)
    ends, fell = np.array([0, len(replies)]), np.zeros(len(replies), np.bool_)
    table = asked.answered(replies, requests)
    batch = Batch(asked.task, filter, [sample], np.array([key]), replies, ends, fell, table)
    (made,) = results_of(type(requests[0]), batch)
    if isinstance(made, str):
        raise EvalError(made + place(asked.task, key))
    return made


def batch_of(results: Iterable[Result]) -> Batch:
    """Make the batch that holds these results, to try a metric or a scorer by hand.

    >>> batch = batch_of([MCResult((-1.0, -2.0), (False, False), (0,), ("yes", "no"))])
    >>> mc_batch(batch).lls.tolist(), batch.samples[0].choices
    ([[-1.0, -2.0]], ('yes', 'no'))
    """
    given = list(results)
    parts = [_take_apart(result, i) for i, result in enumerate(given)]
    samples = [sample for sample, _, _ in parts]
    return Batch(
        "plain",
        given[0].filter if given else "none",
        samples,
        np.array([sample.doc_id for sample in samples], np.int64),
        [reply for _, replies, _ in parts for reply in replies],
        np.cumsum([0, *(len(replies) for _, replies, _ in parts)]),
        np.array([fell for _, replies, back in parts for fell in back or [False] * len(replies)], np.bool_),
    )


def _take_apart(result: Result, i: int) -> tuple[Sample, Sequence[object], Sequence[bool]]:
    """The document, the replies and the fallbacks that a result was made of."""
    match result:
        case MCResult():
            tokens = result.tokens or (0,) * len(result.lls)
            replies: list[object] = list(zip(result.lls, result.greedy, tokens, strict=True))
            replies += [(value, False, 0) for value in result.unconditional]
            return result.sample or Sample(i, result.gold, result.choices), replies, ()
        case GenResult():
            return result.sample or Sample(i, result.golds), result.generations, result.fell_back
        case LLResult():
            return result.sample or Sample(i, result.target), [(result.value, result.greedy, result.tokens)], ()
        case RollingResult():
            return result.sample or Sample(i, result.text), [result.value], ()
