"""lm-eval's task objects as evalcore's: scored by evalcore where it knows all they name, else by their own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getattr_static
from typing import cast

from msgspec.structs import replace

from evalcore.adapters.lm_eval.host import LmFilters, LmTask, lm_eval_module
from evalcore.core.filters.chain import leaves_of
from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, OutputType, freeze_options
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task
from evalcore.core.tables import Tables, known_metrics

__all__ = ["THEIRS", "declared_metrics", "is_known", "read_pipelines", "read_task"]

THEIRS = "lm-eval filter"
"""The step that runs a filter class of lm-eval or of the user on the replies."""

OWN_METHODS = ("process_results", "aggregation", "construct_requests", "count_words", "count_bytes")
"""Methods that decide a score; a Python class that has its own is scored by its own."""


def read_task(name: str, task: LmTask, tables: Tables, kinds: Sequence[set[str]]) -> Task:
    """A task of lm-eval; ``kinds`` are the request types of each document, which tell how its replies belong together.

    Where the task is not wholly known, evalcore still filters, aggregates and estimates: only the step from a
    document's replies to its scores is lm-eval's or the user's.
    """
    config = dict(task.dump_config())
    known, pipelines = is_known(task, tables), read_pipelines(getattr(task, "_filters", ()), tables)
    made = _own_task(name, task, tables) if known else _their_task(name, task, tables, kinds)
    alias, shots = config.get("task_alias"), config.get("num_fewshot")
    return replace(
        made,
        filters=pipelines if known else tuple(map(_as_left, pipelines)),
        alias=alias if isinstance(alias, str) else None,
        version=task.VERSION,
        num_fewshot=shots if isinstance(shots, int) else 0,
        config=freeze_options({key: value for key, value in config.items() if not callable(value)}),
    )


def is_known(task: LmTask, tables: Tables) -> bool:
    """Whether evalcore can score the documents of a task itself: lm-eval's own methods, and metrics that it knows."""
    plain = lm_eval_module("api.task").ConfigurableTask
    if not isinstance(task, plain) or callable(task.config.process_results):
        return False
    if any(getattr_static(task, name) is not getattr_static(plain, name) for name in OWN_METHODS):
        return False
    known = known_metrics(OutputType(str(task.OUTPUT_TYPE)), tables)
    if not known:
        return False
    strange = [name for name in _functions_of(task) if name not in known]
    if not strange or tables.unreduced is None:
        return not strange or task.OUTPUT_TYPE == GENERATE_UNTIL
    alike = len(strange) == len(_functions_of(task)) or _takes_one(task, tables)
    return task.OUTPUT_TYPE == GENERATE_UNTIL and alike


def _takes_one(task: LmTask, tables: Tables) -> bool:
    """Whether every pipeline leaves one reply; else lm-eval hands the whole list to metrics of the user's own."""
    pipelines = read_pipelines(getattr(task, "_filters", ()), tables)
    return all("first" in leaves_of(one, tables.filters) for one in pipelines)


# --- scored by evalcore ---------------------------------------------------------------------------------------


def _own_task(name: str, task: LmTask, tables: Tables) -> Task:
    listed = task.config.metric_list or [{"metric": one} for one in _functions_of(task)]
    metrics = [_read_metric(task, dict(one), tables) for one in listed]
    return task_from_config({"task": name, "output_type": task.OUTPUT_TYPE, "metric_list": metrics})


def _read_metric(task: LmTask, entry: dict[str, object], tables: Tables) -> dict[str, object]:
    """An entry of a metric list in which names that only lm-eval's registry knows are the functions behind them."""
    given, aggregation = entry["metric"], entry.get("aggregation")
    name = str(getattr(given, "__name__", "metric")) if callable(given) else str(given)
    strange = not callable(given) and name not in tables.metrics[OutputType(str(task.OUTPUT_TYPE))]
    if strange:
        entry["metric"] = _named(_functions_of(task)[name], name)
    if (aggregation is None and (strange or callable(given))) or _is_strange(aggregation, tables):
        entry["aggregation"] = _aggregation(task.aggregation()[name], tables)
    return entry


def _is_strange(aggregation: object, tables: Tables) -> bool:
    return isinstance(aggregation, str) and aggregation not in tables.aggregations


def _functions_of(task: LmTask) -> Mapping[str, Callable[..., object]]:
    """The task's metrics by name, with the functions that lm-eval found for them."""
    return cast(Mapping[str, Callable[..., object]], getattr(task, "_metric_fn_list", {}))


def _named(function: Callable[..., object], name: str) -> Callable[..., object]:
    made = partial(function)
    made.__name__ = name  # type: ignore[attr-defined]  # metrics are called by the name of their function
    return made


# --- scored by lm-eval's or the user's code ---------------------------------------------------------------------


def _their_task(name: str, task: LmTask, tables: Tables, kinds: Sequence[set[str]]) -> Task:
    return Task(name, _kind(kinds), declared_metrics(task, tables))


def declared_metrics(task: LmTask, tables: Tables) -> tuple[MetricSpec, ...]:
    """The metrics that a task says how to aggregate; after scoring it may name more (pass@1 of pass_at_k)."""
    higher = task.higher_is_better()
    return tuple(
        MetricSpec(metric, _aggregation(function, tables), (), higher.get(metric))
        for metric, function in task.aggregation().items()
    )


def _kind(kinds: Sequence[set[str]]) -> OutputType:
    """Replies to several requests of a document stay apart, as those to choices do."""
    texts = all(kind == {GENERATE_UNTIL} for kind in kinds)
    return GENERATE_UNTIL if texts else MULTIPLE_CHOICE


def _aggregation(function: Callable[..., object], tables: Tables) -> str | Callable[..., object]:
    """The name of an aggregation of lm-eval that evalcore has too; a function of the user's own as it is."""
    registry = lm_eval_module("api.registry").AGGREGATION_REGISTRY
    names = [str(name) for name, known in registry.items() if known is function]
    return next((name for name in names if name in tables.aggregations), function)


# --- filters ----------------------------------------------------------------------------------------------------


def read_pipelines(ensembles: Sequence[LmFilters], tables: Tables) -> tuple[Pipeline, ...]:
    """lm-eval's filter ensembles: by name where evalcore has the filter, else as lm-eval's own code."""
    return tuple(Pipeline(one.name, tuple(_read_step(make, tables) for make in one.filters)) for one in ensembles)


def _as_left(pipeline: Pipeline) -> Pipeline:
    """Own scoring code gets just what a filter of its own left, be it a reply or a list of them."""
    *before, last = pipeline.steps or (Step("none"),)
    if last.name != THEIRS:
        return pipeline
    whole = Step(THEIRS, last.options.set("whole", True))
    return Pipeline(pipeline.name, (*before, whole, Step("take_first")))


def _read_step(make: Callable[[], object], tables: Tables) -> Step:
    kind, named = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    registry = lm_eval_module("api.registry").FILTER_REGISTRY
    names = [str(name) for name, known in registry.items() if known is kind]
    shipped = str(getattr(kind, "__module__", "")).startswith("lm_eval.filters.")
    name = next((name for name in names if shipped and name in tables.filters and name != "custom"), None)
    return Step.of(THEIRS, make=make) if name is None else Step(name, freeze_options(named))
