"""The task behind a log, from the config in its results. Code is recorded as text and never run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.rules import RuleSource
from evalcore.core.lm_eval.policy import LM_EVAL_0_4_13, POLICIES
from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import Rule
from evalcore.core.records.request import OutputType
from evalcore.core.records.score import column_key
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Task
from evalcore.core.repeats.reducers import find_reducer
from evalcore.core.tables import EVALCORE, Tables, specs_of
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.names import RENAMED, list_filters
from evalcore.shell.logs.log import RECORDED

Config = Mapping[str, object]

DEFINED = re.compile(r"def\s+(\w+)\s*\(")
UNNAMED = re.compile(r"\blambda\b[^:]*:|<lambda>")


class RecordedTask(Struct, frozen=True):
    """A task, the metrics whose aggregation is code, and warnings about what could not be read."""

    task: Task
    coded: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    on_unscorable: Rule = "exclude"
    tables: Tables = EVALCORE


def build_recorded_task(
    name: str,
    config: Config | None,
    guess: OutputType,
    pipelines: Iterable[str],
    version: object = None,
    tables: Tables = EVALCORE,
) -> RecordedTask:
    """Build the task that closes a log's scores. Without a config, its output type is guessed from its requests.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> text = "def mine(items):\\n    return 1.0"
    >>> config = {"output_type": "generate_until", "metric_list": [{"metric": "f", "aggregation": text}]}
    >>> found = build_recorded_task("t", config, GENERATE_UNTIL, ["none"])
    >>> found.task.metrics[0].aggregation, sorted(found.coded)
    (None, ['f'])
    """
    task, told = _described(name, config, guess, tables)
    if config is None or config.get("process_results") is not None:
        task = replace(task, process_results=_not_run)
    named = isinstance(version, str | int | float)
    known = {pipeline.name: pipeline for pipeline in task.filters}
    names = list(pipelines)
    # A task that names no filter has the one called none; its recipe says so only if it is left unnamed here, too.
    plain = known.keys() >= set(names) or (not known and names == ["none"])
    merged = tuple(known.get(one) or Pipeline(one) for one in dict.fromkeys([*known, *names]))
    filters = task.filters if plain else merged
    task = replace(task, filters=filters, metrics=specs_of(task, tables), version=version if named else task.version)
    return RecordedTask(task, frozenset(_coded(config, tables)), told, tables=tables)


def _described(name: str, config: Config | None, guess: OutputType, tables: Tables) -> tuple[Task, tuple[str, ...]]:
    """The task of a config, or one known by name only, and why."""
    if config is None:
        return Task(name, guess), ()
    try:
        return task_from_config(_without_code({**config, "task": name}, guess, tables)), ()
    except EvalError as wrong:
        why = f"{name}: the config in the results was not read ({wrong}); each metric has its usual aggregation"
        return Task(name, guess), (why,)


def find_spec(task: Task, key: MetricKey) -> tuple[MetricSpec | None, str | None]:
    """Find the declared metric of a column, and its reducer; None if it was not declared.

    If nothing is known of the task, every metric counts as declared.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean", "pass@2")),))
    >>> find_spec(task, MetricKey("exact_match@pass@2"))[1]
    'pass@2'
    """
    own = next((one.metrics for one in task.filters if one.name == key.filter and one.metrics), task.metrics)
    for spec in own:
        for reducer in spec.reducer_names or (None,):
            if column_key(spec.name, reducer, spec.reducer_names, key.filter) == key:
                return spec, reducer
    return (None if task.config else MetricSpec(key.metric)), None


def _not_run(doc: Mapping[str, object], results: Sequence[object]) -> Mapping[str, object]:
    """Stand in for code that a log only mentions."""
    raise EvalError("the code of a recorded task is not at hand")


# --- rules --------------------------------------------------------------------------------------------------------

NO_CONFIG = "no config of the task beside the log"
TAKEN = "scores as another program recorded them"


def find_rule_source(
    results: Config, config: Config | None, filters: Iterable[str], tables: Tables = EVALCORE
) -> RuleSource:
    """Find where the rules behind a log's scores come from: evalcore's policy and code, or lm-eval's.

    >>> find_rule_source({}, None, ["none"]).unknown
    'no config of the task beside the log'
    """
    if not config:
        return RuleSource(NO_CONFIG)
    if config.get("process_results") == RECORDED:
        return RuleSource(TAKEN)
    policy = find_part(results, "evalcore").get("policy")
    ours = isinstance(policy, str)
    made = POLICIES.get(str(policy), tables) if ours else LM_EVAL_0_4_13
    declared = list_filters(config, ())
    code = tuple(_list_code(config, find_part(results, "evalcore", "trusted"), tables))
    return RuleSource("", str(policy) if ours else None, made, code, frozenset(filters) - {*declared})


def _list_code(config: Config, trusted: Config, tables: Tables) -> Iterator[tuple[str, str]]:
    """The functions of a config that make scores, by what they are for; evalcore's with the hash of their files."""
    given = config.get("process_results")
    if given is not None:
        yield "process_results", _add_hash(str(given), config, trusted)
    for entry in _every_metric(config):
        metric, how = str(entry.get("metric")), entry.get("aggregation")
        if metric != _name(entry):
            yield f"metric {_name(entry)}", metric
        if isinstance(how, str) and how not in tables.aggregations:
            yield f"aggregation {_name(entry)}", _add_hash(how, config, trusted)


def _add_hash(name: str, config: Config, trusted: Config) -> str:
    """A name with the hash of the files of code beside the task's own, whatever folder these are in."""
    folder = PurePath(str(find_part(config, "metadata").get("config_source") or ".")).parent
    near = {PurePath(path).name: str(digest) for path, digest in trusted.items() if PurePath(path).parent == folder}
    if not near or not name.isidentifier():
        return name
    return f"{name} sha256:{sha256(repr(sorted(near.items())).encode()).hexdigest()}"


# --- configs without code -----------------------------------------------------------------------------------------


def _without_code(config: Config, guess: OutputType, tables: Tables) -> Config:
    given = config.get("output_type")
    kind = RENAMED.get(given, given) if isinstance(given, str) else guess
    plain = _name_reducers({key: value for key, value in config.items() if key != "process_results"})
    repeats = plain.get("repeat_cfg")
    if isinstance(repeats, Mapping):
        plain["repeat_cfg"] = _name_reducers(repeats)
    filters = plain.get("filter_list")
    if isinstance(filters, list | tuple):
        plain["filter_list"] = [_plain_metrics(one, tables) if isinstance(one, Mapping) else one for one in filters]
    return _plain_metrics({**plain, "output_type": kind}, tables)


def _plain_metrics(config: Config, tables: Tables) -> Config:
    metrics = [_plain_metric(one, tables) for one in _metrics(config)]
    return {**config, "metric_list": metrics} if metrics else config


def _plain_metric(entry: Config, tables: Tables) -> Config:
    known = _aggregation(entry) in tables.aggregations
    plain = {key: value for key, value in _name_reducers(entry).items() if key != "aggregation" or known}
    return plain | {"metric": _name(entry)}


def _name_reducers(entry: Config) -> dict[str, object]:
    """An entry with its reducers by name, functions by that in their source."""
    return {**entry, **{key: list(map(_name_code, _list_reducers(entry))) for key in REDUCERS if entry.get(key)}}


REDUCERS = ("reducer", "reducers")


def _list_reducers(entry: object) -> list[str]:
    given = next((entry[key] for key in REDUCERS if entry.get(key)), ()) if isinstance(entry, Mapping) else ()
    return list(map(str, given if isinstance(given, list | tuple) else (given,)))


def _aggregation(entry: Config) -> str | None:
    """A name, or the text of a function."""
    given = entry.get("aggregation")
    if given is not None and not isinstance(given, str):
        raise EvalError(f"expected the name of an aggregation, got {str(given)[:60]} - at metric {_name(entry)}")
    return given


def _metrics(config: Config | None) -> list[Config]:
    given = (config or {}).get("metric_list")
    return [one for one in given if isinstance(one, Mapping)] if isinstance(given, list | tuple) else []


def _name(entry: Config) -> str:
    """A metric's name; that of a function is in its source."""
    return _name_code(str(entry.get("metric")))


def _name_code(given: str) -> str:
    """The name of a function from its source, as ``name_function`` has it; any other text as it is."""
    found = DEFINED.search(given)
    return found[1] if found is not None else "lambda" if UNNAMED.search(given) else given


def _coded(config: Config | None, tables: Tables) -> Iterable[str]:
    """The metrics with an aggregation or a reducer that no table has, and which was a function therefore."""
    usual = _list_reducers((config or {}).get("repeat_cfg"))
    for entry in _every_metric(config):
        given, reducers = entry.get("aggregation"), _list_reducers(entry) or usual
        unknown = isinstance(given, str) and given not in tables.aggregations
        if unknown or any(find_reducer(one, tables.reducers) is None for one in reducers):
            yield _name(entry)


def _every_metric(config: Config | None) -> list[Config]:
    """The entries of a config's metric list and of those of its filters."""
    filters = (config or {}).get("filter_list")
    nested = [one for one in filters if isinstance(one, Mapping)] if isinstance(filters, list | tuple) else []
    return [entry for part in (config, *nested) for entry in _metrics(part)]


def refuse_unnamed(config: Config) -> None:
    """Refuse a config with an aggregation that is neither a name nor source: nothing can be scored again by it."""
    for entry in _every_metric(config):
        _aggregation(entry)
