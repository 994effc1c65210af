"""Rows: a metric's result for each document, in one of four kinds; or what those of very many documents add up to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from itertools import combinations_with_replacement
from math import factorial, inf, isfinite, prod
from operator import add

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from evalcore.core.records.array import Array, Bools, Floats64, Ints64, frozen, multiply_exactly, total_exactly
from evalcore.core.records.errors import EvalError
from evalcore.core.records.lean.slim import take


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


class Powers(Struct, frozen=True):
    """What very many rows add up to, exactly: all products of three of (1, row), summed, which include all of fewer.

    ``low`` and ``high`` are the extremes of each number. Of rows of one number, ``inside`` counts those between
    ``bounds``, and ``near`` sums their distances from the nearer bound, and the products of their distances from both.
    ``wild`` rows, not finite or too large, are only counted, as is what is not a number at all.
    """

    kind: type[Floats | Stats | Labels | Objects]
    sums: tuple[Fraction, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    bounds: tuple[float, float]
    inside: int = 0
    near: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    wild: int = 0

    def add(self, weights: Sequence[Fraction], order: int) -> Fraction:
        """Σ (weights · (1, row))^order, for orders up to 3.

        >>> made = sum_powers(Floats(Array([1.0, 2.0])), None)
        >>> [int(made.add([Fraction(1), Fraction(10)], order)) for order in range(4)]
        [2, 32, 562, 10592]
        """
        known = dict(zip(_list_products(len(self.low)), self.sums, strict=True))
        chosen = combinations_with_replacement(range(len(self.low) + 1), order)
        terms = (known[(0,) * (3 - order) + at] * prod(weights[i] for i in at) * _count_orders(at) for at in chosen)
        return sum(terms, Fraction(0))


def _list_products(width: int) -> Iterator[tuple[int, ...]]:
    return combinations_with_replacement(range(width + 1), 3)


def _count_orders(at: Sequence[int]) -> int:
    return factorial(len(at)) // prod(factorial(at.count(i)) for i in set(at))


WILD = 1e100  # beyond this, a cube may be no number


def sum_powers(rows: Rows, times: Ints64 | None, bounds: tuple[float, float] = (-inf, inf)) -> Powers:
    """Sum rows, each counted once or so many times."""
    if isinstance(rows, Powers):
        return rows
    if isinstance(rows, Objects):
        counted = len(rows.values) if times is None else int(times.sum())
        return Powers(Objects, (Fraction(counted),), (), (), bounds)
    table = rows.values.floats.reshape(len(rows.values), -1)
    tame = (np.abs(table) <= WILD).all(axis=1)
    counts = np.ones(len(table), np.int64) if times is None else times
    table, kept = table[tame], counts[tame]
    weights = None if times is None else kept
    near, inside = [Fraction(0), Fraction(0)], 0
    if table.shape[1] == 1 and isfinite(bounds[1] - bounds[0]):
        shares = (table[:, 0] - bounds[0]) / (bounds[1] - bounds[0])
        within = (shares > 0) & (shares < 1)
        shares, those = shares[within], None if weights is None else weights[within]
        near = [_total((part,), those) for part in (np.minimum(shares, 1 - shares), shares * (1 - shares))]
        inside = int(kept[within].sum())
    factors = [np.ones(len(table)), *table.T]
    sums = (_total(_multiply([factors[i] for i in at if i]), weights) for at in _list_products(table.shape[1]))
    return Powers(
        type(rows),
        (Fraction(int(kept.sum())), *list(sums)[1:]),
        tuple(table.min(axis=0, initial=inf).tolist()),
        tuple(table.max(axis=0, initial=-inf).tolist()),
        bounds,
        inside,
        (near[0], near[1]),
        int(counts.sum() - kept.sum()),
    )


def _multiply(factors: Sequence[Floats64]) -> tuple[Floats64, ...]:
    """Products of columns as two terms each, for their sums to bear what cancels."""
    terms: tuple[Floats64, ...] = tuple(factors[:1])
    for factor in factors[1:]:
        product, lost = multiply_exactly(terms[0], factor)
        terms = (product, lost + sum(term * factor for term in terms[1:]))
    return terms


def _total(terms: Sequence[Floats64], times: Ints64 | None) -> Fraction:
    if times is not None:
        terms = [part for term in terms for part in multiply_exactly(term, times.astype(np.float64))]
    return sum(map(total_exactly, terms), Fraction(0))


def add_powers(a: Powers, b: Powers) -> Powers:
    """Add what two parts add up to; those of different kinds are only counted."""
    if a.kind is not b.kind or len(a.low) != len(b.low):
        return Powers(Objects, (a.sums[0] + b.sums[0] + a.wild + b.wild,), (), (), a.bounds)
    if a.bounds != b.bounds:
        raise EvalError(f"expected scores tallied between the same bounds, got {a.bounds} and {b.bounds}")
    return Powers(
        a.kind,
        tuple(map(add, a.sums, b.sums)),
        tuple(map(min, a.low, b.low)),
        tuple(map(max, a.high, b.high)),
        a.bounds,
        a.inside + b.inside,
        (a.near[0] + b.near[0], a.near[1] + b.near[1]),
        a.wild + b.wild,
    )


Rows = Floats | Stats | Labels | Objects | Powers

BLANKS: Mapping[type, float] = {Floats: np.nan, Stats: np.nan, Labels: -1}


def take_rows(rows: Rows, order: Ints64 | Bools) -> Rows:
    """Take the rows at these positions."""
    if isinstance(rows, Powers) or (order.dtype == np.bool_ and order.all()):
        return rows
    if isinstance(rows, Objects):
        positions = np.flatnonzero(order) if order.dtype == np.bool_ else order
        return Objects(tuple(rows.values[i] for i in positions.tolist()))
    return type(rows)(take(rows.values, order))


def score_at(rows: Rows, i: int) -> object:
    """Return the score of row ``i`` as a plain value; objects are copied."""
    match rows:
        case Powers():
            return None
        case Objects(values):
            return deepcopy(values[i])
        case Floats(values):
            return float(values.part(i, i + 1).tolist()[0])
        case _:
            return tuple(rows.values.part(i, i + 1).tolist()[0])


def as_objects(rows: Rows) -> tuple[object, ...]:
    """Return every row as a plain value."""
    if isinstance(rows, Powers):
        return ()
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
    if isinstance(rows, Powers):
        return rows
    if isinstance(rows, Objects):
        return Objects(tuple(value if here else None for value, here in zip(rows.values, scored.tolist(), strict=True)))
    values = rows.values.data.copy()
    values[~scored] = BLANKS[type(rows)]
    return type(rows)(frozen(values))


def equal_rows(rows: Rows, first: int, second: int) -> bool:
    """Whether two rows are the same to the last bit."""
    if not isinstance(rows, NumberRows):
        return _same(as_objects(rows)[first], as_objects(rows)[second])
    one, other = (rows.values.part(at, at + 1).tobytes() for at in (first, second))
    return bool(one == other)


def _same(a: object, b: object) -> bool:
    """Whether two values are the same all the way down: NaN is NaN, 0.0 is not -0.0, and keys have no order.

    >>> _same({"a": [np.nan], "b": 1}, {"b": 1, "a": [np.nan]}), _same([1], [1.0]), _same(0.0, -0.0)
    (True, False, False)
    """
    if type(a) is not type(b):
        return False
    match a, b:
        case np.ndarray() | np.generic(), np.ndarray() | np.generic():
            alike = a.dtype == b.dtype and a.shape == b.shape
            return alike and (_same(a.tolist(), b.tolist()) if a.dtype.hasobject else a.tobytes() == b.tobytes())
        case float() | complex(), _:
            return repr(a) == repr(b)
        case Mapping(), Mapping():
            return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
        case list() | tuple(), list() | tuple():
            return len(a) == len(b) and all(map(_same, a, b))
    try:
        return bool(a == b)
    except Exception:  # a type of the user's own, with arrays in it: what cannot be told to be equal is not
        return False
