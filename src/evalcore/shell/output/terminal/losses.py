"""Documents without a score: how many, of which task, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, to_builtins

from evalcore.core.ledger import Ledger, count_outcomes
from evalcore.core.records.column import Column
from evalcore.core.records.outcome import FAILED, UNSCORABLE
from evalcore.core.records.report import Report, TaskReport
from evalcore.shell.safety.safe_text import shorten

KINDS = ((FAILED, "failed"), (UNSCORABLE, "unscorable"))
WORDS = {"failed": "failed", "unscorable": "could not be scored"}
ASIDE = re.compile(r"( \(\d+ tries\))?( - at \S+( doc \S+)?.*)?\Z", re.DOTALL)
"""What tells documents apart that have no score for the same reason."""

ROOM = 210
"""The characters that the reasons of a line share, so that none of them is cut off with the line."""


class Lost(Struct, frozen=True):
    """Documents of a task that have no score under at least one metric, and the reasons, the most frequent first."""

    task: str
    kind: str
    documents: int
    of: int
    reasons: tuple[tuple[str, int], ...]


def find_losses(report: Report) -> tuple[Lost, ...]:
    """What each task lost. ``failed``: there is no answer; ``unscorable``: there is one, but no score for it."""
    return tuple(lost for task in report.tasks for kind in KINDS if (lost := _find_loss(task, *kind)) is not None)


def _find_loss(task: TaskReport, code: int, kind: str) -> Lost | None:
    why: dict[int, tuple[str, int]] = {}
    for _, column in task.columns:
        for key, reason, times in _list_reasons(column, code):
            why.setdefault(key, (reason, times))
    if not why:
        return None
    counted: Counter[str] = Counter()
    for reason, times in why.values():
        counted[reason] += times
    top = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    return Lost(task.name, kind, counted.total(), task.n_docs, tuple(top))


def _list_reasons(column: Column, code: int) -> Iterable[tuple[int, str, int]]:
    reasons, here = dict(column.reasons), column.status.data == code
    keys = column.keys.ints[here].tolist()
    times = [1] * len(keys) if column.times is None else column.times.ints[here].tolist()
    told = (ASIDE.sub("", reasons.get(key, "")) or "no reason given" for key in keys)
    return zip(keys, told, times, strict=True)


def list_ledgers(report: Report, not_run: Mapping[str, int | None]) -> dict[str, dict[str, int]]:
    """What became of the documents of each task; of tasks that were not scored, as far as their number is known."""
    found = {task.name: count_outcomes(task) for task in report.tasks}
    found |= {name: Ledger(not_run=count) for name, count in not_run.items() if count is not None}
    return {name: {"all": one.documents, **to_builtins(one)} for name, one in sorted(found.items())}


def tell_ledger(ledger: Ledger) -> str:
    """What became of all documents, in a line.

    >>> tell_ledger(Ledger(scored=1310, unscorable=4, failed=5))
    '1,319 documents: 1,310 scored, 4 unscorable, 5 failed, 0 not run'
    """
    apart = f", {ledger.not_emitted:,} without a metric of their own" if ledger.not_emitted else ""
    return (
        f"{ledger.documents:,} document{'s' * (ledger.documents != 1)}: {ledger.scored:,} scored, "
        f"{ledger.unscorable:,} unscorable, {ledger.failed:,} failed, {ledger.not_run:,} not run{apart}"
    )


def tell_losses(losses: Iterable[Lost], *, most: int = 3) -> tuple[str, ...]:
    """A line per task and kind, with its most frequent reasons.

    >>> tell_losses([Lost("t", "failed", 3, 20, (("timed out", 2), ("reset", 1)))])
    ('t: 3 of 20 documents failed (2 timed out, 1 reset)',)
    """
    return tuple(
        f"{lost.task}: {lost.documents} of {lost.of} documents {WORDS[lost.kind]} ({tell_reasons(lost.reasons, most)})"
        for lost in losses
    )


def tell_reasons(reasons: Sequence[tuple[str, int]], most: int = 3) -> str:
    """The first reasons, with how often each was one.

    >>> tell_reasons([("timeout", 2), ("reset", 1)], 1)
    '2 timeout, and 1 more reasons'
    """
    room = ROOM // max(min(len(reasons), most), 1)
    shown = [f"{count} {shorten(reason, room)}" for reason, count in reasons[:most]]
    left = len(reasons) - most
    return ", ".join([*shown, *([f"and {left} more reasons"] if left > 0 else [])])
