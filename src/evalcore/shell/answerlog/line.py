"""One line of the answer log: JSON that begins with a checksum of the rest."""

from __future__ import annotations

from hashlib import sha256
from math import isfinite
from typing import Literal, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Likelihood, Reply
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.data.wire import decode_line, encode_line

FORMAT, VERSION = "evalcore-answers", 1
PREFIX = b'{"sum":"'
START = len(PREFIX) + 8 + 2  # the checksum in hex, then '",'

Number = float | Literal["-inf", "inf", "nan"]
"""JSON has no words for these three."""


class Withdrawn(Failure, frozen=True, tag="withdrawn"):
    """In place of a reply: the one before it under this key does not count, for this reason."""


class LoggedAnswer(Struct, frozen=True, omit_defaults=True, gc=False):
    """An answer as stored; exactly one of text, loglik, rolling, failure and withdrawn is given."""

    key: str
    request: str
    repeat: int = 0
    model: str = ""
    text: str | None = None
    loglik: tuple[Number, bool, int] | None = None
    rolling: Number | None = None
    failure: str | None = None
    withdrawn: str | None = None
    finish: str = ""
    spent: Spent | None = None

    @property
    def reply(self) -> Reply:
        """The model's reply.

        >>> LoggedAnswer("k", "r", loglik=("-inf", False, 3)).reply
        Likelihood(value=-inf, greedy=False, tokens=3)
        """
        if self.text is not None:
            return self.text
        if self.loglik is not None:
            return Likelihood(float(self.loglik[0]), self.loglik[1], self.loglik[2])
        return float(self.rolling) if self.rolling is not None else Failure(self.failure or "")

    @property
    def said(self) -> tuple[object, ...]:
        return self.text, self.loglik, self.rolling, self.failure, self.withdrawn


class ModelLine(Struct, frozen=True):
    """The identity of the model that goes by a short name."""

    model: str
    identity: str


class Header(Struct, frozen=True):
    """The first line of a log."""

    format: str = FORMAT
    version: int = VERSION


Line = LoggedAnswer | ModelLine | Header
Kind = TypeVar("Kind", LoggedAnswer, ModelLine, Header)

_decode_logged = msgspec.json.Decoder(LoggedAnswer).decode


def name_model(identity: str) -> str:
    """Name a model in the log, in short.

    >>> name_model("gpt@1")
    '7546588b066f'
    """
    return sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def make_record(
    key: str, request: str, repeat: int, model: str, reply: Reply, finish: str = "", spent: Spent | None = None
) -> LoggedAnswer:
    """Bring an answer into its stored form.

    >>> make_record("k", "r", 0, "m", (float("-inf"), True)).loglik
    ('-inf', True, 0)
    """
    if isinstance(reply, str):
        return LoggedAnswer(key, request, repeat, model, text=reply, finish=finish, spent=spent)
    if isinstance(reply, Withdrawn):
        return LoggedAnswer(key, request, repeat, model, withdrawn=reply.reason)
    if isinstance(reply, Failure):
        return LoggedAnswer(key, request, repeat, model, failure=reply.reason, finish=finish, spent=spent)
    if isinstance(reply, tuple):
        value, greedy, tokens = (*reply, 0)[:3]
        likely = (_spell_number(value), bool(greedy), int(tokens))
        return LoggedAnswer(key, request, repeat, model, loglik=likely, finish=finish, spent=spent)
    return LoggedAnswer(key, request, repeat, model, rolling=_spell_number(reply), finish=finish, spent=spent)


def _spell_number(value: float) -> Number:
    number = float(value)
    if isfinite(number):
        return number
    return "nan" if number != number else "inf" if number > 0 else "-inf"


def encode_record(record: Line) -> bytes:
    """Encode a record as a line with its newline.

    >>> encode_record(Header())
    b'{"sum":"bf560f93","format":"evalcore-answers","version":1}\\n'
    """
    rest = encode_line(record)[1:]
    return PREFIX + b"%08x" % crc32(rest[:-1]) + b'",' + rest


HEADER = encode_record(Header())


def is_intact(line: bytes) -> bool:
    """Whether a line, given without its newline, is unchanged.

    >>> is_intact(HEADER.rstrip()), is_intact(HEADER.rstrip().replace(b"1", b"2"))
    (True, False)
    """
    return line.startswith(PREFIX) and line[len(PREFIX) : START] == b'%08x",' % crc32(line[START:])


def decode_record(line: bytes) -> Line:
    """Decode an intact line.

    >>> decode_record(HEADER)
    Header(format='evalcore-answers', version=1)
    """
    record = _decode_line(line)
    if isinstance(record, LoggedAnswer) and record.said.count(None) != 4:
        raise EvalError("expected one of text, loglik, rolling, failure, withdrawn")
    return record


def _decode_line(line: bytes) -> Line:
    try:
        return _decode_logged(line)
    except (ValueError, RecursionError):
        value = decode_line(line, "the record")
    fields = value if isinstance(value, dict) else {}
    if "identity" in fields:
        return _convert_record(value, ModelLine)
    return _convert_record(value, Header) if "format" in fields else _convert_record(value, LoggedAnswer)


def _convert_record(value: object, kind: type[Kind]) -> Kind:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as wrong:
        raise EvalError(str(wrong)) from wrong
