"""The engines, as a table, and which of them fits work of a size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyrsistent import PMap, pmap

from evalcore.core.records.errors import unknown
from evalcore.shell.engines.interface import SERIAL, Engine, Means, Merge, Work, count_cores


def _spread_over_processes(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    from evalcore.shell.engines.processes import spread_over_processes  # only here: what starts processes takes time

    return spread_over_processes(work, units, merge, means)


def _spread_over_cluster(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    from evalcore.shell.engines.broker import spread_over_cluster

    return spread_over_cluster(work, units, merge, means)


PROCESSES = Engine(title="processes of this machine", spread=_spread_over_processes)
RAY = Engine(title="a Ray cluster", spread=_spread_over_cluster)
ENGINES: PMap[str, Engine] = pmap({"serial": SERIAL, "processes": PROCESSES, "ray": RAY})
"""Every engine by name; a host passes one of its own as ``engine=``."""

BY_SIZE = Engine(title="one process, or several for large logs", spread=SERIAL.spread)
"""The command line's own choice, made once the size of the logs is known."""

WORTH = 384 << 20
"""From this many bytes of logs on, processes are faster than one (measured by ``python -m bench engines``)."""


def find_engine(named: str | Engine | None) -> Engine:
    """Find an engine by name; an engine is itself.

    >>> find_engine("serial").title, find_engine(None).title
    ('one process', 'one process')
    >>> find_engine("spark")
    Traceback (most recent call last):
    evalcore.EvalError: unknown engine 'spark'. Known: processes, ray, serial
    """
    if isinstance(named, Engine):
        return named
    found = ENGINES.get(named or "serial")
    if found is None:
        raise unknown("engine", str(named), ENGINES)
    return found


def choose_engine(size: int) -> Engine:
    """Choose the engine for logs of this many bytes."""
    return PROCESSES if size >= WORTH and count_cores() > 1 else SERIAL
