"""evalcore for lmms-eval, on the shapes of its public source: TaskOutput lists, nested task dicts, gathered ranks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from evalcore import EvalError
from evalcore.adapters.lmms_eval import (
    LmmsRules,
    consolidate,
    consolidate_group_results,
    consolidate_ranks,
    consolidate_results,
    report_scores,
    score_ranks,
)

Plain = dict[str, object]


def mean(items: Sequence[float]) -> float:
    return sum(items) / len(items)


def median(items: Sequence[float]) -> float:
    return sorted(items)[len(items) // 2]


mean.__module__ = median.__module__ = "lmms_eval.api.metrics"  # as lmms-eval registers them


def mean_score(items: Sequence[Mapping[str, float]]) -> float:
    """What most of lmms-eval's tasks have: a mean of the scores in dicts."""
    return float(np.mean([item["score"] for item in items]))


def percent(items: Sequence[Mapping[str, float]], args: object = None) -> float:
    return 100 * mean_score(items) + (0 if args == "cli" else 1)


@dataclass
class Output:
    """lmms-eval's TaskOutput at its consolidate step."""

    task_name: str
    sample_metrics: dict[tuple[str, str], list[object]]
    aggregation: dict[str, Callable[..., object]]
    logged_samples: list[Plain] = field(default_factory=list)
    task_config: Plain = field(default_factory=dict)
    higher: dict[str, bool] = field(default_factory=dict)
    per_sample_metrics: dict[tuple[str, str], list[list[object]]] = field(default_factory=dict)
    version: str = "1.0"
    n_shot: int = 0
    agg_metrics: dict[str, float] = field(default_factory=dict)

    @property
    def task(self) -> SimpleNamespace:
        return SimpleNamespace(aggregation=lambda: self.aggregation, higher_is_better=lambda: self.higher, args="cli")


def ranks_of(
    name: str,
    docs: Sequence[Plain],
    size: int = 1,
    *,
    filters: Sequence[str] = ("none",),
    log: bool = True,
    **more: object,
) -> list[Output]:
    """A task's outputs as each rank fills them: every size-th document, filter by filter, metrics as they come."""
    out = []
    for rank in range(size):
        metrics: dict[tuple[str, str], list[object]] = {}
        rows = []
        for name_of_filter in filters:
            for doc_id in range(rank, len(docs), size):
                found = dict(docs[doc_id])
                rows.append({"doc_id": doc_id, "doc": {"n": doc_id}, "target": "x", **found})
                for metric, value in found.items():
                    metrics.setdefault((metric, name_of_filter), []).append(value)
        out.append(Output(name, metrics, logged_samples=rows if log else [], **more))
    return out


def numbers(n: int, seed: int = 0) -> list[Plain]:
    rng = np.random.default_rng(seed)
    return [{"acc": int(rng.integers(2)), "f": np.float32(rng.random())} for _ in range(n)]


def only(docs: Sequence[Plain], **more: object) -> Output:
    (output,) = ranks_of("t", docs, **{"aggregation": {"acc": mean, "f": mean}, **more})
    return output


# --- the six mappings ------------------------------------------------------------------------------------------------


def test_six_mappings() -> None:
    docs = numbers(20)
    output = only(docs, task_config={"task_alias": "T", "x": max}, higher={"acc": True}, n_shot=2, version="2.1")
    results, samples, configs, versions, shots, higher = consolidate([output])
    values = [doc["acc"] for doc in docs]
    error = np.std(values, ddof=1) / sqrt(20)
    row = results["t"]
    assert (row["alias"], row["samples"], row["acc,none"]) == ("T", 20, np.mean(values))
    assert row["acc_stderr,none"] == row["acc_stderr_clt,none"] == pytest.approx(error, rel=1e-12)
    assert row["acc_stderr_clustered,none"] == "N/A"
    assert samples["t"] == output.logged_samples
    assert (configs["t"]["x"], versions, shots, higher) == (max, {"t": "2.1"}, {"t": 2}, {"t": {"acc": True}})


def test_other_ranks_get_empty_mappings() -> None:
    assert consolidate([only(numbers(3))], rank=2) == ({}, {}, {}, {}, {}, {})


def test_numpy_scores_count() -> None:
    """E34: lmms-eval drops float32 from its error; a NaN is no score, and is counted."""
    docs = numbers(20)
    docs[3]["f"] = float("nan")
    rest = [float(doc["f"]) for i, doc in enumerate(docs) if i != 3]
    row = consolidate([only(docs)])[0]["t"]
    assert row["f_stderr_clt,none"] == pytest.approx(np.std(rest, ddof=1) / sqrt(19), rel=1e-12)
    found = report_scores(score_ranks([[only(docs)]])).task("t")["f,none"]
    assert (found.counts.scored, found.counts.unscorable) == (19, 1)


def test_the_median_is_sorted_and_in_the_middle() -> None:
    """E01."""
    docs = [{"acc": value} for value in (9.0, 1.0, 2.0, 4.0)]
    assert consolidate([only(docs, aggregation={"acc": median})])[0]["t"]["acc,none"] == 3.0


def test_no_errors_where_none_are_asked_for() -> None:
    row = consolidate([only(numbers(9))], rules=LmmsRules(bootstrap_iters=0))[0]["t"]
    assert row["acc_stderr,none"] == "N/A"
    skipped = only(numbers(9), task_config={"skip_stderr_metrics": ["acc"]})
    assert consolidate([skipped])[0]["t"]["acc_stderr_clt,none"] == "N/A"


def test_metrics_that_some_documents_lack() -> None:
    docs = [{"acc": 1.0, **({"f": 0.5} if i % 3 else {})} for i in range(9)]
    found = report_scores(score_ranks([[only(docs)]])).task("t")
    assert (
        found["f,none"].counts.scored,
        found["f,none"].counts.not_emitted,
        found["acc,none"].counts.not_emitted,
    ) == (6, 3, 0)


# --- aggregations of the tasks' own ------------------------------------------------------------------------------------


def dicts(n: int, seed: int = 1, *, lone: int = 0) -> list[Plain]:
    rng = np.random.default_rng(seed)
    each = [{"score": int(rng.integers(2)), **({} if i < lone else {"videoID": f"v{i // 4}"})} for i in range(n)]
    return [{"acc": item} for item in each]


def test_a_function_that_takes_the_mean_has_its_error() -> None:
    docs = dicts(24)
    row = consolidate([only(docs, aggregation={"acc": mean_score})])[0]["t"]
    values = [doc["acc"]["score"] for doc in docs]
    assert row["acc,none"] == np.mean(values)
    assert row["acc_stderr,none"] == pytest.approx(np.std(values, ddof=1) / sqrt(24), rel=1e-12)


def test_any_other_function_is_called_once() -> None:
    calls = []

    def once(items: Sequence[Mapping[str, float]]) -> float:
        calls.append(len(items))
        return max(item["score"] for item in items) * 7.0

    row = consolidate([only(dicts(24), aggregation={"acc": once})])[0]["t"]
    assert (calls, row["acc,none"], row["acc_stderr,none"]) == ([24], 7.0, "N/A")
    assert row["acc_stderr_clt,none"] > 0  # of the scores themselves
    drawn = consolidate(
        [only(dicts(24), aggregation={"acc": percent})], rules=LmmsRules(resample_own=True, bootstrap_iters=50)
    )
    assert drawn[0]["t"]["acc_stderr,none"] == pytest.approx(100 * row["acc_stderr_clt,none"], rel=0.5)
    assert drawn[0]["t"]["acc,none"] == 100 * mean_score([doc["acc"] for doc in dicts(24)])  # it got the arguments


def test_functions_of_python_itself_are_functions() -> None:
    row = consolidate([only(numbers(24), aggregation={"acc": max, "f": min})])[0]["t"]
    assert row["acc,none"] == 1.0
    assert row["f,none"] == min(float(doc["f"]) for doc in numbers(24))


def test_functions_that_give_no_number() -> None:
    """One that only writes a file, one that gives parts, and one that fails do not take the other tasks with them."""
    whys = {}
    for function in (lambda items: None, lambda items: {"easy": 1.0}, lambda items: 1 / 0):
        output = only(dicts(5), aggregation={"acc": function})
        whys[report_scores(score_ranks([[output]])).task("t")["acc,none"].reason] = consolidate([output])[0]["t"][
            "acc,none"
        ]
    assert list(whys.values()) == ["N/A", {"easy": 1.0}, "N/A"]
    assert [why.partition("'<lambda>' ")[2] for why in whys] == [
        "returned NoneType, which is no number",
        "returned dict, which is no number",
        "raised ZeroDivisionError: division by zero",
    ]


def test_the_field_of_a_score() -> None:
    """The task's ``score_key`` says where a dict has its number."""
    docs = [{"acc": {"points": i % 3, "score": 9}} for i in range(9)]
    row = consolidate([only(docs, aggregation={"acc": len}, task_config={"score_key": "points"})])[0]["t"]
    assert row["acc_stderr_clt,none"] == pytest.approx(np.std([i % 3 for i in range(9)], ddof=1) / 3, rel=1e-12)


def test_scores_that_are_no_numbers_have_neither_error() -> None:
    row = consolidate([only([{"acc": word} for word in "abca"], aggregation={"acc": lambda items: len(set(items))})])
    assert row[0]["t"]["acc,none"] == 3.0
    assert {row[0]["t"][f"acc_{kind},none"] for kind in ("stderr", "stderr_clt", "stderr_clustered")} == {"N/A"}


def test_a_metric_that_the_task_does_not_declare() -> None:
    docs = [{"acc": i % 2, "word": "x"} for i in range(4)]
    output = only(docs, aggregation={})
    row = consolidate([output])[0]["t"]
    assert (row["acc,none"], row["word,none"]) == (0.5, "N/A")
    assert report_scores(score_ranks([[output]])).task("t").warnings == (
        "t: metric 'acc' was emitted without being declared; aggregated by mean",
    )


# --- clusters -----------------------------------------------------------------------------------------------------------


def test_clustered_errors() -> None:
    docs = dicts(24)
    row = consolidate([only(docs, aggregation={"acc": mean_score}, task_config={"cluster_key": "videoID"})])[0]["t"]
    values = np.array([doc["acc"]["score"] for doc in docs], float)
    sums = (values - values.mean()).reshape(6, 4).sum(axis=1)
    expected = sqrt(6 / 5 * np.sum(sums**2)) / 24  # lmms-eval has no C/(C - 1)
    assert row["acc_stderr_clustered,none"] == row["acc_stderr,none"] == pytest.approx(expected, rel=1e-12)
    assert row["acc_stderr_clt,none"] == pytest.approx(np.std(values, ddof=1) / sqrt(24), rel=1e-12)


def test_clusters_of_unequal_size() -> None:
    docs = dicts(24)
    for doc in docs[:12]:
        doc["acc"]["videoID"] = docs[0]["acc"]["videoID"]
    output = only(docs, aggregation={"acc": mean_score}, task_config={"cluster_key": "videoID"})
    values = np.array([doc["acc"]["score"] for doc in docs], float)
    apart = values - values.mean()
    sums = np.array([apart[:12].sum(), *apart[12:].reshape(3, 4).sum(axis=1)])
    for form, expected in (("cr1", 4 / 3 * sums**2), ("cr2", sums**2 / (1 - np.array([12, 4, 4, 4]) / 24))):
        row = consolidate([output], rules=LmmsRules(stderr=form))[0]["t"]
        stderr = pytest.approx(sqrt(expected.sum()) / 24, rel=1e-12)
        assert row["acc_stderr_clustered,none"] == row["acc_stderr,none"] == stderr


def test_a_function_without_an_error_has_none_by_cluster_either() -> None:
    output = only(dicts(24), aggregation={"acc": lambda items: 7.0}, task_config={"cluster_key": "videoID"})
    row = consolidate([output])[0]["t"]
    assert (row["acc,none"], row["acc_stderr,none"]) == (7.0, "N/A")
    assert row["acc_stderr_clustered,none"] > 0
    assert row["evalcore_stderr"]["acc,none"]["reason"] == "the task's own aggregation is not called on resamples"


@pytest.mark.parametrize("log", [True, False])
def test_a_cluster_in_the_logged_document_is_not_read(log: bool) -> None:
    """As in lmms-eval, a cluster is a field of the scores: no number depends on whether samples are logged."""
    output = only([{"acc": float(i % 2)} for i in range(8)], task_config={"cluster_key": "source"}, log=log)
    for row in output.logged_samples:
        row["doc"]["source"] = row["doc_id"] // 2
    row = consolidate([output])[0]["t"]
    assert (row["acc_stderr_clustered,none"], row["acc_stderr,none"]) == ("N/A", row["acc_stderr_clt,none"])


def test_documents_without_a_cluster_are_no_giant_one() -> None:
    """E31."""
    output = only(dicts(24, lone=5), aggregation={"acc": mean_score}, task_config={"cluster_key": "videoID"})
    with pytest.raises(EvalError, match="expected a cluster id for every document, 5 have none, first at t row 0"):
        consolidate([output])
    found = report_scores(score_ranks([[output]], LmmsRules(singletons=True))).task("t")["acc,none"]
    assert len(set(found.spread.clusters.ints.tolist())) == 5 + 5


# --- repeats ------------------------------------------------------------------------------------------------------------


def test_the_mean_of_repeats() -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 2, (12, 4)).astype(float)
    repeated = {("acc", "none"): [[{"score": value} for value in row] for row in scores.tolist()]}
    output = only([{"acc": row[0]} for row in scores.tolist()], per_sample_metrics=repeated)
    row = consolidate([output])[0]["t"]
    assert row["acc_expected_accuracy,none"] == pytest.approx(scores.mean(), rel=1e-12)
    error = np.std(scores.mean(axis=1), ddof=1) / sqrt(12)
    assert row["acc_expected_accuracy_stderr,none"] == pytest.approx(error, rel=1e-12)
    assert row["acc_internal_variance,none"] == pytest.approx(scores.var(axis=1, ddof=1).mean(), rel=1e-12)
    assert row["acc_consistency_rate,none"] == np.mean([len(set(one)) == 1 for one in scores.tolist()])
    assert row["acc_consensus_accuracy,none"] == "N/A"  # E32
    found = report_scores(score_ranks([[output]])).task("t")["acc_expected_accuracy,none"]
    assert found.spread.repeats == 4
    assert found.spread.noise == pytest.approx(np.mean(scores.var(axis=1, ddof=1) / 4) / 12, rel=1e-12)


# --- groups --------------------------------------------------------------------------------------------------------------


class Group(SimpleNamespace):
    """lmms-eval's ConfigurableGroup, as a key."""

    __hash__ = object.__hash__


def group(name: str, *metrics: Plain, **config: object) -> Group:
    listed = [{"aggregation": "mean", "weight_by_size": True, "filter_list": "none", **one} for one in metrics]
    return Group(group_name=name, config={"group": name, "aggregate_metric_list": listed or None, **config})


def member(name: str, seed: int, n: int, higher: bool = True) -> Output:
    (output,) = ranks_of(
        name, numbers(n, seed), aggregation={"acc": mean, "f": mean}, higher={"acc": higher, "f": True}
    )
    return output


def test_groups() -> None:
    outputs = [member("a", 1, 10), member("b", 2, 30), member("c", 3, 20, higher=False)]
    task = SimpleNamespace(task_name="b")
    inner = group("inner", {"metric": "acc", "weight_by_size": False}, group_alias="Inner", metadata={"version": 3})
    task_dict = {
        group("outer", {"metric": "acc"}): {"a": object(), inner: {"b": task, "c": object()}},
        "bare": {"a": object()},
    }
    results, _, _, versions, shots, higher = consolidate(outputs, task_dict)
    rows = [results[name] for name in "abc"]
    sizes, values, errors = ([row[key] for row in rows] for key in ("samples", "acc,none", "acc_stderr,none"))
    assert results["outer"]["acc,none"] == pytest.approx(np.average(values, weights=sizes), rel=1e-12)
    assert results["inner"]["acc,none"] == pytest.approx(np.mean(values[1:]), rel=1e-12)
    # lmms-eval pools by size even here
    assert results["inner"]["acc_stderr,none"] == pytest.approx(sqrt(errors[1] ** 2 + errors[2] ** 2) / 2, rel=1e-12)
    assert (results["inner"]["alias"], results["inner"]["samples"], results["bare"]["alias"]) == ("Inner", 50, "bare")
    assert "acc,none" not in results["bare"]
    assert (versions["inner"], versions["a"], shots["outer"]) == ("3", "1.0", 0)
    # E33: a conflict in one group stays there
    assert (higher["inner"]["acc"], higher["bare"]["acc"]) == (None, True)


def test_groups_take_the_metric_and_filter_they_name() -> None:
    """E30: lmms-eval takes every metric that contains the name, under any filter."""
    docs = [{"acc": 1.0, "acc_norm": 0.0} for _ in range(4)]
    (output,) = ranks_of("a", docs, filters=("strict", "loose"), aggregation={"acc": mean, "acc_norm": mean})
    results = consolidate([output], {group("g", {"metric": "acc", "filter_list": ["strict"]}): {"a": object()}})[0]
    assert {key for key in results["g"] if "," in key} == {"acc,strict", "acc_stderr,strict"}


def test_a_group_function_gets_what_lmms_eval_gives_it() -> None:
    seen = []

    def best(values: Sequence[float], sizes: Sequence[float], by_size: bool) -> float:
        seen.append((list(sizes), by_size))
        return max(values)

    outputs = [member("a", 1, 10), member("b", 2, 30)]
    entry = {"metric": "acc", "aggregation": best, "weight_by_size": False}
    results = consolidate(outputs, {group("g", entry): {"a": object(), "b": object()}})[0]
    assert results["g"]["acc,none"] == max(results[name]["acc,none"] for name in "ab")
    assert ([10, 30], False) in seen


def test_sizes_count_only_where_an_entry_says_so() -> None:
    outputs = [member("a", 4, 10), member("b", 2, 30)]  # of acc 0.7 and 0.5
    entries = [{"metric": "acc"}, {"metric": "f", "aggregation": "mean", "weight_by_size": True}]
    task_dict = {group("g", aggregate_metric_list=entries): {"a": object(), "b": object()}}
    results = consolidate(outputs, task_dict)[0]
    for metric, weights in (("acc,none", [1, 1]), ("f,none", [10, 30])):
        expected = np.average([results[name][metric] for name in "ab"], weights=weights)
        assert results["g"][metric] == pytest.approx(expected, rel=1e-12)


def test_groups_of_functions_of_the_tasks_own() -> None:
    outputs = [only(dicts(8, seed), aggregation={"acc": percent}) for seed in (1, 2)]
    for name, output in zip("ab", outputs, strict=True):
        output.task_name = name
    results = consolidate(outputs, {group("g", {"metric": "acc"}): {"a": object(), "b": object()}})[0]
    assert results["g"]["acc,none"] == pytest.approx(np.mean([results[name]["acc,none"] for name in "ab"]), rel=1e-12)


def test_the_two_steps_are_the_one() -> None:
    """Groups from rows of tasks are the groups of all at once, and what was passed in stays as it was."""
    outputs = [member("a", 1, 10), member("b", 2, 30), member("c", 3, 20)]
    outputs[0].sample_metrics["f", "none"] = outputs[0].sample_metrics["f", "none"][:4]  # weighs 4 in its group, not 10
    outputs[0].logged_samples = []
    listed = {"metric": "acc"}, {"metric": "f", "weight_by_size": True}
    inner = group("inner", {"metric": "acc", "weight_by_size": False}, metadata={"version": 3})
    task_dict = {group("outer", *listed): {"a": object(), inner: {"b": object()}}, "bare": {"c": object()}}
    whole = consolidate(outputs, task_dict)
    results, _, _, versions, _, _ = consolidate_results(outputs)
    before = json.dumps([results, versions])
    step = consolidate_group_results(results, versions, task_dict)
    assert json.dumps([results, versions]) == before
    assert step[0]["bare"] == {" ": " "}
    for name in ("outer", "inner"):
        numbers = {key: value for key, value in step[0][name].items() if "," in key or key == "samples"}
        assert numbers == pytest.approx({key: whole[0][name][key] for key in numbers}, rel=1e-12)
    assert len(step[0]["outer"]) == 6
    assert (step[1]["inner"], "outer" in step[1]) == (3, False)
    assert step[2:] == (True, {"outer": ["a", "b"], "inner": ["b"], "bare": ["c"]})
    below = consolidate_group_results(results, versions, {"x": {"c": object()}}, "root", True, {"old": ["z"]})
    assert below[2:] == (True, {"old": ["z"], "root": ["c"], "x": ["c"]})
    assert "root" not in below[0]
    assert consolidate_group_results(results, versions, task_dict, rank=1) == ({}, {}, False, {})


# --- ranks ---------------------------------------------------------------------------------------------------------------


def as_text(six: Sequence[Plain]) -> str:
    """Everything but the log, whose order is that of ranks."""
    return json.dumps([part for at, part in enumerate(six) if at != 1], sort_keys=True, default=repr)


def padded(outputs: list[Output], log: bool) -> list[Output]:
    """Each rank with its last document once more under every filter, the first rank with two more of them."""
    for rank, output in enumerate(outputs):
        names = list(dict.fromkeys(name for _, name in output.sample_metrics))
        size = len(output.logged_samples) // len(names) if log else 0
        chunks = [output.logged_samples[at * size : (at + 1) * size] for at in range(len(names))]
        times = 2 if rank == 0 else 1
        output.logged_samples = [row for chunk in chunks for row in [*chunk, *chunk[-1:] * times]]
        for items in output.sample_metrics.values():
            items.extend(items[-1:] * times)
    return outputs


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("filters", [("none",), ("strict", "loose")])
def test_ranks_give_the_numbers_of_one_process(size: int, log: bool, filters: Sequence[str]) -> None:
    docs = [{**one, **two} for one, two in zip(numbers(23), ({"d": doc["acc"]} for doc in dicts(23)), strict=True)]
    given = {
        "filters": filters,
        "log": log,
        "aggregation": {"acc": mean, "f": median, "d": percent},
        "task_config": {"cluster_key": "videoID"},
    }
    rules = LmmsRules(documents={"t": 23}, singletons=True)
    alone = consolidate(ranks_of("t", docs, **given), rules=rules)
    ranks = [[one] for one in padded(ranks_of("t", docs, size, **given), log)]
    assert as_text(consolidate_ranks(ranks, rules=rules)) == as_text(alone)


@pytest.mark.parametrize("filters", [("none",), ("strict", "loose")])
def test_lists_that_lmms_eval_joined(filters: Sequence[str]) -> None:
    """Rank after rank in one list: the log says which document is which, so that clusters stay whole."""
    docs = dicts(23)
    given = {"filters": filters, "aggregation": {"acc": percent}, "task_config": {"cluster_key": "videoID"}}
    first, *others = ranks_of("t", docs, 3, **given)
    for one in others:
        first.logged_samples += one.logged_samples
        for key, items in one.sample_metrics.items():
            first.sample_metrics[key] += items
    assert as_text(consolidate([first])) == as_text(consolidate(ranks_of("t", docs, **given)))


def test_a_metric_that_only_one_rank_has() -> None:
    docs = [{"acc": 1.0, **({"rare": 0.5} if i == 4 else {})} for i in range(9)]
    given = {"aggregation": {"acc": mean, "rare": mean}}
    ranks = [[one] for one in ranks_of("t", docs, 3, **given)]
    assert as_text(consolidate_ranks(ranks)) == as_text(consolidate(ranks_of("t", docs, **given)))


def test_a_task_that_only_one_rank_has() -> None:
    """A rank without documents of a task may lack its output."""
    a, second = ranks_of("a", numbers(8), 2, aggregation={"acc": mean})
    (b,) = ranks_of("b", numbers(5), aggregation={"acc": mean})
    six = consolidate_ranks([[a], [second, b]], {group("g", {"metric": "acc"}): {"a": object(), "b": object()}})
    assert [list(part) for part in six[1:3]] == [["a", "b"]] * 2
    assert six[0]["b"] == consolidate([b])[0]["b"]
    assert (six[0]["a"]["samples"], six[0]["g"]["samples"], len(six[1]["b"])) == (8, 13, 5)
    assert list(score_ranks([[], [second, b]])) == ["a", "b"]


def test_a_value_that_one_rank_made_is_not_that_of_all() -> None:
    """Also if the first rank has as many items as all have scores; what is of all scores is taken."""

    def most(items: Sequence[float]) -> float:
        return 10 * max(items)

    first, second = (Output("t", {("acc", "none"): items}, {"acc": most}) for items in ([1.0, float("nan")], [5.0]))
    first.agg_metrics = {"acc,none": 10.0}
    assert consolidate_ranks([[first], [second]])[0]["t"]["acc,none"] == 50.0
    second.agg_metrics = {"acc,none": 7.0}
    assert consolidate_ranks([[second]])[0]["t"]["acc,none"] == consolidate([second])[0]["t"]["acc,none"] == 7.0


def test_what_cannot_be_told_apart_is_refused() -> None:
    short = only(numbers(6))
    short.logged_samples = short.logged_samples[:4]
    with pytest.raises(EvalError, match="expected 6 logged samples with 'acc', got 4 - at t acc,none"):
        consolidate([short])
    (two,) = ranks_of("t", numbers(6), filters=("a", "b"), aggregation={"acc": mean})
    two.logged_samples = two.logged_samples[1:]
    with pytest.raises(
        EvalError, match="got 1 for 2 filters; ranks with padding are told apart by consolidate_ranks - at t"
    ):
        consolidate([two])
    first, second = ranks_of("t", numbers(6), 2, aggregation={"acc": mean, "f": mean})
    second.logged_samples[0]["doc_id"] = 0
    second.sample_metrics["acc", "none"][0] = 1 - first.sample_metrics["acc", "none"][0]
    with pytest.raises(EvalError, match=r"expected one score per document, got two different ones: .* - at doc 0"):
        consolidate_ranks([[first], [second]])
    with pytest.raises(EvalError, match="at least one rank"):
        consolidate_ranks([])
