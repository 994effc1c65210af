"""Scorers that look at one document at a time, the user's own code among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from math import nan
from typing import Generic, TypeVar

import msgspec
import numpy as np

from evalcore.core.answers.batch import Batch
from evalcore.core.answers.kind import results_of
from evalcore.core.answers.result import GenResult, Result
from evalcore.core.answers.table import as_number
from evalcore.core.metrics.custom import read_scores
from evalcore.core.metrics.dispatch import Score, Scorer, Scores
from evalcore.core.metrics.metric import Marks, score_column
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, scored_part
from evalcore.core.records.document import decode_doc
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.request import Likelihood
from evalcore.core.records.row import Floats, Objects
from evalcore.core.records.task import MetricSpec, ProcessResults, Task

R = TypeVar("R", bound=Result)


def scorer_of(kind: type[R], function: Callable[[R], Mapping[str, object]]) -> Scorer:
    """A scorer from a function of one result record to ``{metric: score}``.

    A function of ``GenResult`` sees all generations; a list, a score for each, is left to the metric's reducers.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.records.request import MULTIPLE_CHOICE
    >>> from evalcore.core.answers.result import GenResult, MCResult
    >>> score = scorer_of(MCResult, lambda result: {"margin": max(result.lls) - min(result.lls)})
    >>> score(Task("t", MULTIPLE_CHOICE), [], make_batch([[-1.0, -3.5]], [0]))[0].column.rows
    Floats(values=Array([2.5]))
    """
    return RecordScorer(kind, function)


class RecordScorer(msgspec.Struct, Generic[R], frozen=True):
    """A scorer of one document's result; of generated texts, all generations together."""

    kind: type[R]
    function: Callable[[R], Mapping[str, object]]

    @property
    def together(self) -> bool:
        return issubclass(self.kind, GenResult)

    def __call__(self, task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
        return _collect(specs, batch, [self._score(result) for result in results_of(self.kind, batch)])

    def _score(self, result: Result | str) -> Mapping[str, object] | NoScores:
        if isinstance(result, self.kind):
            emitted = _guarded(lambda: self.function(result))
            return emitted if isinstance(emitted, NoScores) else _check_lists(emitted, result)
        return NoScores(UNSCORABLE, result if isinstance(result, str) else f"expected {self.kind.__name__}")


def _check_lists(emitted: Mapping[str, object], result: Result) -> Mapping[str, object]:
    """Check that lists hold a score for each generation."""
    scores = {name: read_scores(value, result) for name, value in emitted.items()}
    wrong = {name: NoValue(UNSCORABLE, found) for name, found in scores.items() if isinstance(found, str)}
    return {**emitted, **{name: found for name, found in scores.items() if isinstance(found, list)}, **wrong}


def from_process_results(process: ProcessResults, *, finite: bool = True) -> Scorer:
    """lm-eval's ``process_results(doc, results) -> {metric: value}`` as one more scorer.

    The document is decoded afresh and the results are copied, so user code cannot change either. With ``finite`` off
    a NaN it returns is a score like any other, for an aggregation that knows what to make of it.

    >>> from evalcore.core.answers.batch import make_batch
    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> score = from_process_results(lambda doc, results: {"length": len(results[0])})
    >>> score(Task("t", GENERATE_UNTIL), [], make_batch([["four"]]))[0].column.rows
    Floats(values=Array([4.]))
    """
    return partial(_by_process, process, finite)


def _by_process(process: ProcessResults, finite: bool, task: Task, specs: Sequence[MetricSpec], batch: Batch) -> Scores:
    """Each document through lm-eval's own kind of function."""

    def one(i: int) -> Mapping[str, object] | NoScores:
        results = [_given(reply) for reply in batch.list_replies(i)]
        return _guarded(lambda: process(decode_doc(batch.samples[i]), results))  # type: ignore[arg-type]

    return _collect(specs, batch, [one(i) for i in range(len(batch.samples))], finite=finite)


def _given(reply: object) -> object:
    """A reply as lm-eval's tasks expect it: likelihoods as (value, is_greedy)."""
    return tuple(reply[:2]) if isinstance(reply, Likelihood) else deepcopy(reply)


class NoScores(msgspec.Struct, frozen=True):
    """Why a document has no scores at all."""

    status: int
    reason: str


def _guarded(call: Callable[[], object]) -> Mapping[str, object] | NoScores:
    """What user code emitted, copied; whatever it raises fails its document and no other."""
    try:
        emitted = call()
        if emitted is None:
            return {}
        if not isinstance(emitted, Mapping) or not all(isinstance(name, str) for name in emitted):
            return NoScores(FAILED, f"expected a dict of metrics, got {emitted!r}")
        return {name: _kept(value) for name, value in emitted.items()}
    except (Exception, SystemExit) as raised:
        return NoScores(FAILED, f"{type(raised).__name__}: {raised}")


def _collect(
    specs: Sequence[MetricSpec],
    batch: Batch,
    emitted: Sequence[Mapping[str, object] | NoScores],
    *,
    finite: bool = True,
) -> Scores:
    declared = {spec.name: spec for spec in specs}
    names = dict.fromkeys(name for one in emitted if not isinstance(one, NoScores) for name in one)
    undeclared = sorted(set(names) - set(declared))

    def column_of(name: str) -> Column:
        return score_column(collected([_emission(one, name) for one in emitted]), batch, {}, finite=finite)

    return (
        *(Score(spec.name, column_of(spec.name), spec) for spec in specs),
        *(Score(name, scored_part(column_of(name))) for name in undeclared),
    )


class NoValue(msgspec.Struct, frozen=True):
    """A document that emitted nothing for a metric, and how to count it."""

    status: int
    reason: str = ""


def _emission(one: Mapping[str, object] | NoScores, name: str) -> object:
    if isinstance(one, NoScores):
        return NoValue(one.status, one.reason)
    return one[name] if name in one else NoValue(NOT_EMITTED)


def collected(values: Sequence[object]) -> Marks:
    """Values of any type as rows: numbers where all are numbers, else objects.

    >>> collected([1.0, 0.5]).rows
    Floats(values=Array([1. , 0.5]))
    """
    missing = {i: (v.status, v.reason) for i, v in enumerate(values) if isinstance(v, NoValue)}
    missing |= {i: (UNSCORABLE, "the score is None") for i, v in enumerate(values) if v is None}
    if all(isinstance(value, float) for i, value in enumerate(values) if i not in missing):
        return Marks(Floats(Array([nan if i in missing else value for i, value in enumerate(values)])), missing)
    return Marks(Objects(tuple(None if i in missing else value for i, value in enumerate(values))), missing)


def _kept(value: object) -> object:
    """The user's own value, copied; numbers as floats, so that they do not depend on their neighbours' types."""
    return as_number(value) if isinstance(value, int | float | np.number | np.bool_) else deepcopy(value)
