"""What a document does to numbers: against re-scoring without it, for every aggregation, rule and group."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from evalcore.core.aggregate.inference import DEFAULT, Inference
from evalcore.core.explain.contribution import Contribution, contributions, groups_above
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, Tree
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.array import Array, frozen
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.report import Report
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    OutputType,
    freeze_options,
)
from evalcore.core.records.row import Floats, Labels, Rows, Stats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task

ACC = MetricKey("acc")


def made(name: str, kind: OutputType, metric: str, given: Column) -> Scored:
    spec = MetricSpec(metric)
    return Scored(Task(name, kind, (spec,)), (ScoredColumn(MetricKey(metric), given, spec),))


def without(scored: Scored, doc: int) -> Scored:
    """The task as if the document had never been asked: built anew, row by row."""
    [one] = scored.columns
    rows = one.column.rows
    kept = [i for i, key in enumerate(one.column.keys.ints.tolist()) if key != doc]
    values = type(rows)(frozen(rows.values.data[kept]))  # type: ignore[union-attr]
    keys = [one.column.keys.ints.tolist()[i] for i in kept]
    again = build_column(keys, values, one.column.status.data[kept], dict(one.column.reasons))
    return replace(scored, columns=(replace(one, column=again),))


def reported(scored: list[Scored], trees: list[Tree[object]], inference: Inference = DEFAULT) -> Report:
    return build_report([report_task(one, inference=inference) for one in scored], trees, inference=inference)


def coin(stream: np.random.Generator, n: int) -> Rows:
    return Floats(frozen(stream.integers(0, 2, n).astype(np.float64)))


CASES = [
    (MULTIPLE_CHOICE, "acc", lambda s, n: coin(s, n)),
    (MULTIPLE_CHOICE, "brier_score", lambda s, n: Floats(frozen(s.uniform(0, 2, n)))),
    (MULTIPLE_CHOICE, "mcc", lambda s, n: Labels(frozen(s.integers(0, 2, (n, 2))))),
    (MULTIPLE_CHOICE, "f1", lambda s, n: Labels(frozen(s.integers(0, 2, (n, 2))))),
    (LOGLIKELIHOOD_ROLLING, "word_perplexity", lambda s, n: Stats(frozen(np.column_stack([-s.uniform(5, 90, n), s.integers(1, 30, n)])))),
    (GENERATE_UNTIL, "exact_match", lambda s, n: Floats(frozen(s.uniform(0, 1, n)))),
]  # fmt: skip
TREES: list[Group[object]] = [
    Group("top", (Leaf("a", None), Group("inner", (Leaf("b", None), Leaf("c", None)), (GroupMetric("M"),))), (GroupMetric("M", weight_by_size=False),)),
    Group("top", (Leaf("a", None), Group("inner", (Leaf("b", None), Leaf("c", None)))), (GroupMetric("M", aggregation="macro", average="children", weight_by_size=False),)),
    Group("top", (Leaf("a", None), Leaf("b", None), Leaf("c", None)), (GroupMetric("M", aggregation="pool"),)),
    Group("top", (Leaf("a", None), Leaf("b", None), Leaf("c", None)), (GroupMetric("M", aggregation="macro", weights=freeze_options(a=1, b=2, c=5)),)),
]  # fmt: skip


def named(tree: Tree[object], metric: str) -> Tree[object]:
    if isinstance(tree, Leaf):
        return tree
    return replace(
        tree,
        children=tuple(named(one, metric) for one in tree.children),
        metrics=tuple(replace(one, metric=metric) for one in tree.metrics),
    )


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(("kind", "metric", "draw"), CASES)
def test_without_it_is_the_report_without_the_document(kind, metric, draw, tree) -> None:  # type: ignore[no-untyped-def]
    stream = np.random.default_rng(5)
    sides = [
        made(name, kind, metric, build_column(range(n), draw(stream, n)))
        for name, n in (("a", 12), ("b", 9), ("c", 20))
    ]
    trees = [named(tree, metric)]
    report = reported(sides, trees)
    for doc in (0, 3, 8):
        found = contributions(report, "b", doc)
        oracle = reported([without(one, doc) if one.task.name == "b" else one for one in sides], trees)
        values = {
            (part.name, key): estimate.value
            for part in (*oracle.tasks, *oracle.groups)
            for key, estimate in part.estimates
        }
        assert {one.name for one in found} >= {"b"}
        for one in found:
            assert one.without == pytest.approx(values[one.name, one.key], rel=1e-12), one
        above = {group.name for group in report.groups if group.estimates}
        none = {group.name for group in report.groups if all(e.value is None for _, e in group.estimates)}
        assert above - none <= {one.name for one in found}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(("kind", "metric", "draw"), CASES)
def test_influences_of_a_task_sum_to_zero(kind, metric, draw, tree) -> None:  # type: ignore[no-untyped-def]
    stream = np.random.default_rng(6)
    sides = [
        made(name, kind, metric, build_column(range(n), draw(stream, n)))
        for name, n in (("a", 12), ("b", 9), ("c", 20))
    ]
    report = reported(sides, [named(tree, metric)])
    sums: dict[str, list[float]] = {}
    for doc in range(9):
        for one in contributions(report, "b", doc):
            if one.influence is not None:
                sums.setdefault(one.name, []).append(one.influence)
    assert "b" in sums
    for name, parts in sums.items():
        assert len(parts) == 9, name
        assert sum(parts) == pytest.approx(0.0, abs=1e-12 * max(map(abs, parts)) * 1000 + 1e-15), name


def one_of(found: tuple[Contribution, ...], name: str) -> Contribution:
    return next(one for one in found if one.name == name)


def test_of_a_mean_everything_is_arithmetic() -> None:
    """Of means the numbers can be worked out by hand: sums over counts, weights 1/n, pulls from the task's mean."""
    a, b = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.5, 0.25])
    sides = [made("a", MULTIPLE_CHOICE, "acc", build_column(range(4), Floats(frozen(a)))),
             made("b", MULTIPLE_CHOICE, "acc", build_column([10, 20], Floats(frozen(b))))]  # fmt: skip
    tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("acc"),))
    report = reported(sides, [tree])
    for doc, score in enumerate(a):
        found = contributions(report, "a", doc)
        task, group = one_of(found, "a"), one_of(found, "g")
        assert task.without == pytest.approx((a.sum() - score) / 3)
        assert group.without == pytest.approx((a.sum() + b.sum() - score) / 5)
        assert task.influence == pytest.approx((score - a.mean()) / 4)
        assert task.value - task.without == pytest.approx(task.influence * 4 / 3)  # type: ignore[operator]
        assert group.influence == pytest.approx((4 / 6) * (score - a.mean()) / 4)
        assert (task.weight, group.weight) == (1 / 4, pytest.approx(1 / 6))
        assert (task.group, group.group) == (False, True)


def test_a_document_without_a_score_moves_nothing_unless_it_counts_as_zero() -> None:
    status = np.array([0, 0, UNSCORABLE], np.uint8)
    scores = build_column([0, 1, 2], Floats(Array([1.0, 0.5, np.nan])), status, {2: "no gold"})
    side = made("a", MULTIPLE_CHOICE, "acc", scores)
    [one] = contributions(reported([side], []), "a", 2)
    assert (one.value, one.without, one.influence) == (0.75, 0.75, None)
    assert one.reason is not None
    zero = Inference(on_unscorable="zero")
    [one] = contributions(reported([side], [], zero), "a", 2, inference=zero)
    assert (one.value, one.without) == (0.5, 0.75)
    assert one.influence == pytest.approx(-0.5 / 3)


def test_the_only_document_leaves_no_number_and_says_so() -> None:
    side = made("a", MULTIPLE_CHOICE, "acc", build_column([0], Floats(Array([1.0]))))
    tree = Group("g", (Leaf("a", None),), (GroupMetric("acc", missing="fail"),))
    found = contributions(reported([side], [tree]), "a", 0)
    assert [one.without for one in found] == [None, None]
    assert all(one.reason for one in found)


def test_a_task_in_two_groups_is_in_both_and_in_no_other() -> None:
    sides = [made(name, MULTIPLE_CHOICE, "acc", build_column([0, 1], Floats(Array([1.0, 0.0])))) for name in "abc"]
    leaf = Leaf("b", None)
    trees: list[Tree[object]] = [
        Group("one", (Leaf("a", None), leaf), (GroupMetric("acc"),)),
        Group("two", (leaf, Leaf("c", None)), (GroupMetric("acc"),)),
        Group("three", (Leaf("c", None),), (GroupMetric("acc"),)),
    ]
    report = reported(sides, trees)
    assert groups_above(report, "b") == {"one", "two"}
    assert [one.name for one in contributions(report, "b", 0)] == ["b", "one", "two"]


def test_an_unknown_document_is_refused() -> None:
    side = made("a", MULTIPLE_CHOICE, "acc", build_column([0], Floats(Array([1.0]))))
    with pytest.raises(EvalError, match="doc 5"):
        contributions(reported([side], []), "a", 5)
