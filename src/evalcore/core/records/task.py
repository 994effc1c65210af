"""What is measured: metrics under filters, chains of filters, tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite, isnan
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import force_setattr

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Options, OutputType, freeze_many, freeze_options


class MetricKey(NamedTuple):
    """A metric under a filter.

    >>> str(MetricKey("acc")), MetricKey("acc").stderr
    ('acc,none', 'acc_stderr,none')
    >>> MetricKey.parse("exact_match,strict-match")
    MetricKey(metric='exact_match', filter='strict-match')
    >>> MetricKey.parse("acc_stderr,none") is None      # not a value but an error
    True
    """

    metric: str
    filter: str = "none"

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"

    @property
    def stderr(self) -> str:
        return f"{self.metric}_stderr,{self.filter}"

    @classmethod
    def parse(cls, text: str) -> MetricKey | None:
        """Read ``"acc,none"``; None for keys that are not metric values (``alias``, ``acc_stderr,none``)."""
        metric, comma, filter_name = text.partition(",")
        if not comma or metric.endswith("_stderr"):
            return None
        return cls(metric, filter_name)


class MetricSpec(Struct, frozen=True):
    """A metric as a task declares it. Defaults come from the metric's table entry.

    ``function`` is a metric of the user's own (see ``per_document``); ``aggregation`` is a name in the table or a
    function of the list of scores; so is each of the ``reducers``, of one document's scores. A function that takes
    ``lists`` gets all replies of a document at once where no filter picks one, as lm-eval's do. ``bounds`` are those of
    one document's score; a score outside them is none. None of direction and bounds is guessed.

    >>> MetricSpec("loss", higher_is_better=False, bounds=(0, None)).bounds
    (0.0, inf)
    """

    name: str
    aggregation: str | Callable[..., object] | None = None
    reducers: tuple[str | Callable[..., object], ...] = ()
    higher_is_better: bool | None = None
    options: Options = field(default_factory=freeze_options)
    function: Callable[..., object] | None = None
    lists: bool = False
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "bounds", read_bounds(self.bounds, f" - at metric {self.name}"))
        reducers: object = self.reducers
        alone = isinstance(reducers, str) or callable(reducers)
        force_setattr(self, "reducers", (reducers,) if alone else freeze_many(reducers))  # type: ignore[arg-type]
        force_setattr(self, "options", freeze_options(self.options))
        names = self.reducer_names
        if len(set(names)) < len(names):
            raise EvalError(f"expected reducers of different names, got {', '.join(names)} - at metric {self.name}")

    @property
    def reducer_names(self) -> tuple[str, ...]:
        """The names of the reducers, a function's its own.

        >>> MetricSpec("acc", reducers=("mean", max)).reducer_names
        ('mean', 'max')
        """
        return tuple(one if isinstance(one, str) else name_function(one) for one in self.reducers)


def read_bounds(given: object, where: str = "") -> tuple[float, float] | None:
    """Read the bounds of a score: the lowest and the highest, None where an end is open; None if there are none.

    >>> read_bounds([0, 10]), read_bounds((None, 0.0)), read_bounds(["0", "inf"]), read_bounds(None)
    ((0.0, 10.0), (-inf, 0.0), (0.0, inf), None)
    >>> read_bounds([1, 0])
    Traceback (most recent call last):
    evalcore.EvalError: expected bounds as the lowest and the highest score, such as [0, 10] or [0, null], got [1, 0]
    """
    if given is None:
        return None
    if isinstance(given, list | tuple) and len(given) == 2:
        try:
            low, high = (free if end is None else float(end) for end, free in zip(given, (-inf, inf), strict=True))
        except (TypeError, ValueError, OverflowError):
            low = high = 0.0
        if low < high and not isnan(low) and not isnan(high):
            return low, high
    told = "expected bounds as the lowest and the highest score, such as [0, 10] or [0, null]"
    raise EvalError(f"{told}, got {given!r}{where}")


def write_bounds(bounds: tuple[float, float] | None) -> list[float | None] | None:
    """Write bounds as JSON can hold them: an open end is null.

    >>> write_bounds((0.0, inf)), write_bounds(None)
    ([0.0, None], None)
    """
    return None if bounds is None else [end if isfinite(end) else None for end in bounds]


class Step(Struct, frozen=True):
    """One filter of a chain, by name, with its options.

    >>> Step.of("regex", regex_pattern="(.*)").name
    'regex'
    """

    name: str
    options: Options = field(default_factory=freeze_options)

    def __post_init__(self) -> None:
        force_setattr(self, "options", freeze_options(self.options))

    @classmethod
    def of(cls, step_name: str, /, **named: object) -> Step:
        return cls(step_name, freeze_options(named))


def name_function(function: Callable[..., object]) -> str:
    """The name of a function in keys and recipes.

    >>> name_function(max), name_function(lambda scores: 1.0)
    ('max', 'lambda')
    """
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


class Pipeline(Struct, frozen=True):
    """A named chain of filters, with metrics of its own or, without any, the task's."""

    name: str
    steps: tuple[Step, ...] = ()
    metrics: tuple[MetricSpec, ...] | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "steps", freeze_many(self.steps))
        force_setattr(self, "metrics", None if self.metrics is None else freeze_many(self.metrics))


ProcessResults = Callable[[dict[str, object], list[object]], Mapping[str, object] | None]


class Task(Struct, frozen=True):
    """What is measured, and how: all that scoring needs besides documents and answers."""

    name: str
    output_type: OutputType
    metrics: tuple[MetricSpec, ...] = ()
    filters: tuple[Pipeline, ...] = ()
    process_results: ProcessResults | None = None
    alias: str | None = None
    version: str | int | float | None = None
    num_fewshot: int | None = None
    ragged: bool = False
    config: Options = field(default_factory=freeze_options)

    def __post_init__(self) -> None:
        force_setattr(self, "metrics", freeze_many(self.metrics))
        force_setattr(self, "filters", freeze_many(self.filters))
        force_setattr(self, "config", freeze_options(self.config))
        for metrics in (self.metrics, *(pipeline.metrics or () for pipeline in self.filters)):
            for spec in metrics:
                if not isinstance(spec, MetricSpec):
                    raise EvalError(f"expected MetricSpec({spec!r}), got {spec!r} - at {self.name}")
            self._expect_unique("metric", [spec.name for spec in metrics])
        self._expect_unique("pipeline", [pipeline.name for pipeline in self.filters])

    def _expect_unique(self, what: str, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise EvalError(f"expected each {what} once, got {name!r} twice - at {self.name}")


def config_of(task: Task) -> Options:
    """Write a config for a task that was not made from one.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> config_of(Task("t", GENERATE_UNTIL, (MetricSpec("f1"),)))["metric_list"]
    ({'metric': 'f1'},)
    """
    metrics, filters = list(map(describe_metric, task.metrics)), list(map(describe_pipeline, task.filters))
    return freeze_options(task=task.name, output_type=task.output_type, metric_list=metrics, filter_list=filters)


def describe_metric(spec: MetricSpec) -> dict[str, object]:
    """Describe a metric as an entry of a metric list, functions by their names.

    >>> describe_metric(MetricSpec("f1", max, ("mean", "pass@2"), options={"b": 1, "a": 2}))
    {'metric': 'f1', 'aggregation': 'max', 'reducer': ['mean', 'pass@2'], 'a': 2, 'b': 1}
    """
    given = {
        "aggregation": name_function(spec.aggregation) if callable(spec.aggregation) else spec.aggregation,
        "reducer": list(spec.reducer_names) or None,
        "higher_is_better": spec.higher_is_better,
        "bounds": write_bounds(spec.bounds),
    }
    declared = {key: one for key, one in given.items() if one is not None}
    return {"metric": spec.name, **declared, **dict(sorted(spec.options.items()))}


def describe_pipeline(pipeline: Pipeline) -> dict[str, object]:
    """Describe a pipeline as an entry of a filter list, with metrics of its own if it has any.

    >>> describe_pipeline(Pipeline("strict", (Step.of("regex", group=0),), (MetricSpec("f1"),)))
    {'name': 'strict', 'filter': [{'function': 'regex', 'group': 0}], 'metric_list': [{'metric': 'f1'}]}
    """
    steps = [{"function": step.name, **dict(sorted(step.options.items()))} for step in pipeline.steps]
    own = {"metric_list": list(map(describe_metric, pipeline.metrics))} if pipeline.metrics else {}
    return {"name": pipeline.name, "filter": steps, **own}
