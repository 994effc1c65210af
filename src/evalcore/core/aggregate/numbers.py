"""Rows of any kind as the numbers that an aggregation needs, rows of logged values, and between what scores lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, nan
from typing import TypeGuard

import numpy as np
from msgspec.structs import replace

from evalcore.core.records.array import Array, Floats64, Ints64, frozen, list_blocks
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, Summary
from evalcore.core.records.lean.slim import take
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Floats, Objects, Powers, Rows, Stats, as_objects

Bounds = tuple[float, float]
OPEN: Bounds = (-inf, inf)
"""The bounds of what nobody declared any for."""
SHARE = "a share"
"""The trait of a column of scores that are 0 or 1, or what a reducer made of such."""


def numbers(rows: Rows) -> Floats64:
    """Read rows as one number each."""
    if isinstance(rows, Floats):
        return rows.values.floats
    try:
        return np.array([float(value) for value in as_objects(rows)], np.float64)  # type: ignore[arg-type]
    except (TypeError, ValueError) as wrong:
        raise EvalError(f"expected one number per document, got {_show_first(rows)}: {wrong}") from wrong


def list_numbers(rows: Rows) -> Array:
    """Read rows as one number each, and keep them as they are kept."""
    return rows.values if isinstance(rows, Floats) else frozen(numbers(rows))


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


# --- between what scores lie --------------------------------------------------------------------------------------


def fit_bounds(
    aggregation: Aggregation, declared: Bounds | None, column: Column, *, share: bool = False
) -> Aggregation:
    """Give an average the bounds of its scores: the declared ones, else none.

    Scores that are 0 or 1 throughout (or means of such: a ``share``) are a proportion, whose interval fits them. That
    is read off the data, and declares nothing.
    """
    if not aggregation.average or (declared is not None and not aggregation.even):
        return aggregation
    seen = (0.0, 1.0) if _is_binary(column) or (share and lies_within(column, (0.0, 1.0))) else OPEN
    return replace(aggregation, bounds=seen if declared is None else declared)


def lies_within(column: Column, bounds: Bounds) -> bool:
    """Whether no score of a column is a number outside these bounds.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import build_column
    >>> [lies_within(build_column([0, 1], Floats(Array([0.5, 57.0]))), bounds) for bounds in ((0, 1), (0, 100))]
    [False, True]
    """
    if isinstance(column.rows, Powers) and column.rows.kind is Floats:
        return bounds[0] <= column.rows.low[0] and column.rows.high[0] <= bounds[1]
    if not isinstance(column.rows, Floats):
        return True
    low, high = bounds
    return all(not bool(np.any((some < low) | (some > high))) for some in _list_scored(column, column.rows))


def _is_binary(column: Column) -> bool:
    if not isinstance(column.rows, Floats):
        return False
    return all(bool(np.all((some == 0) | (some == 1))) for some in _list_scored(column, column.rows))


def _list_scored(column: Column, rows: Floats) -> Iterator[Floats64]:
    """The scores of a column, some at a time."""
    return list_blocks(rows.values if column.scored.all() else take(rows.values, column.scored))


def value_of(summarise: Callable[[Rows, Options], Summary], rows: Sequence[object], **chosen: object) -> float:
    """Aggregate a plain list of scores, to try an aggregation by hand; NaN for an empty list.

    >>> from evalcore.core.records.estimate import smooth
    >>> value_of(lambda rows, options: smooth(np.array([[3.0, 4.0]]), lambda s: s[..., 0] / s[..., 1]), [0.75])
    0.75
    """
    summary = summarise(Objects(tuple(rows)), freeze_options(chosen))
    n = len(summary.stats)
    return float(summary.resampled(np.arange(n)[None, :])[0]) if n else nan
