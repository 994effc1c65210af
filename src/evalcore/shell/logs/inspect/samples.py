"""Samples of an Inspect log as documents: target, choices, completion, and the scores that were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Gold, Reply
from evalcore.shell.data.wire import decode_line, encode_line
from evalcore.shell.logs.log import Logged

Plain = dict[str, object]
LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letters for correct, incorrect, partial and no answer, and their values."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class SampleKey(NamedTuple):
    """A sample and its epoch; the id is text, as in the name of its file."""

    id: str
    epoch: int

    @property
    def order(self) -> tuple[int, int, str]:
        """Numbers by their value, then texts."""
        number = self.id.isascii() and self.id.isdigit() and len(self.id) < 19
        return (0, int(self.id), "") if number else (1, 0, self.id)


class InspectSample(Struct, gc=False):
    """A sample as Inspect logs it: the fields that scoring needs."""

    id: int | str
    input: object = ""
    target: str | list[str] = ""
    epoch: int = 1
    choices: list[str] | None = None
    messages: list[Plain] = field(default_factory=list)
    output: Plain | None = None
    scores: dict[str, Plain | None] | None = None
    error: Plain | None = None
    metadata: Raw = Raw(b"{}")
    attachments: dict[str, str] = field(default_factory=dict)


SAMPLE = msgspec.json.Decoder(InspectSample)


def read_sample(data: bytes) -> InspectSample:
    """Read a sample of a log.

    >>> read_sample(b'{"id": 1, "epoch": 2, "input": "2+2?", "target": "4", "output": {"completion": "4"}}').target
    '4'
    """
    try:
        return SAMPLE.decode(data)
    except (ValueError, RecursionError) as wrong:
        first = str(wrong)
    found = decode_line(data, "the sample")
    try:
        return msgspec.convert(_with_raw_metadata(found), InspectSample)
    except (ValueError, TypeError, RecursionError) as wrong:
        raise EvalError(f"expected a sample of Inspect: {str(wrong) or first}") from wrong


def _with_raw_metadata(found: object) -> object:
    if not isinstance(found, dict):
        raise EvalError(f"expected a sample of Inspect, got {str(found)[:60]!r}")
    return {**found, "metadata": Raw(encode_line(found.get("metadata") or {}).rstrip())}


def log_samples(number: int, epochs: Sequence[InspectSample], line: int, *, requests: bool = True) -> Logged:
    """Make a document of the samples of its epochs."""
    first = epochs[0]
    replies: tuple[Reply, ...] = tuple(map(_reply, epochs))
    names = dict.fromkeys(name for one in epochs for name in one.scores or {})
    return Logged(
        doc_id=number,
        doc=_document(first),
        gold=first.target if isinstance(first.target, str) else _golds(first.target),
        choices=tuple(first.choices or ()),
        requests=(Generate(_prompt(first)),) if requests else (),
        replies=(replies,),
        id=first.id,
        scores={f"{name},none": one for score in names for name, one in _scores(score, epochs)},
        kept={name: tuple(_given(one, name).get("answer") for one in epochs) for name in names},
        line=line,
    )


def _golds(targets: Sequence[str]) -> Gold:
    return targets[0] if len(targets) == 1 else tuple(targets)


def _document(sample: InspectSample) -> bytes:
    """The sample without its output and scores."""
    parts = {"id": sample.id, "input": sample.input, "target": sample.target, "choices": sample.choices}
    given = {key: value for key, value in parts.items() if value is not None}
    try:
        return msgspec.json.encode({**given, "metadata": sample.metadata})
    except ValueError:  # a lone surrogate
        return encode_line({**given, "metadata": decode_line(bytes(sample.metadata), "metadata")}).rstrip()


# --- questions and replies ------------------------------------------------------------------------------------------


def _prompt(sample: InspectSample) -> str:
    """The question: a text, or the last message of the user."""
    if isinstance(sample.input, str):
        return _resolved(sample.input, sample)
    asked = [one for one in sample.input if _role(one) == "user"] if isinstance(sample.input, list) else []
    return _text(asked[-1].get("content"), sample) if asked else ""


def _reply(sample: InspectSample) -> Reply:
    """The completion, or the last message of the assistant; a failure where the sample ended in an error."""
    if sample.error is not None:
        return Failure(str(sample.error.get("message") or "the sample ended in an error"))
    output = sample.output or {}
    completion = output.get("completion")
    if isinstance(completion, str) and completion:
        return _resolved(completion, sample)
    listed = output.get("choices")
    first = listed[0] if isinstance(listed, list) and listed else None
    message = first.get("message") if isinstance(first, dict) else None
    if isinstance(message, dict):
        return _text(message.get("content"), sample)
    said = [one for one in sample.messages if _role(one) == "assistant"]
    return _text(said[-1].get("content"), sample) if said else Failure("the sample has no output")


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, dict) else None


def _text(content: object, sample: InspectSample) -> str:
    """The text of a message, without reasoning."""
    if isinstance(content, str):
        return _resolved(content, sample)
    parts = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    said = [one.get("text") for one in parts if one.get("type") == "text"]
    return "\n".join(_resolved(one, sample) for one in said if isinstance(one, str))


def _resolved(text: str, sample: InspectSample) -> str:
    """The text; a long one stands among the attachments under its hash."""
    return sample.attachments.get(text.removeprefix("attachment://"), text) if text[:13] == "attachment://" else text


# --- scores ---------------------------------------------------------------------------------------------------------


def score_value(value: object) -> object:
    """Convert a score to a number as Inspect does; None if it has no number.

    >>> [score_value(one) for one in ("C", "P", "N", True, 0.25, "yes", "0.5", "A+")]
    [1.0, 0.5, 0.0, 1.0, 0.25, 1.0, 0.5, None]
    """
    if isinstance(value, float):
        return value
    if not isinstance(value, int | str):
        return None
    if value in LETTERS:
        return LETTERS[str(value)]
    try:
        number = WORDS.get(value.lower(), value) if isinstance(value, str) else value
        return found if isfinite(found := float(number)) else None
    except (ValueError, OverflowError):
        return None


def _scores(name: str, epochs: Sequence[InspectSample]) -> list[tuple[str, object]]:
    """The scores of one scorer, one for each epoch; those of a scorer that gives several under ``scorer.name``."""
    values = [_given(one, name).get("value") for one in epochs]
    inner = dict.fromkeys(key for one in values if isinstance(one, Mapping) for key in one)
    if not inner:
        return [(name, _one_or_all([score_value(one) for one in values]))]
    each = [one if isinstance(one, Mapping) else {} for one in values]
    return [(f"{name}.{key}", _one_or_all([score_value(one.get(key)) for one in each])) for key in inner]


def list_spelled(sample: InspectSample) -> Plain:
    """List the scores of a sample as the log has them, under the names that they have here."""
    values = {name: _given(sample, name).get("value") for name in sample.scores or {}}
    inner = {
        f"{name}.{key}": one for name, given in values.items() if isinstance(given, dict) for key, one in given.items()
    }
    return {**values, **inner}


def _one_or_all(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else tuple(values)


def _given(sample: InspectSample, name: str) -> Plain:
    return (sample.scores or {}).get(name) or {}
