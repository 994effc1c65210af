"""The tasks of a Ray cluster: what it is asked to do, and what its workers do; lost ones are done again."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable, Sequence
from contextlib import chdir, nullcontext, suppress
from functools import lru_cache
from types import ModuleType
from typing import Any

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.engines.cluster import RETRIES, first_line
from evalcore.shell.engines.interface import Merge, Work, WorkerLost
from evalcore.shell.engines.worker import DONE, do_work

Ref = Any
"""A ``ray.ObjectRef``."""

WORKER = "a worker of the cluster, which must reach the same files"


class Tasks:
    """The tasks of a cluster for one piece of work, which is packed together with the merge of its results."""

    def __init__(self, ray: ModuleType, packed: bytes) -> None:
        remote = ray.remote(num_cpus=1, num_returns=2, max_retries=RETRIES)
        self._ray, self._score, self._merge = ray, remote(_score), remote(_merge)
        here = os.getcwd()
        paths = [path or here for path in sys.path]
        self._held = [ray.put((packed, paths, here))]  # in a list: each worker gets it once, not with every task

    def score(self, unit: bytes) -> Sequence[Ref]:
        """Submit a packed unit; return what will tell how it went, and its result."""
        returned: Sequence[Ref] = self._score.remote(self._held, unit)
        return returned

    def merge(self, results: Sequence[Ref]) -> Sequence[Ref]:
        """Submit the merge of some results."""
        returned: Sequence[Ref] = self._merge.remote(self._held, *results)
        return returned

    def count_cores(self) -> int:
        """Count the cores of the cluster, which may grow."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def wait(self, running: Sequence[Ref], count: int) -> Sequence[Ref]:
        """Wait until so many tasks are done."""
        done: Sequence[Ref] = self._ray.wait(running, num_returns=count, fetch_local=False)[0]
        return done

    def cancel(self, running: Iterable[Ref]) -> None:
        with suppress(Exception):  # a cluster that is gone has nothing to cancel
            for one in running:
                self._ray.cancel(one, force=True)

    def get(self, one: Ref, where: str) -> Any:
        """Get what a task returned; ``where`` says which one it was."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(one)
        except errors.RayTaskError as wrong:  # what a task raises is a result; this is one that could not begin
            told = "evalcore and its packages must be on every node of the cluster"
            raise EvalError(f"{told}: {_last_line(wrong)}") from wrong
        except errors.RayError as wrong:
            told = f"workers of the cluster were lost over unit of work {where}, {RETRIES + 1} times"
            raise WorkerLost(f"{told}: {first_line(wrong)}; partials that are kept (--partials) stay") from wrong


def _score(held: list[Ref], unit: bytes) -> tuple[tuple[int, bytes], bytes]:
    """What a worker does with a unit: it says how that went, and leaves the result in the cluster."""
    work, _, folder = _open(held[0])
    return _tell(work, pickle.loads(unit), folder)


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


def _last_line(wrong: Exception) -> str:
    return (str(wrong).strip().splitlines() or [""])[-1][:300]
