"""Worker processes on this machine: each takes the next unit; the unit of a lost worker is done once more."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, cast

from evalcore.core.records.errors import EvalError
from evalcore.shell.engines.interface import Engine, Means, Merge, Work, WorkerLost
from evalcore.shell.engines.worker import DONE, expect_done, read_frame, write_frame

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
LIVES = 2
"""How many workers may be lost over one unit before it is given up."""


def spread_over_processes(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Spread units over new processes, which start afresh: nothing of this process is copied but the work itself."""
    try:
        packed, each = pickle.dumps(work), [pickle.dumps(unit) for unit in units]
    except Exception as wrong:
        told = "work for other processes must be importable there (functions of modules, no lambdas)"
        raise EvalError(f"{told}: {wrong}; use the serial engine for it") from wrong
    pool = _Pool(packed, each, min(means.workers or count_cores(), len(units)))
    try:
        yield from pool.results()
    finally:
        pool.stop()


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Pool:
    """Threads that each feed one worker process; results are handed out in the order of the units."""

    def __init__(self, work: bytes, units: Sequence[bytes], count: int) -> None:
        self._work, self._units, self._count = work, units, count
        self._next, self._lock = iter(range(len(units))), Lock()
        self._done: SimpleQueue[tuple[int, bytes | EvalError]] = SimpleQueue()
        self._workers: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def results(self) -> Iterator[bytes]:
        for _ in range(self._count):
            Thread(target=self._feed, daemon=True).start()
        waiting: dict[int, bytes] = {}
        for wanted in range(len(self._units)):
            while wanted not in waiting:
                at, found = self._done.get()
                if isinstance(found, EvalError):
                    raise found
                waiting[at] = found
            yield waiting.pop(wanted)

    def stop(self) -> None:
        """End the workers, whatever they do."""
        with self._lock:
            self._stopped = True
            workers = list(self._workers)
        for one in workers:
            end_worker(one)

    def _feed(self) -> None:
        worker = None
        while (at := self._take()) is not None:
            try:
                found, worker = self._ask(at, worker)
            except EvalError as wrong:
                self._done.put((at, wrong))
                break
            except Exception as wrong:  # a thread that dies silently would leave its reader waiting for ever
                self._done.put((at, EvalError(f"a worker process could not be used: {wrong}")))
                break
            self._done.put((at, found))
        if worker is not None:
            end_worker(worker)

    def _take(self) -> int | None:
        with self._lock:
            return None if self._stopped else next(self._next, None)

    def _ask(self, at: int, worker: subprocess.Popen[bytes] | None) -> tuple[bytes, subprocess.Popen[bytes]]:
        code: int | None = None
        for _ in range(LIVES):
            worker = worker if worker is not None else self._start()
            try:
                write_frame(cast("IO[bytes]", worker.stdin), DONE, self._units[at])
                kind, data = read_frame(cast("IO[bytes]", worker.stdout))
            except (EOFError, OSError, ValueError):
                code = end_worker(worker)
                worker = None
                continue
            if kind != DONE:
                end_worker(worker)
            return expect_done(kind, data, "a worker process"), worker
        why = "killed, perhaps for lack of memory" if code is not None and code < 0 else f"exit code {code}"
        raise WorkerLost(f"{LIVES} worker processes were lost over one unit of work ({why}); use fewer (--workers)")

    def _start(self) -> subprocess.Popen[bytes]:
        worker = start_worker()
        with self._lock:
            stopped = self._stopped
            self._workers.add(worker)
        if stopped:
            end_worker(worker)
        with suppress(OSError):  # which the first unit finds out as well
            write_frame(cast("IO[bytes]", worker.stdin), DONE, self._work)
        return worker


def start_worker() -> subprocess.Popen[bytes]:
    """Start a worker, which waits for the work that it is to do."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    environment = {**dict.fromkeys(ONE_THREAD, "1"), **os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "evalcore.shell.engines.worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def end_worker(worker: subprocess.Popen[bytes]) -> int:
    """End a worker and return its exit code; one that is gone keeps its own."""
    with suppress(OSError):
        worker.kill() if worker.poll() is None else None
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError, ValueError):
            if pipe is not None:
                pipe.close()
    return worker.wait()


PROCESSES = Engine(title="processes of this machine", spread=spread_over_processes)
