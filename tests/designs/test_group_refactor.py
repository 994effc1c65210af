"""The group refactor: a test for each part of its group, its consolidation, its building of trees and its examples."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace

import pytest

from evalcore import EvalError, build_report
from evalcore.adapters.lmms_eval import consolidate_group_results
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
    remove_child,
    report_groups,
    statistics_of,
    version_of,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results, lmms_eval_results
from evalcore.stats import Inference, Resampling

SUBJECTS = ("anatomy", "biology", "chemistry", "history", "philosophy")
ANATOMY, BIOLOGY, CHEMISTRY, HISTORY, PHILOSOPHY = (Leaf(f"mmlu_{name}", name) for name in SUBJECTS)
STEM = Group("mmlu_stem", [BIOLOGY, CHEMISTRY])
HUMANITIES = Group("mmlu_humanities", [HISTORY, PHILOSOPHY])
RESULTS = {
    "mmlu_anatomy": {"acc,none": 0.85, "samples": 100},
    "mmlu_biology": {"acc,none": 0.92, "samples": 150},
    "mmlu_chemistry": {"acc,none": 0.88, "samples": 120},
}
CONFIG = {
    "group": "mmlu",
    "group_alias": "MMLU",
    "aggregate_metric_list": [
        {"metric": "acc", "aggregation": "mean", "weight_by_size": True, "filter_list": ["none"]}
    ],
}
MMLU = add_child(add_child(add_child(group_from_config(CONFIG), ANATOMY), BIOLOGY), CHEMISTRY)


def names(nodes):
    return [node.name for node in nodes]


def report(results, *trees, **more):
    return build_report([leaf_from_flat(name, row).value for name, row in results.items()], trees, **more)


def group_of(results, *metrics):
    return Group("g", [Leaf(name, None) for name in results], metrics)


def compute(results, group, **more):
    """The row of a group, in lm-eval's schema."""
    return lm_eval_results(report(results, group, **more))["results"][group.name]


# --- a group and its config ----------------------------------------------------------------------------------------


def test_a_group_has_name_config_and_tasks():
    listed = {**CONFIG, "task": ["mmlu_anatomy"]}
    made = group_from_config(listed)
    assert (made.name, made.alias, made.listed, child_names(made)) == ("mmlu", "MMLU", ("mmlu_anatomy",), ())
    assert group_to_dict(made) == listed


def test_a_group_metric_has_metric_aggregation_weights_and_filters():
    (made,) = MMLU.metrics
    assert (made.metric, made.aggregation, made.weight_by_size, made.filters) == ("acc", "mean", True, ("none",))


def test_the_alias_falls_back_to_the_name():
    assert (alias_of(MMLU), alias_of(STEM)) == ("MMLU", "mmlu_stem")


def test_the_version_is_from_metadata():
    assert version_of(group_from_config({"group": "g", "metadata": {"version": 1.5}})) == "1.5"
    assert version_of(group_from_config({"group": "g"})) == "N/A"


def test_a_task_or_a_group_is_added_under_its_name():
    made = add_child(add_child(Group("g"), ANATOMY), STEM)
    assert child_names(made) == ("mmlu_anatomy", "mmlu_stem")
    assert list(made) == [ANATOMY, STEM]


def test_a_task_is_removed():
    assert child_names(remove_child(MMLU, "mmlu_biology")) == ("mmlu_anatomy", "mmlu_chemistry")


def test_removing_what_is_not_there():
    with pytest.raises(EvalError, match="unknown child 'mmlu_law'"):
        remove_child(MMLU, "mmlu_law")
    assert pop_child(MMLU, "mmlu_law", None)[1] == MMLU


def test_a_task_is_looked_up_by_name():
    assert get_child(MMLU, "mmlu_biology") is BIOLOGY
    assert get_child(MMLU, "mmlu_law", None) is None


def test_all_tasks_recursive_or_direct():
    mixed = Group("g", [ANATOMY, STEM])
    assert all_tasks(mixed) == (ANATOMY, BIOLOGY, CHEMISTRY)
    assert all_tasks(mixed, recursive=False) == (ANATOMY,)


def test_tasks_are_iterated_without_their_groups():
    assert [task.name for task in all_tasks(Group("g", [STEM, ANATOMY]))] == [
        "mmlu_biology",
        "mmlu_chemistry",
        "mmlu_anatomy",
    ]


def test_the_repr_has_the_name_and_the_count():
    assert repr(STEM) == "Group('mmlu_stem', 2 children: [mmlu_biology, mmlu_chemistry], version=N/A)"


def test_length_and_membership_are_of_direct_children():
    made = Group("g", [ANATOMY, STEM])
    assert len(made) == 2
    assert "mmlu_stem" in made
    assert "mmlu_biology" not in made


def test_parents_tell_which_groups_a_task_belongs_to():
    assert parents_of(Group("mmlu", [BIOLOGY, STEM]), "mmlu_biology") == ("mmlu", "mmlu_stem")


def test_nothing_is_cached_in_a_group():
    group = group_of(RESULTS, GroupMetric("acc"))
    first = compute(RESULTS, group)
    better = {**RESULTS, "mmlu_anatomy": {"acc,none": 1.0, "samples": 100}}
    assert compute(better, group)["acc,none"] > first["acc,none"]
    assert compute(RESULTS, group) == first


# --- its own aggregations ------------------------------------------------------------------------------------------


def test_without_a_list_there_are_no_numbers():
    assert compute(RESULTS, group_of(RESULTS)) == {"alias": "g", "name": "g"}
    assert not has_aggregation(group_of(RESULTS))


def test_every_metric_and_filter_has_a_value_and_an_error():
    rows = {"a": {"acc,none": 0.5, "acc,strict": 0.25, "f1,none": 0.75}}
    made = compute(rows, group_of(rows, GroupMetric("acc", ["none", "strict"]), GroupMetric("f1", ["none"])))
    keys = ("acc,none", "acc_stderr,none", "acc,strict", "acc_stderr,strict", "f1,none", "f1_stderr,none")
    assert [made[key] for key in keys] == [0.5, "N/A", 0.25, "N/A", 0.75, "N/A"]


def test_a_task_without_results_is_passed_over():
    group = group_of([*RESULTS, "not_run"], GroupMetric("acc"))
    assert compute(RESULTS, group) == compute(RESULTS, group_of(RESULTS, GroupMetric("acc")))
    assert report(RESULTS, group).group("g").warnings == ("group 'g': acc,none is missing in 1/4 tasks: not_run",)


def test_a_task_without_the_metric_is_passed_over():
    rows = {**RESULTS, "other": {"f1,none": 0.0, "samples": 1000}}
    assert compute(rows, group_of(rows, GroupMetric("acc")))["acc,none"] == pytest.approx(0.888108, abs=1e-6)


def test_a_metric_that_no_task_has_gives_no_key():
    assert "f1,none" not in compute(RESULTS, group_of(RESULTS, GroupMetric("f1", ["none"])))


def test_a_size_is_one_unless_given():
    rows = {"a": {"acc,none": 0.0}, "b": {"acc,none": 1.0, "samples": 3}}
    assert compute(rows, group_of(rows, GroupMetric("acc")))["acc,none"] == 0.75


@pytest.mark.parametrize("by_size", [True, False])
def test_the_mean_weighs_by_size_or_not(by_size):
    made = compute(RESULTS, group_of(RESULTS, GroupMetric("acc", weight_by_size=by_size)))["acc,none"]
    assert made == pytest.approx(328.6 / 370 if by_size else 2.65 / 3, rel=1e-14)


def test_a_callable_is_called_with_values_and_sizes():
    def smallest_and_sizes(values, sizes):
        assert sizes == [100, 150, 120]
        return min(values) + sum(sizes)

    group = group_of(RESULTS, GroupMetric("acc", aggregation=smallest_and_sizes))
    assert compute(RESULTS, group)["acc,none"] == pytest.approx(370.85, rel=1e-15)


def test_an_unknown_aggregation_is_an_error():
    with pytest.raises(ValueError, match="unknown group aggregation 'total'"):
        report(RESULTS, group_of(RESULTS, GroupMetric("acc", aggregation="total")))
    with pytest.raises(ValueError, match="unknown group aggregation 'total'"):
        group_from_config({"group": "g", "aggregate_metric_list": [{"metric": "acc", "aggregation": "total"}]})


def test_samples_are_the_sum_of_sizes():
    whole = report(RESULTS, group_of(RESULTS, GroupMetric("acc")))
    assert lm_eval_results(whole)["results"]["g"]["sample_count"] == {"acc,none": 370}
    assert lmms_eval_results(whole)[0]["g"]["samples"] == 370


def test_the_error_is_made_of_the_tasks_errors():
    rows = {name: {**row, "acc_stderr,none": 0.03} for name, row in RESULTS.items()}
    made = compute(rows, group_of(rows, GroupMetric("acc")))["acc_stderr,none"]
    assert made == pytest.approx(0.03 * (100**2 + 150**2 + 120**2) ** 0.5 / 370, rel=1e-12)
    pooled = compute(rows, group_of(rows, GroupMetric("acc")), tables=LM_EVAL_0_4_13)["acc_stderr,none"]
    squares = sum((n - 1) * n * 0.03**2 for n in (100, 150, 120))
    assert pooled == pytest.approx((squares / (370 - 3) / 370) ** 0.5, rel=1e-12)


def test_one_error_that_is_not_there_makes_it_na():
    rows = {name: {**row, "acc_stderr,none": 0.03} for name, row in RESULTS.items()}
    del rows["mmlu_anatomy"]["acc_stderr,none"]
    assert compute(rows, group_of(rows, GroupMetric("acc")))["acc_stderr,none"] == "N/A"


@pytest.mark.parametrize("draws", [10, 100_000])
def test_resamples_change_nothing_in_a_group(draws):
    rows = {name: {**row, "acc_stderr,none": 0.03} for name, row in RESULTS.items()}
    group = group_of(rows, GroupMetric("acc"))
    asked = Inference(resampling=Resampling(draws=draws))
    assert compute(rows, group, inference=asked) == compute(rows, group)


# --- consolidation -------------------------------------------------------------------------------------------------


def test_every_group_gets_a_row_beside_the_tasks():
    stem = Group("stem", [Leaf("mmlu_biology", None), Leaf("mmlu_chemistry", None)], [GroupMetric("acc")], "STEM")
    made = lm_eval_results(report(RESULTS, group_of(RESULTS, GroupMetric("acc")), stem))["results"]
    assert list(made) == [*RESULTS, "g", "stem"]
    assert (made["g"]["alias"], made["stem"]["alias"]) == ("g", "STEM")
    assert made["stem"]["acc,none"] == pytest.approx((150 * 0.92 + 120 * 0.88) / 270, rel=1e-15)
    assert made["mmlu_anatomy"]["acc,none"] == 0.85


class Suite(SimpleNamespace):
    """A group as a key of a host's task dict."""

    __hash__ = object.__hash__


def test_a_row_that_a_group_already_has_is_kept_and_added_to():
    suite = Suite(group_name="suite", config=CONFIG)
    given = {**RESULTS, "suite": {"alias": "Suite", "note": "kept"}}
    before = deepcopy(given)
    made, *_ = consolidate_group_results(given, {}, {suite: dict.fromkeys(RESULTS)})
    assert (made["suite"]["alias"], made["suite"]["note"], made["suite"]["samples"]) == ("Suite", "kept", 370)
    assert made["suite"]["acc,none"] == pytest.approx(0.888108, abs=1e-6)
    assert given == before


# --- trees from configs --------------------------------------------------------------------------------------------


def task(name, **more):
    return {"task": name, "output_type": "multiple_choice", **more}


def build(*configs):
    """Every declared group by name."""
    declared = [config["group"] for config in configs if "output_type" not in config]
    return dict(zip(declared, build_trees(configs, roots=declared), strict=True))


def test_configs_become_groups_and_tasks():
    trees = build_trees([{"group": "g", "task": ["a"], "group_alias": "G"}, task("a"), task("b", num_fewshot=3)])
    assert names(trees) == ["g", "b"]
    assert alias_of(trees[0]) == "G"
    assert trees[1] == Leaf("b", task("b", num_fewshot=3))


@pytest.mark.parametrize("named", ["g", ["g"]])
def test_a_task_joins_the_group_it_names(named):
    assert child_names(build({"group": "g"}, task("a", group=named), task("b"))["g"]) == ("a",)


def test_a_task_joins_several_groups():
    made = build({"group": "g"}, {"group": "h"}, task("a", group=["g", "h"]))
    assert [child_names(one) for one in made.values()] == [("a",), ("a",)]


def test_a_group_that_only_tasks_name_is_a_group_without_numbers():
    (made,) = build_trees([task("a", group="new"), task("b", group="new")])
    assert (made.name, child_names(made), has_aggregation(made)) == ("new", ("a", "b"), False)


def test_a_group_lists_its_tasks_in_order():
    assert child_names(build(task("a"), task("b"), {"group": "g", "task": ["b", "a"]})["g"]) == ("b", "a")


def test_listed_tasks_come_before_those_that_name_the_group():
    made = build(task("a", group="g"), task("b", group="g"), {"group": "g", "task": ["c", "b"]}, task("c"))
    assert child_names(made["g"]) == ("c", "b", "a")


def test_a_listed_group_is_a_subgroup_whatever_comes_first():
    made = build({"group": "top", "task": ["g", "b"]}, {"group": "g", "task": ["a"]}, task("a"), task("b"))
    assert child_names(made["top"]) == ("g", "b")
    assert get_child(made["top"], "g") == made["g"]
    assert names(all_tasks(made["top"])) == ["a", "b"]


def test_groups_nest_at_any_depth_and_may_share_a_subgroup():
    made = build(
        task("a"),
        {"group": "low", "task": ["a"]},
        {"group": "middle", "task": ["low"]},
        {"group": "top", "task": ["middle", "low"]},
    )
    assert names(all_groups(made["top"])) == ["middle", "low"]
    assert parents_of(made["top"], "low") == ("top", "middle")


def test_an_unknown_name_in_a_list_is_an_error():
    configs = [task("anatomy"), {"group": "g", "task": ["anatmy"]}]
    with pytest.raises(EvalError, match="unknown task or group 'anatmy' in group 'g'; did you mean 'anatomy'"):
        build_trees(configs)
    assert [found.kind for found in lint_configs(configs)] == ["unknown_child"]


def test_groups_in_a_circle_are_an_error():
    with pytest.raises(EvalError, match="groups contain each other: g -> h -> g"):
        build_trees([{"group": "g", "task": ["h"]}, {"group": "h", "task": ["g"]}])


# --- the examples --------------------------------------------------------------------------------------------------


def test_the_example_of_a_group_with_three_tasks():
    assert (len(MMLU), alias_of(MMLU)) == (3, "MMLU")


def test_the_example_of_iterating():
    assert names(all_tasks(MMLU)) == ["mmlu_anatomy", "mmlu_biology", "mmlu_chemistry"]


def test_the_example_of_three_accuracies():
    made = compute(RESULTS, MMLU)
    assert made["acc,none"] == pytest.approx(0.8881081081081081, rel=1e-15)
    assert (made["sample_len"], made["sample_count"]) == (370, {"acc,none": 370})
    assert made["acc_stderr,none"] == "N/A"


def test_the_example_of_nested_groups():
    made = add_child(add_child(Group("mmlu"), STEM), HUMANITIES)
    assert all_tasks(made, recursive=True) == (BIOLOGY, CHEMISTRY, HISTORY, PHILOSOPHY)
    assert all_tasks(made, recursive=False) == ()


def test_the_example_of_nested_groups_added_to_the_three_tasks():
    made = add_child(add_child(MMLU, STEM), HUMANITIES)
    assert len(made) == 5
    assert all_tasks(made) == (ANATOMY, BIOLOGY, CHEMISTRY, HISTORY, PHILOSOPHY)


def test_the_example_of_two_tasks_without_sizes():
    rows = {"task1": {"acc,none": 0.8}, "task2": {"acc,none": 0.9}}
    assert compute(rows, group_of(rows, GroupMetric("acc")))["acc,none"] == pytest.approx(0.85, rel=1e-15)


def test_nested_groups_have_numbers_of_their_own_and_give_the_parent_their_tasks():
    equal = GroupMetric("acc", weight_by_size=False)
    stem = Group("stem", [leaf_from_flat(name, RESULTS[name]) for name in ("mmlu_biology", "mmlu_chemistry")], [equal])
    tree = Group("mmlu", [leaf_from_flat("mmlu_anatomy", RESULTS["mmlu_anatomy"]), stem], [GroupMetric("acc")])
    inner, outer = report_groups(tree)
    assert (inner.name, outer.name) == ("stem", "mmlu")
    assert inner["acc,none"].value == pytest.approx(0.9, rel=1e-15)
    assert outer["acc,none"].value == pytest.approx(0.8881081081081081, rel=1e-15)


# --- statistics and validation -------------------------------------------------------------------------------------


def test_statistics_count_tasks_subgroups_and_samples():
    rows = {name: leaf_from_flat(name, row) for name, row in RESULTS.items()}
    stem = Group("stem", [rows["mmlu_biology"], rows["mmlu_chemistry"]])
    assert statistics_of(Group("mmlu", [rows["mmlu_anatomy"], stem])) == GroupStatistics(3, 1, 370)


def test_statistics_count_every_subgroup_below_and_each_task_once():
    deep = Group("top", [ANATOMY, Group("middle", [STEM, BIOLOGY])])
    assert statistics_of(deep, lambda leaf: 10) == GroupStatistics(num_tasks=3, num_subgroups=2, total_samples=30)
    assert len(all_groups(deep, recursive=False)) == 1


def test_a_group_is_valid_when_nothing_listed_is_missing():
    shell = group_from_config({"group": "g", "task": ["mmlu_anatomy", "mmlu_stem"]})
    assert missing_children(add_child(shell, ANATOMY)) == ("mmlu_stem",)
    assert missing_children(add_child(add_child(shell, ANATOMY), STEM)) == ()
