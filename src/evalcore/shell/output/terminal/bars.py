"""How far a run is, on a terminal: a bar for each stage, drawn by rich, and under them what else there is to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from evalcore.shell.output.terminal.progress import (
    EstimateSoFar,
    Estimator,
    Stage,
    advance_stage,
    count_stage,
    list_details,
    tell_pace,
)
from evalcore.shell.safety.credentials import hide_credentials
from evalcore.shell.safety.safe_text import shorten, visible

WORDS, WIDEST, NARROWEST = 62, 30, 10
"""Columns for what stands beside a bar, and those of a bar in what is left."""


class DrawnBars(RichProgress):
    """Bars with lines under them."""

    below: tuple[str, ...] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield from (Text(f"  {line}") for line in self.below)


def draw_bars(stream: TextIO) -> DrawnBars:
    """Bars that fit the terminal."""
    console = Console(file=stream, markup=False, highlight=False, emoji=False)
    return DrawnBars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=min(WIDEST, max(NARROWEST, console.width - WORDS))),
        TextColumn("{task.fields[text]}", markup=False),
        console=console,
        redirect_stdout=False,  # what a program prints to stdout is not ours to move
    )


class Bars:
    """A bar for each stage; failures with their causes and the estimate so far stand under them."""

    def __init__(self, drawn: DrawnBars, clock: Callable[[], float]) -> None:
        self.drawn, self.clock = drawn, clock
        self.now: Stage | None = None
        self.at: TaskID | None = None
        self.so_far = EstimateSoFar(None, clock)

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        self.now = Stage(name, total, known, started=self.clock())
        self.so_far = EstimateSoFar(estimate, self.clock)
        self.at = self.drawn.add_task(visible(name), total=total, completed=known, text=count_stage(self.now))
        self.drawn.below = tuple(list_details(self.now))

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
        if self.now is None or self.at is None:
            return
        self.now = advance_stage(self.now, n, failed)
        done = self.now.known + self.now.done
        estimates = self.so_far.renew() if done < self.now.total else self.so_far.lines
        text = ", ".join([count_stage(self.now), *tell_pace(self.now, self.clock())])
        self.drawn.below = (*map(visible, list_details(self.now)), *estimates)
        self.drawn.update(self.at, completed=done, text=text)

    def warn(self, text: str) -> None:
        self.drawn.console.print(Text(f"warning: {shorten(visible(hide_credentials(text)))}", style="yellow"))
