"""The groups page: a test for each attribute, function, output key and message that it describes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from evalcore import EvalError, build_report
from evalcore.groups import (
    Group,
    GroupMetric,
    Leaf,
    add_child,
    alias_of,
    all_groups,
    all_tasks,
    child_names,
    get_child,
    group_from_config,
    group_to_dict,
    has_aggregation,
    leaf_from_flat,
    pop_child,
    qualified_names,
    version_of,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results

ANATOMY, BIOLOGY, HISTORY = Leaf("anatomy", 1), Leaf("biology", 2), Leaf("history", 3)
INNER = Group("inner", [HISTORY])
OUTER = Group("outer", [BIOLOGY, INNER])
MMLU = Group("mmlu", [ANATOMY, OUTER], alias="MMLU", metadata={"version": 2})
ROWS = {
    "a": {"acc,none": 0.5, "acc_stderr,none": 0.1, "sample_len": 10},
    "b": {"acc,none": 0.8, "acc_stderr,none": 0.2, "sample_len": 30},
}


def names(nodes):
    return [node.name for node in nodes]


def report(rows, *metrics, tree=None, tables=None):
    """The report of group g over the named rows, or of another tree of theirs."""
    made = Group("g", [Leaf(name, None) for name in rows], metrics) if tree is None else tree
    tasks = [leaf_from_flat(name, row).value for name, row in rows.items()]
    return build_report(tasks, [made], **({"tables": tables} if tables else {}))


def aggregate(rows, *metrics, **more):
    """The row of the group, in lm-eval's schema."""
    whole = report(rows, *metrics, **more)
    return lm_eval_results(whole)["results"][whole.trees[0].name]


def warnings(rows, *metrics, **more):
    return report(rows, *metrics, **more).groups[-1].warnings


# --- attributes and properties -------------------------------------------------------------------------------------


def test_a_group_needs_a_name_alone():
    made = Group("mmlu")
    assert (made.name, made.alias, made.metrics, dict(made.metadata), made.children) == ("mmlu", None, (), {}, ())
    with pytest.raises(TypeError):
        Group()


def test_a_name_may_be_qualified():
    assert Group("mmlu::humanities").name == "mmlu::humanities"
    assert qualified_names(Group("mmlu", [Group("humanities")])) == ("mmlu", "mmlu::humanities")


def test_the_alias_defaults_to_the_name():
    assert (alias_of(MMLU), alias_of(OUTER), alias_of(Group("g", alias=""))) == ("MMLU", "outer", "g")


def test_the_metrics_to_aggregate():
    made = Group("g", metrics=[GroupMetric("acc"), GroupMetric("f1", ["strict"])])
    assert [(one.metric, one.filters) for one in made.metrics] == [("acc", None), ("f1", ("strict",))]


def test_metadata_is_the_users():
    assert Group("g", metadata={"owner": "me", "version": 1}).metadata == {"owner": "me", "version": 1}
    assert dict(Group("g", metadata=None).metadata) == {}


def test_child_names_are_those_of_direct_children_in_order():
    assert child_names(MMLU) == ("anatomy", "outer")


def test_the_version_is_a_text_from_metadata():
    assert (version_of(MMLU), version_of(OUTER), version_of(Group("g", metadata={"a": 1}))) == ("2", "N/A", "N/A")


def test_has_aggregation():
    assert has_aggregation(Group("g", metrics=[GroupMetric("acc")]))
    assert not has_aggregation(Group("g"))
    assert not has_aggregation(group_from_config({"group": "g", "aggregate_metric_list": []}))


# --- children ------------------------------------------------------------------------------------------------------


def test_the_example_adds_two_tasks():
    made = add_child(add_child(Group("mmlu"), ANATOMY), BIOLOGY)
    assert all_tasks(made) == (ANATOMY, BIOLOGY)


def test_add_takes_a_task_or_a_group():
    assert child_names(add_child(add_child(Group("g"), ANATOMY), INNER)) == ("anatomy", "inner")


def test_add_replaces_a_child_of_the_same_name_in_its_place():
    made = add_child(Group("g", [ANATOMY, BIOLOGY]), Leaf("anatomy", 9))
    assert list(made) == [Leaf("anatomy", 9), BIOLOGY]


def test_add_leaves_the_group_as_it_was():
    before = Group("g")
    add_child(before, ANATOMY)
    assert len(before) == 0


def test_pop_gives_the_child_and_the_rest():
    assert pop_child(MMLU, "outer") == (OUTER, Group("mmlu", [ANATOMY], alias="MMLU", metadata={"version": 2}))


def test_pop_of_an_unknown_name_gives_the_default():
    assert pop_child(MMLU, "law", None) == (None, MMLU)
    with pytest.raises(EvalError, match="unknown child 'law'"):
        pop_child(MMLU, "law")


def test_get_gives_a_task_or_a_group():
    assert get_child(MMLU, "anatomy") is ANATOMY
    assert get_child(MMLU, "outer") is OUTER


def test_get_of_an_unknown_name_gives_the_default():
    assert get_child(MMLU, "law", None) is None
    assert get_child(MMLU, "history", None) is None, "only direct children"
    with pytest.raises(EvalError, match="unknown child 'law'"):
        get_child(MMLU, "law")


def test_contains_asks_for_direct_children_by_name():
    assert "outer" in MMLU
    assert "history" not in MMLU


def test_iteration_is_over_direct_children():
    assert list(iter(MMLU)) == [ANATOMY, OUTER]


def test_the_length_is_the_number_of_direct_children():
    assert (len(MMLU), len(Group("g"))) == (2, 0)


# --- all tasks, all groups -----------------------------------------------------------------------------------------


def test_all_tasks_are_the_leaves_at_any_depth():
    assert all_tasks(MMLU) == all_tasks(MMLU, recursive=True) == (ANATOMY, BIOLOGY, HISTORY)


def test_all_tasks_not_recursive_are_direct_children():
    assert all_tasks(MMLU, recursive=False) == (ANATOMY,)


def test_all_tasks_has_each_once():
    assert names(all_tasks(Group("g", [BIOLOGY, OUTER]))) == ["biology", "history"]


def test_all_groups_are_those_below_parents_first_without_self():
    assert all_groups(MMLU) == all_groups(MMLU, recursive=True) == (OUTER, INNER)


def test_all_groups_not_recursive_are_direct_children():
    assert all_groups(MMLU, recursive=False) == (OUTER,)


# --- aggregate -----------------------------------------------------------------------------------------------------


def test_without_a_list_there_are_alias_and_name_only():
    assert aggregate(ROWS) == {"alias": "g", "name": "g"}


def test_the_output_keys():
    made = aggregate(ROWS, GroupMetric("acc"))
    assert list(made) == ["alias", "name", "sample_len", "acc,none", "acc_stderr,none", "sample_count"]


def test_alias_and_name():
    tree = Group("g", [Leaf("a", None)], [GroupMetric("acc")], alias="Shown")
    made = aggregate(ROWS, tree=tree)
    assert (made["alias"], made["name"]) == ("Shown", "g")


def test_only_the_groups_own_tasks_are_read():
    others = {**ROWS, "z": {"acc,none": 0.0, "acc,strict": 0.0, "sample_len": 1000}}
    tree = Group("g", [Leaf("a", None), Leaf("b", None)], [GroupMetric("acc")])
    assert aggregate(others, tree=tree) == aggregate(ROWS, GroupMetric("acc"))


def test_tasks_of_subgroups_are_read():
    tree = Group("g", [Leaf("a", None), Group("h", [Leaf("b", None)])], [GroupMetric("acc")])
    made, flat = aggregate(ROWS, tree=tree), aggregate(ROWS, GroupMetric("acc"))
    assert made == flat


def test_the_mean_by_size_is_the_default():
    made = aggregate(ROWS, GroupMetric("acc"))
    assert made == aggregate(ROWS, GroupMetric("acc", weight_by_size=True))
    assert made["acc,none"] == pytest.approx((10 * 0.5 + 30 * 0.8) / 40, rel=1e-15)


def test_the_mean_of_tasks_counted_alike():
    assert aggregate(ROWS, GroupMetric("acc", weight_by_size=False))["acc,none"] == pytest.approx(0.65, rel=1e-15)


def test_the_error_follows_the_weights():
    made = aggregate(ROWS, GroupMetric("acc"))["acc_stderr,none"]
    assert made == pytest.approx(((0.25 * 0.1) ** 2 + (0.75 * 0.2) ** 2) ** 0.5, rel=1e-12)
    alike = aggregate(ROWS, GroupMetric("acc", weight_by_size=False))["acc_stderr,none"]
    assert alike == pytest.approx((0.1**2 + 0.2**2) ** 0.5 / 2, rel=1e-12)


def test_the_pooled_error_under_lm_evals_tables():
    made = aggregate(ROWS, GroupMetric("acc"), tables=LM_EVAL_0_4_13)["acc_stderr,none"]
    pooled = (9 * 0.1**2 * 10 + 29 * 0.2**2 * 30) / (40 - 2)
    assert made == pytest.approx((pooled / 40) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("given", [{}, {"acc_stderr,none": "N/A"}, {"acc_stderr,none": None}])
@pytest.mark.parametrize("tables", [None, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
def test_one_missing_error_makes_the_groups_na(given, tables):
    rows = {**ROWS, "b": {"acc,none": 0.8, "sample_len": 30, **given}}
    made = aggregate(rows, GroupMetric("acc"), tables=tables)
    assert made["acc_stderr,none"] == "N/A"
    assert made["acc,none"] == pytest.approx(0.725, rel=1e-15)


def test_sample_len_is_of_all_tasks_whether_or_not_they_have_the_metric():
    rows = {**ROWS, "c": {"f1,none": 1.0, "sample_len": 5}, "d": {"acc,none": 1.0}}
    tree = Group("g", [Leaf(name, None) for name in (*rows, "not_run")], [GroupMetric("acc"), GroupMetric("f1")])
    assert aggregate(rows, tree=tree)["sample_len"] == 45


def test_sample_len_of_tasks_that_were_not_run_is_zero():
    assert aggregate({}, tree=Group("g", [Leaf("a", None)], [GroupMetric("acc")]))["sample_len"] == 0


def test_sample_count_is_of_the_tasks_with_the_metric():
    rows = {**ROWS, "c": {"acc,strict": 1.0, "sample_len": 5}}
    made = aggregate(rows, GroupMetric("acc"))
    assert made["sample_count"] == {"acc,none": 40, "acc,strict": 5}


def test_no_number_no_sample_count():
    assert "sample_count" not in aggregate(ROWS, GroupMetric("f1"))


def test_a_row_without_a_size_weighs_one_and_leaves_the_count_open():
    made = aggregate({"a": {"acc,none": 0.0, "sample_len": 3}, "b": {"acc,none": 1.0}}, GroupMetric("acc"))
    assert (made["acc,none"], made["sample_len"]) == (0.25, 3)
    assert "sample_count" not in made


def test_without_any_size_the_group_has_none():
    made = aggregate({"a": {"acc,none": 0.0}, "b": {"acc,none": 1.0}}, GroupMetric("acc"))
    assert made == {"alias": "g", "name": "g", "acc,none": 0.5, "acc_stderr,none": "N/A"}


@pytest.mark.parametrize(("tables", "expected"), [(None, 0.725), (LM_EVAL_0_4_13, (24 + 24 + 5) / 70)])
def test_a_task_on_two_paths_counts_once_and_under_lm_evals_tables_twice(tables, expected):
    tree = Group("g", [Leaf("a", None), Leaf("b", None), Group("h", [Leaf("b", None)])], [GroupMetric("acc")])
    assert aggregate(ROWS, tree=tree, tables=tables)["acc,none"] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("tables", "expected"), [(None, 0.8), (LM_EVAL_0_4_13, 0.725)])
def test_a_callable_is_called_and_under_lm_evals_tables_is_not(tables, expected):
    largest = GroupMetric("acc", aggregation=lambda values, sizes: max(values))
    assert aggregate(ROWS, largest, tables=tables)["acc,none"] == pytest.approx(expected, rel=1e-14)


def test_filters_are_discovered_among_the_groups_tasks_and_sorted():
    rows = {"a": {"acc,strict": 1.0}, "b": {"acc,loose": 0.0, "f1,other": 1.0, "acc_stderr,odd": 0.1}}
    made = report(rows, GroupMetric("acc")).group("g")
    assert [str(key) for key, _ in made.estimates] == ["acc,loose", "acc,strict"]


def test_listed_filters_are_taken_as_listed():
    rows = {"a": {"acc,none": 0.1, "acc,strict": 0.2, "acc,loose": 0.3}}
    made = report(rows, GroupMetric("acc", ["strict", "none"])).group("g")
    assert [str(key) for key, _ in made.estimates] == ["acc,strict", "acc,none"]


def test_several_metrics_each_get_their_keys():
    rows = {name: {**row, "f1,none": 0.5} for name, row in ROWS.items()}
    made = aggregate(rows, GroupMetric("acc"), GroupMetric("f1"))
    assert {"acc,none", "acc_stderr,none", "f1,none", "f1_stderr,none"} <= made.keys()
    assert made["sample_count"] == {"acc,none": 40, "f1,none": 40}


# --- messages ------------------------------------------------------------------------------------------------------


def test_nothing_missing_nothing_said():
    assert warnings(ROWS, GroupMetric("acc")) == ()


def test_a_metric_missing_in_some_tasks_is_a_warning_and_the_rest_count():
    rows = {**ROWS, "c": {"f1,none": 1.0}}
    tree = Group("g", [Leaf(name, None) for name in ("not_run", *rows)], [GroupMetric("acc")])
    assert warnings(rows, tree=tree) == ("group 'g': acc,none is missing in 2/4 tasks: not_run, c",)
    assert aggregate(rows, tree=tree)["acc,none"] == pytest.approx(0.725, rel=1e-15)


def test_five_missing_tasks_are_all_named():
    rows = {**ROWS, **{name: {} for name in "pqrst"}}
    assert warnings(rows, GroupMetric("acc")) == ("group 'g': acc,none is missing in 5/7 tasks: p, q, r, s, t",)


def test_of_more_missing_tasks_five_are_named_and_the_rest_counted():
    rows = {**ROWS, **{name: {} for name in "pqrstuv"}}
    (said,) = warnings(rows, GroupMetric("acc"))
    assert said == "group 'g': acc,none is missing in 7/9 tasks: p, q, r, s, t and 2 more"


def test_no_values_found():
    made = aggregate(ROWS, GroupMetric("f1", ["none"]))
    assert made == {"alias": "g", "name": "g", "sample_len": 40}
    assert warnings(ROWS, GroupMetric("f1", ["none"])) == ("group 'g': no values found for f1,none in any task",)


def test_no_filter_discovered_is_said_too():
    assert warnings(ROWS, GroupMetric("f1")) == ("group 'g': no values found for f1,none in any task",)


# --- configs -------------------------------------------------------------------------------------------------------

CONFIG = {
    "group": "g",
    "task": ["a", "b"],
    "group_alias": "G",
    "aggregate_metric_list": [
        {"metric": "acc", "filter_list": ["none"], "aggregation": "mean", "weight_by_size": False}
    ],
    "metadata": {"version": 1.0, "notes": ["x"]},
}


@dataclass
class AggMetricConfig:
    """A host's own record of a metric to aggregate."""

    metric: str
    filter_list: list[str] | None = None
    aggregation: str = "mean"
    weight_by_size: bool = True


@dataclass
class GroupConfig:
    """A host's own record of a group."""

    group: str
    group_alias: str | None = None
    task: list[str] | None = None
    aggregate_metric_list: list[AggMetricConfig] | None = None
    metadata: dict[str, object] | None = None


def test_to_dict_of_a_bare_group_is_its_name():
    assert group_to_dict(Group("g")) == {"group": "g"}


def test_to_dict_writes_what_there_is():
    made = Group("g", [ANATOMY, INNER], [GroupMetric("acc")], "G", {"version": 1})
    assert group_to_dict(made) == {
        "group": "g",
        "task": ["anatomy", "inner"],
        "group_alias": "G",
        "aggregate_metric_list": [
            {"metric": "acc", "filter_list": None, "aggregation": "mean", "weight_by_size": True}
        ],
        "metadata": {"version": 1},
    }


def test_from_config_takes_a_mapping():
    made = group_from_config(CONFIG)
    assert (made.name, made.alias, made.metadata["version"]) == ("g", "G", 1.0)
    assert made.metrics == (GroupMetric("acc", ["none"], weight_by_size=False),)


def test_from_config_takes_a_hosts_record():
    given = GroupConfig("g", "G", ["a", "b"], [AggMetricConfig("acc", ["none"], weight_by_size=False)], {"version": 1})
    assert group_from_config(given) == group_from_config({**CONFIG, "metadata": {"version": 1}})
    assert group_from_config(GroupConfig("bare")) == Group("bare")


def test_from_config_takes_lm_evals_own_record():
    theirs = pytest.importorskip("lm_eval.config.group")
    assert group_from_config(theirs.GroupConfig(**CONFIG)) == group_from_config(CONFIG)


def test_from_config_makes_a_group_without_children():
    made = group_from_config(CONFIG)
    assert (len(made), made.listed) == (0, ("a", "b"))
    assert child_names(add_child(add_child(made, Leaf("a", 1)), Leaf("b", 2))) == ("a", "b")


def test_to_dict_gives_the_config_back():
    shell = group_from_config(CONFIG)
    assert group_to_dict(shell) == CONFIG
    assert group_to_dict(add_child(add_child(shell, Leaf("b", 2)), Leaf("a", 1))) == CONFIG
    assert group_from_config(group_to_dict(shell)) == shell


def test_to_dict_also_names_children_that_the_config_does_not_list():
    assert group_to_dict(add_child(group_from_config(CONFIG), Leaf("c", 3)))["task"] == ["a", "b", "c"]


def test_the_repr_has_name_count_children_and_version():
    assert repr(MMLU) == "Group('mmlu', 2 children: [anatomy, outer], version=2)"
