"""Ray: units go to the workers of a cluster, lost ones are done again, results are merged there in a tree."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, nullcontext, suppress
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.engines.interface import Engine, Means, Merge, Work, WorkerLost
from evalcore.shell.engines.processes import count_cores
from evalcore.shell.engines.worker import DONE, do_work, expect_done

Ref = Any
"""A ``ray.ObjectRef``."""

FAN = 16
"""How many results one task of the cluster merges."""

MOST = 256
"""About how many results come back; where there are more units, neighbours are merged in the cluster."""

AHEAD = 4
"""How many tasks a core of the cluster is given at a time: enough to be busy, few enough for a million units."""

RETRIES = 2
"""How often a task is done again whose worker or node was lost."""

HERE = "local"
"""The address of a new cluster on this machine, as Ray calls it."""

QUIET = {"RAY_task_oom_retries": str(RETRIES), "RAY_USAGE_STATS_ENABLED": "0"}
"""What Ray reads from the environment: it would retry for ever what runs out of memory, and report its use."""


def spread_over_cluster(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Spread units over a Ray cluster: the one this process has joined, the one that is named or runs, or a new one."""
    with _environment(QUIET):
        ray = require("ray", "ray")
    with _joined(ray, means) as limit:
        yield from _Tree(ray, work, units, merge, limit).results()


@contextmanager
def _joined(ray: ModuleType, means: Means) -> Iterator[int | None]:
    """Join a cluster for a while, or start one; yield how many tasks it is given at once, if that is limited."""
    if ray.is_initialized():
        yield means.workers
        return
    ray._private.worker._worker_logs_enabled = False  # Ray tells of lost workers on stdout, where results go
    try:
        with _environment(QUIET):
            found = _connect(ray, means)
        yield means.workers if found else None
    finally:
        ray.shutdown()
        ray._private.worker._worker_logs_enabled = True


def _connect(ray: ModuleType, means: Means) -> bool:
    """Join the cluster that is named or was started on this machine; else start one here, which ends with its use."""
    named = means.address or os.environ.get("RAY_ADDRESS")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if named not in (None, HERE):
            _reach(str(named))
            ray.init(address=named, **quiet)
            return True
        with suppress(ValueError):  # which says that one runs, and that its cores cannot be chosen
            ray.init(address=named, num_cpus=means.workers or count_cores(), include_dashboard=False, **quiet)
            return False
        ray.init(**quiet)
        return True
    except Exception as wrong:
        told = f"the Ray cluster at {named!r} could not be joined" if named else "no Ray cluster could be started"
        raise EvalError(f"{told}: {_first_line(wrong)} (is it of the same Ray, behind RAY_AUTH_MODE=token?)") from wrong


def _reach(address: str) -> None:
    """Refuse an address where nobody answers, at which Ray would try for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


class _Task(NamedTuple):
    """A task of the cluster: a unit (level 0) or a merge of neighbours, and its result."""

    level: int
    at: int
    result: Ref


class _Tree:
    """Units and merges of neighbouring results, level by level; those of the highest level are handed out in order."""

    def __init__(self, ray: ModuleType, work: Work, units: Sequence[object], merge: Merge, limit: int | None) -> None:
        remote = ray.remote(num_cpus=1, num_returns=2, max_retries=RETRIES)
        self._ray, self._units, self._limit = ray, units, limit
        self._score, self._merge = remote(_score), remote(_merge)
        self._widths = [len(units)]
        while self._widths[-1] > MOST:
            self._widths.append(-(-self._widths[-1] // FAN))
        self._running: dict[Ref, _Task] = {}
        self._done: dict[tuple[int, int], Ref] = {}
        try:
            packed = ray.cloudpickle.dumps((work, merge))
        except Exception as wrong:
            raise EvalError(f"work for a cluster must be a value that pickle can write: {wrong}") from wrong
        here = os.getcwd()
        paths = [path or here for path in sys.path]
        self._held = [ray.put((packed, paths, here))]  # in a list: each worker gets it once, not with every task

    def results(self) -> Iterator[bytes]:
        top, waiting = len(self._widths) - 1, iter(range(len(self._units)))
        try:
            for at in range(self._widths[top]):
                while (top, at) not in self._done:
                    self._submit(waiting)
                    self._collect()
                yield self._get(self._done.pop((top, at)), f"{at + 1} of {self._widths[top]}")
        finally:
            with suppress(Exception):  # a cluster that is gone has nothing to cancel
                for one in self._running:
                    self._ray.cancel(one, force=True)

    def _submit(self, waiting: Iterator[int]) -> None:
        """Submit units, as many as the cluster is given at a time; it may have grown."""
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        for _ in range(len(self._running), self._limit or AHEAD * max(1, cores)):
            if (at := next(waiting, None)) is None:
                return
            self._start(0, at, self._score.remote(self._held, self._units[at]))

    def _start(self, level: int, at: int, returned: Sequence[Ref]) -> None:
        self._running[returned[0]] = _Task(level, at, returned[1])

    def _collect(self) -> None:
        """Wait until some tasks are done; merge what is complete."""
        some = max(1, len(self._running) // AHEAD)
        for told in self._ray.wait([*self._running], num_returns=some, fetch_local=False)[0]:
            level, at, result = self._running.pop(told)
            kind, text = self._get(told, f"{at + 1} of {self._widths[level]}")
            expect_done(kind, text, "a worker of the cluster, which must reach the same files")
            self._enter(level, at, result)

    def _enter(self, level: int, at: int, result: Ref) -> None:
        self._done[level, at] = result
        if level == len(self._widths) - 1:
            return
        first = at - at % FAN
        group = [(level, one) for one in range(first, min(first + FAN, self._widths[level]))]
        if all(one in self._done for one in group):
            merged = self._merge.remote(self._held, *[self._done.pop(one) for one in group])
            self._start(level + 1, at // FAN, merged)

    def _get(self, one: Ref, where: str) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(one)
        except errors.RayTaskError as wrong:  # what a task raises is a result; this is one that could not begin
            told = "evalcore and its packages must be on every node of the cluster"
            raise EvalError(f"{told}: {_last_line(wrong)}") from wrong
        except errors.RayError as wrong:
            told = f"workers of the cluster were lost over unit of work {where}, {RETRIES + 1} times"
            raise WorkerLost(f"{told}: {_first_line(wrong)}; partials that are kept (--partials) stay") from wrong


def _score(held: list[Ref], unit: object) -> tuple[tuple[int, bytes], bytes]:
    """What a worker does with a unit: it says how that went, and leaves the result in the cluster."""
    work, _, folder = _open(held[0])
    return _tell(work, unit, folder)


def _merge(held: list[Ref], *results: bytes) -> tuple[tuple[int, bytes], bytes]:
    """What a worker does with the results of neighbours."""
    _, merge, folder = _open(held[0])
    return _tell(merge, results, folder)


def _tell(work: Any, given: object, folder: str) -> tuple[tuple[int, bytes], bytes]:
    with chdir(folder) if os.path.isdir(folder) else nullcontext():
        kind, data = do_work(work, given)
    return ((kind, b""), data) if kind == DONE else ((kind, data), b"")


@lru_cache(maxsize=1)
def _open(held: Ref) -> tuple[Work, Merge, str]:
    """The work, the merge and the folder in which it was asked for; unpacked once by each worker."""
    ray = require("ray", "ray")
    packed, paths, folder = ray.get(held)
    sys.path += [path for path in paths if path not in sys.path]
    work, merge = ray.cloudpickle.loads(packed)
    return work, merge, folder


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment that are not set, for a while."""
    added = {key: value for key, value in values.items() if key not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for key in added:
            os.environ.pop(key, None)


def _first_line(wrong: Exception) -> str:
    return (str(wrong).strip().splitlines() or [""])[0][:300]


def _last_line(wrong: Exception) -> str:
    return (str(wrong).strip().splitlines() or [""])[-1][:300]


RAY = Engine(title="a Ray cluster", spread=spread_over_cluster)
