"""Lines of sample logs as lm-eval writes them since 2024, decoded at once into what scoring needs of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct

from evalcore.core.records.request import Generate, LogLikelihood, Options, Request, options

__all__ = ["FORMS", "Form", "Line"]

NO_DOC = Raw(b"{}")
NOTHING: Mapping[str, object] = {}


class Line(Struct, gc=False, kw_only=True):
    """A line as lm-eval writes it since 2024."""

    doc_id: int
    resps: Raw
    doc: Raw = NO_DOC
    target: object = None
    filter: str | None = None
    evalcore: Mapping[str, object] = NOTHING


class _Pair(Struct, gc=False):
    arg_0: str
    arg_1: str


class _End(LogLikelihood, frozen=True, gc=False, kw_only=True, tag=False, rename={"continuation": "arg_1"}):
    """A request of which only the end is read: its context, most of a line, stays as it is written."""

    arg_0: Raw
    continuation: str
    context: str = ""


class _Prompt(Struct, gc=False):
    arg_0: str
    arg_1: Raw


class _Options(Struct, gc=False):
    arg_1: Raw


class _Pairs(Line, gc=False, kw_only=True):
    arguments: dict[str, _Pair]


class _Ends(Line, gc=False, kw_only=True):
    arguments: dict[str, _End]


class _Prompts(Line, gc=False, kw_only=True):
    arguments: dict[str, _Prompt]


class _Optioned(Line, gc=False, kw_only=True):
    arguments: dict[str, _Options]


PAIRS, ENDS = msgspec.json.Decoder(_Pairs), msgspec.json.Decoder(_Ends)
PROMPTS, OPTIONED = msgspec.json.Decoder(_Prompts), msgspec.json.Decoder(_Optioned)
VALUE = msgspec.json.Decoder()


def _read_prompts(line: bytes) -> tuple[_Prompts, list[Request]]:
    row = PROMPTS.decode(line)
    return row, [Generate(one.arg_0, _options(bytes(one.arg_1))) for one in row.arguments.values()]


def _read_optioned(line: bytes) -> tuple[_Optioned, list[Request]]:
    row = OPTIONED.decode(line)
    if any(bytes(one.arg_1)[:1] != b"{" for one in row.arguments.values()):
        raise ValueError("no generation")
    return row, [NO_PROMPT] * len(row.arguments)


def _read_pairs(line: bytes) -> tuple[_Pairs, list[Request]]:
    row = PAIRS.decode(line)
    return row, [LogLikelihood(one.arg_0, one.arg_1) for one in row.arguments.values()]


def _read_ends(line: bytes) -> tuple[_Ends, list[_End]]:
    """Requests that are told apart by their ends; of others the contexts count."""
    row = ENDS.decode(line)
    found = list(row.arguments.values())
    if len(found) > 1 and (found[0].continuation == found[-1].continuation or bytes(found[-1].arg_0) == b'""'):
        raise ValueError("several inputs, or choices that are asked twice")
    return row, found


Form = Callable[[bytes], tuple[_Pairs | _Ends | _Prompts | _Optioned, Sequence[Request]]]
NO_PROMPT = Generate("")
FORMS: Mapping[tuple[bool, bool], Form] = {
    (True, True): _read_prompts,
    (True, False): _read_optioned,
    (False, True): _read_pairs,
    (False, False): _read_ends,
}
"""How a line is read at once: (whether it is of a generation, whether with its prompts)."""


@lru_cache(maxsize=256)
def _options(raw: bytes) -> Options:
    """The options of generation, which the requests of a task share."""
    found = VALUE.decode(raw)
    if not isinstance(found, dict):
        raise ValueError
    return options(found)
