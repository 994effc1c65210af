"""Replies of many documents in one flat batch, and the record of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from evalcore.core.records.array import ColumnRecord, Ints64
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.request import Sample

FELL_BACK = -1
Scope = Literal["document", "task"]
Leaves = Literal["all", "first", "one", "any"]
"""Which replies to a document a filter leaves: all or some of them, the first as it is, one made of all, or any of
these, as its code decides.
"""


class Replies(ColumnRecord, frozen=True, eq=False):
    """Replies of many units, flat: unit ``i`` holds ``values[offsets[i]:offsets[i + 1]]``.

    A unit is a document (generation) or one of its choices (likelihood). ``rules`` says for each value which
    extraction rule fired; -1 means none did and the value is a fallback.
    """

    values: Sequence[object]
    offsets: Ints64
    rules: NDArray[np.int8]

    @property
    def counts(self) -> Ints64:
        return self.offsets[1:] - self.offsets[:-1]


FilterFn = Callable[[Replies, Sequence[Sample]], Replies]


class Fired(FrozenRecord, frozen=True):
    """One step on the replies of one unit: its options, and values and rules before and after."""

    options: Mapping[str, object]
    before: tuple[object, ...]
    given: tuple[int, ...]
    after: tuple[object, ...]
    rules: tuple[int, ...]


Explain = Callable[[Fired], tuple[str, ...]]
"""A note for every value that a step leaves: which rule fired."""


Span = tuple[int, int, int]
"""A part of a reply: the reply's place among those before a step, and where the part begins and ends."""
Locate = Callable[[Fired], tuple[Span | None, ...]]
"""Where every value that a step leaves was found, None where that is nowhere."""


def _say_nothing(fired: Fired) -> tuple[str, ...]:
    return ("",) * len(fired.after)


def _locate_nothing(fired: Fired) -> tuple[Span | None, ...]:
    return (None,) * len(fired.after)


class Filter(Struct, frozen=True):
    """A filter: how to make it from its options, and what the pipe needs to know about it.

    ``scope`` says whether it looks at one document or at the whole task, ``leaves`` which replies are left, ``texts``
    whether it takes texts alone or replies of any kind. ``explain`` says in words what a step did, ``locate`` where in
    the replies it found what it left.
    """

    make: Callable[..., FilterFn]
    scope: Scope = "document"
    leaves: Leaves = "all"
    texts: bool = True
    explain: Explain = _say_nothing
    locate: Locate = _locate_nothing


def replies(units: Iterable[Sequence[object]]) -> Replies:
    """Build replies from a nested list.

    >>> replies([["a"], ["b", "c"]]).offsets.tolist()
    [0, 1, 3]
    """
    nested = [list(unit) for unit in units]
    offsets = np.cumsum([0, *map(len, nested)])
    return Replies([value for unit in nested for value in unit], offsets, np.zeros(int(offsets[-1]), np.int8))


def nested(given: Replies) -> list[list[object]]:
    """Turn replies back into a nested list."""
    return [list(given.values[a:b]) for a, b in pairwise(given.offsets.tolist())]


def each_text(function: Callable[[str], str]) -> FilterFn:
    """Lift a text function to replies; anything else passes through."""

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        values = [function(value) if isinstance(value, str) else value for value in given.values]
        return Replies(values, given.offsets, given.rules)

    return apply


def apply_matches(given: Replies, matches: Sequence[object | None], fallback: object) -> Replies:
    rules = np.array([FELL_BACK if match is None else 0 for match in matches], np.int8)
    values = [fallback if match is None else match for match in matches]
    return Replies(values, given.offsets, np.minimum(rules, np.minimum(given.rules, 0)))


def keep_fallbacks(given: Replies, rules: Sequence[int]) -> NDArray[np.int8]:
    return np.where(given.rules == FELL_BACK, FELL_BACK, np.array(rules, np.int8)).astype(np.int8)
