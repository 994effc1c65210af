"""How lmms-eval's tasks make one number of their scores: by a name that evalcore knows, or by their own function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from inspect import signature
from math import isclose, nan

from msgspec import Struct
from msgspec.structs import replace

from evalcore.adapters.lmms_eval.host import LmmsOutput, LmmsTask
from evalcore.adapters.lmms_eval.numbers import get_score_key, read_numbers
from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.records.array import Floats64
from evalcore.core.records.column import Column, scored_part
from evalcore.core.records.estimate import Aggregation, Error, Resampling, Summary
from evalcore.core.records.outcome import OK
from evalcore.core.records.row import Rows, as_objects
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricSpec
from evalcore.core.tables import EVALCORE, Tables

THEIR_MODULE = "lmms_eval.api.metrics"
THEIR_NAMES = {"f1_score": "f1", "bypass_agg": "bypass"}


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
    return replace(EVALCORE, from_callable=_resample_value if resample_own else _leave_open)


def _resample_value(function: Callable[..., object]) -> Aggregation:
    return replace(from_callable(function), average=True)  # lmms-eval's groups average whatever tasks report


def _leave_open(function: Callable[..., object]) -> Aggregation:
    return replace(_resample_value(function), error=_refuse_error, resamples=False)


def _refuse_error(rows: Rows, summary: Summary, influence: Floats64 | None, resampling: Resampling) -> Error:
    return Error(None, "the task's own aggregation is not called on resamples")


def find_name(function: Callable[..., object]) -> str | None:
    """Find the aggregation that lmms-eval registers this function as, if evalcore has it too."""
    called = str(getattr(function, "__name__", ""))
    name = THEIR_NAMES.get(called, called)
    return name if getattr(function, "__module__", "") == THEIR_MODULE and name in AGGREGATIONS else None


def choose_aggregation(
    scored: ScoredColumn, output: LmmsOutput, known: Mapping[str, object], resample_own: bool
) -> ScoredColumn:
    """Choose what a column's task aggregates it by; ``known`` has what lmms-eval made of the same scores, by metric.

    A function of the task's own that gives the mean of the numbers in its items closes as that mean, with its error; so
    does a metric without a function.
    """
    if scored.reducer is not None:
        return scored
    numbers = find_all_numbers(scored.column, get_score_key(output.task_config))
    function = output.task.aggregation().get(scored.key.metric)
    if function is None:
        undeclared = Called("mean", nan, "N/A", "the task has no aggregation for these scores, which are no numbers")
        return replace(scored, spec=None) if numbers is not None else _set_aggregation(scored, undeclared)
    name = find_name(function)
    if name is not None:
        return _set_aggregation(scored, name)
    given = _pass_args(function, output.task)
    if resample_own:
        return _set_aggregation(scored, given)
    made = _call_once(given, scored, output, known)
    mean = None if numbers is None else aggregate_metric(AGGREGATIONS["mean"], numbers).value
    same = mean is not None and isclose(made.value, mean, rel_tol=1e-12, abs_tol=1e-15)
    return _set_aggregation(scored, "mean" if same else made)


def _set_aggregation(scored: ScoredColumn, chosen: str | Callable[..., object]) -> ScoredColumn:
    return replace(scored, spec=replace(scored.spec or MetricSpec(scored.key.metric), aggregation=chosen))


def find_all_numbers(column: Column, score_key: str) -> Column | None:
    """Find the numbers of a column; None if a score has none."""
    numbers = read_numbers(column, score_key)
    return numbers if numbers is not None and numbers.count(OK) == column.count(OK) else None


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


def _call_once(
    function: Callable[..., object], scored: ScoredColumn, output: LmmsOutput, known: Mapping[str, object]
) -> Called:
    """Call the function on all scores in the order of documents, unless lmms-eval has called it on the same scores."""
    name = str(getattr(function, "__name__", "aggregation"))
    items = list(as_objects(scored_part(scored.column).rows))
    try:
        whole = str(scored.key) in known and len(items) == len(
            output.sample_metrics[scored.key.metric, scored.key.filter]
        )
        raw = known[str(scored.key)] if whole else function(deepcopy(items))
    except Exception as raised:
        return Called(name, nan, "N/A", f"aggregation {name!r} raised {type(raised).__name__}: {raised}")
    try:
        return Called(name, float(raw), raw)  # type: ignore[arg-type]  # raises if it is no number
    except (TypeError, ValueError):
        return Called(name, nan, raw, f"aggregation {name!r} returned {type(raw).__name__}, which is no number")
