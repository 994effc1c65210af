"""The list of runs: what each came to or how far it is, read again only where its files have changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from msgspec import Struct, to_builtins

from evalcore.core.records.task import MetricKey
from evalcore.shell.answerlog.lock import is_held
from evalcore.shell.config.config_file import read_file
from evalcore.shell.output.files.results import RunFacts, title_run
from evalcore.shell.output.files.run_files import FILES
from evalcore.shell.output.terminal.number_rows import NumberRow, drop_repeats, list_rows
from evalcore.shell.output.terminal.number_text import name_metric
from evalcore.shell.report.shown_run import show_run
from evalcore.shell.run.live.progress_file import RunProgress, read_progress
from evalcore.shell.safety.safe_text import shorten
from evalcore.shell.view.run_places import RunPlace, find_places

MOST_TASKS, LONGEST, REST = 6, 120, 20
"""How many tasks a row names, how much of a model; and how much longer than a look at the folder the next one waits."""

CONFIG, LARGEST = FILES[1], 1 << 20


class RunSummary(Struct, frozen=True):
    """What the results of a run say in a row. ``number`` is that of the first group, else of the first task."""

    model: str = ""
    tasks: tuple[str, ...] = ()
    number: NumberRow | None = None
    label: str = ""
    more: int = 0
    unfinished: bool = False
    reason: str = ""


class RunEntry(Struct, frozen=True):
    """A row of the list; ``state`` is one of going on, finished, stopped, recorded, unreadable."""

    id: str
    name: str
    changed: float
    state: str
    summary: RunSummary
    progress: RunProgress | None = None


class RunList:
    """The runs below a folder. Threads may look at it together; the folder is looked at once for all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._lock = folder, Lock()
        self._summaries: Mapping[str, tuple[str, RunSummary]] = {}
        self._looked: tuple[tuple[RunPlace, ...], tuple[str, ...]] = ((), ())
        self._next = 0.0

    def find(self, ids: Sequence[str]) -> list[RunPlace] | None:
        """The runs of these ids as they are now; None if one of them is not listed."""
        places = {one.id: one for one in self._look()[0]}
        return [places[one] for one in ids] if all(one in places for one in ids) else None

    def describe(self, places: Sequence[RunPlace]) -> list[object]:
        """Rows as plain data."""
        return [to_builtins(self._describe(one)) for one in places]

    def list(self) -> tuple[list[object], tuple[str, ...]]:
        """All rows, the newest first, and what was left out."""
        places, notes = self._look()
        return self.describe(places), notes

    def _look(self) -> tuple[tuple[RunPlace, ...], tuple[str, ...]]:
        with self._lock:
            begun = time.monotonic()
            if begun >= self._next:
                self._looked = find_places(self.folder)
                known = {one.id for one in self._looked[0]}
                self._summaries = {name: one for name, one in self._summaries.items() if name in known}
                self._next = time.monotonic() + REST * (time.monotonic() - begun)
            return self._looked

    def _describe(self, place: RunPlace) -> RunEntry:
        at, known = self._summaries.get(place.id, (None, RunSummary()))
        if at != place.state:
            known = summarise(place)
            self._summaries = {**self._summaries, place.id: (place.state, known)}
        progress = read_progress(place.path) if not place.flaw and place.path.is_dir() else None
        state = find_state(place, known, progress)
        return RunEntry(place.id, place.name, place.changed, state, known, progress)


def find_state(place: RunPlace, known: RunSummary, progress: RunProgress | None) -> str:
    """Whether a run goes on, ended, was stopped, is only a log, or cannot be read."""
    if not place.flaw and place.path.is_dir() and is_held(place.path / ".run"):
        return "going on"
    if known.reason:
        return "unreadable"
    if progress is not None or known.unfinished or not place.kept:
        return "stopped"
    return "finished" if place.scored else "recorded"


def summarise(place: RunPlace) -> RunSummary:
    """Read what a row says of a run; whatever is wrong with its files is a reason."""
    if place.flaw:
        return RunSummary(reason=place.flaw)
    try:
        return read_numbers(place) if place.scored else read_plan(place)
    except Exception as wrong:  # of files that anybody may have made
        return RunSummary(reason=shorten(str(wrong) or type(wrong).__name__))


def read_numbers(place: RunPlace) -> RunSummary:
    """What the results of a run came to."""
    shown = show_run(place.path)
    rows = drop_repeats(list_rows(shown.report))
    numbers = [row for row in rows if row.metric and row.value is not None]
    first = min(numbers, key=lambda row: row.depth, default=None)
    return RunSummary(
        model=shorten(shown.title, LONGEST),
        tasks=cut_names(row.alias for row in rows if not row.depth),
        number=first,
        label="" if first is None else f"{first.alias} {name_metric(MetricKey(first.metric, first.filter))}",
        more=max(len(numbers) - 1, 0),
        unfinished=bool(shown.unfinished),
    )


def read_plan(place: RunPlace) -> RunSummary:
    """What the config of a run without results says that it will be; nothing of a log."""
    sizes = {one.name: one.size for one in place.files}
    if sizes.get(CONFIG, LARGEST) >= LARGEST or not place.path.is_dir():
        return RunSummary()
    plan = read_file(place.path / CONFIG).value
    model, args, tasks = (plan.get(key) for key in ("model", "model_args", "tasks"))
    facts = RunFacts(model=str(model or ""), model_args=args if isinstance(args, Mapping | str) else {})
    named = (Path(str(one)).name for one in (tasks if isinstance(tasks, list) else ()))
    return RunSummary(model=shorten(title_run(facts), LONGEST), tasks=cut_names(shorten(one, 60) for one in named))


def cut_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, and of many the first.

    >>> cut_names("abcabcdefgh")
    ('a', 'b', 'c', 'd', 'e', 'f', 'and 2 more')
    """
    each = tuple(dict.fromkeys(names))
    return each if len(each) <= MOST_TASKS else (*each[:MOST_TASKS], f"and {len(each) - MOST_TASKS} more")
