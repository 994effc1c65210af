"""The ledger of a report: every document of a task under exactly one outcome, and counts that add up to every group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Ints64
from evalcore.core.records.column import Column
from evalcore.core.records.errors import InternalError, place
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, OK, UNSCORABLE, Counts
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.task import MetricKey

GRAVITY = (NOT_EMITTED, OK, UNSCORABLE, FAILED)
"""Outcomes of a document under several metrics; the last that occurs is the document's own."""


class Ledger(Struct, frozen=True):
    """How many documents ended how. ``not_run``: they were to be scored, but a run ended before that.

    >>> Ledger(scored=8, failed=2) + Ledger(not_run=5)
    Ledger(scored=8, unscorable=0, failed=2, not_emitted=0, not_run=5)
    """

    scored: int = 0
    unscorable: int = 0
    failed: int = 0
    not_emitted: int = 0
    not_run: int = 0

    @property
    def documents(self) -> int:
        return self.scored + self.unscorable + self.failed + self.not_emitted + self.not_run

    @property
    def lost(self) -> int:
        """Documents that should have a score, and have none."""
        return self.unscorable + self.failed + self.not_run

    def __add__(self, other: Ledger) -> Ledger:
        return Ledger(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


def count_outcomes(task: TaskReport) -> Ledger:
    """Count the documents of a task, each once: as failed or unscorable if it is so under any metric and filter.

    A tally does not know its documents: there the column with the fewest scores speaks for all. A metric that could
    not be closed has no column, and every document has failed under it.
    """
    columns = [column for _, column in task.columns]
    unclosed = [estimate.counts for key, estimate in task.estimates if key not in dict(task.columns)]
    if not columns or any(counts.failed for counts in unclosed):
        known = max(unclosed, key=lambda counts: counts.failed, default=Counts(scored=task.n_docs))
        return Ledger(known.scored, known.unscorable, known.failed, known.not_emitted)
    if any(column.times is not None for column in columns):
        return min(map(_count_column, columns), key=lambda one: (one.scored, -one.lost))
    first = columns[0].keys.ints
    alike = all(np.array_equal(column.keys.ints, first) for column in columns[1:])
    keys = first if alike else np.unique(np.concatenate([column.keys.ints for column in columns]))
    worst = np.zeros(len(keys), np.int64)
    for column in columns:
        at = slice(None) if alike else np.searchsorted(keys, column.keys.ints)
        worst[at] = np.maximum(worst[at], RANKS[column.status.data])
    counts = np.bincount(worst, minlength=len(GRAVITY)).tolist()
    return _fill_ledger(dict(zip(GRAVITY, counts, strict=True)))


RANKS: Ints64 = np.argsort(GRAVITY)


def _count_column(column: Column) -> Ledger:
    return _fill_ledger({status: column.count(status) for status in GRAVITY})


def _fill_ledger(counts: Mapping[int, int]) -> Ledger:
    return Ledger(counts[OK], counts[UNSCORABLE], counts[FAILED], counts[NOT_EMITTED])


def sum_ledgers(ledgers: Iterable[Ledger]) -> Ledger:
    """The ledger of all documents."""
    return sum(ledgers, Ledger())


# --- the invariant ----------------------------------------------------------------------------------------------------


def check_task(task: TaskReport, documents: int | None = None) -> None:
    """Refuse a task whose columns or estimates lack a document or have one too many.

    ``documents`` is how many there were to score, where that is known apart from the scores.

    >>> acc = Estimate(value=1.0, counts=Counts(scored=3))
    >>> check_task(TaskReport(name="t", estimates=((MetricKey("acc"), acc),)), documents=4)
    Traceback (most recent call last):
    evalcore.core.records.errors.InternalError: counts do not add up: of 4 documents 3 have an outcome - at t acc,none
    """
    wanted = task.n_docs if documents is None else documents
    for key, column in task.columns:
        found = sum(map(column.count, GRAVITY)) if column.times is not None or _rises(column.keys.ints) else 0
        if not wanted == found == column.documents:
            raise _tell(wanted, found, task.name, key)
    columns = dict(task.columns)
    for key, estimate in task.estimates:
        counts = estimate.counts
        lost = counts.unscorable + counts.failed
        found = counts.scored + counts.not_emitted + lost
        zeros = lost if key in columns and counts.scored > columns[key].count(OK) else 0  # on_unscorable: zero
        if found - zeros != wanted:
            raise _tell(wanted, found - zeros, task.name, key)


def check_report(report: Report) -> None:
    """Refuse groups whose counts are not the sums of those of their tasks, each once."""
    tasks = {task.name: task for task in report.tasks}
    for group in report.groups:
        for key, estimate in group.estimates:
            _check_group(group, key, estimate, tasks)


def _check_group(group: GroupReport, key: MetricKey, estimate: Estimate, tasks: Mapping[str, TaskReport]) -> None:
    names = dict.fromkeys(part.name for part in estimate.group.parts)
    below = [found.counts for name in names if (found := tasks[name].get(key)) is not None]
    for count in COUNTS if below else ():
        wanted, found = sum(getattr(one, count) for one in below), getattr(estimate.counts, count)
        if wanted != found:
            told = f"counts do not add up: {wanted} documents of its tasks are {count}, and {found} of the group"
            raise InternalError(f"{told}{place(group.name, key=key)}")


COUNTS: Sequence[str] = ("scored", "unscorable", "failed", "not_emitted")


def _rises(keys: Ints64) -> bool:
    return bool(np.all(keys[1:] > keys[:-1]))


def _tell(wanted: int, found: int, task: str, key: MetricKey) -> InternalError:
    return InternalError(f"counts do not add up: of {wanted} documents {found} have an outcome{place(task, key=key)}")
