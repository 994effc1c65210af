"""What a task's columns are closed by, and the report of the estimates that come of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from toolz import unique

from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.numbers import SHARE, Bounds, fit_bounds, lies_within
from evalcore.core.aggregate.signature import sign, write_options
from evalcore.core.filters.letter import KEY
from evalcore.core.lm_eval.errata import Facts, task_errata
from evalcore.core.metrics.dispatch import AnyMetric
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.column import emitted_part
from evalcore.core.records.errors import EvalError, located, place, require, require_known
from evalcore.core.records.estimate import Aggregation, Estimate
from evalcore.core.records.outcome import FAILED, UNSCORABLE
from evalcore.core.records.report import TaskReport
from evalcore.core.records.request import Options
from evalcore.core.records.row import Stats
from evalcore.core.records.score import Scored, ScoredColumn, whole_columns
from evalcore.core.records.task import MetricSpec, Pipeline, Task, config_of
from evalcore.core.repeats.repeated_score import fill_unemitted
from evalcore.core.stats.noise import mean_noise
from evalcore.core.tables import EVALCORE, Tables, known_metrics, pipelines_of


class Estimand(Struct, frozen=True, eq=False):
    """A column of a task and all that its estimate depends on. ``closing`` is ``inference`` with its own resampling."""

    task: Task
    scored: ScoredColumn
    pipeline: Pipeline
    options: Options
    aggregation: Aggregation
    inference: Inference
    closing: Inference
    clusters: Ints64 | None
    score_bounds: Bounds | None
    higher_is_better: bool | None
    tables: str


def list_estimands(
    scored: Scored, *, inference: Inference, clusters: Mapping[int, int] | None, tables: Tables
) -> Iterator[Estimand]:
    """The columns of a task, each with what it is closed by."""
    if scored.tables != tables.name:
        raise EvalError(f"scored with the tables {scored.tables!r}, closed with {tables.name!r}; pass the same tables=")
    codes = clusters if clusters is not None else scored.clusters_by_key()
    pipelines = {pipeline.name: pipeline for pipeline in pipelines_of(scored.task, tables)}
    columns = fill_unemitted(whole_columns(scored))
    if tables.as_host:  # which leaves out what no document emitted
        columns = tuple(one for one in columns if not len(one.column) or len(emitted_part(one.column)))
    for column in columns:
        pipeline = pipelines.get(column.key.filter, Pipeline(column.key.filter))  # a log's may be gone
        yield _estimand(scored.task, column, pipeline, inference, codes, tables)


def _estimand(
    task: Task,
    one: ScoredColumn,
    pipeline: Pipeline,
    inference: Inference,
    clusters: Mapping[int, int] | None,
    tables: Tables,
) -> Estimand:
    entry = _entry(task, one, tables)
    spec = one.spec or MetricSpec(one.key.metric)
    higher = spec.higher_is_better if spec.higher_is_better is not None else entry.higher_is_better if entry else None
    where = place(task.name, key=one.key)
    if inference.on_unscorable == "zero":
        _refuse_zero(one, higher, where)
    with located(where):
        return Estimand(
            task,
            one,
            pipeline,
            spec.options,
            _aggregation(spec, entry, one, tables),
            inference,
            replace(inference, resampling=tables.resampling_of(one.key.metric, inference.resampling)),
            None if clusters is None else _codes(task, one, clusters),
            _score_bounds(spec, entry, one),
            higher,
            tables.name,
        )


def _refuse_zero(one: ScoredColumn, higher: bool | None, where: str) -> None:
    """Refuse to count failures as 0 where that is a good score, or where nobody said whether it is."""
    if higher is False:
        raise EvalError(
            f"on_unscorable: zero would reward failures, for less is better here; use exclude or fail{where}"
        )
    if higher is None and one.column.count(UNSCORABLE) + one.column.count(FAILED):
        name = one.key.metric
        raise EvalError(
            f"on_unscorable: zero may reward failures, for nobody said whether more {name} is better; declare it "
            f"(higher_is_better: true in the task file, --higher_is_better {name}), or use exclude or fail{where}"
        )


def sign_estimate(asked: Estimand, estimate: Estimate) -> Estimate:
    """An estimate with its direction, its noise, the errata that concern it, and its recipe."""
    one, task, inference = asked.scored, asked.task, asked.inference
    scale = replace(estimate.scale, higher_is_better=asked.higher_is_better, score_bounds=asked.score_bounds)
    directed = replace(estimate, scale=scale)
    known = with_noise(directed, one)
    draws, specs = inference.resampling.draws, asked.pipeline.metrics or task.metrics
    facts = Facts(one.key, known, asked.pipeline, one.traits, specs, one.column.rows, draws)
    named = replace(known, errata=task_errata(facts))
    parts = _parts(asked, named)
    return sign(named, parts, tables=asked.tables, interval=inference.method)


def describe_task(
    task: Task, closed: Sequence[tuple[ScoredColumn, Estimate]], n_original: int | None, tables: Tables
) -> TaskReport:
    """The report of a task whose columns are closed."""
    columns = [one for one, _ in closed]
    return TaskReport(
        name=task.name,
        estimates=tuple((one.key, estimate) for one, estimate in closed),
        columns=tuple((one.key, one.column) for one in columns),
        n_docs=max((one.column.documents for one in columns), default=0),
        n_original=n_original,
        alias=task.alias,
        version=task.version,
        num_fewshot=task.num_fewshot,
        config=task.config or config_of(task),
        directions=tables.directions(task, columns),
        warnings=tuple(unique(told for one, estimate in closed for told in _warnings(task, one, estimate, tables))),
    )


def aggregation_of(task: Task, one: ScoredColumn, tables: Tables = EVALCORE) -> Aggregation:
    """What a column of a task closes by."""
    return _aggregation(one.spec or MetricSpec(one.key.metric), _entry(task, one, tables), one, tables)


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
    known = noise is not None and estimate.scale.even and estimate.stderr is not None
    share = len(keys) / estimate.count
    part = noise * share**2 if known and noise is not None else None
    return replace(estimate, spread=replace(estimate.spread, noise=part, repeats=repeats))


def _noise_at(keys: Ints64, known: Ints64, rows: Floats64) -> tuple[Floats64, Floats64]:
    """Variances and replies of these documents; one of which nothing is known had one reply."""
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found = known[at] == keys
    return np.where(found, rows[at, 0], np.nan), np.where(found, rows[at, 1], 1.0)


def _parts(asked: Estimand, estimate: Estimate) -> Mapping[str, object]:
    """What a number's recipe says before how it was closed."""
    task, one, library = asked.task, asked.scored, asked.aggregation.library
    return {
        "task": task.name,
        "version": task.version,
        "metric": one.key.metric,
        "options": write_options(estimate.scale.options),
        "filter": one.key.filter,
        KEY: task.config.get(KEY),
        "steps": ">".join(step.name for step in asked.pipeline.steps) if task.filters else None,
        "reducer": one.reducer,
        "repeats": _span(one.repeats),
        "unscored": asked.inference.on_unscorable,
        **({} if library is None else {library: require(library, "text").__version__}),
    }


def _span(repeats: tuple[int, int] | None) -> str | None:
    return None if repeats is None or repeats == (1, 1) else "-".join(map(str, sorted(set(repeats))))


def _entry(task: Task, one: ScoredColumn, tables: Tables) -> AnyMetric | None:
    """What is known about a metric by its name: of the task's own output type, else of any."""
    name = one.spec.name if one.spec is not None else one.key.metric
    if one.spec is not None and one.spec.function is not None:
        return None
    own = known_metrics(task.output_type, tables)
    if name in own:
        return own[name]
    if task.process_results is None:
        return None
    return next((tables.metrics[kind][name] for kind in sorted(tables.metrics) if name in tables.metrics[kind]), None)


def _aggregation(spec: MetricSpec, entry: AnyMetric | None, one: ScoredColumn, tables: Tables) -> Aggregation:
    wanted = spec.aggregation if spec.aggregation is not None else entry.aggregation if entry is not None else "mean"
    if callable(wanted):
        return tables.from_callable(wanted)
    require_known("aggregation", [wanted], tables.aggregations)
    found = replace(tables.aggregations[wanted], name=wanted)  # its name in the table is the one to find it by
    return fit_bounds(found, _score_bounds(spec, entry, one), one.column, share=SHARE in one.traits)


def _score_bounds(spec: MetricSpec, entry: AnyMetric | None, one: ScoredColumn) -> Bounds | None:
    """The bounds of a document's score that the task declares, else those of the table."""
    if spec.bounds is not None or entry is None:
        return spec.bounds
    return entry.bounds if lies_within(one.column, entry.bounds) else None  # an F1 in percent may be called f1, too


def declared_bounds(task: Task, one: ScoredColumn, tables: Tables = EVALCORE) -> Bounds | None:
    """The bounds that a document's score should keep to, whether it does or not."""
    entry = _entry(task, one, tables)
    own = None if one.spec is None else one.spec.bounds
    return own if own is not None or entry is None else entry.bounds


def _codes(task: Task, one: ScoredColumn, clusters: Mapping[int, int]) -> Ints64:
    keys = one.column.keys.ints.tolist()
    missing = next((key for key in keys if key not in clusters), None)
    if missing is not None:
        raise EvalError(f"expected a cluster for every document, got none{place(task.name, missing)}")
    return np.array([clusters[key] for key in keys], np.int64)


def _warnings(task: Task, one: ScoredColumn, estimate: Estimate, tables: Tables) -> Iterable[str]:
    yield from (f"{task.name}: {one.key}: {warning}" for warning in estimate.warnings)
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
