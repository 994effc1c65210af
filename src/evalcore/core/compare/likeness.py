"""Documents that nobody named, recognised in two runs by fields that a model or a scorer cannot have written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Bools, ColumnRecord, Ints64, frozen

__all__ = ["PROMPT", "Fields", "Likeness", "find_likeness"]

TELLING = 0.5
"""The share of each run's documents whose value no other one has, in a field that may identify documents."""
AGREEING = 0.9
"""The share of the documents with the same identity that must have the same target, or confirm it by another field."""
LEAST = 0.1
"""The share of the smaller run's documents that must be the same at all."""
FEW = 8
ORDER = "their order"
PROMPT = "the prompt"
"""The name of the field that holds what was asked."""


class Fields(ColumnRecord, frozen=True, eq=True):
    """Documents of a run: the place of each one, a code of its target, and one of its value in every other field.

    Equal codes are equal values, in both runs. ``texts`` is how much text a field holds; a number is none.
    """

    places: Sequence[int]
    targets: Sequence[int]
    columns: Mapping[str, Sequence[int]]
    texts: Mapping[str, int]


class Likeness(Struct, frozen=True):
    """The group of each document, in either run: documents of one group are the same as far as can be told.

    ``by`` are the fields that make a group, apart from the target.
    """

    by: tuple[str, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]


class _Pool(ColumnRecord, frozen=True):
    """The documents of both runs, the first run's before the second's, with small codes."""

    first: int
    targets: Ints64
    columns: Mapping[str, Ints64]

    @property
    def smaller(self) -> int:
        """How many documents the smaller run has."""
        return min(self.first, len(self.targets) - self.first)

    def counts(self, ids: Ints64) -> tuple[Ints64, Ints64]:
        size = int(ids.max()) + 1
        return np.bincount(ids[: self.first], minlength=size), np.bincount(ids[self.first :], minlength=size)

    def shared(self, ids: Ints64) -> int:
        """How many documents have a counterpart with the same id, one to one."""
        return int(np.minimum(*self.counts(ids)).sum())

    def tells(self, ids: Ints64) -> bool:
        """Whether most documents of each run are alone with their id."""
        of_a, of_b = self.counts(ids)
        second = len(ids) - self.first
        return bool(min((of_a == 1).sum() / self.first, (of_b == 1).sum() / second) >= TELLING)

    def pairs(self, ids: Ints64) -> tuple[Ints64, Ints64]:
        """The places of documents whose id is unique in both runs, in the order of their ids."""
        of_a, of_b = self.counts(ids)
        lone: Bools = (of_a == 1) & (of_b == 1)
        at_a, at_b = (np.flatnonzero(lone[part]) for part in (ids[: self.first], ids[self.first :]))
        return at_a[np.argsort(ids[at_a])], self.first + at_b[np.argsort(ids[self.first + at_b])]


Identity = tuple[tuple[str, ...], Ints64]
"""Fields, and the ids that they give documents."""


def find_likeness(a: Fields, b: Fields) -> Likeness | None:
    """What makes documents of two runs the same, or None where nothing does.

    What a model or a scorer wrote differs for documents that are the same, and leaves them without a counterpart. So
    the identity is what leaves the most counterparts: a field that tells most documents apart and agrees with their
    targets or, where targets alone leave none without a counterpart and prompts are not known, the target with all
    texts that cost none, or the order of rows. Where no text tells documents apart, it is the target alone. Fields that
    refine the identity and cost no counterpart join it.

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
        _joined(a.targets, b.targets),
        {name: _joined(a.columns[name], b.columns[name]) for name in names},
    )
    telling = {name: ids for name, ids in pool.columns.items() if pool.tells(ids)}
    clear = [name for name in texts if name in telling]
    found: list[Identity] = [
        ((name,), _refined(telling[name], pool.targets))
        for name in (*sorted(clear, key=lambda name: (-sizes[name], name)), *(n for n in numbers if n in telling))
        if _agrees(pool, telling[name]) and (name in clear or _is_confirmed(pool, telling[name], clear, telling))
    ]
    if PROMPT not in clear and pool.shared(pool.targets) == pool.smaller:
        named, ids = _refine_freely(pool, (), pool.targets, texts)
        found += [(named, ids)] if pool.tells(ids) else []
        found += [((ORDER,), places)] if _in_order(pool, places := _joined(a.places, b.places)) else []
    if not found and not clear and a.columns.keys() == b.columns.keys():
        found = [((), pool.targets)]
    if not found:
        return None
    by, ids = max(found, key=lambda one: pool.shared(one[1]))  # of several, the first
    by, ids = _refine_freely(pool, by, ids, (*texts, *numbers))
    return Likeness(by, tuple(ids[: pool.first].tolist()), tuple(ids[pool.first :].tolist()))


def _refine_freely(pool: _Pool, by: tuple[str, ...], ids: Ints64, names: Sequence[str]) -> Identity:
    """The ids, refined by every field that costs no counterpart."""
    for name in names:
        finer = _refined(ids, pool.columns[name])
        if finer.max() > ids.max() and pool.shared(finer) == pool.shared(ids):
            by, ids = (*by, name), finer
    return by, ids


def _agrees(pool: _Pool, ids: Ints64) -> bool:
    """Whether documents of one id have one target, and are more than a few that are the same by chance."""
    same, alike = pool.shared(ids), pool.shared(_refined(ids, pool.targets))
    return alike >= AGREEING * same and alike >= LEAST * pool.smaller


def _is_confirmed(pool: _Pool, ids: Ints64, clear: Sequence[str], telling: Collection[str]) -> bool:
    """Whether another field says that a number, which may just count rows, is the same for the same documents.

    Documents with the same text that tells them apart have the same number; or those of one number have the same
    target or value of a field, more often than by chance. Another number that tells documents apart may just count,
    too.
    """
    for name in clear:
        one, two = pool.pairs(pool.columns[name])
        if len(one) >= LEAST * pool.smaller and (ids[one] == ids[two]).mean() >= AGREEING:
            return True
    one, two = pool.pairs(ids)
    others = (column for name, column in pool.columns.items() if name not in telling)
    return len(one) > 0 and any(_agree_by_no_chance(column[one], column[two]) for column in (pool.targets, *others))


def _in_order(pool: _Pool, places: Ints64) -> bool:
    """Whether all documents have a counterpart in the same place, and the same target as that, which is not all's.

    Targets of a few documents agree by chance.
    """
    parts = (slice(None, pool.first), slice(pool.first, None))
    a, b = (pool.targets[part][np.argsort(places[part])] for part in parts)
    return pool.shared(places) == len(a) == len(b) >= FEW and bool((a == b).all()) and len(np.unique(a)) > 1


def _agree_by_no_chance(a: Ints64, b: Ints64) -> bool:
    """Whether values agree, and by far more than they would by chance (Cohen's kappa is at least a half)."""
    size = int(max(a.max(), b.max())) + 1
    chance = float(np.bincount(a, minlength=size) @ np.bincount(b, minlength=size)) / len(a) ** 2
    agreed = float((a == b).mean())
    return agreed >= AGREEING and chance < 1 and agreed - chance >= (1 - chance) / 2


def _joined(a: Sequence[int], b: Sequence[int]) -> Ints64:
    """Small codes for the same values in both runs."""
    _, ids = np.unique(np.array([*a, *b], dtype=np.int64), return_inverse=True)
    return frozen(np.asarray(ids, dtype=np.int64)).ints


def _refined(ids: Ints64, column: Ints64) -> Ints64:
    """The ids of documents that have the same id and the same value."""
    _, finer = np.unique(ids * (int(column.max()) + 1) + column, return_inverse=True)
    return np.asarray(finer, dtype=np.int64)
