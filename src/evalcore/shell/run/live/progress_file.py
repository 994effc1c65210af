"""How far a run is, in its folder for whoever looks on: a small file that is gone once the run has ended well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.output.terminal.progress import EstimateSoFar, Estimator, Progress, Stage, advance_stage
from evalcore.shell.safety.credentials import hide_credentials

NAME = ".progress.json"
LARGEST = 1 << 20

Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
"""So many that a browser's numbers hold it."""


class RunProgress(Struct, frozen=True):
    """How much of a stage's work is done, why some of it failed, and lines about the numbers so far."""

    stage: str = ""
    total: Count = 0
    done: Count = 0
    failed: tuple[tuple[str, Count], ...] = ()
    lines: tuple[str, ...] = ()


class FiledProgress:
    """Passes progress on, and writes it into a file. Numbers so far that another shows are not made twice."""

    def __init__(self, shown: Progress, file: FileIO, clock: Callable[[], float]) -> None:
        self.shown, self.file, self.clock = shown, file, clock
        self.now, self.so_far = Stage("", 0), EstimateSoFar(None, clock)

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        so_far = EstimateSoFar(estimate, self.clock)
        so_far.lines = self.so_far.lines  # until there are others
        self.so_far = so_far

        def make(seconds: float) -> Sequence[str]:
            begun, lines = self.clock(), estimate(seconds) if estimate else ()
            so_far.keep(lines, begun)
            return lines

        self.shown.stage(name, total, known=known, estimate=make if estimate else None)
        self._tell(Stage(name, total, known))

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
        self.shown.advance(n, failed=failed)
        self.so_far.renew()
        self._tell(advance_stage(self.now, n, failed))

    def warn(self, text: str) -> None:
        self.shown.warn(text)

    def _tell(self, stage: Stage) -> None:
        """Write a line in place of the last one, at once, so that whoever reads finds one or the other."""
        self.now = stage
        told = RunProgress(stage.name, stage.total, stage.known + stage.done, stage.failed, self.so_far.lines)
        with suppress(OSError):  # a full disk is no reason to stop, nor what a run is for
            self.file.seek(0)
            self.file.write(hide_credentials(msgspec.json.encode(told).decode()).encode() + b"\n")
            self.file.truncate()


@contextmanager
def leave_progress(folder: Path, shown: Progress, clock: Callable[[], float] = time.monotonic) -> Iterator[Progress]:
    """Leave in a folder how far its run is. The file stays if the run is stopped; a store has none."""
    path = folder / NAME
    try:
        file = None if isinstance(folder, RemotePath) else open(path, "wb", buffering=0)  # noqa: SIM115
    except OSError:
        file = None
    if file is None:
        yield shown
        return
    with file:
        yield FiledProgress(shown, file, clock)
    path.unlink(missing_ok=True)


def read_progress(folder: Path) -> RunProgress | None:
    """How far the run of a folder is or, if it was stopped, was; None if it ended well or never began.

    >>> read_progress(Path("no/such/run"))
    """
    try:
        with open(folder / NAME, "rb") as file:
            return msgspec.json.decode(file.read(LARGEST).partition(b"\n")[0], type=RunProgress)
    except (OSError, ValueError, RecursionError):  # whoever wrote it
        return None
