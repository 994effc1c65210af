"""Laws of group numbers: nesting, one subtask, equal sizes, shared leaves, pooling."""

from __future__ import annotations

from math import fsum, sqrt

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcore import (
    AGGREGATIONS,
    EvalError,
    MetricKey,
    TaskReport,
    aggregate_metric,
    build_report,
    fold_group,
    freeze_options,
)
from evalcore.core.groups.averages import AVERAGES, shares
from evalcore.groups import Group, GroupMetric, Leaf, all_tasks, leaf_from_flat, report_groups
from evalcore.lm_eval import lm_eval_results
from evalcore.stats import Array, Floats, Objects, build_column
from evalcore.testing import fingerprint, group_trees, task_reports

LAW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
KEY = MetricKey("acc")
LEAVES, CHILDREN = GroupMetric("acc"), GroupMetric("acc", average="children")


def of(group, **changes):
    """The number of one group under a rule."""
    spec = msgspec.structs.replace(GroupMetric("acc"), **changes)
    return report_groups(Group(group.name, group.children, (spec,)))[-1].get(KEY)


def task(name, values, aggregation="mean", clusters=None):
    one = build_column(range(len(values)), Floats(Array(np.array(values, np.float64))))
    closed = aggregate_metric(AGGREGATIONS[aggregation], one, clusters=clusters)
    report = TaskReport(name=name, estimates=((KEY, closed),), columns=((KEY, one),), n_docs=len(one))
    return Leaf(name, report)


def without_rules(tree):
    return fold_group(tree, lambda leaf: leaf, lambda group, parts: Group(group.name, parts))


@LAW
@given(group_trees())
def test_size_weighted_means_ignore_nesting(tree):
    """By size over leaves, a tree is worth exactly its tasks in one list: value, error and interval."""
    flat = Group("flat", all_tasks(tree))
    nested, plain = of(without_rules(tree)), of(flat)
    assert (nested.value, nested.stderr, nested.ci, nested.n) == (plain.value, plain.stderr, plain.ci, plain.n)
    assert nested.value == pytest.approx(
        fsum(x for leaf in all_tasks(tree) for x in leaf.value.column(KEY).rows.values.floats) / nested.n
    )


@LAW
@given(st.lists(task_reports(), min_size=4, max_size=4), st.booleans())
def test_children_by_size_ignore_nesting_too(reports, deep):
    """Where no leaf is shared, averaging children by their size is averaging leaves by theirs."""
    a, b, c, d = (
        Leaf(name, msgspec.structs.replace(one, name=name)) for name, one in zip("abcd", reports, strict=True)
    )
    inner = Group("i", (b, c))
    tree = Group("g", (a, Group("h", (inner, d)))) if deep else Group("g", (a, inner, d))
    one, two = of(tree, average="children"), of(tree)
    assert one.value == pytest.approx(two.value, rel=1e-13, abs=1e-15)
    assert one.stderr == pytest.approx(two.stderr, rel=1e-12, abs=1e-15)


@LAW
@given(group_trees(), st.randoms())
def test_the_order_of_children_is_irrelevant(tree, dice):
    """A group's number has the same bits in whatever order its children are listed."""
    mixed = fold_group(
        tree,
        lambda leaf: leaf,
        lambda group, parts: Group(group.name, tuple(dice.sample(parts, len(parts))), group.metrics),
    )
    for average in ("leaves", "children"):
        one, two = of(without_rules(tree), average=average), of(without_rules(mixed), average=average)
        assert (one.value, one.stderr, one.spread.df, one.spread.trials) == (
            two.value,
            two.stderr,
            two.spread.df,
            two.spread.trials,
        )
        assert (one.ci, one.group.across) == (two.ci, two.group.across)


@pytest.mark.parametrize("aggregation", ["mean", "macro", "pool"])
@pytest.mark.parametrize("average", ["leaves", "children"])
@LAW
@given(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=70), st.booleans())
def test_one_subtask_is_the_task(aggregation, average, values, clustered):
    """A group of one task has exactly its value, its error and its interval; so with clusters."""
    leaf = task("a", values, clusters=np.arange(len(values)) // 2 if clustered else None)
    own = leaf.value.get(KEY)
    for nested in (Group("g", (leaf,)), Group("g", (Group("h", (leaf,)),))):
        made = of(nested, aggregation=aggregation, average=average)
        assert (made.value, made.stderr, made.ci, made.n) == (own.value, own.stderr, own.ci, own.n)


@pytest.mark.parametrize("n", [2, 49, 98, 103, 161, 1000])
@pytest.mark.parametrize("aggregation", ["mean", "pool"])
def test_one_perplexity_is_the_perplexity(n, aggregation):
    """The same on the log scale, for counts whose reciprocal's reciprocal is not themselves."""
    leaf = task("a", -np.random.default_rng(n).random(n) * 9, "perplexity")
    own, made = leaf.value.get(KEY), of(Group("g", (leaf,)), aggregation=aggregation)
    assert (made.value, made.stderr, made.ci) == (own.value, own.stderr, own.ci)


@LAW
@given(st.integers(2, 6), st.integers(2, 4), st.data())
def test_equal_sizes_pooled_is_stratified(n, k, data):
    """Tasks of one size: the mean of means, weighted or not, is the mean of all documents, with one error."""
    values = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=n, max_size=n)
    tree = Group("g", tuple(task(f"t{i}", data.draw(values)) for i in range(k)))
    ways = [of(tree), of(tree, weight_by_size=False), of(tree, aggregation="macro"), of(tree, aggregation="pool")]
    for other in ways[1:]:
        assert other.value == pytest.approx(ways[0].value, rel=1e-13, abs=1e-15)
        assert other.stderr == pytest.approx(ways[0].stderr, rel=1e-12, abs=1e-15)


@LAW
@given(st.lists(task_reports(), min_size=2, max_size=4))
def test_pooled_means_are_the_means_of_all_documents(reports):
    """For sizes of any kind, pooling gives the size-weighted mean with its stratified error."""
    tree = Group("g", tuple(Leaf(f"t{i}", msgspec.structs.replace(r, name=f"t{i}")) for i, r in enumerate(reports)))
    one, two = of(tree), of(tree, aggregation="pool")
    assert one.value == pytest.approx(two.value, rel=1e-13, abs=1e-15)
    assert one.stderr == pytest.approx(two.stderr, rel=1e-11, abs=1e-14)


# --- shared leaves ------------------------------------------------------------------------------------------------


def direct(tree, spec):
    """sqrt(Σ over leaves of (total weight · stderr)²), from weights multiplied down every path by hand."""
    totals, errors = {}, {}

    def walk(node, weight):
        if isinstance(node, Leaf):
            totals[node.name] = totals.get(node.name, 0.0) + weight
            errors[node.name] = node.value.get(KEY)
            return
        for child in node.children:
            walk(child, weight / len(node.children))

    walk(tree, 1.0)
    value = fsum(weight * errors[name].value for name, weight in totals.items())
    return value, sqrt(fsum((weight * errors[name].stderr) ** 2 for name, weight in totals.items()))


@LAW
@given(group_trees(metrics=()))
def test_shared_leaves_count_by_every_path_with_covariance(tree):
    """Equal children: a leaf below two branches has the sum of both weights, in the value and in the error."""
    made = of(tree, average="children", weight_by_size=False)
    value, stderr = direct(tree, CHILDREN)
    assert made.value == pytest.approx(value, rel=1e-12, abs=1e-15)
    assert made.stderr == pytest.approx(stderr, rel=1e-12, abs=1e-15)


def test_covariance_of_a_shared_leaf_by_simulation():
    """The error of a group with a shared leaf is the spread of that number over resampled documents."""
    dice = np.random.default_rng(11)
    data = {name: dice.random(n) ** p for name, n, p in (("a", 40, 1), ("b", 60, 3), ("c", 30, 0.5))}
    a, b, c = (task(name, values) for name, values in data.items())
    tree = Group("g", (Group("h", (a, b)), Group("i", (a, c))))
    made = of(tree, average="children", weight_by_size=False)
    drawn = {name: v[dice.integers(0, len(v), (20_000, len(v)))].mean(axis=1) for name, v in data.items()}
    numbers = ((drawn["a"] + drawn["b"]) / 2 + (drawn["a"] + drawn["c"]) / 2) / 2
    assert made.stderr == pytest.approx(float(numbers.std()), rel=0.03)
    once = of(tree, weight_by_size=False)
    assert once.value == pytest.approx(fsum(float(v.mean()) for v in data.values()) / 3)
    assert made.value != pytest.approx(once.value)


@LAW
@given(group_trees())
def test_weights_sum_to_one(tree):
    """Whoever counts, the weights of a group's tasks sum to 1 and none is negative."""
    for spec in (LEAVES, CHILDREN, GroupMetric("acc", weight_by_size=False)):
        share = shares(tree, spec, KEY, AVERAGES)
        assert fsum(weight for _, weight in share.terms) == pytest.approx(1.0, abs=1e-12)
        assert min(weight for _, weight in share.terms) >= 0
        assert share.size == len({name for name, _ in share.terms}) or share.size > 0


@LAW
@given(group_trees())
def test_group_values_lie_between_their_tasks(tree):
    """A weighted mean lies between the least and the greatest of its parts, and its interval holds it."""
    values = [leaf.value.get(KEY).value for leaf in all_tasks(tree)]
    for average in ("leaves", "children"):
        made = of(without_rules(tree), average=average)
        assert min(values) - 1e-12 <= made.value <= max(values) + 1e-12
        if made.ci is not None:
            assert made.ci[0] <= made.value <= made.ci[1]


@LAW
@given(group_trees())
def test_reports_do_not_change_their_trees(tree):
    """Neither the report nor its JSON touches what it is made from; made twice, it is the same."""
    before = fingerprint(tree)
    done = [leaf.value for leaf in all_tasks(tree)]
    files = [msgspec.json.encode(lm_eval_results(build_report(done, [tree]))) for _ in range(2)]
    assert files[0] == files[1]
    assert fingerprint(tree) == before


@LAW
@given(st.lists(st.tuples(st.floats(0, 1), st.none() | st.integers(1, 50)), min_size=1, max_size=6), st.booleans())
def test_a_task_without_a_size_weighs_as_one_document(rows, by_size):
    """A row without a size moves a group's value as a row of one document does, and leaves it without an n."""

    def number(unknown):
        sizes = [{} if n is None and unknown else {"sample_len": n or 1} for _, n in rows]
        flat = [{"acc,none": value, **size} for (value, _), size in zip(rows, sizes, strict=True)]
        return of(Group("g", tuple(leaf_from_flat(f"t{i}", row) for i, row in enumerate(flat))), weight_by_size=by_size)

    assert number(True).value == number(False).value
    assert number(False).n == sum(n or 1 for _, n in rows)
    assert number(True).n == (None if None in dict.fromkeys(n for _, n in rows) else number(False).n)


def test_bad_weights_are_refused():
    """Weights that sum to 0, or are missing, are located errors under either average."""
    tree = Group("g", tuple(leaf_from_flat(name, {"acc,none": 0.5, "sample_len": 3}) for name in "ab"))
    for average in ("leaves", "children"):
        for weights in (freeze_options(a=0, b=0), freeze_options(a=1)):
            with pytest.raises(EvalError):
                of(tree, average=average, weights=weights)


def test_questions_of_different_tasks_stay_apart():
    """Pooling acc_all keeps a question of one task apart from one of the same name in another."""
    key = MetricKey("acc_all")

    def leaf(name, hit):
        one = build_column([0, 1], Objects(((hit, (0, 0)), (hit, (0, 1)))))
        closed = aggregate_metric(AGGREGATIONS["acc_all"], one)
        return Leaf(name, TaskReport(name=name, estimates=((key, closed),), columns=((key, one),), n_docs=2))

    tree = Group("g", (leaf("a", True), leaf("b", False)), (GroupMetric("acc_all", aggregation="pool"),))
    assert report_groups(tree)[-1].get(key).value == 0.5
