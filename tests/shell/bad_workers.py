"""Work for an engine whose workers die, linger or leave notes; importable, so that workers of a cluster find it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from time import monotonic, sleep

from msgspec import Struct

from evalcore.shell.score.units.unit_score import UnitWork


def note(folder: Path, text: str) -> int:
    """Leave a note that a unit was begun; return how many there are of it, this one included."""
    name = text.replace("/", "-")
    count = 0
    while True:
        try:
            os.close(os.open(folder / f"{name}.{count}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            count += 1
            continue
        return count + 1


class Fatal(Struct, frozen=True):
    """Other work, during which the worker is killed over one unit as many times as wanted."""

    work: UnitWork
    notes: Path
    start: int
    times: int

    def __call__(self, item: object) -> bytes:
        span = item.spans[0]  # type: ignore[attr-defined]
        begun = note(self.notes, f"{span.source}.{span.start}")
        if span.start == self.start and begun <= self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(item)


class Slow(Struct, frozen=True):
    """Other work, which leaves a note for each unit and takes its time."""

    work: UnitWork
    notes: Path
    seconds: float

    def __call__(self, item: object) -> bytes:
        note(self.notes, str(item.spans[0].start))  # type: ignore[attr-defined]
        sleep(self.seconds)
        return self.work(item)


class Repeat(Struct, frozen=True):
    """Make a large result of a number, too large to travel with the message that says it is done."""

    notes: Path
    size: int = 300_000

    def __call__(self, unit: object) -> bytes:
        note(self.notes, str(unit))
        sleep(0.05)
        return bytes([unit % 256]) * self.size  # type: ignore[operator]


class Tell(Struct, frozen=True):
    """Note which process does a unit, and go on once two processes have begun."""

    notes: Path

    def __call__(self, unit: object) -> bytes:
        note(self.notes, str(os.getpid()))
        until = monotonic() + 60
        while len({path.stem for path in self.notes.iterdir()}) < 2 and monotonic() < until:
            sleep(0.02)
        return b"%d " % unit  # type: ignore[operator]


def join(results: object) -> bytes:
    """Merge results into their order."""
    return b"".join(results)  # type: ignore[arg-type]


class Wrong(Struct, frozen=True):
    """Work that fails at one unit, by an error that nobody expects."""

    def __call__(self, unit: object) -> bytes:
        return b"%d" % (1 // (unit - 3))  # type: ignore[operator]
