"""Logged scores as columns: numbers, pairs, labels or texts become the rows of their aggregation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, nan
from typing import TypeGuard

import numpy as np

from evalcore.core.metrics.corpus import CORPUS_KINDS, pair_statistics
from evalcore.core.records.array import frozen
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Floats, Labels, Objects, Rows, Stats
from evalcore.shell.logs.runs.log_table import Cells


def are_numbers(values: Iterable[object]) -> bool:
    """Whether every score is a number or None.

    >>> are_numbers([1, 0.5, True, None]), are_numbers([1.0, [0, 1]])
    (True, False)
    """
    return all(one is None or isinstance(one, int | float) for one in values)


def build_rows(values: Sequence[object], aggregation: str, given: Options) -> Rows:
    """Build the rows of an aggregation from logged scores.

    >>> build_rows([1, 0.5], "mean", freeze_options())
    Floats(values=Array([1. , 0.5]))
    >>> build_rows([(0, 1), (1, 1)], "f1", freeze_options()).values.data.tolist()
    [[0, 1], [1, 1]]
    >>> build_rows([("a b", "a c")], "ter", freeze_options()).values.data.tolist()      # edits, words
    [[1.0, 2.0]]
    """
    if aggregation != "bypass" and are_numbers(values):
        return Floats(frozen(np.array([nan if one is None else one for one in values], np.float64)))
    if aggregation in ROWS:
        return ROWS[aggregation](aggregation, values, given)
    return Objects(tuple(values))


def make_column(cells: Cells, rows: Callable[[Sequence[object]], Rows], absent: Iterable[int] = ()) -> Column:
    """Make a column of every document of a log; those without a score have a reason, ``absent`` ones none.

    >>> cells = Cells({0: 1.0, 1: None}, {2: "failed: timed out"}, {})
    >>> found = make_column(cells, lambda values: build_rows(values, "mean", freeze_options()), [3])
    >>> found.status.data.tolist(), found.reasons
    ([0, 1, 2, 3], ((1, 'the score is None'), (2, 'timed out')))
    """
    made = rows(list(cells.scores.values()))
    missing = {key: _told(text) for key, text in cells.unscored.items() if key not in cells.scores}
    missing |= dict.fromkeys(absent, (NOT_EMITTED, ""))
    keys = [*cells.scores, *missing]
    missing |= _not_finite(cells.scores, made)
    status = np.zeros(len(keys), np.uint8)
    for at, key in enumerate(keys) if missing else ():
        status[at] = missing[key][0] if key in missing else 0
    reasons = {key: why for key, (_, why) in missing.items() if why}
    return build_column(keys, _padded(made, len(keys) - len(cells.scores)), status, reasons)


def make_noise_column(noise: Mapping[int, tuple[float | None, int]]) -> Column | None:
    """Make a column of the variance of each score over replies, and their number (see ``ScoredColumn``).

    >>> make_noise_column({0: (0.25, 2), 1: (None, 1)}).rows.values.data.tolist()
    [[0.25, 2.0], [nan, 1.0]]
    """
    pairs = [(nan if variance is None else variance, replies) for variance, replies in noise.values()]
    status = np.array([0 if replies else UNSCORABLE for _, replies in pairs], np.uint8)
    return build_column(list(noise), Stats(frozen(np.array(pairs, np.float64))), status) if pairs else None


# --- documents without a score ----------------------------------------------------------------------------------


def _not_finite(scores: Mapping[int, object], rows: Rows) -> dict[int, tuple[int, str]]:
    """Scores that are not finite, with evalcore's reasons."""
    if not isinstance(rows, Floats) or np.isfinite(rows.values.floats).all():
        return {}
    odd = {key: one for key, one in scores.items() if not isinstance(one, int | float) or not isfinite(one)}
    none, other = "the score is None", "expected a finite score, got"
    return {key: (UNSCORABLE, none if one is None else f"{other} {one}") for key, one in odd.items()}


def _told(text: str) -> tuple[int, str]:
    """``failed: why`` or ``unscorable: why``, as in our own logs."""
    kind, _, why = text.partition(": ")
    return (FAILED if kind == "failed" else UNSCORABLE), why or text


def _padded(rows: Rows, more: int) -> Rows:
    if not more:
        return rows
    if isinstance(rows, Objects):
        return Objects((*rows.values, *(None,) * more))
    values = rows.values.data
    blank = np.zeros((more, *values.shape[1:]), values.dtype)
    return type(rows)(frozen(np.concatenate([values, blank])))


# --- rows by aggregation --------------------------------------------------------------------------------------------


def _numbers(aggregation: str, values: Sequence[object], given: Options) -> Rows:
    """Numbers that add up, equally many for every document."""
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    return Stats(frozen(found)) if found.ndim == 2 else Objects(tuple(values))


def _labels(aggregation: str, values: Sequence[object], given: Options) -> Rows:
    """Gold and predicted class: integers as such, others in their own types."""
    plain = all(_is_pair(one) and all(type(part) is int for part in one) for one in values)
    return Labels(frozen(np.array(values, np.int64))) if plain else Objects(tuple(values))


def _texts(aggregation: str, values: Sequence[object], given: Options) -> Rows:
    """Counts as they are, or counted from (reference, prediction) with the options of the metric."""
    if any(isinstance(one, tuple) and one and isinstance(one[0], int | float) for one in values):
        return _numbers(aggregation, values, given)
    pairs = [one for one in values if _is_pair(one)]
    if len(pairs) < len(values):
        other = next(one for one in values if not _is_pair(one))
        raise EvalError(f"expected (reference, prediction) for every document, got {str(other)[:60]}")
    known = CORPUS_KINDS[aggregation].defaults
    return Stats(
        frozen(pair_statistics(aggregation, pairs, freeze_options({k: v for k, v in given.items() if k in known})))
    )


def _chances(aggregation: str, values: Sequence[object], given: Options) -> Rows:
    """(gold, probabilities), which lm-eval writes as numpy prints them."""
    return Objects(tuple((one[0], _printed(one[1])) if _is_pair(one) else one for one in values))


def _is_pair(value: object) -> TypeGuard[tuple[object, object]]:
    return isinstance(value, tuple) and len(value) == 2


def _printed(text: object) -> object:
    try:
        return tuple(map(float, text.strip("[]").split())) if isinstance(text, str) else text
    except ValueError as wrong:
        raise EvalError(f"expected probabilities, got {str(text)[:60]!r}") from wrong


ROWS: Mapping[str, Callable[[str, Sequence[object], Options], Rows]] = {
    "weighted_perplexity": _numbers,
    "bits_per_byte": _numbers,
    "ece": _numbers,
    "f1": _labels,
    "matthews_corrcoef": _labels,
    "brier_score": _chances,
    **dict.fromkeys(CORPUS_KINDS, _texts),
}
"""Aggregations whose scores are more than one number; the others take the logged values as they are."""
