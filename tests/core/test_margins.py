"""Margins: how often "the same" and "not worse by more" are wrong, against statsmodels, and what could be found."""

from __future__ import annotations

from functools import cache
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import binom
from statsmodels.stats.weightstats import ttost_paired

from evalcore.core.compare.gates import Gate
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide, adjust_comparisons
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.margins import exclude_drop, find_drop, hold_to_margin, score_margin, tell_verdict
from evalcore.core.compare.verdicts.regressions import find_regressions
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.stats.pair_tests import paired_binary
from evalcore.core.stats.quantiles import t_quantile
from evalcore.core.tables import EVALCORE, Tables

KEY = MetricKey("exact_match")
Scores = np.ndarray


def side_of(scores: dict[str, Scores], clusters: int | None = None) -> ComparisonSide:
    spec = MetricSpec("exact_match")
    made = []
    for task, one in scores.items():
        rows = build_column(range(len(one)), Floats(Array(one.astype(float))))
        codes = () if clusters is None else tuple((key, key // clusters) for key in range(len(one)))
        made.append(Scored(Task(task, GENERATE_UNTIL, (spec,)), (ScoredColumn(KEY, rows, spec),), clusters=codes))
    leaves = tuple(Leaf(task, None) for task in scores)
    return ComparisonSide("run", tuple(made), {}, (Group("all", leaves, (GroupMetric("exact_match"),)),))


UNBOUNDED = replace(
    EVALCORE,
    aggregations=EVALCORE.aggregations.set("mean", replace(EVALCORE.aggregations["mean"], bounds=(-inf, inf))),
)


def compare_scores(a: Scores, b: Scores, clusters: int | None = None, tables: Tables = EVALCORE) -> ComparisonLine:
    sides = (side_of({"t": one}, clusters) for one in (a, b))
    return compare_sides(*sides, draws=1, tables=tables).lines[0]


def same(line: ComparisonLine, margin: float) -> float:
    """The p-value of being the same within the margin."""
    held = hold_to_margin(adjust_comparisons([Comparison(names=("a", "b"), lines=(line,))]), margin)
    assert held[0].lines[0].p_same is not None
    return held[0].lines[0].p_same


def flip(scores: Scores, wins: float, losses: float, rng: np.random.Generator) -> Scores:
    """Right answers instead of wrong ones on this share of all documents, and wrong instead of right ones on that."""
    right = scores.mean()
    return np.where(
        rng.random(len(scores)) < np.where(scores > 0, losses / right, wins / (1 - right)), 1 - scores, scores
    )


# --- real-valued scores -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_two_one_sided_t_tests_are_those_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 80))
    b, apart = rng.normal(3, 2, 2 * n), rng.normal(0, 0.5, n)
    a = b + rng.normal(0, 0.2) + np.r_[apart, -apart]
    line = compare_scores(a, b, tables=UNBOUNDED)  # differences without skew, so that the interval is Student's
    for margin in (0.05, 0.2, 0.5, 2.0):
        p, (_, lower, _), (_, upper, _) = ttost_paired(a, b, -margin, margin)
        assert same(line, margin) == pytest.approx(p, rel=1e-6, abs=1e-12)
        assert exclude_drop(line, margin, 0.95) == pytest.approx(lower, rel=1e-6, abs=1e-12)
        less = exclude_drop(replace(line, higher_is_better=False), margin, 0.95)
        assert less == pytest.approx(upper, rel=1e-6, abs=1e-12)


@given(st.floats(-1, 1), st.floats(0.01, 2), st.integers(3, 200), st.floats(0.01, 3))
def test_the_same_is_what_the_interval_of_twice_alpha_lies_within(
    middle: float, error: float, n: int, margin: float
) -> None:
    def reach(confidence: float) -> tuple[float, float]:
        half = error * t_quantile((1 + confidence) / 2, n - 1)
        return middle - half, middle + half

    line = ComparisonLine(name="t", key=KEY, difference=middle, stderr=error, ci=reach(0.95), n=n, group=True)
    low, high = reach(0.9)
    if min(abs(low + margin), abs(high - margin)) > 1e-6:
        assert (same(line, margin) <= 0.05) is (-margin < low and high < margin)


# --- right and wrong answers ------------------------------------------------------------------------------------------


@cache
def excluded(n: int, differing: int, margin: float, both: bool) -> np.ndarray:
    """For each number of wins among the documents that differ: whether the test says "the same" ("not worse")."""
    found = []
    for wins in range(differing + 1):
        p_value = score_margin(n, wins, differing - wins, margin)
        other = score_margin(n, differing - wins, wins, margin) if both else 0.0
        found.append(max(p_value, other) <= 0.05)
    return np.array(found)


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("margin", [0.01, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("n", [20, 50, 100, 300, 1000])
def test_a_run_that_is_worse_by_the_margin_is_called_the_same_in_at_most_5_percent(
    n: int, margin: float, both: bool
) -> None:
    """Summed over all outcomes, whatever the share of other documents on which the runs differ."""
    for others in (0.0, 0.002, 0.01, 0.05, 0.2):
        wins, losses = others / 2, others / 2 + margin
        low, high = binom.ppf([1e-7, 1 - 1e-7], n, wins + losses).astype(int)
        rate = sum(
            binom.pmf(differing, n, wins + losses)
            * (
                binom.pmf(np.arange(differing + 1), differing, wins / (wins + losses))
                @ excluded(n, differing, margin, both)
            )
            for differing in range(low, high + 1)
        )
        assert rate <= 0.05, (others, rate)
        if both and margin * n >= 20 and others <= 0.01:
            assert rate >= 0.02, (others, rate)  # and not because it never says so


def test_two_equal_runs_are_found_to_be_the_same_with_enough_documents() -> None:
    """One percent of 2,000 documents flips either way."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(40):
        b = (rng.random(2000) < 0.8).astype(float)
        found += same(compare_scores(flip(b, 0.01, 0.01, rng), b), 0.01) <= 0.05
    assert found >= 30


def test_counts_are_used_where_every_document_that_differs_differs_by_one() -> None:
    rng = np.random.default_rng(2)
    b = (rng.random(200) < 0.7).astype(float)
    a = np.where(rng.random(200) < 0.1, 1 - b, b)
    line = compare_scores(a, b)
    wins, losses = int(np.sum(a > b)), int(np.sum(a < b))
    assert exclude_drop(line, 0.05, 0.95) == score_margin(200, wins, losses, 0.05)
    assert exclude_drop(replace(line, higher_is_better=False, better=line.worse, worse=line.better), 0.05, 0.95) == (
        score_margin(200, losses, wins, 0.05)
    )
    halves = compare_scores(a / 2, b / 2)
    assert exclude_drop(halves, 0.05, 0.95) != score_margin(200, wins, losses, 0.05)
    grades = compare_scores(a + 4, b + 4, tables=UNBOUNDED)
    assert exclude_drop(grades, 0.05, 0.95) != score_margin(200, wins, losses, 0.05)
    clustered = compare_scores(a, b, clusters=5)
    assert exclude_drop(clustered, 0.05, 0.95) != score_margin(200, wins, losses, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["clusters", "group", "repeats", "smooth"])
def test_other_scores_that_are_worse_by_the_margin_are_rarely_called_the_same(family: str) -> None:
    rng, checks, wrong, margin = np.random.default_rng(3), 250, 0, 0.05
    for _ in range(checks):
        if family == "clusters":
            b = (rng.random(300) < 0.8).astype(float)
            a = np.where(rng.random(300) < 0.05, 1 - b, b)
            lost = np.repeat(rng.random(60) < (margin + 0.05 * 0.6) / (0.8 * 0.95 + 0.2 * 0.05), 5)
            line = compare_scores(np.where(lost, 0.0, a), b, clusters=5)
        elif family == "group":
            b = {task: (rng.random(150) < 0.8).astype(float) for task in "xy"}
            a = {task: np.where(rng.random(150) < margin / 0.8, 0.0, one) for task, one in b.items()}
            line = compare_sides(side_of(a), side_of(b), draws=1).lines[-1]
            assert line.group
        else:
            b = rng.beta(8, 2, 80) if family == "smooth" else rng.binomial(4, 0.8, 80) / 4
            away = rng.beta(8, 2, 80) - 0.8 if family == "smooth" else rng.binomial(4, 0.8, 80) / 4 - 0.8
            line = compare_scores(b + 0.5 * away - margin, b)
        wrong += same(line, margin) <= 0.05
    assert wrong <= binom.ppf(0.9999, checks, 0.05), wrong / checks


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=3, max_size=40), st.floats(0.001, 0.9))
def test_swapped_runs_are_as_much_the_same_and_a_wider_margin_holds_more(
    answers: list[tuple[bool, bool]], margin: float
) -> None:
    a, b = np.array(answers, float).T
    p_value = same(compare_scores(a, b), margin)
    assert 0 <= p_value <= 1
    assert p_value == pytest.approx(same(compare_scores(b, a), margin), abs=1e-12)
    assert same(compare_scores(a, b), margin * 1.1) <= p_value + 1e-12


# --- verdicts ---------------------------------------------------------------------------------------------------------

LINE = ComparisonLine(name="t", key=KEY, difference=0.004, higher_is_better=True, n=900)


@pytest.mark.parametrize(
    ("adjusted", "adjusted_same", "verdict"),
    [
        (0.3, 0.01, "the same within 0.01"),
        (0.3, 0.3, "not enough documents"),
        (0.01, 0.3, "A better"),
        (0.01, 0.01, "A better, by less than 0.01"),
        (None, None, "not tested"),
        (None, 0.01, "the same within 0.01"),
        (0.3, None, "not enough documents"),
    ],
)
def test_there_are_four_answers_and_one_that_is_two(
    adjusted: float | None, adjusted_same: float | None, verdict: str
) -> None:
    line = replace(LINE, adjusted=adjusted, adjusted_same=adjusted_same)
    assert tell_verdict(line, 0.05, margin=0.01) == verdict
    mirrored = replace(line, difference=-0.004)
    assert tell_verdict(mirrored, 0.05, margin=0.01) == verdict.replace("A better", "B better")
    assert "within" not in tell_verdict(line, 0.05)


def test_tests_of_the_same_are_corrected_as_the_others_are() -> None:
    rng = np.random.default_rng(4)
    pairs = [(b + rng.normal(0, spread, 40), b) for spread in (0.1, 0.4, 0.6, 0.9) for b in [rng.normal(3, 1, 40)]]
    lines = tuple(replace(compare_scores(a, b), name=str(at)) for at, (a, b) in enumerate(pairs))
    parts = [Comparison(names=("a", "b"), lines=lines[:1]), Comparison(names=("a", "c"), lines=lines[1:])]
    for correction in ("holm", "bh", "none"):
        held = hold_to_margin(adjust_comparisons(parts, correction), 0.3)
        plain = [line.p_same for one in held for line in one.lines]
        assert [line.adjusted_same for one in held for line in one.lines] == list(held[0].correction.adjust(plain))
        assert {one.margin for one in held} == {0.3}


# --- shown, and found -------------------------------------------------------------------------------------------------


def hold(line: ComparisonLine, **asked: object) -> Gate:
    comparison = Comparison(names=("new", "old"), lines=(line,), confidence=0.9)
    return find_regressions(comparison, **asked)[0]  # type: ignore[arg-type]


def test_what_must_be_shown_fails_unless_it_is() -> None:
    rng = np.random.default_rng(5)
    b = (rng.random(3000) < 0.8).astype(float)
    close, far = (np.where(rng.random(3000) < share, 0.0, b) for share in (0.001, 0.1))
    sides = {name: side_of({"t": one}) for name, one in (("close", close), ("far", far), ("b", b))}
    lines = {name: compare_sides(sides[name], sides["b"], confidence=0.9).lines[0] for name in ("close", "far")}
    shown = hold(lines["close"], margin=0.01, shown=True)
    assert (shown.passed, shown.verdict) == (True, "shown not to be worse by more than 0.01")
    fallen = hold(lines["far"], margin=0.01, shown=True)
    assert (fallen.passed, fallen.verdict) == (False, "worse by more than 0.01")
    few = compare_sides(side_of({"t": close[:100]}), side_of({"t": b[:100]}), confidence=0.9).lines[0]
    unclear = hold(few, margin=0.01, shown=True)
    assert (unclear.passed, unclear.verdict) == (False, "not enough documents to exclude a drop of more than 0.01")
    assert hold(few, margin=0.01).passed is True  # without --shown, only evidence of a drop fails
    unknown = hold(replace(few, higher_is_better=None), margin=0.01, shown=True)
    assert unknown.passed is False
    assert unknown.verdict.startswith("not shown: its direction is unknown")


@pytest.mark.slow
def test_a_run_that_is_worse_in_one_number_of_five_rarely_passes_what_must_be_shown() -> None:
    """All gates must pass, so that none of them needs a correction."""
    rng, checks, passed, margin, n = np.random.default_rng(6), 100, 0, 0.03, 400
    for _ in range(checks):
        old = {str(t): (rng.random(n) < 0.8).astype(float) for t in range(5)}
        new = {t: np.where(rng.random(n) < margin / 0.8, 0.0, one) if t == "3" else one for t, one in old.items()}
        comparison = compare_sides(side_of(new), side_of(old), confidence=0.9, draws=1)
        gates = find_regressions(comparison, margin=margin, shown=True)
        passed += all(gate.passed for gate in gates)
    assert passed <= binom.ppf(0.9999, checks, 0.05)


@cache
def most_wins(differing: int, alpha: float) -> int:
    """The most wins with which McNemar's mid-p test, one-sided, still finds that the run is worse."""
    wins = np.arange(differing // 2 + 1)
    p_values = (binom.cdf(wins, differing, 0.5) + binom.cdf(wins - 1, differing, 0.5)) / 2
    found = np.flatnonzero((p_values <= alpha) & (2 * wins < differing))
    return int(found[-1]) if len(found) else -1


@pytest.mark.parametrize("family", [1, 10])
@pytest.mark.parametrize("others", [0.0, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("n", [50, 100, 300, 1000])
def test_the_detectable_drop_is_found_in_four_cases_of_five(n: int, others: float, family: int) -> None:
    """Two equal runs that differ on a share of documents tell a drop; its power is summed exactly, over draws of them."""
    rng, alpha, powers = np.random.default_rng(n), 0.05 / family, []
    for _ in range(30):
        moved = rng.binomial(n, others)
        wins = rng.binomial(moved, 0.5)
        a = np.array([1.0] * wins + [0.0] * (moved - wins) + [1.0] * (n - moved))
        b = np.array([0.0] * wins + [1.0] * (moved - wins) + [1.0] * (n - moved))
        found = paired_binary(a, b)
        line = replace(LINE, difference=found.difference, stderr=found.stderr, ci=found.ci, n=n)
        line = replace(line, better=tuple(range(wins)), worse=tuple(range(moved - wins)))
        drop = find_drop(line, alpha)
        assert drop is not None
        lost = min(others / 2 + drop, 1 - others / 2)
        differing = np.arange(n + 1)
        finds = binom.cdf(
            [most_wins(one, alpha) for one in differing.tolist()], differing, others / 2 / (others / 2 + lost)
        )
        powers.append(float(binom.pmf(differing, n, others / 2 + lost) @ finds))
    assert 0.77 <= np.mean(powers) <= (0.82 if n >= 300 and others >= 0.05 else 0.99)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["group", "clusters"])
def test_the_detectable_drop_of_a_group_and_of_clusters_is_found_too(family: str) -> None:
    """The drop that equal runs tell, put into new ones and tested as a check does."""
    rng, found, checks, size = np.random.default_rng(8), 0, 100, 5 if family == "clusters" else None
    at = 0 if family == "clusters" else -1
    old = {task: (np.arange(150) % 5 > 0).astype(float) for task in "xy"}
    for _ in range(checks):
        still = {task: flip(one, 0.05, 0.05, rng) for task, one in old.items()}
        lines = compare_sides(side_of(still, size), side_of(old, size), confidence=0.9, draws=1).lines
        drop = find_drop(lines[at], 0.05, 0.0, lines)
        assert drop is not None
        new = {task: flip(one, 0.05, 0.05 + drop, rng) for task, one in old.items()}
        line = compare_sides(side_of(new, size), side_of(old, size), confidence=0.9, draws=200).lines[at]
        found += hold(line).passed is False
    assert 0.68 <= found / checks <= 0.92, found


def test_every_judged_gate_says_what_it_could_have_found() -> None:
    rng = np.random.default_rng(9)
    old = {task: (rng.random(200) < 0.8).astype(float) for task in "xyz"}
    new = {task: np.where(rng.random(200) < 0.05, 1 - one, one) for task, one in old.items()}
    comparison = compare_sides(side_of(new), side_of(old), confidence=0.9, draws=200)
    gates = find_regressions(comparison)
    by_name = {line.name: line for line in comparison.lines}
    for gate in gates:
        assert gate.detectable == find_drop(by_name[gate.name], 0.05 / len(gates), 0.0, comparison.lines)
    alone = find_regressions(comparison, correction="none")
    assert all(one.detectable < two.detectable for one, two in zip(alone, gates, strict=True))  # type: ignore[operator]
    beyond = find_regressions(comparison, margin=0.02)
    assert all(one.detectable >= two.detectable + 0.02 for one, two in zip(beyond, gates, strict=True))  # type: ignore[operator]
    assert hold(replace(LINE, higher_is_better=None, ci=(-0.1, 0.1), stderr=0.05)).detectable is None
