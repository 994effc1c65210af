"""Worker processes on this machine: each takes the next unit, as does this process where it may.

The unit of a lost worker is done once more.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import IO, cast

from evalcore.core.records.errors import EvalError
from evalcore.core.secret_names import drop_secrets
from evalcore.shell.engines.interface import Means, Merge, Work, WorkerLost, count_cores
from evalcore.shell.engines.unit_queue import UnitQueue
from evalcore.shell.engines.worker import DONE, expect_done, read_frame, write_frame

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
KEPT = ("AWS_", "AZURE_", "GOOGLE_", "HF_", "HUGGING_FACE_", "FSSPEC_", "RAY_")
"""Secrets that a worker may need, to read logs and data: those of stores, the hub and Ray. No worker asks a model."""
LIVES = 2
"""How many workers may be lost over one unit before it is given up."""


def spread_over_processes(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """Spread units over new processes, which start afresh: nothing of this process is copied but the work itself.

    Where this process may do units, it is one of the workers, and the first that is ready.
    """
    try:
        packed, each = pickle.dumps(work), [pickle.dumps(unit) for unit in units]
    except Exception as wrong:
        told = "work for other processes must be importable there (functions of modules, no lambdas)"
        raise EvalError(f"{told}: {wrong}; use the serial engine for it") from wrong
    queue, count = UnitQueue(units), min(means.workers or count_cores(), len(units))
    pool = _Pool(packed, each, queue)
    try:
        pool.start(count - means.here)
        yield from queue.results(work if means.here else None)
    finally:
        pool.stop()


class _Pool:
    """Threads that each feed one worker process."""

    def __init__(self, work: bytes, units: Sequence[bytes], queue: UnitQueue) -> None:
        self._work, self._units, self._queue = work, units, queue
        self._workers: set[subprocess.Popen[bytes]] = set()
        self._lock, self._stopped = Lock(), False

    def start(self, count: int) -> None:
        """Start so many workers."""
        for _ in range(count):
            Thread(target=self._feed, daemon=True).start()

    def stop(self) -> None:
        """End the workers, whatever they do."""
        self._queue.stop()
        with self._lock:
            self._stopped = True
            workers = list(self._workers)
        for one in workers:
            end_worker(one)

    def _feed(self) -> None:
        worker = None
        while (at := self._queue.take()) is not None:
            try:
                found, worker = self._ask(at, worker)
            except EvalError as wrong:
                self._queue.put(at, wrong)
                break
            except Exception as wrong:  # a thread that dies silently would leave its reader waiting for ever
                self._queue.put(at, EvalError(f"a worker process could not be used: {wrong}"))
                break
            self._queue.put(at, found)
        if worker is not None:
            end_worker(worker)

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
        worker = start_process("evalcore.shell.engines.worker")
        with self._lock:
            stopped = self._stopped
            self._workers.add(worker)
        if stopped:
            end_worker(worker)
        with suppress(OSError):  # which the first unit finds out as well
            write_frame(cast("IO[bytes]", worker.stdin), DONE, self._work)
        return worker


def start_process(module: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a module as a process that finds the modules of this one, with a pipe to it and one from it.

    ``environ`` is what it finds in the environment, by default what this process has there that is no secret.
    """
    given = drop_secrets(os.environ, KEPT) if environ is None else environ
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    environment = {**dict.fromkeys(ONE_THREAD, "1"), **given, "PYTHONPATH": paths}
    command = [sys.executable, "-m", module]
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
