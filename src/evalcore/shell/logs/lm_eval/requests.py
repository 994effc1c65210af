"""What a row of a sample log asked, and what was replied each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Generate,
    Likelihood,
    LogLikelihood,
    OutputType,
    Reply,
    Request,
    Rolling,
)
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.rows import Fields, decode_row, read_value

GREEDY = {"True": True, "False": False, True: True, False: False}


def read_sample_log(path: Path) -> Iterator[tuple[Request, tuple[Reply | None, ...]]]:
    """Every request of a sample log, in lines or in one array, with its replies (see ``read_exchanges``)."""
    for at in read_records(path):
        if not isinstance(at, Record):
            raise EvalError(f"{at.place}: {at.message}")
        yield from read_exchanges(at.data, f"{path}:{at.line}")


def read_exchanges(line: bytes, where: str) -> Iterator[tuple[Request, tuple[Reply | None, ...]]]:
    """Every request of a row with its replies, one per repeat; None where a reply was not recorded.

    >>> row = b'{"arguments": {"gen_args_0": {"arg_0": "a", "arg_1": " b"}}, "resps": [[["-1.5", "True"]]]}'
    >>> list(read_exchanges(row, "samples.jsonl:1"))
    [(LogLikelihood(context='a', continuation=' b'), (Likelihood(value=-1.5, greedy=True, tokens=0),))]
    """
    row = decode_row(line, where, "arguments, resps", ("arguments", "resps"))
    asked, heard = list_arguments(row["arguments"]), row["resps"]
    if not isinstance(heard, list) or len(heard) != len(asked):
        raise EvalError(f"{where}: expected replies to each of {len(asked)} requests, got {str(heard)[:60]!r}")
    for arguments, replies in zip(asked, heard, strict=True):
        request = as_request(arguments, where)
        repeats = replies if isinstance(replies, list) else [replies]
        yield request, tuple(as_reply(request, one, where) for one in repeats)


def asked_as(fields: Fields) -> OutputType:
    """The output type that a row's requests are of, for a log without a config.

    >>> asked_as({"arguments": [["Q:", {"until": []}]], "resps": [["4"]]})
    'generate_until'
    >>> asked_as({"arguments": ["Q:", " a"], "resps": [[[-1.0, False]], [[-2.0, False]]]})      # the layout of 2023
    'multiple_choice'
    """
    first = next(iter(list_arguments(read_value(fields, "arguments"))), [])
    replies = read_value(fields, "resps")
    if first == [None] or any(isinstance(one, Mapping) for one in first):
        return GENERATE_UNTIL
    if len(first) == 1:
        return LOGLIKELIHOOD_ROLLING
    several = isinstance(replies, Sequence) and len(replies) > 1
    return MULTIPLE_CHOICE if several else LOGLIKELIHOOD


def list_arguments(given: object) -> list[list[object]]:
    """The arguments of each request: named (as on disk), listed, or those of a single request.

    >>> list_arguments({"gen_args_0": {"arg_0": "a", "arg_1": " b"}}), list_arguments(["a", " b"])
    ([['a', ' b']], [['a', ' b']])
    """
    outer = _in_order(given)
    if any(isinstance(one, str) for one in outer):
        return [outer]
    return [_in_order(one) for one in outer]


def _in_order(given: object) -> list[object]:
    """``{"arg_1": b, "arg_0": a}`` as ``[a, b]``."""
    if isinstance(given, Mapping):
        return [given[name] for name in sorted(given, key=_number_of)]
    return list(given) if isinstance(given, list) else [given]


def _number_of(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 10 else -1


def as_request(arguments: list[object], where: str) -> Request:
    """Arguments as the request they make; what is beyond a prompt and its options, such as pictures, is left out.

    >>> as_request(["a", " b"], "samples.jsonl:1")
    LogLikelihood(context='a', continuation=' b')
    """
    match unwrap_parts(arguments):
        case [str(prompt), dict(given), *_]:
            return Generate(prompt, given)  # type: ignore[arg-type]  # frozen there
        case [str(context), str(continuation)]:
            return LogLikelihood(context, continuation)
        case [str(text)]:
            return Rolling(text)
    raise EvalError(
        f"{where}: expected a prompt and options, a context and continuation, or a text; got {str(arguments)[:80]}"
    )


def unwrap_parts(arguments: Iterable[object]) -> list[object]:
    """The parts of a request, of which a chat's prompt may be the one item of a list."""
    return [one[0] if isinstance(one, list) and len(one) == 1 else one for one in arguments]


def as_reply(request: Request, given: object, where: str) -> Reply | None:
    """A reply as its request's kind; numbers may be text, as lm-eval writes them.

    >>> as_reply(LogLikelihood("a", " b"), ["-1.5", "True"], "samples.jsonl:1")
    Likelihood(value=-1.5, greedy=True, tokens=0)
    """
    try:
        match request, given:
            case _, None:
                return None
            case Generate(), str():
                return given
            case LogLikelihood(), [value, greedy, *_]:
                return Likelihood(_as_number(value), GREEDY[greedy])
            case Rolling(), [value, *_]:
                return _as_number(value)
            case Rolling(), str() | float() | int():
                return _as_number(given)
    except (ValueError, KeyError, TypeError):
        pass
    raise EvalError(f"{where}: expected a reply to a {type(request).__name__}, got {str(given)[:60]!r}")


def _as_number(value: object) -> float:
    if isinstance(value, str | int | float):
        return float(value)
    raise TypeError
