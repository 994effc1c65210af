"""The guard of scoring: a chunk, and then each of its documents, within a number of seconds."""

from __future__ import annotations

from collections.abc import Callable

from evalcore.core.answers.chunk import Chunk
from evalcore.core.guard import Step, Stopped
from evalcore.core.records.score import Scored
from evalcore.shell.safety.timer import TimeUp, get_budget, reaches_timer, run_within, tell_budget

IN_A_ROW = 5
"""After so many documents in a row that were stopped, a pipeline is stuck, and the rest is not tried."""

WHOLE = 60
"""A filter that looks at all documents at once has the time of as many of them, at most."""


class Deadline:
    """Stops what takes longer than ``seconds`` (0: nothing), and counts what it stopped.

    Once a chunk of a pipeline was stopped, others of it go document by document at once.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = get_budget() if seconds is None else seconds
        self.stopped = 0
        self._in_a_row: dict[tuple[str, str], int] = {}

    def __call__(self, step: Step, chunk: Chunk) -> Scored | Stopped:
        if not self.seconds:
            return step(chunk)
        name = chunk.bound.task.name, chunk.bound.pipeline.name
        row, whole = self._in_a_row.get(name), chunk.bound.whole
        many = len(chunk.docs) > 1 and not whole
        if row is not None and (many or row >= IN_A_ROW):
            self.stopped += not many
            return Stopped(f"not tried: the {IN_A_ROW} documents before each {tell_budget(self.seconds)}")
        try:
            made = call_within(self.seconds * min(len(chunk.docs), WHOLE) if whole else self.seconds, step, chunk)
        except TimeUp:
            self._in_a_row[name] = (row or 0) + (not many)
            self.stopped += not many
            return Stopped(tell_budget(self.seconds))
        if row:
            self._in_a_row[name] = 0
        return made

    def __reduce__(self) -> tuple[Callable[[float], Deadline], tuple[float]]:
        """A copy elsewhere begins anew."""
        return Deadline, (self.seconds,)


def call_within(seconds: float, step: Step, chunk: Chunk) -> Scored:
    """Call a step; raise ``TimeUp`` if it takes longer."""
    if reaches_timer():
        return run_within(seconds, step, chunk)
    return step(chunk)
