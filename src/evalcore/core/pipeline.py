"""The pipe: answers to columns, columns to estimates, estimates to groups. Everything that makes a number runs here.

group_by_doc  ->  score_batch (score_doc is the batch of one)  ->  reduce_repeats  ->  aggregate_metric  ->  fold_group
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain, zip_longest
from operator import attrgetter

from msgspec.structs import replace
from toolz import concat, unique

from evalcore.core.aggregate.clusters import clusters_of
from evalcore.core.aggregate.inference import DEFAULT, Inference
from evalcore.core.aggregate.numbers import OPEN, fit_bounds
from evalcore.core.aggregate.task_report import Estimand, describe_task, list_estimands, sign_estimate
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.answers.batch import Batch, make_batch
from evalcore.core.answers.chunk import CHUNK, Chunk, refuse_strangers, sort_documents, split_chunks
from evalcore.core.answers.filtrate import Filtrate, batch_repeats, batch_together, filter_chunk, keep_provenance
from evalcore.core.answers.group import group_by_doc, table_from_groups
from evalcore.core.answers.table import AnswerTable
from evalcore.core.groups.report import place_tasks, report_group
from evalcore.core.groups.tree import Group, Tree, fold_group
from evalcore.core.guard import Guard, MapChunks, contain_step, run_freely, score_batch, score_together
from evalcore.core.metrics.dispatch import Scores
from evalcore.core.metrics.metric import keep_within
from evalcore.core.records.array import Ints64
from evalcore.core.records.column import Column, list_outcomes
from evalcore.core.records.errors import RAISED, EvalError, blame_entry, located, place, unknown
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.outcome import Outcome
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.request import Answer, Sample
from evalcore.core.records.score import Scored, ScoredColumn, adopt_scores, merge_scored
from evalcore.core.records.task import MetricKey, Task
from evalcore.core.repeats.reduce import reduce_repeats
from evalcore.core.repeats.reducers import own_reducers
from evalcore.core.repeats.repeated_score import (
    RepeatedScore,
    add_losses,
    blank_columns,
    build_reduced,
    list_repeats,
    split_generations,
)
from evalcore.core.tables import EVALCORE, BoundPipeline, Tables, bind_pipelines, specs_of

# --- answers to columns -----------------------------------------------------------------------------------------


def tabulate_answers(answers: Iterable[Answer] | AnswerTable, *, keep_requests: bool = False) -> AnswerTable:
    """Tabulate the answers of one task, in any order; a table is returned unchanged."""
    grouped = group_by_doc(answers)
    return grouped if isinstance(grouped, AnswerTable) else table_from_groups(grouped, keep_requests=keep_requests)


def score_task(
    task: Task,
    samples: Iterable[Sample],
    answers: Iterable[Answer] | AnswerTable,
    *,
    tables: Tables = EVALCORE,
    chunk: int = CHUNK,
    keep_replies: bool = False,
    map: MapChunks = map,
    guard: Guard = run_freely,
) -> Scored:
    """Score every document of a task; neither the order of samples and answers nor the chunks matter. What a
    ``guard`` stops is unscorable.

    >>> from evalcore.core.records.request import GENERATE_UNTIL, Generate, Instance
    >>> answer = Answer(Instance("sums", 0, 0, Generate("2+2=")), ("4",))
    >>> scored = score_task(Task("sums", GENERATE_UNTIL), [Sample(0, gold="4")], [answer])
    >>> list_outcomes(scored.column("exact_match,none"))
    ((0, Ok(score=1.0)),)
    """
    task = task if task.metrics else replace(task, metrics=specs_of(task, tables))
    docs, keys = sort_documents(task, samples)
    pipelines = bind_pipelines(task, tables)
    records = any(bound.records for bound in pipelines)
    table = tabulate_answers(answers, keep_requests=records)
    refuse_strangers(task, keys, table)
    if table.requests and not records:  # prompts need not travel to workers
        table = replace(table, requests=())
    chunks = chain.from_iterable(split_chunks(bound, docs, keys, table, chunk) for bound in pipelines)
    score = partial(contain_step, partial(score_chunk, keep_replies=keep_replies), guard, keep_replies=keep_replies)
    parts = [adopt_scores(one, task) for one in map(score, chunks)]
    clusters = clusters_of(task.name, (doc for doc in docs if doc.cluster is not None))
    nothing = () if parts else (Chunk(bound, docs, keys, table) for bound in pipelines)
    whole = merge_scored((*parts, *(contain_step(_score_nothing, guard, one) for one in nothing)))
    return replace(whole, clusters=tuple(clusters.items()))


def score_chunk(chunk: Chunk, *, keep_replies: bool = False) -> Scored:
    """Score some documents under one pipeline: filter, score repeat by repeat, reduce."""
    bound, left = chunk.bound, filter_chunk(chunk)
    batches, scores = score_repeats(bound, left, chunk.table)
    columns = [_reduce(bound, repeated) for repeated in list_repeats(bound, scores, batches)]
    provenance = (keep_provenance(bound, left),) if keep_replies else ()
    return Scored(bound.task, add_losses(bound, columns, left.lost, left.traits), provenance, bound.tables.name)


def score_repeats(
    bound: BoundPipeline, left: Filtrate, table: AnswerTable | None = None
) -> tuple[list[Batch], list[Scores]]:
    """Score what filters left, repeat by repeat; with the first, what takes all repeats together."""
    names = bound.task.name, bound.pipeline.name
    batches = list(batch_repeats(*names, left, table))
    scores = [score_batch(bound, batch) for batch in batches]
    if bound.together is None:
        return batches, scores
    whole = split_generations(score_together(bound, batch_together(*names, left, table)))
    return batches, [(*each, *all_at_once) for each, all_at_once in zip_longest(scores, whole, fillvalue=())]


def _reduce(bound: BoundPipeline, repeated: RepeatedScore) -> ScoredColumn:
    task, reducers = bound.task.name, own_reducers(repeated.spec, bound.tables.reducers)
    with located(place(task, key=repeated.metric)):
        made = reduce_repeats(repeated.reducer, repeated.columns, votes=repeated.votes, reducers=reducers, task=task)
    made = keep_within(made, repeated.spec, task)  # a reducer may leave them, as a sum does
    return build_reduced(repeated, made, reducers)


def _score_nothing(chunk: Chunk) -> Scored:
    """Score a task without documents, which still has its metrics and no others."""
    score_batch(chunk.bound, make_batch([]))
    return Scored(chunk.bound.task, blank_columns(chunk.bound), (), chunk.bound.tables.name)


def score_doc(
    task: Task, sample: Sample, answers: Iterable[Answer], *, tables: Tables = EVALCORE
) -> dict[MetricKey, Outcome]:
    """Score one document: the batch of one.

    >>> from evalcore.core.records.request import MULTIPLE_CHOICE, Instance, LogLikelihood
    >>> lls = [-2.1, -1.5, -0.8, -3.2]
    >>> asked = [Instance("t", 0, i, LogLikelihood("Q", c)) for i, c in enumerate("abcd")]
    >>> replies = [Answer(one, ((ll, False),)) for one, ll in zip(asked, lls)]
    >>> score_doc(Task("t", MULTIPLE_CHOICE), Sample(0, gold=2, choices=("a", "b", "c", "d")), replies)
    {MetricKey(metric='acc', filter='none'): Ok(score=1.0), MetricKey(metric='acc_norm', filter='none'): Ok(score=1.0)}
    """
    scored = score_task(task, [sample], answers, tables=tables)
    return {one.key: list_outcomes(one.column)[0][1] for one in scored.columns if len(one.column)}


# --- columns to estimates ---------------------------------------------------------------------------------------


def report_task(
    scored: Scored,
    *,
    inference: Inference = DEFAULT,
    clusters: Mapping[int, int] | None = None,
    n_original: int | None = None,
    tables: Tables = EVALCORE,
) -> TaskReport:
    """Close every column of a task.

    Documents that share a ``Sample.cluster`` count together; ``clusters`` (document key -> code, see ``clusters_of``)
    overrides that.
    """
    asked = list_estimands(scored, inference=inference, clusters=clusters, tables=tables)
    return describe_task(scored.task, [(one.scored, _close(one)) for one in asked], n_original, tables)


def _close(asked: Estimand) -> Estimate:
    try:
        estimate = aggregate_metric(
            asked.aggregation,
            asked.scored.column,
            options=asked.options,
            inference=asked.closing,
            clusters=asked.clusters,
            score_bounds=asked.score_bounds or OPEN,
        )
    except RAISED as raised:
        raise blame_entry(raised, "its aggregation", place(asked.task.name, key=asked.scored.key)) from raised
    return sign_estimate(asked, estimate)


def close_column(
    column: Column,
    aggregation: str = "mean",
    *,
    clusters: Ints64 | None = None,
    inference: Inference = DEFAULT,
    tables: Tables = EVALCORE,
) -> Estimate:
    """Close a column that belongs to no task."""
    found = tables.aggregations.get(aggregation)
    if found is None:
        raise unknown("aggregation", aggregation, tables.aggregations)
    fitted = fit_bounds(found, None, column)
    return aggregate_metric(fitted, column, clusters=clusters, inference=inference, score_bounds=OPEN)


def aggregate_again(estimate: Estimate, column: Column | None, *, inference: Inference, tables: Tables) -> Estimate:
    """Apply the recipe of an estimate to another column; no value if either is missing."""
    scale = estimate.scale
    aggregation = tables.aggregations.get(scale.aggregation)
    if column is None or aggregation is None:
        return replace(estimate, value=None, stderr=None, ci=None, reason=f"{scale.aggregation} cannot be taken again")
    known = replace(aggregation, bounds=scale.bounds)
    declared = scale.score_bounds
    made = aggregate_metric(known, column, options=scale.options, inference=inference, score_bounds=declared or OPEN)
    kept = replace(made.scale, higher_is_better=scale.higher_is_better, score_bounds=declared)
    return replace(made, scale=kept)


# --- estimates to groups ----------------------------------------------------------------------------------------


def report_groups(
    tree: Tree[TaskReport], *, inference: Inference = DEFAULT, tables: Tables = EVALCORE
) -> tuple[GroupReport, ...]:
    """Report every group of a tree, children before parents, each once."""

    def group(node: Group[TaskReport], below: tuple[tuple[GroupReport, ...], ...]) -> tuple[GroupReport, ...]:
        return (*concat(below), report_group(node, inference=inference, tables=tables))

    reports: tuple[GroupReport, ...] = fold_group(tree, lambda leaf: (), group)
    return tuple(unique(reports, key=attrgetter("name")))


def build_report(
    tasks: Iterable[TaskReport],
    trees: Iterable[Tree[object]] = (),
    *,
    inference: Inference = DEFAULT,
    tables: Tables = EVALCORE,
) -> Report:
    """Place task reports in their trees and report every group. A task named in a tree but not run is missing.

    >>> from evalcore.core.groups.tree import Group, GroupMetric, Leaf
    >>> from evalcore.core.lm_eval.result_row import leaf_from_flat
    >>> done = [leaf_from_flat(name, {"acc,none": v}).value for name, v in [("a", 0.8), ("b", 0.9)]]
    >>> tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("acc"),))
    >>> round(build_report(done, [tree]).group("g").get(MetricKey("acc")).value, 2)
    0.85
    """
    done = tuple(tasks)
    if len({task.name for task in done}) < len(done):
        raise EvalError(f"expected each task once, got {[task.name for task in done]}")
    placed = place_tasks(trees, done)
    groups = concat(report_groups(tree, inference=inference, tables=tables) for tree in placed)
    return Report(tasks=done, groups=tuple(unique(groups, key=attrgetter("name"))), trees=placed)
