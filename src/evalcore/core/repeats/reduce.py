"""``reduce_repeats``: several replies to one question become one score; the question stays the unit."""

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
    reducer,
    split_name,
)
from evalcore.core.stats.noise import variance_of_reply

__all__ = ["NO_VOTES", "Votes", "measure_noise", "reduce_repeats"]


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
        return _build_column(keys, columns, _collect_scores(keys, columns))
    if name in ("first", "last") and not all(isinstance(one.rows, Floats) for one in columns):
        return _pick_first(keys, columns if name == "first" else columns[::-1])
    scores = np.column_stack([_align_scores(one, keys, name) for one in columns])
    function = reducer(reduce, reducers) if isinstance(reduce, str) else reduce
    reduced = function(Repeats(scores, votes.answers, votes.fell_back))
    some = np.any(~np.isnan(scores), axis=1)
    undefined = {
        int(keys[i]): f"{name} is not defined on {int(np.count_nonzero(~np.isnan(scores[i])))} replies"
        + (place(task, int(keys[i])) if task else "")
        for i in np.flatnonzero(np.isnan(reduced) & some)
    }
    return _build_column(keys, columns, Floats(frozen(np.asarray(reduced, np.float64))), undefined)


def measure_noise(reduce: str, columns: Sequence[Column], reducers: PMap[str, Reducer] = REDUCERS) -> Column | None:
    """Measure each question's variance of the reduced score over other replies, and count its replies.

    NaN if there is no unbiased estimate: below two replies, pass@k of fewer than 2k, and every reducer that jumps
    with one reply (median, max, mode, maj@k, ...), where the jackknife is off by factors of 0.4 to 3.4.

    >>> from evalcore.core.records.array import Array
    >>> one = build_column([0, 1], Floats(Array([0.0, 1.0]))), build_column([0, 1], Floats(Array([1.0, 1.0])))
    >>> measure_noise("mean", one).rows.values.data.tolist()
    [[0.25, 2.0], [0.0, 2.0]]
    """
    if reduce == COLLECT or not all(isinstance(one.rows, Floats) for one in columns):
        return None
    keys = np.unique(np.concatenate([one.keys.ints for one in columns]))
    scores = np.column_stack([_align_scores(one, keys, reduce) for one in columns])
    counts = Repeats(scores).counts
    used = np.minimum(counts, 1) if reducers.get(reduce) in (first, last) else counts
    rows = np.column_stack([_estimate_variance(reduce, scores, used, reducers), used])
    return build_column(keys, Stats(frozen(rows)), np.where(counts > 0, OK, UNSCORABLE).astype(np.uint8))


def _estimate_variance(name: str, scores: Floats64, used: Ints64, reducers: PMap[str, Reducer]) -> Floats64:
    if reducers.get(name) in (mean, first, last):
        return variance_of_reply(scores) / np.maximum(used, 1)
    stem, k, threshold = (None if name in reducers else split_name(name)) or ("", 0, ())
    if stem not in ("pass@", "pass^"):
        return np.full(len(scores), nan)
    # U is unbiased for θ, and with 2k for θ²; so U² minus the latter is unbiased for the variance of U.
    once, twice = (WITH_K[stem](times * k, *threshold)(Repeats(scores)) for times in (1, 2))
    alike, both = (once, twice) if stem == "pass^" else (1 - once, 1 - twice)
    return np.maximum(alike * alike - both, 0.0)


def _build_column(
    keys: Ints64, columns: Sequence[Column], rows: Rows, undefined: dict[int, str] | None = None
) -> Column:
    """Build a column of reduced rows; a document without any score keeps its status and reason."""
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
    reasons = {key: reason for one in columns for key, reason in one.reasons if key in bad}
    return build_column(keys, rows, status.astype(np.uint8), reasons | (undefined or {}))


def _align_scores(repeat: Column, keys: Ints64, name: str) -> Floats64:
    if not isinstance(repeat.rows, Floats):
        raise EvalError(f"reducer {name!r} needs numbers, got {type(repeat.rows).__name__}; use first, last or collect")
    out = np.full(len(keys), nan)
    out[np.searchsorted(keys, repeat.keys.ints[repeat.scored])] = repeat.rows.values.floats[repeat.scored]
    return out


def _collect_scores(keys: Ints64, columns: Sequence[Column]) -> Objects:
    lists: dict[int, list[object]] = {key: [] for key in keys.tolist()}
    for repeat in columns:
        for i in np.flatnonzero(repeat.scored).tolist():
            lists[int(repeat.keys.ints[i])].append(score_at(repeat.rows, i))
    return Objects(tuple(tuple(lists[key]) for key in keys.tolist()))


def _pick_first(keys: Ints64, columns: Sequence[Column]) -> Column:
    """Pick the first repeat of each document, whatever its rows are."""
    left, parts = keys, []
    for repeat in columns:
        here = np.isin(repeat.keys.ints, left)
        reasons = {key: reason for key, reason in repeat.reasons if key in set(left.tolist())}
        parts.append(
            build_column(
                repeat.keys.ints[here], take_rows(repeat.rows, here), repeat.status.data[here].astype(np.uint8), reasons
            )
        )
        left = np.setdiff1d(left, repeat.keys.ints)
    return merge_all(parts)
