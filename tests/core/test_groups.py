"""Groups: values, configs, the three ways to join, the linter, and agreement with lm-eval's own library."""

from __future__ import annotations

import copy
import logging
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from counting import count_steps
from msgspec import structs
from toolz import unique

from evalcore import EVALCORE
from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.groups.config import group_metric_from_config
from evalcore.core.groups.tree import fold_group
from evalcore.core.pipeline import build_report
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import FAILED, OK
from evalcore.core.records.report import TaskReport
from evalcore.core.records.request import freeze_options
from evalcore.core.records.row import Floats
from evalcore.core.records.task import MetricKey, MetricSpec
from evalcore.groups import (
    Group,
    GroupMetric,
    GroupStatistics,
    Leaf,
    add_child,
    alias_of,
    all_groups,
    all_tasks,
    build_trees,
    child_names,
    get_child,
    group_from_config,
    group_to_dict,
    has_aggregation,
    leaf_from_flat,
    lint_configs,
    missing_children,
    parents_of,
    pop_child,
    qualified_names,
    remove_child,
    report_groups,
    statistics_of,
    version_of,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results, lmms_eval_results
from evalcore.shell.output.terminal.number_rows import list_rows

ANATOMY, BIOLOGY, CHEMISTRY = Leaf("anatomy", 10), Leaf("biology", 20), Leaf("chemistry", 30)
SCIENCE = Group("science", (BIOLOGY, CHEMISTRY))
HUMANITIES = Group("humanities", (Leaf("history", 40), Leaf("philosophy", 50)))
MMLU = Group(
    "mmlu", (ANATOMY, BIOLOGY, CHEMISTRY, SCIENCE, HUMANITIES), alias="MMLU", metadata=freeze_options(version=2)
)


def names(nodes):
    return [node.name for node in nodes]


# --- contract B, group values and statistics; C, the mmlu example ---------------------------------------------


def test_children_are_added_removed_found_iterated_and_counted():
    group = add_child(Group("g", (ANATOMY,)), BIOLOGY)
    assert child_names(group) == ("anatomy", "biology")
    assert list(group) == [ANATOMY, BIOLOGY]
    assert len(group) == 2
    assert get_child(group, "biology") is BIOLOGY
    assert get_child(group, "absent", None) is None
    assert "biology" in group
    assert "absent" not in group
    assert BIOLOGY not in group, "a group holds names"
    assert pop_child(group, "anatomy") == (ANATOMY, Group("g", (BIOLOGY,)))
    assert child_names(remove_child(group, "anatomy")) == ("biology",)
    assert child_names(group) == ("anatomy", "biology")


@pytest.mark.parametrize("ask", [get_child, pop_child, remove_child])
def test_an_unknown_child_is_named_with_the_nearest(ask):
    message = r"^unknown child 'anatmy'; did you mean 'anatomy'\? Known: anatomy, biology, .* - at group mmlu$"
    with pytest.raises(EvalError, match=message):
        ask(MMLU, "anatmy")


def test_a_child_of_the_same_name_is_replaced_in_place():
    group = add_child(Group("g", (ANATOMY, BIOLOGY)), Leaf("anatomy", 11))
    assert group.children == (Leaf("anatomy", 11), BIOLOGY)


def test_the_example_of_the_contract():
    group = Group("g", (ANATOMY, BIOLOGY, CHEMISTRY))
    group = add_child(add_child(group, SCIENCE), HUMANITIES)
    assert len(group) == 5
    assert names(all_tasks(group)) == ["anatomy", "biology", "chemistry", "history", "philosophy"]
    rest = group
    for name in ("anatomy", "biology", "chemistry"):
        rest = remove_child(rest, name)
    assert names(all_tasks(rest)) == ["biology", "chemistry", "history", "philosophy"]


def test_tasks_and_groups_recursive_or_direct_without_self():
    assert names(all_tasks(MMLU, recursive=False)) == ["anatomy", "biology", "chemistry"]
    outer = Group("outer", (MMLU,))
    assert names(all_groups(outer)) == ["mmlu", "science", "humanities"]
    assert names(all_groups(outer, recursive=False)) == ["mmlu"]


def test_has_aggregation_alias_version_and_repr():
    assert has_aggregation(Group("g", metrics=(GroupMetric("acc"),)))
    assert not has_aggregation(MMLU)
    assert (alias_of(MMLU), alias_of(SCIENCE)) == ("MMLU", "science")
    assert (version_of(MMLU), version_of(SCIENCE)) == ("2", "N/A")
    assert repr(SCIENCE) == "Group('science', 2 children: [biology, chemistry], version=N/A)"


def test_qualified_names():
    assert "mmlu::humanities" in qualified_names(MMLU)
    assert "mmlu::humanities::history" in qualified_names(MMLU)


def test_statistics_missing_children_and_parents():
    assert statistics_of(MMLU, lambda leaf: leaf.value) == GroupStatistics(5, 2, 150)
    assert missing_children(MMLU, ("anatomy", "law")) == ("law",)
    assert parents_of(MMLU, "biology") == ("mmlu", "science")
    assert parents_of(Group("outer", (MMLU,)), "science") == ("mmlu",)
    assert parents_of(MMLU, "law") == ()


def test_statistics_of_reports_count_their_documents():
    rows = {"a": {"acc,none": 0.5, "sample_len": 30}, "b": {"acc,none": 0.5, "samples": 10}, "c": {"acc,none": 0.5}}
    tree = Group("g", tuple(leaf_from_flat(name, row) for name, row in rows.items()))
    assert statistics_of(tree) == GroupStatistics(3, 0, 40)
    assert statistics_of(Group("g", (Leaf("a", None),))) == GroupStatistics(1, 0, 0)


def test_what_a_config_lists_is_compared_with_what_is_there():
    listed = ["a", {"task": "b", "num_fewshot": 5}, {"group": "h", "task": ["c"]}]
    shell = group_from_config({"group": "g", "task": listed})
    assert missing_children(shell) == ("a", "b", "h")
    filled = add_child(add_child(shell, Leaf("a", 1)), Leaf("g::b", 2))
    assert missing_children(filled) == ("h",)
    assert missing_children(remove_child(filled, "a")) == ("a", "h")
    assert group_to_dict(add_child(filled, Leaf("new", 3)))["task"] == [*listed, "new"]


def test_an_entry_without_a_name_lists_nothing():
    assert missing_children(Group("g", listed=({"num_fewshot": 5}, 3, "a"))) == ("a",)


def test_children_change_without_a_look_at_what_is_listed():
    """So that adding children one by one takes no longer the more a config says of each."""
    short, long = (Group("g", (ANATOMY,), listed=({"task": "a", "tags": ["t"] * 9},) * n) for n in (1, 100))
    for change in (lambda group: add_child(group, BIOLOGY), lambda group: remove_child(group, "anatomy")):
        change(short)
        assert count_steps(lambda change=change: change(long)) == count_steps(lambda change=change: change(short))
        assert change(long).listed == long.listed
    with pytest.raises(EvalError, match=r"expected Leaf or Group as children, got .* - at group g"):
        add_child(short, MetricSpec("x"))


# --- frozen at the door ----------------------------------------------------------------------------------------


def test_a_group_cannot_be_changed():
    with pytest.raises(AttributeError):
        MMLU.name = "other"


def given_lists():
    """What a caller may hold, and the same group made from it."""
    held = {
        "children": [Leaf("a", {"scores": [1]}), Group("h")],
        "metrics": [GroupMetric("acc", ["none"], weights={"a": 1, "h": 2})],
        "metadata": {"version": 1, "authors": ["x", {"y": [2]}]},
        "listed": ["a", {"task": "b", "tags": ["t"]}],
    }
    return held, Group("g", **held)


def test_records_freeze_what_they_are_given():
    held, made = given_lists()
    before = pickle.dumps(made)
    held["children"].clear()
    held["metrics"].clear()
    held["metadata"]["authors"][1]["y"].append(3)
    held["metadata"]["version"] = 2
    held["listed"][1]["tags"].append("u")
    held["listed"].append("c")
    assert made == given_lists()[1]
    assert hash(made) == hash(given_lists()[1])
    assert pickle.loads(before) == made
    assert (child_names(made), version_of(made), made.metadata["authors"]) == (("a", "h"), "1", ("x", {"y": (2,)}))
    assert made.children[0].value == {"scores": (1,)}
    assert (made.metrics[0].filters, dict(made.metrics[0].weights)) == (("none",), {"a": 1, "h": 2})


def test_fields_of_a_rule_are_frozen_too():
    filters, weights = ["none", "strict"], {"a": 1}
    made = GroupMetric("acc", filters, weights=weights)
    filters.append("loose")
    weights["b"] = 2
    assert made == GroupMetric("acc", ("none", "strict"), weights=freeze_options(a=1))
    assert hash(made) == hash(GroupMetric("acc", ("none", "strict"), weights={"a": 1}))


# --- contract C, the numbers of a group --------------------------------------------------------------------------


def number_of(rows, **rule):
    leaves = [leaf_from_flat(f"t{i}", row) for i, row in enumerate(rows)]
    return report_groups(Group("g", leaves, [GroupMetric("acc", **rule)]))[0]["acc,none"]


def test_three_tasks_by_size():
    rows = [{"acc,none": value, "samples": n} for value, n in ((0.85, 100), (0.92, 150), (0.88, 120))]
    by_size, equal = number_of(rows), number_of(rows, weight_by_size=False)
    assert (round(by_size.value, 6), by_size.n, by_size.stderr) == (0.888108, 370, None)
    assert equal.value == pytest.approx(0.8833333333333333, abs=1e-15)


@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
def test_two_tasks_without_sizes_weigh_1_and_have_no_n(tables):
    tasks = [leaf_from_flat(name, {"acc,none": value}).value for name, value in (("a", 0.8), ("b", 0.9))]
    tree = Group("g", [Leaf("a", None), Leaf("b", None)], [GroupMetric("acc")])
    report = build_report(tasks, [tree], tables=tables)
    numbers = [report.task("a")["acc,none"], report.task("b")["acc,none"], report.group("g")["acc,none"]]
    assert numbers[2].value == pytest.approx(0.85)
    assert [(one.n, one.counts.scored, "n=" in repr(one)) for one in numbers] == [(None, 0, False)] * 3
    assert [line.split()[-1] for line in str(report).splitlines()] == ["n", "-", "-", "-"]
    assert [row.n for row in list_rows(report)] == [None] * 3
    written = lm_eval_results(report)
    assert all("sample_len" not in row and "sample_count" not in row for row in written["results"].values())
    assert written["n-samples"] == {}
    assert "samples" not in lmms_eval_results(report)[0]["a"]
    assert [one["acc,none"]["n"] for one in written["evalcore"]["estimates"].values()] == [None] * 3
    assert leaf_from_flat("a", written["results"]["a"]).value["acc,none"].n is None


def test_a_task_without_a_size_beside_tasks_with_one():
    sized, none = {"acc,none": 0.2, "acc_stderr,none": 0.1, "sample_len": 3}, {"acc,none": 1.0, "acc_stderr,none": 0.2}
    found = number_of([sized, none])
    assert found.value == pytest.approx(0.4, abs=1e-15)
    assert found.stderr == pytest.approx((0.75**2 * 0.1**2 + 0.25**2 * 0.2**2) ** 0.5, rel=1e-14)
    assert (found.n, found.ci) == (None, None), "an interval needs to know how many documents there are"
    assert number_of([sized, {**none, "sample_len": 0}]).value == pytest.approx(0.2), "no documents, no weight"


@pytest.mark.parametrize("depth", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_tree_many_groups_deep_is_built_and_folded(depth):
    """Deeper than Python calls functions within functions."""
    configs = [{"group": f"g{i}", "task": [f"g{i + 1}"]} for i in range(depth)]
    (tree,) = build_trees([*configs, {"group": f"g{depth}", "task": ["a"]}, {"task": "a"}])
    assert fold_group(tree, lambda leaf: 0, lambda group, parts: 1 + parts[0]) == depth + 1
    with pytest.raises(EvalError, match=r"g0 -> g1 -> .* -> \.\.\. -> .* -> g0"):
        build_trees([*configs, {"group": f"g{depth}", "task": ["g0"]}])


# --- to and from plain data --------------------------------------------------------------------------------------

FULL = {
    "group": "g",
    "group_alias": "G",
    "task": ["a", {"task": "b", "num_fewshot": 5}, {"group": "h", "task": ["c"]}],
    "aggregate_metric_list": [
        {"metric": "acc", "filter_list": ["none"], "aggregation": "mean", "weight_by_size": False},
        {
            "metric": "f1",
            "filter_list": None,
            "aggregation": "macro",
            "weight_by_size": True,
            "average": "children",
            "weights": {"a": 2.0},
            "missing": "fail",
        },
    ],
    "metadata": {"version": 1.0, "authors": ["x"]},
}


def test_round_trip():
    assert group_to_dict(group_from_config(FULL)) == FULL
    assert group_from_config(group_to_dict(MMLU)) == structs.replace(MMLU, children=(), listed=child_names(MMLU))
    assert group_to_dict(group_from_config({"group": "g", "task": "a"})) == {"group": "g", "task": ["a"]}
    assert group_to_dict(MMLU)["task"] == ["anatomy", "biology", "chemistry", "science", "humanities"]
    assert group_to_dict(Group("bare")) == {"group": "bare"}


def test_keys_without_an_order_are_written_sorted():
    """Written as it comes, a ``PMap`` or a set is another text in every process."""
    names = [chr(at) for at in range(ord("a"), ord("z") + 1)]
    given = freeze_options(dict.fromkeys(reversed(names), 1))
    inner = {"z": 1, "a": 2}
    written = group_to_dict(Group("g", metrics=(GroupMetric("acc", weights=given),), metadata=given, listed=(inner,)))
    assert list(written["metadata"]) == list(written["aggregate_metric_list"][0]["weights"]) == names
    assert list(written["task"][0]) == ["z", "a"]  # as its config has them
    assert group_to_dict(Group("g", metadata={"tags": set(names)}))["metadata"]["tags"] == names


ONE_METRIC = FULL | {"aggregate_metric_list": FULL["aggregate_metric_list"][:1]}
"""What lm-eval knows of it."""


def test_lm_eval_reads_and_writes_the_same_schema():
    lm = pytest.importorskip("lm_eval.api.group")
    theirs = lm.Group.from_config(group_to_dict(group_from_config(ONE_METRIC)))
    assert theirs.to_dict() == ONE_METRIC
    theirs._config = None
    assert theirs.to_dict() == {key: value for key, value in ONE_METRIC.items() if key != "task"}


LOOSE = [
    ONE_METRIC,
    {"group": "bare"},
    {"group": "g", "task": "a"},
    {"group": "g", "task": ["a", "b"], "aggregate_metric_list": {"metric": "acc", "filter_list": "x"}},
    {"group": "g", "aggregate_metric_list": [{"metric": "acc"}, {"metric": "f1", "weight_by_size": False}]},
]


@pytest.mark.parametrize("config", LOOSE)
def test_lm_evals_own_objects_are_read_as_they_are(config):
    """Its GroupConfig, its Group, its ConfigurableGroup and what each writes: one group, and the same plain data."""
    lm = pytest.importorskip("lm_eval.api.group")
    config = copy.deepcopy(config)
    theirs = lm.GroupConfig(**config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        configurable = lm.ConfigurableGroup(config=copy.deepcopy(config))
    objects = [theirs, lm.Group.from_config(theirs), configurable]
    expected = group_from_config(config)
    written = {key: value for key, value in theirs.to_dict().items() if value is not None}
    for given in [*objects, *(one.to_dict() for one in objects), vars(theirs)]:
        assert group_from_config(given) == expected
        assert group_to_dict(group_from_config(given)) == written
    assert theirs == lm.GroupConfig(**config), "nothing of theirs is changed"


def test_lm_evals_filled_group_lists_its_children():
    lm = pytest.importorskip("lm_eval.api.group")
    theirs = lm.Group("g", alias="G", aggregate_metric_list=[lm.AggMetricConfig("acc", aggregation=max)])
    theirs.add(lm.Group("h"))
    ours = group_from_config(theirs)
    assert (ours.listed, ours.alias, ours.metrics) == (("h",), "G", (GroupMetric("acc", aggregation=max),))


@pytest.mark.parametrize("given", [None, {"metric": "acc"}, [{"metric": "acc"}], GroupMetric("acc")])
def test_loose_lists_of_metrics(given):
    expected = () if given is None else (GroupMetric("acc"),)
    assert group_from_config({"group": "g", "aggregate_metric_list": given}).metrics == expected


def test_metric_entries():
    assert group_metric_from_config({"metric": "acc"}) == GroupMetric("acc")
    assert group_metric_from_config({"metric": "acc", "filter_list": "x"}).filters == ("x",)
    assert group_metric_from_config({"metric": "acc", "filter_list": ["x", "y"]}).filters == ("x", "y")
    assert group_metric_from_config({"metric": "acc", "aggregation": max}).aggregation is max
    shown = group_to_dict(
        group_from_config({"group": "g", "aggregate_metric_list": {"metric": "acc", "aggregation": max}})
    )
    assert shown["aggregate_metric_list"][0]["aggregation"] == "builtins.max"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"metric": "acc", "aggregation": "men"}, "unknown group aggregation 'men'; did you mean 'mean'"),
        ({"metric": "acc", "weight_by_sise": True}, "did you mean 'weight_by_size'"),
        ({"metric": "acc", "average": "leafs"}, "did you mean 'leaves'"),
        ({"metric": "acc", "missing": "fall"}, "did you mean 'fail'"),
        ({"metric": "acc", "weight_by_size": "yes"}, "expected weight_by_size: true or false, got 'yes'"),
        ({"metric": "acc", "weights": {"a": -1}}, "expected weights"),
        ({"metric": "acc", "weights": {"a": float("nan")}}, "expected weights"),
        ({"metric": "acc", "filter_list": [1]}, "expected filter_list"),
        ({"aggregation": "mean"}, "expected metric: a name"),
    ],
)
def test_wrong_metric_entries_say_what_and_where(entry, message):
    with pytest.raises(EvalError, match=message) as raised:
        group_metric_from_config(entry)
    assert "aggregate_metric_list" in str(raised.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"group": "g", "group_alais": "G"}, "did you mean 'group_alias'"),
        ({"group": 3}, "expected group: a name"),
        ({"group": "g", "metadata": "1"}, "expected metadata"),
        ({"group": "g", "group_alias": 1}, "expected group_alias"),
        ({"group": "g", "task": ["a", 1]}, "expected task: names, or mappings with task or group, got 1 - at group g"),
        (["group", "g"], r"expected a group's config, got \['group', 'g'\]"),
        ({"group": "g", "aggregate_metric_list": ["acc"]}, "got 'acc' - at aggregate_metric_list - at group g"),
    ],
)
def test_wrong_group_configs(config, message):
    with pytest.raises(EvalError, match=message):
        group_from_config(config)


# --- the three ways to join ----------------------------------------------------------------------------------------

A, B, C = ({"task": name, "output_type": "multiple_choice"} for name in "abc")


def group(name, *children, **more):
    return {"group": name, "task": list(children), **more}


def test_a_list_names_children_in_order():
    (tree,) = build_trees([A, B, group("g", "b", "h", "a"), group("h", "a")])
    assert child_names(tree) == ("b", "h", "a")
    assert get_child(tree, "a") is get_child(get_child(tree, "h"), "a")
    assert get_child(tree, "a").value == freeze_options(A)


def test_inline_tasks_with_changes_get_a_name_of_their_own():
    inline = {"task": "a", "num_fewshot": 5}
    (tree,) = build_trees([A, group("g", "a", inline, {"task": "a", "output_type": "multiple_choice"})])
    assert child_names(tree) == ("a", "g::a")
    assert get_child(tree, "g::a").value == freeze_options(A, num_fewshot=5, task="g::a")


def test_an_alias_changes_no_name():
    (tree,) = build_trees([A, group("g", {"task": "a", "task_alias": "first"})])
    assert tree.children == (Leaf("a", freeze_options(A, task_alias="first")),)


def test_a_new_inline_task_and_a_new_inline_group():
    new = {"task": "new", "dataset_path": "somewhere"}
    inline = {"group": "h", "group_alias": "H", "task": ["b", {"group": "i", "task": ["c"]}], "num_fewshot": 0}
    (tree,) = build_trees([B, C, group("g", new, inline)])
    assert child_names(tree) == ("g::new", "g::h")
    assert alias_of(get_child(tree, "g::h")) == "H"
    assert names(all_tasks(tree)) == ["g::new", "g::h::b", "g::h::i::c"]
    assert get_child(get_child(tree, "g::h"), "g::h::b").value["num_fewshot"] == 0


def test_defaults_of_a_group_reach_its_tasks_and_a_child_says_more():
    (tree,) = build_trees([A, B, group("g", "a", {"task": "b", "num_fewshot": 1}, num_fewshot=3)])
    assert [leaf.value["num_fewshot"] for leaf in all_tasks(tree)] == [3, 1]


def test_a_declared_group_with_changes_is_another_group():
    configs = [A, group("h", "a"), group("g", "h", {"group": "h", "num_fewshot": 2})]
    (tree,) = build_trees(configs)
    assert child_names(tree) == ("h", "g::h")
    assert names(all_tasks(tree)) == ["a", "g::h::a"]


@pytest.mark.parametrize("join", [{"tag": "t"}, {"tag": ["t", "u"]}, {"group": "t"}, {"group": ["t"]}])
def test_a_task_names_its_group(join):
    trees = build_trees([B | join, A | join, C], roots=["t"])
    assert trees == (Group("t", (Leaf("b", freeze_options(B | join)), Leaf("a", freeze_options(A | join)))),)
    assert not has_aggregation(trees[0])


def test_a_tag_in_a_list_stands_for_its_tasks_and_a_declared_group_takes_them_in():
    (tree,) = build_trees([A | {"tag": "t"}, B | {"tag": "t"}, C | {"tag": "g"}, group("g", "t")])
    assert child_names(tree) == ("a", "b", "c")


def test_roots():
    configs = [A, B, C, group("g", "a"), group("h", "g"), group("i", "b")]
    assert names(build_trees(configs)) == ["h", "i", "c"]
    assert names(build_trees(configs, roots=["a", "g"])) == ["a", "g"]
    with pytest.raises(EvalError, match="unknown task or group 'gg' in the roots; did you mean 'g'"):
        build_trees(configs, roots=["gg"])


def test_what_cannot_be_built_is_refused():
    with pytest.raises(EvalError, match=r"groups contain each other: x -> y -> x - at x\.yaml"):
        build_trees([group("x", "y", path="x.yaml"), group("y", {"group": "z", "task": ["x"]})])
    with pytest.raises(EvalError, match="g -> g"):
        build_trees([group("g", {"group": "g", "num_fewshot": 1})])
    with pytest.raises(EvalError, match="unknown task or group 'arc_esy' in group 'g'; did you mean 'arc_easy'"):
        build_trees([{"task": "arc_easy"}, group("g", "arc_esy")])
    with pytest.raises(EvalError, match=r"task 'a' is already defined in one\.yaml - at two\.yaml"):
        build_trees([A | {"path": "one.yaml"}, A | {"path": "two.yaml"}])
    with pytest.raises(EvalError, match="group 'a' is already defined in config 0 - at config 1"):
        build_trees([A, group("a")])
    with pytest.raises(EvalError, match="'a' is a task, and also a tag of b"):
        build_trees([A, B | {"tag": "a"}])
    with pytest.raises(EvalError, match="'g::a' is defined twice, and differently"):
        build_trees([A, group("g", {"task": "a", "num_fewshot": 1}, {"task": "a", "num_fewshot": 2})])
    with pytest.raises(EvalError, match="'h' is defined twice"):
        build_trees([A, group("h", "a"), group("g", {"group": "h", "task": ["a"]})])
    with pytest.raises(EvalError, match=r"expected a name, .* got \{'num_fewshot': 1\}"):
        build_trees([group("g", {"num_fewshot": 1})])
    with pytest.raises(EvalError, match="unknown group aggregation 'sum'"):
        build_trees([A, group("g", "a", aggregate_metric_list={"metric": "acc", "aggregation": "sum"})])


def test_only_what_the_roots_reach_is_refused():
    assert names(build_trees([A, group("g", "a"), group("broken", "nowhere")], roots=["g"])) == ["g"]


# --- the linter --------------------------------------------------------------------------------------------------


def kinds(*configs):
    return [found.kind for found in lint_configs(configs)]


def task(name, *metrics, output_type="generate_until", **more):
    return {"task": name, "output_type": output_type, "metric_list": list(metrics), **more}


def judged(metric, *tasks, **more):
    return lint_configs(
        [*tasks, group("g", *(one["task"] for one in tasks), aggregate_metric_list=[{"metric": metric, **more}])]
    )


def test_all_problems_of_structure_at_once():
    found = kinds(group("g", "h", "nowhere"), group("h", "g", {}), A, A, {})
    assert sorted(found) == ["bad_config", "bad_config", "cycle", "duplicate_name", "unknown_child"]


def test_sound_configs_have_no_findings():
    assert judged("acc", A, B) == ()


def test_a_leaf_reached_twice_names_both_paths_once():
    (found,) = lint_configs([A, group("g", "a", "h"), group("h", "a"), group("top", "g")])
    assert found.kind == "leaf_reached_twice"
    assert "g::a and g::h::a" in found.message


def test_metrics_that_no_task_reports():
    exact = {"metric": "exact_match"}
    (found,) = judged("exact_mtch", task("a", exact))
    assert (found.kind, "did you mean 'exact_match,none'" in found.message) == ("metric_not_emitted", True)
    strict = task("a", exact, filter_list=[{"name": "strict", "filter": []}])
    assert judged("exact_match", strict, filter_list="strict") == ()
    assert "reports 'exact_match,none'" in judged("exact_match", strict, filter_list=["none"])[0].message
    many = [task(f"t{i}", {"metric": "f1"}) for i in range(7)]
    (found,) = judged("exact_match", task("a", exact), *many)
    assert "'exact_match,none' is missing in 7 of 8 tasks: t0, t1, t2, t3, t4 and 2 more" in found.message
    own = task("a", exact, filter_list=[{"name": "x", "filter": [], "metric_list": [{"metric": "f1"}]}])
    assert judged("f1", own) == ()
    assert judged("anything", {"task": "a", "class": object}) == ()


def test_mixed_directions():
    up, down = ({"metric": "score", "higher_is_better": way} for way in (True, False))
    (found,) = judged("score", task("a", up), task("b", down))
    assert (found.kind, "higher is better in a; lower is better in b" in found.message) == ("mixed_direction", True)
    told = lint_configs(
        [
            task("a", up),
            task("b", {"metric": "score"}),
            group("g", "a", "b", aggregate_metric_list={"metric": "score"}),
        ],
        metrics_of=lambda output_type: {"score": False},
    )
    assert [one.kind for one in told] == ["mixed_direction"]


@pytest.mark.parametrize(
    ("metric", "one", "other", "aggregation", "expected"),
    [
        ("f1", task("a", {"metric": "f1"}), task("b", {"metric": "f1"}, output_type="multiple_choice"), "mean", {"mixed_scale", "not_averageable"}),
        ("f1", task("a", {"metric": "f1"}), task("b", {"metric": "f1"}, output_type="multiple_choice"), "macro", set()),
        ("bleu", task("a", {"metric": "bleu"}), task("b", {"metric": "bleu", "aggregation": "mean"}), "macro", {"mixed_scale"}),
        ("acc", task("a", {"metric": "acc", "aggregation": "perplexity"}), A | {"task": "b"}, "mean", {"mixed_scale"}),
        ("x", task("a", {"metric": "x", "aggregation": "nanmean"}), task("b", {"metric": "x"}), "mean", set()),
        ("x", task("a", {"metric": "x", "aggregation": "median"}), task("b", {"metric": "x", "aggregation": "median"}), "mean", {"not_averageable"}),
        ("x", task("a", {"metric": "x", "aggregation": max}), task("b", {"metric": "x", "aggregation": max}), "macro", set()),
    ],
)  # fmt: skip
def test_scales_and_what_can_be_averaged(metric, one, other, aggregation, expected):
    assert {found.kind for found in judged(metric, one, other, aggregation=aggregation)} == expected


def test_what_is_not_averageable_suggests_a_rule():
    (found,) = judged("mcc", task("a", {"metric": "mcc"}, output_type="multiple_choice"))
    assert found.message.endswith("(matthews_corrcoef in a): declare macro or pool")


def test_a_finding_is_located_in_the_file():
    (found,) = lint_configs([group("g", "nowhere", path="tasks/g.yaml")])
    assert found.where == "tasks/g.yaml"


# --- lm-eval's own library -----------------------------------------------------------------------------------------


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML in which ``!function`` is the name of a function."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def load(path):
    config = yaml.load(path.read_bytes(), Loader)
    merged = {}
    for include in [config.pop("include")] if "include" in config else []:
        merged |= load(path.parent / include)
    return merged | config | {"path": str(path)}


def library(folder):
    loaded = [load(path) for path in sorted(folder.rglob("*.yaml"))]
    return list(unique([one for one in loaded if "task" in one], key=lambda one: one.get("group") or one["task"]))


@pytest.fixture(scope="module")
def theirs():
    logging.disable(logging.ERROR)
    tasks = pytest.importorskip("lm_eval.tasks")
    yield Path(tasks.__file__).parent
    logging.disable(logging.NOTSET)


FOLDERS = [
    "mmlu/default",
    "mmlu/generative",
    "agieval",
    "bbh/zeroshot",
    "glue",
    "blimp",
    "arithmetic",
    "hendrycks_math",
    "super_glue",
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_trees_agree_with_lm_eval(folder, theirs, monkeypatch):
    """lm-eval's own factory builds its tree, with a task that loads no dataset in place of its own."""
    from lm_eval.api.task import Task
    from lm_eval.tasks import TaskManager, _factory

    class NoData(Task):
        def __init__(self, config):
            self._name = config["task"]

        task_name = property(lambda self: self._name)

    for abstract in list(NoData.__abstractmethods__):
        setattr(NoData, abstract, None)
    NoData.__abstractmethods__ = frozenset()
    monkeypatch.setattr(_factory, "ConfigurableTask", NoData)
    manager = TaskManager(include_defaults=False, include_path=str(theirs / folder))
    configs = library(theirs / folder)
    groups = manager.all_groups
    assert groups or manager.all_tags
    for name, ours in zip(groups, build_trees(configs, roots=groups), strict=True):
        lm = manager._load_spec(name)
        assert sorted(child_names(ours)) == sorted(lm.child_names)
        assert {leaf.name for leaf in all_tasks(ours)} == {one.task_name for one in lm.get_all_tasks()}
        assert [one.name for one in all_groups(ours)] == list(dict.fromkeys(one.name for one in lm.get_all_groups()))
        assert (version_of(ours), ours.alias) == (lm.version, lm.alias)
        assert [metric.metric for metric in ours.metrics] == [one.metric for one in lm.aggregate_metric_list or []]
    for tag, ours in zip(manager.all_tags, build_trees(configs, roots=manager.all_tags), strict=True):
        assert sorted(child_names(ours)) == sorted(manager.task_index[tag].tags)


def test_mmlu_has_57_tasks_in_four_groups(theirs):
    (mmlu,) = build_trees(library(theirs / "mmlu/default"), roots=["mmlu"])
    assert statistics_of(mmlu, lambda leaf: 1) == GroupStatistics(57, 4, 57)


def test_where_we_differ_from_lm_eval(theirs):
    """lm-eval keeps the name of a task that a group changes: two settings, one name. Here each has its own."""
    arc = {"task": "arc_challenge", "dataset_path": "allenai/ai2_arc", "output_type": "multiple_choice"}
    openllm = load(theirs / "benchmarks/openllm.yaml")
    listed = [
        {"task": one["task"], "num_fewshot": one["num_fewshot"]}
        for one in openllm["task"]
        if isinstance(one, dict) and one.get("task") == "arc_challenge"
    ]
    (tree,) = build_trees([arc, group("openllm", "arc_challenge", *listed)])
    assert child_names(tree) == ("arc_challenge", "openllm::arc_challenge")


@pytest.mark.parametrize(("runs", "least"), [(80, 0.85), pytest.param(300, 0.9, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("tasks", "documents", "p"), [(57, 2, 0.3), (57, 5, 0.3), (20, 3, 0.5)])
def test_the_interval_of_a_group_of_small_tasks_covers(
    tasks: int, documents: int, p: float, runs: int, least: float
) -> None:
    """What everybody does first: a large group under a small limit."""
    rng, hits = np.random.default_rng(1), 0
    tree = Group("g", tuple(Leaf(f"t{k}", None) for k in range(tasks)), (GroupMetric("acc"),))
    for _ in range(runs):
        draws = rng.random((tasks, documents)) < p
        errors = draws.std(axis=1, ddof=1) / documents**0.5
        done = [
            leaf_from_flat(
                f"t{k}",
                {"acc,none": float(draws[k].mean()), "acc_stderr,none": float(errors[k]), "sample_len": documents},
            ).value
            for k in range(tasks)
        ]
        low, high = build_report(done, [tree]).group("g")["acc,none"].ci
        hits += low <= p <= high
    assert hits / runs >= least


@pytest.mark.parametrize("by_size", [True, False])
def test_bounds_of_a_group_are_those_of_every_way_to_score_the_lost(by_size: bool) -> None:
    """Two tasks with lost documents: the extremes are reached when all of them are right, or all wrong."""
    given = {"a": ([1.0, 0.0, 1.0], 5), "b": ([1.0], 1)}

    def reports(fill: float | None) -> list[TaskReport]:
        out = []
        for name, (scores, lost) in given.items():
            whole = scores + [0.0 if fill is None else fill] * lost
            status = np.array([OK] * len(scores) + [FAILED if fill is None else OK] * lost, np.uint8)
            made = build_column(range(len(whole)), Floats(Array(whole)), status)
            estimate = aggregate_metric(AGGREGATIONS["mean"], made)
            out.append(TaskReport(name=name, estimates=((MetricKey("acc"), estimate),)))
        return out

    tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("acc", weight_by_size=by_size),))
    found = build_report(reports(None), [tree]).group("g")["acc,none"]
    ends = [build_report(reports(fill), [tree]).group("g")["acc,none"].value for fill in (0.0, 1.0)]
    assert (found.counts.lowest, found.counts.highest) == pytest.approx(tuple(ends), rel=1e-12)
