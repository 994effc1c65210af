"""How far a run is: bars on a terminal, a line now and then elsewhere, nothing if quiet. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from msgspec import Struct
from msgspec.structs import replace

from evalcore.shell.output.terminal.screen import write_text
from evalcore.shell.safety.credentials import hide_credentials
from evalcore.shell.safety.safe_text import shorten, visible

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Progress(Protocol):
    """What a run says of itself: a stage begins, some of it is done, something should be known before going on."""

    def stage(self, name: str, total: int, *, known: int = 0) -> None:
        """Begin a stage of ``total`` pieces of work, ``known`` of which an earlier run has done."""

    def advance(self, n: int = 1, *, failed: int = 0) -> None:
        """So many more are done, ``failed`` of them in vain."""

    def warn(self, text: str) -> None:
        """Say this now, whatever else is shown."""


class Stage(Struct, frozen=True):
    """Where a stage is. ``known`` pieces came from the log, ``done`` were done now."""

    name: str
    total: int
    known: int = 0
    done: int = 0
    failed: int = 0
    started: float = 0.0


def describe_stage(stage: Stage, now: float) -> str:
    """A stage in words.

    >>> describe_stage(Stage("asking", 100, known=20, done=30, failed=1), 15.0)
    '50/100 (50 %), 20 from the log, 30 now, 1 failed, 2.0/s, 25 s left'
    """
    at = stage.known + stage.done
    share = f" ({100 * at // stage.total} %)" if stage.total else ""
    elapsed = now - stage.started
    rate = stage.done / elapsed if elapsed > 0 else 0.0
    parts = [
        f"{at:,}/{stage.total:,}{share}",
        *([f"{stage.known:,} from the log, {stage.done:,} now"] if stage.known else []),
        *([f"{stage.failed:,} failed"] if stage.failed else []),
        *([f"{rate:.1f}/s" if rate < 100 else f"{rate:,.0f}/s"] if rate else []),
        *([f"{_show_time((stage.total - at) / rate)} left"] if rate and at < stage.total else []),
    ]
    return ", ".join(parts)


def _show_time(seconds: float) -> str:
    """
    >>> _show_time(42), _show_time(200), _show_time(9000)
    ('42 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(
    quiet: bool = False,
    *,
    stream: TextIO | None = None,
    every: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Progress]:
    """Show progress while the block runs, in the form that suits the stream (stderr)."""
    to = stream or sys.stderr
    if quiet:
        yield Silence(to)
    elif to.isatty():
        with _make_bars(to) as bars:
            yield Bars(bars, clock)
    else:
        lines = Lines(to, every, clock)
        try:
            yield lines
        finally:
            lines.end()


class Unseen:
    """Says nothing: who calls from Python reads warnings in what is returned."""

    def stage(self, name: str, total: int, *, known: int = 0) -> None:
        pass

    def advance(self, n: int = 1, *, failed: int = 0) -> None:
        pass

    def warn(self, text: str) -> None:
        pass


UNSEEN = Unseen()


class Silence(Unseen):
    """Says nothing but warnings."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def warn(self, text: str) -> None:
        write_warning(self.stream, text)


def write_warning(stream: TextIO, text: str) -> None:
    write_text(stream, f"warning: {shorten(visible(hide_credentials(text)))}\n")


class Lines:
    """A line at the end of each stage, and one every so many seconds."""

    def __init__(self, stream: TextIO, every: float, clock: Callable[[], float]) -> None:
        self.stream, self.every, self.clock = stream, every, clock
        self.now: Stage | None = None
        self.said: Stage | None = None
        self.last = 0.0

    def stage(self, name: str, total: int, *, known: int = 0) -> None:
        self.end()
        self.last = self.clock()
        self.now = Stage(name, total, known, started=self.last)

    def advance(self, n: int = 1, *, failed: int = 0) -> None:
        if self.now is None:
            return
        self.now = replace(self.now, done=self.now.done + n, failed=self.now.failed + failed)
        if self.clock() - self.last >= self.every:
            self._tell()

    def warn(self, text: str) -> None:
        write_warning(self.stream, text)

    def end(self) -> None:
        if self.now is not None and self.now.total and self.now is not self.said:
            self._tell()
        self.now = None

    def _tell(self) -> None:
        if self.now is not None:
            self.last, self.said = self.clock(), self.now
            self.stream.write(f"{visible(self.now.name)}: {describe_stage(self.now, self.last)}\n")
            self.stream.flush()


class Bars:
    """A bar for each stage, drawn by rich."""

    def __init__(self, bars: RichProgress, clock: Callable[[], float]) -> None:
        self.bars, self.clock = bars, clock
        self.now: Stage | None = None
        self.at: TaskID | None = None

    def stage(self, name: str, total: int, *, known: int = 0) -> None:
        self.now = Stage(name, total, known, started=self.clock())
        text = describe_stage(self.now, self.now.started)
        self.at = self.bars.add_task(visible(name), total=total, completed=known, text=text)

    def advance(self, n: int = 1, *, failed: int = 0) -> None:
        if self.now is None or self.at is None:
            return
        self.now = replace(self.now, done=self.now.done + n, failed=self.now.failed + failed)
        self.bars.update(self.at, completed=self.now.known + self.now.done, text=describe_stage(self.now, self.clock()))

    def warn(self, text: str) -> None:
        from rich.text import Text

        self.bars.console.print(Text(f"warning: {shorten(visible(hide_credentials(text)))}", style="yellow"))


def _make_bars(stream: TextIO) -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[text]}", markup=False),
        console=Console(file=stream, markup=False, highlight=False, emoji=False),
        redirect_stdout=False,  # what a program prints to stdout is not ours to move
    )
