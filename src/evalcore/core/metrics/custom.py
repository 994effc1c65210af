"""A user's own function of one document as a metric over batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from math import isfinite, nan
from numbers import Real

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.answers.kind import AnyBatch
from evalcore.core.answers.result import GenResult, Result
from evalcore.core.answers.text import all_generations
from evalcore.core.metrics.form import Call, Form, Records, by_result, choose_form, read_form
from evalcore.core.metrics.metric import Emitted, Marks, Metric
from evalcore.core.metrics.normalise import NO_GOLD
from evalcore.core.records.array import frozen
from evalcore.core.records.errors import EvalError, describe
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


class PerDocument(Struct, frozen=True):
    """A function of one document. A record of named functions, not a closure: it travels to worker processes.

    A function of one argument that does not say it takes a result is ``listed`` in lm-eval's tasks: it takes a pair.
    With ``finite`` off, NaN and infinity are scores.
    """

    function: Call
    best: Best = max
    kept: bool = False
    form: Form | None = None
    listed: bool = False
    finite: bool = True

    def __call__(self, batch: AnyBatch, options: Options) -> Emitted:
        """Score every document of a batch by its result."""
        form = self.form or read_form(signature(self.function), options)
        documents = [self._score(form, batch, i, dict(options)) for i in range(len(batch))]
        names = sorted({name for cells in documents if isinstance(cells, dict) for name in cells} | {OWN})
        if names == [OWN]:
            return _build_column(documents, OWN)
        return {name: _build_column(documents, name) for name in names}

    def _score(self, form: Form, batch: AnyBatch, i: int, options: Mapping[str, object]) -> dict[str, Cell] | Cell:
        """Score one document: cells by key, or one cell for every key."""
        if i in batch.problems:
            return UNSCORABLE, batch.problems[i]
        try:
            result = batch[i]
            values = [_name_values(value) for value in form(self.function, result, options)]
            names = dict.fromkeys(name for value in values for name in value)
            scores = result if form is by_result and not self.kept else None
            each = {name: [value[name] for value in values if name in value] for name in names}
            cells = {name: _pick_scores(found, scores) or _pick_best(found, self) for name, found in each.items()}
        except EvalError as problem:
            return UNSCORABLE, str(problem)
        except (Exception, SystemExit) as problem:
            return FAILED, describe(problem)
        return cells if values else (UNSCORABLE, NO_GOLD)


def per_document(function: Call, best: Best = max, *, kept: bool = False) -> PerDocument:
    """Make a metric of a function of one document, which takes its options by name:

    ``f(result)`` gets the document's result, all generations included; ``f(prediction, gold)`` and lm-eval's
    ``f(references=, predictions=)`` are called for each gold of the document, and the best score counts.

    A function that returns a dict makes one metric per key; documents it fails on are under the metric's own name.
    With ``kept``, a value that is not a number is kept as it is, for the user's own aggregation.

    >>> from evalcore.core.answers.text import make_texts
    >>> from evalcore.core.records.request import freeze_options
    >>> batch = make_texts(["abc", ""], [("ab", "abcd"), ("x",)])
    >>> per_document(lambda prediction, gold: len(prediction) / len(gold))(batch, freeze_options())
    Floats(values=Array([1.5, 0. ]))
    >>> per_document(lambda prediction, gold: 1 / len(prediction), min)(batch, freeze_options()).missing
    {1: (2, 'ZeroDivisionError: division by zero')}
    >>> per_document(lambda prediction, gold: (prediction, gold), kept=True)(make_texts(["a"], ["b"]), {}).values
    (('a', 'b'),)
    """
    return PerDocument(function, best, kept)


def own_metric(function: object, records: Records, options: Mapping[str, object]) -> Metric[AnyBatch]:
    """The table entry that a task's own function stands for.

    >>> own_metric(lambda result: len(result.generations), (GenResult,), {}).together
    True
    """
    if isinstance(function, Metric):
        return function
    made = function if isinstance(function, PerDocument) else PerDocument(function)  # type: ignore[arg-type]  # callable by the contract of MetricSpec
    form = made.form or choose_form(made.function, records, options, listed=made.listed)
    together = form is by_result and records == (GenResult,)
    build = all_generations if together else None
    return Metric(replace(made, form=form), build, bounds=(-np.inf, np.inf), options=None, together=together)


# --- columns of what functions return -----------------------------------------------------------------------------


def _name_values(value: object) -> dict[str, object]:
    return {str(name): one for name, one in value.items()} if isinstance(value, Mapping) else {OWN: value}


def read_scores(value: object, result: object) -> list[float] | str | None:
    """A score for each generation of a result, or what is wrong with them; None if the value is no list.

    >>> read_scores([1, True], GenResult(("a", "b"), ())), read_scores(0.5, GenResult(("a",), ()))
    ([1.0, 1.0], None)
    >>> read_scores([1.0], GenResult(("a", "b"), ()))
    'expected a number for each of 2 generations, got [1.0]'
    """
    if not isinstance(value, list) or not isinstance(result, GenResult):
        return None
    numbers = list(map(read_number, value))
    if len(numbers) != result.repeats or not all(map(isfinite, numbers)):
        return f"expected a number for each of {result.repeats} generations, got {value!r}"
    return numbers


def _pick_scores(values: Sequence[object], result: Result | None) -> Cell | None:
    """The scores of all generations, for reducers; None if the value is none."""
    scores = read_scores(values[0], result)
    return scores if scores is None else KeptValue(scores) if isinstance(scores, list) else (UNSCORABLE, scores)


def _pick_best(values: Sequence[object], how: PerDocument) -> Cell:
    if how.kept and len(values) == 1 and not isinstance(values[0], Real | np.bool_):
        return KeptValue(values[0])
    numbers = [read_number(value) for value in values]
    for value, number in zip(values, numbers, strict=True):
        if not isfinite(number) and (how.finite or not isinstance(value, Real)):
            return UNSCORABLE, f"expected a finite number, got {value!r}"
    return float(how.best(numbers))


def read_number(value: object) -> float:
    """A score as a float; NaN for what is no finite number."""
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
