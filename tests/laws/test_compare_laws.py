"""Comparing runs: a run with itself, swapped sides, clusters of one, groups of one, groups as sums of their tasks."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import GENERATE_UNTIL, MULTIPLE_CHOICE, MetricKey, MetricSpec, Task
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide
from evalcore.core.compare.sides import compare_sides
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.row import Rows
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.stats import Array, Floats, Labels, build_column

BITS = st.sampled_from([0.0, 1.0])
PARTS = st.sampled_from([0.0, 0.25, 0.5, 1.0])
DRAWS = 99


def scored(task: str, rows: Rows, n: int, metric: str, clusters: list[int] | None = None) -> Scored:
    kind = MULTIPLE_CHOICE if metric in ("acc", "f1", "mcc") else GENERATE_UNTIL
    spec = MetricSpec(metric, options={"average": "macro"} if metric == "f1" else {})
    one = ScoredColumn(MetricKey(metric), build_column(range(n), rows), spec)
    return Scored(Task(task, kind, (spec,)), (one,), clusters=tuple(enumerate(clusters or ())))


def side(name: str, tasks: dict[str, list[float]], *, metric: str = "acc", trees=(), clusters=None) -> ComparisonSide:
    made = tuple(
        scored(task, Floats(Array(np.array(scores))), len(scores), metric, (clusters or {}).get(task))
        for task, scores in tasks.items()
    )
    return ComparisonSide(name, made, trees=trees)


def compared(a: ComparisonSide, b: ComparisonSide) -> Comparison:
    return compare_sides(a, b, draws=DRAWS)


def numbers(line: ComparisonLine) -> tuple[object, ...]:
    return line.difference, line.stderr, line.ci, line.p_value, line.detectable


@st.composite
def two_runs(draw, scores=BITS, tasks=("t", "u", "v"), fewest=2):
    sizes = [draw(st.integers(fewest, 12)) for _ in tasks]
    return tuple(
        {task: draw(st.lists(scores, min_size=n, max_size=n)) for task, n in zip(tasks, sizes, strict=True)}
        for _ in "ab"
    )


def tree(weights: dict[str, float] | None = None, *, by_size: bool = True) -> tuple[Group[object], ...]:
    inner = Group("inner", (Leaf("u", None), Leaf("v", None)), (GroupMetric("acc", weight_by_size=by_size),))
    spec = GroupMetric("acc", weight_by_size=by_size, average="children" if not by_size else "leaves")
    return (Group("outer", (Leaf("t", None), inner), (spec,)),)


@pytest.mark.parametrize("scores", [BITS, PARTS], ids=["bits", "parts"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_run_against_itself_is_exactly_zero_with_p_1(scores, data):
    run, _ = data.draw(two_runs(scores))
    clusters = {task: [i // 2 for i in range(len(found))] for task, found in run.items()}
    for declared in (None, clusters):
        one = side("a", run, trees=tree(), clusters=declared)
        for line in compared(one, one).lines:
            assert line.difference == 0
            assert line.p_value == 1
            assert (line.better, line.worse) == ((), ())


@pytest.mark.parametrize("scores", [BITS, PARTS], ids=["bits", "parts"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_swapping_the_runs_flips_the_sign_and_nothing_else(scores, data):
    one, two = (side(name, run, trees=tree()) for name, run in zip("ab", data.draw(two_runs(scores)), strict=True))
    for line, back in zip(compared(one, two).lines, compared(two, one).lines, strict=True):
        assert (line.difference, line.stderr, line.p_value) == (
            None if back.difference is None else -back.difference,
            back.stderr,
            back.p_value,
        )
        assert (line.better, line.worse) == (back.worse, back.better)
        if line.ci is not None and back.ci is not None:
            assert line.ci == pytest.approx((-back.ci[1], -back.ci[0]), abs=1e-12)


@pytest.mark.parametrize("scores", [BITS, PARTS], ids=["bits", "parts"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_clusters_of_one_are_plain(scores, data):
    runs = data.draw(two_runs(scores))
    alone = {task: [100 * k + i for i in range(len(found))] for k, (task, found) in enumerate(runs[0].items())}
    plain = compared(*(side("a", run, trees=tree()) for run in runs))
    singles = compared(*(side("a", run, trees=tree(), clusters=alone) for run in runs))
    assert [numbers(line) for line in plain.lines] == [numbers(line) for line in singles.lines]


@settings(max_examples=40, deadline=None)
@given(runs=two_runs(tasks=("t",)), clustered=st.booleans())
def test_a_group_of_one_task_is_the_task(runs, clustered):
    trees = (Group("only", (Leaf("t", None),), (GroupMetric("acc"),)),)
    clusters = {"t": [i // 3 for i in range(len(runs[0]["t"]))]} if clustered else None
    task, group = compared(*(side("a", run, trees=trees, clusters=clusters) for run in runs)).lines
    assert (task.name, group.name, group.group) == ("t", "only", True)
    assert numbers(task) == numbers(group)


@pytest.mark.parametrize("by_size", [True, False])
@settings(max_examples=40, deadline=None)
@given(runs=two_runs())
def test_through_a_group_it_is_the_comparison_of_its_tasks_weighted(by_size, runs):
    lines = {line.name: line for line in compared(*(side("a", run, trees=tree(by_size=by_size)) for run in runs)).lines}
    sizes = {task: len(found) for task, found in runs[0].items()}
    total = sum(sizes.values())
    weights = {task: n / total for task, n in sizes.items()} if by_size else {"t": 0.5, "u": 0.25, "v": 0.25}
    assert lines["outer"].difference == pytest.approx(
        sum(weight * lines[task].difference for task, weight in weights.items()), abs=1e-12
    )
    assert lines["outer"].stderr == pytest.approx(
        sum((weight * lines[task].stderr) ** 2 for task, weight in weights.items()) ** 0.5, abs=1e-12
    )


@settings(max_examples=30, deadline=None)
@given(runs=two_runs(PARTS, tasks=("t",), fewest=4), dice=st.randoms())
def test_documents_are_matched_by_what_they_say_in_any_order(runs, dice: random.Random):
    n = len(runs[0]["t"])
    order = list(range(n))
    dice.shuffle(order)
    texts = [f"doc {i // 2}" for i in range(n)]  # two of each: the how-manieth tells them apart
    tables = tuple(DocumentRow(i, None, None, texts[i], i % 2) for i in range(n))
    mixed = tuple(DocumentRow(at, None, None, texts[i], i % 2) for at, i in enumerate(order))
    one = side("a", {"t": runs[0]["t"]})
    two = side("b", {"t": runs[1]["t"]})
    turned = side("b", {"t": [runs[1]["t"][i] for i in order]})
    plain = compared(one, two)
    found = compared(
        ComparisonSide("a", one.scored, {"t": tables}, one.trees),
        ComparisonSide("b", turned.scored, {"t": mixed}, turned.trees),
    )
    assert [numbers(line) for line in plain.lines] == [numbers(line) for line in found.lines]
    assert plain.lines[0].better == found.lines[0].better


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_classes_that_only_one_run_predicts_do_not_break_the_swap(metric):
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 3, 60)
    runs = [np.where(rng.random(60) < 0.7, gold, rng.integers(0, k, 60)) for k in (3, 2)]
    sides = [
        ComparisonSide("x", (scored("t", Labels(Array(np.stack([gold, run], axis=1))), 60, metric),)) for run in runs
    ]
    found = compared(*sides).lines[0]
    assert found.p_value is not None
    assert 0 < found.p_value <= 1
    assert compared(sides[0], sides[0]).lines[0].p_value == 1
