"""From what a run asks for to trees and configs: every form of a spec, groups, names of variants, the linter."""

from pathlib import Path

import pytest

from evalcore import EvalError
from evalcore.core.groups.tree import child_names
from evalcore.groups import all_tasks
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.linter import check_tasks
from evalcore.shell.tasks.resolution import resolve_specs

TASKS = {
    "a.yaml": "task: a\ntag: [t]\ndataset_path: json\nnum_fewshot: 1\nmetadata: {version: 2}\n",
    "b.yaml": "task: b\ntag: t\ndataset_path: json\n",
    "c_one.yaml": "task: c_one\ndataset_path: json\nmetadata: note\n",
    "c_two.yaml": "task: c_two\ndataset_path: json\n",
    "g.yaml": "group: g\ngroup_alias: G\ntask: [a, b]\naggregate_metric_list: [{metric: acc}]\nmetadata: {version: 3}\n",
    "h.yaml": "group: h\ntask:\n  - g\n  - task: c_one\n    num_fewshot: 5\n",
    "shots.yaml": "group: shots\nnum_fewshot: 7\ntask: [c_two, {task: t, repeats: 2}]\n",
    "deep.yaml": "group: deep\ndescription: D\ntask:\n  - task: g\n    num_fewshot: 9\n  - c_two\n",
}


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, text in TASKS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def known(folder):
    return build_index([folder])


def names(found) -> list[str]:
    return [tree.name for tree in found.trees]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ("a", ["a"]),
        ("b, a", ["b", "a"]),
        (["c_*"], ["c_one", "c_two"]),
        (["t"], ["a", "b"]),
        (["a,b", "a"], ["a", "b"]),
        (["g"], ["g"]),
        ({"task": "own", "dataset_path": "json"}, ["own"]),
        ([{"group": "mine", "task": ["a", "c_two"]}], ["mine"]),
        ([{"task": "a", "num_fewshot": 3}], ["a"]),
    ],
)
def test_every_form_of_a_name(known, specs, expected):
    assert names(resolve_specs(known, specs)) == expected


def test_files_folders_and_globs_of_files(known, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "template.yaml").write_text("dataset_path: json\n")
    (other / "x.yaml").write_text("task: x\ninclude: template.yaml\n")
    (other / "y.yaml").write_text("group: y\ntask: [x, a]\n")
    assert names(resolve_specs(known, str(folder / "a.yaml"))) == ["a"]
    assert names(resolve_specs(known, str(folder / "c_*.yaml"))) == ["c_one", "c_two"]
    found = resolve_specs(known, [str(other / "x.yaml")])
    assert found.tasks["x"]["dataset_path"] == "json"
    assert found.sources["x"] == str(other / "x.yaml")
    assert names(resolve_specs(known, str(other))) == ["y"]  # x stands in it already
    assert sorted(resolve_specs(known, str(other)).tasks) == ["a", "x"]


def test_a_file_of_its_own_may_not_include_from_elsewhere(tmp_path, known):
    inner = tmp_path / "elsewhere/inner"
    inner.mkdir(parents=True)
    (inner.parent / "t_yaml").write_text("dataset_path: json\n")
    (inner / "x.yaml").write_text("task: x\ninclude: ../t_yaml\n")
    alone = build_index([])
    with pytest.raises(
        EvalError, match=r"x\.yaml:2: cannot include .*t_yaml: lies outside .* index a folder that holds both"
    ):
        resolve_specs(alone, str(inner / "x.yaml"))
    assert names(resolve_specs(build_index([inner.parent]), str(inner / "x.yaml"))) == ["x"]


def test_an_unknown_name_is_told_with_the_nearest(known):
    with pytest.raises(EvalError, match=r"unknown task, group, tag or file 'c_onee'; did you mean 'c_one'"):
        resolve_specs(known, "c_onee")
    for spec in ({"num_fewshot": 1}, 5, [5], {"task": "c_onee", "num_fewshot": 1}, {"task": "x", "include": "y"}):
        with pytest.raises(EvalError):
            resolve_specs(known, spec)


def test_a_file_that_cannot_be_used_is_told_when_it_is_asked_for(folder):
    (folder / "bad.yaml").write_text("task: bad\ntask: bad\n")
    with pytest.raises(
        EvalError, match=r"1 files cannot be used, the first: .*bad\.yaml:2: the key 'task' is given twice"
    ):
        resolve_specs(build_index([folder]), "bad")
    with pytest.raises(EvalError, match=r"bad\.yaml:2: the key 'task' is given twice"):
        resolve_specs(build_index([folder]), str(folder / "bad.yaml"))


def test_configs_are_merged_plain_data_with_the_runs_metadata(known):
    found = resolve_specs(known, ["a", "c_one", "g"], metadata={"model": "m", "version": 9})
    assert found.tasks["a"] == {
        "task": "a",
        "dataset_path": "json",
        "num_fewshot": 1,
        "metadata": {"version": 9, "model": "m"},
    }
    assert found.tasks["c_one"]["metadata"] == {"_metadata": "note", "version": 9, "model": "m"}
    group = next(tree for tree in found.trees if tree.name == "g")
    assert dict(group.metadata) == {"version": 9, "model": "m"}
    assert (group.alias, group.metrics[0].metric) == ("G", "acc")


def test_the_order_of_keys_inside_values_is_kept(tmp_path):
    (tmp_path / "a.yaml").write_text("task: a\ndataset_path: json\ndoc_to_choice: {z: 1, a: 2, m: 3, b: 4, y: 5}\n")
    config = resolve_specs(build_index([tmp_path]), "a").tasks["a"]
    assert list(config["doc_to_choice"]) == ["z", "a", "m", "b", "y"]


# --- variants ----------------------------------------------------------------------------------------------


def test_one_version_of_a_task_keeps_its_name(known):
    found = resolve_specs(known, "h")
    assert [leaf.name for leaf in all_tasks(found.trees[0])] == ["a", "b", "c_one"]
    assert found.tasks["c_one"]["num_fewshot"] == 5
    assert found.tasks["c_one"]["task"] == "c_one"


def test_two_versions_never_overwrite_each_other(known):
    found = resolve_specs(known, ["h", "c_one"])
    assert sorted(found.tasks) == ["a", "b", "c_one", "h::c_one"]
    assert "num_fewshot" not in found.tasks["c_one"]
    assert {**found.tasks["h::c_one"], "task": "c_one"} == {**found.tasks["c_one"], "num_fewshot": 5}
    assert found.sources["h::c_one"] == found.sources["c_one"]


def test_equal_changes_in_two_groups_are_one_version(folder):
    for name in ("p", "q"):
        (folder / f"{name}.yaml").write_text(f"group: {name}\ntask: [{{task: c_one, num_fewshot: 5}}]\n")
    found = resolve_specs(build_index([folder]), ["p", "q"])
    assert list(found.tasks) == ["c_one"]
    assert [child_names(tree) for tree in found.trees] == [("c_one",), ("c_one",)]


def test_what_a_group_passes_down_and_a_tag_inside_a_group(known):
    found = resolve_specs(known, "shots").tasks
    changed = {name: (config["num_fewshot"], config.get("repeats")) for name, config in found.items()}
    assert changed == {"c_two": (7, None), "a": (7, 2), "b": (7, 2)}


def test_a_group_cannot_list_a_task_twice_with_different_changes(known):
    twice = {"group": "twice", "task": [{"task": "a", "num_fewshot": 2}, {"task": "a", "num_fewshot": 3}]}
    with pytest.raises(EvalError, match="'twice::a' is defined twice, and differently"):
        resolve_specs(known, twice)


def test_a_changed_group_inside_a_group(known):
    (tree,) = resolve_specs(known, "deep").trees
    assert child_names(tree) == ("g", "c_two")
    found = resolve_specs(known, "deep").tasks
    assert {name: (config.get("num_fewshot"), config["description"]) for name, config in found.items()} == {
        "a": (9, "D"),
        "b": (9, "D"),
        "c_two": (None, "D"),
    }
    both = resolve_specs(known, ["deep", "g"])
    assert names(both) == ["deep", "g"]
    assert child_names(both.trees[0]) == ("deep::g", "c_two")
    assert sorted(both.tasks) == ["a", "b", "c_two", "deep::g::a", "deep::g::b"]


def test_what_is_asked_for_alone_and_in_a_group_counts_once(known):
    found = resolve_specs(known, ["a", "g", "h"])
    assert names(found) == ["h"]
    assert any("'a' is asked for alone and in 'g'" in one for one in found.warnings)
    overlapping = resolve_specs(known, ["g", {"group": "other", "task": ["a"]}])
    assert names(overlapping) == ["g", "other"]
    assert sorted(overlapping.tasks) == ["a", "b"]


def test_a_run_that_changes_a_task_which_a_group_lists_must_say_which(known):
    with pytest.raises(EvalError, match=r"'a' is asked for with changes, and group 'g' lists it as it is"):
        resolve_specs(known, [{"task": "a", "num_fewshot": 3}, "g"])
    with pytest.raises(EvalError, match="'a' is asked for twice, and differently"):
        resolve_specs(known, [{"task": "a", "num_fewshot": 3}, {"task": "a", "num_fewshot": 4}])
    found = resolve_specs(known, ["g", {"group": "other", "task": [{"task": "a", "num_fewshot": 3}]}])
    assert {name: config.get("num_fewshot") for name, config in found.tasks.items()} == {
        "a": 1,
        "b": None,
        "other::a": 3,
    }


def test_an_inline_change_of_a_group_reaches_its_tasks(known):
    found = resolve_specs(known, [{"group": "g", "num_fewshot": 4}])
    assert {name: config["num_fewshot"] for name, config in found.tasks.items()} == {"a": 4, "b": 4}


def test_inline_tasks_and_groups_inside_a_group(folder):
    (folder / "t_yaml").write_text("dataset_path: json\nrepeats: 2\n")
    (folder / "in.yaml").write_text(
        "group: in\ntask:\n  - task: own\n    include: t_yaml\n    description: d\n"
        "  - group: sub\n    task: [a, {task: c_two, repeats: 3}]\n"
        "  - group: b\n    task: [c_one]\n"
    )
    found = resolve_specs(build_index([folder]), "in")
    assert child_names(found.trees[0]) == ("in::own", "in::sub", "in::b")
    assert found.tasks["in::own"]["repeats"] == 2
    assert found.tasks["c_two"]["repeats"] == 3
    assert found.sources["in::own"] == "inline"


def test_groups_that_contain_each_other_are_refused(folder):
    (folder / "p.yaml").write_text("group: p\ntask: [q]\n")
    (folder / "q.yaml").write_text("group: q\ntask: [p, nope]\n")
    built = build_index([folder])
    with pytest.raises(EvalError, match="groups contain each other: p -> q -> p"):
        resolve_specs(built, "p")
    assert {one.kind for one in check_tasks(built, ["p"])} == {"cycle", "unknown_child"}
