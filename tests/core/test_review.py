"""Findings of reviews, each once wrong and now right."""

import json
import pickle

import numpy as np
import pytest

from evalcore import (
    AGGREGATIONS,
    EVALCORE,
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    SCORERS,
    Answer,
    EvalError,
    Generate,
    Instance,
    LogLikelihood,
    MetricKey,
    MetricSpec,
    Ok,
    OutputType,
    Sample,
    Tables,
    Task,
    TaskReport,
    Unscorable,
    aggregate_metric,
    build_report,
    freeze_options,
    merge_scored,
    report_task,
    score_doc,
    score_task,
)
from evalcore.comparisons import compare_estimates
from evalcore.extensions import GenResult, from_callable, per_document, scorer_of
from evalcore.groups import Group, GroupMetric, Leaf, leaf_from_flat, report_groups
from evalcore.lm_eval import LM_EVAL_0_4_13, sample_rows, task_from_config
from evalcore.logs import document_table
from evalcore.stats import Array, Floats, Inference, Labels, Objects, build_column, clusters_of

EXACT = (MetricSpec("exact_match"),)


def texts(replies, golds, task=None, **more):
    task = task or Task("t", GENERATE_UNTIL, EXACT)
    answers = [Answer(Instance(task.name, i, 0, Generate("?")), (text,)) for i, text in enumerate(replies)]
    return score_task(task, [Sample(i, gold=gold) for i, gold in enumerate(golds)], answers, **more)


def leaf(name, value, stderr=0.05, n=20):
    return leaf_from_flat(name, {"acc,none": value, "acc_stderr,none": stderr, "sample_len": n})


def test_golds_and_replies_straight_from_json():
    assert score_doc(Task("t", GENERATE_UNTIL, EXACT), Sample(0, gold=["4", "5"]), texts_answers("5")) == {
        MetricKey("exact_match"): Ok(1.0)
    }
    asked = [Instance("q", 0, i, LogLikelihood("", "")) for i in range(2)]
    replies = [Answer(one, ([-1.0 - i, False],)) for i, one in enumerate(asked)]
    task = Task("q", MULTIPLE_CHOICE, (MetricSpec("acc"),))
    assert score_doc(task, Sample(0, gold=np.int64(0), choices=["a", "b"], doc={"x": 1}), replies) == {
        MetricKey("acc"): Ok(1.0)
    }
    (outcome,) = score_doc(Task("t", GENERATE_UNTIL, EXACT), Sample(0, gold={"a": 1}), texts_answers("5")).values()
    assert isinstance(outcome, Unscorable)


def texts_answers(text):
    return [Answer(Instance("t", 0, 0, Generate("?")), (text,))]


def test_clusters_of_samples_are_used_and_survive_shards():
    samples = [Sample(i, gold="4", cluster=i // 5) for i in range(20)]
    answers = [Answer(Instance("t", i, 0, Generate("?")), ("4" if i < 10 else "5",)) for i in range(20)]
    task = Task("t", GENERATE_UNTIL, EXACT)
    whole = report_task(score_task(task, samples, answers))
    shards = [score_task(task, samples[i::3], answers[i::3]) for i in range(3)]
    assert report_task(merge_scored(shards)) == whole
    assert whole["exact_match,none"].stderr == pytest.approx(0.2886751345948129)


def test_singletons_do_not_depend_on_order_or_shard():
    samples = [Sample(i) for i in range(4)]
    parts = {**clusters_of("t", samples[:2], singletons=True), **clusters_of("t", samples[2:], singletons=True)}
    assert parts == dict(clusters_of("t", samples[::-1], singletons=True))
    assert len(set(parts.values())) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: Inference(on_unscorable="drop"),
        lambda: Inference(interval="wilsn"),
        lambda: Inference(confidence=95),
        lambda: GroupMetric("acc", missing="error"),
        lambda: report_groups(Group("g", (leaf("a", 0.5),), (GroupMetric("acc", average="child"),))),
        lambda: Group("g", ("a",)),
        lambda: Task("t", GENERATE_UNTIL, ("exact_match",)),
        lambda: Task("t", GENERATE_UNTIL, EXACT * 2),
        lambda: task_from_config({"task": "t", "process_results": "utils.f"}),
        lambda: task_from_config({"task": "t", "num_fewshot": "5"}),
        lambda: score_task(Task("t", GENERATE_UNTIL, (MetricSpec("zz"),)), [], []),
        lambda: report_groups(Group("g", (leaf("a", 0.5),), (GroupMetric("acc", weights=freeze_options(a=-1)),))),
        lambda: report_groups(
            Group("g", (leaf("a", 0.5),), (GroupMetric("acc", weights=freeze_options(a=1, typo=2)),))
        ),
        lambda: report_groups(Group("g", (leaf("a", 0.5),), (GroupMetric("f1", missing="fail"),))),
        lambda: report_groups(Group("g", (leaf("a", 0.5),), (GroupMetric("acc", aggregation=lambda v: 1),))),
        lambda: build_report([leaf("a", 0.5).value], [Group("a", (Leaf("a", None),))]),
        lambda: build_report([leaf("a", 0.5).value], [Group("g", (Leaf("a", None),)), Group("g")]),
        lambda: merge_scored([texts(["4"], ["4"]), texts(["4"], ["4"], tables=LM_EVAL_0_4_13)]),
        lambda: report_task(texts(["4"], ["4"], tables=LM_EVAL_0_4_13)),
        lambda: sample_rows(texts(["4"], ["4"]), [Sample(0, gold="4")], texts_answers("4")),
        lambda: aggregate_metric(AGGREGATIONS["f1"], build_column(range(2), Labels(Array([[0, 2], [2, 2]])))),
    ],
)
def test_what_is_misspelt_or_mixed_is_refused(make):
    with pytest.raises(EvalError):
        make()


def test_zero_does_not_reward_failures():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", higher_is_better=False),))
    with pytest.raises(EvalError, match="reward failures"):
        report_task(texts(["4"], ["4"], task), inference=Inference(on_unscorable="zero"))


def test_groups_honour_the_inference():
    tree = Group("g", (leaf("a", 0.5), leaf("b", 0.7)), (GroupMetric("acc"),))
    wide, narrow = (report_groups(tree, inference=Inference(confidence=c))[0]["acc,none"].ci for c in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_a_callable_of_a_shared_leaf_has_its_covariance():
    a, b = leaf("a", 0.5, 0.1, 20), leaf("b", 0.7, 0.05, 30)
    spec = GroupMetric("acc", average="children", aggregation=lambda values, sizes: sum(values) / len(values))
    found = report_groups(Group("g", (a, Group("h", (a, b))), (spec,)))[-1]["acc,none"]
    assert found.stderr == pytest.approx(((2 / 3 * 0.1) ** 2 + (1 / 3 * 0.05) ** 2) ** 0.5, rel=1e-6)
    assert found.n == 50
    odd = GroupMetric("acc", aggregation=lambda values, sizes: float("nan"))
    assert report_groups(Group("g", (a, b), (odd,)))[0]["acc,none"].value is None


def test_weights_of_children_need_not_name_grandchildren():
    tree = Group(
        "g",
        (leaf("a", 0.0), Group("h", (leaf("b", 1.0),))),
        (GroupMetric("acc", average="children", weights=freeze_options(a=0.3, h=0.7)),),
    )
    assert report_groups(tree)[-1]["acc,none"].value == pytest.approx(0.7)


def test_a_vote_among_choices_is_on_the_choice():
    task = Task("q", MULTIPLE_CHOICE, (MetricSpec("acc", reducers=("maj@3", "consistency")),))
    lls = [(-1.0, -2.0, -2.0), (-2.0, -1.0, -1.0)]
    replies = [
        Answer(Instance("q", 0, i, LogLikelihood("", ""), 3), tuple((v, False) for v in row))
        for i, row in enumerate(lls)
    ]
    found = score_doc(task, Sample(0, gold=1, choices=("a", "b")), replies)
    assert [outcome.score for outcome in found.values()] == [1.0, pytest.approx(2 / 3)]


def test_a_vote_with_a_metric_of_several_parts():
    parts = per_document(lambda prediction, gold: {"same": prediction == gold} if prediction != "x" else 1 / 0)
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m", function=parts, reducers=("maj@2",)),))
    answers = [Answer(Instance("t", i, 0, Generate("?"), 2), (text, text)) for i, text in enumerate(["4", "x"])]
    report = report_task(score_task(task, [Sample(0, gold="4"), Sample(1, gold="4")], answers))
    assert [(key.metric, one.value, one.counts.failed) for key, one in report.estimates] == [("same", 1.0, 1)]


def test_a_metric_nobody_knows_has_no_bounds():
    task = Task(
        "t", GENERATE_UNTIL, (MetricSpec("length"),), process_results=lambda doc, results: {"length": len(results[0])}
    )
    estimate = report_task(texts(["a", "abc", "ab"], [None] * 3, task))["length,none"]
    assert estimate.ci[1] > 3
    assert "|ci:t|" in estimate.signature


def test_acc_all_without_a_score_can_still_fail_its_question():
    rows = Objects(((True, "q"), None))
    estimate = aggregate_metric(
        AGGREGATIONS["acc_all"], build_column([0, 1], rows, np.array([0, 2], np.uint8), {1: "lost"})
    )
    assert (estimate.value, estimate.counts.lowest, estimate.counts.highest) == (1.0, 0.0, 1.0)


def test_a_callable_may_fail_on_a_resample():
    def spread(scores):
        if len(set(scores)) < 2:
            raise ValueError("one class only")
        return max(scores) - min(scores)

    estimate = aggregate_metric(from_callable(spread), build_column(range(3), Floats(Array([0.0, 0.5, 1.0]))))
    assert estimate.value == 1.0
    assert estimate.stderr > 0


def test_tables_travel_to_workers():
    for tables in (EVALCORE, LM_EVAL_0_4_13):
        again = pickle.loads(pickle.dumps(tables))
        assert report_task(texts(["4"] * 3, ["4"] * 3, tables=again), tables=again).estimates
    assert len(repr(EVALCORE)) < 40


def test_a_hosts_own_output_type_may_use_any_record():
    chat = OutputType("chat")
    tables = Tables(
        scorers=SCORERS.set(chat, scorer_of(GenResult, lambda result: {"n": len(str(result.generations[0]))}))
    )
    assert score_doc(Task("t", chat), Sample(0), texts_answers("four"), tables=tables) == {MetricKey("n"): Ok(4.0)}


def test_reports_are_asked_by_text_and_say_what_they_have():
    report = report_task(texts(["4"] * 2, ["4"] * 2))
    assert report["exact_match,none"] is report.get(MetricKey("exact_match"))
    with pytest.raises(EvalError, match="did you mean 'exact_match,none'"):
        report["exact_mach,none"]


def test_runs_are_compared_document_by_document():
    one, two = (report_task(texts(run, ["4"] * 6))["exact_match,none"] for run in (["4"] * 6, ["4"] * 3 + ["5"] * 3))
    difference = compare_estimates(one, two)
    assert difference.difference == 0.5
    assert difference.ci[0] < 0.5 < difference.ci[1]


def test_the_sample_log_hashes_as_lm_eval_does():
    from lm_eval.utils import handle_non_serializable, hash_string

    doc = {"q": "é?", "a": ["4", "5"]}
    sample = Sample(0, gold=("4", "5"), doc=doc)
    task = Task("t", GENERATE_UNTIL, EXACT)
    scored = score_task(task, [sample], texts_answers("4"), keep_replies=True)
    (row,) = sample_rows(scored, [sample], texts_answers("4"))
    assert row["doc_hash"] == hash_string(
        json.dumps(doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
    )
    assert row["target_hash"] == hash_string(str(["4", "5"]))


def test_one_subtask_is_the_task_for_perplexities_too():
    for seed in range(50):
        values = np.random.default_rng(seed).normal(-3, 1, 7)
        estimate = aggregate_metric(AGGREGATIONS["perplexity"], build_column(range(7), Floats(Array(values))))
        task = TaskReport(name="a", estimates=((MetricKey("perplexity"), estimate),), n_docs=7)
        group = report_groups(Group("g", (Leaf("a", task),), (GroupMetric("perplexity"),)))[0]["perplexity,none"]
        assert (group.value, group.stderr, group.ci) == (estimate.value, estimate.stderr, estimate.ci)


def test_runs_are_matched_by_content_where_keys_differ():
    docs = [{"q": i} for i in range(4)]
    samples = [Sample(i, gold="4", doc=doc) for i, doc in enumerate(docs)]
    turned = [Sample(i, gold="4", doc=doc) for i, doc in enumerate(docs[::-1])]
    task = Task("t", GENERATE_UNTIL, EXACT)

    def run(given, texts):
        answers = [Answer(Instance("t", i, 0, Generate("?")), (text,)) for i, text in enumerate(texts)]
        return report_task(score_task(task, given, answers))["exact_match,none"]

    one, two = run(samples, "4455"), run(turned, "5544")
    tables = document_table(samples), document_table(turned)
    assert compare_estimates(one, two, documents=tables).p_value == 1.0
    with pytest.raises(EvalError, match="the same documents"):
        compare_estimates(one, run(samples[:3], "445"))


def test_a_clustered_median_has_an_error():
    values, clusters = np.arange(12.0), np.repeat(np.arange(4), 3)
    estimate = aggregate_metric(
        AGGREGATIONS["median"], build_column(range(12), Floats(Array(values))), clusters=clusters
    )
    plain = aggregate_metric(AGGREGATIONS["median"], build_column(range(12), Floats(Array(values))))
    assert estimate.stderr > plain.stderr
    assert estimate.signature.startswith("cluster-bootstrap")


def test_a_callable_without_a_derivative_has_a_value_and_no_error():
    def only_here(values, sizes):
        if values != [0.5, 0.7]:
            raise ValueError("not defined")
        return 0.6

    tree = Group("g", (leaf("a", 0.5), leaf("b", 0.7)), (GroupMetric("acc", aggregation=only_here),))
    estimate = report_groups(tree)[0]["acc,none"]
    assert (estimate.value, estimate.stderr, estimate.ci) == (0.6, None, None)
    assert "no derivative" in estimate.reason
