"""lm-eval's task objects as evalcore's: scored by evalcore if it knows all they name, else by their own code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getattr_static
from typing import cast

from msgspec.structs import replace

from evalcore.adapters.lm_eval.host import LmFilters, LmTask, import_lm_eval
from evalcore.core.filters.chain import leaves_of
from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, OutputType, freeze_options
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task
from evalcore.core.tables import Tables, known_metrics

THEIRS = "lm-eval filter"
"""The step that runs a filter class of lm-eval or of the user."""

OWN_METHODS = ("process_results", "aggregation", "construct_requests", "count_words", "count_bytes")
"""Methods that decide a score; a Python class that overrides one is scored by its own code."""


def read_task(name: str, task: LmTask, tables: Tables, kinds: Sequence[set[str]]) -> Task:
    """Read a task of lm-eval; ``kinds`` are the request types of each document, which say how its replies belong
    together.

    If the task is not wholly known, evalcore still filters, aggregates and estimates: only the step from a document's
    replies to its scores is lm-eval's or the user's.
    """
    refuse_lost_metrics(name, task, tables)
    config = dict(task.dump_config())
    known, pipelines = is_known(task, tables), read_pipelines(getattr(task, "_filters", ()), tables)
    made = _read_own(name, task, tables) if known else Task(name, _choose_kind(kinds), list_metrics(task, tables))
    alias, shots = config.get("task_alias"), config.get("num_fewshot")
    return replace(
        made,
        filters=pipelines if known else tuple(map(_keep_left, pipelines)),
        alias=alias if isinstance(alias, str) else None,
        version=task.VERSION,
        num_fewshot=shots if isinstance(shots, int) else 0,
        config=freeze_options({key: value for key, value in config.items() if not callable(value)}),
    )


def refuse_lost_metrics(name: str, task: LmTask, tables: Tables) -> None:
    """Refuse a metric whose function is None: lm-eval's word for one that neither it nor ``evaluate`` could load."""
    if task.OUTPUT_TYPE != GENERATE_UNTIL or task.config.process_results is not None:
        return
    known = known_metrics(GENERATE_UNTIL, tables)
    for metric, function in _find_functions(task).items():
        if function is None and metric not in known:
            raise EvalError(
                f"metric {metric!r}: lm-eval has none of this name, and Hugging Face's evaluate could not load one; "
                f'with a network, run once: python -c "import evaluate; evaluate.load({metric!r})"{place(name)}'
            )


def is_known(task: LmTask, tables: Tables) -> bool:
    """Whether evalcore can score the documents of a task itself: lm-eval's own methods, and metrics that
    evalcore knows.
    """
    plain = import_lm_eval("api.task").ConfigurableTask
    if not isinstance(task, plain) or callable(task.config.process_results):
        return False
    if any(getattr_static(task, name) is not getattr_static(plain, name) for name in OWN_METHODS):
        return False
    known = known_metrics(OutputType(str(task.OUTPUT_TYPE)), tables)
    if not known:
        return False
    strange = [name for name in _find_functions(task) if name not in known]
    if not strange or tables.unreduced is None:
        return not strange or task.OUTPUT_TYPE == GENERATE_UNTIL
    alike = len(strange) == len(_find_functions(task)) or _takes_one(task, tables)
    return task.OUTPUT_TYPE == GENERATE_UNTIL and alike


def _takes_one(task: LmTask, tables: Tables) -> bool:
    """Whether every pipeline leaves one reply; otherwise lm-eval gives the whole list to metrics of the user's own."""
    pipelines = read_pipelines(getattr(task, "_filters", ()), tables)
    return all("first" in leaves_of(one, tables.filters) for one in pipelines)


# --- scored by evalcore ---------------------------------------------------------------------------------------


def _read_own(name: str, task: LmTask, tables: Tables) -> Task:
    listed = task.config.metric_list or [{"metric": one} for one in _find_functions(task)]
    metrics = [_read_metric(task, dict(one), tables) for one in listed]
    return task_from_config({"task": name, "output_type": task.OUTPUT_TYPE, "metric_list": metrics})


def _read_metric(task: LmTask, entry: dict[str, object], tables: Tables) -> dict[str, object]:
    """Read an entry of a metric list; names that only lm-eval's registry knows become their functions."""
    given, aggregation = entry["metric"], entry.get("aggregation")
    name = str(getattr(given, "__name__", "metric")) if callable(given) else str(given)
    strange = not callable(given) and name not in tables.metrics[OutputType(str(task.OUTPUT_TYPE))]
    if strange:
        entry["metric"] = _name_function(_find_functions(task)[name], name)
    if (aggregation is None and (strange or callable(given))) or _is_strange(aggregation, tables):
        entry["aggregation"] = _name_aggregation(task.aggregation()[name], tables)
    return entry


def _is_strange(aggregation: object, tables: Tables) -> bool:
    return isinstance(aggregation, str) and aggregation not in tables.aggregations


def _find_functions(task: LmTask) -> Mapping[str, Callable[..., object] | None]:
    """Find the task's metrics by name, with the functions that lm-eval found for them."""
    return cast(Mapping[str, Callable[..., object] | None], getattr(task, "_metric_fn_list", {}))


def _name_function(function: Callable[..., object] | None, name: str) -> Callable[..., object]:
    if function is None:
        raise EvalError(f"expected a function for metric {name!r}, got none")  # refuse_lost_metrics says more, earlier
    made = partial(function)
    made.__name__ = name  # type: ignore[attr-defined]  # metrics go by the name of their function
    return made


# --- scored by lm-eval's or the user's code ---------------------------------------------------------------------


def list_metrics(task: LmTask, tables: Tables) -> tuple[MetricSpec, ...]:
    """List the metrics that a task can aggregate; after scoring it may name more (pass@1 of pass_at_k)."""
    higher = task.higher_is_better()
    return tuple(
        MetricSpec(metric, _name_aggregation(function, tables), (), higher.get(metric))
        for metric, function in task.aggregation().items()
    )


def _choose_kind(kinds: Sequence[set[str]]) -> OutputType:
    """Choose an output type that keeps replies to several requests of a document apart, as those to choices."""
    texts = all(kind == {GENERATE_UNTIL} for kind in kinds)
    return GENERATE_UNTIL if texts else MULTIPLE_CHOICE


def _name_aggregation(function: Callable[..., object], tables: Tables) -> str | Callable[..., object]:
    """Name an aggregation of lm-eval that evalcore has too; a function of the user's own stays itself."""
    registry = import_lm_eval("api.registry").AGGREGATION_REGISTRY
    names = [str(name) for name, known in registry.items() if known is function]
    return next((name for name in names if name in tables.aggregations), function)


# --- filters ----------------------------------------------------------------------------------------------------


def read_pipelines(ensembles: Sequence[LmFilters], tables: Tables) -> tuple[Pipeline, ...]:
    """Read lm-eval's filter ensembles: by name if evalcore has the filter, else as lm-eval's own code."""
    return tuple(Pipeline(one.name, tuple(_read_step(make, tables) for make in one.filters)) for one in ensembles)


def _keep_left(pipeline: Pipeline) -> Pipeline:
    """Give own scoring code just what its own filter left, be it a reply or a list of them."""
    *before, last = pipeline.steps or (Step("none"),)
    if last.name != THEIRS:
        return pipeline
    whole = Step(THEIRS, last.options.set("whole", True))
    return Pipeline(pipeline.name, (*before, whole, Step("take_first")))


def _read_step(make: Callable[[], object], tables: Tables) -> Step:
    kind, named = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    registry = import_lm_eval("api.registry").FILTER_REGISTRY
    names = [str(name) for name, known in registry.items() if known is kind]
    shipped = str(getattr(kind, "__module__", "")).startswith("lm_eval.filters.")
    ours = (name for name in names if shipped and name in tables.filters)
    name = next((name for name in ours if tables.filters[name].scope == "document"), None)  # the others are user code
    return Step.of(THEIRS, make=make) if name is None else Step(name, freeze_options(named))
