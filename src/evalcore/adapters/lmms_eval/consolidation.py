"""lmms-eval's consolidate step: outputs of one process or of every rank to its six mappings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import replace
from toolz import concat, unique

from evalcore.adapters.lmms_eval.aggregations import choose_aggregation, find_all_numbers, make_tables
from evalcore.adapters.lmms_eval.host import LmmsGroup, LmmsOutput
from evalcore.adapters.lmms_eval.keys import RankPlace
from evalcore.adapters.lmms_eval.numbers import find_clusters, get_score_key
from evalcore.adapters.lmms_eval.scores import count_silent, read_scores
from evalcore.adapters.lmms_eval.task_row import get_call, write_row
from evalcore.adapters.lmms_eval.trees import read_trees
from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.lm_eval.lmms_results import Plain, write_group_rows
from evalcore.core.lm_eval.result_file import higher_is_better, num_fewshot
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Resampling
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import Scored, ScoredColumn, merge_scored

Six = tuple[Plain, ...]
TaskDict = Mapping[str | LmmsGroup, object]
NOTHING: TaskDict = {}


class LmmsRules(FrozenRecord, frozen=True, kw_only=True):
    """How scores are told apart and closed.

    ``bootstrap_iters``: 0 for no errors. ``resample_own``: an aggregation of a task's own is called on resamples for
    its error; by default only once, as it may write files or ask a model. ``singletons``: documents without an id under
    the task's ``cluster_key`` are units of their own, otherwise an error. ``documents``: how many each task has, for
    ranks without a sample log. ``gathered``: the lists are those of all ranks, joined as lmms-eval joins them.
    ``stderr``: ``cr1`` takes clusters for equally large, as lmms-eval does.
    """

    bootstrap_iters: int | None = None
    resample_own: bool = False
    singletons: bool = False
    documents: Mapping[str, int] = FrozenDict()
    gathered: bool = False
    stderr: str = "cr2"


PLAIN = LmmsRules()


def consolidate_results(eval_tasks: Sequence[LmmsOutput], *, rank: int = 0, rules: LmmsRules = PLAIN) -> Six:
    """Consolidate tasks, in place of lmms-eval's function of this name; ``consolidate_group_results`` adds groups."""
    return consolidate(eval_tasks, rank=rank, rules=rules)


def consolidate(
    outputs: Sequence[LmmsOutput], task_dict: TaskDict = NOTHING, *, rank: int = 0, rules: LmmsRules = PLAIN
) -> Six:
    """Consolidate outputs to results, samples, configs, versions, num_fewshot and higher_is_better; empty off rank 0.

    ``outputs`` have the scores of one process, or of all ranks joined as lmms-eval joins them.
    """
    return consolidate_ranks([outputs], task_dict, rank=rank, rules=replace(rules, gathered=True))


def consolidate_ranks(
    ranks: Sequence[Sequence[LmmsOutput]],
    task_dict: TaskDict = NOTHING,
    *,
    rank: int = 0,
    rules: LmmsRules = PLAIN,
) -> Six:
    """Consolidate every rank's own outputs, in the order of ranks: the bits of a single process.

    A document in several lists (padding) counts once. Scores are told apart by the sample log; without one, by their
    place: rank r has documents r, r + ranks, ...
    """
    if rank != 0:
        return tuple({} for _ in range(6))
    scored = score_ranks(ranks, rules)
    report = report_scores(scored, task_dict, rules)
    tasks = {one.task_name: one for one in _unite_tasks(ranks)}
    results: Plain = {
        name: write_row(report.task(name), one, find_clusters(one), tasks[name]) for name, one in scored.items()
    }
    logged = {
        name: [row for outputs in ranks for one in outputs if one.task_name == name for row in one.logged_samples]
        for name in tasks
    }
    return (
        defaultdict(dict, {**results, **_list_aliases(tasks), **write_group_rows(report)}),
        defaultdict(list, logged),
        defaultdict(dict, {name: one.task_config for name, one in tasks.items()}),
        defaultdict(
            dict, {**{g.name: g.version for g in report.groups}, **{k: one.version for k, one in tasks.items()}}
        ),
        defaultdict(int, {**num_fewshot(report), **{name: one.n_shot for name, one in tasks.items()}}),
        defaultdict(
            dict, {**higher_is_better(report), **{name: one.task.higher_is_better() for name, one in tasks.items()}}
        ),
    )


def _list_aliases(tasks: Mapping[str, LmmsOutput]) -> Plain:
    """List the groups that outputs name themselves, with their aliases."""
    named = [(getattr(one, "group_name", None), getattr(one, "group_alias", None)) for one in tasks.values()]
    return {name: {"alias": alias} for name, alias in reversed(named) if name and alias and name not in tasks}


def score_ranks(ranks: Sequence[Sequence[LmmsOutput]], rules: LmmsRules = PLAIN) -> dict[str, Scored]:
    """Score each task over all ranks, under what the task aggregates its scores by."""
    if not ranks:
        raise EvalError("expected the outputs of at least one rank, got none")
    parts: dict[str, list[Scored]] = {}
    for rank, outputs in enumerate(ranks):
        for one in outputs:
            where = RankPlace(rank, len(ranks), rules.documents.get(one.task_name), rules.gathered)
            parts.setdefault(one.task_name, []).append(read_scores(one, where, singletons=rules.singletons))
    return {one.task_name: _join_ranks(parts[one.task_name], one, rules.resample_own) for one in _unite_tasks(ranks)}


def _unite_tasks(ranks: Sequence[Sequence[LmmsOutput]]) -> Iterable[LmmsOutput]:
    """The first output of each task, whichever rank has it."""
    return unique(concat(ranks), key=attrgetter("task_name"))


def report_scores(scored: Mapping[str, Scored], task_dict: TaskDict = NOTHING, rules: LmmsRules = PLAIN) -> Report:
    """Report these scores as evalcore does, with intervals, counts and reasons."""
    tables = make_tables(rules.resample_own)
    inference = Inference(resampling=Resampling(rules.bootstrap_iters), stderr=rules.stderr)
    closed: list[TaskReport] = []
    for one in scored.values():
        clusters = find_clusters(one)
        parts = [
            report_task(
                replace(one, columns=(_take_numbers(column, one),)),
                inference=inference,
                clusters=clusters[column.key],
                tables=tables,
            )
            for column in one.columns
        ]
        closed.append(_explain_values(_join_reports(parts or [report_task(one, tables=tables)]), one))
    return build_report(closed, read_trees(task_dict), inference=inference, tables=tables)


def _take_numbers(column: ScoredColumn, scored: Scored) -> ScoredColumn:
    """Take the numbers of scores that close by a mean."""
    numbers = find_all_numbers(column.column, get_score_key(scored.task.config))
    is_mean = numbers is not None and aggregation_of(scored.task, replace(column, column=numbers)).even
    return replace(column, column=numbers) if is_mean and numbers is not None else column


def _join_reports(parts: Sequence[TaskReport]) -> TaskReport:
    """Join the reports of a task's columns, each of which has clusters of its own."""
    return replace(
        parts[0],
        estimates=tuple(concat(part.estimates for part in parts)),
        columns=tuple(concat(part.columns for part in parts)),
        n_docs=max(part.n_docs for part in parts),
        warnings=tuple(unique(concat(part.warnings for part in parts))),
    )


def _join_parts(parts: Sequence[Scored]) -> Scored:
    """Join parts under one recipe: a rank knows only the metrics that its own documents emitted."""
    specs = {spec.name: spec for one in parts for spec in one.task.metrics}
    filters = {pipeline.name: pipeline for one in parts for pipeline in one.task.filters}
    metrics = tuple(specs[name] for name in sorted(specs))
    task = replace(parts[0].task, metrics=metrics, filters=tuple(filters[name] for name in sorted(filters)))
    return merge_scored([replace(one, task=task) for one in parts])


def _join_ranks(parts: Sequence[Scored], output: LmmsOutput, resample_own: bool) -> Scored:
    """Join a task's parts and give each metric its own aggregation, now that all documents are there."""
    scored = count_silent(_join_parts(parts))
    known = getattr(output, "agg_metrics", {}) if len(parts) == 1 else {}  # of several ranks, each has its own
    columns = tuple(choose_aggregation(one, output, known, resample_own) for one in scored.columns)
    return replace(scored, columns=columns)


def _explain_values(report: TaskReport, scored: Scored) -> TaskReport:
    """Explain estimates for which a function of the task's own gave no number."""
    calls = {one.key: get_call(one) for one in scored.columns}
    return replace(
        report,
        estimates=tuple(
            (key, replace(estimate, reason=call.why) if (call := calls.get(key)) and call.why else estimate)
            for key, estimate in report.estimates
        ),
    )
