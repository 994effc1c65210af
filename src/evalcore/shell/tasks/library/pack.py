"""A YAML value as bytes and back: the form of a file in an index, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime

from msgspec import msgpack

from evalcore.shell.config.yaml_file import FunctionTag

FUNCTION, DATE, TIME, BIG = 1, 2, 3, 4
WORD = 1 << 63


def hold_value(value: object) -> object:
    """Replace a value that msgpack has no type for: a function, a date, a number of many digits.

    >>> values = {"day": date(2024, 2, 29), "f": FunctionTag("utils.f", 3), "n": 2**70}
    >>> unpack(pack({key: hold_value(value) for key, value in values.items()}))
    {'day': datetime.date(2024, 2, 29), 'f': FunctionTag(name='utils.f', line=3, path=''), 'n': 118...}
    """
    if isinstance(value, int):
        return value if -WORD <= value < WORD else msgpack.Ext(BIG, hex(value).encode())
    if isinstance(value, FunctionTag):
        return msgpack.Ext(FUNCTION, pack([value.name, value.line, value.path]))
    if isinstance(value, datetime | date):
        return msgpack.Ext(TIME if isinstance(value, datetime) else DATE, value.isoformat().encode())
    return value


def _unpack_function(data: bytes) -> FunctionTag:
    name, line, path = msgpack.decode(data, type=tuple[str, int, str])
    return FunctionTag(name, line, path)


UNWRAP: Mapping[int, Callable[[bytes], object]] = {
    FUNCTION: _unpack_function,
    DATE: lambda data: date.fromisoformat(data.decode()),
    TIME: lambda data: datetime.fromisoformat(data.decode()),
    BIG: lambda data: int(data, 16),
}
pack = msgpack.Encoder().encode
unpack = msgpack.Decoder(ext_hook=lambda code, data: UNWRAP[code](bytes(data))).decode
