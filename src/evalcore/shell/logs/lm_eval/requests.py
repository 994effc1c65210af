"""The requests of a row of a sample log, and the replies to each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Failure,
    Generate,
    Likelihood,
    LogLikelihood,
    OutputType,
    Reply,
    Request,
    Rolling,
)
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.rows import AskedRow, Fields, decode_row, read_value

PLACED = re.compile(r"( - at .*? doc \d+)+$")
"""The place in a reason, which scoring adds again."""
TEXTS = msgspec.json.Decoder(tuple[tuple[str, ...], ...])
LIKELIHOODS = msgspec.json.Decoder(tuple[tuple[Likelihood, ...], ...], strict=False)  # numbers may be text
DECODERS = {Generate: TEXTS, Rolling: None}
"""The decoder of the replies to each kind of request, if there is one; continuations have likelihoods."""
Replies = tuple[tuple[Reply, ...], ...]
GREEDY = {"True": True, "False": False, True: True, False: False}


def read_sample_log(path: Path) -> Iterator[tuple[Request, tuple[Reply | None, ...]]]:
    """Read every request of a sample log, in lines or in one array, with its replies (see ``read_exchanges``)."""
    for at in read_records(path):
        if not isinstance(at, Record):
            raise EvalError(f"{at.place}: {at.message}")
        yield from read_exchanges(at.data, f"{path}:{at.line}")


def read_exchanges(line: bytes, where: str) -> Iterator[tuple[Request, tuple[Reply | None, ...]]]:
    """Read every request of a row with its replies, one per repeat; None if a reply was not recorded.

    >>> row = b'{"arguments": {"gen_args_0": {"arg_0": "a", "arg_1": " b"}}, "resps": [[["-1.5", "True"]]]}'
    >>> list(read_exchanges(row, "samples.jsonl:1"))
    [(LogLikelihood(context='a', continuation=' b'), (Likelihood(value=-1.5, greedy=True, tokens=0),))]
    """
    row = decode_row(line, where, "arguments, resps", ("arguments", "resps"))
    asked, heard = list_arguments(row["arguments"]), row["resps"]
    if not isinstance(heard, list) or len(heard) != len(asked):
        raise EvalError(f"{where}: expected replies to each of {len(asked)} requests, got {str(heard)[:60]!r}")
    for arguments, replies in zip(asked, heard, strict=True):
        request = make_request(arguments, where)
        repeats = replies if isinstance(replies, list) else [replies]
        yield request, tuple(make_reply(request, one, where) for one in repeats)


def guess_output_type(fields: Fields) -> OutputType:
    """Guess the output type from the requests of a row, for a log without a config.

    >>> guess_output_type({"arguments": [["Q:", {"until": []}]], "resps": [["4"]]})
    'generate_until'
    >>> guess_output_type({"arguments": ["Q:", " a"], "resps": [[[-1.0, False]], [[-2.0, False]]]})  # of 2023
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
    """List the arguments of each request: named (as on disk), listed, or those of a single request.

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


def make_request(arguments: list[object], where: str) -> Request:
    """Make a request of its arguments; those after a prompt and its options, such as pictures, are left out.

    >>> make_request(["a", " b"], "samples.jsonl:1")
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
    """The parts of a request; the prompt of a chat may be the only item of a list."""
    return [one[0] if isinstance(one, list) and len(one) == 1 else one for one in arguments]


def make_reply(request: Request, given: object, where: str) -> Reply | None:
    """Make a reply of the kind that its request expects; numbers may be text, as lm-eval writes them.

    >>> make_reply(LogLikelihood("a", " b"), ["-1.5", "True"], "samples.jsonl:1")
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


# --- replies of a row ------------------------------------------------------------------------------------------------


def read_replies(row: AskedRow) -> Replies:
    """Read the replies to each request, one per repeat; a missing reply is a failure.

    >>> line = b'{"doc_id": 0, "arguments": [["a", " b"]], "resps": [[["-1.5", "True"]], [[-2, false]]]}'
    >>> from evalcore.shell.logs.lm_eval.forms import read_asked
    >>> read_replies(read_asked(line, OutputType("multiple_choice")))
    ((Likelihood(value=-1.5, greedy=True, tokens=0),), (Likelihood(value=-2.0, greedy=False, tokens=0),))
    """
    asked = row.requests
    try:
        decoder = DECODERS.get(type(asked[0]), LIKELIHOODS)  # a look at the class takes longer
        found: Replies = () if decoder is None else decoder.decode(row.raw)
        if () not in found and found and (len(found) == len(asked) or len(asked) == 1):
            return found
    except (ValueError, RecursionError):  # replies of another form, or none
        pass
    return _replies_slowly(row)


def _replies_slowly(row: AskedRow) -> Replies:
    heard, requests = decode_line(row.raw, "resps"), row.requests
    if not isinstance(heard, list) or not heard:
        raise EvalError(f"expected replies under resps, got {str(heard)[:60]!r}")
    if len(requests) not in (len(heard), 1):
        raise EvalError(f"expected replies to each of {len(requests)} requests, got {len(heard)}")
    # Logs of 2023 have the first request only; its kind is that of all.
    asked = requests if len(requests) == len(heard) else requests * len(heard)
    return tuple(tuple(_replies(request, one, row)) for request, one in zip(asked, heard, strict=True))


def drop_padding(replies: Replies, config: Mapping[str, object]) -> Replies:
    """Drop the replies that lm-eval requests only to keep its ranks in step: repeats of a rank's last request.

    >>> drop_padding((("a",), ("b", "b")), {"repeats": 1})
    (('a',), ('b',))
    >>> drop_padding((((-1.0, True),), ((-2.0, False), (-2.0, False))), {})
    (((-1.0, True),), ((-2.0, False),))
    """
    for one in replies:
        if len(one) != 1:
            break
    else:
        return replies  # one to each, found in half the time that adding them up takes
    counts, repeats = {*map(len, replies)}, config.get("repeats")
    if type(repeats) is int and repeats > 0:
        return tuple(one[:repeats] for one in replies)
    same = len(counts) > 1 and all(len(set(one)) == 1 for one in replies)
    return tuple(one[: min(counts)] for one in replies) if same else replies


def _replies(request: Request, given: object, row: AskedRow) -> Iterator[Reply]:
    if given == []:
        raise EvalError("expected at least one reply to each request, got none")
    for one in given if isinstance(given, list) else [given]:
        found = make_reply(request, one, "resps")
        yield Failure(_reason(row.own)) if found is None else found


def _reason(own: Mapping[str, object]) -> str:
    """Why a document has no reply, as the failed run put it."""
    told = own.get("unscored")
    reasons: Sequence[object] = list(told.values()) if isinstance(told, dict) else []
    failed = [str(one).removeprefix("failed: ") for one in reasons if str(one).startswith("failed: ")]
    return PLACED.sub("", failed[0]) if failed else "the log has no reply"
