"""Keys that come twice in an object of JSON: most decoders keep the last value without a word."""

from __future__ import annotations

import json
import re

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.wire import decode_line

WHOLE, EVERY = 1 << 21, 256
"""Of a large log or table the first 2 MB and one row in 256 are checked: all would cost an eighth of its scoring."""

_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*")|[{}:]', re.DOTALL)


def decode_once(line: bytes, where: str) -> object:
    """Decode JSON as ``decode_line`` does; a key that comes twice in one object is an error.

    >>> decode_once(b'{"a": {"b": 1}, "c": "x: y"}', "x.jsonl:1")
    {'a': {'b': 1}, 'c': 'x: y'}
    >>> decode_once(b'{"a": 1, "a": 2}', "x.jsonl:1")
    Traceback (most recent call last):
    evalcore.EvalError: x.jsonl:1: the key 'a' comes twice in one object; keep the value that is meant
    """
    value = decode_line(line, where)
    if may_double(line, value):
        refuse_doubled(line, where)
    return value


def may_double(line: bytes, value: object) -> bool:
    """Whether a line has other colons than the value that was decoded from it, of which it then lacks a key.

    Every key has its colon; all others are in texts, which a value keeps, though it writes plain what was escaped.

    >>> may_double(b'{"a": "b:c"}', {"a": "b:c"}), may_double(b'{"a": 1, "a": 2}', {"a": 2})
    (False, True)
    """
    colons = line.count(b":")
    if type(value) is dict and colons == len(value):
        return False
    try:
        return colons != msgspec.json.encode(value).count(b":") or (b"\\" in line and b"\\u003" in line)
    except (ValueError, TypeError, OverflowError, RecursionError):  # NaN, lone surrogates, long integers
        return True


def is_checked(byte: int) -> bool:
    """Whether the row that begins at this byte of a log or table is checked, however the file is split.

    >>> is_checked(0), is_checked(WHOLE + 1), is_checked(WHOLE + EVERY)
    (True, False, True)
    """
    return byte < WHOLE or not byte % EVERY


def check_row(row: bytes, byte: int, where: str = "") -> None:
    """Refuse a row of a log with a key that comes twice, if it is checked, which costs twice its decoding.

    >>> check_row(b'{"a": 1, "a": 2}', WHOLE + 1)
    >>> check_row(b'{"a": 1, "a": 2}', WHOLE + EVERY)
    Traceback (most recent call last):
    evalcore.EvalError: the key 'a' comes twice in one object; keep the value that is meant
    """
    if is_checked(byte):
        refuse_doubled(row, where)


def refuse_doubled(line: bytes, where: str = "") -> None:
    """Refuse JSON with a key that comes twice in one object; what is no JSON is left to its decoder."""
    try:
        json.loads(line, object_pairs_hook=_refuse_pairs)
    except _Doubled:
        key, at = _find_doubled(line)
        number = line.count(b"\n", 0, at) + 1
        place = f"{where}:{number}" if where and b"\n" in line else where
        told = f"the key {key!r} comes twice in one object; keep the value that is meant"
        raise EvalError(f"{place}: {told}" if place else told) from None
    except (ValueError, RecursionError):
        return


class _Doubled(Exception):
    """A key came twice."""


def _refuse_pairs(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _Doubled


def _find_doubled(line: bytes) -> tuple[str, int]:
    """Find the first key that comes a second time, and the byte where it does."""
    seen: list[set[str]] = [set()]
    text, at = b"", 0
    for token in _TOKEN.finditer(line):
        if token[1]:
            text, at = token[1], token.start()
        elif token[0] == b"{":
            seen.append(set())
        elif token[0] == b"}":
            seen.pop()
        else:
            key = json.loads(text)
            if key in seen[-1]:
                return key, at
            seen[-1].add(key)
    return "", 0
