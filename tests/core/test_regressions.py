"""A run against its baseline: what is missing, what has no score, margins, and units too few to tell."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import binom

from evalcore.core.compare.gates import Gate, level_of_limits
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.margins import tell_verdict
from evalcore.core.compare.verdicts.pair_gates import find_unscored
from evalcore.core.compare.verdicts.regressions import fail_missing, find_regressions
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.outcome import FAILED, OK
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task

KEY = MetricKey("exact_match")


def scored_of(task: str, scores: list[float | None], keys: list[MetricKey] | None = None) -> Scored:
    """A task's scores, the same under every key; None is a document that failed."""
    values = np.array([0.0 if one is None else one for one in scores])
    status = np.array([FAILED if one is None else OK for one in scores], np.uint8)
    rows = build_column(
        range(len(scores)), Floats(Array(values)), status, dict.fromkeys(np.flatnonzero(status).tolist(), "lost")
    )
    columns = tuple(ScoredColumn(key, rows, MetricSpec(key.metric)) for key in keys or [KEY])
    return Scored(Task(task, GENERATE_UNTIL, tuple(one.spec for one in columns)), columns)


def side_of(*scored: Scored, group: bool = True) -> ComparisonSide:
    leaves = tuple(Leaf(one.task.name, None) for one in scored)
    trees = (Group("all", leaves, (GroupMetric("exact_match"),)),) if group and leaves else ()
    return ComparisonSide("run", scored, {}, trees)


def held(run: ComparisonSide, baseline: ComparisonSide, allow: bool = False) -> dict[str, Gate]:
    gates = fail_missing(find_regressions(compare_sides(run, baseline)), run, baseline, allow=allow)
    return {f"{gate.name} {gate.key.metric}": gate for gate in gates}


FINE = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0]


# --- what is missing --------------------------------------------------------------------------------------------------


def test_a_task_that_the_run_lacks_fails_and_so_does_its_group() -> None:
    baseline = side_of(scored_of("a", FINE), scored_of("b", FINE))
    run = replace(side_of(scored_of("a", FINE)), trees=baseline.trees)
    found = held(run, baseline)
    assert {name: gate.passed for name, gate in found.items()} == {
        "a exact_match": True,
        "all exact_match": False,
        "b exact_match": False,
    }
    assert found["b exact_match"].verdict == "missing: the run has no such task"
    assert [gate.passed for gate in held(run, baseline, allow=True).values()] == [True, None, None]


def test_a_metric_that_the_run_lacks_fails() -> None:
    both = scored_of("a", FINE, [KEY, MetricKey("f1")])
    found = held(side_of(scored_of("a", FINE)), side_of(both))
    assert found["a f1"].passed is False
    assert found["a f1"].verdict == "missing: the run has no such metric"
    assert found["a exact_match"].passed is True
    assert "a f1" not in held(side_of(both), side_of(scored_of("a", FINE)))  # what only the run has is no gate


def test_a_task_without_any_score_in_the_run_fails_and_one_without_any_in_the_baseline_does_not() -> None:
    lost, fine = side_of(scored_of("a", [None] * 10)), side_of(scored_of("a", FINE))
    assert held(lost, fine)["a exact_match"].passed is False
    assert held(lost, fine)["a exact_match"].verdict == "missing: no document has a score in both runs"
    assert held(fine, lost)["a exact_match"].passed is None


def test_only_wanted_numbers_are_missing() -> None:
    baseline = side_of(scored_of("a", FINE), scored_of("b", FINE), group=False)
    assert [gate.name for gate in fail_missing((), side_of(), baseline, lambda number: number[0] == "b")] == ["b"]


def test_the_share_without_a_score_is_counted_among_the_baselines_scored_documents() -> None:
    run = side_of(scored_of("a", [1.0, None, 1.0, None, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]))
    baseline = side_of(scored_of("a", [1.0, 1.0, 1.0, None, None, 0.0, 0.0, 0.0, 1.0, 1.0]), scored_of("b", FINE))
    a, b = find_unscored(run, baseline, 0.125)
    assert (a.value, a.n, a.unscored, a.passed) == (1 / 8, 8, 1, True)
    assert (b.value, b.passed) == (1.0, False)
    assert find_unscored(run, baseline, 0.124)[0].passed is False


def test_the_worst_metric_of_a_task_counts() -> None:
    f1 = MetricKey("f1")
    run = side_of(scored_of("a", FINE))
    (gate,) = find_unscored(run, side_of(scored_of("a", FINE, [KEY, f1])), 0.5)
    assert (gate.key, gate.value) == (f1, 1.0)


# --- margins ----------------------------------------------------------------------------------------------------------

FELL = ComparisonLine(
    name="t", key=KEY, a=0.5, b=0.7, difference=-0.2, ci=(-0.3, -0.1), p_value=0.001, higher_is_better=True, n=90
)


@pytest.mark.parametrize(
    ("line", "margin", "passed"),
    [
        (FELL, 0.05, False),
        (FELL, 0.1, True),
        (FELL, 0.0, False),
        (replace(FELL, higher_is_better=False), 0.05, True),
        (replace(FELL, higher_is_better=False, difference=0.2, ci=(0.1, 0.3)), 0.05, False),
        (replace(FELL, higher_is_better=False, difference=0.2, ci=(0.1, 0.3)), 0.1, True),
        (replace(FELL, ci=None), 0.05, None),
        (replace(FELL, higher_is_better=None), 0.05, None),
    ],
)
def test_with_a_margin_all_of_the_interval_must_be_worse_by_more(
    line: ComparisonLine, margin: float, passed: bool | None
) -> None:
    (gate,) = find_regressions(Comparison(names=("new", "old"), lines=(line,)), margin=margin)
    assert gate.passed is passed
    if passed is not None:
        assert gate.verdict == ("not shown to be " * passed) + f"worse by more than {margin:g}"


@pytest.mark.slow
def test_false_alarms_at_the_margin_are_at_most_alpha() -> None:
    """A run that is worse by exactly the margin, on ten tasks at once: some gate fails in about alpha of all checks."""
    rng, alpha, checks, margin, tasks, n = np.random.default_rng(5), 0.1, 150, 0.2, 10, 200
    level, alarms = level_of_limits(alpha, tasks), 0
    for _ in range(checks):
        old = {str(t): (rng.random(n) < 0.7).astype(float) for t in range(tasks)}
        new = {t: np.where(rng.random(n) < margin / 0.7, 0.0, scores) for t, scores in old.items()}
        a, b = (side_of(*(scored_of(t, list(one)) for t, one in side.items()), group=False) for side in (new, old))
        gates = find_regressions(compare_sides(a, b, confidence=level, draws=50), alpha=alpha, margin=margin)
        alarms += any(gate.passed is False for gate in gates)
    assert alarms <= binom.ppf(0.999, checks, alpha)


# --- too few units ----------------------------------------------------------------------------------------------------


def test_what_can_never_fail_is_skipped_with_the_reason_and_no_part_of_the_family() -> None:
    few = replace(
        FELL, name="few", least_p=0.125, p_value=0.125, reason="only 4 clusters: no p-value below 0.125 is possible"
    )
    found = find_regressions(Comparison(names=("new", "old"), lines=(few, FELL)))
    assert [gate.passed for gate in found] == [None, False]
    assert "only 4 clusters" in found[0].verdict
    assert found[1].adjusted == found[1].p_value  # the only one that was tested
    enough = replace(few, least_p=0.0625)  # half of it is what a one-sided p can be
    assert find_regressions(Comparison(names=("new", "old"), lines=(enough,)))[0].passed is True


def test_few_clusters_make_a_comparison_say_so() -> None:
    rng = np.random.default_rng(1)
    clusters = tuple((key, key // 25) for key in range(100))
    sides = [
        side_of(replace(scored_of("t", list((rng.random(100) < p).astype(float))), clusters=clusters), group=False)
        for p in (0.9, 0.1)
    ]
    line = replace(compare_sides(*sides).lines[0], adjusted=1.0)
    assert line.clusters == 4
    assert tell_verdict(line, 0.05) == "too few to tell"
    assert tell_verdict(replace(line, least_p=0.01), 0.05) == "no evidence"
    assert find_regressions(compare_sides(*reversed(sides)))[0].passed is None
