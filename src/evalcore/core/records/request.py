"""The frozen records that enter the pipe: requests, instances, answers, samples, metric keys, tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, NewType, TypeVar

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import force_setattr
from pyrsistent import PMap, pmap

from evalcore.core.records.frozen_dict import freeze_value

T = TypeVar("T")
OutputType = NewType("OutputType", str)
LOGLIKELIHOOD = OutputType("loglikelihood")
LOGLIKELIHOOD_ROLLING = OutputType("loglikelihood_rolling")
MULTIPLE_CHOICE = OutputType("multiple_choice")
GENERATE_UNTIL = OutputType("generate_until")

Options = PMap[str, object]
CHOOSE = "choose_letter"
"""The generation option that names the letters of which log-probabilities choose one."""


def freeze_options(given: Mapping[str, object] | None = None, /, **named: object) -> Options:
    """Frozen options.

    >>> freeze_options(ignore_case=True)["ignore_case"]
    True
    """
    if isinstance(given, PMap) and not named and all(freeze_value(value) is value for value in given.values()):
        return given
    return pmap({key: freeze_value(value) for key, value in {**(given or {}), **named}.items()})


NO_OPTIONS = freeze_options()


def freeze_many(given: Iterable[T]) -> tuple[T, ...]:
    """A tuple of what a caller gave in any sequence.

    >>> freeze_many([1, 2])
    (1, 2)
    """
    return given if type(given) is tuple else (given,) if isinstance(given, Struct) else tuple(given)


def _get_field(record: Struct, name: str) -> object:
    """Return a field as given, which may not be of its declared type."""
    return getattr(record, name)


# --- requests and answers ---------------------------------------------------------------


class LogLikelihood(Struct, frozen=True, tag="loglikelihood"):
    """A request for the likelihood of a continuation in a context."""

    context: str
    continuation: str


class Rolling(Struct, frozen=True, tag="loglikelihood_rolling"):
    """A request for the likelihood of a whole text."""

    text: str


class Generate(Struct, frozen=True, tag="generate_until"):
    """A request to continue a prompt until a stop string."""

    prompt: str
    options: Options = field(default_factory=freeze_options)

    def __post_init__(self) -> None:
        if type(_get_field(self, "options")) is not PMap:
            force_setattr(self, "options", freeze_options(self.options))


Request = LogLikelihood | Rolling | Generate


class Likelihood(NamedTuple):
    """A log-likelihood, whether greedy decoding would give this text, and its length in tokens.

    lm-eval's plain ``(loglikelihood, is_greedy)`` pairs are accepted in its place.
    """

    value: float
    greedy: bool = False
    tokens: int = 0


class Failure(Struct, frozen=True, tag="failure"):
    """A missing answer and its reason. Never an empty string, never a zero."""

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

    def __post_init__(self) -> None:
        if type(self.replies) is not tuple:
            force_setattr(self, "replies", freeze_value(self.replies))

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

    ``id`` is its declared name, ``cluster`` the unit whose documents belong together
    (a passage, a translation family); both are optional.
    """

    doc_id: int
    gold: Gold = None
    choices: tuple[str, ...] = ()
    doc: bytes = b"{}"
    id: int | str | None = None
    cluster: int | str | None = None

    def __post_init__(self) -> None:
        # JSON has only lists, and datasets hand out mappings: accept them where their meaning is clear.
        gold: object = self.gold
        choices: object = self.choices
        doc: object = self.doc
        if type(gold) is list:
            force_setattr(self, "gold", tuple(gold))
        if type(choices) is list:
            force_setattr(self, "choices", tuple(choices))
        if type(doc) is dict:
            force_setattr(self, "doc", encode(doc))
