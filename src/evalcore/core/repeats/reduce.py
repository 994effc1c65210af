"""``reduce_repeats``: several replies to one question become one score. The question stays the unit."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from pyrsistent import PMap

from evalcore.core.records.array import Bools, ColumnRecord, Floats64, Ints64, frozen
from evalcore.core.records.column import (
    Column,
    Floats,
    Objects,
    Rows,
    Stats,
    build_column,
    merge_all,
    score_at,
    take_rows,
)
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.outcome import OK, UNSCORABLE
from evalcore.core.repeats.reducers import (
    COLLECT,
    REDUCERS,
    WITH_K,
    Reducer,
    Repeats,
    first,
    last,
    mean,
    numbered,
    reducer,
)
from evalcore.core.stats.noise import variance_of_reply

__all__ = ["NO_VOTES", "Votes", "noise_of_repeats", "reduce_repeats"]


class Votes(ColumnRecord, frozen=True, eq=False):
    """The answers of each document over all repeats, and which of them are fallbacks (documents × repeats)."""

    answers: Sequence[Sequence[object]] = ()
    fell_back: Bools | None = None


NO_VOTES = Votes()


def reduce_repeats(
    reduce: Reducer | str | None,
    columns: Sequence[Column],
    *,
    votes: Votes = NO_VOTES,
    reducers: PMap[str, Reducer] = REDUCERS,
    task: str = "",
) -> Column:
    """Reduce one column per repeat to one column. One repeat reduces to itself under every averaging reducer.

    Without a reducer the first repeat counts; ``list_repeats`` has refused others then.

    >>> from evalcore.core.records.array import Array
    >>> one = build_column([0, 1], Floats(Array([0.8, 0.9]))), build_column([0, 1], Floats(Array([0.75, 0.92])))
    >>> reduce_repeats("max", one).rows
    Floats(values=Array([0.8 , 0.92]))
    """
    if reduce is None:
        return columns[0]
    name = reduce if isinstance(reduce, str) else getattr(reduce, "__name__", "reducer")
    keys = np.unique(np.concatenate([one.keys.ints for one in columns]))
    if name == COLLECT:
        return _joined(keys, columns, _collected(keys, columns))
    if name in ("first", "last") and not all(isinstance(one.rows, Floats) for one in columns):
        return _picked(keys, columns if name == "first" else columns[::-1])
    scores = np.column_stack([_aligned(one, keys, name) for one in columns])
    function = reducer(reduce, reducers) if isinstance(reduce, str) else reduce
    reduced = function(Repeats(scores, votes.answers, votes.fell_back))
    some = np.any(~np.isnan(scores), axis=1)
    undefined = {
        int(keys[i]): f"{name} is not defined on {int(np.count_nonzero(~np.isnan(scores[i])))} replies"
        + (place(task, int(keys[i])) if task else "")
        for i in np.flatnonzero(np.isnan(reduced) & some)
    }
    return _joined(keys, columns, Floats(frozen(np.asarray(reduced, np.float64))), undefined)


def noise_of_repeats(reduce: str, columns: Sequence[Column], reducers: PMap[str, Reducer] = REDUCERS) -> Column | None:
    """For each question the variance of its reduced score over other replies, and how many replies that rests on.

    NaN where it cannot be told without bias: below two replies, pass@k of fewer than 2k, and every reducer that jumps
    with one reply (median, max, mode, maj@k, ...), where the jackknife is off by factors of 0.4 to 3.4.

    >>> from evalcore.core.records.array import Array
    >>> one = build_column([0, 1], Floats(Array([0.0, 1.0]))), build_column([0, 1], Floats(Array([1.0, 1.0])))
    >>> noise_of_repeats("mean", one).rows.values.data.tolist()
    [[0.25, 2.0], [0.0, 2.0]]
    """
    if reduce == COLLECT or not all(isinstance(one.rows, Floats) for one in columns):
        return None
    keys = np.unique(np.concatenate([one.keys.ints for one in columns]))
    scores = np.column_stack([_aligned(one, keys, reduce) for one in columns])
    counts = Repeats(scores).counts
    used = np.minimum(counts, 1) if reducers.get(reduce) in (first, last) else counts
    rows = np.column_stack([_reduced_variance(reduce, scores, used, reducers), used])
    return build_column(keys, Stats(frozen(rows)), np.where(counts > 0, OK, UNSCORABLE).astype(np.uint8))


def _reduced_variance(name: str, scores: Floats64, used: Ints64, reducers: PMap[str, Reducer]) -> Floats64:
    if reducers.get(name) in (mean, first, last):
        return variance_of_reply(scores) / np.maximum(used, 1)
    stem, k, threshold = (None if name in reducers else numbered(name)) or ("", 0, ())
    if stem not in ("pass@", "pass^"):
        return np.full(len(scores), nan)
    # U is unbiased for θ and the same with 2k for θ²: so is U² minus that for the variance of U.
    once, twice = (WITH_K[stem](times * k, *threshold)(Repeats(scores)) for times in (1, 2))
    alike, both = (once, twice) if stem == "pass^" else (1 - once, 1 - twice)
    return np.maximum(alike * alike - both, 0.0)


def _joined(keys: Ints64, columns: Sequence[Column], rows: Rows, undefined: dict[int, str] | None = None) -> Column:
    """Reduced rows; a document without any score keeps its own status and reason."""
    status = np.full(len(keys), UNSCORABLE, np.uint8)
    for one in reversed(columns):
        at = np.searchsorted(keys, one.keys.ints)
        status[at] = np.where(status[at] == OK, OK, one.status.data)
    for one in columns:
        at = np.searchsorted(keys, one.keys.ints)
        status[at] = np.where(one.scored, OK, status[at])
    for key in undefined or {}:
        status[np.searchsorted(keys, key)] = UNSCORABLE
    bad = set(keys[status != OK].tolist())
    reasons = {key: reason for one in columns for key, reason in one.reasons if key in bad}
    return build_column(keys, rows, status.astype(np.uint8), reasons | (undefined or {}))


def _aligned(one: Column, keys: Ints64, name: str) -> Floats64:
    if not isinstance(one.rows, Floats):
        raise EvalError(f"reducer {name!r} needs numbers, got {type(one.rows).__name__}; use first, last or collect")
    out = np.full(len(keys), nan)
    out[np.searchsorted(keys, one.keys.ints[one.scored])] = one.rows.values.floats[one.scored]
    return out


def _collected(keys: Ints64, columns: Sequence[Column]) -> Objects:
    lists: dict[int, list[object]] = {key: [] for key in keys.tolist()}
    for one in columns:
        for i in np.flatnonzero(one.scored).tolist():
            lists[int(one.keys.ints[i])].append(score_at(one.rows, i))
    return Objects(tuple(tuple(lists[key]) for key in keys.tolist()))


def _picked(keys: Ints64, columns: Sequence[Column]) -> Column:
    """The first column that has the document, whatever its rows are."""
    left, parts = keys, []
    for one in columns:
        here = np.isin(one.keys.ints, left)
        reasons = {key: reason for key, reason in one.reasons if key in set(left.tolist())}
        parts.append(
            build_column(
                one.keys.ints[here], take_rows(one.rows, here), one.status.data[here].astype(np.uint8), reasons
            )
        )
        left = np.setdiff1d(left, one.keys.ints)
    return merge_all(parts)
