"""Behaviour is data: every table the pipe looks things up in, in one frozen record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import force_setattr
from pyrsistent import PMap, pmap

from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.filters.chain import FILTERS, chain, leaves_of, scope_of
from evalcore.core.filters.reply import Filter, FilterFn
from evalcore.core.groups.averages import AVERAGES, Average, SizeOf, own_size
from evalcore.core.groups.rules import BY_CALLABLE, GROUP_RULES, GroupRule, GroupTables
from evalcore.core.groups.tree import Leaf, Tree, all_tasks
from evalcore.core.metrics.custom import own_metric
from evalcore.core.metrics.dispatch import METRICS, NONE, SCORERS, AnyMetric, Metrics, MetricScorer, Scorer
from evalcore.core.metrics.process_results import RecordScorer, from_process_results
from evalcore.core.records.errors import located, place, unknown
from evalcore.core.records.estimate import Aggregation, Resampling
from evalcore.core.records.report import Directions, TaskReport
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricSpec, Pipeline, ProcessResults, Step, Task
from evalcore.core.repeats.reducers import REDUCERS, Reducers
from evalcore.core.stats.intervals import INTERVALS, Interval

DEFAULT_METRICS: PMap[OutputType, tuple[str, ...]] = pmap(
    {
        MULTIPLE_CHOICE: ("acc", "acc_norm"),
        GENERATE_UNTIL: ("exact_match",),
        LOGLIKELIHOOD: ("perplexity", "acc"),
        LOGLIKELIHOOD_ROLLING: ("word_perplexity", "byte_perplexity", "bits_per_byte"),
    }
)
"""What a task without a metric list is measured by, as in lm-eval."""

TAKE_FIRST = Pipeline("none", (Step("take_first"),))


def first_or_all(task: Task, tables: Tables) -> Pipeline:
    """The pipeline of a task that names none: the first reply, or all of them where a metric awaits them."""
    together = _scores_together(tables.scorers.get(task.output_type))
    awaited = together or any(spec.reducers or sees_all(spec, task, tables) for spec in task.metrics)
    return Pipeline("none") if awaited else TAKE_FIRST


def sees_all(spec: MetricSpec, task: Task, tables: Tables) -> bool:
    """Whether a task's own function takes all replies of a document at once."""
    scorer = tables.scorers.get(task.output_type)
    if spec.function is None or not isinstance(scorer, MetricScorer):
        return False
    with located(place(task.name, key=spec.name)):
        return own_metric(spec.function, scorer.records, spec.options).together


def as_asked(metric: str, resampling: Resampling) -> Resampling:
    """As many resamples as were asked for, whatever the metric."""
    return resampling


def as_estimated(task: Task, columns: Sequence[ScoredColumn]) -> None:
    """List no other directions than those of the estimates."""


class Tables(Struct, frozen=True, kw_only=True):
    """A host extends a table with ``.set(...)``, puts it here, and passes this on.

    ``unreduced`` is the reducer for several replies where a task declares none; None makes that an error. With
    ``as_host``, adapters leave out of another program's results what it leaves out itself.
    """

    name: str = "evalcore"
    filters: PMap[str, Filter] = FILTERS
    scorers: PMap[OutputType, Scorer] = SCORERS
    metrics: Metrics = METRICS
    default_metrics: PMap[OutputType, tuple[str, ...]] = DEFAULT_METRICS
    reducers: Reducers = REDUCERS
    aggregations: PMap[str, Aggregation] = AGGREGATIONS
    process_results: Callable[[ProcessResults], Scorer] = from_process_results
    resampling_of: Callable[[str, Resampling], Resampling] = as_asked
    from_callable: Callable[[Callable[..., object]], Aggregation] = from_callable
    intervals: PMap[str, Interval] = INTERVALS
    averages: PMap[str, Average] = AVERAGES
    group_rules: PMap[str, GroupRule] = GROUP_RULES
    group_callable: GroupRule = BY_CALLABLE
    size_of: SizeOf = own_size
    members: Callable[[Tree[TaskReport]], tuple[Leaf[TaskReport], ...]] = all_tasks
    default_pipeline: Callable[[Task, Tables], Pipeline] = first_or_all
    directions: Callable[[Task, Sequence[ScoredColumn]], Directions | None] = as_estimated
    unreduced: str | None = None
    as_host: bool = False

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, dict):
                force_setattr(
                    self, name, pmap({key: pmap(v) if isinstance(v, dict) else v for key, v in value.items()})
                )

    def __repr__(self) -> str:
        return f"Tables({self.name!r})"

    @property
    def group_tables(self) -> GroupTables:
        """What configs of groups may name."""
        return GroupTables(self.group_rules, self.averages)


EVALCORE = Tables()


def specs_of(task: Task, tables: Tables) -> tuple[MetricSpec, ...]:
    """The task's metrics, or its output type's usual ones."""
    if task.metrics or task.process_results is not None:
        return task.metrics
    return tuple(map(MetricSpec, tables.default_metrics.get(task.output_type, ())))


def pipelines_of(task: Task, tables: Tables) -> tuple[Pipeline, ...]:
    """The task's pipelines, or the one it has without naming any."""
    return task.filters or (tables.default_pipeline(task, tables),)


def known_metrics(kind: OutputType, tables: Tables = EVALCORE) -> PMap[str, AnyMetric]:
    """The metrics that tasks of an output type may name: those that its scorer asks.

    >>> sorted(known_metrics(LOGLIKELIHOOD))[:4]
    ['acc', 'acc_all', 'acc_bytes', 'acc_mutual_info']
    """
    scorer = tables.scorers.get(kind)
    kinds = scorer.kinds if isinstance(scorer, MetricScorer) else (kind,)
    *others, found = (tables.metrics.get(one, NONE) for one in kinds)
    for one in reversed(others):
        found = found.update(one)
    return found


class BoundPipeline(Struct, frozen=True, eq=False):
    """A pipeline of a task with the functions that its names stand for in the tables.

    ``each`` are the metrics that score reply by reply, ``together`` those that take all replies of a document at once.
    ``whole``: a filter looks at all documents at once. ``lists``: user code gets the replies of a document as a list.
    ``records``: user code gets results, which say what was asked.
    """

    task: Task
    pipeline: Pipeline
    tables: Tables
    specs: tuple[MetricSpec, ...]
    apply: FilterFn
    score: Scorer
    whole: bool
    lists: bool
    each: tuple[MetricSpec, ...] | None
    together: tuple[MetricSpec, ...] | None
    records: bool

    def __reduce__(self) -> tuple[Callable[..., BoundPipeline], tuple[Task, Pipeline, Tables]]:
        """It pickles as its names: filters are closures, which are made again where they are needed."""
        return bind_pipeline, (self.task, self.pipeline, self.tables)


def bind_pipelines(task: Task, tables: Tables) -> tuple[BoundPipeline, ...]:
    """Every pipeline of a task, bound to the tables.

    >>> [bound.pipeline.name for bound in bind_pipelines(Task("t", GENERATE_UNTIL), EVALCORE)]
    ['none']
    """
    with located(place(task.name)):
        return tuple(bind_pipeline(task, pipeline, tables) for pipeline in pipelines_of(task, tables))


def bind_pipeline(task: Task, pipeline: Pipeline, tables: Tables) -> BoundPipeline:
    specs = pipeline.metrics or specs_of(task, tables)
    together = () if task.process_results is not None else tuple(spec for spec in specs if sees_all(spec, task, tables))
    scorer = _find_scorer(task, tables)
    records = task.process_results is None and not isinstance(scorer, MetricScorer)
    return BoundPipeline(
        task,
        pipeline,
        tables,
        specs,
        apply=chain(pipeline, tables.filters),
        score=scorer.bind(tables.metrics, specs) if isinstance(scorer, MetricScorer) else scorer,
        whole=scope_of(pipeline, tables.filters) == "task",
        lists=_leaves_lists(task, pipeline, specs, tables),
        each=None if _scores_together(scorer) else _without(specs, together),
        together=specs if _scores_together(scorer) else together or None,
        records=records or any(spec.function is not None for spec in specs),
    )


def _without(specs: tuple[MetricSpec, ...], others: Sequence[MetricSpec]) -> tuple[MetricSpec, ...]:
    return tuple(spec for spec in specs if spec not in others) if others else specs


def _scores_together(scorer: Scorer | None) -> bool:
    return isinstance(scorer, RecordScorer) and scorer.together


def _find_scorer(task: Task, tables: Tables) -> Scorer:
    if task.process_results is not None:
        return tables.process_results(task.process_results)
    scorer = tables.scorers.get(task.output_type)
    if scorer is None:
        raise unknown("output type", task.output_type, tables.scorers, place(task.name))
    return scorer


def _leaves_lists(task: Task, pipeline: Pipeline, specs: Sequence[MetricSpec], tables: Tables) -> bool:
    """Whether user code gets all replies of a document at once: no filter takes one of them, no reducer awaits them."""
    users = task.process_results is not None or (bool(specs) and all(spec.lists for spec in specs))
    taken = "first" in leaves_of(pipeline, tables.filters)
    return bool(pipeline.steps) and users and not taken and not any(spec.reducers for spec in specs)
