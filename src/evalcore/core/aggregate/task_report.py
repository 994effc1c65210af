"""Closing a task: every column becomes an estimate with its recipe and its errata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from operator import attrgetter

import numpy as np
from msgspec.structs import replace
from toolz import unique

from evalcore.core.aggregate.signature import shown_options, sign
from evalcore.core.aggregate.spread import cluster_codes
from evalcore.core.aggregate.value import DEFAULT, Inference, aggregate_metric
from evalcore.core.lm_eval.errata import Facts, task_errata
from evalcore.core.metrics.corpus import sacrebleu_version
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.column import Column, Floats, Stats, merge_all, unscored_part
from evalcore.core.records.errors import EvalError, locate, place, unknown
from evalcore.core.records.estimate import Aggregation, Estimate
from evalcore.core.records.report import TaskReport
from evalcore.core.records.request import Options, Sample, options
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Task
from evalcore.core.repeats.repeated_score import column_key
from evalcore.core.stats.noise import mean_noise
from evalcore.core.tables import EVALCORE, AnyMetric, Tables, pipelines_of

__all__ = ["aggregation_of", "clusters_of", "report_task"]


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
    task = scored.task
    if scored.tables != tables.name:
        raise EvalError(f"scored with the tables {scored.tables!r}, closed with {tables.name!r}; pass the same tables=")
    codes = clusters if clusters is not None else scored.clusters_by_key()
    pipelines = {pipeline.name: pipeline for pipeline in pipelines_of(task, tables)}
    columns = whole_columns(scored)
    used = [(one, pipelines.get(one.key.filter, Pipeline(one.key.filter))) for one in columns]  # a log's may be gone
    closed = [(one, _estimate(task, one, by, inference, codes, tables)) for one, by in used]
    return TaskReport(
        name=task.name,
        estimates=tuple((one.key, estimate) for one, estimate in closed),
        columns=tuple((one.key, one.column) for one in columns),
        n_docs=max((len(one.column) for one in columns), default=0),
        n_original=n_original,
        alias=task.alias,
        version=task.version,
        num_fewshot=task.num_fewshot,
        config=task.config or described(task),
        warnings=tuple(unique(warning for one in columns for warning in _warnings(task, one, tables))),
    )


def described(task: Task) -> Options:
    """A config for a task that was not made from one.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> described(Task("t", GENERATE_UNTIL, (MetricSpec("f1"),)))["metric_list"]
    (pmap({'metric': 'f1'}),)
    """
    metrics = [{"metric": spec.name, **spec.options} for spec in task.metrics]
    filters = [
        {"name": one.name, "filter": [{"function": s.name, **s.options} for s in one.steps]} for one in task.filters
    ]
    return options(task=task.name, output_type=task.output_type, metric_list=metrics, filter_list=filters)


def whole_columns(scored: Scored) -> tuple[ScoredColumn, ...]:
    """The columns to close. Metrics that one function gave under several names share the documents it failed on."""
    by_own = {(one.key, one.reducer): one for one in scored.columns if one.spec is not None}
    out: list[ScoredColumn] = []
    parents: set[MetricKey] = set()
    for one in scored.columns:
        parent = by_own.get((_own_key(one), one.reducer)) if one.spec is not None else None
        if parent is None or parent.key == one.key:
            out.append(one)
        else:
            parents.add(parent.key)
            out.append(replace(one, column=merge_all((one.column, unscored_part(parent.column)))))
    return tuple(one for one in out if one.key not in parents or one.column.scored.any())


def _own_key(one: ScoredColumn) -> MetricKey:
    spec = one.spec or MetricSpec(one.key.metric)
    return column_key(spec.name, one.reducer, spec.reducers, one.key.filter)


def aggregation_of(task: Task, one: ScoredColumn, tables: Tables = EVALCORE) -> Aggregation:
    """What a column of a task closes by."""
    return _aggregation(one.spec or MetricSpec(one.key.metric), _entry(task, one, tables), one.column, tables)


def clusters_of(task: str, samples: Iterable[Sample], *, singletons: bool = False) -> Mapping[int, int]:
    """Cluster codes by document key, from the samples' own clusters.

    >>> codes = clusters_of("t", [Sample(0, cluster="p"), Sample(1, cluster="p")])
    >>> codes[0] == codes[1]
    True
    """
    docs = list(samples)
    keys = [doc.doc_id for doc in docs]
    codes = cluster_codes([doc.cluster for doc in docs], keys=keys, singletons=singletons, task=task)
    return dict(zip(map(attrgetter("doc_id"), docs), codes.tolist(), strict=True))


def _estimate(
    task: Task,
    one: ScoredColumn,
    pipeline: Pipeline,
    inference: Inference,
    clusters: Mapping[int, int] | None,
    tables: Tables,
) -> Estimate:
    entry = _entry(task, one, tables)
    spec = one.spec or MetricSpec(one.key.metric)
    higher = spec.higher_is_better if spec.higher_is_better is not None else entry.higher_is_better if entry else True
    if inference.on_unscorable == "zero" and higher is False:
        raise EvalError(
            f"on_unscorable: zero would reward failures, for less is better here; use exclude or fail"
            f"{place(task.name, key=one.key)}"
        )
    try:
        estimate = aggregate_metric(
            _aggregation(spec, entry, one.column, tables),
            one.column,
            options=spec.options,
            inference=replace(inference, resampling=tables.resampling_of(one.key.metric, inference.resampling)),
            clusters=None if clusters is None else _codes(task, one, clusters),
            score_bounds=entry.bounds if entry is not None else (0.0, 1.0) if _binary(one.column) else (-inf, inf),
        )
    except EvalError as wrong:
        raise locate(wrong, place(task.name, key=one.key)) from wrong
    known = with_noise(replace(estimate, scale=replace(estimate.scale, higher_is_better=higher)), one)
    draws, partial = inference.resampling.draws, _partial_credit(one.column)
    facts = Facts(one.key, known, pipeline, one.traits, pipeline.metrics or task.metrics, partial, draws)
    named = replace(known, errata=task_errata(facts))
    return sign(named, _parts(task, one, pipeline, named, inference), tables=tables.name, interval=inference.interval)


MEANS = ("mean", "nanmean")
"""Aggregations in which each of n documents moves the value by 1/n of what it moves itself."""


def with_noise(estimate: Estimate, one: ScoredColumn) -> Estimate:
    """The estimate with the part of its variance that comes from drawing answers, where that can be told."""
    if one.noise is None or estimate.spread.keys is None or not isinstance(one.noise.rows, Stats):
        return estimate
    # a document that counts as 0 because it has no score has no noise either
    keys = np.intersect1d(estimate.spread.keys.ints, one.column.keys.ints[one.column.scored])
    variances, replies = _noise_at(keys, one.noise.keys.ints, one.noise.rows.values.floats)
    noise, repeats = mean_noise(variances, replies)
    if repeats is None or (repeats == 1 and noise is None):
        return estimate
    known = noise is not None and estimate.scale.aggregation in MEANS and estimate.stderr is not None
    share = len(keys) / estimate.n
    part = noise * share**2 if known and noise is not None else None
    return replace(estimate, spread=replace(estimate.spread, noise=part, repeats=repeats))


def _noise_at(keys: Ints64, known: Ints64, rows: Floats64) -> tuple[Floats64, Floats64]:
    """Variances and replies of these documents; one of which nothing is known had one reply."""
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found = known[at] == keys
    return np.where(found, rows[at, 0], np.nan), np.where(found, rows[at, 1], 1.0)


def _parts(
    task: Task, one: ScoredColumn, pipeline: Pipeline, estimate: Estimate, inference: Inference
) -> Mapping[str, object]:
    """What a number's recipe says before how it was closed."""
    return {
        "task": task.name,
        "version": task.version,
        "metric": one.key.metric,
        "options": shown_options(estimate.scale.options),
        "filter": one.key.filter,
        "steps": ">".join(step.name for step in pipeline.steps) if task.filters else None,
        "reducer": one.reducer,
        "repeats": _span(one.repeats),
        "unscored": inference.on_unscorable,
        "sacrebleu": sacrebleu_version(estimate.scale.aggregation),
    }


def _partial_credit(column: Column) -> bool:
    """Whether any score lies strictly between 0 and 1."""
    if not isinstance(column.rows, Floats):
        return False
    values = column.rows.values.floats
    return bool(np.any((values > 0) & (values < 1)))


def _span(repeats: tuple[int, int] | None) -> str | None:
    return None if repeats is None or repeats == (1, 1) else "-".join(map(str, sorted(set(repeats))))


def _entry(task: Task, one: ScoredColumn, tables: Tables) -> AnyMetric | None:
    """What is known about a metric by its name: of the task's own output type, else of any."""
    name = one.spec.name if one.spec is not None else one.key.metric
    if one.spec is not None and one.spec.function is not None:
        return None
    own = tables.metrics.get(task.output_type)
    if own is not None and name in own:
        return own[name]
    if task.process_results is None:
        return None
    return next((tables.metrics[kind][name] for kind in sorted(tables.metrics) if name in tables.metrics[kind]), None)


def _aggregation(spec: MetricSpec, entry: AnyMetric | None, column: Column, tables: Tables) -> Aggregation:
    wanted = spec.aggregation if spec.aggregation is not None else entry.aggregation if entry is not None else "mean"
    if callable(wanted):
        return tables.from_callable(wanted)
    if wanted not in tables.aggregations:
        raise unknown("aggregation", wanted, tables.aggregations)
    found = tables.aggregations[wanted]
    # A metric nobody knows has no bounds but those it shows: 0 and 1 alone make it a proportion.
    return found if entry is not None or not found.average or _binary(column) else replace(found, bounds=(-inf, inf))


def _binary(column: Column) -> bool:
    if not isinstance(column.rows, Floats):
        return False
    values = column.rows.values.floats[column.scored]
    return bool(np.all((values == 0) | (values == 1)))


def _codes(task: Task, one: ScoredColumn, clusters: Mapping[int, int]) -> Ints64:
    keys = one.column.keys.ints.tolist()
    missing = next((key for key in keys if key not in clusters), None)
    if missing is not None:
        raise EvalError(f"expected a cluster for every document, got none{place(task.name, missing)}")
    return np.array([clusters[key] for key in keys], np.int64)


def _warnings(task: Task, one: ScoredColumn, tables: Tables) -> Iterable[str]:
    if "first reply" in one.traits and tables.unreduced is None:
        yield f"{task.name}: only the first reply is scored; name reducers (mean, pass@1, ...) to use them all"
    if one.spec is None:
        yield f"{task.name}: metric {one.key.metric!r} was emitted without being declared; aggregated by mean"
        return
    entry = _entry(task, one, tables)
    if entry is None and one.spec.aggregation is None:
        yield f"{task.name}: no aggregation defined for {one.key.metric!r}, using mean"
    known = None if entry is None else entry.options
    for name in sorted(one.spec.options) if known is not None else ():
        if name not in (known or ()):
            yield f"{task.name}: {one.spec.name} has no option {name!r}; it is ignored"
