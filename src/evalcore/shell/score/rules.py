"""New rules for old answers: filters, metrics and reducers from flags, laid over a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.filters.chain import leaves_of
from evalcore.core.lm_eval.task_config import metric_from_config, pipeline_from_config
from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD, freeze_options
from evalcore.core.records.task import MetricSpec, Pipeline, Step, Task, config_of, describe_metric, describe_pipeline
from evalcore.core.tables import EVALCORE, Tables, specs_of
from evalcore.shell.logs.declarations import Declarations
from evalcore.shell.logs.log import NOTHING, Logged, LogTask

Plain = Mapping[str, object]
NOTHING_DECLARED = Declarations()
UNNAMED = "none"
"""What steps are called that nobody named; lm-eval's word for answers taken as they are."""


class Rules(Struct, frozen=True, kw_only=True):
    """The rules of flags. An empty part leaves the task's own in place.

    ``scores`` name recorded scores that are taken as they are; ``unscorable`` is for replies that no rule of a filter
    finds an answer in, which count as wrong otherwise. ``declared`` is what is known of metrics; ``tables`` have what
    the names stand for. ``unnamed`` pipelines take the name of the one that a log had.
    """

    pipelines: tuple[Pipeline, ...] = ()
    metrics: tuple[MetricSpec, ...] = ()
    reducers: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    unscorable: bool = False
    unnamed: bool = False
    declared: Declarations = NOTHING_DECLARED
    tables: Tables = EVALCORE

    @property
    def measures(self) -> bool:
        """Whether they define what is measured, so that the task's own code is not needed."""
        return bool(self.metrics or self.scores)

    @property
    def reduces(self) -> bool:
        """Whether they define how repeats are reduced."""
        return bool(self.reducers or (self.metrics and all(one.reducers for one in self.metrics)))

    @property
    def changes(self) -> bool:
        """Whether numbers get other names than under the task's own rules."""
        return bool(self.measures or self.pipelines or self.reducers)


def read_rules(
    *,
    steps: Sequence[str] = (),
    name: str | None = None,
    metrics: Sequence[str] = (),
    reducers: Sequence[str] = (),
    scores: Sequence[str] = (),
    unparsed: Literal["wrong", "unscorable"] = "wrong",
    declared: Declarations = NOTHING_DECLARED,
    listed: Plain = NOTHING,
    tables: Tables = EVALCORE,
) -> Rules:
    """Read the rules of flags: steps form one pipeline; a file of filters may have ``listed`` several.

    >>> read_rules(steps=["lowercase", 'regex={"regex_pattern": "(a+)"}'], metrics=["f1"]).pipelines[0].steps[1].name
    'regex'
    """
    chain = [{"function": name, **found} for name, found in map(parse_named, steps)]
    chains = [*_entries(listed, "filter_list"), *([{"name": name or UNNAMED, "filter": chain}] if chain else [])]
    measured = [{"metric": name, **found} for name, found in map(parse_named, metrics)]
    return Rules(
        pipelines=tuple(pipeline_from_config(one) for one in chains),
        metrics=tuple(map(metric_from_config, [*_entries(listed, "metric_list"), *measured])),
        reducers=tuple(reducers),
        scores=tuple(scores),
        unscorable=unparsed == "unscorable",
        unnamed=name is None and len(chains) == len(chain[:1]) == 1,
        declared=declared,
        tables=tables,
    )


def parse_named(text: str) -> tuple[str, dict[str, object]]:
    """Parse a name, or a name and its options.

    >>> parse_named("take_first"), parse_named('f1={"ignore_case": true}')
    (('take_first', {}), ('f1', {'ignore_case': True}))
    >>> parse_named("regex=(a)")
    Traceback (most recent call last):
    evalcore.EvalError: regex: expected its options as a JSON object, such as ... got '(a)'
    """
    name, equals, given = text.partition("=")
    if not equals:
        return name, {}
    try:
        return name, msgspec.json.decode(given, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        told = """such as '{"regex_pattern": "(-?[0-9]+)"}'"""
        raise EvalError(f"{name}: expected its options as a JSON object, {told}, got {given!r:.200}") from None


def read_file(path: Path) -> Plain:
    """Read a YAML file of filters and metrics, without running code."""
    from evalcore.shell.config.yaml_file import FunctionTag, read_yaml
    from evalcore.shell.tasks.code import map_values

    def refuse_code(value: object) -> object:
        if isinstance(value, FunctionTag):
            raise EvalError(
                f"{path}:{value.line}: code in a file of filters is not run, got !function {value.name}; put these "
                "lists into a task file and score by it (--task FILE --trust CODE)"
            )
        return value

    try:
        found = read_yaml(path.read_text("utf-8-sig"), str(path)).value
    except (OSError, UnicodeDecodeError) as wrong:
        raise EvalError(f"cannot read {path}: {wrong}") from wrong
    if not isinstance(found, dict):
        raise EvalError(f"{path}: expected a mapping, got {type(found).__name__}")
    map_values(refuse_code, found)
    strange = next((one for one in found if one not in KNOWN), None)
    if strange is not None:
        raise unknown("key of a file of filters", strange, KNOWN, f" - at {path}")
    for key, listed in found.items():
        if listed and not (isinstance(listed, list) and all(isinstance(one, Mapping) for one in listed)):
            raise EvalError(f"{path}: expected {key} to be a list of mappings, got {listed!r}")
    return found


KNOWN = ("filter_list", "metric_list")
OWN_REDUCERS = ("reducer", "reducers")
"""The keys of a metric that has reducers of its own."""


def _entries(given: Plain, key: str) -> list[Plain]:
    found = given.get(key)
    return found if isinstance(found, list) else []


def refuse_kind(log: LogTask, rules: Rules, first_row: Callable[[LogTask], Logged | None]) -> None:
    """Refuse metrics and filters of flags that answers of log-likelihoods cannot have."""
    steps = dict.fromkeys(step.name for one in rules.pipelines for step in one.steps)
    if log.output_type == GENERATE_UNTIL or rules.scores or not (steps or rules.metrics):
        return
    filters, metrics = rules.tables.filters, rules.tables.metrics[LOGLIKELIHOOD]
    text = next((name for name in steps if name in filters and filters[name].texts), None)
    if text is not None:
        told = f"filter {text!r} is for texts, but {log.path} has answers of {log.output_type}"
        others = ", ".join(sorted(name for name in filters if not filters[name].texts))
        raise EvalError(f"{told}; for these: {others}{place(log.name)}")
    first = first_row(log) if log.output_type == LOGLIKELIHOOD else None
    if first is None or len(first.replies) != 1:
        return
    for one in rules.metrics:
        if one.name not in metrics:
            where = f"{place(log.name)} (one log-likelihood for each document)"
            raise unknown("metric", one.name, metrics, where)
        if metrics[one.name].greedy and log.reader.tabular:
            told = f"{one.name} needs to know whether greedy decoding gives the text, and {log.path} does not say"
            raise EvalError(f"{told}; --metric {', '.join(log.usual)} does not{place(log.name)}")


# --- laid over a task -------------------------------------------------------------------------------------------


def lay_over(task: Task, rules: Rules) -> Task:
    """Replace the rules of a task, and note them in its config.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),), (Pipeline("none", (Step.of("regex"),)),))
    >>> changed = lay_over(task, Rules(reducers=("pass@2",), unscorable=True))
    >>> changed.metrics[0].reducers, changed.filters[0].steps[0].options
    (('pass@2',), pmap({'fallback': None}))
    >>> first = Task("t", GENERATE_UNTIL, filters=(Pipeline("none", (Step.of("take_first"),)),))
    >>> changed = lay_over(first, Rules(reducers=("mean",)))
    >>> changed.metrics[0].reducers, changed.filters[0].steps  # no reply is left out before the reducer
    (('mean',), ())
    """
    kept = tuple(replace(one, metrics=None) for one in task.filters) if rules.metrics else task.filters
    filters = tuple(_unparsed(one, rules) if rules.unscorable else one for one in rules.pipelines or kept)
    filters = tuple(_with_all(one, rules) for one in filters) if rules.reduces else filters
    # The usual metrics have no name until they are asked for.
    own = specs_of(task, rules.tables) if rules.reducers else task.metrics
    changed = replace(
        task,
        metrics=_reduced(rules.metrics or own, rules),
        filters=tuple(replace(one, metrics=_reduced(one.metrics, rules) if one.metrics else None) for one in filters),
        process_results=None if rules.metrics else task.process_results,
    )
    filtered = changed.filters != task.filters
    return (
        task if changed == task else replace(changed, config=freeze_options(_said(changed, rules, filtered=filtered)))
    )


def _reduced(metrics: Iterable[MetricSpec], rules: Rules) -> tuple[MetricSpec, ...]:
    return tuple(replace(one, reducers=rules.reducers) if rules.reducers else one for one in metrics)


def _with_all(pipeline: Pipeline, rules: Rules) -> Pipeline:
    """Leave every reply to the reducer: drop a last step that takes the first."""
    last = replace(pipeline, steps=pipeline.steps[-1:])
    taken = "first" in leaves_of(last, rules.tables.filters)
    return replace(pipeline, steps=pipeline.steps[:-1]) if taken else pipeline


def _unparsed(pipeline: Pipeline, rules: Rules) -> Pipeline:
    """Let every step with a fallback return nothing instead."""
    steps = (
        replace(one, options=one.options.set("fallback", None)) if _falls_back(one, rules) else one
        for one in pipeline.steps
    )
    return replace(pipeline, steps=tuple(steps))


def _falls_back(step: Step, rules: Rules) -> bool:
    entry = rules.tables.filters.get(step.name)
    return entry is not None and "fallback" in signature(entry.make).parameters


def _said(task: Task, rules: Rules, *, filtered: bool) -> Plain:
    """The config of a changed task, with the changed parts rewritten."""
    new = config_of(task)
    changed: dict[str, object] = {"filter_list": list(map(describe_pipeline, task.filters))} if filtered else {}
    changed |= {"metric_list": list(map(describe_metric, task.metrics))} if rules.metrics or not task.config else {}
    listed = changed.get("metric_list", task.config.get("metric_list"))
    if rules.reducers and isinstance(listed, list | tuple):
        changed["metric_list"] = [{key: one[key] for key in one if key not in OWN_REDUCERS} for one in listed]
    repeats = task.config.get("repeat_cfg")
    known = repeats if isinstance(repeats, Mapping) else {}
    changed |= {"repeat_cfg": {**known, "reducer": list(rules.reducers)}} if rules.reducers else {}
    dropped = ("process_results",) if rules.metrics else ()
    return {key: value for key, value in {**new, **task.config, **changed}.items() if key not in dropped}
