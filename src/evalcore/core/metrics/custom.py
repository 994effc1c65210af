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
from evalcore.core.records.column import Floats, Objects
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.request import Options

__all__ = ["OWN", "per_document"]

Best = Callable[[Sequence[float]], float]


class Kept(Struct, frozen=True):
    """What a function returned that is no number, for an aggregation that knows what to make of it."""

    value: object


Cell = float | Kept | tuple[int, str]
"""A score, or the status and the reason why there is none."""

OWN = ""
"""The key of a function that returns a number: the metric's own name."""


def per_document(
    function: Callable[..., object], best: Best = max, *, kept: bool = False
) -> Callable[[GenBatch, Options], Emitted]:
    """A metric from ``function(prediction, gold, **options)``, the best over the golds of each document.

    A function that returns a dict makes one metric per key; documents it fails on stand under the metric's own name.
    With ``kept``, what is no number is kept as it is, for an aggregation of the user's own.

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
    return partial(_score, function, best, kept)


def _score(function: Callable[..., object], best: Best, kept: bool, batch: GenBatch, options: Options) -> Emitted:
    found = [_document(function, best, kept, batch, i, dict(options)) for i in range(len(batch.predictions))]
    names = sorted({name for cells in found if isinstance(cells, dict) for name in cells} | {OWN})
    return _column(found, OWN) if names == [OWN] else {name: _column(found, name) for name in names}


def _document(
    function: Callable[..., object], best: Best, kept: bool, batch: GenBatch, i: int, options: Mapping[str, object]
) -> dict[str, Cell] | Cell:
    """The cells of one document by key, or one cell that stands under every key."""
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
    return {name: _best([value[name] for value in values if name in value], best, kept) for name in names}


def _best(values: Sequence[object], best: Best, kept: bool) -> Cell:
    if kept and len(values) == 1 and not isinstance(values[0], Real | np.bool_):
        return Kept(values[0])
    numbers = [_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if not isfinite(number):
            return UNSCORABLE, f"expected a finite number, got {value!r}"
    return best(numbers)


def _number(value: object) -> float:
    if not isinstance(value, Real | np.bool_):
        return nan
    try:
        return float(value)
    except OverflowError:
        return nan


def _column(found: Sequence[dict[str, Cell] | Cell], name: str) -> Floats | Objects | Marks:
    cells = [_cell(cells, name) for cells in found]
    missing = {i: cell for i, cell in enumerate(cells) if isinstance(cell, tuple)}
    rows = _objects(cells) if any(isinstance(cell, Kept) for cell in cells) else _floats(cells)
    return Marks(rows, missing) if missing else rows


def _floats(cells: Sequence[Cell]) -> Floats:
    values = np.array([cell if isinstance(cell, float) else nan for cell in cells], dtype=np.float64)
    return Floats(frozen(values))


def _objects(cells: Sequence[Cell]) -> Objects:
    return Objects(
        tuple(cell.value if isinstance(cell, Kept) else None if isinstance(cell, tuple) else cell for cell in cells)
    )


def _cell(cells: dict[str, Cell] | Cell, name: str) -> Cell:
    """A document's cell under a name; what concerns the whole document stands under the metric's own name alone."""
    if not isinstance(cells, dict):
        return cells if name == OWN else (NOT_EMITTED, "")
    return cells.get(name, (NOT_EMITTED, ""))
