"""What a metric is: a function from a batch of results to rows, and what is known about its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Generic, Never, TypeVar

import numpy as np

from evalcore.core.answers.batch import Batch, Problems
from evalcore.core.records.array import Bools, ColumnRecord
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.errors import place
from evalcore.core.records.frozen_dict import ShallowRecord
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import NO_OPTIONS, Options
from evalcore.core.records.row import Floats, Objects, Rows, score_at
from evalcore.core.records.task import MetricSpec

B = TypeVar("B")


class Marks(ColumnRecord, frozen=True, eq=True):
    """Rows of a batch, and for those that are not scores (position -> status, reason) why."""

    rows: Rows
    missing: Mapping[int, tuple[int, str]]


Emitted = Rows | Marks | Mapping[str, Rows | Marks]
"""A metric gives rows; a dict of rows gives several metrics, each under its own name."""


class Metric(ShallowRecord, Generic[B], frozen=True):
    """A metric over batches of one kind, and what the pipe needs to know about it.

    ``build`` makes the batch it takes, None if that is the usual one of the output type it is set under. ``bounds`` are
    those of one document's score; ``options`` the names it takes, None if it checks them itself; ``defaults`` what
    those are that are not simply off unless given. ``explain`` says how the score of a document's result came about;
    ``unconditional`` asks for every choice without its context as well; ``together`` gets all replies of a document at
    once, and needs no reducer; ``greedy`` needs to know whether greedy decoding would give a text.
    A number that is not finite is no score, unless ``finite`` is off.
    """

    score: Callable[[B, Options], Emitted]
    build: Callable[[Batch], B] | None = None
    aggregation: str = "mean"
    higher_is_better: bool | None = True
    bounds: tuple[float, float] = (0.0, 1.0)
    options: tuple[str, ...] | None = ()
    defaults: Options = NO_OPTIONS
    explain: Callable[[Never, Options], str] | None = None
    unconditional: bool = False
    together: bool = False
    greedy: bool = False
    finite: bool = True


def only_where(usable: Bools, rows: Rows, reason: str) -> Marks:
    """Rows that count only where ``usable``; elsewhere the document is unscorable for this reason."""
    missing = {int(i): (UNSCORABLE, reason) for i in np.flatnonzero(~usable)}
    return Marks(rows, missing)


def score_column(emitted: Rows | Marks, batch: Batch, problems: Problems, *, finite: bool = True) -> Column:
    """What was emitted for a batch as a column; a number that is not finite is no score, unless ``finite`` is off."""
    marks = emitted if isinstance(emitted, Marks) else Marks(emitted, {})
    odd = _not_finite(marks.rows) if finite else {}
    missing = {**odd, **marks.missing, **{i: (UNSCORABLE, reason) for i, reason in problems.items()}}
    status = np.zeros(len(batch.samples), np.uint8)
    reasons: dict[int, str] = {}
    for i, (code, reason) in missing.items():
        status[i] = code
        if reason:
            doc_id = batch.samples[i].doc_id
            reasons[doc_id] = reason + place(batch.task, doc_id)
    return build_column(batch.keys, marks.rows, status, reasons)


def keep_within(column: Column, spec: MetricSpec | None, task: str) -> Column:
    """Turn scores outside the bounds that a metric declares into none, with the reason.

    >>> from evalcore.core.records.array import Array
    >>> grade = MetricSpec("grade", bounds=(0, 10))
    >>> keep_within(build_column([0, 7], Floats(Array([1.0, 12.0]))), grade, "t").reasons
    ((7, 'expected a score between 0 and 10, got 12 - at t doc 7'),)
    """
    if spec is None or spec.bounds is None or not isinstance(column.rows, Floats):
        return column
    values, (low, high) = column.rows.values.floats, spec.bounds
    with np.errstate(invalid="ignore"):
        odd = column.scored & ((values < low) | (values > high))
    if not odd.any():
        return column
    told = f"expected a score between {low:g} and {high:g}, got"
    keys = column.keys.ints
    reasons = {int(keys[i]): f"{told} {values[i]:.10g}{place(task, int(keys[i]))}" for i in np.flatnonzero(odd)}
    status = np.where(odd, UNSCORABLE, column.status.data).astype(np.uint8)
    return build_column(keys, column.rows, status, {**dict(column.reasons), **reasons})


def _not_finite(rows: Rows) -> dict[int, tuple[int, str]]:
    match rows:
        case Floats(values):
            odd = np.flatnonzero(~np.isfinite(values.floats)).tolist()
        case Objects(values):
            odd = [i for i, value in enumerate(values) if isinstance(value, float) and not isfinite(value)]
        case _:
            odd = []
    return {i: (UNSCORABLE, f"expected a finite score, got {score_at(rows, i)}") for i in odd}
