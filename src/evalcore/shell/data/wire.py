"""JSON lines without loss: NaN, infinities, lone surrogates, any Unicode."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

import msgspec

from evalcore.core.records.errors import EvalError

MOST_BYTES = 256 << 20


def encode_line(value: object) -> bytes:
    """Encode a value as one line of JSON; what JSON has no word for is written as Python's json writes it.

    >>> encode_line({"a": [1, "é"]}), encode_line({"a": float("-inf")})
    (b'{"a":[1,"\\xc3\\xa9"]}\\n', b'{"a":-Infinity}\\n')
    """
    try:
        line = msgspec.json.encode(value)
        if b"null" in line and not _is_finite(msgspec.to_builtins(value)):  # msgspec writes NaN as null
            raise ValueError
    except (ValueError, TypeError):
        line = _encode_with_json(value)
    except RecursionError as deep:
        raise EvalError(f"cannot write this as JSON: {deep}") from deep
    return line + b"\n"


def _encode_with_json(value: object) -> bytes:
    try:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as wrong:
        raise EvalError(f"cannot write this as JSON: {wrong}") from wrong


def _is_finite(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list | tuple) else True


def decode_line(line: bytes, where: str) -> object:
    """Decode one line; an error says in one line where it is (``file:line``).

    >>> decode_line(b'{"a": NaN}', "x.jsonl:1")
    {'a': nan}
    >>> decode_line(b'{"a": ', "x.jsonl:2")
    Traceback (most recent call last):
    evalcore.EvalError: x.jsonl:2: not JSON: Expecting value at byte 6 of b'{"a": '
    """
    if len(line) > MOST_BYTES:
        raise EvalError(f"{where}: a line of {len(line):,} bytes, more than {MOST_BYTES:,}")
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        raise EvalError(f"{where}: not UTF-8: {wrong.reason} at byte {wrong.start}") from wrong
    except json.JSONDecodeError as wrong:
        at = len(wrong.doc[: wrong.pos].encode())
        where += f":{wrong.lineno}" if b"\n" in line else ""
        raise EvalError(
            f"{where}: not JSON: {wrong.msg.removesuffix(' at')} at byte {at} of {line[max(0, at - 30) : at + 30]!r}"
        ) from wrong
    except (ValueError, RecursionError) as wrong:
        raise EvalError(f"{where}: not read as JSON: {str(wrong).split(';')[0]}") from wrong


def number_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number the lines that are not blank; a byte order mark and carriage returns are not content.

    >>> list(number_lines([b'\\xef\\xbb\\xbf1\\r\\n', b'\\n', b'2']))
    [(1, b'1'), (3, b'2')]
    """
    for number, line in enumerate(lines, 1):
        content = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
        if content:
            yield number, content
