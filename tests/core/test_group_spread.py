"""Groups with clusters: degrees of freedom, what a certain value rests on, exact values, coverage, steps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from counting import count_steps

from evalcore import AGGREGATIONS, MetricKey, TaskReport, aggregate_metric, build_report, freeze_options
from evalcore.core.lm_eval.policy import LM_EVAL_0_4_13
from evalcore.groups import Group, GroupMetric, Leaf, report_groups
from evalcore.stats import Array, Floats, build_column

KEY = MetricKey("acc")


def leaf(name, values, clusters=None, aggregation="mean"):
    one = build_column(range(len(values)), Floats(Array(np.asarray(values, np.float64))))
    closed = aggregate_metric(AGGREGATIONS[aggregation], one, clusters=clusters)
    return Leaf(name, TaskReport(name=name, estimates=((KEY, closed),), columns=((KEY, one),), n_docs=len(one)))


def group_of(data, clusters, **rule):
    leaves = tuple(leaf(f"t{k}", x, codes) for k, (x, codes) in enumerate(zip(data, clusters, strict=True)))
    return report_groups(Group("g", leaves, (GroupMetric("acc", **rule),)))[-1].get(KEY)


def test_degrees_of_freedom():
    """C - 1 where all tasks lie on the same clusters; Satterthwaite's over C - 1 each where none is shared."""
    rng = np.random.default_rng(0)
    data = [rng.random(20), rng.random(20)]
    ids = np.repeat(np.arange(5), 4)
    assert group_of(data, [ids, ids]).spread.df == pytest.approx(4.0, rel=1e-12)
    apart = group_of(data, [ids, ids + 9], weight_by_size=False)
    each = [group_of([x], [ids]).stderr ** 2 / 4 for x in data]
    assert apart.spread.df == pytest.approx(sum(each) ** 2 / (each[0] ** 2 / 4 + each[1] ** 2 / 4), rel=1e-12)
    # ids that meet by chance: the small task, which is nearly all of the variance, keeps its few degrees
    small, large = rng.random(5) * 10, rng.random(400) * 0.01
    assert group_of([small, large], [np.arange(5), np.arange(400)], weight_by_size=False).spread.df == pytest.approx(
        4.0, rel=0.01
    )


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ([None, None], 1 / (0.25 / 10 + 0.25 / 20)),  # documents, 1/Σ(w²/n)
        ([np.arange(10) // 2, 100 + np.arange(20) // 4], 10.0),  # five clusters each, 1/Σ(w²/C)
        ([np.arange(10) // 2, np.arange(20) // 4], 5.0),  # the same five: as if a question's variants always agreed
        ([np.arange(10) // 2, 4 + np.arange(20) // 4], 1 / (8 * 0.01 + 0.04)),  # one of five in common
        ([np.arange(10) // 2, None], 1 / (0.25 / 5 + 0.25 / 20)),
    ],
)
def test_what_a_certain_value_rests_on(clusters, expected):
    """All right: the interval is Wilson's with this count, never a point."""
    made = group_of([np.ones(10), np.ones(20)], clusters, weight_by_size=False)
    assert (made.value, made.stderr) == (1.0, 0.0)
    assert made.spread.trials == pytest.approx(expected, rel=1e-12)
    assert made.ci[0] < 0.9
    assert made.ci[1] == 1.0


@pytest.mark.parametrize("n", [49, 98, 103])
def test_one_certain_task_is_the_task(n):
    """Counts whose reciprocal's reciprocal is not themselves."""
    made = group_of([np.ones(n)], [None])
    own = aggregate_metric(AGGREGATIONS["mean"], build_column(range(n), Floats(Array(np.ones(n)))))
    assert (made.ci, made.spread.trials, made.spread.variance) == (own.ci, own.spread.trials, own.spread.variance)


@pytest.mark.parametrize(("runs", "luck"), [(80, 0.05), pytest.param(300, 0.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", ["all", "half", "chance"])
def test_coverage_where_tasks_share_clusters(share, runs, luck):
    """Translations of the same questions, of half of them, or ids that merely look alike: at least 90 % of intervals hold."""
    rng = np.random.default_rng(7)
    p, k, n = 0.7, 4, 30
    ids = {
        "all": [np.arange(n)] * k,
        "half": [np.arange(n) + n // 2 * i for i in range(k)],
        "chance": [np.arange(n)] * k,
    }
    hits = blind = 0
    for _ in range(runs):
        skill = rng.beta(p, 1 - p, n + n // 2 * k)
        data = [(rng.random(n) < (p if share == "chance" else skill[one])).astype(float) for one in ids[share]]
        low, high = group_of(data, ids[share]).ci
        hits += low <= p <= high
        low, high = group_of(data, [None] * k).ci
        blind += low <= p <= high
    assert hits / runs >= 0.9 - luck
    if share == "all":
        assert blind / runs < 0.85 + luck


def tasks_on_the_same_questions(tasks, questions):
    rng, ids = np.random.default_rng(0), np.arange(questions)
    leaves = (leaf(f"t{k}", (rng.random(questions) < 0.7).astype(float), ids) for k in range(tasks))
    return Group("g", tuple(leaves), (GroupMetric("acc"),))


def test_a_group_takes_steps_by_its_tasks_and_not_by_their_documents():
    trees = {size: tasks_on_the_same_questions(*size) for size in ((28, 250), (56, 250), (28, 500))}
    report_groups(trees[28, 250])
    steps = {size: count_steps(lambda tree=tree: report_groups(tree)) for size, tree in trees.items()}
    assert steps[56, 250] < 2.1 * steps[28, 250]
    assert steps[28, 500] == steps[28, 250]


def test_a_group_of_many_documents_holds_no_table_of_pairs():
    tree = tasks_on_the_same_questions(57, 250)
    tracemalloc.start()
    report_groups(tree)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 8 * 57 * 250  # a hundred numbers a document; a table of all pairs has 14,250


# --- values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["leaves", "children"])
def test_counts_by_size_are_exact(average):
    """Right documents of all documents, to the last bit, wherever they lie: 10 of 50 are 0.2, never 0.19999999999999998."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        sizes = rng.integers(2, 60, rng.integers(2, 8))
        hits = [rng.permutation(np.arange(n) < rng.integers(0, n + 1)).astype(float) for n in sizes]
        leaves = [leaf(f"t{k}", x) for k, x in enumerate(hits)]
        tree = (Group("h", tuple(leaves[:2])), *leaves[2:]) if average == "children" else tuple(leaves)
        made = report_groups(Group("g", tree, (GroupMetric("acc", average=average),)))[-1].get(KEY)
        assert made.value == sum(x.sum() for x in hits) / sum(sizes)


def test_given_weights_that_are_no_sizes_are_kept():
    """What is nearly a size is not one."""
    tasks = (leaf("a", [1.0, 0.0]), leaf("b", [1.0, 1.0]))
    given = freeze_options(a=1.0, b=1.0 + 1e-9)
    made = report_groups(Group("g", tasks, (GroupMetric("acc", weights=given),)))[-1].get(KEY)
    assert made.value == pytest.approx((0.5 + 1 + 1e-9) / (2 + 1e-9), rel=1e-15)
    assert made.value > 0.75


def test_a_subgroup_counts_with_the_number_it_is_reported_with():
    """A rule holds for all below it, also where the parent, with another rule, looks further down."""
    a, b, c = leaf("a", [1.0, 1, 1, 1]), leaf("b", [0.0, 1]), leaf("c", [0.0, 0, 1])
    inner = Group("inner", (Group("plain", (a, b)), c), (GroupMetric("acc", average="children", weight_by_size=False),))
    reports = report_groups(Group("g", (inner, a), (GroupMetric("acc", average="children"),)))
    of = {one.name: one.get(KEY) for one in reports if one.estimates}
    assert of["inner"].value == pytest.approx((0.75 + 1 / 3) / 2)
    assert of["g"].value == pytest.approx((9 * of["inner"].value + 4 * 1.0) / 13)


def test_groups_as_in_lm_eval_say_why_they_have_no_interval():
    """A null interval has a reason."""
    tasks = [leaf("a", [1.0, 0.0]), leaf("b", [1.0, 1.0, 0.0])]
    tree = Group("g", tuple(tasks), (GroupMetric("acc"),))
    report = build_report([one.value for one in tasks], [tree], tables=LM_EVAL_0_4_13)
    made = report.group("g")["acc,none"]
    assert made.stderr is not None
    assert (made.ci, made.group.across) == (None, None)
    assert "no interval" in made.reason
    assert "lm-eval" in made.reason


def test_what_cannot_be_said_of_shared_clusters_is_said():
    """Medians have no influence of each document, so their covariance over shared clusters is not known."""
    ids, values = np.repeat(np.arange(4), 3), np.arange(12.0)
    spec = GroupMetric("acc", aggregation="macro")
    tied = report_groups(Group("g", (leaf("a", values, ids, "median"), leaf("b", values, ids, "median")), (spec,)))[-1]
    assert tied.get(KEY).stderr is None
    assert tied.get(KEY).reason.startswith("a shares clusters with other tasks")
    apart = report_groups(
        Group("g", (leaf("a", values, ids, "median"), leaf("b", values, ids + 9, "median")), (spec,))
    )[-1]
    assert apart.get(KEY).stderr > 0
