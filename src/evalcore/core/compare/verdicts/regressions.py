"""A run against its baseline: what got worse, what is shown not to be, what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from evalcore.core.compare.gates import Gate, Number
from evalcore.core.compare.lines import (
    Comparison,
    ComparisonLine,
    ComparisonSide,
    Correction,
    adjust_comparisons,
    find_correction,
    too_few,
)
from evalcore.core.compare.verdicts.margins import exclude_drop, find_drop
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import all_tasks

NO_TASK, NO_METRIC = "the run has no such task", "the run has no such metric"
NO_SCORE, NO_TASKS = "no document has a score in both runs", "not all of its tasks have scores in both runs"


def halve_p_value(p_value: float, change: float) -> float:
    """Return the p-value of "it fell", given that of "it differs" and the observed change.

    It is half of the two-sided one if it fell: either tail of all our tests has half of it. Only where p is near 1
    does a correction for skewness put a statistic on the other side of 0.

    >>> halve_p_value(0.04, -0.1), halve_p_value(0.04, 0.1), halve_p_value(1.0, 0.0)
    (0.02, 0.98, 0.5)
    """
    return p_value / 2 if change < 0 else 1 - p_value / 2


def find_regressions(
    comparison: Comparison,
    *,
    alpha: float = 0.05,
    correction: str | Correction = "holm",
    margin: float | None = None,
    shown: bool = False,
) -> tuple[Gate, ...]:
    """Judge every number of a run against its baseline: a gate fails if the run is worse by more than luck explains.

    All numbers are one family: if nothing changed, some gate fails in at most about a share ``alpha`` of all checks.
    McNemar's mid-p test can slightly exceed it: up to 1.13 ``alpha`` if two runs differ on nearly every document.
    With a ``margin``, a gate fails if the whole interval of the difference is worse than that; the comparison must
    then have the confidence of ``level_of_limits``. If it must be ``shown``, a gate fails unless a drop of the margin
    is excluded. A check passes only if all gates do, so this needs no correction (Berger 1982): a run that is worse by
    the margin in any number passes in at most a share ``alpha`` of all checks.

    >>> from evalcore.core.records.task import MetricKey
    >>> fell = ComparisonLine(name="t", key=MetricKey("acc"), a=0.5, b=0.7, difference=-0.2, p_value=0.01)
    >>> line = replace(fell, higher_is_better=True)
    >>> gate = find_regressions(Comparison(names=("new", "old"), lines=(line,)))[0]
    >>> gate.passed, gate.verdict, gate.adjusted
    (False, 'worse', 0.005)
    """
    sided = tuple(replace(line, p_value=_test_regression(line, alpha)) for line in comparison.lines)
    chosen = find_correction(correction)
    lines = adjust_comparisons([replace(comparison, lines=sided)], chosen)[0].lines
    if shown:
        gates = [_judge_shown(line, margin or 0.0, alpha, comparison.confidence) for line in lines]
    else:
        gates = [_judge_line(line, alpha, margin) for line in lines]
    judged = max(sum(gate.passed is not None for gate in gates), 1) if chosen.corrects and not shown else 1
    beyond = 0.0 if shown else margin or 0.0
    return tuple(
        replace(gate, detectable=find_drop(line, alpha / judged, beyond, lines)) if gate.passed is not None else gate
        for gate, line in zip(gates, lines, strict=True)
    )


def _test_regression(line: ComparisonLine, alpha: float) -> float | None:
    """Return a one-sided p-value; None for what can never fail and so is no part of the family."""
    change = _find_change(line)
    if line.p_value is None or change is None or too_few(line, 2 * alpha):
        return None
    return halve_p_value(line.p_value, change)


def _find_change(line: ComparisonLine) -> float | None:
    """How far the run improved; None if the metric's direction is unknown."""
    if line.difference is None or line.higher_is_better is None:
        return None
    return line.difference if line.higher_is_better else -line.difference


def _judge_line(line: ComparisonLine, alpha: float, margin: float | None) -> Gate:
    passed, verdict = _judge_change(line, alpha) if margin is None else _judge_margin(line, margin, alpha)
    return _build_gate(line, passed, verdict)


def _judge_shown(line: ComparisonLine, margin: float, alpha: float, confidence: float) -> Gate:
    """Fail unless a drop of the margin is excluded; what cannot be judged is not shown."""
    tested = None if _find_change(line) is None else exclude_drop(line, margin, confidence)
    line = replace(line, p_value=tested, adjusted=None)
    if tested is None:
        empty = line.difference is None
        return _build_gate(line, None if empty else False, f"not shown: {_explain_unjudged(line, 'no interval')}")
    if tested <= alpha:
        return _build_gate(line, True, f"shown not to be worse by more than {margin:g}")
    worse = _judge_margin(line, margin, alpha)[0] is False
    few = f"not enough documents to exclude a drop of more than {margin:g}"
    return _build_gate(line, False, f"worse by more than {margin:g}" if worse else few)


def _build_gate(line: ComparisonLine, passed: bool | None, verdict: str) -> Gate:
    return Gate(
        kind="baseline",
        name=line.name,
        key=line.key,
        passed=passed,
        verdict=verdict,
        value=line.a,
        baseline=line.b,
        difference=line.difference,
        difference_ci=line.ci,
        p_value=line.p_value,
        adjusted=line.adjusted,
        n=line.n,
        unscored=line.unscored,
    )


def _judge_change(line: ComparisonLine, alpha: float) -> tuple[bool | None, str]:
    if line.adjusted is None:
        return None, f"not judged: {_explain_unjudged(line, 'no test')}"
    failed = line.adjusted <= alpha
    return not failed, "worse" if failed else "not shown to be worse"


def _judge_margin(line: ComparisonLine, margin: float, alpha: float) -> tuple[bool | None, str]:
    """Fail if the whole interval is worse by more than the margin."""
    if _find_change(line) is None or line.ci is None or too_few(line, 2 * alpha):
        return None, f"not judged: {_explain_unjudged(line, 'no interval')}"
    best = line.ci[1] if line.higher_is_better else -line.ci[0]
    worse = f"worse by more than {margin:g}"
    return best >= -margin, worse if best < -margin else f"not shown to be {worse}"


def _explain_unjudged(line: ComparisonLine, otherwise: str) -> str:
    if line.difference is not None and line.higher_is_better is None:
        return "its direction is unknown (--higher_is_better, --lower_is_better)"
    return line.reason or (NO_SCORE if line.difference is None else otherwise)


# --- what is not there ------------------------------------------------------------------------------------------------


def fail_missing(
    gates: Sequence[Gate],
    run: ComparisonSide,
    baseline: ComparisonSide,
    wanted: Callable[[Number], bool] = lambda _: True,
    *,
    allow: bool = False,
) -> tuple[Gate, ...]:
    """Fail a gate for every wanted number of the baseline that the run lacks, and return it with the others.

    A number without any document scored in both runs is missing too, and so is that of a group around it.
    ``allow`` leaves such gates unjudged.
    """
    there, tasks = {(gate.name, gate.key) for gate in gates}, {one.task.name for one in run.scored}
    known = [one for one in numbers_of_side(baseline) if wanted(one)]
    absent = tuple(
        Gate(kind="baseline", name=name, key=key, passed=None, verdict=NO_METRIC if name in tasks else NO_TASK)
        for name, key in known
        if (name, key) not in there
    )
    lost = {(gate.name, gate.key) for gate in (*gates, *absent) if _is_empty(gate)} & set(known)
    below = {group.name: {leaf.name for leaf in all_tasks(group)} for group in list_groups(baseline.trees)}

    def fail_empty(gate: Gate) -> Gate:
        if not _is_empty(gate):
            return gate
        if (gate.name, gate.key) in lost:
            return _fail_gate(gate, NO_SCORE, allow)
        around = any((name, gate.key) in lost for name in below.get(gate.name, ()))
        return _fail_gate(gate, NO_TASKS, allow) if around else gate

    return (*map(fail_empty, gates), *(_fail_gate(gate, gate.verdict, allow) for gate in absent))


def _is_empty(gate: Gate) -> bool:
    return gate.passed is None and gate.difference is None


def _fail_gate(gate: Gate, why: str, allow: bool) -> Gate:
    return replace(gate, passed=None if allow else False, verdict=f"missing: {why}")


def numbers_of_side(side: ComparisonSide) -> Iterator[Number]:
    """List the numbers of a run's tasks with a score for at least one document."""
    for scored in side.scored:
        yield from ((scored.task.name, one.key) for one in scored.columns if one.column.scored.any())


def warn_of_draws(comparisons: Iterable[Comparison], draws: int, alpha: float) -> tuple[str, ...]:
    """Warn if so few sign flips were drawn that no p-value, at best 1 in draws, can pass the correction.

    >>> from evalcore.core.records.task import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("f1"), p_value=0.001, draws=1000)
    >>> one = adjust_comparisons([Comparison(names=("a", "b"), lines=(line,) * 60)])
    >>> warn_of_draws(one, 1000, 0.05)
    ('too few sign flips to show anything among 60 tests; use --draws 12000',)
    >>> warn_of_draws(one, 10_000, 0.05), warn_of_draws(adjust_comparisons(one, "none"), 1000, 0.05)
    ((), ())
    """
    given = tuple(comparisons)
    family = max((one.family for one in given if one.correction.corrects), default=1)
    flipped = any(line.draws is not None for one in given for line in one.lines)
    if not flipped or family <= alpha * (draws + 1):
        return ()
    return (f"too few sign flips to show anything among {family:,} tests; use --draws {round(10 * family / alpha)}",)
