"""Logged scores as columns: numbers, pairs, labels or texts become the rows of their aggregation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, nan

import numpy as np

from evalcore.core.aggregate.numbers import read_objects
from evalcore.core.records.array import ColumnRecord, frozen
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats, NumberRows, Objects, Rows, Stats, as_objects
from evalcore.shell.logs.lm_eval.rows import Row, keep_in_range, read_row_scores, restore_nonfinite
from evalcore.shell.logs.log import NOTHING

Noise = tuple[float | None, int]
Notes = tuple[dict[int, object], dict[int, str], dict[int, Noise]]
"""The cells of a log that is being read: scores, reasons and noise by document."""

MOST_REPLIES, MOST_NOISE = 2**53, 1e150
"""Beyond any run's replies and any score's variance; sums and squares of less stay finite."""


class Cells(ColumnRecord, frozen=True, eq=True):
    """The log under one metric and filter: scores, reasons for missing ones, and the noise of scores."""

    scores: Mapping[int, object]
    unscored: Mapping[int, str]
    noise: Mapping[int, Noise]


def are_numbers(values: Iterable[object]) -> bool:
    """Whether every score is a number or None.

    >>> are_numbers([1, 0.5, True, None]), are_numbers([1.0, [0, 1]])
    (True, False)
    """
    return all(one is None or isinstance(one, int | float) for one in values)


def build_rows(values: Sequence[object], aggregation: Aggregation, given: Options) -> Rows:
    """Build the rows of an aggregation from logged scores.

    >>> from evalcore.core.aggregate.aggregations import AGGREGATIONS
    >>> from evalcore.core.records.request import freeze_options
    >>> build_rows([1, 0.5], AGGREGATIONS["mean"], freeze_options())
    Floats(values=Array([1. , 0.5]))
    >>> build_rows([(0, 1), (1, 1)], AGGREGATIONS["f1"], freeze_options()).values.data.tolist()
    [[0, 1], [1, 1]]
    """
    if aggregation.measures and are_numbers(values):
        return Floats(frozen(np.array([nan if one is None else one for one in values], np.float64)))
    return (aggregation.read or read_objects)(values, given)


def make_column(
    cells: Cells, rows: Callable[[Sequence[object]], Rows], absent: Iterable[int] = (), *, finite: bool = True
) -> Column:
    """Make a column of every document of a log; those without a score have a reason, ``absent`` ones none.

    With ``finite`` off, NaN and infinity are scores like any other.

    >>> from evalcore.core.aggregate.aggregations import AGGREGATIONS
    >>> from evalcore.core.records.request import freeze_options
    >>> cells = Cells({0: 1.0, 1: None}, {2: "failed: timed out"}, {})
    >>> found = make_column(cells, lambda values: build_rows(values, AGGREGATIONS["mean"], freeze_options()), [3])
    >>> found.status.data.tolist(), found.reasons
    ([0, 1, 2, 3], ((1, 'the score is None'), (2, 'timed out')))
    """
    made = rows(list(cells.scores.values()))
    missing = {key: _told(text) for key, text in cells.unscored.items() if key not in cells.scores}
    missing |= dict.fromkeys(absent, (NOT_EMITTED, ""))
    keys = [*cells.scores, *missing]
    odd = _not_finite(cells.scores, made)
    missing |= odd if finite else {key: why for key, why in odd.items() if cells.scores[key] is None}
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
    if not isinstance(rows, NumberRows):
        return Objects((*as_objects(rows), *(None,) * more))
    values = rows.values.data
    blank = np.zeros((more, *values.shape[1:]), values.dtype)
    return type(rows)(frozen(np.concatenate([values, blank])))


# --- rows of a log ----------------------------------------------------------------------------------------------


def note_scores(row: Row, own: Mapping[str, object], cells: dict[str, Notes]) -> None:
    """Note what a row says about each metric."""
    scores = read_row_scores(row.fields)
    for metric, score in (restore_nonfinite(scores, own) if own and "nonfinite" in own else scores).items():
        _notes(cells, metric)[0][row.key] = score if type(score) is float else keep_in_range(score)
    if own:
        note_own(row.key, own, cells)


def note_own(key: int, own: Mapping[str, object], cells: dict[str, Notes]) -> None:
    """Note what only evalcore writes about each metric of a row."""
    for metric, why in as_mapping(own.get("unscored")).items():
        _notes(cells, metric)[1][key] = str(why)
    for metric, pair in as_mapping(own.get("noise")).items():
        _notes(cells, metric)[2][key] = _noise(pair)


def keep_scores(scores: dict[int, object]) -> Notes:
    """Begin the cells of a metric with all its scores."""
    plain = {*map(type, scores.values())} <= {float}
    return scores if plain else {key: keep_in_range(one) for key, one in scores.items()}, {}, {}


def _notes(cells: dict[str, Notes], metric: str) -> Notes:
    found = cells.get(metric)
    return found if found is not None else cells.setdefault(metric, ({}, {}, {}))


def _noise(pair: object) -> Noise:
    match pair:
        case [float() | int() | None as variance, int(replies)] if 0 <= replies <= MOST_REPLIES:
            if variance is None or 0 <= variance <= MOST_NOISE:
                return variance, replies
    raise EvalError(f"expected the variance of a score and its replies under noise, got {str(pair)[:60]}")


def as_mapping(value: object) -> Mapping[str, object]:
    """A decoded JSON object; an empty one for anything else."""
    return value if isinstance(value, dict) else NOTHING
