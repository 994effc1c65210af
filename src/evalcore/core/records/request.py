"""The frozen records that enter the pipe: requests, instances, answers, samples, metric keys, tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, NewType

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import force_setattr
from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError

__all__ = [
    "GENERATE_UNTIL",
    "LOGLIKELIHOOD",
    "LOGLIKELIHOOD_ROLLING",
    "MULTIPLE_CHOICE",
    "Answer",
    "Failure",
    "Generate",
    "Gold",
    "Instance",
    "Likelihood",
    "LogLikelihood",
    "MetricKey",
    "MetricSpec",
    "Options",
    "OutputType",
    "Pipeline",
    "ProcessResults",
    "Reply",
    "Request",
    "Rolling",
    "Sample",
    "Step",
    "Task",
    "options",
]

OutputType = NewType("OutputType", str)
LOGLIKELIHOOD = OutputType("loglikelihood")
LOGLIKELIHOOD_ROLLING = OutputType("loglikelihood_rolling")
MULTIPLE_CHOICE = OutputType("multiple_choice")
GENERATE_UNTIL = OutputType("generate_until")

Options = PMap[str, object]


def freeze_value(value: object) -> object:
    """Lists become tuples and dicts become PMaps, all the way down.

    >>> freeze_value({"a": [1, {"b": 2}]})
    pmap({'a': (1, pmap({'b': 2}))})
    """
    if isinstance(value, Mapping):
        return pmap({key: freeze_value(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze_value(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(freeze_value(item) for item in value)
    return value


def options(given: Mapping[str, object] | None = None, /, **named: object) -> Options:
    """Frozen options.

    >>> options(ignore_case=True)["ignore_case"]
    True
    """
    return pmap({key: freeze_value(value) for key, value in {**(given or {}), **named}.items()})


def _given(record: Struct, name: str) -> object:
    """A field as it was given, which may not be as it was declared."""
    return getattr(record, name)


# --- what is asked, and what comes back ---------------------------------------------------------------


class LogLikelihood(Struct, frozen=True, tag="loglikelihood"):
    """How likely is this continuation of this context?"""

    context: str
    continuation: str


class Rolling(Struct, frozen=True, tag="loglikelihood_rolling"):
    """How likely is this whole text?"""

    text: str


class Generate(Struct, frozen=True, tag="generate_until"):
    """Continue this prompt until a stop string."""

    prompt: str
    options: Options = field(default_factory=options)

    def __post_init__(self) -> None:
        given = _given(self, "options")
        if isinstance(given, dict):
            force_setattr(self, "options", freeze_value(given))


Request = LogLikelihood | Rolling | Generate


class Likelihood(NamedTuple):
    """A log-likelihood, whether greedy decoding would give this text, and its length in tokens.

    lm-eval's plain ``(loglikelihood, is_greedy)`` pairs are accepted in its place.
    """

    value: float
    greedy: bool = False
    tokens: int = 0


class Failure(Struct, frozen=True, tag="failure"):
    """The model gave no answer, and why. Never an empty string, never a zero."""

    reason: str


Reply = str | float | Likelihood | tuple[float, bool] | Failure


class Instance(Struct, frozen=True):
    """One request to a model, made for one document of one task."""

    task: str
    doc_id: int
    idx: int
    request: Request
    repeats: int = 1


class Answer(Struct, frozen=True):
    """An instance and its replies, one per repeat."""

    instance: Instance
    replies: tuple[Reply, ...]

    @property
    def task(self) -> str:
        return self.instance.task

    @property
    def doc_id(self) -> int:
        return self.instance.doc_id

    @property
    def idx(self) -> int:
        return self.instance.idx


Gold = int | str | float | None | tuple[int, ...] | tuple[str, ...]


class Sample(Struct, frozen=True):
    """One document as scoring sees it: its gold answer(s), its choices, its JSON bytes for user code.

    ``id`` is the name the outside world knows it by, ``cluster`` the unit whose documents belong together
    (a passage, a translation family); both are optional.
    """

    doc_id: int
    gold: Gold = None
    choices: tuple[str, ...] = ()
    doc: bytes = b"{}"
    id: int | str | None = None
    cluster: int | str | None = None

    def __post_init__(self) -> None:
        # JSON has only lists, and datasets hand out mappings: take them as what they can only mean.
        gold: object = self.gold
        choices: object = self.choices
        doc: object = self.doc
        if type(gold) is list:
            force_setattr(self, "gold", tuple(gold))
        if type(choices) is list:
            force_setattr(self, "choices", tuple(choices))
        if type(doc) is dict:
            force_setattr(self, "doc", encode(doc))


# --- what is to be measured -----------------------------------------------------------------------------


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

    @classmethod
    def parse_stderr(cls, text: str) -> MetricKey | None:
        """Read ``"acc_stderr,none"`` as the key whose error it is.

        >>> MetricKey.parse_stderr("acc_stderr,none")
        MetricKey(metric='acc', filter='none')
        """
        metric, comma, filter_name = text.partition(",")
        return cls(metric.removesuffix("_stderr"), filter_name) if comma and metric.endswith("_stderr") else None


class MetricSpec(Struct, frozen=True):
    """A metric as a task asks for it. What is left out comes from the metric's own table entry.

    ``function`` is a metric of the user's own (see ``evalcore.per_document``); ``aggregation`` is a name in the
    table or a callable over the list of scores. A function that takes ``lists`` gets all replies of a document at once
    where no filter picks one, as lm-eval's do.
    """

    name: str
    aggregation: str | Callable[..., object] | None = None
    reducers: tuple[str, ...] = ()
    higher_is_better: bool | None = None
    options: Options = field(default_factory=options)
    function: Callable[..., object] | None = None
    lists: bool = False

    def __post_init__(self) -> None:
        reducers = _given(self, "reducers")
        if isinstance(reducers, str):
            force_setattr(self, "reducers", (reducers,))


class Step(Struct, frozen=True):
    """One filter of a chain, by name, with its options.

    >>> Step.of("regex", regex_pattern="(.*)").name
    'regex'
    """

    name: str
    options: Options = field(default_factory=options)

    @classmethod
    def of(cls, step_name: str, /, **named: object) -> Step:
        return cls(step_name, options(named))


class Pipeline(Struct, frozen=True):
    """A named chain of filters, with metrics of its own or (None) the task's."""

    name: str
    steps: tuple[Step, ...] = ()
    metrics: tuple[MetricSpec, ...] | None = None


ProcessResults = Callable[[dict[str, object], list[object]], Mapping[str, object] | None]


class Task(Struct, frozen=True):
    """What is measured, and how: everything scoring needs to know besides documents and answers."""

    name: str
    output_type: OutputType
    metrics: tuple[MetricSpec, ...] = ()
    filters: tuple[Pipeline, ...] = ()
    process_results: ProcessResults | None = None
    alias: str | None = None
    version: str | int | float | None = None
    num_fewshot: int | None = None
    ragged: bool = False
    config: Options = field(default_factory=options)

    def __post_init__(self) -> None:
        for metrics in (self.metrics, *(pipeline.metrics or () for pipeline in self.filters)):
            for spec in metrics:
                if not isinstance(spec, MetricSpec):
                    raise EvalError(f"expected MetricSpec({spec!r}), got {spec!r} - at {self.name}")
            self._once("metric", [spec.name for spec in metrics])
        self._once("pipeline", [pipeline.name for pipeline in self.filters])

    def _once(self, what: str, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise EvalError(f"expected each {what} once, got {name!r} twice - at {self.name}")
