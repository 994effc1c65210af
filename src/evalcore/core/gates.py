"""Gates: a number held against a limit or against another run. What fails, fails on evidence, not on noise."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.comparison import Comparison, Line, adjust
from evalcore.core.errors import EvalError, unknown
from evalcore.core.estimate import Estimate
from evalcore.core.records import MetricKey
from evalcore.core.reports import GroupReport, Report, TaskReport

__all__ = [
    "Gate",
    "Limit",
    "Number",
    "find_regressions",
    "judge_limit",
    "judge_limits",
    "name_verdict",
    "one_sided",
    "parse_limit",
    "select_numbers",
    "warn_of_draws",
]

Kind = Literal["min", "max"]
Number = tuple[str, MetricKey]
"""Where a number stands: the name of its task or group, and its metric."""


class Limit(Struct, frozen=True):
    """A number's least or greatest value, under the key it was asked for with."""

    kind: Kind
    key: str
    value: float


class Gate(Struct, frozen=True, kw_only=True):
    """A number and whether it passed (None: it could not be judged). ``limit`` is that, or the baseline's number.

    ``adjusted`` is the one-sided p-value of a regression, corrected for all numbers held against the baseline.
    """

    kind: Literal["min", "max", "baseline"]
    name: str
    key: MetricKey
    passed: bool | None
    verdict: str
    value: float | None = None
    ci: tuple[float, float] | None = None
    limit: float | None = None
    difference: float | None = None
    p_value: float | None = None
    adjusted: float | None = None
    n: int = 0
    unscored: int = 0


def parse_limit(kind: Kind, text: str) -> Limit:
    """Read ``KEY=VALUE``.

    >>> parse_limit("min", "gsm8k/exact_match,strict-match=0.62")
    Limit(kind='min', key='gsm8k/exact_match,strict-match', value=0.62)
    >>> parse_limit("max", "acc")
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: expected --max KEY=VALUE such as acc=0.62, got 'acc'
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
    """Every key that means a number.

    >>> spell_number(("gsm8k", MetricKey("acc")))
    ('acc', 'acc,none', 'gsm8k/acc', 'gsm8k/acc,none')
    """
    name, key = number
    return key.metric, str(key), f"{name}/{key.metric}", f"{name}/{key}"


def select_numbers(wanted: str, known: Iterable[Number]) -> tuple[Number, ...]:
    """All numbers that a key means: those of every task and group that has the metric, unless it names one.

    >>> numbers = [("a", MetricKey("acc")), ("b", MetricKey("acc"))]
    >>> [name for name, _ in select_numbers("acc", numbers)], select_numbers("b/acc", numbers)[0][0]
    (['a', 'b'], 'b')
    >>> select_numbers("b/ac", numbers)
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: unknown number 'b/ac'; did you mean 'b/acc'? Known: a/acc, a/acc,none, ...
    """
    numbers = tuple(known)
    found = tuple(number for number in numbers if wanted in spell_number(number))
    if not found:
        spelled = {spelling for number in numbers for spelling in spell_number(number)}
        raise unknown("number", wanted, {one for one in spelled if ("/" in one) == ("/" in wanted)} or spelled)
    return found


def judge_limit(limit: Limit, number: Number, estimate: Estimate, *, strict: bool = False) -> Gate:
    """A number against its limit: it fails if all of its interval is on the wrong side.

    ``strict``: if the number itself is, as it is for a number without an interval. One without a value fails.

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
        unscored=estimate.n_failed + estimate.n_unscorable,
    )
    if estimate.value is None:
        return gate
    low, high = (estimate.value, estimate.value) if strict or estimate.ci is None else estimate.ci
    least, wrong = (limit.value, "below") if limit.kind == "min" else (-limit.value, "above")
    worst, best = (low, high) if limit.kind == "min" else (-high, -low)
    if best < least:
        return replace(gate, verdict=wrong)
    return replace(gate, passed=True, verdict="met" if worst >= least else f"not shown to be {wrong}")


def judge_limits(limits: Iterable[Limit], report: Report, *, strict: bool = False) -> tuple[Gate, ...]:
    """A gate for every number that a limit is about: of tasks in the order they were run, then of groups."""
    rows: list[TaskReport | GroupReport] = [*report.tasks, *report.groups]
    known = {(row.name, key): estimate for row in rows for key, estimate in row.estimates}
    return tuple(
        judge_limit(limit, number, known[number], strict=strict)
        for limit in limits
        for number in select_numbers(limit.key, known)
    )


def one_sided(p_value: float, change: float) -> float:
    """The p-value of "it fell", from that of "it differs" and the change seen.

    Half of the two-sided one where it fell; exact for tests whose two sides mirror each other, as all of ours do.

    >>> one_sided(0.04, -0.1), one_sided(0.04, 0.1), one_sided(1.0, 0.0)
    (0.02, 0.98, 0.5)
    """
    return p_value / 2 if change < 0 else 1 - p_value / 2


def find_regressions(comparison: Comparison, *, alpha: float = 0.05, correction: str = "holm") -> tuple[Gate, ...]:
    """A gate for every number of a run against its baseline: it fails if the run is worse by more than luck explains.

    All numbers are one family: where nothing changed, some gate fails in at most a share ``alpha`` of all checks.

    >>> line = Line(name="t", key=MetricKey("acc"), a=0.5, b=0.7, difference=-0.2, p_value=0.01, higher_is_better=True)
    >>> gate = find_regressions(Comparison(names=("new", "old"), lines=(line,)))[0]
    >>> gate.passed, gate.verdict, gate.adjusted
    (False, 'worse', 0.005)
    """
    sided = tuple(replace(line, p_value=_regression(line)) for line in comparison.lines)
    judged = adjust([replace(comparison, lines=sided)], correction)[0].lines
    return tuple(_held_against(line, alpha) for line in judged)


def _regression(line: Line) -> float | None:
    if line.p_value is None or line.difference is None or line.higher_is_better is None:
        return None
    return one_sided(line.p_value, line.difference if line.higher_is_better else -line.difference)


def _held_against(line: Line, alpha: float) -> Gate:
    failed = line.adjusted is not None and line.adjusted <= alpha
    if line.adjusted is not None:
        verdict = "worse" if failed else "no evidence that it is worse"
    elif line.higher_is_better is None and line.difference is not None:
        verdict = "not judged: whether more is better is not known"
    else:
        verdict = f"not judged: {line.reason or 'no test'}"
    return Gate(
        kind="baseline",
        name=line.name,
        key=line.key,
        passed=None if line.adjusted is None else not failed,
        verdict=verdict,
        value=line.a,
        ci=line.ci,
        limit=line.b,
        difference=line.difference,
        p_value=line.p_value,
        adjusted=line.adjusted,
        n=line.n,
        unscored=line.unscored,
    )


def warn_of_draws(comparisons: Iterable[Comparison], draws: int, alpha: float) -> tuple[str, ...]:
    """Whether so few sign flips were drawn that no p-value of theirs can pass the correction: at best it is 1 in draws.

    >>> line = Line(name="t", key=MetricKey("f1"), p_value=0.001, method="sign-flip test")
    >>> one = adjust([Comparison(names=("a", "b"), lines=(line,) * 60)])
    >>> warn_of_draws(one, 1000, 0.05)
    ('too few sign flips to show anything among 60 tests; use --draws 12000',)
    >>> warn_of_draws(one, 10_000, 0.05), warn_of_draws(adjust(one, "none"), 1000, 0.05)
    ((), ())
    """
    given = tuple(comparisons)
    family = max((one.family for one in given if one.correction != "none"), default=1)
    flipped = any("sign-flip" in line.method for one in given for line in one.lines if line.p_value is not None)
    if not flipped or family <= alpha * (draws + 1):
        return ()
    return (f"too few sign flips to show anything among {family:,} tests; use --draws {round(10 * family / alpha)}",)


def name_verdict(line: Line, alpha: float, labels: tuple[str, str] = ("A", "B")) -> str:
    """What a line of a comparison says, in words: who is better, if more than luck explains it.

    >>> line = Line(name="t", key=MetricKey("ppl"), difference=2.0, adjusted=0.01, higher_is_better=False)
    >>> name_verdict(line, 0.05), name_verdict(line, 0.001), name_verdict(replace(line, higher_is_better=None), 0.05)
    ('B better', 'no evidence', 'A higher')
    """
    if line.adjusted is None or line.difference is None:
        return "not tested"
    if line.adjusted > alpha or line.difference == 0:
        return "no evidence"
    first = (line.difference > 0) is (line.higher_is_better is not False)
    return f"{labels[0] if first else labels[1]} {'higher' if line.higher_is_better is None else 'better'}"
