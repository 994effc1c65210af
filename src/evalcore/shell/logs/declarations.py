"""What no log says of a metric and flags declare: which way it points, and between what its scores lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from msgspec.structs import replace

from evalcore.core.metrics.metric import keep_within
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.request import freeze_options
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import (
    MetricSpec,
    Pipeline,
    Task,
    describe_metric,
    describe_pipeline,
    read_bounds,
    write_bounds,
)
from evalcore.core.tables import Tables, specs_of
from evalcore.shell.config.values import Names, list_names

Bounds = tuple[float, float]


class DeclaredKeys(TypedDict, total=False):
    """Metrics by name: those of which more, or less, is better, and the bounds of a document's score."""

    higher_is_better: Names
    lower_is_better: Names
    bounds: Names | Mapping[str, tuple[float | None, float | None]]


class Declarations(FrozenRecord, frozen=True):
    """The direction and the bounds of metrics by name."""

    higher: Mapping[str, bool] = FrozenDict()
    bounds: Mapping[str, Bounds] = FrozenDict()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.higher, *self.bounds)))

    def lay_over(self, spec: MetricSpec, names: Iterable[str]) -> MetricSpec:
        """Declare what is said of a metric under any of its names."""
        named = list(names)
        higher = next((self.higher[name] for name in named if name in self.higher), spec.higher_is_better)
        bounds = next((self.bounds[name] for name in named if name in self.bounds), spec.bounds)
        return replace(spec, higher_is_better=higher, bounds=bounds)


def read_declarations(keys: DeclaredKeys) -> Declarations:
    """Read what flags declare.

    >>> read_declarations({"lower_is_better": "loss", "bounds": ["loss=0,inf"]})
    Declarations(higher={'loss': False}, bounds={'loss': (0.0, inf)})
    >>> read_declarations({"bounds": "loss=0"})
    Traceback (most recent call last):
    evalcore.EvalError: expected --bounds METRIC=LOWEST,HIGHEST such as loss=0,inf, got 'loss=0'
    """
    higher, lower = (list_names(keys.get(key) or ()) for key in ("higher_is_better", "lower_is_better"))  # type: ignore[arg-type]
    both = sorted(set(higher) & set(lower))
    if both:
        raise EvalError(f"expected either --higher_is_better or --lower_is_better for {both[0]}, got both")
    given = keys.get("bounds") or ()
    pairs = dict(given) if isinstance(given, Mapping) else dict(map(_split_bounds, list_names(given)))
    bounds = {name: found for name, one in pairs.items() if (found := read_bounds(one, f" - at {name}")) is not None}
    return Declarations(FrozenDict({**dict.fromkeys(higher, True), **dict.fromkeys(lower, False)}), FrozenDict(bounds))


def _split_bounds(text: str) -> tuple[str, Sequence[str]]:
    name, _, ends = text.rpartition("=")
    parts = [one.strip() for one in ends.split(",")]
    if not name.strip() or len(parts) != 2 or not all(parts):
        raise EvalError(f"expected --bounds METRIC=LOWEST,HIGHEST such as loss=0,inf, got {text!r}")
    return name.strip(), parts


def declare_column(one: ScoredColumn, declared: Declarations, task: str) -> ScoredColumn:
    """Declare what is said of a column's metric (``acc`` or ``acc,none``); scores outside its bounds are none."""
    spec = one.spec or MetricSpec(one.key.metric)
    made = declared.lay_over(spec, (str(one.key), one.key.metric, spec.name))
    return one if made == spec else replace(one, spec=made, column=keep_within(one.column, made, task))


def refuse_undeclared(declared: Declarations, columns: Iterable[ScoredColumn]) -> None:
    """Refuse a declaration of a metric that there is not."""
    named = ((one.key.metric, str(one.key), one.spec.name if one.spec else one.key.metric) for one in columns)
    known = {name for names in named for name in names}
    for name in declared.names:
        if name not in known:
            raise unknown("metric", name, known)


# --- laid over a task -------------------------------------------------------------------------------------------


def declare_task(task: Task, declared: Declarations, tables: Tables) -> Task:
    """Declare what is said of a task's metrics, and note it in its config.

    >>> from evalcore.core.tables import EVALCORE
    >>> made = declare_task(Task("t", "generate_until"), Declarations({"exact_match": False}), EVALCORE)
    >>> made.metrics[0].higher_is_better
    False
    """
    if not declared.names:
        return task
    own = specs_of(task, tables)
    known = {spec.name for spec in (*own, *(spec for one in task.filters for spec in one.metrics or ()))}
    emitted = [MetricSpec(name, "mean") for name in declared.names if name not in known]  # by code, under other names
    specs = (*own, *(emitted if task.process_results is not None else ()))

    def told(given: Iterable[MetricSpec]) -> tuple[MetricSpec, ...]:
        return tuple(declared.lay_over(spec, (spec.name,)) for spec in given)

    filters = tuple(replace(one, metrics=told(one.metrics) if one.metrics else None) for one in task.filters)
    made = replace(task, metrics=told(specs), filters=filters)
    if not task.config or (made.metrics == task.metrics and filters == task.filters):
        return made
    listed = _note_metrics(task.config.get("metric_list"), made.metrics)
    noted = {"filter_list": _note_pipelines(task.config.get("filter_list"), filters)} if filters else {}
    return replace(made, config=freeze_options({**task.config, "metric_list": listed, **noted}))


def _note_metrics(listed: object, specs: Sequence[MetricSpec]) -> list[object]:
    """The entries of a metric list with what is declared; code stays in them as it is."""
    entries = list(listed) if isinstance(listed, list | tuple) else []
    fitting = len(entries) == len(specs) and all(isinstance(one, Mapping) for one in entries)
    if not fitting:
        return list(map(describe_metric, specs))
    return [{**entry, **_note_spec(spec)} for entry, spec in zip(entries, specs, strict=True)]


def _note_spec(spec: MetricSpec) -> dict[str, object]:
    given = {"higher_is_better": spec.higher_is_better, "bounds": write_bounds(spec.bounds)}
    return {key: value for key, value in given.items() if value is not None}


def _note_pipelines(listed: object, filters: Sequence[Pipeline]) -> list[object]:
    entries = list(listed) if isinstance(listed, list | tuple) else []
    if len(entries) != len(filters) or not all(isinstance(one, Mapping) for one in entries):
        return list(map(describe_pipeline, filters))
    return [
        {**entry, "metric_list": _note_metrics(entry.get("metric_list"), one.metrics)} if one.metrics else entry
        for entry, one in zip(entries, filters, strict=True)
    ]
