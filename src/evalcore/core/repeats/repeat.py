"""What a reducer is: a function of repeats to one score for each question, and what the pipe needs to know about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Bools, ColumnRecord, Floats64, Ints64
from evalcore.core.records.column import Column, build_column, merge_all, scored_part, take_part
from evalcore.core.records.errors import place
from evalcore.core.records.outcome import OK, UNSCORABLE
from evalcore.core.records.row import Objects, Rows, blank_rows, score_at


class Repeats(ColumnRecord, frozen=True, eq=False):
    """Scores (documents × repeats, NaN if missing), their answers, and which are fallbacks."""

    scores: Floats64
    answers: Sequence[Sequence[object]] = ()
    fell_back: Bools | None = None

    @property
    def counts(self) -> Ints64:
        return np.asarray(np.count_nonzero(~np.isnan(self.scores), axis=1), np.int64)


Reduce = Callable[[Repeats], Floats64]
"""One score per document; NaN if undefined (pass@5 of three replies)."""

Noise = tuple[Floats64, Ints64]
"""The variance of each question's reduced score over other replies, NaN if unknown, and the replies it rests on."""


def _leave_unknown(repeats: Repeats) -> Noise:
    return np.full(len(repeats.scores), np.nan), repeats.counts


class Reducer(Struct, frozen=True):
    """A reducer. A plain function in its place is one that takes answers.

    ``answers`` says whether it looks at answers; without them it is handed scores alone. ``rows`` reduces rows that are
    no numbers, and all rows if there is no ``reduce``. ``noise`` estimates the variance of its scores over other
    replies; ``least`` is the number of replies that it needs.
    """

    reduce: Reduce | None
    answers: bool = True
    rows: Callable[[Ints64, Sequence[Column]], Column] | None = None
    noise: Callable[[Repeats], Noise] = _leave_unknown
    least: int = 1

    def __call__(self, repeats: Repeats) -> Floats64:
        if self.reduce is None:
            raise TypeError("this reducer makes no number of scores")
        return self.reduce(repeats)


class ReducerAt(Struct, frozen=True):
    """A family of reducers whose names end in k: ``make`` takes k, and numbers after it such as a threshold.

    Under ``mine@`` it makes ``mine@3`` and ``mine@(3, 0.5)``.
    """

    make: Callable[..., Reducer | Reduce]


def as_reducer(entry: Reducer | Reduce) -> Reducer:
    return entry if isinstance(entry, Reducer) else Reducer(entry)


# --- rows of any kind -------------------------------------------------------------------------------------------


def join_repeats(
    keys: Ints64, columns: Sequence[Column], rows: Rows, undefined: dict[int, str] | None = None
) -> Column:
    """Build a column of reduced rows; a document without any score keeps its first status and reason."""
    status = np.full(len(keys), UNSCORABLE, np.uint8)
    for repeat in reversed(columns):
        at = np.searchsorted(keys, repeat.keys.ints)
        status[at] = np.where(status[at] == OK, OK, repeat.status.data)
    for repeat in columns:
        at = np.searchsorted(keys, repeat.keys.ints)
        status[at] = np.where(repeat.scored, OK, status[at])
    for key in undefined or {}:
        status[np.searchsorted(keys, key)] = UNSCORABLE
    bad = set(keys[status != OK].tolist())
    reasons = {key: reason for one in reversed(columns) for key, reason in one.reasons if key in bad}
    return build_column(keys, rows, status.astype(np.uint8), reasons | (undefined or {}))


def lose_documents(keys: Ints64, reason: str, task: str = "") -> Column:
    """Build a column of documents that are unscorable for this reason."""
    status = np.full(len(keys), UNSCORABLE, np.uint8)
    reasons = {key: reason + (place(task, key) if task else "") for key in keys.tolist()}
    return build_column(keys, blank_rows(len(keys)), status, reasons)


def collect_scores(keys: Ints64, columns: Sequence[Column]) -> Column:
    """All scores of each document as a list.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import Floats
    >>> two = build_column([0], Floats(Array([1.0]))), build_column([0], Floats(Array([0.5])))
    >>> collect_scores(np.array([0]), two).rows
    Objects(values=((1.0, 0.5),))
    """
    lists: dict[int, list[object]] = {key: [] for key in keys.tolist()}
    for repeat in columns:
        for i in np.flatnonzero(repeat.scored).tolist():
            lists[int(repeat.keys.ints[i])].append(score_at(repeat.rows, i))
    return join_repeats(keys, columns, Objects(tuple(tuple(lists[key]) for key in keys.tolist())))


def pick_first(keys: Ints64, columns: Sequence[Column]) -> Column:
    """Pick the first scored repeat of each document, whatever its rows are; the first if none is scored."""
    return _pick_scored(keys, columns, columns)


def pick_last(keys: Ints64, columns: Sequence[Column]) -> Column:
    """Pick the last scored repeat of each document, whatever its rows are; the first if none is scored."""
    return _pick_scored(keys, columns[::-1], columns)


def _pick_scored(keys: Ints64, ordered: Sequence[Column], columns: Sequence[Column]) -> Column:
    left, parts = keys, []
    for repeat in (*map(scored_part, ordered), *columns):
        parts.append(take_part(repeat, np.isin(repeat.keys.ints, left)))
        left = np.setdiff1d(left, repeat.keys.ints)
    return merge_all(parts)
