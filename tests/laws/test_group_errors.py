"""The error of a group is exactly the quadratic form of its documents' derivatives, with an explicit covariance.

The oracle knows nothing of influences, strata or links: it writes the group's number as a function of one weight per
document, differentiates that by the complex step, and multiplies out a matrix of documents by documents.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from msgspec.structs import replace

from evalcore import AGGREGATIONS, MetricKey, TaskReport, aggregate_metric, freeze_options
from evalcore.groups import Group, GroupMetric, Leaf, report_groups
from evalcore.stats import Array, Floats, Labels, build_column

KEY = MetricKey("acc")
NAMES = "abcde"
MEANS = {
    "mean": lambda x, u: (u * x).sum() / u.sum(),
    "perplexity": lambda x, u: np.exp(-(u * x).sum() / u.sum()),
}


def leaf(name, rows, aggregation, clusters, n):
    one = build_column(range(n), rows)
    closed = aggregate_metric(AGGREGATIONS[aggregation], one, clusters=clusters)
    return Leaf(name, TaskReport(name=name, estimates=((KEY, closed),), columns=((KEY, one),), n_docs=n))


def made_clusters(rng, sizes, how):
    """Per task: nobody's, their own, everybody's, or those of some tasks only, some of which overlap by chance."""
    out = []
    for k, n in enumerate(sizes):
        kind = how if how != "some" else ("none", "shared", "own", "shared", "overlap")[k % 5]
        ids = rng.permutation(np.concatenate([np.arange(3), rng.integers(0, max(n // 2, 3), n - 3)])).astype(np.int64)
        shift = {"own": 1000 * (k + 1), "shared": 0, "overlap": 2 * k}.get(kind, 0)
        out.append(None if kind == "none" else ids + shift)
    return out


def made_tree(rng, tasks, depth=2, root=True):
    """Groups within groups, leaves shared, with rules of their own now and then, and given weights."""
    count = rng.integers(2, 4)
    children = {}
    for _ in range(count):
        child = (
            tasks[rng.choice(list(tasks))]
            if depth == 0 or rng.random() < 0.5
            else made_tree(rng, tasks, depth - 1, False)
        )
        children[child.name] = child
    spec = made_rule(rng, children)
    own = () if not root and rng.random() < 0.5 else (spec,)
    return Group(f"G{rng.integers(1 << 40)}", tuple(children.values()), own)


def made_rule(rng, children):
    average = str(rng.choice(["leaves", "children"]))
    given = average == "children" and rng.random() < 0.4
    weights = {name: float(rng.integers(1, 9)) for name in children} if given else {}
    return GroupMetric("acc", average=average, weight_by_size=bool(rng.random() < 0.5), weights=freeze_options(weights))


def weigh(node, spec, sizes):
    """Each leaf's total weight, by a walk of our own."""
    if isinstance(node, Leaf):
        return {node.name: 1.0}
    plain = replace(spec, weights=freeze_options())
    below = [weigh(c, (c.metrics or (plain,))[0] if isinstance(c, Group) else plain, sizes) for c in node.children]
    if spec.average == "leaves":
        raw = {name: sizes[name] if spec.weight_by_size else 1.0 for one in below for name in one}
        return {name: weight / sum(raw.values()) for name, weight in raw.items()}
    own = [
        spec.weights[c.name] if spec.weights else sum(sizes[name] for name in one) if spec.weight_by_size else 1.0
        for c, one in zip(node.children, below, strict=True)
    ]
    out = {}
    for weight, one in zip(own, below, strict=True):
        for name, share in one.items():
            out[name] = out.get(name, 0.0) + weight * share / sum(own)
    return out


def exact_error(value, sizes, clusters):
    """sqrt(d' Ω d): d the derivative in each document's weight (about its task's mean), Ω over pairs of documents."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    task = np.repeat(np.arange(len(sizes)), sizes)
    step, ones = 1e-30, np.ones(starts[-1], complex)
    d = np.array(
        [np.imag(value(np.where(np.arange(len(ones)) == i, 1 + step * 1j, ones))) / step for i in range(len(ones))]
    )
    d = d - np.array([d[task == k].mean() for k in range(len(sizes))])[task]
    unit = [("doc", i) if clusters[k] is None else int(clusters[k][i - starts[k]]) for i, k in enumerate(task)]
    share = [sum(unit[j] == unit[i] for j in np.flatnonzero(task == k)) / sizes[k] for i, k in enumerate(task)]
    scale = 1 / np.sqrt(1 - np.array(share))
    same = np.array([[one == two for two in unit] for one in unit])
    return sqrt(d @ (same * np.outer(scale, scale)) @ d)


@pytest.mark.parametrize("how", ["none", "own", "shared", "some"])
@pytest.mark.parametrize("kind", ["mean", "perplexity"])
@pytest.mark.parametrize("seed", range(6))
def test_any_tree_any_weights_any_clusters(kind, how, seed):
    """Shared leaves, given weights, subgroups with rules of their own, log scale, clusters across some tasks."""
    rng = np.random.default_rng([seed, len(how), len(kind)])
    sizes = rng.integers(4, 15, len(NAMES))
    data = [rng.random(n) if kind == "mean" else -4 * rng.random(n) for n in sizes]
    clusters = made_clusters(rng, sizes, how)
    tasks = {
        name: leaf(name, Floats(Array(x)), kind, codes, len(x))
        for name, x, codes in zip(NAMES, data, clusters, strict=True)
    }
    for _ in range(4):
        tree = made_tree(rng, tasks)
        weights = weigh(tree, tree.metrics[0], dict(zip(NAMES, map(float, sizes), strict=True)))
        ends = np.cumsum(sizes)[:-1]

        def value(u, weights=weights, ends=ends):
            each = dict(
                zip(NAMES, (MEANS[kind](x, part) for x, part in zip(data, np.split(u, ends), strict=True)), strict=True)
            )
            if kind == "mean":
                return sum(weight * each[name] for name, weight in weights.items())
            return np.exp(sum(weight * np.log(each[name]) for name, weight in weights.items()))

        made = report_groups(tree)[-1].get(KEY)
        assert made.value == pytest.approx(float(np.real(value(np.ones(sum(sizes), complex)))), rel=1e-12)
        assert made.stderr == pytest.approx(exact_error(value, sizes, clusters), rel=1e-12, abs=1e-15)
        assert made.spread.df is not None
        assert made.spread.df > 0


@pytest.mark.parametrize("how", ["none", "own", "shared", "some"])
@pytest.mark.parametrize("seed", range(4))
def test_pooled_f1(how, seed):
    """Pooling what is no mean: all documents as one task, each task's number of documents given."""
    rng = np.random.default_rng([seed, len(how)])
    sizes = rng.integers(6, 15, len(NAMES))
    pairs = [np.column_stack([rng.integers(0, 2, n), rng.integers(0, 2, n)]).astype(np.int64) for n in sizes]
    pairs = [np.concatenate([[[1, 1], [1, 0]], one[2:]]) for one in pairs]
    clusters = made_clusters(rng, sizes, how)
    leaves = tuple(
        leaf(name, Labels(Array(x)), "f1", codes, len(x)) for name, x, codes in zip(NAMES, pairs, clusters, strict=True)
    )
    made = report_groups(Group("g", leaves, (GroupMetric("acc", aggregation="pool"),)))[-1].get(KEY)
    gold, said = np.concatenate(pairs).T

    def value(u):
        return 2 * (u * gold * said).sum() / (u * (gold + said)).sum()

    assert made.value == pytest.approx(2 * (gold * said).sum() / (gold + said).sum(), rel=1e-12)
    assert made.stderr == pytest.approx(exact_error(value, sizes, clusters), rel=1e-10)


@pytest.mark.parametrize("how", ["none", "shared", "some"])
def test_a_callable(how):
    """A callable's error follows its derivative in each task; that is found by steps, so to fewer digits."""
    rng = np.random.default_rng(len(how))
    sizes = rng.integers(6, 15, len(NAMES))
    data, clusters = [rng.random(n) for n in sizes], made_clusters(rng, sizes, how)
    leaves = tuple(
        leaf(name, Floats(Array(x)), "mean", codes, len(x))
        for name, x, codes in zip(NAMES, data, clusters, strict=True)
    )
    spec = GroupMetric("acc", aggregation=lambda values, sizes: len(values) / sum(1 / v for v in values))
    made = report_groups(Group("g", leaves, (spec,)))[-1].get(KEY)

    def value(u):
        each = [MEANS["mean"](x, part) for x, part in zip(data, np.split(u, np.cumsum(sizes)[:-1]), strict=True)]
        return len(each) / sum(1 / v for v in each)

    assert made.stderr == pytest.approx(exact_error(value, sizes, clusters), rel=1e-8)
    assert made.group.across is None


@pytest.mark.parametrize("how", ["none", "own", "shared", "some"])
@pytest.mark.parametrize("aggregation", ["mean", "pool"])
@pytest.mark.parametrize("average", ["leaves", "children"])
def test_the_order_of_tasks_changes_no_bit(how, aggregation, average):
    """Value, error, degrees, what a certain value rests on, and the interval."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(6, 15, len(NAMES))
    clusters = made_clusters(rng, sizes, how)
    tasks = [
        leaf(name, Floats(Array(rng.random(n))), "mean", codes, n)
        for name, n, codes in zip(NAMES, sizes.tolist(), clusters, strict=True)
    ]
    spec = GroupMetric("acc", aggregation=aggregation, average=average)
    seen = set()
    for _ in range(12):
        mixed = rng.permutation(len(tasks))
        inner = Group("h", (tasks[0], tasks[1]) if rng.random() < 0.5 else (tasks[1], tasks[0]))
        children = [inner if i == 0 else tasks[i] for i in mixed]
        made = report_groups(Group("g", tuple(children), (spec,)))[-1].get(KEY)
        seen.add(
            (
                made.value,
                made.stderr,
                made.spread.df,
                made.spread.trials,
                made.spread.variance,
                made.ci,
                made.group.across,
            )
        )
    assert len(seen) == 1
