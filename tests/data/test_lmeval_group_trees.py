"""Group averages in five of lm-eval's own result files: 25 values and errors, by both derivations."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from recorded import estimate

from evalcore import MetricKey, build_report
from evalcore.core.groups.report import report_group
from evalcore.core.groups.tree import fold_group
from evalcore.core.records.report import TaskReport
from evalcore.groups import Group, GroupMetric, Leaf, leaf_from_flat, report_groups
from evalcore.lm_eval import LM_EVAL_0_4_13

FILES = (
    "results-0.4.3/Qwen__Qwen2.5-7B/results_2025-03-06T21-57-53.230631.json",
    "results-0.4.3/Qwen__Qwen2.5-7B/results_2025-03-11T21-17-00.511682.json",
    "results-0.4.8/qwen__qwen2.5-1.5B/results_2025-03-18T01-39-56.000360.json",
    "steering_eval/results/mmlu/MMLU_consequentialist_alpha0.0.pt_2026-02-22T12-26-56.151434.json",
    "african_nlp_benchmarks/sw_mmlu_0shot_2026-01-26T15-00-37.633186.json",
)


def report_groups_by_children(tree, *, tables):
    """Groups as lm-eval reported them up to 0.4.3: from the numbers of direct children, not of tasks."""

    def group(node, parts):
        made = report_group(replace(node, children=tuple(leaf for leaf, _ in parts)), tables=tables)
        as_task = TaskReport(name=node.name, estimates=made.estimates, n_docs=made.sample_len or 0)
        return Leaf(node.name, as_task), (*(one for _, below in parts for one in below), made)

    return fold_group(tree, lambda leaf: (leaf, ()), group)[1]


class File:
    """A results file as trees of flat leaves, with the metrics that its groups published."""

    def __init__(self, row, expected):
        self.row, self.expected = row, expected
        self.published = [(*key.split("|"), one) for key, one in expected.items()]

    def node(self, name):
        below = self.row["group_subtasks"].get(name)
        if not below:
            numbers = {**self.row["results"][name], "sample_len": self.row["n_samples"][name]}
            return leaf_from_flat(name, numbers)
        metrics = tuple(
            GroupMetric(MetricKey.parse(key).metric, (MetricKey.parse(key).filter,))
            for group, key, _ in self.published
            if group == name
        )
        return Group(name, tuple(map(self.node, below)), metrics)

    def trees(self):
        inside = {child for below in self.row["group_subtasks"].values() for child in below}
        return [self.node(name) for name in self.row["group_subtasks"] if name not in inside]

    @property
    def by_children(self):
        return self.row["file"].startswith("results-0.4.3/")

    def groups(self, how, **tables):
        return {group.name: group for tree in self.trees() for group in how(tree, **tables)}


@pytest.fixture(params=FILES, ids=lambda name: name.rpartition("/")[2][:28])
def file(request, recorded):
    data = recorded("lmeval_group_trees_a")
    row = next(row for row in data.rows if row["file"] == request.param)
    return File(row, data.meta["expected"][request.param])


def test_all_25_values_are_there(recorded):
    data = recorded("lmeval_group_trees_a")
    assert sum(len(data.meta["expected"][name]) for name in FILES) == 25


def test_values_and_errors_by_the_files_own_version(file):
    how = report_groups_by_children if file.by_children else report_groups
    groups = file.groups(how, tables=LM_EVAL_0_4_13)
    for name, key, one in file.published:
        found = estimate(groups[name], key)
        assert found.value == pytest.approx(one["published"], rel=1e-15), (name, key)
        assert found.stderr == pytest.approx(one["published_stderr"], rel=1e-12, abs=1e-15), (name, key)
        assert found.n == one["n"]


@pytest.mark.parametrize(
    ("how", "which"),
    [(report_groups, "leaves"), (report_groups_by_children, "children")],
    ids=["leaves", "children"],
)
def test_both_derivations_of_the_error(file, how, which):
    groups = file.groups(how, tables=LM_EVAL_0_4_13)
    for name, key, one in file.published:
        found = estimate(groups[name], key)
        assert found.stderr == pytest.approx(one[f"stderr_pooled_over_{which}"], rel=1e-12, abs=1e-15), (
            name,
            key,
        )


def test_published_values_to_the_last_bit_where_leaves_are_added_in_its_order(file):
    how = report_groups_by_children if file.by_children else report_groups
    groups = file.groups(how, tables=LM_EVAL_0_4_13)
    assert all(estimate(groups[name], key).value == one["published"] for name, key, one in file.published)


def test_unweighted_means_over_leaves(file):
    for name, key, one in file.published:
        metric = GroupMetric(MetricKey.parse(key).metric, weight_by_size=False, aggregation="macro")
        tasks = {leaf.name: leaf.value for leaf in leaves_of(file.node(name))}
        tree = Group("g", tuple(Leaf(task, None) for task in tasks), (metric,))
        found = estimate(build_report(tasks.values(), [tree], tables=LM_EVAL_0_4_13).group("g"), key)
        if key.startswith("perplexity"):
            continue  # evalcore averages perplexities on the log scale (erratum E08)
        assert found.value == pytest.approx(one["unweighted"], rel=1e-14), (name, key)


def test_the_default_tables_agree_on_values_and_correct_the_errors(file):
    groups = file.groups(report_groups)
    for name, key, one in file.published:
        found = estimate(groups[name], key)
        if key.startswith("perplexity"):
            assert "E08" in found.errata
            continue
        assert found.value == pytest.approx(one["weighted"], rel=1e-13), (name, key)
        assert found.stderr == pytest.approx(one["published_stderr"], rel=0.2), (name, key)


def leaves_of(tree):
    return [tree] if isinstance(tree, Leaf) else [leaf for child in tree.children for leaf in leaves_of(child)]
