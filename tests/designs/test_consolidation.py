"""lmms-eval's consolidation of metrics, an element a test; docs/designs.md lists them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import Parameter, signature
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from evalcore import EvalError, Report, build_report
from evalcore.adapters.lmms_eval import (
    LmmsRules,
    consolidate,
    consolidate_group_results,
    consolidate_ranks,
    consolidate_results,
    read_trees,
    report_scores,
    score_ranks,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lmms_eval_results, show_group_table, task_aggregation_list

Row = dict[str, object]
KINDS = ("stderr", "stderr_clt", "stderr_clustered")


def mean(items: Sequence[float]) -> float:
    return sum(items) / len(items)


mean.__module__ = "lmms_eval.api.metrics"  # as the host registers it


def percent(items: Sequence[float]) -> float:
    return 100 * float(np.mean(items))


@dataclass
class Output:
    """A task at the host's consolidate step."""

    task_name: str
    sample_metrics: dict[tuple[str, str], list[object]]
    functions: dict[str, Callable[..., object]] = field(default_factory=lambda: {"acc": mean, "f": mean})
    task_config: Row = field(default_factory=dict)
    logged_samples: list[Row] = field(default_factory=list)
    agg_metrics: Row = field(default_factory=dict)
    version: object = "1.0"
    n_shot: int = 0

    @property
    def task(self) -> SimpleNamespace:
        return SimpleNamespace(aggregation=lambda: self.functions, higher_is_better=lambda: {"acc": True, "f": False})


class Group(SimpleNamespace):
    """A key of the task dict that stands for a group."""

    __hash__ = object.__hash__


def group(name: str, *listed: Row, **config: object) -> Group:
    return Group(group_name=name, config={"aggregate_metric_list": list(listed) or None, **config})


def entry(metric: str = "acc", *, by_size: bool = True, aggregation: object = "mean") -> Row:
    return {"metric": metric, "filter_list": ["none"], "weight_by_size": by_size, "aggregation": aggregation}


def task(name: str, scores: Sequence[object], **more: object) -> Output:
    return Output(name, {("acc", "none"): list(scores)}, **more)


def row_of(output: Output, rules: LmmsRules | None = None) -> Row:
    return consolidate_results([output], rules=rules or LmmsRules())[0][output.task_name]


def error_of(scores: Sequence[float]) -> float:
    return float(np.std(scores, ddof=1) / sqrt(len(scores)))


BITS = {"a": [1, 0, 1, 1], "b": [0, 0, 1, 0, 1, 0, 0, 0], "c": [1, 1, 0, 1, 0, 1]}
OUTPUTS = [task(name, bits) for name, bits in BITS.items()]
ROWS, _, _, VERSIONS, _, _ = consolidate_results(OUTPUTS)
TASKS = {name: object() for name in BITS}


def step(*, below: Mapping[object, object] | None = None, **config: object) -> Row:
    """The row of a group of a and b, or of what is below it."""
    listed = config.pop("listed", (entry(),))
    members = {"a": object(), "b": object()} if below is None else below
    return consolidate_group_results(ROWS, VERSIONS, {group("g", *listed, **config): members})[0]["g"]


# --- a task's numbers -------------------------------------------------------------------------------------------------


def test_a_value_for_each_metric_and_filter() -> None:
    scores = {("acc", "strict"): [1, 0], ("acc", "loose"): [1, 1], ("f", "strict"): [0.5, 0.25]}
    row = row_of(Output("t", scores))
    assert {key: row[key] for key in ("acc,strict", "acc,loose", "f,strict")} == {
        "acc,strict": 0.5,
        "acc,loose": 1.0,
        "f,strict": 0.375,
    }


def test_the_tasks_own_function_gives_the_value() -> None:
    seen: list[list[object]] = []

    def count_words(items: list[object]) -> float:
        seen.append(items)
        return float(len(set(items)))

    row = row_of(task("t", ["x", "y", "x"], functions={"acc": count_words}))
    assert (row["acc,none"], seen) == (2.0, [["x", "y", "x"]])


def test_an_error_beside_each_value() -> None:
    row = row_of(Output("t", {("acc", "strict"): [1, 0, 1], ("f", "loose"): [0.1, 0.4, 0.2]}))
    assert row["acc_stderr,strict"] == pytest.approx(error_of([1, 0, 1]), rel=1e-12)
    assert row["f_stderr,loose"] == pytest.approx(error_of([0.1, 0.4, 0.2]), rel=1e-12)


def test_an_error_by_resampling() -> None:
    """A function of the task's own is called on resamples where that is allowed, the same ones each time."""
    output = task("t", BITS["b"] * 4, functions={"acc": percent})
    rules = LmmsRules(resample_own=True, bootstrap_iters=400)
    row = row_of(output, rules)
    assert row["acc_stderr,none"] == pytest.approx(100 * error_of(BITS["b"] * 4), rel=0.15)
    assert row == row_of(output, rules)


def test_the_number_of_resamples() -> None:
    def count_calls(iters: int) -> int:
        calls: list[int] = []
        function = {"acc": lambda items: [calls.append(1), percent(items)][1]}
        row_of(task("t", BITS["b"], functions=function), LmmsRules(resample_own=True, bootstrap_iters=iters))
        return len(calls)

    assert count_calls(80) - count_calls(50) == 30
    assert LmmsRules().bootstrap_iters is None  # a formula, which resamples nothing


@pytest.mark.parametrize("iters", [0.5, "100", -1, True])
def test_the_number_of_resamples_is_an_integer(iters: int) -> None:
    with pytest.raises(EvalError, match=f"expected bootstrap_iters to be an integer of at least 0, got {iters!r}"):
        row_of(task("t", BITS["b"]), LmmsRules(bootstrap_iters=iters))


def test_one_document_has_no_error() -> None:
    row = row_of(task("t", [1]))
    assert (row["acc,none"], {row[f"acc_{kind},none"] for kind in KINDS}) == (1.0, {"N/A"})


def test_a_function_without_a_formula_has_no_error() -> None:
    row = row_of(task("t", BITS["b"], functions={"acc": percent}))
    assert (row["acc,none"], row["acc_stderr,none"]) == (25.0, "N/A")
    assert row["evalcore_stderr"]["acc,none"]["reason"] == "the task's own aggregation is not called on resamples"


@pytest.mark.parametrize("function", [mean, percent])
def test_no_iterations_no_error(function: Callable[..., object]) -> None:
    output = task("t", BITS["b"], functions={"acc": function})
    row = row_of(output, LmmsRules(bootstrap_iters=0, resample_own=True))
    assert (row["acc,none"], row["acc_stderr,none"]) == (function(BITS["b"]), "N/A")


def test_the_number_of_scores() -> None:
    assert row_of(Output("t", {("acc", "none"): [1, 0, 1], ("f", "none"): [0.5, 0.5, 0.5]}))["samples"] == 3


def test_a_metric_that_some_documents_lack_does_not_shorten_the_task() -> None:
    """On purpose: the host takes the length of the last metric's list."""
    output = Output("t", {("acc", "none"): [1, 0, 1], ("f", "none"): [0.5]})
    assert row_of(output)["samples"] == 3


def test_the_error_of_the_mean_and_by_cluster() -> None:
    bits, videos = BITS["b"], np.arange(8) // 2
    items = [{"score": bit, "video": int(video)} for bit, video in zip(bits, videos, strict=True)]
    function = {"acc": lambda given: 7.0}
    row = row_of(task("t", items, functions=function, task_config={"cluster_key": "video"}))
    sums = (np.array(bits) - np.mean(bits)).reshape(4, 2).sum(axis=1)
    assert row["acc_stderr_clt,none"] == pytest.approx(error_of(bits), rel=1e-12)
    assert row["acc_stderr_clustered,none"] == pytest.approx(sqrt(4 / 3 * np.sum(sums**2)) / 8, rel=1e-12)
    assert row_of(task("t", bits))["acc_stderr_clustered,none"] == "N/A"


def test_what_the_host_has_calculated_counts() -> None:
    calls: list[object] = []
    output = task("t", [1, 0], functions={"acc": calls.append}, agg_metrics={"acc,none": 41.0})
    assert (row_of(output)["acc,none"], calls) == (41.0, [])


def test_nothing_that_is_passed_in_changes() -> None:
    output = task("t", [{"score": 1}, {"score": 0}], functions={"acc": lambda items: [items.pop(), 7.0][1]})
    before = deepcopy(vars(output) | {"functions": None})
    assert row_of(output)["acc,none"] == 7.0
    assert vars(output) | {"functions": None} == before


# --- the six mappings -------------------------------------------------------------------------------------------------

LOGGED = [{"doc_id": at, "target": "x", "filtered_resps": ["y"], "acc": bit} for at, bit in enumerate(BITS["a"])]
CONFIG = {"task": "a", "task_alias": "First", "dataset_path": "some/data"}
SIX = consolidate_results(
    [task("a", BITS["a"], task_config=CONFIG, logged_samples=LOGGED, version=2.5, n_shot=3), task("b", BITS["b"])]
)


def test_six_mappings_in_order() -> None:
    assert [type(part) for part in SIX] == [defaultdict] * 6
    assert [part.default_factory for part in SIX] == [dict, list, dict, dict, int, dict]
    assert [list(part) for part in SIX] == [["a", "b"]] * 6


def test_results_have_alias_and_samples_beside_the_numbers() -> None:
    assert {key for key in SIX[0]["a"] if key != "evalcore_stderr"} == {
        "alias",
        "samples",
        "acc,none",
        *(f"acc_{kind},none" for kind in KINDS),
    }
    assert [(SIX[0][name]["alias"], SIX[0][name]["samples"]) for name in "ab"] == [("First", 4), ("b", 8)]


def test_samples_are_the_logged_rows() -> None:
    assert SIX[1] == {"a": LOGGED, "b": []}


def test_configs_are_the_tasks_own() -> None:
    assert SIX[2] == {"a": CONFIG, "b": {}}


def test_versions_by_task() -> None:
    assert SIX[3] == {"a": 2.5, "b": "1.0"}


def test_shots_by_task() -> None:
    assert SIX[4] == {"a": 3, "b": 0}


def test_directions_by_task_and_metric() -> None:
    assert SIX[5] == {name: {"acc": True, "f": False} for name in "ab"}


def test_the_mappings_can_be_written_as_json() -> None:
    assert json.loads(json.dumps(SIX)) == [dict(part) for part in SIX]


# --- ranks ------------------------------------------------------------------------------------------------------------


def test_gathered_ranks_are_one_process() -> None:
    ranks = [[task("b", BITS["b"][rank::3])] for rank in range(3)]
    assert consolidate_ranks(ranks) == consolidate_results([task("b", BITS["b"])])


@pytest.mark.parametrize("rank", [1, 7])
def test_other_ranks_get_nothing(rank: int) -> None:
    task_dict = {group("g", entry()): TASKS}
    assert consolidate_results(OUTPUTS, rank=rank) == ({}, {}, {}, {}, {}, {})
    assert consolidate_group_results(ROWS, VERSIONS, task_dict, rank=rank) == ({}, {}, False, {})
    assert consolidate_ranks([OUTPUTS], task_dict, rank=rank) == ({}, {}, {}, {}, {}, {})
    assert lmms_eval_results(Report(tasks=()), rank=rank) == ({}, {}, {}, {}, {}, {})


# --- groups -----------------------------------------------------------------------------------------------------------


def test_the_arguments_of_the_two_functions() -> None:
    def positional(function: Callable[..., object]) -> dict[str, object]:
        found = signature(function).parameters.values()
        return {one.name: one.default for one in found if one.kind is Parameter.POSITIONAL_OR_KEYWORD}

    assert positional(consolidate_results) == {"eval_tasks": Parameter.empty}
    assert positional(consolidate_group_results) == {
        **dict.fromkeys(("results", "versions", "task_dict"), Parameter.empty),
        "task_root": None,
        "show_group_table": False,
        "task_aggregation_list": None,
    }


def test_the_group_step_returns_four() -> None:
    results, versions, shown, listed = consolidate_group_results(ROWS, VERSIONS, {group("g", entry()): TASKS})
    assert [type(part) for part in (results, versions, shown, listed)] == [defaultdict, defaultdict, bool, dict]
    assert (results.default_factory, versions.default_factory) == (dict, dict)


def test_tasks_keep_their_rows() -> None:
    results, versions, *_ = consolidate_group_results(ROWS, VERSIONS, {group("g", entry()): TASKS})
    assert {name: results[name] for name in BITS} == ROWS
    assert versions == VERSIONS


def test_a_group_weighs_tasks_by_size() -> None:
    assert step()["acc,none"] == pytest.approx((4 * 0.75 + 8 * 0.25) / 12, rel=1e-12)


def test_a_group_weighs_tasks_alike() -> None:
    assert step(listed=(entry(by_size=False),))["acc,none"] == 0.5


def test_a_group_has_a_function_of_its_own() -> None:
    def best(values: Sequence[float], sizes: Sequence[int], by_size: bool) -> float:
        return max(values) + max(sizes) + by_size

    assert step(listed=(entry(aggregation=best),))["acc,none"] == 0.75 + 8 + 1


@pytest.mark.parametrize("by_size", [True, False])
def test_a_groups_error_follows_its_weights(by_size: bool) -> None:
    """On purpose: the host pools variances by size whatever the weights."""
    weights = np.array([4, 8]) / 12 if by_size else np.array([0.5, 0.5])
    errors = np.array([error_of(BITS[name]) for name in "ab"])
    found = step(listed=(entry(by_size=by_size),))["acc_stderr,none"]
    assert found == pytest.approx(sqrt(np.sum((weights * errors) ** 2)), rel=1e-12)


def test_the_pooled_error_by_policy() -> None:
    """lm-eval's policy gives sqrt(Σ (n - 1) n stderr² / (N - k) / N), the host's formula."""
    scored = score_ranks([OUTPUTS[:2]])
    trees = read_trees({group("g", entry()): {"a": object(), "b": object()}})
    report = build_report(report_scores(scored).tasks, trees, tables=LM_EVAL_0_4_13)
    sizes, errors = np.array([4, 8]), np.array([error_of(BITS[name]) for name in "ab"])
    pooled = np.sum((sizes - 1) * sizes * errors**2) / (12 - 2)
    assert lmms_eval_results(report)[0]["g"]["acc_stderr,none"] == pytest.approx(sqrt(pooled / 12), rel=1e-12)


def test_a_task_without_an_error_leaves_the_group_without() -> None:
    rows = {**ROWS, "b": {**ROWS["b"], "acc_stderr,none": "N/A"}}
    row = consolidate_group_results(rows, VERSIONS, {group("g", entry()): TASKS})[0]["g"]
    assert isinstance(row["acc,none"], float)
    assert row["acc_stderr,none"] == "N/A"


def test_a_group_has_the_documents_of_its_tasks() -> None:
    assert step()["samples"] == 12


def test_a_group_without_a_list_has_no_numbers() -> None:
    assert step(listed=()) == {" ": " "}
    assert consolidate_group_results(ROWS, VERSIONS, {"bare": TASKS})[0]["bare"] == {" ": " "}


def test_groups_within_groups() -> None:
    """Each level has the tasks of all levels below."""
    inner = group("inner", entry(by_size=False))
    task_dict = {group("outer", entry()): {"a": object(), "plain": {inner: {"b": object(), "c": object()}}}}
    results, _, _, listed = consolidate_group_results(ROWS, VERSIONS, task_dict)
    values = [ROWS[name]["acc,none"] for name in BITS]
    assert results["inner"]["acc,none"] == pytest.approx(np.mean(values[1:]), rel=1e-12)
    assert results["outer"]["acc,none"] == pytest.approx(np.average(values, weights=[4, 8, 6]), rel=1e-12)
    assert listed == {"outer": ["a", "b", "c"], "plain": ["b", "c"], "inner": ["b", "c"]}


def test_a_group_has_its_version_and_alias() -> None:
    top = group("g", entry(), metadata={"version": 3}, group_alias="All")
    assert consolidate_group_results(ROWS, VERSIONS, {top: TASKS})[1] == {**VERSIONS, "g": 3}
    assert consolidate(OUTPUTS, {top: TASKS})[0]["g"]["alias"] == "All"


def test_whether_there_is_a_table_of_groups() -> None:
    shown, hidden = {group("g", entry()): TASKS}, {group("g"): TASKS, "bare": TASKS}
    assert [consolidate_group_results(ROWS, VERSIONS, one)[2] for one in (shown, hidden, TASKS)] == [True, False, False]
    assert consolidate_group_results(ROWS, VERSIONS, hidden, show_group_table=True)[2] is True


def test_the_tasks_below_each_group() -> None:
    task_dict = {group("g", entry()): {"a": object(), "b": object()}, "bare": {"c": object()}}
    before = {"old": ["z"]}
    assert consolidate_group_results(ROWS, VERSIONS, task_dict)[3] == {"g": ["a", "b"], "bare": ["c"]}
    found = consolidate_group_results(ROWS, VERSIONS, task_dict, task_aggregation_list=before)[3]
    assert (found, before) == ({"old": ["z"], "g": ["a", "b"], "bare": ["c"]}, {"old": ["z"]})


def test_the_tasks_below_a_root() -> None:
    results, _, _, listed = consolidate_group_results(ROWS, VERSIONS, {"a": object(), "x": {"c": object()}}, "root")
    assert listed == {"root": ["a", "c"], "x": ["c"]}
    assert "root" not in results


def test_a_group_named_as_a_benchmark() -> None:
    """A value of 0.45 and its error, as an evaluation of two subjects ends."""
    subjects = {"art": [1] * 6 + [0] * 4, "music": [1] * 3 + [0] * 7}
    outputs = [
        Output(name, {("exact_match", "none"): list(bits)}, {"exact_match": mean}) for name, bits in subjects.items()
    ]
    results, _, _, versions, *_ = consolidate_results(outputs)
    task_dict = {group("mmmu", entry("exact_match")): {name: object() for name in subjects}}
    results, versions, shown, _ = consolidate_group_results(results, versions, task_dict)
    errors = [error_of(bits) for bits in subjects.values()]
    assert (results["mmmu"]["exact_match,none"], shown) == (0.45, True)
    assert results["mmmu"]["exact_match_stderr,none"] == pytest.approx(sqrt(sum(e**2 for e in errors)) / 2, rel=1e-12)


def test_a_report_gives_the_same_mappings() -> None:
    """Scores that no host made have the same form."""
    task_dict = {group("g", entry()): {"a": object(), "b": object()}}
    report = report_scores(score_ranks([OUTPUTS]), task_dict)
    six = consolidate(OUTPUTS, task_dict)
    assert lmms_eval_results(report)[0] == six[0]
    assert show_group_table(report) is True
    assert task_aggregation_list(report) == {"g": ["a", "b"]}
