"""Documents without ids, recognised in two runs by fields that no model or scorer can have written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Bools, ColumnRecord, Ints64, frozen

TELLING = 0.5
"""A field may identify documents if this share of each run's documents has a value of its own in it."""
AGREEING = 0.9
"""The share of identical documents whose targets, or whose values in another field, must agree."""
LEAST = 0.1
"""The share of the smaller run's documents that must have a counterpart."""
FEW = 8
ORDER = "their order"
PROMPT = "the prompt"
"""The name of the field that holds the prompt."""


class Fields(ColumnRecord, frozen=True, eq=True):
    """A run's documents: the place of each, a code of its target, and a code of its value in every other field.

    Equal codes are equal values, in both runs. ``texts`` is how much text a field holds; numbers count as none.
    """

    places: Sequence[int]
    targets: Sequence[int]
    columns: Mapping[str, Sequence[int]]
    texts: Mapping[str, int]


class Likeness(Struct, frozen=True):
    """The group of each document in either run; the documents of a group cannot be told apart.

    ``by`` names the fields that make a group, apart from the target.
    """

    by: tuple[str, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]


class _Pool(ColumnRecord, frozen=True):
    """The documents of both runs in small codes, the first run's before the second's."""

    first: int
    targets: Ints64
    columns: Mapping[str, Ints64]

    @property
    def smaller(self) -> int:
        """The number of documents in the smaller run."""
        return min(self.first, len(self.targets) - self.first)

    def count_ids(self, ids: Ints64) -> tuple[Ints64, Ints64]:
        size = int(ids.max()) + 1
        return np.bincount(ids[: self.first], minlength=size), np.bincount(ids[self.first :], minlength=size)

    def count_shared(self, ids: Ints64) -> int:
        """Count the documents that have a counterpart with the same id, one to one."""
        return int(np.minimum(*self.count_ids(ids)).sum())

    def is_telling(self, ids: Ints64) -> bool:
        """Whether most documents of each run have an id of their own."""
        of_a, of_b = self.count_ids(ids)
        second = len(ids) - self.first
        return bool(min((of_a == 1).sum() / self.first, (of_b == 1).sum() / second) >= TELLING)

    def pair_places(self, ids: Ints64) -> tuple[Ints64, Ints64]:
        """The places of documents whose id is unique in both runs, in the order of their ids."""
        of_a, of_b = self.count_ids(ids)
        lone: Bools = (of_a == 1) & (of_b == 1)
        at_a, at_b = (np.flatnonzero(lone[part]) for part in (ids[: self.first], ids[self.first :]))
        return at_a[np.argsort(ids[at_a])], self.first + at_b[np.argsort(ids[self.first + at_b])]


Identity = tuple[tuple[str, ...], Ints64]
"""Fields, and the ids they give to documents."""


def find_likeness(a: Fields, b: Fields) -> Likeness | None:
    """Find what makes documents of two runs the same; None if nothing does.

    What a model or a scorer wrote differs for identical documents and leaves them without a counterpart. So
    the identity is what gives the most counterparts: a field that tells most documents apart and agrees with their
    targets; or, if prompts are unknown and targets alone give every document a counterpart, the target with all
    texts that cost no counterpart, or the order of rows. If no text tells documents apart, it is the target. Fields
    that refine the identity and cost no counterpart join it.

    >>> a = Fields((0, 1, 2), (0, 0, 1), {"question": (5, 6, 7), "verdict": (1, 1, 0)}, {"question": 90})
    >>> b = Fields((0, 1, 2), (0, 0, 1), {"question": (5, 6, 7), "verdict": (1, 0, 0)}, {"question": 90})
    >>> find_likeness(a, b)
    Likeness(by=('question',), a=(0, 1, 2), b=(0, 1, 2))
    """
    if not len(a.targets) or not len(b.targets):
        return None
    names = [name for name in a.columns if name in b.columns]
    sizes = {name: a.texts.get(name, 0) + b.texts.get(name, 0) for name in names}
    texts, numbers = [name for name in names if sizes[name]], [name for name in names if not sizes[name]]
    pool = _Pool(
        len(a.targets),
        _encode_both(a.targets, b.targets),
        {name: _encode_both(a.columns[name], b.columns[name]) for name in names},
    )
    telling = {name: ids for name, ids in pool.columns.items() if pool.is_telling(ids)}
    clear = [name for name in texts if name in telling]
    identities: list[Identity] = [
        ((name,), _refine_ids(telling[name], pool.targets))
        for name in (*sorted(clear, key=lambda name: (-sizes[name], name)), *(n for n in numbers if n in telling))
        if _agrees(pool, telling[name]) and (name in clear or _is_confirmed(pool, telling[name], clear, telling))
    ]
    if PROMPT not in clear and pool.count_shared(pool.targets) == pool.smaller:
        named, ids = _refine_freely(pool, (), pool.targets, texts)
        identities += [(named, ids)] if pool.is_telling(ids) else []
        identities += [((ORDER,), places)] if _is_in_order(pool, places := _encode_both(a.places, b.places)) else []
    if not identities and not clear and a.columns.keys() == b.columns.keys():
        identities = [((), pool.targets)]
    if not identities:
        return None
    by, ids = max(identities, key=lambda identity: pool.count_shared(identity[1]))  # of several, the first
    by, ids = _refine_freely(pool, by, ids, (*texts, *numbers))
    return Likeness(by, tuple(ids[: pool.first].tolist()), tuple(ids[pool.first :].tolist()))


def _refine_freely(pool: _Pool, by: tuple[str, ...], ids: Ints64, names: Sequence[str]) -> Identity:
    """Refine the ids by every field that costs no counterpart."""
    for name in names:
        finer = _refine_ids(ids, pool.columns[name])
        if finer.max() > ids.max() and pool.count_shared(finer) == pool.count_shared(ids):
            by, ids = (*by, name), finer
    return by, ids


def _agrees(pool: _Pool, ids: Ints64) -> bool:
    """Whether documents of one id have one target, and are too many to be the same by chance."""
    same, alike = pool.count_shared(ids), pool.count_shared(_refine_ids(ids, pool.targets))
    return alike >= AGREEING * same and alike >= LEAST * pool.smaller


def _is_confirmed(pool: _Pool, ids: Ints64, clear: Sequence[str], telling: Collection[str]) -> bool:
    """Whether another field confirms that a number, which may just count rows, identifies documents.

    Documents with the same telling text have the same number; or documents with the same number have the same
    target or value of a field, more often than by chance. Other telling numbers do not count: they may count rows,
    too.
    """
    for name in clear:
        first, second = pool.pair_places(pool.columns[name])
        if len(first) >= LEAST * pool.smaller and (ids[first] == ids[second]).mean() >= AGREEING:
            return True
    first, second = pool.pair_places(ids)
    others = (column for name, column in pool.columns.items() if name not in telling)
    return len(first) > 0 and any(
        _agree_beyond_chance(column[first], column[second]) for column in (pool.targets, *others)
    )


def _is_in_order(pool: _Pool, places: Ints64) -> bool:
    """Whether every document has a counterpart in the same place with the same target, and targets differ.

    The targets of a few documents may agree by chance.
    """
    parts = (slice(None, pool.first), slice(pool.first, None))
    a, b = (pool.targets[part][np.argsort(places[part])] for part in parts)
    return pool.count_shared(places) == len(a) == len(b) >= FEW and bool((a == b).all()) and len(np.unique(a)) > 1


def _agree_beyond_chance(a: Ints64, b: Ints64) -> bool:
    """Whether values agree far more than by chance (Cohen's kappa is at least a half)."""
    size = int(max(a.max(), b.max())) + 1
    chance = float(np.bincount(a, minlength=size) @ np.bincount(b, minlength=size)) / len(a) ** 2
    agreed = float((a == b).mean())
    return agreed >= AGREEING and chance < 1 and agreed - chance >= (1 - chance) / 2


def _encode_both(a: Sequence[int], b: Sequence[int]) -> Ints64:
    """Encode the values of both runs by the same small codes."""
    _, ids = np.unique(np.array([*a, *b], dtype=np.int64), return_inverse=True)
    return frozen(np.asarray(ids, dtype=np.int64)).ints


def _refine_ids(ids: Ints64, column: Ints64) -> Ints64:
    """Give an id to each combination of id and value."""
    _, finer = np.unique(ids * (int(column.max()) + 1) + column, return_inverse=True)
    return np.asarray(finer, dtype=np.int64)
