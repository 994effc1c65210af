"""How lmms-eval's tasks make one number of their scores: by a name that evalcore knows, or by a function of theirs."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from inspect import signature
from math import isclose, nan

from msgspec import Struct
from msgspec.structs import replace

from evalcore.adapters.lmms_eval.host import LmmsTask
from evalcore.adapters.lmms_eval.scores import scores_of
from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.lm_eval.aggregations import from_callable_without_error
from evalcore.core.records.column import as_objects
from evalcore.core.records.estimate import Aggregation
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricSpec
from evalcore.core.tables import EVALCORE, Tables

__all__ = ["Called", "aggregation_of", "known_name", "tables_of"]

THEIR_MODULE = "lmms_eval.api.metrics"
THEIR_NAMES = {"f1_score": "f1"}


class Called(Struct, frozen=True):
    """What a function of a task's own made of all scores, and why that is no number, if it is none."""

    name: str
    value: float
    raw: object = None
    why: str | None = None

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, items: object) -> float:
        return self.value


def tables_of(resample_own: bool) -> Tables:
    """evalcore's tables; a function of a task's own has an error only if it may be called on resamples."""
    return replace(EVALCORE, from_callable=_resampled if resample_own else _called_once)


def _resampled(function: Callable[..., object]) -> Aggregation:
    return replace(from_callable(function), average=True)  # lmms-eval's groups average whatever their tasks report


def _called_once(function: Callable[..., object]) -> Aggregation:
    return replace(from_callable_without_error(function), average=True)


def known_name(function: Callable[..., object]) -> str | None:
    """The aggregation that lmms-eval registers this function as, if evalcore has it too."""
    called = str(getattr(function, "__name__", ""))
    name = THEIR_NAMES.get(called, called)
    return name if getattr(function, "__module__", "") == THEIR_MODULE and name in AGGREGATIONS else None


def aggregation_of(
    one: ScoredColumn, function: Callable[..., object] | None, task: LmmsTask, resample_own: bool
) -> ScoredColumn:
    """The column under what its task aggregates it by; a mean of the scores, where there is nothing else.

    A function of the task's own that gives the mean of the numbers in its items closes as that mean, with its error.
    """
    spec = one.spec or MetricSpec(one.key.metric)
    numbers = scores_of(one.column)
    name = "mean" if function is None else known_name(function)
    if function is None or name is not None:
        found = numbers if name == "mean" and numbers is not None else one.column
        return replace(one, spec=replace(spec, aggregation=name), column=found)
    given = _with_args(function, task)
    if resample_own:
        return replace(one, spec=replace(spec, aggregation=given))
    made = _call(given, one)
    mean = None if numbers is None else aggregate_metric(AGGREGATIONS["mean"], numbers).value
    if mean is not None and numbers is not None and isclose(made.value, mean, rel_tol=1e-12, abs_tol=1e-15):
        return replace(one, spec=replace(spec, aggregation="mean"), column=numbers)
    return replace(one, spec=replace(spec, aggregation=made))


def _with_args(function: Callable[..., object], task: LmmsTask) -> Callable[..., object]:
    """lmms-eval hands its command line to functions that have a parameter for it."""
    try:
        named = signature(function).parameters
    except (TypeError, ValueError):  # max and min do not tell theirs
        return function
    if "args" not in named:
        return function
    made = partial(function, args=getattr(task, "args", None))
    made.__name__ = getattr(function, "__name__", "aggregation")  # type: ignore[attr-defined]  # recipes name functions
    return made


def _call(function: Callable[..., object], one: ScoredColumn) -> Called:
    """The function on all scores in the order of documents, once."""
    name = str(getattr(function, "__name__", "aggregation"))
    items = [item for item, ok in zip(as_objects(one.column.rows), one.column.scored.tolist(), strict=True) if ok]
    try:
        raw = function(deepcopy(items))
    except Exception as raised:
        return Called(name, nan, None, f"aggregation {name!r} raised {type(raised).__name__}: {raised}")
    try:
        return Called(name, float(raw))  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        return Called(name, nan, raw, f"aggregation {name!r} returned {type(raw).__name__}, which is no number")
