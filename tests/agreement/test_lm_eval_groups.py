"""Random trees through lm_eval.api.group.Group.aggregate and through ours, from the same configs and task metrics."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from unittest.mock import patch

import pytest

pytest.importorskip("lm_eval")

import lm_eval.api.group
import lm_eval.api.task
from both_sides import assert_same_row, lm_group, our_group, same_number
from lm_eval.api.group import Group as LmGroup
from lm_eval.config.group import GroupConfig

from evalcore import EVALCORE, GroupReport, MetricKey, Tables, TaskReport
from evalcore.core.lm_eval.result_file import _write_group
from evalcore.groups import (
    Group,
    GroupMetric,
    Leaf,
    Tree,
    add_child,
    all_groups,
    all_tasks,
    child_names,
    group_from_config,
    group_to_dict,
    leaf_from_flat,
    map_leaves,
    missing_children,
    report_groups,
    version_of,
)
from evalcore.lm_eval import LM_EVAL_0_4_13

Flat = dict[str, dict[str, object]]


@dataclass
class Named:
    """Enough of a task for a group to know it by name."""

    task_name: str


@dataclass
class Trees:
    """The same tree twice, and what its tasks scored."""

    theirs: LmGroup
    ours: Group[None]
    flat: Flat


def lm_rows(trees: Trees, said: list[str] | None = None) -> dict[str, dict[str, object]]:
    """The row of every group; and what lm-eval says of it, which it logs."""
    with (
        patch.object(lm_eval.api.task, "Task", Named),
        patch.object(lm_eval.api.group.eval_logger, "warning", [].append if said is None else said.append),
    ):
        groups = [trees.theirs, *trees.theirs.get_all_groups()]
        return {group.name: dict(group.aggregate(trees.flat)) for group in groups}


def our_reports(trees: Trees, tables: Tables = LM_EVAL_0_4_13) -> dict[str, GroupReport]:
    placed: Tree[TaskReport] = map_leaves(lambda leaf: _known(leaf.name, trees.flat), trees.ours)
    return {report.name: report for report in report_groups(placed, tables=tables)}


def _known(name: str, flat: Flat) -> TaskReport:
    return leaf_from_flat(name, flat[name]).value if name in flat else TaskReport(name=name)


def our_rows(trees: Trees) -> dict[str, dict[str, object]]:
    return {name: _write_group(report) for name, report in our_reports(trees).items()}


METRICS = ("acc", "acc_norm", "em")
FILTERS = ("none", "strict", "loose")


def row(rng: random.Random, *, least: int = 2) -> dict[str, object]:
    out: dict[str, object] = {"alias": "x", "sample_len": rng.randint(least, 400)}
    for metric in METRICS:
        for name in FILTERS:
            if (metric == "acc" and name == "none") or rng.random() < 0.4:
                out[f"{metric},{name}"] = rng.random()
                out[f"{metric}_stderr,{name}"] = "N/A" if rng.random() < 0.05 else rng.random() / 10
                if rng.random() < 0.05:
                    del out[f"{metric}_stderr,{name}"]
    return out


def wanted(rng: random.Random) -> list[dict[str, object]]:
    filters = [None, "none", ["none"], ["strict", "none"], ["loose"]]
    chosen = rng.sample(METRICS, rng.randint(0, 3))
    return [{"metric": m, "filter_list": rng.choice(filters), "weight_by_size": rng.random() < 0.5} for m in chosen]


def grow(
    rng: random.Random, depth: int, names: list[str], made: list[str], *, twice: bool
) -> tuple[LmGroup, Group[None]]:
    name, metrics = f"g{len(made)}", wanted(rng)
    made.append(name)
    children: list[tuple[str | LmGroup, str | Group[None]]] = []
    for _ in range(rng.randint(1, 4)):
        if depth and rng.random() < 0.4:
            children.append(grow(rng, depth - 1, names, made, twice=twice))
        elif twice or names:
            task = rng.choice(names) if twice else names.pop()
            if task not in [child for child, _ in children]:
                children.append((task, task))
    config = GroupConfig(
        name,
        rng.choice([None, f"Alias of {name}"]),
        [child if isinstance(child, str) else child.name for child, _ in children],
        metrics or None,
        rng.choice([None, {"version": rng.randint(0, 3)}]),
    )
    theirs, ours = LmGroup.from_config(config), group_from_config(config)
    for their, our in children:
        ours = add_child(ours, Leaf(our, None) if isinstance(our, str) else our)
        theirs.add(Named(their) if isinstance(their, str) else their)
    return theirs, ours


def trees(seed: int, *, twice: bool, missing: bool, least: int = 2) -> Trees:
    rng = random.Random(seed)
    names = [f"t{i}" for i in range(30)]
    flat = {name: row(rng, least=least) for name in names if not missing or rng.random() < 0.8}
    theirs, ours = grow(rng, 3, list(names), [], twice=twice)
    return Trees(theirs, ours, flat)


@pytest.mark.parametrize("count", [50, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("missing", [False, True], ids=["all there", "some missing"])
@pytest.mark.parametrize("twice", [False, True], ids=["each once", "leaves reached twice"])
def test_random_trees(twice: bool, missing: bool, count: int) -> None:
    """The same values, errors, sizes and counts, and the same metrics missing in the same tasks."""
    lacking = 0
    for seed in range(count):
        given = trees(seed, twice=twice, missing=missing)
        said: list[str] = []
        theirs, ours = lm_rows(given, said), our_rows(given)
        assert set(ours) == set(theirs)
        for name, expected in theirs.items():
            assert_same_row(expected, ours[name])
        unfound = {(group, metric.metric) for group, metric in _specs(given.ours) if metric.filters is None}
        own = _facts(warning for report in our_reports(given).values() for warning in report.warnings)
        # ours also says so of a metric whose filters were to be found among tasks that do not have it
        assert {fact for fact in own if fact[2] or (fact[0], fact[1].partition(",")[0]) not in unfound} == _facts(said)
        lacking += len(said)
    assert lacking > 0.8 * count


Fact = tuple[str, str, str]


def _facts(said: Iterable[str]) -> set[Fact]:
    """Group, metric, and in how many of how many tasks it is missing, with their names; nothing if it is in none."""
    found = [re.fullmatch(MISSING, text) or re.fullmatch(NOWHERE, text) for text in said]
    assert None not in found
    return {(one["group"], one["key"], " ".join(one.groups()[2:])) for one in found if one is not None}


MISSING = (
    r"[Gg]roup '(?P<group>.*)': (?:metric ')?(?P<key>[\w,]+)'? is missing in (\d+/\d+) tasks(?:\. Missing in)?: (.*)"
)
NOWHERE = r"[Gg]roup '(?P<group>.*)': no values found for (?:metric ')?(?P<key>[\w,]+)'? (?:across|in) any tasks?\.?"


@pytest.mark.parametrize("twice", [False, True], ids=["each once", "leaves reached twice"])
def test_random_trees_answer_the_same_questions(twice: bool) -> None:
    """Children, tasks and groups, direct and recursive, alias, version and plain data; ours lists each task once."""
    for seed in range(100):
        given = trees(seed, twice=twice, missing=False)
        with patch.object(lm_eval.api.task, "Task", Named):
            for theirs in (given.theirs, *given.theirs.get_all_groups()):
                ours = next(one for one in (given.ours, *all_groups(given.ours)) if one.name == theirs.name)
                assert (len(ours), list(child_names(ours))) == (len(theirs), theirs.child_names)
                assert [child.name in ours for child in given.ours] == [child.name in theirs for child in given.ours]
                for recursive in (True, False):
                    tasks = [task.task_name for task in theirs.get_all_tasks(recursive)]
                    assert [leaf.name for leaf in all_tasks(ours, recursive=recursive)] == list(dict.fromkeys(tasks))
                    groups = [group.name for group in theirs.get_all_groups(recursive)]
                    assert [group.name for group in all_groups(ours, recursive=recursive)] == groups
                assert (ours.alias, version_of(ours), missing_children(ours)) == (theirs.alias, theirs.version, ())
                written = {key: value for key, value in theirs.to_dict().items() if value}
                assert group_to_dict(ours) == written


def reached_twice() -> Trees:
    rows = {name: {"acc,none": 1.0, "acc_stderr,none": 0.1, "sample_len": 10} for name in "ab"}
    metrics = [{"metric": "acc"}]
    inner = lm_group("h", [], metrics)
    outer = lm_group("g", [inner], metrics)
    inner._children |= {"a": Named("a"), "b": Named("b")}
    outer._children["a"] = Named("a")
    return Trees(outer, our_group("g", [our_group("h", ["a", "b"], metrics), "a"], metrics), rows)


def test_sample_len_of_a_leaf_reached_twice() -> None:
    """E05 once more: lm-eval's total counts the task by every path."""
    assert lm_rows(reached_twice())["g"]["sample_len"] == 30
    assert our_reports(reached_twice(), EVALCORE)["g"].sample_len == 20


def test_sample_len_of_a_leaf_reached_twice_under_its_policy() -> None:
    assert our_rows(reached_twice())["g"]["sample_len"] == 30


@pytest.mark.parametrize("seed", range(60))
def test_our_defaults_agree_where_lm_eval_is_right(seed: int) -> None:
    """Trees whose leaves are reached once: every value; and every error of an unweighted mean."""
    given = trees(seed, twice=False, missing=False)
    reports = our_reports(given, EVALCORE)
    unweighted = {(group, m.metric) for group, m in _specs(given.ours) if not m.weight_by_size}
    for name, expected in lm_rows(given).items():
        for text, value in expected.items():
            key = MetricKey.parse(text)
            if key is None:
                continue
            mine = reports[name].get(key)
            assert mine is not None
            assert same_number(value, mine.value)
            stderr = expected[key.stderr]
            if (name, key.metric) in unweighted:
                assert same_number(stderr, "N/A" if mine.stderr is None else mine.stderr, stderr=True)


def _specs(tree: Group[None]) -> list[tuple[str, GroupMetric]]:
    return [(group.name, metric) for group in (tree, *all_groups(tree)) for metric in group.metrics]


def test_tasks_of_one_document_each() -> None:
    """lm-eval divides by zero where every task has one document; ours has no error, and says so."""
    rows = {name: {"acc,none": 1.0, "acc_stderr,none": 0.0, "sample_len": 1} for name in "ab"}
    group = lm_group("g", [], [{"metric": "acc"}])
    group._children |= {"a": Named("a"), "b": Named("b")}
    both = Trees(group, our_group("g", ["a", "b"], [{"metric": "acc"}]), rows)
    with pytest.raises(ZeroDivisionError):
        lm_rows(both)
    found = our_reports(both)["g"].get(MetricKey("acc"))
    assert found is not None
    assert (found.value, found.stderr) == (1.0, None)


def test_a_bare_string_is_one_filter() -> None:
    rows = {"a": {"acc,none": 0.5, "acc_stderr,none": 0.1, "acc,n": 1.0, "sample_len": 4}}
    group = lm_group("g", [], [{"metric": "acc", "filter_list": "none"}])
    group._children["a"] = Named("a")
    both = Trees(group, our_group("g", ["a"], [{"metric": "acc", "filter_list": "none"}]), rows)
    assert_same_row(lm_rows(both)["g"], our_rows(both)["g"])
