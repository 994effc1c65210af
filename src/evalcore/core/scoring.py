"""Answers to columns: group, filter, score, reduce, in chunks of whole documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain as flatten

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from evalcore.core.answers import AnswerTable, tabulate
from evalcore.core.arrays import Array, Bools, Ints64, frozen
from evalcore.core.batches import Batch
from evalcore.core.columns import EMPTY, Column, blank_rows, column, merge_all, outcomes
from evalcore.core.errors import EvalError, locate, place, unknown
from evalcore.core.filters import FilterFn, Replies, chain, scope_of
from evalcore.core.gathering import by_unit, documents, gather, passes, refuse_strangers
from evalcore.core.outcome import UNSCORABLE, Outcome
from evalcore.core.records import (
    GENERATE_UNTIL,
    Answer,
    MetricKey,
    MetricSpec,
    Pipeline,
    Sample,
    Task,
)
from evalcore.core.reducers import SCORES_ONLY
from evalcore.core.repeats import reduce_repeats
from evalcore.core.scorers import Score, Scorer, from_process_results
from evalcore.core.tables import EVALCORE, Tables, pipelines_of, specs_of

__all__ = ["CHUNK", "Provenance", "Scored", "merge_scored", "score_doc", "score_task"]

CHUNK = 8192
"""Documents scored at a time: large enough for arrays to pay, small enough for memory to stay flat."""


class Provenance(Struct, frozen=True):
    """What a pipeline left of each document: its final replies and the rule each came by (-1: a fallback)."""

    filter: str
    keys: Array
    offsets: Array
    replies: tuple[object, ...]
    rules: Array


class ScoredColumn(Struct, frozen=True):
    """A column and the metric it was asked for as (None: emitted without being declared)."""

    key: MetricKey
    column: Column
    spec: MetricSpec | None
    reducer: str | None = None
    repeats: tuple[int, int] | None = None
    traits: tuple[str, ...] = ()


class Scored(Struct, frozen=True):
    """A task's scores over some of its documents. Merging is associative and commutative."""

    task: Task
    columns: tuple[ScoredColumn, ...] = ()
    provenance: tuple[Provenance, ...] = ()

    def column(self, key: MetricKey | str) -> Column:
        wanted = str(key)
        for one in self.columns:
            if str(one.key) == wanted:
                return one.column
        raise unknown("metric", wanted, [str(one.key) for one in self.columns], place(self.task.name))


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

    >>> from evalcore.core.records import GENERATE_UNTIL, Generate, Instance
    >>> task = Task("sums", GENERATE_UNTIL, (MetricSpec("exact_match"),))
    >>> answer = Answer(Instance("sums", 0, 0, Generate("2+2=")), ("4",))
    >>> outcomes(score_task(task, [Sample(0, gold="4")], [answer]).column("exact_match,none"))
    ((0, Ok(score=1.0)),)
    """
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
    none = [Scored(task, tuple(one for plan in plans for one in _unscored(plan)))]
    return merge_scored(parts or none)


def score_doc(
    task: Task, sample: Sample, answers: Iterable[Answer], *, tables: Tables = EVALCORE
) -> dict[MetricKey, Outcome]:
    """One document: the batch of one.

    >>> from evalcore.core.records import MULTIPLE_CHOICE, Instance, LogLikelihood
    >>> lls = [-2.1, -1.5, -0.8, -3.2]
    >>> asked = [Instance("t", 0, i, LogLikelihood("Q", c)) for i, c in enumerate("abcd")]
    >>> replies = [Answer(one, ((ll, False),)) for one, ll in zip(asked, lls)]
    >>> score_doc(Task("t", MULTIPLE_CHOICE), Sample(0, gold=2, choices=("a", "b", "c", "d")), replies)
    {MetricKey(metric='acc', filter='none'): Ok(score=1.0), MetricKey(metric='acc_norm', filter='none'): Ok(score=1.0)}
    """
    scored = score_task(task, [sample], answers, tables=tables)
    return {one.key: outcomes(one.column)[0][1] for one in scored.columns if len(one.column)}


def merge_scored(parts: Iterable[Scored]) -> Scored:
    """Scores of any split of a task's documents, in any order, as one."""
    given = list(parts)
    if len({part.task.name for part in given}) != 1:
        raise EvalError(f"expected scores of one task, got {sorted({part.task.name for part in given})}")
    pieces: dict[MetricKey, list[ScoredColumn]] = {}
    kept: dict[str, list[Provenance]] = {}
    for part in given:
        for one in part.columns:
            pieces.setdefault(one.key, []).append(one)
        for where in part.provenance:
            kept.setdefault(where.filter, []).append(where)
    return Scored(
        given[0].task,
        _in_order(given[0].task, map(_merged, pieces.values())),
        tuple(found[0] if len(found) == 1 else _joined(found) for found in kept.values()),
    )


def _merged(found: Sequence[ScoredColumn]) -> ScoredColumn:
    first = found[0]
    spans = [one.repeats for one in found if one.repeats is not None]
    spread = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
    reducer = next((one.reducer for one in found if one.reducer is not None), None)
    traits = tuple(sorted({trait for one in found for trait in one.traits}))
    return ScoredColumn(first.key, merge_all(one.column for one in found), first.spec, reducer, spread, traits)


def _in_order(task: Task, columns: Iterable[ScoredColumn]) -> tuple[ScoredColumn, ...]:
    """Declared metrics as they were declared, pipeline by pipeline; the others after them by name."""
    pipelines = [pipeline.name for pipeline in task.filters]

    def place_of(one: ScoredColumn) -> tuple[int, bool, int, str]:
        pipeline = pipelines.index(one.key.filter) if one.key.filter in pipelines else 0
        specs = next((p.metrics for p in task.filters if p.name == one.key.filter and p.metrics), task.metrics)
        declared = one.spec is not None and one.spec in specs
        return pipeline, not declared, specs.index(one.spec) if declared and one.spec else 0, _reduced_name(one)

    return tuple(sorted(columns, key=place_of))


def _reduced_name(one: ScoredColumn) -> str:
    reducers = one.spec.reducers if one.spec is not None else ()
    return f"{reducers.index(one.reducer):04d}" if one.reducer in reducers else one.key.metric


def _joined(found: Sequence[Provenance]) -> Provenance:
    """Provenance of any split, sorted by document; the same document twice collapses."""
    rows = {
        int(key): (one.replies[a:b], one.rules.data[a:b].tolist())
        for one in found
        for key, a, b in zip(
            one.keys.ints.tolist(), one.offsets.ints[:-1].tolist(), one.offsets.ints[1:].tolist(), strict=True
        )
    }
    keys = sorted(rows)
    counts = [len(rows[key][0]) for key in keys]
    return Provenance(
        found[0].filter,
        Array(np.array(keys, np.int64)),
        Array(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])),
        tuple(value for key in keys for value in rows[key][0]),
        Array(np.array([rule for key in keys for rule in rows[key][1]], np.int8)),
    )


# --- one chunk --------------------------------------------------------------------------------------------------


class _Plan(Struct, frozen=True):
    pipeline: Pipeline
    specs: tuple[MetricSpec, ...]
    apply: FilterFn
    score: Scorer
    whole: bool


def _plan(task: Task, pipeline: Pipeline, tables: Tables) -> _Plan:
    own = pipeline.metrics
    scorer = tables.scorers.get(task.output_type)
    if task.process_results is not None:
        scorer = from_process_results(task.process_results)
    if scorer is None:
        raise unknown("output type", task.output_type, tables.scorers, place(task.name))
    return _Plan(
        pipeline,
        specs_of(task, tables) if own is None else own,
        chain(pipeline, tables.filters),
        scorer,
        scope_of(pipeline, tables.filters) == "task",
    )


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
    except EvalError as wrong:
        raise locate(EvalError(f"{wrong} (filter {plan.pipeline.name!r})"), place(task.name)) from wrong
    batches = list(passes(task, plan.pipeline.name, kept, kept_keys, out, raw.units))
    scores = [plan.score(task, plan.specs, batch) for batch in batches]
    columns = _reduce(task, plan, scores, batches, tables)
    lost = merge_all((_lost(docs, raw.problems, task), _dropped(plan.pipeline.name, kept, out, raw.units, task)))
    declared = {(one.spec, one.reducer) for one in columns}
    columns += [one for one in _unscored(plan) if (one.spec, one.reducer) not in declared]
    traits = traits_of(task, docs)
    named = [
        replace(one, traits=traits, column=one.column if one.spec is None else merge_all((one.column, lost)))
        for one in columns
    ]
    provenance = (_provenance(plan.pipeline.name, kept_keys, out, raw.units),) if keep else ()
    return Scored(task, tuple(named), provenance)


def _reduce(
    task: Task, plan: _Plan, scores: Sequence[Sequence[Score]], passes: Sequence[Batch], tables: Tables
) -> list[ScoredColumn]:
    name = plan.pipeline.name
    by_name: dict[str, list[Score]] = {}
    for score in flatten.from_iterable(scores):
        by_name.setdefault(score.name, []).append(score)
    out: list[ScoredColumn] = []
    for metric, found in by_name.items():
        spec = found[0].spec
        reducers = _reducers(task, metric, spec, len(passes), tables)
        for one in reducers:
            key = _key(metric, one, reducers, name)
            if one is None:
                out.append(ScoredColumn(key, found[0].column, spec))
            else:
                answers, fell = ((), None) if SCORES_ONLY.fullmatch(one) else _votes(passes)
                reduced = _reduced(task, metric, one, found, answers, fell, tables)
                out.append(ScoredColumn(key, reduced, spec, one, _spread(passes)))
    return out


def _unscored(plan: _Plan) -> list[ScoredColumn]:
    """The columns of a chunk of which no document could be scored."""
    return [
        ScoredColumn(_key(spec.name, one, spec.reducers, plan.pipeline.name), EMPTY, spec, one)
        for spec in plan.specs
        for one in spec.reducers or (None,)
    ]


def _key(metric: str, reducer: str | None, reducers: Sequence[str | None], pipeline: str) -> MetricKey:
    return MetricKey(f"{metric}@{reducer}" if len(reducers) > 1 else metric, pipeline)


def _reduced(
    task: Task,
    metric: str,
    reducer: str,
    found: Sequence[Score],
    answers: Sequence[Sequence[object]],
    fell: Bools | None,
    tables: Tables,
) -> Column:
    try:
        columns = [score.column for score in found]
        return reduce_repeats(reducer, columns, answers, fell, tables.reducers, task.name)
    except EvalError as wrong:
        raise locate(wrong, place(task.name, key=metric)) from wrong


def _reducers(task: Task, metric: str, spec: MetricSpec | None, repeats: int, tables: Tables) -> tuple[str | None, ...]:
    declared = spec.reducers if spec is not None else ()
    if declared:
        return declared
    if repeats <= 1:
        return (None,)
    if tables.unreduced is None:
        raise EvalError(
            f"expected one reply per document or a reducer, got {repeats} replies for {metric}"
            f"{place(task.name)}; add a filter such as take_first, or reducers such as mean or pass@1"
        )
    return (tables.unreduced,)


def _votes(passes: Sequence[Batch]) -> tuple[list[list[object]], Bools]:
    """The answers of each document over all repeats, in key order."""
    keys = sorted({sample.doc_id for batch in passes for sample in batch.samples})
    at = {key: i for i, key in enumerate(keys)}
    answers: list[list[object]] = [[] for _ in keys]
    fell = np.zeros((len(keys), len(passes)), np.bool_)
    for repeat, batch in enumerate(passes):
        for i, sample in enumerate(batch.samples):
            answers[at[sample.doc_id]].append(batch.replies[int(batch.offsets[i])])
            fell[at[sample.doc_id], repeat] = batch.fell_back[int(batch.offsets[i])]
    return answers, fell


def _spread(batches: Sequence[Batch]) -> tuple[int, int] | None:
    """The fewest and the most replies of any document."""
    most = len(batches)
    if not most or not len(batches[0].samples):
        return None
    return next((i for i, batch in enumerate(batches) if len(batch.samples) < len(batches[0].samples)), most), most


def _dropped(name: str, docs: Sequence[Sample], out: Replies, units: Ints64, task: Task) -> Column:
    """Documents of which a pipeline left no reply."""
    ends = np.concatenate([[0], np.cumsum(units)])
    least = np.minimum.reduceat(out.counts, ends[:-1]) if len(out.counts) else out.counts
    reason = (UNSCORABLE, f"filter {name!r} left no reply")
    return _lost(docs, {int(i): reason for i in np.flatnonzero(least == 0)}, task)


def traits_of(task: Task, docs: Sequence[Sample]) -> tuple[str, ...]:
    """What about a task's documents makes other harnesses' numbers differ (see ``core/errata.py``).

    >>> from evalcore.core.records import GENERATE_UNTIL
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


def _lost(docs: Sequence[Sample], problems: dict[int, tuple[int, str]], task: Task) -> Column:
    at = sorted(problems)
    keys = [docs[i].doc_id for i in at]
    status: NDArray[np.uint8] = np.array([problems[i][0] for i in at], np.uint8)
    reasons = {key: problems[i][1] + place(task.name, key) for i, key in zip(at, keys, strict=True)}
    return column(keys, blank_rows(len(keys)), status, reasons)


def _provenance(name: str, keys: Ints64, out: Replies, units: Ints64) -> Provenance:
    ends = np.concatenate([[0], np.cumsum(units)])
    return Provenance(name, Array(keys), frozen(out.offsets[ends]), tuple(out.values), frozen(out.rules.copy()))
