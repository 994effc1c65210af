"""Gates: a number against a limit or another run. Gates fail on evidence, not on noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from math import isfinite
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.errors import EvalError, require_known, unknown
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.task import MetricKey

Kind = Literal["min", "max"]
Number = tuple[str, MetricKey]
"""Where a number stands: the name of its task or group, and its metric."""


class Limit(Struct, frozen=True):
    """A number's least or greatest value, and the key that selects the number."""

    kind: Kind
    key: str
    value: float


class Gate(Struct, frozen=True, kw_only=True):
    """A number and whether it passed (None: it could not be judged).

    ``limit`` and ``ci`` are those of a limit; ``baseline`` is the other run's number, ``difference_ci`` the interval of
    the difference to it, ``adjusted`` the one-sided p-value of a regression, corrected for all numbers held against the
    baseline, and ``detectable`` the drop that fails in four checks of five. The value of an ``unscored`` gate is the
    share of the baseline's documents that the run did not score; that of a ``paired`` gate is the smaller of the runs'
    shares of matched documents. A ``rules`` gate has no number.
    """

    kind: Literal["min", "max", "baseline", "unscored", "paired", "rules"]
    name: str
    key: MetricKey
    passed: bool | None
    verdict: str
    value: float | None = None
    ci: tuple[float, float] | None = None
    limit: float | None = None
    baseline: float | None = None
    difference: float | None = None
    difference_ci: tuple[float, float] | None = None
    p_value: float | None = None
    adjusted: float | None = None
    detectable: float | None = None
    n: int | None = 0
    unscored: int = 0


def parse_limit(kind: Kind, text: str) -> Limit:
    """Read ``KEY=VALUE``.

    >>> parse_limit("min", "gsm8k/exact_match,strict-match=0.62")
    Limit(kind='min', key='gsm8k/exact_match,strict-match', value=0.62)
    >>> parse_limit("max", "acc")
    Traceback (most recent call last):
    evalcore.EvalError: expected --max KEY=VALUE such as acc=0.62, got 'acc'
    """
    key, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if not key.strip() or not isfinite(value):
        raise EvalError(f"expected --{kind} KEY=VALUE such as acc=0.62, got {text!r}")
    return Limit(kind, key.strip(), value)


def spell_number(number: Number) -> tuple[str, str, str, str]:
    """List every key that selects a number.

    >>> spell_number(("gsm8k", MetricKey("acc")))
    ('acc', 'acc,none', 'gsm8k/acc', 'gsm8k/acc,none')
    """
    name, key = number
    return key.metric, str(key), f"{name}/{key.metric}", f"{name}/{key}"


def select_numbers(wanted: str, known: Iterable[Number]) -> tuple[Number, ...]:
    """Select all numbers that a key or a glob names; a metric alone selects every task and group that has it.

    >>> numbers = [("a", MetricKey("acc")), ("b", MetricKey("acc"))]
    >>> [name for name, _ in select_numbers("acc", numbers)], select_numbers("[b-z]*/acc", numbers)[0][0]
    (['a', 'b'], 'b')
    >>> select_numbers("b/ac", numbers)
    Traceback (most recent call last):
    evalcore.EvalError: unknown number 'b/ac'; did you mean 'b/acc'? Known: a/acc, a/acc,none, ...
    """
    numbers = tuple(known)
    selected = tuple(number for number in numbers if wanted in spell_number(number)) or tuple(
        number for number in numbers if any(fnmatchcase(one, wanted) for one in spell_number(number))
    )
    if not selected:
        spelled = {spelling for number in numbers for spelling in spell_number(number)}
        raise unknown("number", wanted, {one for one in spelled if ("/" in one) == ("/" in wanted)} or spelled)
    return selected


def choose_numbers(
    tasks: Sequence[str], metrics: Sequence[str], names: Iterable[str], keys: Iterable[MetricKey]
) -> Callable[[Number], bool]:
    """Choose numbers by task or group globs and by metrics; all if none is given.

    A glob or metric that matches nothing is an error.

    >>> chosen = choose_numbers(["g*"], ["acc"], ["gsm8k", "mmlu"], [MetricKey("acc"), MetricKey("f1")])
    >>> chosen(("gsm8k", MetricKey("acc"))), chosen(("mmlu", MetricKey("acc"))), chosen(("gsm8k", MetricKey("f1")))
    (True, False, False)
    """
    known, spellings = set(names), {spelling for key in keys for spelling in (key.metric, str(key))}
    for glob in tasks:
        if not any(fnmatchcase(name, glob) for name in known):
            raise unknown("task or group", glob, known)
    require_known("metric", metrics, spellings)

    def chosen(number: Number) -> bool:
        name, key = number
        named = not tasks or any(fnmatchcase(name, glob) for glob in tasks)
        return named and (not metrics or not {key.metric, str(key)}.isdisjoint(metrics))

    return chosen


def numbers_of(report: Report) -> dict[Number, Estimate]:
    """List every number of a report: tasks in the order they were run, then groups."""
    rows: list[TaskReport | GroupReport] = [*report.tasks, *report.groups]
    return {(row.name, key): estimate for row in rows for key, estimate in row.estimates}


def match_limits(limits: Iterable[Limit], known: Iterable[Number]) -> tuple[tuple[Limit, Number], ...]:
    """Pair every limit with each number that it is about.

    >>> [number[0] for _, number in match_limits([Limit("min", "acc", 0.5)], [("a", MetricKey("acc"))] * 2)]
    ['a', 'a']
    """
    numbers = tuple(known)
    return tuple((limit, number) for limit in limits for number in select_numbers(limit.key, numbers))


def level_of_limits(alpha: float, gates: int) -> float:
    """Return the confidence of the intervals that judge so many limits: any fails by luck in at most a share alpha.

    Bonferroni's correction; each end of an interval is a one-sided bound, hence 2 alpha.

    >>> level_of_limits(0.05, 1), level_of_limits(0.05, 20)
    (0.9, 0.995)
    """
    return 1 - 2 * alpha / max(gates, 1)


def judge_limit(limit: Limit, number: Number, estimate: Estimate, *, strict: bool = False) -> Gate:
    """Judge a number against its limit: it fails if its whole interval is on the wrong side.

    With an exact interval of ``level_of_limits``, right and wrong answers fail if that few (or many) have a probability
    of alpha at most, were the model exactly at the limit: one-sided, P(X <= k | n, limit). ``strict``, or without an
    interval, the number itself is judged. A number without a value fails.

    >>> drawn = Estimate(value=0.6, ci=(0.5, 0.7), n=40)
    >>> [judge_limit(Limit("min", "acc", at), ("t", MetricKey("acc")), drawn).verdict for at in (0.4, 0.62, 0.8)]
    ['met', 'not shown to be below', 'below']
    >>> judge_limit(Limit("max", "acc", 0.58), ("t", MetricKey("acc")), drawn, strict=True).verdict
    'above'
    """
    gate = Gate(
        kind=limit.kind,
        name=number[0],
        key=number[1],
        passed=False,
        verdict=f"no value ({estimate.reason or 'nothing was scored'})",
        value=estimate.value,
        ci=estimate.ci,
        limit=limit.value,
        n=estimate.n,
        unscored=estimate.counts.failed + estimate.counts.unscorable,
    )
    if estimate.value is None:
        return gate
    low, high = (estimate.value, estimate.value) if strict or estimate.ci is None else estimate.ci
    least, wrong = (limit.value, "below") if limit.kind == "min" else (-limit.value, "above")
    worst, best = (low, high) if limit.kind == "min" else (-high, -low)
    if best < least:
        return replace(gate, verdict=wrong)
    return replace(gate, passed=True, verdict="met" if worst >= least else f"not shown to be {wrong}")


def judge_limits(
    limits: Iterable[Limit], known: Mapping[Number, Estimate], *, strict: bool = False
) -> tuple[Gate, ...]:
    """Judge every number that a limit is about."""
    return tuple(judge_limit(limit, at, known[at], strict=strict) for limit, at in match_limits(limits, known))
