"""The documents or clusters that are swapped as one, numbered through all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from evalcore.core.compare.moves import Move, Pair
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.stats.influence import sum_clusters

Where = slice | Ints64


def number_units(pairs: Sequence[Pair]) -> tuple[list[Where], int]:
    """Number the signs of each pair's units: those of clusters, which tasks may share, or one for each unit."""
    shared = _find_shared_codes(pairs)
    names = [_name_units(pair, shared) for pair in pairs]
    known = {room: find_distinct(np.concatenate([codes for at, codes in names if at == room])) for room, _ in names}
    rooms = sorted(known)
    ends = list(accumulate((len(known[room]) for room in rooms), initial=0))
    starts = dict(zip(rooms, ends, strict=False))
    return [pack_places(starts[at] + np.searchsorted(known[at], codes)) for at, codes in names], ends[-1]


def _find_shared_codes(pairs: Sequence[Pair]) -> set[int]:
    """Find the clusters that lie in several tasks."""
    tasks: dict[int, set[str]] = {}
    for pair in pairs:
        for code in set(pair.clusters.tolist()) if pair.clusters is not None else ():
            tasks.setdefault(code, set()).add(pair.task)
    return {code for code, found in tasks.items() if len(found) > 1}


def _name_units(pair: Pair, shared: set[int]) -> tuple[str, Ints64]:
    """Name the units of a pair: clusters have one room for all tasks, documents that of their task."""
    if pair.clusters is not None and (not pair.alone or not shared.isdisjoint(pair.clusters.tolist())):
        return "", pair.clusters
    return pair.task, pair.a.spread.keys.ints if pair.a.spread.keys is not None else np.zeros(0, np.int64)


def pack_places(places: Ints64) -> Where:
    """Pack consecutive places into a slice, so that no copy of the signs is made.

    >>> pack_places(np.array([3, 4, 5])), pack_places(np.array([3, 5]))
    (slice(3, 6, None), array([3, 5]))
    """
    first = int(places[0]) if len(places) else 0
    whole = slice(first, first + len(places))
    return whole if np.array_equal(places, np.arange(whole.start, whole.stop)) else places


def find_places(moves: Sequence[Move], at: Mapping[int, int], units: Sequence[Where]) -> Ints64:
    """Find the signs that move a line, unit by unit of its tasks."""
    places = [units[at[id(move.pair)]] for move in moves]
    return np.concatenate([np.arange(one.start, one.stop) if isinstance(one, slice) else one for one in places])


def find_distinct(places: Ints64) -> Ints64:
    """List each place once, in order; those of one task without clusters already are.

    >>> find_distinct(np.array([7, 9, 7])).tolist()
    [7, 9]
    """
    return places if _is_rising(places) else np.unique(places)


def sum_units(values: Floats64, places: Ints64) -> Floats64:
    """Sum values by unit.

    >>> sum_units(np.array([1.0, 2.0, 3.0]), np.array([7, 9, 7])).tolist()
    [4.0, 2.0]
    """
    return values if _is_rising(places) else sum_clusters(values, np.unique(places, return_inverse=True)[1])


def _is_rising(places: Ints64) -> bool:
    return bool(np.all(places[1:] > places[:-1]))
