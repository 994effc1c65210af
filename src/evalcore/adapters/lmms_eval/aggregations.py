"""How lmms-eval's tasks make one number of their scores: by a name that evalcore knows, or by their own function."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from inspect import signature
from math import isclose, nan

from msgspec import Struct
from msgspec.structs import replace

from evalcore.adapters.lmms_eval.host import LmmsTask
from evalcore.adapters.lmms_eval.scores import read_numbers
from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.lm_eval.aggregations import from_callable_without_error
from evalcore.core.records.estimate import Aggregation
from evalcore.core.records.row import as_objects
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricSpec
from evalcore.core.tables import EVALCORE, Tables

THEIR_MODULE = "lmms_eval.api.metrics"
THEIR_NAMES = {"f1_score": "f1"}


class Called(Struct, frozen=True):
    """The result of a function of a task's own on all scores, and why it is no number, if it is none."""

    name: str
    value: float
    raw: object = None
    why: str | None = None

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, items: object) -> float:
        return self.value


def make_tables(resample_own: bool) -> Tables:
    """Make evalcore's tables; a function of a task's own has an error only if it may be called on resamples."""
    return replace(EVALCORE, from_callable=_resample_value if resample_own else _refuse_resamples)


def _resample_value(function: Callable[..., object]) -> Aggregation:
    return replace(from_callable(function), average=True)  # lmms-eval's groups average whatever tasks report


def _refuse_resamples(function: Callable[..., object]) -> Aggregation:
    return replace(from_callable_without_error(function), average=True)


def find_name(function: Callable[..., object]) -> str | None:
    """Find the aggregation that lmms-eval registers this function as, if evalcore has it too."""
    called = str(getattr(function, "__name__", ""))
    name = THEIR_NAMES.get(called, called)
    return name if getattr(function, "__module__", "") == THEIR_MODULE and name in AGGREGATIONS else None


def choose_aggregation(
    scored: ScoredColumn, function: Callable[..., object] | None, task: LmmsTask, resample_own: bool
) -> ScoredColumn:
    """Choose what a column's task aggregates it by; a mean of the scores by default.

    A function of the task's own that gives the mean of the numbers in its items closes as that mean, with its error.
    """
    spec = scored.spec or MetricSpec(scored.key.metric)
    numbers = read_numbers(scored.column)
    name = "mean" if function is None else find_name(function)
    if function is None or name is not None:
        closed = numbers if name == "mean" and numbers is not None else scored.column
        return replace(scored, spec=replace(spec, aggregation=name), column=closed)
    given = _pass_args(function, task)
    if resample_own:
        return replace(scored, spec=replace(spec, aggregation=given))
    made = _call_once(given, scored)
    mean = None if numbers is None else aggregate_metric(AGGREGATIONS["mean"], numbers).value
    if mean is not None and numbers is not None and isclose(made.value, mean, rel_tol=1e-12, abs_tol=1e-15):
        return replace(scored, spec=replace(spec, aggregation="mean"), column=numbers)
    return replace(scored, spec=replace(spec, aggregation=made))


def _pass_args(function: Callable[..., object], task: LmmsTask) -> Callable[..., object]:
    """Pass the command line to functions with a parameter for it, as lmms-eval does."""
    try:
        named = signature(function).parameters
    except (TypeError, ValueError):  # max and min do not show theirs
        return function
    if "args" not in named:
        return function
    made = partial(function, args=getattr(task, "args", None))
    made.__name__ = getattr(function, "__name__", "aggregation")  # type: ignore[attr-defined]  # recipes name functions
    return made


def _call_once(function: Callable[..., object], scored: ScoredColumn) -> Called:
    """Call the function on all scores in the order of documents, once."""
    name = str(getattr(function, "__name__", "aggregation"))
    items = [item for item, ok in zip(as_objects(scored.column.rows), scored.column.scored.tolist(), strict=True) if ok]
    try:
        raw = function(deepcopy(items))
    except Exception as raised:
        return Called(name, nan, None, f"aggregation {name!r} raised {type(raised).__name__}: {raised}")
    try:
        return Called(name, float(raw))  # type: ignore[arg-type]  # raises if it is no number
    except (TypeError, ValueError):
        return Called(name, nan, raw, f"aggregation {name!r} returned {type(raw).__name__}, which is no number")
