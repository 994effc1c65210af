"""Rows: a metric's result for each document, in one of four kinds."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from evalcore.core.records.array import Array, Bools, Ints64, frozen


class NumberRows(Struct, frozen=True):
    """Rows of numbers; those given in any sequence become an array of their own."""

    values: Array

    def __post_init__(self) -> None:
        values: object = self.values
        if not isinstance(values, Array):
            force_setattr(self, "values", Array(values))  # type: ignore[arg-type]  # what can be an array


class Floats(NumberRows, frozen=True):
    """One number per document (float64, n)."""


class Stats(NumberRows, frozen=True):
    """Counts per document that add up (float64, n × k)."""


class Labels(NumberRows, frozen=True):
    """Gold and predicted class per document (int64, n × 2)."""


class Objects(Struct, frozen=True):
    """Whatever ``process_results`` returned, in the user's own types."""

    values: tuple[object, ...]

    def __post_init__(self) -> None:
        if type(self.values) is not tuple:
            force_setattr(self, "values", tuple(self.values))


Rows = Floats | Stats | Labels | Objects

BLANKS: Mapping[type, float] = {Floats: np.nan, Stats: np.nan, Labels: -1}


def take_rows(rows: Rows, order: Ints64 | Bools) -> Rows:
    """Take the rows at these positions."""
    match rows:
        case Objects(values):
            positions = np.flatnonzero(order) if order.dtype == np.bool_ else order
            return Objects(tuple(values[i] for i in positions.tolist()))
        case _:
            return type(rows)(frozen(rows.values.data[order]))


def score_at(rows: Rows, i: int) -> object:
    """Return the score of row ``i`` as a plain value; objects are copied."""
    match rows:
        case Objects(values):
            return deepcopy(values[i])
        case Floats(values):
            return float(values.floats[i])
        case _:
            return tuple(rows.values.data[i].tolist())


def as_objects(rows: Rows) -> tuple[object, ...]:
    """Return every row as a plain value."""
    if isinstance(rows, Objects):
        return rows.values
    if isinstance(rows, Floats):
        return tuple(rows.values.floats.tolist())
    return tuple(map(tuple, rows.values.data.tolist()))


def blank_rows(n: int) -> Floats:
    """Make rows for documents without a score."""
    return Floats(frozen(np.full(n, np.nan)))


def blank_unscored(rows: Rows, scored: Bools) -> Rows:
    """Blank the rows without a score, so that nothing can be mistaken for one."""
    if scored.all():
        return rows
    if not scored.any():
        return blank_rows(len(scored))
    if isinstance(rows, Objects):
        return Objects(tuple(value if here else None for value, here in zip(rows.values, scored.tolist(), strict=True)))
    values = rows.values.data.copy()
    values[~scored] = BLANKS[type(rows)]
    return type(rows)(frozen(values))
