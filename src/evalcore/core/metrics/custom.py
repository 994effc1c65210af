"""A user's own function of one prediction and one gold as a metric over batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite, nan
from numbers import Real

import numpy as np
from msgspec import Struct

from evalcore.core.answers.batch import GenBatch
from evalcore.core.metrics.metric import Emitted, Marks
from evalcore.core.metrics.normalise import NO_GOLD
from evalcore.core.records.array import frozen
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats, Objects

Best = Callable[[Sequence[float]], float]


class KeptValue(Struct, frozen=True):
    """A value that is not a number, kept for an aggregation that understands it."""

    value: object


Cell = float | KeptValue | tuple[int, str]
"""A score, or the status and the reason why there is none."""

OWN = ""
"""The key of a function that returns a number: the metric's own name."""


def per_document(
    function: Callable[..., object], best: Best = max, *, kept: bool = False
) -> Callable[[GenBatch, Options], Emitted]:
    """Make a metric of ``function(prediction, gold, **options)``, the best over the golds of each document.

    A function that returns a dict makes one metric per key; documents it fails on are under the metric's own name.
    With ``kept``, a value that is not a number is kept as it is, for the user's own aggregation.

    >>> from evalcore.core.records.request import freeze_options
    >>> batch = GenBatch((), ["abc", ""], [("ab", "abcd"), ("x",)], np.zeros(2, np.bool_), {})
    >>> per_document(lambda prediction, gold: len(prediction) / len(gold))(batch, freeze_options())
    Floats(values=Array([1.5, 0. ]))
    >>> per_document(lambda prediction, gold: 1 / len(prediction), min)(batch, freeze_options()).missing
    {1: (2, 'ZeroDivisionError: division by zero')}
    >>> one = GenBatch((), ["a"], [("b",)], np.zeros(1, np.bool_), {})
    >>> per_document(lambda prediction, gold: (prediction, gold), kept=True)(one, freeze_options()).values
    (('a', 'b'),)
    """
    # A partial of named functions, not a closure: it travels to worker processes.
    return partial(_score_batch, function, best, kept)


def _score_batch(function: Callable[..., object], best: Best, kept: bool, batch: GenBatch, options: Options) -> Emitted:
    documents = [_score_document(function, best, kept, batch, i, dict(options)) for i in range(len(batch.predictions))]
    names = sorted({name for cells in documents if isinstance(cells, dict) for name in cells} | {OWN})
    return _build_column(documents, OWN) if names == [OWN] else {name: _build_column(documents, name) for name in names}


def _score_document(
    function: Callable[..., object], best: Best, kept: bool, batch: GenBatch, i: int, options: Mapping[str, object]
) -> dict[str, Cell] | Cell:
    """Score one document: cells by key, or one cell for every key."""
    if i in batch.problems:
        return UNSCORABLE, batch.problems[i]
    if not batch.golds[i]:
        return UNSCORABLE, NO_GOLD
    try:
        returned = [function(batch.predictions[i], gold, **options) for gold in batch.golds[i]]
        values = [dict(value) if isinstance(value, Mapping) else {OWN: value} for value in returned]
    except Exception as problem:
        return FAILED, f"{type(problem).__name__}: {problem}"
    names = dict.fromkeys(str(name) for value in values for name in value)
    return {name: _pick_best([value[name] for value in values if name in value], best, kept) for name in names}


def _pick_best(values: Sequence[object], best: Best, kept: bool) -> Cell:
    if kept and len(values) == 1 and not isinstance(values[0], Real | np.bool_):
        return KeptValue(values[0])
    numbers = [_read_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if not isfinite(number):
            return UNSCORABLE, f"expected a finite number, got {value!r}"
    return best(numbers)


def _read_number(value: object) -> float:
    if not isinstance(value, Real | np.bool_):
        return nan
    try:
        return float(value)
    except OverflowError:
        return nan


def _build_column(documents: Sequence[dict[str, Cell] | Cell], name: str) -> Floats | Objects | Marks:
    cells = [_find_cell(cells, name) for cells in documents]
    missing = {i: cell for i, cell in enumerate(cells) if isinstance(cell, tuple)}
    rows = _build_objects(cells) if any(isinstance(cell, KeptValue) for cell in cells) else _build_floats(cells)
    return Marks(rows, missing) if missing else rows


def _build_floats(cells: Sequence[Cell]) -> Floats:
    values = np.array([cell if isinstance(cell, float) else nan for cell in cells], dtype=np.float64)
    return Floats(frozen(values))


def _build_objects(cells: Sequence[Cell]) -> Objects:
    return Objects(
        tuple(
            cell.value if isinstance(cell, KeptValue) else None if isinstance(cell, tuple) else cell for cell in cells
        )
    )


def _find_cell(cells: dict[str, Cell] | Cell, name: str) -> Cell:
    """Find a document's cell under a name; a problem of the whole document is under the metric's own name alone."""
    if not isinstance(cells, dict):
        return cells if name == OWN else (NOT_EMITTED, "")
    return cells.get(name, (NOT_EMITTED, ""))
