"""From a batch to scores. A scorer is a plain callable in a table keyed on output type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import TypeVar

import msgspec
import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.answers.batch import (
    Batch,
    GenBatch,
    LLBatch,
    Problems,
    RollingBatch,
    gen_batch,
    ll_batch,
    rolling_batch,
    take_documents,
)
from evalcore.core.answers.choice import MCBatch, mc_batch
from evalcore.core.metrics.choice import CHOICE_METRICS
from evalcore.core.metrics.custom import OWN
from evalcore.core.metrics.likelihood import LIKELIHOOD_METRICS, ROLLING_METRICS
from evalcore.core.metrics.metric import Emitted, Marks, Metric
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.column import (
    Column,
    Floats,
    Labels,
    Objects,
    Rows,
    Stats,
    blank_rows,
    build_column,
    emitted_part,
    merge_all,
    score_at,
)
from evalcore.core.records.errors import EvalError, locate, place, unknown
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)
from evalcore.core.records.task import MetricSpec, Task

__all__ = ["SCORERS", "Score", "Scorer", "Scores", "by_metric", "likelihood_scorer", "score_column"]


class Score(msgspec.Struct, frozen=True):
    """One metric's column over the documents of a batch; ``spec`` is None if no one declared it."""

    name: str
    column: Column
    spec: MetricSpec | None = None


Scores = tuple[Score, ...]

Scorer = Callable[[Task, Sequence[MetricSpec], Batch], Scores]

B = TypeVar("B", LLBatch, RollingBatch, MCBatch, GenBatch)


def by_metric(build: Callable[[Batch], B], metrics: PMap[str, Metric[B]]) -> Scorer:
    """A scorer that builds its batch once and asks every metric of the task.

    >>> from evalcore.core.answers.batch import make_batch
    >>> score = by_metric(gen_batch, TEXT_METRICS)
    >>> asked = [MetricSpec("exact_match"), MetricSpec("includes")]
    >>> [one.column.rows for one in score(Task("t", GENERATE_UNTIL), asked, make_batch([["It is 4"]], ["4"]))]
    [Floats(values=Array([0.])), Floats(values=Array([1.]))]
    """
    return partial(_by_metric, build, metrics)


def _by_metric(
    build: Callable[[Batch], B], metrics: PMap[str, Metric[B]], task: Task, specs: Sequence[MetricSpec], batch: Batch
) -> Scores:
    """Every metric of the task on a batch that is built once."""
    built = build(batch)
    return tuple(
        score
        for spec in specs
        for score in _scores(spec, _asked(task, spec, _function(spec, metrics, task), built), batch, built.problems)
    )


def _function(spec: MetricSpec, metrics: PMap[str, Metric[B]], task: Task) -> Callable[..., Emitted]:
    if spec.function is not None:
        return spec.function  # type: ignore[return-value]  # the user's own, by the contract of MetricSpec
    metric = metrics.get(spec.name)
    if metric is None:
        raise unknown("metric", spec.name, metrics, place(f"{task.name} ({task.output_type})"))
    return metric.score


def _asked(task: Task, spec: MetricSpec, function: Callable[..., Emitted], built: B) -> Emitted:
    """What a metric gives for a batch, whoever wrote it: rows, one per document, none of them NaN."""
    where = place(task.name, key=spec.name)
    try:
        emitted = function(built, spec.options)
    except Exception as raised:
        raise locate(raised, where) from raised
    for rows in emitted.values() if isinstance(emitted, Mapping) else (emitted,):
        found = rows.rows if isinstance(rows, Marks) else rows
        if not isinstance(found, Floats | Stats | Labels | Objects) or len(found.values) != len(built.samples):
            raise EvalError(f"expected {len(built.samples)} rows from metric {spec.name!r}, got {found!r}{where}")
    return emitted


def _scores(spec: MetricSpec, emitted: Emitted, batch: Batch, problems: Problems) -> Iterable[Score]:
    """One score, or of a metric that gives several one for each, holding only the documents that gave it."""
    if not isinstance(emitted, Mapping):
        yield Score(spec.name, score_column(emitted, batch, problems), spec)
        return
    for name, marks in emitted.items():
        whole = score_column(marks, batch, problems if name == OWN else {})
        yield Score(name if name != OWN else spec.name, emitted_part(whole), spec)


def score_column(emitted: Rows | Marks, batch: Batch, problems: Problems, *, finite: bool = True) -> Column:
    """What was emitted for a batch as a column; a number that is not finite is no score, unless ``finite`` is off."""
    marks = emitted if isinstance(emitted, Marks) else Marks(emitted, {})
    odd = _not_finite(marks.rows) if finite else {}
    missing = {**odd, **marks.missing, **{i: (UNSCORABLE, reason) for i, reason in problems.items()}}
    status = np.zeros(len(batch.samples), np.uint8)
    reasons: dict[int, str] = {}
    for i, (code, reason) in missing.items():
        status[i] = code
        if reason:
            doc_id = batch.samples[i].doc_id
            reasons[doc_id] = reason + place(batch.task, doc_id)
    return build_column(batch.keys, marks.rows, status, reasons)


def _not_finite(rows: Rows) -> dict[int, tuple[int, str]]:
    match rows:
        case Floats(values):
            odd = np.flatnonzero(~np.isfinite(values.floats)).tolist()
        case Objects(values):
            odd = [i for i, value in enumerate(values) if isinstance(value, float) and not isfinite(value)]
        case _:
            odd = []
    return {i: (UNSCORABLE, f"expected a finite score, got {score_at(rows, i)}") for i in odd}


def likelihood_scorer(single: PMap[str, Metric[LLBatch]], several: PMap[str, Metric[MCBatch]]) -> Scorer:
    """A document with choices is scored as multiple choice, one with a single likelihood as a plain one.

    >>> from evalcore.core.answers.batch import make_batch
    >>> score = likelihood_scorer(LIKELIHOOD_METRICS, CHOICE_METRICS)
    >>> mixed = make_batch([[(-1.0, True)], [(-2.0, False), (-1.0, False)]], [None, 0])
    >>> score(Task("t", LOGLIKELIHOOD), [MetricSpec("acc")], mixed)[0].column.rows
    Floats(values=Array([1., 0.]))
    """
    return partial(_by_kind, single, several)


def _by_kind(
    single: PMap[str, Metric[LLBatch]],
    several: PMap[str, Metric[MCBatch]],
    task: Task,
    specs: Sequence[MetricSpec],
    batch: Batch,
) -> Scores:
    """Plain likelihoods and choices apart, then together again."""
    for spec in specs:
        if spec.function is None and spec.name not in single and spec.name not in several:
            raise unknown("metric", spec.name, {*single, *several}, place(f"{task.name} ({task.output_type})"))
    listed = np.fromiter((len(sample.choices) > 0 for sample in batch.samples), np.bool_, len(batch.samples))
    many = (np.diff(batch.offsets) > 1) | listed
    parts = (
        *_partial(by_metric(ll_batch, single), single, task, specs, take_documents(batch, ~many)),
        *_partial(by_metric(mc_batch, several), several, task, specs, take_documents(batch, many)),
    )
    names = dict.fromkeys(part.name for part in parts)
    return tuple(
        Score(name, merge_all(part.column for part in parts if part.name == name), _spec(parts, name)) for name in names
    )


def _partial(
    scorer: Scorer, known: PMap[str, Metric[B]], task: Task, specs: Sequence[MetricSpec], batch: Batch
) -> Iterable[Score]:
    """Scores of a part of a task's documents; a metric that is not for their kind leaves them unscorable."""
    if not len(batch.samples):
        return
    ours = [spec for spec in specs if spec.name in known or spec.function is not None]
    yield from scorer(task, ours, batch)
    for spec in specs:
        if spec not in ours:
            reason = f"{spec.name} is not a metric of " + ("choices" if "acc_norm" in known else "one log-likelihood")
            missing = dict.fromkeys(range(len(batch.samples)), (UNSCORABLE, reason))
            yield Score(spec.name, score_column(Marks(blank_rows(len(batch.samples)), missing), batch, {}), spec)


def _spec(parts: Iterable[Score], name: str) -> MetricSpec | None:
    return next(part.spec for part in parts if part.name == name)


SCORERS: PMap[OutputType, Scorer] = pmap(
    {
        MULTIPLE_CHOICE: by_metric(mc_batch, CHOICE_METRICS),
        GENERATE_UNTIL: by_metric(gen_batch, TEXT_METRICS),
        LOGLIKELIHOOD: likelihood_scorer(LIKELIHOOD_METRICS, CHOICE_METRICS),
        LOGLIKELIHOOD_ROLLING: by_metric(rolling_batch, ROLLING_METRICS),
    }
)
