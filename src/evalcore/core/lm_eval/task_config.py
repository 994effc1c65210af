"""Tasks from lm-eval's configs as plain data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from evalcore.core.metrics.corpus import CORPUS_KINDS
from evalcore.core.metrics.custom import PerDocument, per_document
from evalcore.core.metrics.form import takes_result
from evalcore.core.records.errors import EvalError, place, require_known
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD, MULTIPLE_CHOICE, OutputType, freeze_options
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task, name_function, read_bounds
from evalcore.core.tables import DEFAULT_METRICS

Config = Mapping[str, object]
Reducing = str | Callable[..., object]

METRIC_KEYS = frozenset({"metric", "aggregation", "higher_is_better", "bounds", "reducer", "reducers", "hf_evaluate"})
"""The keys of a metric that are no options of it. lm-eval has neither ``bounds`` nor reducers here."""
MOST_REPEATS = 1_000_000
VERSIONS = int | float | str


def task_from_config(config: Config) -> Task:
    """Build the task that a config describes; what scoring does not need stays in its ``config``.

    >>> task = task_from_config({"task": "t", "output_type": "multiple_choice", "metric_list": [{"metric": "acc"}]})
    >>> task.name, [spec.name for spec in task.metrics]
    ('t', ['acc'])
    """
    name = str(config.get("task") or "")
    if not name:
        raise EvalError(f"expected a task with a name under the key 'task', got keys {sorted(map(str, config))}")
    reducers = reducers_of(config)
    generates = (config.get("output_type") or GENERATE_UNTIL) == GENERATE_UNTIL
    read = (
        partial(_read_text_metric, task=name, reducers=reducers)
        if generates
        else partial(metric_from_config, task=name, reducers=reducers)
    )
    metrics = tuple(map(read, _list_entries(config, "metric_list", name)))
    if not metrics and config.get("output_type") == LOGLIKELIHOOD and config.get("doc_to_choice") is not None:
        metrics = tuple(map(MetricSpec, DEFAULT_METRICS[MULTIPLE_CHOICE]))  # every choice is asked
    metadata = config.get("metadata")
    version = metadata.get("version") if isinstance(metadata, Mapping) else None
    process, alias, shots = config.get("process_results"), config.get("task_alias"), config.get("num_fewshot")
    _expect(process is None or callable(process), "process_results", "a function", process, name)
    _expect(shots is None or type(shots) is int, "num_fewshot", "an integer", shots, name)
    return Task(
        name,
        OutputType(str(config.get("output_type") or GENERATE_UNTIL)),
        metrics,
        tuple(pipeline_from_config(one, name, reducers) for one in _list_entries(config, "filter_list", name)),
        process if callable(process) else None,
        alias if isinstance(alias, str) else None,
        version if isinstance(version, VERSIONS) else None,
        shots if isinstance(shots, int) else None,
        config=freeze_options(config),
    )


def metric_from_config(config: Config, task: str = "", reducers: tuple[Reducing, ...] = ()) -> MetricSpec:
    """Read one entry of a metric list; unknown keys are the metric's options.

    >>> spec = metric_from_config({"metric": "exact_match", "ignore_case": True, "reducer": "pass@2", "bounds": [0, 1]})
    >>> spec.reducers, dict(spec.options), spec.bounds
    (('pass@2',), {'ignore_case': True}, (0.0, 1.0))
    """
    metric, aggregation, higher = config.get("metric"), config.get("aggregation"), config.get("higher_is_better")
    if not isinstance(metric, str) and not callable(metric):
        raise EvalError(f"expected the name of a metric or a function, got {metric!r}{place(task)}")
    known = aggregation is None or isinstance(aggregation, str) or callable(aggregation)
    _expect(known, "aggregation", "a name or a function", aggregation, task)
    name = metric if isinstance(metric, str) else name_function(metric)
    own, of_result = _list_reducers(config.get("reducers", config.get("reducer"))), takes_result(metric)
    return MetricSpec(
        name,
        aggregation if isinstance(aggregation, str) or callable(aggregation) else None,
        own or (() if of_result else reducers),
        higher if isinstance(higher, bool) else None,
        freeze_options({str(key): value for key, value in config.items() if key not in METRIC_KEYS}),
        PerDocument(metric, kept=callable(aggregation), listed=not of_result) if callable(metric) else None,
        lists=callable(metric) and not of_result,
        bounds=read_bounds(config.get("bounds"), place(task, key=name)),
    )


PASSED_ON = frozenset({"acc", "acc_norm", "acc_mutual_info", "f1", "mcc", "brier_score", *CORPUS_KINDS})
"""Metrics whose (gold, prediction) pairs lm-eval hands to the aggregation (lm_eval/api/metrics.py: "passthrough")."""


def _read_text_metric(config: Config, task: str, reducers: tuple[Reducing, ...]) -> MetricSpec:
    """Read a metric of generated texts. Some only pass pairs on, to an aggregation of the task's own or of a corpus.

    >>> _read_text_metric({"metric": "bleu", "aggregation": "chrf"}, "t", ()).function is None
    False
    """
    metric, how = config.get("metric"), config.get("aggregation")
    passed = callable(how) or (isinstance(how, str) and how in CORPUS_KINDS and how != metric)
    if not isinstance(metric, str) or metric not in PASSED_ON or not passed:
        return metric_from_config(config, task, reducers)
    plain = {key: value for key, value in config.items() if key in METRIC_KEYS}
    return replace(
        metric_from_config(plain, task, reducers), function=per_document(_pair_with_gold, kept=True), lists=True
    )


def _pair_with_gold(prediction: object, gold: object) -> tuple[object, object]:
    return gold, prediction


SAME_IN_EVALUATE = frozenset({"exact_match"})
"""Metrics of lm-eval, and so of ours, that are a copy of the script of this name in Hugging Face's ``evaluate``."""


def is_from_evaluate(config: Config, known: Collection[str]) -> bool:
    """Whether lm-eval takes a metric of texts from Hugging Face's ``evaluate``, and it is none of ours.

    >>> is_from_evaluate({"metric": "wer"}, ["bleu"]), is_from_evaluate({"metric": "bleu"}, ["bleu"])
    (True, False)
    >>> is_from_evaluate({"metric": "bleu", "hf_evaluate": True}, ["bleu"])
    True
    """
    name = config.get("metric")
    if not isinstance(name, str):
        return False
    return name not in known or (config.get("hf_evaluate") is True and name not in SAME_IN_EVALUATE)


def pipeline_from_config(config: Config, task: str = "", reducers: tuple[Reducing, ...] = ()) -> Pipeline:
    """Read one entry of a filter list, with its own metric list if it has one.

    >>> pipeline_from_config({"name": "strict", "filter": [{"function": "take_first"}]}).steps[0].name
    'take_first'
    """
    require_known("key of a filter list", config, ("name", "filter", "metric_list"), place(task))
    steps = [_read_step(one) for one in _list_entries(config, "filter", task)]
    metrics = tuple(metric_from_config(one, task, reducers) for one in _list_entries(config, "metric_list", task))
    return Pipeline(str(config.get("name") or "none"), tuple(steps), metrics or None)


def _read_step(config: Config) -> Step:
    """Read a filter by name, or a user's class that has lm-eval's ``apply(replies, documents)``."""
    function, named = config.get("function"), {str(key): value for key, value in config.items() if key != "function"}
    if callable(function):
        return Step.of("custom", filter_fn=partial(_apply_class, function, named))
    return Step(str(function), freeze_options(named))


def _apply_class(make: Callable[..., object], named: Config, replies: object, docs: object) -> object:
    return make(**named).apply(replies, docs)  # type: ignore[attr-defined]  # by lm-eval's contract of a filter


def repeats_of(config: Config) -> int:
    """How often each request is asked: ``repeats``, or ``num_return_sequences`` in the generation or repeat options.

    >>> repeats_of({"repeats": 4}), repeats_of({"generation_kwargs": {"num_return_sequences": 8}}), repeats_of({})
    (4, 8, 1)
    """
    nested = [config.get("repeat_cfg"), config.get("generation_kwargs")]
    counts = [
        part.get(key) for part in nested if isinstance(part, Mapping) for key in ("repeats", "num_return_sequences")
    ]
    for value in (config.get("repeats"), *counts):
        if value is None or value == 1:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_REPEATS:
            raise EvalError(f"expected repeats to be an integer from 1 to {MOST_REPEATS:,}, got {value!r}")
        return value
    return 1


def reducers_of(config: Config) -> tuple[Reducing, ...]:
    """The reducers that ``repeat_cfg`` gives to every metric without its own.

    >>> reducers_of({"repeat_cfg": {"reducer": ["mean", "pass@2"]}})
    ('mean', 'pass@2')
    """
    part = config.get("repeat_cfg")
    return _list_reducers(part.get("reducer", part.get("reducers"))) if isinstance(part, Mapping) else ()


def _expect(fine: bool, key: str, what: str, given: object, task: str) -> None:
    if not fine:
        raise EvalError(f"expected {key} to be {what}, got {given!r}{place(task)}")


def _list_reducers(given: object) -> tuple[Reducing, ...]:
    many = given if isinstance(given, list | tuple) else () if given is None else (given,)
    return tuple(one if callable(one) else str(one) for one in many)


def _list_entries(config: Config, key: str, task: str) -> Sequence[Config]:
    given = config.get(key)
    entries = given if isinstance(given, list | tuple) else [] if given is None else [given]
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise EvalError(f"expected entries of {key} to be mappings, got {entry!r}{place(task)}")
    return list(entries)
