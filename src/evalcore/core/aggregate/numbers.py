"""Rows of any kind as the numbers that an aggregation needs, and rows of logged values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from evalcore.core.records.array import Floats64, Ints64, frozen
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats, Objects, Rows, Stats, as_objects


def numbers(rows: Rows) -> Floats64:
    """Read rows as one number each."""
    if isinstance(rows, Floats):
        return rows.values.floats
    try:
        return np.array([float(value) for value in as_objects(rows)], np.float64)  # type: ignore[arg-type]
    except (TypeError, ValueError) as wrong:
        raise EvalError(f"expected one number per document, got {_show_first(rows)}: {wrong}") from wrong


def pairs(rows: Rows, what: str) -> Floats64:
    """Read rows as two numbers each."""
    if isinstance(rows, Stats) and rows.values.data.ndim == 2 and rows.values.data.shape[1] == 2:
        return rows.values.floats
    try:
        values = np.array([[float(part) for part in row] for row in as_objects(rows)], np.float64)  # type: ignore[attr-defined]
        if values.ndim == 2 and values.shape[1] == 2:
            return values
    except (TypeError, ValueError):
        pass
    raise EvalError(f"expected {what} for every document, got {_show_first(rows)}")


def two_of(rows: Rows, what: str) -> list[Sequence[object]]:
    out: list[Sequence[object]] = [row for row in as_objects(rows) if isinstance(row, list | tuple) and len(row) == 2]
    if len(out) != len(as_objects(rows)):
        raise EvalError(f"expected {what} for every document, got {_show_first(rows)}")
    return out


def _show_first(rows: Rows) -> str:
    return f"{type(rows).__name__} such as {as_objects(rows)[:1]!r}"


def one_hot(codes: Ints64, count: int) -> Floats64:
    return np.asarray(codes[:, None] == np.arange(count), np.float64)


def read_objects(values: Sequence[object], given: Options) -> Rows:
    """Read values as they are, with tuples for lists.

    >>> read_objects([[0, [1]], (0, [1])], {})
    Objects(values=((0, (1,)), (0, (1,))))
    """
    return Objects(tuple(map(_freeze, values)))


def _freeze(value: object) -> object:
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else value


def is_pair(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a logged value is two values, as JSON has them or frozen."""
    return isinstance(value, list | tuple) and len(value) == 2


def read_counts(values: Sequence[object], given: Options) -> Rows:
    """Read numbers that add up, equally many for every document.

    >>> read_counts([[1, 2], [3, 4]], {}).values.data.tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    return Stats(frozen(found)) if found.ndim == 2 else read_objects(values, given)


def read_chances(values: Sequence[object], given: Options) -> Rows:
    """Read (gold, probabilities), which lm-eval writes as numpy prints them.

    >>> read_chances([[1, "[0.25 0.75]"], (0, [0.5, 0.5])], {})
    Objects(values=((1, (0.25, 0.75)), (0, (0.5, 0.5))))
    """
    return read_objects([(one[0], _parse_floats(one[1])) if is_pair(one) else one for one in values], given)


def _parse_floats(text: object) -> object:
    try:
        return tuple(map(float, text.strip("[]").split())) if isinstance(text, str) else text
    except ValueError as wrong:
        raise EvalError(f"expected probabilities, got {str(text)[:60]!r}") from wrong
