"""The guard of scoring: a chunk, and then each of its documents, within a number of seconds."""

from __future__ import annotations

import os
import pickle
import select
from collections.abc import Callable
from contextlib import suppress
from subprocess import Popen
from typing import IO, cast
from weakref import finalize

from evalcore.core.answers.chunk import Chunk
from evalcore.core.guard import Step, StepLoss
from evalcore.core.records.errors import EntryError
from evalcore.core.records.score import Scored
from evalcore.shell.engines.processes import end_worker, start_process
from evalcore.shell.engines.worker import DONE, expect_done, read_frame, write_frame
from evalcore.shell.safety.timer import TimeUp, get_budget, reaches_timer, run_within, tell_budget

IN_A_ROW = 5
"""After so many documents in a row that were stopped, a pipeline is stuck, and the rest is not tried."""

WHOLE = 60
"""A filter that looks at all documents at once has the time of as many of them, at most."""


GRACE = 60.0
"""Seconds beyond its time after which a worker is killed: it starts in them, and code of C may hear no timer."""


class Deadline:
    """Stops what takes longer than ``seconds`` (0: nothing), and counts what it stopped.

    Once a chunk of a pipeline was stopped, others of it go document by document at once.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = get_budget() if seconds is None else seconds
        self.stopped = 0
        self._in_a_row: dict[tuple[str, str], int] = {}
        self._worker = StepWorker()

    def __call__(self, step: Step, chunk: Chunk) -> Scored | StepLoss:
        if not self.seconds:
            return step(chunk)
        name = chunk.bound.task.name, chunk.bound.pipeline.name
        row, whole = self._in_a_row.get(name), chunk.bound.whole
        many = len(chunk.docs) > 1 and not whole
        if row is not None and (many or row >= IN_A_ROW):
            self.stopped += not many
            return StepLoss(f"not tried: the {IN_A_ROW} documents before each {tell_budget(self.seconds)}")
        try:
            made = self._run(self.seconds * min(len(chunk.docs), WHOLE) if whole else self.seconds, step, chunk)
        except TimeUp:
            self._in_a_row[name] = (row or 0) + (not many)
            self.stopped += not many
            return StepLoss(tell_budget(self.seconds))
        if row:
            self._in_a_row[name] = 0
        return made

    def _run(self, seconds: float, step: Step, chunk: Chunk) -> Scored:
        """Run a step by a timer or, in a thread, in a worker; here where it cannot be sent to one."""
        if reaches_timer():
            return run_within(seconds, step, chunk)
        if not hasattr(select, "poll"):  # Windows
            return step(chunk)
        try:
            message = pickle.dumps(pickle.dumps((seconds, step, chunk)))
        except Exception:  # a lambda, say
            return step(chunk)
        made = self._worker.run(message, seconds)
        return step(chunk) if made is None else made

    def __reduce__(self) -> tuple[Callable[[float], Deadline], tuple[float]]:
        """A copy elsewhere begins anew."""
        return Deadline, (self.seconds,)


def run_step(packed: bytes) -> bytes:
    """What the worker does: a packed step within its time, or nothing if that is of functions only the sender has.

    What an entry raised comes back, and None if time was up.
    """
    try:
        given = pickle.loads(packed)
    except Exception:  # of a script, say: here another module is called __main__
        return NOT_SENT
    made: Scored | EntryError | None = None
    try:
        made = run_within(*given)
    except EntryError as wrong:
        made = wrong
    except TimeUp:
        pass
    return pickle.dumps(made)


NOT_SENT = b""


class StepWorker:
    """A process that runs steps for a thread, which hears no signals. It is killed if it does not end them in time.

    Threads that share it have a process each.
    """

    def __init__(self) -> None:
        self._free: list[Popen[bytes]] = []

    def run(self, message: bytes, seconds: float) -> Scored | None:
        """Run a packed step there; None if it cannot be sent."""
        process = self._take()
        out, watch = cast("IO[bytes]", process.stdout), select.poll()
        watch.register(out, select.POLLIN)
        try:
            write_frame(cast("IO[bytes]", process.stdin), DONE, message)
            if not watch.poll(1000 * (seconds + GRACE)):
                raise TimeUp
            data = expect_done(*read_frame(out), "the worker of a thread")
        except BaseException as wrong:
            end_worker(process)
            if isinstance(wrong, EOFError | OSError):
                raise EntryError("the process that scored it ended") from wrong
            raise
        self._free.append(process)
        made = None if data == NOT_SENT else pickle.loads(data)
        if isinstance(made, Scored) or data == NOT_SENT:
            return made
        raise TimeUp if made is None else made

    def _take(self) -> Popen[bytes]:
        try:
            return self._free.pop()
        except IndexError:
            # A metric that asks a judge has the same key there as it has here.
            process = start_process("evalcore.shell.engines.worker", os.environ)
            finalize(self, end_worker, process)
            with suppress(OSError):  # which the first step finds out as well
                write_frame(cast("IO[bytes]", process.stdin), DONE, pickle.dumps(run_step))
            return process
