"""lmms-eval's consolidate step: outputs of one process or of every rank to its six mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from evalcore.adapters.lmms_eval.aggregations import Called, choose_aggregation, make_tables
from evalcore.adapters.lmms_eval.host import LmmsGroup, LmmsOutput
from evalcore.adapters.lmms_eval.keys import RankPlace
from evalcore.adapters.lmms_eval.scores import count_silent, read_numbers, read_scores
from evalcore.adapters.lmms_eval.trees import read_trees
from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.lm_eval.result_file import lmms_eval_results
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Resampling
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import Scored, ScoredColumn, merge_scored

Plain = dict[str, object]
Six = tuple[Plain, ...]
TaskDict = Mapping[str | LmmsGroup, object]
NOTHING: TaskDict = {}


class LmmsRules(FrozenRecord, frozen=True, kw_only=True):
    """How scores are told apart and closed.

    ``bootstrap_iters``: 0 for no errors. ``resample_own``: an aggregation of a task's own is called on resamples for
    its error; by default only once, as it may write files or ask a model. ``singletons``: documents without an id under
    the task's ``cluster_key`` are units of their own, otherwise an error. ``documents``: how many each task has, for
    ranks without a sample log. ``gathered``: the lists are those of all ranks, joined as lmms-eval joins them.
    """

    bootstrap_iters: int | None = None
    resample_own: bool = False
    singletons: bool = False
    documents: Mapping[str, int] = FrozenDict()
    gathered: bool = False


PLAIN = LmmsRules()


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
        return lmms_eval_results(Report(tasks=()), rank=rank)
    scored = score_ranks(ranks, rules)
    report = report_scores(scored, task_dict, rules)
    results, _, _, _, shots, higher = lmms_eval_results(report)
    tasks = {one.task_name: one for one in ranks[0]}
    logged = {
        name: [row for outputs in ranks for one in outputs if one.task_name == name for row in one.logged_samples]
        for name in tasks
    }
    for name, one in scored.items():
        results[name] = {**_copy_row(results[name]), **_list_extras(one, tasks[name])}
    return (
        results,
        {**logged},
        {name: dict(one.task_config or {}) for name, one in tasks.items()},
        {**{name: one.version for name, one in tasks.items()}, **{one.name: one.version for one in report.groups}},
        {**shots, **{name: one.n_shot or 0 for name, one in tasks.items()}},
        {**higher, **{name: dict(one.task.higher_is_better()) for name, one in tasks.items()}},
    )


def score_ranks(ranks: Sequence[Sequence[LmmsOutput]], rules: LmmsRules = PLAIN) -> dict[str, Scored]:
    """Score each task over all ranks, under what the task aggregates its scores by."""
    if not ranks:
        raise EvalError("expected the outputs of at least one rank, got none")
    parts: dict[str, list[Scored]] = {}
    for rank, outputs in enumerate(ranks):
        for one in outputs:
            where = RankPlace(rank, len(ranks), rules.documents.get(one.task_name), rules.gathered)
            parts.setdefault(one.task_name, []).append(read_scores(one, where, singletons=rules.singletons))
    return {
        one.task_name: _aggregate_columns(count_silent(_join_parts(parts[one.task_name])), one, rules.resample_own)
        for one in ranks[0]
    }


def report_scores(scored: Mapping[str, Scored], task_dict: TaskDict = NOTHING, rules: LmmsRules = PLAIN) -> Report:
    """Report these scores as evalcore does, with intervals, counts and reasons."""
    tables, inference = make_tables(rules.resample_own), Inference(resampling=Resampling(rules.bootstrap_iters))
    closed = [_explain_values(report_task(one, inference=inference, tables=tables), one) for one in scored.values()]
    return build_report(closed, read_trees(task_dict), inference=inference, tables=tables)


def _copy_row(row: object) -> Plain:
    return dict(row) if isinstance(row, dict) else {}


def _join_parts(parts: Sequence[Scored]) -> Scored:
    """Join parts under one recipe: a rank knows only the metrics that its own documents emitted."""
    specs = {spec.name: spec for one in parts for spec in one.task.metrics}
    filters = {pipeline.name: pipeline for one in parts for pipeline in one.task.filters}
    metrics = tuple(specs[name] for name in sorted(specs))
    task = replace(parts[0].task, metrics=metrics, filters=tuple(filters[name] for name in sorted(filters)))
    return merge_scored([replace(one, task=task) for one in parts])


def _aggregate_columns(scored: Scored, output: LmmsOutput, resample_own: bool) -> Scored:
    """Give each metric its own aggregation, now that all documents are there."""
    functions = output.task.aggregation()
    columns = tuple(
        choose_aggregation(one, functions.get(one.key.metric), output.task, resample_own) for one in scored.columns
    )
    return replace(scored, columns=columns)


def _explain_values(report: TaskReport, scored: Scored) -> TaskReport:
    """Explain estimates for which a function of the task's own gave no number."""
    whys = {one.key: _get_call(one).why for one in scored.columns}
    return replace(
        report,
        estimates=tuple(
            (key, replace(estimate, reason=whys.get(key) or estimate.reason)) for key, estimate in report.estimates
        ),
    )


def _get_call(scored: ScoredColumn) -> Called:
    aggregation = scored.spec.aggregation if scored.spec is not None else None
    return aggregation if isinstance(aggregation, Called) else Called("", 0.0)


def _list_extras(scored: Scored, output: LmmsOutput) -> Plain:
    """List what lmms-eval's rows have beside value and error: its two errors of a mean, and values that are no
    numbers.
    """
    listed = (output.task_config or {}).get("skip_stderr_metrics")
    skipped = listed if isinstance(listed, list | tuple) else ()
    out: Plain = {}
    for one in scored.columns:
        metric, name = one.key
        made = _get_call(one)
        out |= {str(one.key): made.raw} if made.raw is not None else {}
        numbers = read_numbers(one.column)
        if one.reducer is None and numbers is not None:
            alone, by_cluster = (None, None) if metric in skipped else _find_errors(numbers, scored.clusters_by_key())
            out[f"{metric}_stderr_clt,{name}"] = "N/A" if alone is None else alone
            out[f"{metric}_stderr_clustered,{name}"] = "N/A" if by_cluster is None else by_cluster
    return out


def _find_errors(numbers: Column, clusters: Mapping[int, int] | None) -> tuple[float | None, float | None]:
    """Find the error of a mean with documents taken as independent, and with clusters taken together."""
    alone = aggregate_metric(AGGREGATIONS["mean"], numbers).stderr
    if clusters is None:
        return alone, None
    codes = np.array([clusters[key] for key in numbers.keys.ints.tolist()], np.int64)
    return alone, aggregate_metric(AGGREGATIONS["mean"], numbers, clusters=codes).stderr
