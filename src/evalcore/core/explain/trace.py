"""One document through the pipe again, step by step. Scoring keeps only the result; a trace shows the way.

The filters, scorers and reducers are the functions that scoring uses, on a batch of one document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter, signature
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.answers.chunk import gather_replies
from evalcore.core.answers.filtrate import Filtrate
from evalcore.core.filters.chain import FILTERS, trace_filters
from evalcore.core.filters.reply import Filter, Fired, Replies, nested, replies
from evalcore.core.pipeline import score_repeats, score_task, tabulate_answers
from evalcore.core.records.array import Ints64
from evalcore.core.records.column import list_outcomes
from evalcore.core.records.outcome import Outcome, Unscorable
from evalcore.core.records.request import Answer, Sample
from evalcore.core.records.task import MetricKey, Pipeline, Step, Task
from evalcore.core.tables import (
    EVALCORE,
    BoundPipeline,
    Tables,
    bind_pipeline,
    pipelines_of,
    specs_of,
)


class StepTrace(Struct, frozen=True):
    """What one filter did to the replies of one unit: a rule (-1: fallback) and a note for each reply it left."""

    name: str
    before: tuple[object, ...]
    after: tuple[object, ...]
    rules: tuple[int, ...]
    notes: tuple[str, ...]


class Judged(Struct, frozen=True):
    """A metric on one repeat of a document: its outcome, and how it came about."""

    metric: str
    outcome: Outcome
    how: str


class DocumentTrace(Struct, frozen=True):
    """A document under one pipeline. ``steps`` has the trace of each unit: of the document, or of each of its choices.

    ``repeats`` are the scores of each remaining reply, ``outcomes`` what the reducers made of them. ``problem``
    says why there are none.
    """

    filter: str
    steps: tuple[tuple[StepTrace, ...], ...] = ()
    kept: tuple[object, ...] = ()
    rules: tuple[int, ...] = ()
    repeats: tuple[tuple[Judged, ...], ...] = ()
    outcomes: tuple[tuple[MetricKey, Outcome], ...] = ()
    problem: str | None = None


def trace_pipeline(
    pipeline: Pipeline, texts: Sequence[object], sample: Sample, filters: PMap[str, Filter] = FILTERS
) -> tuple[StepTrace, ...]:
    """Trace every step of a chain on the replies of one unit; the last ``after`` is what scoring keeps.

    >>> steps = (Step.of("regex", regex_pattern="([0-9]+)"), Step.of("take_first"))
    >>> [(one.name, one.after, one.notes) for one in trace_pipeline(Pipeline("p", steps), ["4 or 5", "6"], Sample(0))]
    [('regex', ('4', '6'), ("match 1 of 2 of '([0-9]+)'", ...)), ('take_first', ('4',), ('reply 1 of 2',))]
    """
    seen = trace_filters(pipeline, texts, sample, filters)
    out: list[StepTrace] = []
    for step, (before, after) in zip(pipeline.steps, pairwise(seen), strict=True):
        fired = Fired(fill_options(step, filters), before.replies, before.rules, after.replies, after.rules)
        out.append(StepTrace(step.name, before.replies, after.replies, after.rules, filters[step.name].explain(fired)))
    return tuple(out)


def fill_options(step: Step, filters: PMap[str, Filter]) -> Mapping[str, object]:
    """Fill a step's options with the defaults of its filter."""
    known = signature(filters[step.name].make).parameters.values()
    return {one.name: one.default for one in known if one.default is not Parameter.empty} | dict(step.options)


def trace_document(
    task: Task, sample: Sample, answers: Iterable[Answer], *, tables: Tables = EVALCORE
) -> tuple[DocumentTrace, ...]:
    """Trace one document under every pipeline of its task.

    >>> from evalcore.core.records.request import GENERATE_UNTIL, Generate, Instance
    >>> task = Task("sums", GENERATE_UNTIL)
    >>> [found] = trace_document(task, Sample(0, gold="4"), [Answer(Instance("sums", 0, 0, Generate("2+2=")), ("4",))])
    >>> found.kept, found.repeats[0][0].how
    (('4',), "equal to the gold '4'")
    """
    task = replace(task, metrics=specs_of(task, tables))
    given = tuple(answers)
    return tuple(_trace_one(task, one, sample, given, tables) for one in pipelines_of(task, tables))


def _trace_one(
    task: Task, pipeline: Pipeline, sample: Sample, answers: Sequence[Answer], tables: Tables
) -> DocumentTrace:
    keys = np.array([sample.doc_id], np.int64)
    raw = gather_replies(task, keys, tabulate_answers(answers), tables)
    scored = score_task(replace(task, filters=(pipeline,)), [sample], answers, tables=tables, keep_replies=True)
    results = tuple(
        (one.key, dict(list_outcomes(one.column))[sample.doc_id]) for one in scored.columns if len(one.column)
    )
    if raw.problems:
        return DocumentTrace(pipeline.name, outcomes=results, problem=raw.problems[0][1])
    if not len(scored.provenance[0].keys):  # an entry failed on it
        told = (one.reason for _, one in results if isinstance(one, Unscorable))
        return DocumentTrace(pipeline.name, outcomes=results, problem=next(told, None))
    steps = tuple(trace_pipeline(pipeline, unit, sample, tables.filters) for unit in nested(raw.replies))
    kept, bound = scored.provenance[0], bind_pipeline(task, pipeline, tables)
    return DocumentTrace(
        pipeline.name,
        steps,
        kept.replies,
        tuple(kept.rules.data.tolist()),
        _judge_repeats(bound, _rebuild(pipeline, sample, raw.replies, steps)),
        results,
    )


def _rebuild(pipeline: Pipeline, sample: Sample, raw: Replies, steps: Sequence[Sequence[StepTrace]]) -> Filtrate:
    """Make what the pipeline left of this document."""
    keys: Ints64 = np.array([sample.doc_id], np.int64)
    out = raw
    if pipeline.steps:
        made = replies([unit[-1].after for unit in steps])
        out = Replies(made.values, made.offsets, np.array([r for unit in steps for r in unit[-1].rules], np.int8))
    return Filtrate([sample], keys, out, np.array([len(steps)], np.int64))


def _judge_repeats(bound: BoundPipeline, left: Filtrate) -> tuple[tuple[Judged, ...], ...]:
    """Judge each repeat by every metric, before any reducer."""
    _, scores = score_repeats(bound, left)
    return tuple(
        tuple(
            Judged(score.name, outcome, "" if score.explain is None else score.explain())
            for score in repeat
            for _, outcome in list_outcomes(score.column)
        )
        for repeat in scores
    )
