"""Numbers that need not be kept one by one: those that follow each other, and those that are 0 or 1."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Lean(Struct, frozen=True, eq=False):
    """What an array is made from whenever somebody looks at it, or at some of it."""

    def make(self, start: int, stop: int) -> NDArray[np.generic]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class Steps(Lean, frozen=True, eq=False):
    """Integers that follow each other.

    >>> Steps(3, 9).make(0, 2).tolist()
    [3, 4]
    """

    first: int
    count: int

    def make(self, start: int, stop: int) -> NDArray[np.int64]:
        return np.arange(self.first + start, self.first + stop, dtype=np.int64)

    def __len__(self) -> int:
        return self.count


class Level(Lean, frozen=True, eq=False):
    """The same number, so many times.

    >>> Level(1.0, 9).make(0, 2).tolist()
    [1.0, 1.0]
    """

    value: float
    count: int

    def make(self, start: int, stop: int) -> NDArray[np.float64]:
        return np.full(stop - start, self.value)

    def __len__(self) -> int:
        return self.count


NUMBERS = np.array([0.0, 1.0, np.nan])
ZERO, ONE, MISSING = range(3)


class Bits(Lean, frozen=True, eq=False):
    """Numbers that are 0, 1 or missing (NaN), a byte for each: their places among these three.

    >>> Bits(np.array([1, 0, 2], np.uint8)).make(0, 3).tolist()
    [1.0, 0.0, nan]
    """

    codes: NDArray[np.uint8]

    def __post_init__(self) -> None:
        self.codes.setflags(write=False)

    def make(self, start: int, stop: int) -> NDArray[np.float64]:
        return NUMBERS[self.codes[start:stop]]

    def __len__(self) -> int:
        return len(self.codes)


def find_bits(values: NDArray[np.float64]) -> Bits | None:
    """Find whether numbers are 0, 1 or missing throughout; -0.0 is neither.

    >>> find_bits(np.array([0.0, 1.0])).codes.tolist(), find_bits(np.array([-0.0]))
    ([0, 1], None)
    """
    given, known = values.view(np.int64), NUMBERS.view(np.int64)
    one, missing = given == known[ONE], given == known[MISSING]
    if not bool((one | missing | (given == known[ZERO])).all()):
        return None
    return Bits(one.view(np.uint8) + MISSING * missing.view(np.uint8))
