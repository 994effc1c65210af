"""``reduce_repeats``: several replies to one question become one score; the question stays the unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan

import numpy as np

from evalcore.core.records.array import Bools, ColumnRecord, Floats64, Ints64, frozen
from evalcore.core.records.column import Column, build_column, merge_all, take_part
from evalcore.core.records.errors import RAISED, EvalError, MissingExtra, describe, place
from evalcore.core.records.outcome import OK, UNSCORABLE
from evalcore.core.records.row import Floats, Stats
from evalcore.core.repeats.reducers import REDUCERS, Reducers, reducer
from evalcore.core.repeats.repeat import Reduce, Reducer, Repeats, as_reducer, join_repeats, lose_documents


class Votes(ColumnRecord, frozen=True, eq=False):
    """The answers of each document over all repeats, and which of them are fallbacks (documents × repeats)."""

    answers: Sequence[Sequence[object]] = ()
    fell_back: Bools | None = None


NO_VOTES = Votes()


def reduce_repeats(
    reduce: Reducer | Reduce | str | None,
    columns: Sequence[Column],
    *,
    votes: Votes = NO_VOTES,
    reducers: Reducers = REDUCERS,
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
    found = reducer(reduce, reducers) if isinstance(reduce, str) else as_reducer(reduce)
    return _reduce(name, found, keys, columns, votes, task)


def _reduce(name: str, found: Reducer, keys: Ints64, columns: Sequence[Column], votes: Votes, task: str) -> Column:
    """Reduce repeats; if that fails, those of each question alone, so that only those to blame are lost."""
    numbers = found.rows is None or (found.reduce is not None and _are_numbers(columns))
    aligned = [_align_scores(one, keys, name) for one in columns] if numbers else [np.zeros(len(keys))]
    scores = np.column_stack(aligned)
    try:
        if found.rows is not None and not numbers:
            return found.rows(keys, columns)
        reduced = _check_scores(found(Repeats(scores, votes.answers, votes.fell_back)), len(keys))
    except RAISED as raised:
        if isinstance(raised, MissingExtra):
            raise
        if len(keys) > 1:
            parts = _split_questions(keys, columns, votes)
            return merge_all(_reduce(name, found, *one, task) for one in parts)
        return lose_documents(keys, f"{describe(raised)} (reducer {name!r})", task)
    some = np.any(~np.isnan(scores), axis=1)
    undefined = {
        int(keys[i]): f"{name} is not defined on {int(np.count_nonzero(~np.isnan(scores[i])))} replies"
        + (place(task, int(keys[i])) if task else "")
        for i in np.flatnonzero(np.isnan(reduced) & some)
    }
    return join_repeats(keys, columns, Floats(frozen(np.asarray(reduced, np.float64))), undefined)


def _check_scores(reduced: object, questions: int) -> Floats64:
    made = np.asarray(reduced, np.float64)
    if made.shape != (questions,):
        raise EvalError(f"expected a score for each of {questions} questions, got {reduced!r:.200}")
    return made


def _split_questions(
    keys: Ints64, columns: Sequence[Column], votes: Votes
) -> Iterator[tuple[Ints64, tuple[Column, ...], Votes]]:
    """Split repeats into those of one question each."""
    for i, key in enumerate(keys):
        own = [take_part(one, one.keys.ints == key) for one in columns]
        fell = None if votes.fell_back is None else votes.fell_back[i : i + 1]
        yield keys[i : i + 1], tuple(one for one in own if len(one)), Votes(votes.answers[i : i + 1], fell)


def measure_noise(reduce: str, columns: Sequence[Column], reducers: Reducers = REDUCERS) -> Column | None:
    """Measure each question's variance of the reduced score over other replies, and count its replies.

    NaN if there is no unbiased estimate: below two replies, pass@k of fewer than 2k, and every reducer that jumps
    with one reply (median, max, mode, maj@k, ...).

    >>> from evalcore.core.records.array import Array
    >>> one = build_column([0, 1], Floats(Array([0.0, 1.0]))), build_column([0, 1], Floats(Array([1.0, 1.0])))
    >>> measure_noise("mean", one).rows.values.data.tolist()
    [[0.25, 2.0], [0.0, 2.0]]
    """
    found = reducer(reduce, reducers)
    if found.reduce is None or not _are_numbers(columns):
        return None
    keys = np.unique(np.concatenate([one.keys.ints for one in columns]))
    if not len(keys):
        return None
    repeats = Repeats(np.column_stack([_align_scores(one, keys, reduce) for one in columns]))
    rows = np.column_stack(found.noise(repeats))
    return build_column(keys, Stats(frozen(rows)), np.where(repeats.counts > 0, OK, UNSCORABLE).astype(np.uint8))


def _are_numbers(columns: Sequence[Column]) -> bool:
    return all(isinstance(one.rows, Floats) for one in columns)


def _align_scores(repeat: Column, keys: Ints64, name: str) -> Floats64:
    if not isinstance(repeat.rows, Floats):
        raise EvalError(f"reducer {name!r} needs numbers, got {type(repeat.rows).__name__}; use first, last or collect")
    out = np.full(len(keys), nan)
    out[np.searchsorted(keys, repeat.keys.ints[repeat.scored])] = repeat.rows.values.floats[repeat.scored]
    return out
