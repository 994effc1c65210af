"""How far a run is, on stderr: what a stage is, and its forms but the one of terminals."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TextIO

from msgspec import Struct
from msgspec.structs import replace

from evalcore.shell.output.terminal.losses import tell_reasons
from evalcore.shell.output.terminal.screen import write_text
from evalcore.shell.safety.credentials import hide_credentials
from evalcore.shell.safety.safe_text import shorten, visible

Estimator = Callable[[float], Sequence[str]]
"""Numbers of what is done so far, a line each, made within so many seconds; none where there is nothing to say."""


class Progress(Protocol):
    """What a run says of itself: a stage begins, some of it is done, something should be known before going on."""

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        """Begin a stage of ``total`` pieces of work, ``known`` of which an earlier run has done.

        ``estimate`` gives numbers of what is done so far; who shows them asks for them, now and then.
        """

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
        """So many more are done, some of them in vain, for the reasons in ``failed``."""

    def warn(self, text: str) -> None:
        """Say this now, whatever else is shown."""


class Stage(Struct, frozen=True):
    """Where a stage is. ``known`` pieces came from the log, ``done`` were done now, ``failed`` says why, how often."""

    name: str
    total: int
    known: int = 0
    done: int = 0
    failed: tuple[tuple[str, int], ...] = ()
    started: float = 0.0


def advance_stage(stage: Stage, n: int, failed: Sequence[str]) -> Stage:
    """The stage with so many more pieces done, and the causes of failures counted.

    >>> advance_stage(Stage("asking", 9), 3, ["timeout: not a byte for 9 s", "http_429: slow down"]).failed
    (('HTTP 429', 1), ('timeout', 1))
    """
    causes = Counter(dict(stage.failed))
    causes.update(map(name_cause, failed))
    top = sorted(causes.items(), key=lambda pair: (-pair[1], pair[0])) if failed else stage.failed
    return replace(stage, done=stage.done + n, failed=tuple(top))


CODE = re.compile(r"([a-z]+(?:_[a-z]+)*(?:_\d+)?): ")


def name_cause(reason: str) -> str:
    """The kind of a failure, in a word or two: the code that its reason begins with, else its beginning.

    >>> name_cause("http_429: slow down"), name_cause("bad_response: no choices"), name_cause("connection reset")
    ('HTTP 429', 'bad response', 'connection reset')
    """
    found = CODE.match(reason)
    return found[1].replace("http_", "HTTP ").replace("_", " ") if found else shorten(reason, 40)


def describe_stage(stage: Stage, now: float) -> str:
    """A stage in words.

    >>> describe_stage(Stage("asking", 100, known=20, done=30, failed=(("timeout", 1),)), 15.0)
    '50/100 (50 %), 20 from the log, 30 now, 1 failed (1 timeout), 2.0/s, 25 s left'
    """
    return ", ".join([count_stage(stage), *list_details(stage), *tell_pace(stage, now)])


def count_stage(stage: Stage) -> str:
    at = stage.known + stage.done
    share = f" ({100 * at // stage.total} %)" if stage.total else ""
    return f"{at:,}/{stage.total:,}{share}"


def list_details(stage: Stage) -> list[str]:
    """What came from the log, and what failed."""
    failed = sum(count for _, count in stage.failed)
    return [
        *([f"{stage.known:,} from the log, {stage.done:,} now"] if stage.known else []),
        *([f"{failed:,} failed ({tell_reasons(stage.failed)})"] if failed else []),
    ]


def tell_pace(stage: Stage, now: float) -> list[str]:
    """How fast it goes, and how long it will take at that."""
    left, elapsed = stage.total - stage.known - stage.done, now - stage.started
    rate = stage.done / elapsed if elapsed > 0 else 0.0
    return [
        *([f"{rate:.1f}/s" if rate < 100 else f"{rate:,.0f}/s"] if rate > 0 else []),
        *([f"{_show_time(left / rate)} left"] if rate > 0 and left > 0 else []),
    ]


def _show_time(seconds: float) -> str:
    """
    >>> _show_time(42), _show_time(200), _show_time(9000)
    ('42 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


SOONEST, PATIENCE, QUICK, LONGEST = 2.0, 50, 0.2, 5.0
"""Seconds before there is an estimate; the share of the time, one in so many, that goes into estimates; and seconds
that one may take, at first and at most: meanwhile nobody listens to the model.
"""


class EstimateSoFar:
    """The last estimate of a stage, made anew where that takes little of the time."""

    def __init__(self, make: Estimator | None, clock: Callable[[], float]) -> None:
        self.make, self.clock, self.lines = make, clock, tuple[str, ...]()
        self.started = self.ended = clock()
        self.took = 0.0

    def renew(self) -> tuple[str, ...]:
        begun = self.clock()
        if self.make is None or begun - self.ended < max(SOONEST, PATIENCE * self.took):
            return self.lines
        self.keep(self.make(min(max(QUICK, (begun - self.started) / PATIENCE), LONGEST)), begun)
        return self.lines

    def keep(self, made: Sequence[str], begun: float) -> None:
        """Take what was made from then until now."""
        self.lines = tuple(visible(hide_credentials(line)) for line in made) or self.lines
        self.ended = self.clock()
        self.took = self.ended - begun


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
        from evalcore.shell.output.terminal.bars import Bars, draw_bars  # by rich, which others do without

        with draw_bars(to) as drawn:
            yield Bars(drawn, clock)
    else:
        lines = Lines(to, every, clock)
        try:
            yield lines
        finally:
            lines.end()


class Unseen:
    """Says nothing: who calls from Python reads warnings in what is returned."""

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        pass

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
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
    """A line at the end of each stage, and every so many seconds one, with the estimate so far."""

    def __init__(self, stream: TextIO, every: float, clock: Callable[[], float]) -> None:
        self.stream, self.every, self.clock = stream, every, clock
        self.now: Stage | None = None
        self.said: Stage | None = None
        self.so_far = EstimateSoFar(None, clock)
        self.last = 0.0

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        self.end()
        self.last = self.clock()
        self.so_far = EstimateSoFar(estimate, self.clock)
        self.now = Stage(name, total, known, started=self.last)

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
        if self.now is None:
            return
        self.now = advance_stage(self.now, n, failed)
        if self.clock() - self.last >= self.every:
            self._tell(self.so_far.renew())

    def warn(self, text: str) -> None:
        write_warning(self.stream, text)

    def end(self) -> None:
        if self.now is not None and self.now.total and self.now is not self.said:
            self._tell()
        self.now = None

    def _tell(self, estimates: Sequence[str] = ()) -> None:
        if self.now is not None:
            self.last, self.said = self.clock(), self.now
            first = f"{visible(self.now.name)}: {visible(describe_stage(self.now, self.last))}"
            write_text(self.stream, "".join(f"{line}\n" for line in (first, *(f"  {one}" for one in estimates))))
