"""Answers to columns: group, filter, score, reduce, in chunks of whole documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from evalcore.core.aggregate.spread import cluster_codes
from evalcore.core.answers.batch import plain_batch
from evalcore.core.answers.chunk import as_lists, by_unit, documents, gather, passes, refuse_strangers
from evalcore.core.answers.table import AnswerTable, tabulate
from evalcore.core.filters.chain import FilterFn, Replies, chain, scope_of
from evalcore.core.metrics.dispatch import Scorer
from evalcore.core.records.array import Array, Ints64, frozen
from evalcore.core.records.column import EMPTY, Column, blank_rows, column, merge_all, outcomes
from evalcore.core.records.errors import EvalError, locate, place, unknown
from evalcore.core.records.outcome import UNSCORABLE, Outcome
from evalcore.core.records.request import GENERATE_UNTIL, Answer, Sample
from evalcore.core.records.score import Provenance, Scored, ScoredColumn, merge_scored
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Task
from evalcore.core.repeats.repeated_score import column_key, reduce_scores
from evalcore.core.tables import EVALCORE, Tables, pipelines_of, specs_of

__all__ = ["CHUNK", "Provenance", "Scored", "merge_scored", "score_doc", "score_task"]

CHUNK = 8192
"""Documents scored at a time: large enough for arrays to pay, small enough for memory to stay flat."""


def score_task(
    task: Task,
    samples: Iterable[Sample],
    answers: Iterable[Answer] | AnswerTable,
    *,
    tables: Tables = EVALCORE,
    chunk: int = CHUNK,
    keep_replies: bool = False,
) -> Scored:
    """Score every document of a task; the order of samples and answers is irrelevant.

    >>> from evalcore.core.records.request import GENERATE_UNTIL, Generate, Instance
    >>> task = Task("sums", GENERATE_UNTIL, (MetricSpec("exact_match"),))
    >>> answer = Answer(Instance("sums", 0, 0, Generate("2+2=")), ("4",))
    >>> outcomes(score_task(task, [Sample(0, gold="4")], [answer]).column("exact_match,none"))
    ((0, Ok(score=1.0)),)
    """
    task = task if task.metrics else replace(task, metrics=specs_of(task, tables))
    docs, keys = documents(task, samples)
    table = tabulate(answers)
    refuse_strangers(task, keys, table)
    try:
        plans = [_plan(task, pipeline, tables) for pipeline in pipelines_of(task, tables)]
    except EvalError as wrong:
        raise locate(wrong, place(task.name)) from wrong
    parts: list[Scored] = []
    for plan in plans:
        size = max(len(docs) if plan.whole else chunk, 1)
        parts += [
            _score_chunk(task, plan, docs[a : a + size], keys[a : a + size], table, tables, keep_replies)
            for a in range(0, len(docs), size)
        ]
    if not parts:
        parts = [_nothing(task, plan, tables) for plan in plans]
    return replace(merge_scored(parts), clusters=_clusters(task, docs))


def score_doc(
    task: Task, sample: Sample, answers: Iterable[Answer], *, tables: Tables = EVALCORE
) -> dict[MetricKey, Outcome]:
    """One document: the batch of one.

    >>> from evalcore.core.records.request import MULTIPLE_CHOICE, Instance, LogLikelihood
    >>> lls = [-2.1, -1.5, -0.8, -3.2]
    >>> asked = [Instance("t", 0, i, LogLikelihood("Q", c)) for i, c in enumerate("abcd")]
    >>> replies = [Answer(one, ((ll, False),)) for one, ll in zip(asked, lls)]
    >>> score_doc(Task("t", MULTIPLE_CHOICE), Sample(0, gold=2, choices=("a", "b", "c", "d")), replies)
    {MetricKey(metric='acc', filter='none'): Ok(score=1.0), MetricKey(metric='acc_norm', filter='none'): Ok(score=1.0)}
    """
    scored = score_task(task, [sample], answers, tables=tables)
    return {one.key: outcomes(one.column)[0][1] for one in scored.columns if len(one.column)}


def _clusters(task: Task, docs: Sequence[Sample]) -> tuple[tuple[int, int], ...]:
    named = [doc for doc in docs if doc.cluster is not None]
    codes = cluster_codes([doc.cluster for doc in named], task=task.name)
    return tuple(zip(map(attrgetter("doc_id"), named), codes.tolist(), strict=True))


# --- one chunk --------------------------------------------------------------------------------------------------


class _Plan(Struct, frozen=True):
    pipeline: Pipeline
    specs: tuple[MetricSpec, ...]
    apply: FilterFn
    score: Scorer
    whole: bool
    lists: bool


def _plan(task: Task, pipeline: Pipeline, tables: Tables) -> _Plan:
    own = pipeline.metrics
    scorer = tables.scorers.get(task.output_type)
    if task.process_results is not None:
        scorer = tables.process_results(task.process_results)
    if scorer is None:
        raise unknown("output type", task.output_type, tables.scorers, place(task.name))
    return _Plan(
        pipeline,
        specs_of(task, tables) if own is None else own,
        chain(pipeline, tables.filters),
        scorer,
        scope_of(pipeline, tables.filters) == "task",
        _leaves_lists(task, pipeline, specs_of(task, tables) if own is None else own),
    )


def _leaves_lists(task: Task, pipeline: Pipeline, specs: Sequence[MetricSpec]) -> bool:
    """Whether user code gets all replies of a document at once: no filter takes one of them, no reducer awaits them."""
    users = task.process_results is not None or (bool(specs) and all(spec.lists for spec in specs))
    taken = any(step.name == "take_first" for step in pipeline.steps)
    return bool(pipeline.steps) and users and not taken and not any(spec.reducers for spec in specs)


def _score_chunk(
    task: Task,
    plan: _Plan,
    docs: Sequence[Sample],
    keys: Ints64,
    table: AnswerTable,
    tables: Tables,
    keep: bool,
) -> Scored:
    raw = gather(task, keys, table.rows(int(keys[0]), int(keys[-1]) + 1))
    kept = [docs[i] for i in np.flatnonzero(raw.usable).tolist()] if raw.problems else docs
    kept_keys = keys[raw.usable]
    try:
        out = plan.apply(raw.replies, by_unit(kept, raw.units))
    except Exception as wrong:
        text = str(wrong) if isinstance(wrong, EvalError) else f"{type(wrong).__name__}: {wrong}"
        raise locate(EvalError(f"{text} (filter {plan.pipeline.name!r})"), place(task.name)) from wrong
    seen = as_lists(out) if plan.lists else out
    batches = list(passes(task, plan.pipeline.name, kept, kept_keys, seen, raw.units))
    scores = [plan.score(task, plan.specs, batch) for batch in batches]
    columns = reduce_scores(task, plan.pipeline.name, scores, batches, tables)
    lost = merge_all((_lost(docs, raw.problems, task), _dropped(plan.pipeline.name, kept, out, raw.units, task)))
    known = {one.key for one in columns}
    own = _unscored(plan)
    columns += [one for one in own if one.key not in known]
    asked = {one.key for one in own}
    traits = traits_of(task, docs) + _dropping(task, raw.replies, out)
    named = [
        replace(one, traits=traits, column=merge_all((one.column, lost)) if one.key in asked else one.column)
        for one in columns
    ]
    provenance = (_provenance(plan.pipeline.name, kept_keys, seen, raw.units),) if keep else ()
    return Scored(task, tuple(named), provenance, tables.name)


def _nothing(task: Task, plan: _Plan, tables: Tables) -> Scored:
    """A task without documents still has its metrics, and still knows no others."""
    plan.score(task, plan.specs, plain_batch([]))
    return Scored(task, tuple(_unscored(plan)), (), tables.name)


def _unscored(plan: _Plan) -> list[ScoredColumn]:
    """The columns of a chunk of which no document could be scored."""
    return [
        ScoredColumn(column_key(spec.name, one, spec.reducers, plan.pipeline.name), EMPTY, spec, one)
        for spec in plan.specs
        for one in spec.reducers or (None,)
    ]


def _dropped(name: str, docs: Sequence[Sample], out: Replies, units: Ints64, task: Task) -> Column:
    """Documents of which a pipeline left no reply."""
    ends = np.concatenate([[0], np.cumsum(units)])
    least = np.minimum.reduceat(out.counts, ends[:-1]) if len(out.counts) else out.counts
    reason = (UNSCORABLE, f"filter {name!r} left no reply")
    return _lost(docs, {int(i): reason for i in np.flatnonzero(least == 0)}, task)


def traits_of(task: Task, docs: Sequence[Sample]) -> tuple[str, ...]:
    """What about a task's documents makes other harnesses' numbers differ (see ``core/lm_eval/errata.py``).

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> traits_of(Task("t", GENERATE_UNTIL), [Sample(0, gold=("a", "b")), Sample(1, gold="...")])
    ('bare gold', 'several golds')
    """
    if task.output_type != GENERATE_UNTIL:
        return ()
    golds = [doc.gold for doc in docs]
    several = any(isinstance(gold, tuple) for gold in golds)
    bare = any(isinstance(gold, str) and (NO_WORD.fullmatch(gold) or "\0" in gold) for gold in golds)
    return (("bare gold",) if bare else ()) + (("several golds",) if several else ())


NO_WORD = re.compile(r"[\W\d_]+")


def _dropping(task: Task, given: Replies, left: Replies) -> tuple[str, ...]:
    """Replies that were dropped though no filter was named."""
    return ("first reply",) if not task.filters and len(left.values) < len(given.values) else ()


def _lost(docs: Sequence[Sample], problems: dict[int, tuple[int, str]], task: Task) -> Column:
    at = sorted(problems)
    keys = [docs[i].doc_id for i in at]
    status: NDArray[np.uint8] = np.array([problems[i][0] for i in at], np.uint8)
    reasons = {key: problems[i][1] + place(task.name, key) for i, key in zip(at, keys, strict=True)}
    return column(keys, blank_rows(len(keys)), status, reasons)


def _provenance(name: str, keys: Ints64, out: Replies, units: Ints64) -> Provenance:
    ends = np.concatenate([[0], np.cumsum(units)])
    return Provenance(name, Array(keys), frozen(out.offsets[ends]), tuple(out.values), frozen(out.rules.copy()))
