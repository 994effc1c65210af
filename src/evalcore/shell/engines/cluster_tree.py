"""Units spread over a Ray cluster: results of neighbours are merged there, level by level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evalcore.core.records.errors import EvalError
from evalcore.shell.engines.cluster import import_ray, join_cluster
from evalcore.shell.engines.cluster_tasks import WORKER, Ref, Tasks
from evalcore.shell.engines.interface import Means, Merge, Work
from evalcore.shell.engines.worker import expect_done

FAN = 16
"""How many results one task of the cluster merges."""

MOST = 256
"""About how many results come back; where there are more units, neighbours are merged in the cluster."""

AHEAD = 4
"""How many tasks a core of the cluster is given at a time: enough to be busy, few enough for a million units."""


def spread_in_cluster(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Spread units over a Ray cluster that this process has joined, or joins now."""
    ray = import_ray()
    with join_cluster(ray, means) as joined:
        try:
            packed = ray.cloudpickle.dumps((work, merge))
            each = [ray.cloudpickle.dumps(unit) for unit in units]
        except Exception as wrong:
            raise EvalError(f"work for a cluster must be a value that pickle can write: {wrong}") from wrong
        yield from _Tree(Tasks(ray, packed), each, joined.limit).results()


class _Task(NamedTuple):
    """A task of the cluster: a unit (level 0) or a merge of neighbours, and its result."""

    level: int
    at: int
    result: Ref


class _Tree:
    """Units and merges of neighbouring results, level by level; those of the highest level are handed out in order."""

    def __init__(self, tasks: Tasks, units: Sequence[bytes], limit: int | None) -> None:
        self._tasks, self._units, self._limit = tasks, units, limit
        self._widths = [len(units)]
        while self._widths[-1] > MOST:
            self._widths.append(-(-self._widths[-1] // FAN))
        self._running: dict[Ref, _Task] = {}
        self._done: dict[tuple[int, int], Ref] = {}

    def results(self) -> Iterator[bytes]:
        top, waiting = len(self._widths) - 1, iter(range(len(self._units)))
        try:
            for at in range(self._widths[top]):
                while (top, at) not in self._done:
                    self._submit(waiting)
                    self._collect()
                yield self._tasks.get(self._done.pop((top, at)), f"{at + 1} of {self._widths[top]}")
        finally:
            self._tasks.cancel(self._running)

    def _submit(self, waiting: Iterator[int]) -> None:
        """Submit units, as many as the cluster is given at a time; it may have grown."""
        for _ in range(len(self._running), self._limit or AHEAD * self._tasks.count_cores()):
            if (at := next(waiting, None)) is None:
                return
            self._start(0, at, self._tasks.score(self._units[at]))

    def _start(self, level: int, at: int, returned: Sequence[Ref]) -> None:
        self._running[returned[0]] = _Task(level, at, returned[1])

    def _collect(self) -> None:
        """Wait until some tasks are done; merge what is complete."""
        some = max(1, len(self._running) // AHEAD)
        for told in self._tasks.wait([*self._running], some):
            level, at, result = self._running.pop(told)
            kind, text = self._tasks.get(told, f"{at + 1} of {self._widths[level]}")
            expect_done(kind, text, WORKER)
            self._enter(level, at, result)

    def _enter(self, level: int, at: int, result: Ref) -> None:
        self._done[level, at] = result
        if level == len(self._widths) - 1:
            return
        first = at - at % FAN
        group = [(level, one) for one in range(first, min(first + FAN, self._widths[level]))]
        if all(one in self._done for one in group):
            merged = self._tasks.merge([self._done.pop(one) for one in group])
            self._start(level + 1, at // FAN, merged)
