"""Records of scores as bytes and back: a versioned MessagePack without pickle, so that bytes run no code."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NoReturn

import numpy as np
from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder, Ext, decode
from msgspec.structs import astuple
from pyrsistent import PMap, pmap

from evalcore.core.records.array import Array, frozen
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.lean.steps import ONE, Bits
from evalcore.core.records.row import Floats, Labels, Objects, Powers, Stats
from evalcore.core.records.score import Provenance, Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Step, Task, name_function

RECORDS: Mapping[str, type[Struct]] = {
    kind.__name__: kind
    for kind in (
        *(Scored, ScoredColumn, Column, Floats, Stats, Labels, Objects, Powers),
        *(Provenance, Task, MetricSpec, Pipeline, Step),
    )
}
"""The records that may be packed; a host's own are refused."""

RECORD, KEY, ARRAY, TUPLE, FROZEN, OPTIONS, FUNCTION, INTEGER, TEXT, NUMBER, FRACTION, KIND = range(1, 13)
PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
NUMBERS = frozenset("biuf")
SMALL_INTEGERS = range(-(2**63), 2**63)
ENCODE = Encoder().encode


class Absent(Struct, frozen=True):
    """A function that was left behind when a task was packed: only its name travels."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *given: object, **named: object) -> NoReturn:
        raise EvalError(
            f"{self.name} is a function of the task's own, which a partial does not hold; name the task file "
            "and trust its code (--task FILE --trust CODE)"
        )


def pack(value: object, records: Mapping[str, type[Struct]] = RECORDS) -> bytes:
    """Pack records, arrays and plain values into compressed bytes, the same for equal values.

    >>> unpack(pack({"a": (1, [2.5, None])}))
    {'a': (1, [2.5, None])}
    >>> pack(object())
    Traceback (most recent call last):
    evalcore.EvalError: expected scores of plain values, got one of type object, which cannot be written to a partial
    """
    raw = ENCODE(_Packer(records).lay(value))
    packed = zlib.compress(raw, 1)
    return packed if len(raw) <= _find_most(packed) else zlib.compress(raw, 0)


class _Packer(Struct, frozen=True):
    records: Mapping[str, type[Struct]]

    def wrap(self, code: int, value: object) -> Ext:
        return Ext(code, ENCODE(value))

    def lay(self, value: object) -> object:
        """Lay a value out in what MessagePack knows."""
        kind = type(value)
        if kind in PLAIN:
            return self.lay_plain(value)
        if isinstance(value, Struct) and self.records.get(kind.__name__) is kind:
            return self.wrap(RECORD, [kind.__name__, *map(self.lay, astuple(value))])
        if kind is MetricKey:
            return self.wrap(KEY, list(value))  # type: ignore[call-overload]  # two texts
        if kind is tuple:
            return self.wrap(TUPLE, [self.lay(one) for one in value])  # type: ignore[attr-defined]
        if kind is list:
            return [self.lay(one) for one in value]  # type: ignore[attr-defined]
        if isinstance(value, dict | FrozenDict | PMap):
            return self.lay_mapping(value)
        return self.lay_other(value)

    def lay_plain(self, value: object) -> object:
        if isinstance(value, int) and value not in SMALL_INTEGERS:
            return self.wrap(INTEGER, str(value))
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:  # half of a character, as models write it
                return Ext(TEXT, value.encode("utf-8", "surrogatepass"))
        return value

    def lay_mapping(self, value: Mapping[object, object]) -> object:
        options = isinstance(value, PMap)
        items = sorted(value.items(), key=lambda item: str(item[0])) if options else value.items()
        laid = [[self.lay(key), self.lay(item)] for key, item in items]
        return self.wrap(OPTIONS if options else FROZEN if isinstance(value, FrozenDict) else 0, laid)

    def lay_other(self, value: object) -> object:
        if isinstance(value, Array):
            return self.lay_array(value.data, ARRAY)
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in NUMBERS:
            return self.lay_array(np.asarray(value), NUMBER)
        if isinstance(value, Fraction):
            return self.wrap(FRACTION, str(value))
        if isinstance(value, type) and value in self.records.values():
            return self.wrap(KIND, value.__name__)
        if callable(value):
            return self.wrap(FUNCTION, name_function(value))
        told = f"got one of type {type(value).__name__}, which cannot be written to a partial"
        raise EvalError(f"expected scores of plain values, {told}")

    def lay_array(self, data: np.ndarray[tuple[int, ...], np.dtype[np.generic]], code: int) -> Ext:
        if data.dtype.kind not in NUMBERS:
            raise EvalError(f"expected an array of numbers, got one of {data.dtype}, which cannot be written")
        small = data.astype(np.uint8) if data.dtype == np.float64 and _are_bits(data) else data
        return self.wrap(code, [data.dtype.str, small.dtype.str, list(data.shape), small.tobytes()])


def _are_bits(data: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    """Whether all numbers are 0 or 1 (and none -0.0), so that a byte holds each."""
    return bool(np.all((data == 0) | (data == 1))) and not bool(np.signbit(data).any())


SMALL, RATIO = 1 << 24, 64
"""Bytes that anything may unpack to, and how many times its own size more may: what packs better is not compressed."""


def _find_most(packed: bytes) -> int:
    return max(SMALL, RATIO * len(packed))


def unpack(data: bytes, records: Mapping[str, type[Struct]] = RECORDS, *, most: int = 1 << 33) -> object:
    """Unpack what ``pack`` made; functions come back as ``Absent``. Damaged bytes are an ``EvalError``.

    >>> unpack(b"junk")
    Traceback (most recent call last):
    evalcore.EvalError: expected packed scores, got damaged bytes: ...
    """
    lift = _Lifter(records)
    try:
        inflate = zlib.decompressobj()
        most = min(most, _find_most(data))  # a few bytes must not fill the memory
        raw = inflate.decompress(data, most)
        if inflate.unconsumed_tail or not inflate.eof or inflate.unused_data:
            raise EvalError(f"more than {most:,} bytes, or cut off")
        return lift.lift(raw)
    except Exception as wrong:  # bytes of any origin may claim to be any record
        raise EvalError(f"expected packed scores, got damaged bytes: {wrong}") from wrong


class _Lifter:
    """Lifts records out of MessagePack."""

    def __init__(self, records: Mapping[str, type[Struct]]) -> None:
        self.records = records
        self.decode = Decoder(ext_hook=self.unwrap).decode
        self.kinds: Mapping[int, Callable[[memoryview], object]] = {
            0: lambda data: dict(self.pairs(data)),
            RECORD: self.record,
            KEY: lambda data: MetricKey(*self.many(data)),  # type: ignore[arg-type]
            ARRAY: self.held,
            TUPLE: lambda data: tuple(self.many(data)),
            FROZEN: lambda data: FrozenDict(self.pairs(data)),
            OPTIONS: lambda data: pmap(dict(self.pairs(data))),
            FUNCTION: lambda data: Absent(decode(data, type=str)),
            INTEGER: lambda data: int(decode(data, type=str)),
            TEXT: lambda data: bytes(data).decode("utf-8", "surrogatepass"),
            FRACTION: lambda data: Fraction(*map(int, decode(data, type=str).split("/"))),  # never 1e999999999
            KIND: lambda data: self.records[decode(data, type=str)],
            NUMBER: lambda data: array if (array := self.array(data)).shape else array[()],
        }

    def lift(self, raw: bytes) -> object:
        return self.decode(raw)

    def unwrap(self, code: int, data: memoryview) -> object:
        return self.kinds[code](data)

    def many(self, data: memoryview) -> list[object]:
        found = self.decode(data)
        return found if isinstance(found, list) else []

    def pairs(self, data: memoryview) -> list[tuple[object, object]]:
        return [(one[0], one[1]) for one in self.many(data) if isinstance(one, list)]

    def record(self, data: memoryview) -> object:
        name, *fields = self.many(data)
        kind = self.records[str(name)]
        return kind(**dict(zip(kind.__struct_fields__, fields, strict=True)))

    def held(self, data: memoryview) -> Array:
        """An array of a record; floats that were written as bytes are kept as these."""
        kind, small, shape, content = self.many(data)
        if (kind, small) == ("<f8", "|u1") and isinstance(content, bytes) and shape == [len(content)]:
            codes = np.frombuffer(content, np.uint8)
            if not len(codes) or codes.max() <= ONE:
                return Array(Bits(codes))
        return frozen(self.array(data))

    def array(self, data: memoryview) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        kind, small, shape, held = self.many(data)
        if np.dtype(str(kind)).kind not in NUMBERS or np.dtype(str(small)).kind not in NUMBERS:
            raise EvalError(f"expected an array of numbers, got {kind!r}")
        return np.frombuffer(held, np.dtype(str(small))).reshape(shape).astype(np.dtype(str(kind)))  # type: ignore[call-overload,no-any-return]
