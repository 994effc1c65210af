"""Arrays made lean where their numbers allow it, and kept so where they are joined or some are taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalcore.core.records.array import Array, Bools, Ints64, frozen
from evalcore.core.records.lean.steps import Bits, Lean, Steps, find_bits


def slim_keys(keys: Array) -> Array:
    """Keep the ends of increasing integers that have no gap.

    >>> slim_keys(Array([3, 4, 5])).held, slim_keys(Array([3, 5])).held.tolist()
    (Steps(first=3, count=3), [3, 5])
    """
    return keys if isinstance(keys.held, Lean) or not len(keys) else join_keys([keys])


def find_ends(keys: Array) -> tuple[int, int]:
    """The first and the last of increasing integers.

    >>> find_ends(Array([3, 5, 9]))
    (3, 9)
    """
    first, last = (keys.part(at, at + 1).tolist()[0] for at in (0, len(keys) - 1))
    return first, last


def join_keys(keys: Sequence[Array]) -> Array:
    """Join increasing integers, of which each array ends below the next.

    >>> join_keys([Array([3, 4]), Array([5])]).held
    Steps(first=3, count=3)
    """
    count, first = sum(map(len, keys)), find_ends(keys[0])[0]
    return Array(Steps(first, count)) if find_ends(keys[-1])[1] - first == count - 1 else join(keys)


def slim_numbers(numbers: Array) -> Array:
    """Keep a byte of each number if all are 0, 1 or NaN.

    >>> slim_numbers(Array([1.0, 0.0])).held.codes.tolist(), slim_numbers(Array([0.5])).held.tolist()
    ([1, 0], [0.5])
    """
    held = numbers.held
    bits = None if isinstance(held, Lean) or held.dtype != np.float64 or held.ndim != 1 else find_bits(numbers.floats)
    return numbers if bits is None else Array(bits)


def take(array: Array, order: Ints64 | Bools) -> Array:
    """Take the numbers at these positions.

    >>> take(Array([4, 5, 6]), np.array([2, 0]))
    Array([6, 4])
    """
    if isinstance(array.held, Bits):
        return Array(Bits(array.held.codes[order]))
    return frozen(array.data[order])


def join(arrays: Sequence[Array]) -> Array:
    """Join arrays of a kind, without a copy of more than one of them beside what is made.

    >>> join([Array([1.0]), Array([2.0])])
    Array([1., 2.])
    """
    if len(arrays) == 1:
        return arrays[0]
    some = any(isinstance(one.held, Bits) for one in arrays)
    bits = [one.held.codes for one in map(slim_numbers, arrays if some else ()) if isinstance(one.held, Bits)]
    if len(bits) == len(arrays):
        return Array(Bits(np.concatenate(bits)))
    empty = [one.part(0, 0) for one in arrays]
    made = np.empty((sum(map(len, arrays)), *empty[0].shape[1:]), np.result_type(*empty))
    at = 0
    for one in arrays:
        made[at : at + len(one)] = one.data
        at += len(one)
    return frozen(made)
