"""Columns of rows sorted by document key, the only state that travels. They merge in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace
from numpy.typing import NDArray

from evalcore.core.records.array import Array, Bools, Ints64, frozen
from evalcore.core.records.errors import EvalError
from evalcore.core.records.lean.slim import find_ends, join, join_keys
from evalcore.core.records.outcome import (
    FAILED,
    NOT_EMITTED,
    OK,
    UNSCORABLE,
    Failed,
    NotEmitted,
    Ok,
    Outcome,
    Unscorable,
)
from evalcore.core.records.row import (
    BLANKS,
    Floats,
    Labels,
    NumberRows,
    Objects,
    Powers,
    Rows,
    Stats,
    add_powers,
    as_objects,
    blank_rows,
    blank_unscored,
    equal_rows,
    score_at,
    sum_powers,
    take_rows,
)


class Column(Struct, frozen=True):
    """Rows of one (task, metric, filter), strictly increasing in key, with the status of each.

    With ``times``, a row stands for so many documents that have it, and its key is that of the first.

    >>> c = build_column([0, 1], Floats(Array([1.0, 0.0])))
    >>> merge_columns(c, build_column([2], Floats(Array([1.0])))).keys.data.tolist()
    [0, 1, 2]
    """

    keys: Array
    rows: Rows
    status: Array
    reasons: tuple[tuple[int, str], ...] = ()
    times: Array | None = None

    def __post_init__(self) -> None:
        for name in ("keys", "status"):
            if type(getattr(self, name)) is not Array:
                force_setattr(self, name, Array(getattr(self, name)))
        if type(self.reasons) is not tuple:
            force_setattr(self, "reasons", tuple(map(tuple, self.reasons)))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def scored(self) -> Bools:
        return np.asarray(self.status.data == OK)

    def count(self, status: int) -> int:
        here = self.status.data == status
        return int(np.count_nonzero(here) if self.times is None else self.times.ints[here].sum())

    @property
    def documents(self) -> int:
        return len(self) if self.times is None else int(self.times.ints.sum())


def build_column(
    keys: Sequence[int] | Ints64,
    rows: Rows,
    status: NDArray[np.uint8] | None = None,
    reasons: Mapping[int, str] | None = None,
) -> Column:
    """Build a column from rows in any key order; rows with the same key must be equal.

    >>> build_column([3, 1], Floats(Array([0.5, 1.0]))).rows
    Floats(values=Array([1. , 0.5]))
    """
    key_array = np.asarray(keys, dtype=np.int64)
    codes = np.zeros(len(key_array), np.uint8) if status is None else status
    kept = tuple(sorted((reasons or {}).items()))
    built = Column(Array(key_array), blank_unscored(rows, codes == OK), Array(codes), kept)
    if len(key_array) > 1 and not bool(np.all(key_array[1:] > key_array[:-1])):
        return _sort_rows(built, np.argsort(key_array, kind="stable"))
    return built


def merge_columns(a: Column, b: Column) -> Column:
    """Merge two columns: associative, commutative, with the empty column as identity.

    Equal rows with one key collapse (padding, ranges scored twice); different rows with one key are an error.
    """
    return merge_all((a, b))


def merge_all(columns: Iterable[Column]) -> Column:
    """Merge any number of columns at once: the same bits for any split and order."""
    parts = [part for part in columns if len(part)]
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0]
    parts.sort(key=lambda part: find_ends(part.keys))
    apart = all(find_ends(a.keys)[1] < find_ends(b.keys)[0] for a, b in pairwise(parts))
    keys = [part.keys for part in parts]
    joined = Column(
        join_keys(keys) if apart else join(keys),
        concat_rows(parts),
        frozen(np.concatenate([part.status.data for part in parts])),
        tuple(sorted({pair for part in parts for pair in part.reasons})),
    )
    if any(part.times is not None for part in parts):
        each = [np.ones(len(part), np.int64) if part.times is None else part.times.ints for part in parts]
        joined = replace(joined, times=frozen(np.concatenate(each)))
    return joined if apart else _sort_rows(joined, np.argsort(joined.keys.ints, kind="stable"))


def scored_part(column: Column) -> Column:
    """Keep the documents with a score."""
    return take_part(column, column.scored)


def emitted_part(column: Column) -> Column:
    """Keep the documents for which the metric was emitted, scored or not."""
    return take_part(column, np.asarray(column.status.data != NOT_EMITTED))


def unscored_part(column: Column) -> Column:
    """Keep the documents without a score, with the reasons."""
    return take_part(column, ~column.scored)


def take_part(column: Column, here: Bools) -> Column:
    """Keep these documents of a column, with the reasons."""
    if here.all():
        return column
    kept = set(column.keys.ints[here].tolist())
    return Column(
        frozen(column.keys.ints[here]),
        blank_unscored(take_rows(column.rows, here), column.scored[here]),
        frozen(column.status.data[here].astype(np.uint8)),
        tuple(pair for pair in column.reasons if pair[0] in kept),
        None if column.times is None else frozen(column.times.ints[here]),
    )


def list_outcomes(column: Column) -> tuple[tuple[int, Outcome], ...]:
    """List the outcome of each document.

    >>> list_outcomes(build_column([7], Floats(Array([1.0]))))
    ((7, Ok(score=1.0)),)
    """
    if column.times is not None:
        raise EvalError("a tally does not know which documents have a score; score without tally")
    reasons = dict(column.reasons)
    make: Mapping[int, Callable[[int, int], Outcome]] = {
        OK: lambda i, key: Ok(score_at(column.rows, i)),
        UNSCORABLE: lambda i, key: Unscorable(reasons.get(key, "")),
        FAILED: lambda i, key: Failed(reasons.get(key, "")),
        NOT_EMITTED: lambda i, key: NotEmitted(),
    }
    pairs = zip(column.keys.ints.tolist(), column.status.data.tolist(), strict=True)
    return tuple((key, make[code](i, key)) for i, (key, code) in enumerate(pairs))


def concat_rows(parts: Sequence[Column]) -> Rows:
    """Concatenate the rows of columns; columns without any score take the kind of the others."""
    sums = [part.rows for part in parts if isinstance(part.rows, Powers)]
    if sums:
        return reduce(add_powers, (power_rows(part, sums[0].bounds) for part in parts if part.scored.any()))
    kinds = {type(part.rows): part.rows for part in parts if part.scored.any() and not isinstance(part.rows, Powers)}
    if not kinds:
        return blank_rows(sum(map(len, parts)))
    shape = next(iter(kinds.values()))
    widths = {
        part.rows.values.data.shape[1:] for part in parts if part.scored.any() and isinstance(part.rows, NumberRows)
    }
    if len(kinds) > 1 or len(widths) > 1 or isinstance(shape, Objects):
        return Objects(tuple(value for part in parts for value in _list_values(part)))
    return type(shape)(join([_convert_kind(part, shape) for part in parts]))


def power_rows(column: Column, bounds: tuple[float, float]) -> Powers:
    """Sum the rows of a column that have a score."""
    times = None if column.times is None else column.times.ints[column.scored]
    return sum_powers(take_rows(column.rows, column.scored), times, bounds)


def _list_values(part: Column) -> tuple[object, ...]:
    return tuple(
        value if here else None for value, here in zip(as_objects(part.rows), part.scored.tolist(), strict=True)
    )


def _convert_kind(part: Column, shape: Floats | Stats | Labels) -> Array:
    if isinstance(part.rows, NumberRows) and part.scored.any():
        return part.rows.values
    return Array(np.full((len(part), *shape.values.data.shape[1:]), BLANKS[type(shape)], shape.values.data.dtype))


def _sort_rows(joined: Column, order: Ints64) -> Column:
    """Sort rows by key and collapse equal duplicates."""
    keys = joined.keys.ints[order]
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    if not bool(first.all()):
        _refuse_conflicts(joined, order, keys, np.flatnonzero(~first))
    kept = order[first]
    times = None if joined.times is None else frozen(joined.times.ints[kept])
    rows, status = take_rows(joined.rows, kept), frozen(joined.status.data[kept])
    return Column(frozen(keys[first]), rows, status, joined.reasons, times)


def _refuse_conflicts(joined: Column, order: Ints64, keys: Ints64, repeats: Ints64) -> None:
    reasons: dict[int, set[str]] = {}
    for key, reason in joined.reasons:
        reasons.setdefault(key, set()).add(reason)
    for position in repeats.tolist():
        first, second = int(order[position - 1]), int(order[position])
        key = int(keys[position])
        if joined.times is not None:
            raise EvalError(f"expected tallies of different documents, got two that begin with the same - at doc {key}")
        same = joined.status.data[first] == joined.status.data[second] and len(reasons.get(key, ())) < 2
        if not same or not equal_rows(joined.rows, first, second):
            raise EvalError(
                f"expected one score per document, got two different ones: {score_at(joined.rows, first)!r} "
                f"and {score_at(joined.rows, second)!r} - at doc {key}"
            )


EMPTY = Column(Array(np.zeros(0, np.int64)), Floats(Array(np.zeros(0))), Array(np.zeros(0, np.uint8)))
"""The identity of ``merge_columns``."""
