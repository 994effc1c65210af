"""The guard of scoring: a chunk, and then each of its documents, within a number of seconds."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from select import POLLIN, poll
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
        try:
            message = pickle.dumps((seconds, step, chunk))
        except Exception:  # functions that no other process can import
            return step(chunk)
        return self._worker.run(message, seconds)

    def __reduce__(self) -> tuple[Callable[[float], Deadline], tuple[float]]:
        """A copy elsewhere begins anew."""
        return Deadline, (self.seconds,)


def run_step(given: tuple[float, Step, Chunk]) -> bytes:
    """What the worker does: the step within its time. What an entry raised comes back, and None if time was up."""
    made: Scored | EntryError | None = None
    try:
        made = run_within(*given)
    except EntryError as wrong:
        made = wrong
    except TimeUp:
        pass
    return pickle.dumps(made)


class StepWorker:
    """A process that runs steps for a thread, which hears no signals. It is killed if it does not end them in time."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None

    def run(self, message: bytes, seconds: float) -> Scored:
        """Run a packed step there."""
        if self._process is None:
            self._process = start_process("evalcore.shell.engines.worker")
            finalize(self, end_worker, self._process)
            write_frame(cast("IO[bytes]", self._process.stdin), DONE, pickle.dumps(run_step))
        process, self._process = self._process, None
        out, watch = cast("IO[bytes]", process.stdout), poll()
        watch.register(out, POLLIN)
        try:
            write_frame(cast("IO[bytes]", process.stdin), DONE, message)
            if not watch.poll(1000 * (seconds + GRACE)):
                raise TimeUp
            made = pickle.loads(expect_done(*read_frame(out), "the worker of a thread"))
        except (EOFError, OSError) as wrong:
            raise EntryError("the process that scored it ended") from wrong
        finally:
            if sys.exc_info()[0] is not None:
                end_worker(process)
        self._process = process
        if isinstance(made, Scored):
            return made
        raise TimeUp if made is None else made
