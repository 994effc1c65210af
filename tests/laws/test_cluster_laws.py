"""Laws of clustered errors: clusters of one, copies of documents, names of clusters, clusters across tasks."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcore import AGGREGATIONS, MetricKey, Sample, TaskReport, aggregate_metric
from evalcore.groups import Group, GroupMetric, Leaf, report_groups
from evalcore.stats import Array, Floats, Inference, Stats, build_column, cluster_codes, clusters_of, merge_columns
from evalcore.testing import columns

LAW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
KEY = MetricKey("acc")
SMOOTH = ("mean", "perplexity", "brier_score", "weighted_perplexity", "bits_per_byte", "matthews_corrcoef")
KINDS = {"weighted_perplexity": "stats", "bits_per_byte": "stats", "matthews_corrcoef": "labels"}


@pytest.mark.parametrize("name", SMOOTH)
@LAW
@given(st.data())
def test_clusters_of_one_are_plain(name, data):
    """Where every document is a cluster of its own, error and interval are exactly the plain ones."""
    one = data.draw(columns(KINDS.get(name, "floats"), min_size=2, max_size=40))
    plain = aggregate_metric(AGGREGATIONS[name], one)
    alone = aggregate_metric(AGGREGATIONS[name], one, clusters=np.arange(len(one))[::-1].copy())
    assert (plain.value, plain.stderr, plain.ci, plain.spread.df, plain.spread.trials, plain.warnings) == (
        alone.value,
        alone.stderr,
        alone.ci,
        alone.spread.df,
        alone.spread.trials,
        alone.warnings,
    )


@pytest.mark.parametrize("copies", [2, 3])
@LAW
@given(columns("stats", min_size=2, unscored=False))
def test_copies_in_clusters_tell_nothing_new(copies, one):
    """Every document doubled within its cluster: the error stays what it was with one each."""
    n = len(one)
    rows = Stats(Array(np.repeat(one.rows.values.floats, copies, axis=0)))
    many = build_column(range(n * copies), rows)
    for name in ("weighted_perplexity", "bits_per_byte"):
        plain = aggregate_metric(AGGREGATIONS[name], one)
        clustered = aggregate_metric(AGGREGATIONS[name], many, clusters=np.repeat(np.arange(n), copies))
        naive = aggregate_metric(AGGREGATIONS[name], many)
        assert clustered.value == pytest.approx(plain.value, rel=1e-12)
        assert clustered.stderr == pytest.approx(plain.stderr, rel=1e-9, abs=1e-12 * max(1.0, abs(plain.value)))
        shares = one.rows.values.floats[:, 1] / one.rows.values.floats[:, 1].sum()
        squares = plain.spread.influence.floats**2 / (1 - shares / copies)
        shrunk = sqrt(squares.sum() / copies) / n
        assert naive.stderr == pytest.approx(shrunk, rel=1e-9, abs=1e-12 * max(1.0, abs(plain.value)))


@LAW
@given(columns(min_size=2, max_size=12, unscored=False), st.data())
def test_a_cluster_counts_as_one(one, data):
    """The clustered error is sqrt(Σ (sum of influences in a cluster)² / (1 − its share of documents)) / n."""
    codes = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(one), max_size=len(one))), np.int64)
    made = aggregate_metric(AGGREGATIONS["mean"], one, clusters=codes)
    totals = [made.spread.influence.floats[codes == code].sum() for code in np.unique(codes)]
    if len(totals) == 1:
        assert made.stderr is None
        assert made.reason
        return
    shares = np.unique(codes, return_counts=True)[1] / len(codes)
    assert made.stderr == pytest.approx(sqrt(np.sum(np.square(totals) / (1 - shares))) / len(one), abs=1e-15)
    assert 1 <= made.spread.df <= len(totals) - 1


@pytest.mark.parametrize("name", ["mean", "bits_per_byte"])
@LAW
@given(st.data())
def test_cr1_takes_all_clusters_for_equal(name, data):
    """Under ``stderr: cr1``, and of a mean for clusters of equal size: C / (C − 1), C − 1 degrees of freedom."""
    one = data.draw(columns(KINDS.get(name, "floats"), min_size=4, max_size=12, unscored=False))
    for codes, forms in ((np.arange(len(one)) % 2, ("cr1",)), (np.arange(len(one)) // 2, ("cr1",))):
        for form in (*forms, *(["cr2"] if name == "mean" and len(one) % 2 == 0 else [])):
            made = aggregate_metric(AGGREGATIONS[name], one, clusters=codes, inference=Inference(stderr=form))
            totals = np.array([made.spread.influence.floats[codes == code].sum() for code in np.unique(codes)])
            count = len(totals)
            expected = sqrt(count / (count - 1) * np.sum(totals**2)) / len(one)
            assert made.stderr == pytest.approx(expected, rel=1e-12, abs=1e-15)
            assert (made.spread.df, made.spread.trials) == (count - 1, count)
            assert made.signature.startswith(f"clustered({form})")


@pytest.mark.parametrize("name", ["mean", "bits_per_byte"])
@LAW
@given(st.data())
def test_order_and_parts_of_clustered_documents_are_irrelevant(name, data):
    """Documents in any order, or scored in two parts and merged: not a bit of the number changes."""
    one = data.draw(columns(KINDS.get(name, "floats"), min_size=3, max_size=12, unscored=False))
    codes = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(one), max_size=len(one))), np.int64)
    order = np.array(data.draw(st.permutations(range(len(one)))), np.int64)
    whole = aggregate_metric(AGGREGATIONS[name], one, clusters=codes)
    kind = type(one.rows)
    mixed = build_column(range(len(one)), kind(Array(one.rows.values.floats[order])))
    moved = aggregate_metric(AGGREGATIONS[name], mixed, clusters=codes[order])
    cut = data.draw(st.integers(0, len(one)))
    keys, values = one.keys.ints, one.rows.values.floats
    parts = [build_column(keys[at].tolist(), kind(Array(values[at]))) for at in (slice(cut), slice(cut, None))]
    merged = aggregate_metric(AGGREGATIONS[name], merge_columns(*parts[::-1]), clusters=codes)
    for other in (moved, merged):
        assert (other.value, other.stderr, other.ci) == (whole.value, whole.stderr, whole.ci)
        assert (other.spread.df, other.spread.trials) == (whole.spread.df, whole.spread.trials)
    assert merged.warnings == whole.warnings


@LAW
@given(columns(min_size=2, max_size=12, unscored=False), st.data())
def test_names_of_clusters_are_irrelevant(one, data):
    """Renaming clusters changes no bit."""
    codes = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(one), max_size=len(one))), np.int64)
    first, second = (aggregate_metric(AGGREGATIONS["mean"], one, clusters=c) for c in (codes, 7 - 2 * codes))
    assert (first.value, first.stderr, first.ci) == (second.value, second.stderr, second.ci)
    assert (first.spread.df, first.spread.trials) == (second.spread.df, second.spread.trials)
    assert first.warnings == second.warnings


@given(st.lists(st.text(max_size=3) | st.integers(0, 3), max_size=8))
def test_cluster_codes_are_names(ids):
    """Equal names have equal codes, different ones different codes, whatever task and order they come in."""
    codes = cluster_codes(ids)
    for i, one in enumerate(ids):
        for j, two in enumerate(ids):
            assert (codes[i] == codes[j]) == (one == two and type(one) is type(two))
    assert sorted(codes[::-1].tolist()) == sorted(cluster_codes(ids[::-1]).tolist())


def test_documents_without_a_cluster_stand_alone():
    """As singletons, and in no other way, documents may lack a cluster; two tasks' loners never meet."""
    docs = [Sample(0, cluster="p"), Sample(1), Sample(2)]
    with pytest.raises(ValueError, match="cluster"):
        clusters_of("t", docs)
    one, two = (clusters_of(name, docs, singletons=True) for name in ("t", "u"))
    assert len(set(one.values())) == 3
    assert one[0] == two[0]
    assert one[1] != two[1]


@LAW
@given(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=8))
def test_a_task_and_its_copy_share_their_clusters(values):
    """Two tasks on the same clusters are no more evidence than one: the group's error is the task's own."""
    codes = np.arange(len(values))
    one = build_column(range(len(values)), Floats(Array(np.array(values))))
    closed = aggregate_metric(AGGREGATIONS["mean"], one, clusters=codes)
    leaves = tuple(
        Leaf(name, TaskReport(name=name, estimates=((KEY, closed),), columns=((KEY, one),), n_docs=len(one)))
        for name in "ab"
    )
    made = report_groups(Group("g", leaves, (GroupMetric("acc"),)))[-1].get(KEY)
    assert made.value == pytest.approx(closed.value, rel=1e-15, abs=1e-16)
    assert made.stderr == pytest.approx(closed.stderr, rel=1e-12, abs=1e-15)
    assert made.spread.df == pytest.approx(closed.spread.df, rel=1e-12)
    assert made.ci == pytest.approx(closed.ci, rel=1e-9, abs=1e-9)


# --- in groups ----------------------------------------------------------------------------------------------------

SCORES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=9)
RULES = [{}, {"weight_by_size": False}, {"average": "children"}, {"aggregation": "pool"}]


def group_of(data, clusters, **rule):
    def leaf(k, values, codes):
        one = build_column(range(len(values)), Floats(Array(np.array(values, np.float64))))
        closed = aggregate_metric(AGGREGATIONS["mean"], one, clusters=codes)
        return Leaf(
            f"t{k}", TaskReport(name=f"t{k}", estimates=((KEY, closed),), columns=((KEY, one),), n_docs=len(one))
        )

    leaves = tuple(leaf(k, *pair) for k, pair in enumerate(zip(data, clusters, strict=True)))
    return report_groups(Group("g", leaves, (GroupMetric("acc", **rule),)))[-1].get(KEY)


@pytest.mark.parametrize("rule", RULES)
@LAW
@given(st.lists(SCORES, min_size=1, max_size=4), st.data())
def test_clusters_of_one_are_plain_in_groups(rule, data, draw):
    """Also where only some tasks have clusters: value, error, degrees and interval are exactly the plain ones."""
    chosen = draw.draw(st.lists(st.booleans(), min_size=len(data), max_size=len(data)))
    alone = [100 * k + np.arange(len(x)) if yes else None for k, (x, yes) in enumerate(zip(data, chosen, strict=True))]
    plain, made = group_of(data, [None] * len(data), **rule), group_of(data, alone, **rule)
    assert (made.value, made.stderr, made.spread.df, made.ci) == (plain.value, plain.stderr, plain.spread.df, plain.ci)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("apart", [0, 1, 100])
@LAW
@given(st.lists(SCORES, min_size=2, max_size=4), st.integers(2, 4))
def test_copies_in_clusters_tell_groups_nothing_new(rule, apart, data, copies):
    """Every document several times within its cluster; clusters shared by all tasks, by neighbours, by none."""
    ids = [apart * k + np.arange(len(x)) for k, x in enumerate(data)]
    many = group_of([np.repeat(x, copies) for x in data], [np.repeat(one, copies) for one in ids], **rule)
    once = group_of(data, ids, **rule)
    assert many.value == pytest.approx(once.value, rel=1e-12, abs=1e-15)
    assert many.stderr == pytest.approx(once.stderr, rel=1e-7, abs=1e-12)
    if once.stderr > 1e-6:
        assert many.spread.df == pytest.approx(once.spread.df, rel=1e-6)
        assert many.ci == pytest.approx(once.ci, rel=1e-6, abs=1e-9)


@LAW
@given(SCORES, st.integers(1, 4))
def test_variants_of_the_same_questions_are_one_task_of_their_means(values, k):
    """Tasks that ask the same questions are worth one task of each question's mean score, with its C - 1."""
    rng = np.random.default_rng(len(values) * k)
    data = [np.clip(np.array(values) + rng.uniform(-0.3, 0.3, len(values)), 0, 1) for _ in range(k)]
    ids = np.arange(len(values))
    made, whole = group_of(data, [ids] * k), group_of([np.mean(data, axis=0)], [ids])
    assert made.stderr == pytest.approx(whole.stderr, rel=1e-9, abs=1e-12)
    assert made.spread.df == pytest.approx(whole.spread.df, rel=1e-12)
    if made.spread.hidden == whole.spread.hidden == 0:  # scores near a bound may jump in each task by itself
        assert made.ci == pytest.approx(whole.ci, rel=1e-9, abs=1e-9)
