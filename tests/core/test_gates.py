"""Gates: what limits mean, who is better, and how often a baseline that did not change raises an alarm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import binom, binomtest, ttest_rel
from statsmodels.stats.multitest import multipletests

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.compare.gates import (
    Limit,
    judge_limit,
    judge_limits,
    level_of_limits,
    match_limits,
    numbers_of,
    parse_limit,
    select_numbers,
)
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide, Shared, adjust_comparisons
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.margins import tell_verdict
from evalcore.core.compare.verdicts.pair_gates import find_hidden
from evalcore.core.compare.verdicts.regressions import find_regressions, halve_p_value
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.stats.intervals import interval
from evalcore.core.stats.pair_tests import paired_binary

KEY = MetricKey("exact_match")


def scored_of(task: str, scores: np.ndarray) -> Scored:
    spec = MetricSpec("exact_match")
    rows = build_column(range(len(scores)), Floats(Array(scores.astype(float))))
    return Scored(Task(task, GENERATE_UNTIL, (spec,)), (ScoredColumn(KEY, rows, spec),))


def side_of(name: str, scores: dict[str, np.ndarray]) -> ComparisonSide:
    group = Group("all", tuple(Leaf(task, None) for task in scores), (GroupMetric("exact_match"),))
    return ComparisonSide(name, tuple(scored_of(task, one) for task, one in scores.items()), {}, (group,))


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [0, 12, 25, 33, 40])
@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.95])
def test_a_minimum_fails_exactly_where_the_one_sided_bound_is_below_it(right: int, at: float) -> None:
    alpha = 0.05
    scores = np.array([1.0] * right + [0.0] * (40 - right))
    inference = Inference(confidence=1 - 2 * alpha, interval="exact")
    report = build_report([report_task(scored_of("t", scores), inference=inference)])
    estimate = report.task("t")[KEY]
    (gate,) = judge_limits([Limit("min", "exact_match", at)], numbers_of(report))
    low, high = estimate.ci
    assert gate.passed is (high >= at)
    assert gate.verdict == ("met" if low >= at else "below" if high < at else "not shown to be below")
    assert gate.passed is bool(binomtest(right, 40, at, alternative="less").pvalue > alpha)


@pytest.mark.parametrize("sizes", [range(5, 100), range(100, 201)])
def test_false_alarms_of_a_limit_summed_exactly(sizes: range) -> None:
    """A model exactly at its limit fails in at most 5.0 % of all checks, for every number of documents and limit.

    The rate is highest where the limit has just passed the upper end of some outcome's interval.
    """
    for n in sizes:
        shares = np.arange(n + 1) / n
        ends = [
            interval(share, variance=share * (1 - share) / n, n=n, df=n - 1, confidence=0.9, method="exact")
            for share in shares.tolist()
        ]
        lows, highs = np.array(ends).T
        limits = np.concatenate([np.linspace(0.005, 0.995, 199), highs[:-1] + 1e-9])
        below = binom.cdf(np.searchsorted(highs, limits) - 1, n, limits)
        assert below.max() <= 0.05 + 1e-9, (n, below.max())
        limits = np.concatenate([np.linspace(0.005, 0.995, 199), lows[1:] - 1e-9])
        above = binom.sf(np.searchsorted(lows, limits, side="right") - 1, n, limits)
        assert above.max() <= 0.05 + 1e-9, (n, above.max())


def draw_scores(family: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Scores between 0 and 1 and their true mean."""
    if family == "repeats":  # means of four replies
        return rng.binomial(4, rng.beta(0.9, 0.1, n)) / 4, 0.9
    if family == "token F1":
        return np.where(rng.random(n) < 0.8, 1.0, rng.beta(2, 2, n)), 0.9
    if family == "alike":
        return rng.beta(50, 50, n), 0.5
    return rng.beta(8, 2, n), 0.8


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("family", ["repeats", "token F1", "alike", "smooth", "clusters", "group"])
def test_false_alarms_of_a_limit_on_other_numbers(family: str, n: int) -> None:
    """Clusters, repeats, scores that are not only 0 and 1, and groups: at most about alpha, simulated."""
    rng, checks, alarms = np.random.default_rng(n), 1000, 0
    exact = Inference(confidence=level_of_limits(0.05, 1), interval="exact")
    for _ in range(checks):
        if family == "clusters":  # of five, with a correlation of 0.3
            hard = np.repeat(rng.beta(0.9 * 7 / 3, 0.1 * 7 / 3, n // 5), 5)
            scores, truth = (rng.random(n) < hard).astype(float), 0.9
            clusters = tuple((key, key // 5) for key in range(n))
            reports = [report_task(replace(scored_of("t", scores), clusters=clusters), inference=exact)]
        elif family == "group":  # of three tasks, of uneven difficulty
            truths, truth = (0.95, 0.9, 0.7), 0.85
            parts = [scored_of(str(at), rng.random(n // 2) < share) for at, share in enumerate(truths)]
            reports = [report_task(part, inference=exact) for part in parts]
        else:
            scores, truth = draw_scores(family, n, rng)
            reports = [report_task(scored_of("t", scores), inference=exact)]
        tree = Group(
            "all", tuple(Leaf(one.name, None) for one in reports), (GroupMetric("exact_match", weight_by_size=False),)
        )
        known = numbers_of(build_report(reports, (tree,), inference=exact))
        at = ("all" if family == "group" else "t", KEY)
        alarms += judge_limit(Limit("min", "exact_match", truth), at, known[at]).passed is False
    assert alarms <= binom.ppf(0.9999, checks, 0.055), alarms / checks


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_a_maximum_is_the_minimum_of_the_mirror_image(
    value: float, x: float, y: float, at: float, strict: bool
) -> None:
    number, ci = ("t", KEY), (min(x, y), max(x, y))
    least = judge_limit(Limit("min", "m", at), number, Estimate(value=value, ci=ci), strict=strict)
    mirrored = Estimate(value=-value, ci=(-ci[1], -ci[0]))
    most = judge_limit(Limit("max", "m", -at), number, mirrored, strict=strict)
    assert least.passed is most.passed
    assert most.verdict == least.verdict.replace("below", "above")
    if strict:
        assert least.passed is (value >= at)


def test_a_number_without_an_interval_is_judged_itself_and_one_without_a_value_fails() -> None:
    number = ("t", KEY)
    assert judge_limit(Limit("min", "m", 0.5), number, Estimate(value=0.49)).passed is False
    assert judge_limit(Limit("min", "m", 0.5), number, Estimate(value=0.5)).passed is True
    none = judge_limit(Limit("min", "m", 0.5), number, Estimate(value=None, reason="no document has a score"))
    assert (none.passed, none.verdict) == (False, "no value (no document has a score)")


@pytest.mark.parametrize("text", ["acc", "=0.5", "acc=", "acc=high", "acc=nan", "acc=inf", ""])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(EvalError, match="KEY=VALUE"):
        parse_limit("min", text)


def test_a_key_means_every_number_that_it_fits() -> None:
    strict, raw = MetricKey("em", "strict"), MetricKey("em", "raw")
    known = [("a", strict), ("a", raw), ("org/b", strict), ("g", MetricKey("acc"))]
    assert select_numbers("em", known) == tuple(known[:3])
    assert select_numbers("em,strict", known) == (known[0], known[2])
    assert select_numbers("a/em", known) == tuple(known[:2])
    assert select_numbers("org/b/em,strict", known) == (known[2],)
    with pytest.raises(EvalError, match="did you mean 'g/acc'"):
        select_numbers("g/ac", known)
    with pytest.raises(EvalError, match="did you mean 'em,strict'") as wrong:
        select_numbers("em,strct", known)
    assert "a/em" not in str(wrong.value)


def test_globs_mean_all_that_they_match_and_names_with_brackets_mean_themselves() -> None:
    known = [("mmlu_a", KEY), ("mmlu_b", KEY), ("a[1]", KEY), ("a1", KEY)]
    assert select_numbers("mmlu_*/exact_match", known) == tuple(known[:2])
    assert select_numbers("*/exact_match,none", known) == tuple(known)
    assert select_numbers("a[1]/exact_match", known) == (known[2],)
    with pytest.raises(EvalError, match="unknown number"):
        select_numbers("gsm*/exact_match", known)


def test_false_alarms_of_many_limits_are_at_most_alpha() -> None:
    """Twenty tasks whose true score is the limit itself: some gate fails in at most alpha of all checks."""
    rng, alpha, checks, tasks, n = np.random.default_rng(3), 0.1, 200, 20, 100

    def fails(level: float) -> bool:
        inference = Inference(confidence=level, interval="exact")
        reports = [report_task(scored_of(str(t), rng.random(n) < 0.7), inference=inference) for t in range(tasks)]
        limits, known = [Limit("min", "exact_match", 0.7)], numbers_of(build_report(reports))
        assert len(match_limits(limits, known)) == tasks
        return any(gate.passed is False for gate in judge_limits(limits, known))

    corrected = sum(fails(level_of_limits(alpha, tasks)) for _ in range(checks))
    assert corrected <= binom.ppf(0.999, checks, alpha)
    assert sum(fails(level_of_limits(alpha, 1)) for _ in range(20)) >= 10  # uncorrected, most checks fail


# --- one-sided p-values -----------------------------------------------------------------------------------------------


def test_one_sided_is_scipys_one_sided_t_test() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.normal(size=(2, 15))
        two = ttest_rel(a, b).pvalue
        assert halve_p_value(two, a.mean() - b.mean()) == pytest.approx(
            ttest_rel(a, b, alternative="less").pvalue, abs=1e-12
        )


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (3, 3), (2, 9), (9, 2), (0, 7), (1, 0)])
def test_one_sided_is_the_lower_mid_p_of_mcnemar(wins: int, losses: int) -> None:
    a = np.array([1.0] * wins + [0.0] * losses + [1.0, 0.0])
    b = np.array([0.0] * wins + [1.0] * losses + [1.0, 0.0])
    found = paired_binary(a, b)
    assert found.p_value is not None
    tail = binom.cdf(wins, wins + losses, 0.5) - binom.pmf(wins, wins + losses, 0.5) / 2
    assert halve_p_value(found.p_value, found.difference) == pytest.approx(tail, abs=1e-12)


# --- baselines --------------------------------------------------------------------------------------------------------

FELL = ComparisonLine(name="t", key=KEY, a=0.5, b=0.7, difference=-0.2, p_value=0.04, higher_is_better=True, n=90)


def judged(*lines: ComparisonLine, **options: object) -> list[bool | None]:
    found = find_regressions(Comparison(names=("new", "old"), lines=lines), **options)  # type: ignore[arg-type]
    return [gate.passed for gate in found]


def test_what_fails_is_a_fall_in_the_worse_direction() -> None:
    assert judged(FELL) == [False]
    assert judged(replace(FELL, difference=0.2)) == [True]
    assert judged(replace(FELL, higher_is_better=False)) == [True]
    assert judged(replace(FELL, higher_is_better=False, difference=0.2)) == [False]
    assert judged(replace(FELL, higher_is_better=None)) == [None]
    assert judged(replace(FELL, p_value=None, reason="no influence")) == [None]
    assert judged(FELL, alpha=0.02) == [False]
    assert judged(FELL, alpha=0.019) == [True]


def test_all_numbers_are_one_family_and_what_is_not_judged_is_no_part_of_it() -> None:
    calm = [replace(FELL, name=str(at), p_value=0.9) for at in range(2)]
    assert judged(FELL, *calm) == [True, True, True]
    assert judged(FELL, *calm, correction="none") == [False, True, True]
    assert judged(FELL, *(replace(one, higher_is_better=None) for one in calm)) == [False, None, None]


def test_a_gate_that_is_not_judged_says_why() -> None:
    lines = (replace(FELL, higher_is_better=None), replace(FELL, p_value=None, reason="too few clusters"))
    found = find_regressions(Comparison(names=("new", "old"), lines=lines))
    assert [gate.verdict for gate in found] == [
        "not judged: its direction is unknown (--higher_is_better, --lower_is_better)",
        "not judged: too few clusters",
    ]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_false_alarms_on_one_task_counted_exactly(alpha: float) -> None:
    """Over every outcome that two runs of n documents can have, if neither is better and they differ on a share."""
    most = 100

    def alarm(worse: int, differing: int) -> bool:
        b = np.array([1.0] * worse + [0.0] * (differing - worse) + [0.0])
        found = paired_binary(np.append(1.0 - b[:-1], 0.0), b)
        line = replace(FELL, difference=found.difference, p_value=found.p_value)
        return judged(line, alpha=alpha) == [False]

    by_differing = np.array(
        [sum(binom.pmf(w, d, 0.5) for w in range(d // 2, d + 1) if alarm(w, d)) for d in range(most + 1)]
    )
    for n in (10, 30, most):
        for share in (0.05, 0.1, 0.2, 0.3, 0.5):
            rate = float(binom.pmf(np.arange(n + 1), n, share) @ by_differing[: n + 1])
            assert rate <= alpha * 1.02, (n, share, rate)
            assert n * share < 10 or rate >= 0.4 * alpha, (n, share, rate)


@pytest.mark.parametrize("checks", [100, pytest.param(600, marks=pytest.mark.slow)])
def test_false_alarms_of_a_whole_check_and_what_it_finds(checks: int) -> None:
    """Three tasks and their group as one family: with no change at most alpha, with a real fall nearly always."""
    rng, alpha = np.random.default_rng(7), 0.1

    def checked(fall: float) -> bool:
        """Whether some gate fails. Both runs find the same documents hard, as two versions of a model do."""
        new, old = {}, {}
        for task, n in (("a", 30), ("b", 60), ("c", 120)):
            hard = rng.beta(2, 1, n)
            old[task] = (rng.random(n) < hard).astype(float)
            new[task] = (rng.random(n) < hard - fall).astype(float)
        comparison = compare_sides(side_of("new", new), side_of("old", old), draws=400)
        gates = find_regressions(comparison, alpha=alpha)
        assert len(gates) == 4
        return any(gate.passed is False for gate in gates)

    alarms = sum(checked(0.0) for _ in range(checks))
    assert alarms <= binom.ppf(0.999, checks, alpha)
    assert sum(checked(0.3) for _ in range(20)) >= 19


# --- verdicts ---------------------------------------------------------------------------------------------------------


@given(st.floats(-1, 1), st.floats(0, 1), st.sampled_from([True, False, None]))
def test_swapping_the_runs_swaps_the_verdict(difference: float, p: float, higher: bool | None) -> None:
    line = replace(FELL, difference=difference, adjusted=p, higher_is_better=higher)
    swapped = tell_verdict(replace(line, difference=-difference), 0.05, ("B", "A"))
    assert tell_verdict(line, 0.05) == swapped


def test_verdicts_in_words() -> None:
    line = replace(FELL, adjusted=0.05)
    assert tell_verdict(line, 0.05) == "B better"
    assert tell_verdict(line, 0.049) == "no evidence"
    assert tell_verdict(replace(line, higher_is_better=False), 0.05, ("X", "Y")) == "X better"
    assert tell_verdict(replace(line, higher_is_better=None), 0.05) == "B higher"
    assert tell_verdict(replace(line, adjusted=None), 0.05) == "not tested"


def test_a_line_without_a_p_value_is_no_part_of_the_family() -> None:
    p_values = [0.01, None, 0.04, None, 0.02, None]
    lines = tuple(ComparisonLine(name=str(at), key=KEY, p_value=p) for at, p in enumerate(p_values))
    parts = [Comparison(names=("a", "b"), lines=lines[:2]), Comparison(names=("a", "c"), lines=lines[2:])]
    for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh")):
        found = adjust_comparisons(parts, ours)
        adjusted = [line.adjusted for one in found for line in one.lines]
        wanted = multipletests([p for p in p_values if p is not None], method=theirs)[1]
        assert [one for one in adjusted if one is not None] == pytest.approx(wanted.tolist())
        assert [one is None for one in adjusted] == [p is None for p in p_values]
        assert [one.family for one in found] == [3, 3]


def estimates(share: float) -> dict[tuple[str, MetricKey], Estimate]:
    scores = [1.0 if at < 100 * share else 0.0 for at in range(100)]
    return {
        ("t", MetricKey("m")): aggregate_metric(AGGREGATIONS["mean"], build_column(range(100), Floats(Array(scores))))
    }


@pytest.mark.parametrize(
    ("run", "baseline", "higher", "unclear", "hidden"),
    [
        (0.4, 0.6, True, True, True),
        (0.6, 0.4, True, True, False),
        (0.6, 0.4, False, True, True),
        (0.4, 0.6, False, True, False),
        (0.4, 0.6, None, True, False),
        (0.55, 0.6, True, True, False),  # as luck may have it
        (0.4, 0.6, True, False, False),
    ],
)
def test_pairs_without_ids_may_hide_that_a_run_is_worse(
    run: float, baseline: float, higher: bool | None, unclear: bool, hidden: bool
) -> None:
    line = ComparisonLine(name="t", key=MetricKey("m"), difference=0.0, higher_is_better=higher)
    comparison = Comparison(names=("new", "old"), lines=(line,))
    found = find_hidden(
        comparison, [Shared("t", 60, (1,), (2,), unclear=unclear)], (estimates(run), estimates(baseline))
    )
    assert [gate.passed for gate in found] == [False] * hidden
