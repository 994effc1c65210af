"""Records that came from bytes of any origin, checked against what their fields are declared to hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Struct

from evalcore.core.partials.codec import SMALL_INTEGERS, Absent
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import NOT_EMITTED
from evalcore.core.records.row import NumberRows, Objects

Fits = Callable[[object], bool]
WIDER: Mapping[object, tuple[type, ...]] = {float: (float, int), Callable: (Absent,)}
"""What else a value of a declared type may be: functions come back as their names."""


def check_record(record: Struct) -> bool:
    """Check that every field of a record, and of the records in it, holds what it is declared to.

    >>> from evalcore.core.partials.span import Span
    >>> check_record(Span("a", "bytes", 0, "5"))
    Traceback (most recent call last):
    evalcore.EvalError: the field 'stop' of a Span cannot be '5'
    """
    for name, fits in _list_fields(type(record)):
        if not fits(value := getattr(record, name)):
            raise EvalError(f"the field {name!r} of a {type(record).__name__} cannot be {repr(value)[:60]}")
    if isinstance(record, Column):
        _check_column(record)
    return True


def _check_column(column: Column) -> None:
    """Check that the arrays of a column are of their kinds, as long as each other, and in the order of documents."""
    keys, status = column.keys.data, column.status.data
    times = keys if column.times is None else column.times.data
    rows = len(column.rows.values) if isinstance(column.rows, NumberRows | Objects) else len(keys)
    kinds = keys.dtype == times.dtype == np.int64 and status.dtype == np.uint8
    if not kinds or not (keys.shape == status.shape == times.shape == (rows,)):
        raise EvalError("the arrays of a column do not belong together")
    if not bool(np.all(np.diff(column.keys.ints) > 0)) or not bool(np.isin(status, np.arange(NOT_EMITTED + 1)).all()):
        raise EvalError("the documents of a column are out of order, or without a status")


@lru_cache(maxsize=64)
def _list_fields(kind: type[Struct]) -> tuple[tuple[str, Fits], ...]:
    hints = get_type_hints(kind)
    return tuple((name, _read_hint(hints[name])) for name in kind.__struct_fields__)


@lru_cache(maxsize=256)
def _read_hint(hint: object) -> Fits:
    """Make a test of values out of a declared type."""
    origin, given = get_origin(hint), get_args(hint)
    if origin is UnionType:
        some = [_read_hint(one) for one in given]
        return lambda value: any(fits(value) for fits in some)
    if origin is tuple:
        return _read_tuple(given)
    kind = getattr(hint, "__supertype__", origin or hint)
    wide = WIDER.get(kind, kind)
    if kind is int:
        return lambda value: type(value) is int and value in SMALL_INTEGERS
    if isinstance(kind, type) and hasattr(kind, "_fields"):  # a named tuple
        return _read_tuple(tuple(get_type_hints(kind).values()))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return lambda value: isinstance(value, kind) and check_record(value)
    return lambda value: isinstance(value, wide)  # type: ignore[arg-type]


def _read_tuple(given: tuple[object, ...]) -> Fits:
    if given[-1] is Ellipsis:
        one = _read_hint(given[0])
        return lambda value: isinstance(value, tuple) and all(map(one, value))
    each = [_read_hint(hint) for hint in given]
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(each)
        and all(fits(part) for fits, part in zip(each, value, strict=True))
    )
