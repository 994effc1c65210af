"""The contract, line by line: decisions (A), elements owed by name (B), examples that must hold (C)."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from math import inf, nan, sqrt

import numpy as np
import pytest
from msgspec.structs import replace
from pyrsistent import pmap

from evalcore import (
    AGGREGATIONS,
    EVALCORE,
    FILTERS,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    SCORERS,
    Answer,
    EvalError,
    Failed,
    Failure,
    Generate,
    Instance,
    Likelihood,
    LogLikelihood,
    MetricKey,
    MetricSpec,
    NotEmitted,
    Ok,
    OutputType,
    Pipeline,
    Rolling,
    Sample,
    Step,
    Task,
    Unscorable,
    aggregate_metric,
    build_report,
    freeze_options,
    group_by_doc,
    merge_scored,
    reduce_repeats,
    report_task,
    score_doc,
    score_task,
)
from evalcore.core.groups.config import group_from_config, group_metric_from_config
from evalcore.extensions import (
    LLResult,
    MCResult,
    Metric,
    Repeats,
    RollingResult,
    per_document,
    results_of,
    scorer_of,
)
from evalcore.groups import Group, GroupMetric, Leaf, leaf_from_flat, report_groups
from evalcore.lm_eval import (
    LM_EVAL_0_4_13,
    lm_eval_results,
    lmms_eval_results,
    sample_rows,
    show_group_table,
    task_aggregation_list,
)
from evalcore.logs import tabulate_answers
from evalcore.stats import (
    Array,
    Column,
    Floats,
    Inference,
    Labels,
    Objects,
    Resampling,
    Stats,
    build_column,
    clusters_of,
    list_outcomes,
    merge_columns,
)
from evalcore.traces import trace_filters

EXACT = (MetricSpec("exact_match"),)


def text_answer(key, *replies, task="t", idx=0, repeats=None):
    return Answer(Instance(task, key, idx, Generate("?"), repeats or len(replies)), tuple(replies))


def choice_answers(key, lls, task="t"):
    return [
        Answer(Instance(task, key, idx, LogLikelihood("", "")), (ll if isinstance(ll, tuple) else (ll, False),))
        for idx, ll in enumerate(lls)
    ]


def texts(replies, golds, task=None, **more):
    """A generation task scored over documents 0, 1, ..."""
    task = task or Task("t", GENERATE_UNTIL, EXACT)
    samples = [Sample(key, gold=gold) for key, gold in enumerate(golds)]
    return score_task(task, samples, [text_answer(key, *_several(r)) for key, r in enumerate(replies)], **more)


def _several(reply):
    return reply if isinstance(reply, list) else [reply]


def scores(scored, key):
    return [outcome.score for _, outcome in list_outcomes(scored.column(key))]


def value(report, key):
    return report.get(MetricKey.parse(key)).value


def flat(name, acc, n=None, stderr=None, **more):
    row = {"acc,none": acc, "sample_len": n, "acc_stderr,none": stderr, **more}
    return leaf_from_flat(name, {key: one for key, one in row.items() if one is not None})


# === C: examples that must hold ===============================================================================


def test_c_group_of_three_by_size_and_unweighted():
    leaves = (flat("a", 0.85, 100), flat("b", 0.92, 150), flat("c", 0.88, 120))
    (by_size,) = report_groups(Group("g", leaves, (GroupMetric("acc"),)))
    (equal,) = report_groups(Group("g", leaves, (GroupMetric("acc", weight_by_size=False),)))
    found = by_size.get(MetricKey("acc"))
    assert found.value == pytest.approx((0.85 * 100 + 0.92 * 150 + 0.88 * 120) / 370, abs=1e-15)
    assert round(found.value, 6) == 0.888108
    assert (found.n, found.stderr) == (370, None)
    assert found.reason
    assert value(equal, "acc,none") == pytest.approx(0.8833333333333333, abs=1e-15)


@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
def test_c_two_without_sizes_weigh_the_same(tables):
    (group,) = report_groups(Group("g", (flat("a", 0.8), flat("b", 0.9)), (GroupMetric("acc"),)), tables=tables)
    assert value(group, "acc,none") == pytest.approx(0.85)


def test_c_repeats_max_then_mean():
    rows = [[0.8, 0.75, 0.78], [0.9, 0.85, 0.92], [0.7, 0.72, 0.69]]
    columns = [build_column(range(3), Floats(Array([row[i] for row in rows]))) for i in range(3)]
    reduced = reduce_repeats("max", columns)
    assert reduced.rows == Floats(Array([0.80, 0.92, 0.72]))
    task = Task(
        "t",
        GENERATE_UNTIL,
        (MetricSpec("score", reducers=("max",)),),
        process_results=lambda doc, results: {"score": float(results[0])},
    )
    report = report_task(texts([list(map(str, row)) for row in rows], [None] * 3, task))
    assert value(report, "score,none") == pytest.approx(0.8133333333333334, abs=1e-15)


def test_c_log_likelihoods_pick_the_third_choice():
    sample = Sample(0, gold=2, choices=("aa", "bb", "cc", "dd"))
    found = score_doc(Task("t", MULTIPLE_CHOICE), sample, choice_answers(0, [-2.1, -1.5, -0.8, -3.2]))
    assert found == {MetricKey("acc"): Ok(1.0), MetricKey("acc_norm"): Ok(1.0)}


def test_c_exact_match():
    assert scores(texts(["4", "The answer is 4"], ["4", "4"]), "exact_match,none") == [1.0, 0.0]


def test_c_regex():
    steps = (Step.of("regex", regex_pattern=r"The answer is (\-?[0-9\.\,]+)."), Step.of("take_first"))
    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("none", steps),))
    said = ["The answer is 42.", "The answer is 42", "The answer is 4"]
    scored = texts(said, ["42", "4", "[invalid]"], task, keep_replies=True)
    assert scored.provenance[0].replies == ("42", "4", "[invalid]")
    assert scores(scored, "exact_match,none") == [1.0, 1.0, 1.0]


def test_c_lowercase_and_strip_punctuation():
    steps = (Step.of("lowercase"), Step.of("strip_punctuation"))
    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("clean", steps),))
    scored = texts(["Hello, World!", "Hi there!"], ["hello world", "hi there"], task, keep_replies=True)
    assert scored.provenance[0].replies == ("hello world", "hi there")


# === A: decisions ================================================================================================

# --- records and columns -----------------------------------------------------------------------------------------


def test_a1_keys_keep_document_order_and_outside_ids_stay_outside():
    samples = [
        Sample(2, gold="c", id="doc-c"),
        Sample(0, gold="a", id="doc-a"),
        Sample(1, gold="b", id="doc-b"),
    ]
    answers = [text_answer(key, said) for key, said in [(1, "b"), (2, "x"), (0, "a")]]
    found = score_task(Task("t", GENERATE_UNTIL, EXACT), samples, answers).column("exact_match,none")
    assert found.keys.data.dtype == np.int64
    assert found.keys.data.tolist() == [0, 1, 2]
    assert found.rows == Floats(Array([1.0, 1.0, 0.0]))


def test_a2_rows_are_numbers_counts_labels_or_objects():
    pytest.importorskip("sacrebleu")
    choices = (
        MetricSpec("acc"),
        MetricSpec("f1"),
        MetricSpec("mcc"),
        MetricSpec("ece"),
        MetricSpec("acc_all"),
    )
    mc = score_task(Task("t", MULTIPLE_CHOICE, choices), [Sample(0, gold=1)], choice_answers(0, [-1.0, -2.0]))
    kinds = [type(mc.column(f"{spec.name},none").rows) for spec in choices]
    assert kinds == [Floats, Labels, Labels, Stats, Objects]
    corpus = tuple(map(MetricSpec, ("bleu", "chrf", "chrf++", "ter")))
    mt = texts(["a b c d"], ["a b c e"], Task("t", GENERATE_UNTIL, corpus))
    assert {type(one.column.rows) for one in mt.columns} == {Stats}
    assert all(one.column.rows.values.data.shape[0] == 1 for one in mt.columns)
    found = mc.column("acc,none")
    assert isinstance(found, Column)
    assert found.status.data.dtype == np.uint8
    assert found.reasons == ()


def test_a3_arrays_in_records_are_values():
    one, two = texts(["4"], ["4"]), texts(["4"], ["4"])
    assert one.columns == two.columns
    assert hash(one.columns[0].column) == hash(two.columns[0].column)
    assert one.columns[0].column != texts(["4"], ["5"]).columns[0].column
    again = pickle.loads(pickle.dumps(one.columns[0].column))
    assert again == one.columns[0].column
    for array in (again.keys, again.status, again.rows.values):
        assert not array.data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        again.rows.values.data[0] = 5.0


def test_a4_objects_keep_the_users_types_and_are_copied():
    kept = {"labels": {"a", "b"}, "pair": (1, [2])}
    task = Task(
        "t",
        GENERATE_UNTIL,
        (MetricSpec("m", aggregation=len),),
        process_results=lambda doc, results: {"m": kept},
    )
    scored = texts(["x", "y"], [None, None], task)
    kept["labels"].add("c")
    (first, second) = scores(scored, "m,none")
    assert first == {"labels": {"a", "b"}, "pair": (1, [2])}
    assert isinstance(first["labels"], set)
    first["labels"].clear()
    assert scores(scored, "m,none")[0] == second
    assert value(report_task(scored), "m,none") == 2


def test_a4_an_aggregation_cannot_change_the_rows():
    def greedy(items):
        for item in items:
            item.clear()
        return 0.0

    task = Task(
        "t",
        GENERATE_UNTIL,
        (MetricSpec("m", aggregation=greedy),),
        process_results=lambda d, r: {"m": [r[0]]},
    )
    scored = texts(["x", "y"], [None, None], task)
    report_task(scored)
    assert scores(scored, "m,none") == [["x"], ["y"]]


def test_a4_not_emitted_is_counted_apart():
    def sometimes(doc, results):
        return {"m": 1.0} if results[0] == "yes" else {} if results[0] == "omit" else None

    task = Task("t", GENERATE_UNTIL, (MetricSpec("m"),), process_results=sometimes)
    scored = texts(["yes", "omit", "none"], [None] * 3, task)
    assert [outcome for _, outcome in list_outcomes(scored.column("m,none"))] == [
        Ok(1.0),
        NotEmitted(),
        NotEmitted(),
    ]
    found = report_task(scored).get(MetricKey("m"))
    assert (
        found.value,
        found.counts.scored,
        found.counts.not_emitted,
        found.counts.unscorable,
        found.counts.failed,
    ) == (
        1.0,
        1,
        2,
        0,
        0,
    )


def test_a5_documents_are_decoded_afresh():
    def spoil(doc, results):
        seen = doc.pop("x")
        results[0] = "spoilt"
        return {"m": seen}

    pipelines = (Pipeline("one"), Pipeline("two"))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m"),), pipelines, spoil)
    sample = Sample(0, doc=b'{"x": 7}')
    scored = score_task(task, [sample], [text_answer(0, "r")], keep_replies=True)
    assert scores(scored, "m,one") == scores(scored, "m,two") == [7.0]
    assert sample.doc == b'{"x": 7}'
    assert [one.replies for one in scored.provenance] == [("r",), ("r",)]


def test_a6_equal_rows_collapse_and_different_ones_are_an_error():
    one = build_column([0, 1], Floats(Array([1.0, 0.0])))
    assert merge_columns(one, build_column([1, 2], Floats(Array([0.0, 1.0])))).keys.data.tolist() == [0, 1, 2]
    with pytest.raises(EvalError, match=r"two different ones: 0\.0 and 1\.0 - at doc 1"):
        merge_columns(one, build_column([1], Floats(Array([1.0]))))


def test_a6_merging_scores_is_associative_and_commutative():
    parts = [
        score_task(Task("t", GENERATE_UNTIL, EXACT), [Sample(key, gold="4")], [text_answer(key, said)])
        for key, said in [(0, "4"), (1, "5"), (2, "4"), (1, "5")]
    ]
    whole = merge_scored(parts)
    assert whole == merge_scored(parts[::-1])
    assert whole == merge_scored([merge_scored(parts[:2]), merge_scored(parts[2:])])
    assert scores(whole, "exact_match,none") == [1.0, 0.0, 1.0]
    with pytest.raises(EvalError, match="scores of one task"):
        merge_scored([parts[0], replace(parts[1], task=Task("other", GENERATE_UNTIL))])


def test_a7_the_same_bits_for_any_split_and_order():
    rng = np.random.default_rng(0)
    n = 97
    metrics = tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score", "choice_prob", "likelihood", "mcc", "ece")))
    task = Task("t", MULTIPLE_CHOICE, metrics)
    counts = rng.integers(2, 6, n)
    samples = [Sample(i, gold=0, choices=tuple("abcde"[:k])) for i, k in enumerate(counts.tolist())]
    answers = [a for i, k in enumerate(counts.tolist()) for a in choice_answers(i, rng.normal(-5, 2, k).tolist())]
    whole = report_task(score_task(task, samples, answers))
    assert whole.get(MetricKey("brier_score")).n == n
    for chunk in (1, 7, 1000):
        assert report_task(score_task(task, samples[::-1], answers[::-1], chunk=chunk)) == whole
    thirds = [
        score_task(task, samples[a::3], [one for one in answers if one.doc_id % 3 == a], chunk=5) for a in (2, 0, 1)
    ]
    assert report_task(merge_scored(thirds)) == whole


# --- grouping, scoring, filters ------------------------------------------------------------------------------------


def test_a9_instances_and_answers_group_by_document():
    made = [Instance("t", doc, idx, Generate("?")) for doc, idx in [(5, 1), (3, 0), (5, 0)]]
    for items in (made, [Answer(one, ("r",)) for one in made]):
        grouped = group_by_doc(items)
        assert isinstance(grouped, Mapping)
        assert (list(grouped), len(grouped)) == ([3, 5], 2)
        assert [one.idx for one in grouped[5]] == [0, 1]
        assert 4 not in grouped
        with pytest.raises(TypeError):
            grouped[5] = ()
    assert len(group_by_doc([])) == 0


def test_a10_a_scorer_is_a_callable_in_a_table_and_narrow_ones_enter_by_an_adapter():
    margin = scorer_of(MCResult, lambda result: {"margin": sorted(result.lls)[-1] - sorted(result.lls)[-2]})
    tables = replace(EVALCORE, scorers=SCORERS.set(MULTIPLE_CHOICE, margin))
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("margin"),))
    scored = score_task(task, [Sample(0, gold=0)], choice_answers(0, [-1.0, -3.5]), tables=tables)
    assert scores(scored, "margin,none") == [2.5]


def test_a10_a_hosts_own_output_type():
    host = OutputType("ranking")
    task = Task("t", host, (MetricSpec("acc"),))
    with pytest.raises(EvalError, match="unknown output type 'ranking'"):
        score_task(task, [Sample(0, gold=0)], choice_answers(0, [-1.0, -2.0]))
    tables = replace(EVALCORE, scorers=SCORERS.set(host, SCORERS[MULTIPLE_CHOICE]))
    assert scores(
        score_task(task, [Sample(0, gold=0)], choice_answers(0, [-1.0, -2.0]), tables=tables), "acc,none"
    ) == [1.0]


def test_a10_loglikelihood_with_choices_is_multiple_choice_and_with_one_is_plain():
    several = score_doc(
        Task("t", LOGLIKELIHOOD, (MetricSpec("acc"),)), Sample(0, gold=1), choice_answers(0, [-2.0, -1.0])
    )
    assert several == {MetricKey("acc"): Ok(1.0)}
    single = score_doc(Task("t", LOGLIKELIHOOD), Sample(0, gold="x"), choice_answers(0, [(-1.5, True)]))
    assert single == {MetricKey("perplexity"): Ok(-1.5), MetricKey("acc"): Ok(1.0)}


def test_a11_process_results_takes_precedence_and_runs_once_per_filter_and_document():
    seen = []

    def process(doc, results):
        seen.append((doc["i"], results[0]))
        return {"acc": 0.25, "extra": 2.0}

    lower = Pipeline("lower", (Step.of("lowercase"), Step.of("take_first")))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("acc"),), (Pipeline("none"), lower), process)
    samples = [Sample(i, gold="A", doc=json.dumps({"i": i}).encode()) for i in range(2)]
    scored = score_task(task, samples, [text_answer(i, "A") for i in range(2)])
    assert sorted(seen) == [(0, "A"), (0, "a"), (1, "A"), (1, "a")]
    assert {str(one.key) for one in scored.columns} == {"acc,none", "extra,none", "acc,lower", "extra,lower"}
    report = report_task(scored)
    assert value(report, "acc,none") == 0.25
    assert value(report, "extra,lower") == 2.0
    assert any("'extra'" in warning and "mean" in warning for warning in report.warnings)
    assert not any("'acc'" in warning for warning in report.warnings)


def test_a11_a_metric_function_that_returns_a_dict_gives_a_metric_per_key():
    both = per_document(lambda prediction, gold: {"same": prediction == gold, "longer": len(prediction) > len(gold)})
    scored = texts(["4", "44"], ["4", "4"], Task("t", GENERATE_UNTIL, (MetricSpec("both", function=both),)))
    assert {str(key) for key, _ in report_task(scored).estimates} == {"same,none", "longer,none"}
    assert scores(scored, "same,none") == [1.0, 0.0]
    assert scores(scored, "longer,none") == [0.0, 1.0]


def test_a12_a_custom_filter_sees_all_documents_however_they_are_chunked():
    def commonest(responses, docs):
        said = [one for unit in responses for one in unit]
        assert len(docs) == len(responses)
        return [[max(said, key=said.count)] for _ in responses]

    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("none", (Step.of("custom", filter_fn=commonest),)),))
    for chunk in (1, 2, 100):
        assert scores(texts(["a", "b", "b"], ["b"] * 3, task, chunk=chunk), "exact_match,none") == [1.0] * 3
    assert FILTERS["custom"].scope == "task"
    assert {name for name, one in FILTERS.items() if one.scope != "document"} == {"custom"}


def test_a12_a_custom_filter_of_document_scope_may_be_split():
    sizes = []

    def upper(responses, docs):
        sizes.append(len(responses))
        return [[text.upper() for text in unit] for unit in responses]

    step = Step.of("custom", filter_fn=upper, scope="document")
    scored = texts(
        ["a", "b", "c"],
        ["A", "B", "x"],
        Task("t", GENERATE_UNTIL, EXACT, (Pipeline("none", (step,)),)),
        chunk=1,
    )
    assert scores(scored, "exact_match,none") == [1.0, 1.0, 0.0]
    assert sizes == [1, 1, 1]


def test_a12_no_filters_is_one_pipeline_and_an_empty_chain_passes_through():
    plain = texts([["4", "5"]], ["4"], keep_replies=True)
    assert [str(one.key) for one in plain.columns] == ["exact_match,none"]
    assert plain.provenance[0].replies == ("4",)
    assert report_task(plain).warnings == (
        "t: only the first reply is scored; name reducers (mean, pass@1, ...) to use them all",
    )
    empty = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("raw"),))
    assert texts([" 4\n"], ["4"], empty, keep_replies=True).provenance[0].replies == (" 4\n",)


def test_a12_provenance_is_the_final_text_and_the_rule_that_fired():
    steps = (Step.of("multi_choice_regex", regex_pattern=r"(\([A-Z]\))"), Step.of("take_first"))
    pipeline = Pipeline("none", steps)
    sample = Sample(0, gold="(B)", choices=("red", "blue"))
    for said, final, rule in [
        ("(A)", "(A)", 0),
        ("it is blue", "(B)", 1),
        ("Answer: B", "(B)", 2),
        ("?", "[invalid]", -1),
    ]:
        task = Task("t", GENERATE_UNTIL, EXACT, (pipeline,))
        scored = score_task(task, [sample], [text_answer(0, said)], keep_replies=True)
        assert (scored.provenance[0].replies, scored.provenance[0].rules.data.tolist()) == ((final,), [rule])
        trace = trace_filters(pipeline, [said], sample)
        assert [one.replies for one in trace] == [(said,), (final,), (final,)]
        assert trace[-1].rules == (rule,)


def test_a13_several_generations_of_a_document_come_in_idx_order():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("collect", "first", "last")),))
    answers = [text_answer(0, "b", idx=1), text_answer(0, "c", idx=2), text_answer(0, "a", idx=0)]
    scored = score_task(task, [Sample(0, gold="a")], answers, keep_replies=True)
    assert scored.provenance[0].replies == ("a", "b", "c")
    assert scores(scored, "exact_match@collect,none") == [(1.0, 0.0, 0.0)]
    assert scores(scored, "exact_match@first,none") == [1.0]
    assert scores(scored, "exact_match@last,none") == [0.0]


def test_a13_mutual_information_needs_each_choice_twice():
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("acc"), MetricSpec("acc_mutual_info")))
    sample = Sample(0, gold=1, choices=("a", "b"))
    paired = score_doc(task, sample, choice_answers(0, [-1.0, -2.0, -1.0, -9.0]))
    assert paired == {MetricKey("acc"): Ok(0.0), MetricKey("acc_mutual_info"): Ok(1.0)}
    alone = score_doc(task, sample, choice_answers(0, [-1.0, -2.0]))
    assert alone[MetricKey("acc")] == Ok(0.0)
    assert isinstance(alone[MetricKey("acc_mutual_info")], Unscorable)


@pytest.mark.parametrize("lls", [[nan, -1.0], [inf, -1.0], [-inf, -inf]])
def test_a13_impossible_likelihoods_are_unscorable(lls):
    (found,) = score_doc(
        Task("t", MULTIPLE_CHOICE, (MetricSpec("acc"),)), Sample(7, gold=1), choice_answers(7, lls)
    ).values()
    assert isinstance(found, Unscorable)
    assert "t doc 7" in found.reason


def test_a13_minus_infinity_is_a_likelihood():
    assert score_doc(
        Task("t", MULTIPLE_CHOICE, (MetricSpec("acc"),)), Sample(0, gold=1), choice_answers(0, [-inf, -1.0])
    ) == {MetricKey("acc"): Ok(1.0)}


# --- repeats ---------------------------------------------------------------------------------------------------------


def test_a14_one_reply_needs_no_reducer_and_several_without_one_are_an_error():
    raw = (Pipeline("none"),)
    assert scores(texts(["4"], ["4"], Task("t", GENERATE_UNTIL, EXACT, raw)), "exact_match,none") == [1.0]
    with pytest.raises(EvalError, match=r"got 2 replies for exact_match - at t; add a filter such as take_first"):
        texts([["5", "4"]], ["4"], Task("t", GENERATE_UNTIL, EXACT, raw))


def test_a14_lm_evals_take_first_belongs_to_its_policy():
    task = Task("t", GENERATE_UNTIL, EXACT)
    assert scores(texts([["5", "4"]], ["4"], task, tables=LM_EVAL_0_4_13), "exact_match,none") == [0.0]


def test_a14_one_reducer_keeps_the_key_and_several_are_named():
    one = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean",)),))
    assert [str(c.key) for c in texts([["5", "4"]], ["4"], one).columns] == ["exact_match,none"]
    two = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean", "pass@2")),))
    scored = texts([["5", "4"]], ["4"], two)
    assert [str(c.key) for c in scored.columns] == ["exact_match@mean,none", "exact_match@pass@2,none"]
    assert (scores(scored, "exact_match@mean,none"), scores(scored, "exact_match@pass@2,none")) == (
        [0.5],
        [1.0],
    )


def test_a14_a_reducer_gets_scores_answers_and_fallbacks():
    seen = []

    def spy(repeats: Repeats):
        seen.append(repeats)
        return repeats.scores[:, 0]

    steps = (Step.of("regex", regex_pattern="([0-9])"),)
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("spy",)),), (Pipeline("none", steps),))
    tables = replace(EVALCORE, reducers=EVALCORE.reducers.set("spy", spy))
    texts([["4", "x"]], ["4"], task, tables=tables)
    assert seen[0].scores.tolist() == [[1.0, 0.0]]
    assert list(map(list, seen[0].answers)) == [["4", "[invalid]"]]
    assert seen[0].fell_back.tolist() == [[False, True]]


def test_a14_the_majority_votes_on_answers_and_a_fallback_cannot_win():
    steps = (Step.of("regex", regex_pattern="([0-9])"),)
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("maj@5",)),), (Pipeline("none", steps),))
    assert scores(texts([["x", "4", "x", "4", "x"]], ["4"], task), "exact_match,none") == [1.0]


# --- statistics ------------------------------------------------------------------------------------------------------


def test_a16_clusters_of_one_are_the_plain_error():
    scored = texts(["1", "1", "0", "1", "0"], ["1"] * 5)
    plain = report_task(scored).get(MetricKey("exact_match"))
    alone = [Sample(key, cluster=f"c{key}") for key in range(5)]
    found = report_task(scored, clusters=clusters_of("t", alone)).get(MetricKey("exact_match"))
    assert (found.value, found.stderr, found.ci) == (plain.value, plain.stderr, plain.ci)


def test_a17_bootstrap_iters_zero_gives_no_error_and_says_so():
    scored = texts(["1", "0"], ["1", "1"])
    found = report_task(scored, inference=Inference(resampling=Resampling(draws=0))).get(MetricKey("exact_match"))
    assert (found.value, found.stderr) == (0.5, None)
    assert "bootstrap_iters" in found.reason
    other = report_task(scored, inference=Inference(resampling=Resampling(draws=7))).get(MetricKey("exact_match"))
    assert other.stderr == report_task(scored).get(MetricKey("exact_match")).stderr


@pytest.mark.parametrize("draws", [1.5, -1, "many"])
def test_a17_anything_but_a_whole_number_is_an_error_that_names_the_setting(draws):
    with pytest.raises(EvalError, match=r"expected bootstrap_iters to be an integer of at least 0, got"):
        report_task(texts(["1", "0"], ["1", "1"]), inference=Inference(resampling=Resampling(draws=draws)))


def test_a17_the_number_of_draws_matters_where_something_is_resampled():
    def spread(items):
        return max(items) - min(items)

    task = Task(
        "t",
        GENERATE_UNTIL,
        (MetricSpec("m", aggregation=spread),),
        process_results=lambda d, r: {"m": float(r[0])},
    )
    scored = texts([str(i) for i in range(9)], [None] * 9, task)
    few = report_task(scored, inference=Inference(resampling=Resampling(draws=20))).get(MetricKey("m"))
    many = report_task(scored).get(MetricKey("m"))
    assert (few.value, many.value) == (8.0, 8.0)
    assert few.stderr != many.stderr
    assert "draws=20" in few.signature


# --- groups ------------------------------------------------------------------------------------------------------------


def shared_tree(**metric):
    a, b = flat("a", 0.5, 100, 0.05), flat("b", 0.9, 100, 0.03)
    return Group("g", (a, Group("h", (a, b))), (GroupMetric("acc", **metric),))


def test_a19_under_leaves_a_task_reached_twice_counts_once():
    (_, group) = report_groups(shared_tree())
    found = group.get(MetricKey("acc"))
    assert (found.value, found.n) == (pytest.approx(0.7, abs=1e-15), 200)
    assert found.stderr == pytest.approx(sqrt(0.05**2 + 0.03**2) / 2, rel=1e-14)


def test_a19_under_children_both_paths_count_with_their_covariance():
    (_, group) = report_groups(shared_tree(average="children", weight_by_size=False))
    found = group.get(MetricKey("acc"))
    assert found.value == pytest.approx(0.75 * 0.5 + 0.25 * 0.9, abs=1e-15)
    assert found.stderr == pytest.approx(sqrt((0.75 * 0.05) ** 2 + (0.25 * 0.03) ** 2), rel=1e-14)


def test_a19_under_lm_evals_tables_a_task_counts_for_every_path():
    (_, group) = report_groups(shared_tree(), tables=LM_EVAL_0_4_13)
    assert group.get(MetricKey("acc")).value == pytest.approx((0.5 + 0.5 + 0.9) / 3, abs=1e-15)


def test_a19_defaults_and_a_bare_filter_name():
    default = group_metric_from_config({"metric": "acc"})
    assert default == GroupMetric("acc", None, "mean", True, "leaves")
    assert group_metric_from_config({"metric": "acc", "filter_list": "strict"}).filters == ("strict",)


def test_a19_filters_are_discovered_among_the_groups_own_tasks():
    a = leaf_from_flat("a", {"acc,none": 0.5, "acc,strict": 0.4, "sample_len": 10})
    b = leaf_from_flat("b", {"acc,loose": 0.9, "sample_len": 10})
    _, top = report_groups(Group("g", (Group("h", (a,), (GroupMetric("acc"),)),), (GroupMetric("acc"),)))
    assert [str(key) for key, _ in top.estimates] == ["acc,none", "acc,strict"]
    report = build_report([a.value, b.value], [Group("g", (Leaf("a", None),), (GroupMetric("acc"),))])
    assert [str(key) for key, _ in report.group("g").estimates] == ["acc,none", "acc,strict"]


def test_a19_a_missing_child_is_flagged_or_refused():
    done = [flat("a", 0.5, 10, 0.1).value]
    children = (Leaf("a", None), Leaf("absent", None))
    group = build_report(done, [Group("g", children, (GroupMetric("acc"),))]).group("g")
    assert group.get(MetricKey("acc")).group.missing == ("absent",)
    assert group.warnings == ("group 'g': acc,none is missing in 1/2 tasks: absent",)
    with pytest.raises(EvalError, match="acc,none is missing in 1/2 tasks: absent"):
        build_report(done, [Group("g", children, (GroupMetric("acc", missing="fail"),))])


def test_a19_flat_rows_with_sample_len_samples_or_neither():
    rows = {
        "a": {"acc,none": 0.2, "acc_stderr,none": 0.1, "sample_len": 30, "alias": "A"},
        "b": {"acc,none": 0.8, "acc_stderr,none": "N/A", "samples": 10},
        "c": {"acc,none": 0.5},
    }
    leaves = [leaf_from_flat(name, row) for name, row in rows.items()]
    assert [leaf.value.get(MetricKey("acc")).n for leaf in leaves] == [30, 10, None]
    assert [leaf.value.get(MetricKey("acc")).stderr for leaf in leaves] == [0.1, None, None]
    (group,) = report_groups(Group("g", tuple(leaves), (GroupMetric("acc"),)))
    assert value(group, "acc,none") == pytest.approx((0.2 * 30 + 0.8 * 10 + 0.5) / 41, abs=1e-15)
    assert group["acc,none"].n is None, "how many documents it rests on is not known"


# === B: elements owed by name ====================================================================================


@pytest.fixture
def report():
    """Two scored tasks in a group with numbers, inside a group without."""
    samples = [Sample(key, gold="1") for key in range(4)]
    tasks = []
    for name, replies, shots in (("a", "1100", 2), ("b", "1110", 2)):
        task = Task(
            name, GENERATE_UNTIL, EXACT, version=1, num_fewshot=shots, config=freeze_options(task=name, repeats=1)
        )
        answers = [text_answer(key, said, task=name) for key, said in enumerate(replies)]
        tasks.append(report_task(score_task(task, samples, answers), n_original=9))
    inner = Group(
        "inner",
        (Leaf("a", None), Leaf("b", None)),
        (GroupMetric("exact_match"),),
        alias="Inner",
        metadata=freeze_options(version=3),
    )
    return build_report(tasks, [Group("outer", (inner,))])


def test_b_a_groups_row(report):
    row = lm_eval_results(report)["results"]["inner"]
    assert set(row) == {
        "alias",
        "name",
        "sample_len",
        "sample_count",
        "exact_match,none",
        "exact_match_stderr,none",
    }
    assert (row["alias"], row["name"], row["sample_len"]) == ("Inner", "inner", 8)
    assert row["sample_count"] == {"exact_match,none": 8}
    assert row["exact_match,none"] == 0.625
    assert row["exact_match_stderr,none"] > 0


def test_b_a_group_without_aggregation_has_alias_and_name_only(report):
    assert lm_eval_results(report)["results"]["outer"] == {"alias": "outer", "name": "outer"}


def test_b_sample_len_counts_all_leaves_and_sample_count_those_with_the_metric():
    a = leaf_from_flat("a", {"acc,none": 0.5, "sample_len": 30})
    b = leaf_from_flat("b", {"f1,none": 0.5, "sample_len": 10})
    tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("acc"), GroupMetric("f1")))
    row = lm_eval_results(build_report([a.value, b.value], [tree]))["results"]["g"]
    assert (row["sample_len"], row["sample_count"]) == (40, {"acc,none": 30, "f1,none": 10})
    assert row["acc_stderr,none"] == "N/A"


def test_b_message_missing_metric_names_the_first_five():
    done = [flat("t0", 0.5, 10).value]
    tree = Group("g", tuple(Leaf(f"t{i}", None) for i in range(9)), (GroupMetric("acc"),))
    (warning,) = build_report(done, [tree]).group("g").warnings
    assert warning == "group 'g': acc,none is missing in 8/9 tasks: t1, t2, t3, t4, t5 and 3 more"


def test_b_message_no_values_found():
    group = build_report([flat("a", 0.5).value], [Group("g", (Leaf("a", None),), (GroupMetric("f1"),))]).group("g")
    assert group.warnings == ("group 'g': no values found for f1,none in any task",)
    assert group.estimates == ()


def test_b_message_unknown_aggregation():
    with pytest.raises(EvalError, match=r"unknown group aggregation 'men'; did you mean 'mean'\?"):
        report_groups(Group("g", (flat("a", 0.5),), (GroupMetric("acc", aggregation="men"),)))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", aggregation="meen"),))
    with pytest.raises(EvalError, match=r"unknown aggregation 'meen'; did you mean 'mean'\?.* at t exact_match"):
        report_task(texts(["1"], ["1"], task))


def test_b_message_cannot_score_empty_instances():
    found = aggregate_metric(AGGREGATIONS["mean"], build_column([], Floats(Array(np.zeros(0)))))
    assert (found.value, found.stderr, found.n) == (None, None, 0)
    assert "cannot score empty instances" in found.reason


def test_b_message_no_aggregation_defined():
    metric = MetricSpec("mine", function=per_document(lambda prediction, gold: 1.0))
    report = report_task(texts(["1"], ["1"], Task("t", GENERATE_UNTIL, (metric,))))
    assert report.warnings == ("t: no aggregation defined for 'mine', using mean",)
    assert value(report, "mine,none") == 1.0


def recorded_results(task, samples, answers):
    """What ``results_of`` makes of a task's batch."""
    made = []

    def spy(task, specs, batch):
        made.extend(results_of(task.output_type, batch))
        return ()

    tables = replace(EVALCORE, scorers=pmap({task.output_type: spy}))
    score_task(task, samples, answers, tables=tables)
    return made


def test_b_multiple_choice_results():
    answers = choice_answers(0, [Likelihood(-1.0, True, 3), Likelihood(-2.0, False, 4), (-0.5, False), (-0.25, False)])
    (found,) = recorded_results(Task("t", MULTIPLE_CHOICE), [Sample(0, gold=1, choices=("a", "bé"))], answers)
    sample, asked = Sample(0, gold=1, choices=("a", "bé")), tuple(answer.instance for answer in answers)
    known = {"sample": sample, "instances": asked}
    assert found == MCResult((-1.0, -2.0), (True, False), (1,), ("a", "bé"), (3, 4), (-0.5, -0.25), **known)
    assert found.mutual_information == (-0.5, -1.75)
    assert (found.chars, found.bytes) == ((1, 2), (1, 3))


def test_b_generation_results():
    steps = (Step.of("regex", regex_pattern="([0-9])"), Step.of("take_first"))
    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("digits", steps),))
    samples = [Sample(0, gold=("4", "four")), Sample(1, gold=None)]
    one, two = recorded_results(task, samples, [text_answer(0, "a 4"), text_answer(1, "?")])
    assert (one.generations, one.golds, one.filter, one.fell_back) == (("4",), ("4", "four"), "digits", (False,))
    assert (two.golds, two.fell_back, two.repeats) == ((), (True,), 1)


def test_b_likelihood_and_rolling_results():
    (plain,) = recorded_results(
        Task("t", LOGLIKELIHOOD), [Sample(0, gold="x")], choice_answers(0, [Likelihood(-1.0, True, 2)])
    )
    assert (plain.value, plain.greedy, plain.tokens, plain.target) == (-1.0, True, 2, "x")
    assert isinstance(plain, LLResult)
    (several,) = recorded_results(Task("t", LOGLIKELIHOOD), [Sample(0, gold=0)], choice_answers(0, [-1.0, -2.0]))
    assert isinstance(several, MCResult)
    rolling = [Answer(Instance("t", 0, 0, Rolling("text")), (-3.0,))]
    assert recorded_results(Task("t", LOGLIKELIHOOD_ROLLING), [Sample(0, gold="text")], rolling) == [
        RollingResult(-3.0, "text", sample=Sample(0, gold="text"), instances=(rolling[0].instance,))
    ]


def test_b_a_document_without_a_result_gives_the_reason():
    (found,) = recorded_results(Task("t", MULTIPLE_CHOICE), [Sample(0, gold=9)], choice_answers(0, [-1.0, -2.0]))
    assert found == "expected a choice index below 2, got 9"


def test_b_what_a_metric_receives_is_explicit():
    seen = []

    def spy(batch, given):
        seen.append((list(batch.predictions), list(batch.golds), dict(given)))
        return Floats(Array([1.0] * len(batch.predictions)))

    spec = MetricSpec("spy", function=Metric(spy), options=freeze_options(k=2))
    texts(["a", "b"], ["x", ("y", "z")], Task("t", GENERATE_UNTIL, (spec,)))
    assert seen == [(["a", "b"], [("x",), ("y", "z")], {"k": 2})]


def test_b_scores_by_metric_and_filter():
    lower = Pipeline("lower", (Step.of("lowercase"), Step.of("take_first")))
    scored = texts(["A"], ["a"], Task("t", GENERATE_UNTIL, EXACT, (Pipeline("none"), lower)))
    assert (scores(scored, MetricKey("exact_match", "none")), scores(scored, "exact_match,lower")) == (
        [0.0],
        [1.0],
    )
    assert scored.task.name == "t"
    with pytest.raises(
        EvalError, match=r"unknown metric 'exact_match,lowr'; did you mean 'exact_match,lower'\?.* at t"
    ):
        scored.column("exact_match,lowr")


def test_b_repeats_travel_with_the_instance():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean",)),))
    short = score_task(task, [Sample(0, gold="4")], [text_answer(0, "4", repeats=3)])
    ((_, outcome),) = list_outcomes(short.column("exact_match,none"))
    assert outcome == Unscorable("expected 3 replies, got 1 - at t doc 0")
    ragged = score_task(replace(task, ragged=True), [Sample(0, gold="4")], [text_answer(0, "4", repeats=3)])
    assert scores(ragged, "exact_match,none") == [1.0]


def test_b_a_failed_reply_is_no_score():
    ((_, outcome),) = list_outcomes(texts([Failure("timeout")], ["4"]).column("exact_match,none"))
    assert outcome == Failed("timeout - at t doc 0")


# --- consolidation ---------------------------------------------------------------------------------------------------


def test_b_lm_evals_result_keys(report):
    made = lm_eval_results(report, {"a": [{"doc_id": 0}]})
    assert set(made) == {
        "results",
        "groups",
        "group_subtasks",
        "configs",
        "versions",
        "n-shot",
        "higher_is_better",
        "n-samples",
        "samples",
        "evalcore",
    }
    assert made["results"]["a"].keys() == {
        "name",
        "alias",
        "sample_len",
        "exact_match,none",
        "exact_match_stderr,none",
    }
    assert list(made["groups"]) == ["inner"]
    assert made["group_subtasks"] == {"outer": ["inner"], "inner": ["a", "b"]}
    assert made["configs"]["a"] == {"task": "a", "repeats": 1}
    assert made["versions"] == {"a": 1, "b": 1, "inner": "3", "outer": "N/A"}
    assert made["n-shot"] == {"a": 2, "b": 2, "inner": 2, "outer": 2}
    assert made["higher_is_better"]["inner"] == {"exact_match": True}
    assert made["n-samples"]["a"] == {"original": 9, "effective": 4}
    json.dumps(made)


def test_b_evalcores_own_key_carries_null_and_the_reason():
    report = build_report([report_task(texts(["1"], ["1"]))])
    made = lm_eval_results(report)
    assert made["results"]["t"]["exact_match_stderr,none"] == "N/A"
    own = made["evalcore"]["estimates"]["t"]["exact_match,none"]
    assert own["stderr"] is None
    assert own["reason"]


def test_b_lmms_evals_six_mappings(report):
    made = lmms_eval_results(report, {"a": [{"doc_id": 0}]})
    assert len(made) == 6
    results, samples, configs, versions, shots, higher = made
    assert set(results) == {"a", "b", "inner", "outer"}
    assert results["a"]["samples"] == 4
    assert set(results["a"]) == {
        "alias",
        "samples",
        "evalcore_stderr",
        "exact_match,none",
        "exact_match_stderr,none",
        "exact_match_stderr_clt,none",
        "exact_match_stderr_clustered,none",
    }
    assert results["outer"] == {"alias": "outer", " ": " "}  # as lmms-eval marks groups without numbers
    assert samples == {"a": [{"doc_id": 0}]}
    assert configs["b"] == {"task": "b", "repeats": 1}
    assert versions["inner"] == "3"
    assert shots["a"] == 2
    assert higher["a"] == {"exact_match": True}


@pytest.mark.parametrize("rank", [1, 7])
def test_b_other_ranks_get_empty_mappings(report, rank):
    assert lmms_eval_results(report, {"a": []}, rank=rank) == ({}, {}, {}, {}, {}, {})


def test_b_show_group_table_and_task_aggregation_list(report):
    assert show_group_table(report)
    assert task_aggregation_list(report) == {"outer": ["a", "b"], "inner": ["a", "b"]}
    alone = build_report(report.tasks, [Group("outer", (Leaf("a", None),))])
    assert not show_group_table(alone)
    assert task_aggregation_list(alone) == {"outer": ["a"]}


def test_b_directions_that_disagree_are_null_in_that_group_only():
    up = report_task(
        texts(["1"], ["1"], Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", higher_is_better=True),)))
    )
    down = replace(
        report_task(
            texts(["1"], ["1"], Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", higher_is_better=False),)))
        ),
        name="u",
    )
    tree = Group("g", (Leaf("t", None), Leaf("u", None)), (GroupMetric("exact_match"),))
    higher = lm_eval_results(build_report([up, down], [tree]))["higher_is_better"]
    assert higher == {"t": {"exact_match": True}, "u": {"exact_match": False}, "g": {"exact_match": None}}


def test_b_sample_rows_have_lm_evals_fields():
    answers = [text_answer(0, " 4")]
    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("none", (Step.of("remove_whitespace"),)),))
    samples = [Sample(0, gold="4", doc=b'{"q": "2+2"}')]
    scored = score_task(task, samples, answers, keep_replies=True)
    (row,) = sample_rows(scored, samples, tabulate_answers(answers))
    assert row["doc"] == {"q": "2+2"}
    assert (row["target"], row["resps"], row["filtered_resps"]) == ("4", [[" 4"]], ["4"])
    assert (row["filter"], row["metrics"], row["exact_match"]) == ("none", ["exact_match"], 1.0)
    assert {"doc_id", "arguments", "doc_hash", "prompt_hash", "target_hash"} <= set(row)


def test_b_naive_and_clustered_errors():
    samples = [Sample(key, gold="1", cluster="p" if key < 3 else "q") for key in range(6)]
    scored = score_task(
        Task("t", GENERATE_UNTIL, EXACT), samples, [text_answer(k, said) for k, said in enumerate("111000")]
    )
    naive = report_task(scored, clusters={key: key for key in range(6)}).get(MetricKey("exact_match"))
    assert naive.stderr == pytest.approx(sqrt(0.3 / 6), rel=1e-15)
    clustered = report_task(scored).get(MetricKey("exact_match"))
    assert report_task(scored, clusters=clusters_of("t", samples)).get(MetricKey("exact_match")) == clustered
    # Two clusters whose sums of deviations are ±1.5: sqrt(2/(2−1) · Σ s²)/n.
    assert clustered.stderr == pytest.approx(sqrt(2 * 2 * 1.5**2) / 6, rel=1e-15)
    assert clustered.value == naive.value


def test_b_a_document_without_a_cluster_is_an_error_not_a_giant_cluster():
    samples = [Sample(0, cluster="p"), Sample(1)]
    with pytest.raises(EvalError, match="cluster id for every document, 1 have none, first at t"):
        clusters_of("t", samples)
    codes = clusters_of("t", [*samples, Sample(2)], singletons=True)
    assert len(set(codes.values())) == 3


def test_b_groups_from_configs_carry_alias_version_and_metrics():
    group = group_from_config(
        {
            "group": "g",
            "group_alias": "G",
            "metadata": {"version": 2},
            "aggregate_metric_list": [{"metric": "acc"}],
        }
    )
    assert (group.name, group.alias, group.metrics) == ("g", "G", (GroupMetric("acc"),))
