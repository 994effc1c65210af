"""A numpy array as a value: read-only, compared and hashed by its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from math import fsum, nan
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, force_setattr
from numpy.typing import NDArray

from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.lean.steps import Lean

Floats64 = NDArray[np.float64]
Ints64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sums = NDArray[np.float64] | NDArray[np.complex128]
Finalise = Callable[[Sums], Sums]
"""Summed statistics (..., k) to values (...). Real or complex: it is differentiated by the complex step."""


class HasColumns(Protocol):
    """What has columns of numbers, as an array of two dimensions has."""

    @property
    def T(self) -> Iterable[Floats64 | Array]: ...


BLOCK = 1 << 16
"""How many numbers are turned into Python's own at a time."""


class Array:
    """A read-only array that can sit in a frozen record: kept, or made when it is looked at from less that is kept.

    >>> a = Array([1.0, 2.0])
    >>> a == Array([1.0, 2.0]), hash(a) == hash(Array([1.0, 2.0])), len(a)
    (True, True, 2)
    >>> a.data[0] = 5.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """

    __slots__ = ("held",)
    held: NDArray[np.generic] | Lean

    def __init__(self, data: NDArray[np.generic] | Lean | Sequence[object]) -> None:
        array = data if isinstance(data, Lean) else np.ascontiguousarray(data)
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array = array.copy()
            array.setflags(write=False)
        object.__setattr__(self, "held", array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Array is read-only")

    @property
    def data(self) -> NDArray[np.generic]:
        return self.part(0, len(self)) if isinstance(self.held, Lean) else self.held

    def part(self, start: int, stop: int) -> NDArray[np.generic]:
        """Some of the numbers; of an array that is made, only these are."""
        if not isinstance(self.held, Lean):
            return self.held[start:stop]
        made = self.held.make(start, stop)
        made.setflags(write=False)
        return made

    @property
    def floats(self) -> Floats64:
        """The same numbers as float64, read-only."""
        return np.asarray(self.data, dtype=np.float64)

    @property
    def ints(self) -> Ints64:
        """The same numbers as int64."""
        return np.asarray(self.data, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[object]:
        return iter(self.data.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array) or len(self) != len(other):
            return False
        a, b = self.data, other.data
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()

    def __hash__(self) -> int:
        data = self.data
        return hash((data.dtype.str, data.shape, data.tobytes()))

    def __reduce__(self) -> tuple[type[Array], tuple[NDArray[np.generic] | Lean]]:
        return Array, (self.held,)

    def __repr__(self) -> str:
        return f"Array({np.array2string(self.data, threshold=6, separator=', ')})"


def frozen(data: NDArray[np.generic]) -> Array:
    """Take over an array that nothing else refers to, without a copy.

    >>> frozen(np.zeros(2)).data.flags.writeable
    False
    """
    data.setflags(write=False)
    return Array(data)


NOTHING: FrozenDict[object, object] = FrozenDict()


class ColumnRecord(Struct, frozen=True, eq=False):
    """A record of whole columns: its lists become tuples, its dicts ``FrozenDict``, its arrays read-only.

    It takes over the arrays it is given and leaves the items of a column as they are: looking at each would cost more
    than scoring it.

    >>> class Weighed(ColumnRecord, frozen=True, eq=False):
    ...     names: Sequence[str]
    ...     weights: Floats64
    >>> one = Weighed(["a"], np.ones(1))
    >>> one.names, one.weights.flags.writeable
    (('a',), False)
    """

    def __post_init__(self) -> None:
        for name, value in zip(self.__struct_fields__, astuple(self), strict=True):
            kind = type(value)
            if kind is np.ndarray:
                value.setflags(write=False)
            elif kind is list:
                force_setattr(self, name, tuple(value))
            elif kind is dict:
                force_setattr(self, name, FrozenDict(value) if value else NOTHING)


def list_blocks(values: Floats64 | Array) -> Iterator[Floats64]:
    """Some numbers at a time, all in turn.

    >>> [block.tolist() for block in list_blocks(Array([1.0, 2.0]))]
    [[1.0, 2.0]]
    """
    for start in range(0, len(values), BLOCK):
        stop = min(start + BLOCK, len(values))
        yield np.asarray(values.part(start, stop), np.float64) if isinstance(values, Array) else values[start:stop]


def exact_sum(values: Floats64 | HasColumns, times: Ints64 | None = None) -> Floats64:
    """Correctly rounded column sums, so that bits do not depend on the order of the rows.

    >>> exact_sum(np.array([[1e16], [1.0], [-1e16]])).tolist()
    [1.0]
    """
    return np.array([_sum_exactly(column, times) for column in values.T], dtype=np.float64)


def _sum_exactly(column: Floats64 | Array, times: Ints64 | None) -> float:
    count = len(column) if times is None else int(times.sum())
    if times is None and _adds_as_integers(column, count):
        return sum(float(block.sum()) for block in list_blocks(column))
    try:
        return add_up(column, times)
    except (OverflowError, ValueError):  # beyond the largest float, or inf - inf
        return nan


def _adds_as_integers(values: Floats64 | Array, count: int) -> bool:
    """Whether no partial sum of so many can pass 2**53: such integers add without rounding, and need no fsum."""
    most = 2.0**53 / max(count, 1)
    return all(bool(np.all((np.abs(one) < most) & (one == np.rint(one)))) for one in list_blocks(values))


def add_up(
    values: Floats64 | Array, times: Ints64 | None = None, of: Callable[[Floats64], Floats64] | None = None
) -> float:
    """The correctly rounded sum of values, or ``of`` each of them, counted once or so many times.

    >>> add_up(np.array([0.1, -0.3]), np.array([3, 1])) == fsum([0.1, 0.1, 0.1, -0.3]) > 0
    True
    """
    blocks: Iterable[Floats64] = list_blocks(values)  # a list of all would take too much
    blocks = blocks if of is None else map(of, blocks)
    if times is not None:
        blocks = multiply_exactly(np.concatenate([np.zeros(0), *blocks]), times.astype(np.float64))
    return fsum(chain.from_iterable(block.tolist() for block in blocks))


def multiply_exactly(a: Floats64, b: Floats64) -> tuple[Floats64, Floats64]:
    """Products and what rounding takes from each (Dekker 1971), which together are exact.

    >>> [term.tolist() for term in multiply_exactly(np.array([0.1]), np.array([3.0]))]
    [[0.30000000000000004], [-2.7755575615628914e-17]]
    """
    (a, up), (b, down) = np.frexp(a), np.frexp(b)
    product = a * b
    (high, low), (top, rest) = _split_bits(a), _split_bits(b)
    lost = ((high * top - product) + high * rest + low * top) + low * rest
    return np.ldexp(product, up + down), np.ldexp(lost, up + down)


def _split_bits(values: Floats64) -> tuple[Floats64, Floats64]:
    """Split numbers into halves of 26 bits."""
    shifted = values * 134217729.0
    high = shifted - (shifted - values)
    return high, values - high


def total_exactly(values: Floats64) -> Fraction:
    """The exact sum of finite values: totals of parts add up to the total of all.

    >>> total_exactly(np.array([0.1] * 10)) == 10 * Fraction(0.1)
    True
    """
    if _adds_as_integers(values, len(values)):
        return Fraction(int(values.sum()))
    total = Fraction(0)
    for start in range(0, len(values), BLOCK):
        parts, powers = np.frexp(values[start : start + BLOCK])
        bits, least = (parts * 2.0**53).astype(np.int64), int(powers.min())
        halves = (np.bincount(powers - least, half) for half in (bits >> 26, bits & 0x3FFFFFF))  # below 2**53: exact
        high, low = (half.astype(np.int64).tolist() for half in halves)
        whole = sum(((a << 26) + b) << place for place, (a, b) in enumerate(zip(high, low, strict=True)))
        total += Fraction(whole) * Fraction(2) ** (least - 53)
    return total
