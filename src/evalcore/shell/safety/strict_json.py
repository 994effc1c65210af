"""Strict JSON: ASCII, no NaN, the same bytes for the same data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quote
from math import isfinite

import msgspec
import numpy as np

from evalcore.core.records.document import is_alike
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict


def dump_json(value: object, *, indent: int | None = None) -> str:
    """JSON that every reader takes: numbers that JSON has no words for become null.

    >>> dump_json({"a": float("nan"), "b": "\\ud83d"})
    '{"a": null, "b": "\\\\ud83d"}'
    """
    try:
        try:
            return json.dumps(value, indent=indent, allow_nan=False, default=to_plain)
        except (ValueError, TypeError):
            return json.dumps(drop_nonfinite(value)[0], indent=indent, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as wrong:
        raise EvalError(f"expected data that JSON can hold, got {type(value).__name__}: {wrong}") from wrong


_encode = json.JSONEncoder(allow_nan=False, default=lambda value: to_plain(value)).encode
_BEYOND_ASCII = re.compile("[^\x00-\x7e]+")


def encode_json(value: object, alike: bool = False) -> bytes:
    """The bytes of ``json.dumps``, mostly five times as fast; numbers that JSON has no words for are a ``ValueError``.

    ``alike``: the value is known to be alike (see ``is_alike``).

    >>> encode_json({"a": [1, "é"]})
    b'{"a": [1, "\\\\u00e9"]}'
    """
    try:
        encoded = msgspec.json.encode(value) if alike or is_alike(value) else b""
    except (ValueError, TypeError, OverflowError):
        encoded = b""
    if not encoded:
        return _encode(value).encode("ascii")
    return make_ascii(space_json(encoded))


def space_json(encoded: bytes) -> bytes:
    """Compact JSON with the blanks of ``json.dumps``.

    >>> space_json(b'{"a":[1,2]}')
    b'{"a": [1, 2]}'
    """
    return msgspec.json.format(encoded, indent=0)


def make_ascii(encoded: bytes) -> bytes:
    """JSON in UTF-8 with the escapes of ``json.dumps``.

    >>> make_ascii('"é"'.encode())
    b'"\\\\u00e9"'
    """
    if _is_ascii(encoded):
        return encoded
    return _BEYOND_ASCII.sub(lambda found: quote(found[0])[1:-1], encoded.decode()).encode("ascii")


def make_all_ascii(encoded: list[bytes]) -> list[bytes]:
    """``make_ascii`` of each; a single look at all of them mostly shows that there is nothing to do."""
    return encoded if _is_ascii(b"".join(encoded)) else list(map(make_ascii, encoded))


def _is_ascii(encoded: bytes) -> bool:
    return encoded.isascii() and b"\x7f" not in encoded


def dump_page(value: object) -> str:
    """A whole file or page of JSON.

    >>> print(dump_page({"n": 1}), end="")
    {
      "n": 1
    }
    """
    return dump_json(value, indent=2) + "\n"


def to_plain(value: object) -> object:
    """What is not JSON as what comes nearest: numpy's numbers, records, sets; callables by name, the rest as text.

    >>> to_plain(np.float64(0.5)), to_plain(frozenset({2, 1})), to_plain(len)
    (0.5, [1, 2], 'len')
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, FrozenDict):
        return dict(value)
    if isinstance(value, Mapping):
        return _sort_keys(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(getattr(value, "__name__", type(value).__name__) if callable(value) else value)


def _sort_keys(value: object) -> object:
    """Data of a ``PMap``, whose order is another in every process, in the order of its keys, all the way down."""
    if isinstance(value, Mapping):
        return {str(key): _sort_keys(value[key]) for key in sorted(value, key=str)}
    return [_sort_keys(item) for item in value] if isinstance(value, list | tuple) else value


def drop_nonfinite(value: object) -> tuple[object, dict[str, str]]:
    """The data with null for NaN and infinities, and what was where.

    >>> drop_nonfinite({"a": [1.0, float("-inf")]})
    ({'a': [1.0, None]}, {'a.1': '-inf'})
    """
    nonfinite: dict[str, str] = {}
    return _clean_value(value, "", nonfinite), nonfinite


def _clean_value(value: object, path: str, nonfinite: dict[str, str]) -> object:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        nonfinite[path.removeprefix(".")] = repr(float(value))
        return None
    if isinstance(value, dict | FrozenDict):
        return {
            _write_key(key): _clean_value(one, f"{path}.{_write_key(key)}", nonfinite) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean_value(one, f"{path}.{i}", nonfinite) for i, one in enumerate(value)]
    return _clean_value(to_plain(value), path, nonfinite)


def _write_key(key: object) -> str:
    """As the json module writes keys."""
    return key if isinstance(key, str) else json.dumps(key) if key is None or isinstance(key, bool) else str(key)
