"""Behaviour is data: every table the pipe looks things up in, in one frozen record."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.answers.batch import GenBatch, LLBatch, RollingBatch
from evalcore.core.answers.choice import MCBatch
from evalcore.core.filters.chain import FILTERS, Filter
from evalcore.core.groups.averages import AVERAGES, Average, SizeOf, own_size
from evalcore.core.groups.pool import pool
from evalcore.core.groups.rules import GROUP_RULES, GroupRule
from evalcore.core.groups.tree import Leaf, Tree, all_tasks
from evalcore.core.metrics.choice import CHOICE_METRICS
from evalcore.core.metrics.dispatch import SCORERS, Scorer
from evalcore.core.metrics.likelihood import LIKELIHOOD_METRICS, ROLLING_METRICS
from evalcore.core.metrics.metric import Metric
from evalcore.core.metrics.process_results import from_process_results
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.estimate import Aggregation, Resampling
from evalcore.core.records.report import TaskReport
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
)
from evalcore.core.records.task import MetricSpec, Pipeline, ProcessResults, Step, Task
from evalcore.core.repeats.reduce import REDUCERS, Reducer

__all__ = ["DEFAULT_METRICS", "EVALCORE", "METRICS", "Tables"]

AnyMetric = Metric[MCBatch] | Metric[GenBatch] | Metric[LLBatch] | Metric[RollingBatch]

CHOICES: dict[str, AnyMetric] = dict(CHOICE_METRICS)
TEXTS: dict[str, AnyMetric] = dict(TEXT_METRICS)
LIKELIHOODS: dict[str, AnyMetric] = dict(LIKELIHOOD_METRICS)
ROLLINGS: dict[str, AnyMetric] = dict(ROLLING_METRICS)

METRICS: PMap[OutputType, PMap[str, AnyMetric]] = pmap(
    {
        MULTIPLE_CHOICE: pmap(CHOICES),
        GENERATE_UNTIL: pmap(TEXTS),
        LOGLIKELIHOOD: pmap({**CHOICES, **LIKELIHOODS}),
        LOGLIKELIHOOD_ROLLING: pmap(ROLLINGS),
    }
)

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


def first_or_all(task: Task) -> Pipeline:
    """The pipeline of a task that names none: the first reply, or all of them where a reducer awaits them."""
    return Pipeline("none") if any(spec.reducers for spec in task.metrics) else TAKE_FIRST


def as_asked(metric: str, resampling: Resampling) -> Resampling:
    """As many resamples as were asked for, whatever the metric."""
    return resampling


class Tables(Struct, frozen=True, kw_only=True):
    """A host extends a table with ``.set(...)``, puts it here, and passes this on.

    ``unreduced`` is the reducer for several replies where a task declares none; None makes that an error.
    """

    name: str = "evalcore"
    filters: PMap[str, Filter] = FILTERS
    scorers: PMap[OutputType, Scorer] = SCORERS
    metrics: PMap[OutputType, PMap[str, AnyMetric]] = METRICS
    default_metrics: PMap[OutputType, tuple[str, ...]] = DEFAULT_METRICS
    reducers: PMap[str, Reducer] = REDUCERS
    aggregations: PMap[str, Aggregation] = AGGREGATIONS
    process_results: Callable[[ProcessResults], Scorer] = from_process_results
    resampling_of: Callable[[str, Resampling], Resampling] = as_asked
    from_callable: Callable[[Callable[..., object]], Aggregation] = from_callable
    averages: PMap[str, Average] = AVERAGES
    group_rules: PMap[str, GroupRule] = GROUP_RULES.set("pool", pool(AGGREGATIONS))
    size_of: SizeOf = own_size
    members: Callable[[Tree[TaskReport]], tuple[Leaf[TaskReport], ...]] = all_tasks
    default_pipeline: Callable[[Task], Pipeline] = first_or_all
    unreduced: str | None = None

    def __repr__(self) -> str:
        return f"Tables({self.name!r})"


EVALCORE = Tables()


def specs_of(task: Task, tables: Tables) -> tuple[MetricSpec, ...]:
    """The task's metrics, or its output type's usual ones."""
    if task.metrics or task.process_results is not None:
        return task.metrics
    return tuple(map(MetricSpec, tables.default_metrics.get(task.output_type, ())))


def pipelines_of(task: Task, tables: Tables) -> tuple[Pipeline, ...]:
    """The task's pipelines, or the one it has without naming any."""
    return task.filters or (tables.default_pipeline(task),)
