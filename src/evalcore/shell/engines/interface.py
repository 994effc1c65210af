"""What an engine is: a map over units of work whose results may be merged on the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from evalcore.core.records.errors import EvalError

Work = Callable[[object], bytes]
Merge = Callable[[Sequence[bytes]], bytes]
MapUnits = Callable[[Work, Sequence[object]], Iterable[bytes]]
"""A function that maps over units as ``map`` does, such as that of an executor."""


class Means(Struct, frozen=True, kw_only=True):
    """What an engine may use: how many workers (None: all cores), the address of its cluster, about how many bytes
    each unit of work has (None: as logs are cut by default), and whether this process may do units, too.
    """

    workers: int | None = None
    address: str | None = None
    unit: int | None = None
    here: bool = False


class SpreadWork(Protocol):
    def __call__(self, work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]: ...


class Engine(Struct, frozen=True, kw_only=True):
    """A way to spread work: ``spread`` yields results in the order of their units, neighbours merged if it likes."""

    title: str
    spread: SpreadWork


class WorkerLost(EvalError):
    """A worker ended before its work was done."""


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread_here(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Do the work here, unit by unit.

    >>> list(spread_here(lambda unit: bytes([unit]), [1, 2], b"".join, Means()))
    [b'\\x01', b'\\x02']
    """
    return map(work, units)


def spread_by(map_units: MapUnits) -> Engine:
    """Make an engine of a function that maps as ``map`` does.

    >>> list(spread_by(map).spread(lambda unit: bytes([unit]), [1, 2], b"".join, Means()))
    [b'\\x01', b'\\x02']
    """

    def spread(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
        return iter(map_units(work, units))

    return Engine(title="a map of the caller's own", spread=spread)


SERIAL = Engine(title="one process", spread=spread_here)
