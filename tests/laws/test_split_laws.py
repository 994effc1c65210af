"""Laws of scoring: batch equals one by one; any split, order and number of shards gives the same bits."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalcore import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    EvalError,
    Failure,
    Generate,
    Instance,
    Likelihood,
    LogLikelihood,
    MetricSpec,
    Ok,
    Pipeline,
    Sample,
    Step,
    Task,
    build_report,
    freeze_options,
    merge_scored,
    report_task,
    score_doc,
    score_task,
)
from evalcore.core.records.column import EMPTY, take_part
from evalcore.core.records.outcome import FAILED, OK, UNSCORABLE
from evalcore.core.repeats.reduce import reduce_repeats
from evalcore.core.repeats.repeat import pick_first
from evalcore.extensions import per_document
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results
from evalcore.stats import Floats, Objects, build_column, list_outcomes
from evalcore.testing import cases, check_task, fingerprint
from evalcore.testing.cases import Case

TYPES = (MULTIPLE_CHOICE, GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING)
LAW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def as_json(scored):
    """The whole result file of one task and a group around it."""
    report = report_task(scored)
    metrics = tuple(dict.fromkeys(GroupMetric(key.metric) for key, _ in report.estimates))
    tree = Group("g", (Leaf(report.name, None),), metrics)
    return msgspec.json.encode(lm_eval_results(build_report([report], [tree])))


def shards(case, owners, n):
    """The case's documents dealt to n shards, each scored by itself."""
    owner = dict(zip((one.doc_id for one in case.samples), owners, strict=False))
    return [
        score_task(
            case.task,
            [one for one in case.samples if owner[one.doc_id] == shard],
            [one for one in case.answers if owner[one.doc_id] == shard],
            keep_replies=True,
        )
        for shard in range(n)
        if shard in owner.values()
    ]


@pytest.mark.parametrize("output_type", TYPES)
@LAW
@given(st.data())
def test_any_split_gives_the_same_bits(output_type, data):
    """Whole, shuffled, chunked, sharded and one by one: the same columns, replies and result file."""
    case = data.draw(cases(output_type))
    whole = check_task(case.task, case.samples, case.answers, seed=data.draw(st.integers(0, 99)))
    owners = data.draw(st.lists(st.integers(0, 4), min_size=len(case.samples), max_size=len(case.samples)))
    parts = shards(case, owners, 5)
    assert fingerprint(merge_scored(parts).columns) == fingerprint(whole.columns)
    assert as_json(merge_scored(parts[::-1])) == as_json(whole)


@LAW
@given(cases(GENERATE_UNTIL, ragged=True), st.integers(0, 99))
def test_ragged_repeats_too(case, seed):
    """Documents with one to three replies, reduced in five ways: the same bits for any split."""
    whole = check_task(case.task, case.samples, case.answers, seed=seed)
    assert as_json(merge_scored(shards(case, range(len(case.samples)), 9))) == as_json(whole)


CORPUS = Task("gen", GENERATE_UNTIL, tuple(map(MetricSpec, ("bleu", "chrf", "ter"))))
CHOICES = Task("ll", LOGLIKELIHOOD, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score", "acc_mutual_info"))))


@settings(LAW, max_examples=12)
@given(cases(GENERATE_UNTIL, task=CORPUS), st.integers(0, 99))
def test_corpus_metrics_too(case, seed):
    """BLEU, chrF and TER rows are counts per sentence, and a failed document changes none of the others."""
    whole = check_task(case.task, case.samples, case.answers, seed=seed)
    assert as_json(merge_scored(shards(case, range(len(case.samples)), 9))) == as_json(whole)


@st.composite
def likelihood_choices(draw):
    """A loglikelihood task with choices, some asked without context too (for mutual information)."""
    case = draw(cases(MULTIPLE_CHOICE))
    renamed = [
        Answer(Instance("ll", one.doc_id, one.idx, LogLikelihood("Q", "c")), one.replies) for one in case.answers
    ]
    twice = [one for one in case.samples if draw(st.booleans())]
    more = [
        Answer(Instance("ll", one.doc_id, len(one.choices) + i, LogLikelihood("", "c")), (Likelihood(-1.5 - i),))
        for one in twice
        for i in range(len(one.choices))
    ]
    return Case(CHOICES, case.samples, (*renamed, *more))


@LAW
@given(likelihood_choices(), st.integers(0, 99))
def test_documents_asked_in_different_ways(case, seed):
    """Documents with and without unconditional requests, with one choice and several, do not touch each other."""
    check_task(case.task, case.samples, case.answers, seed=seed)


@LAW
@given(cases(GENERATE_UNTIL, max_docs=4), st.integers(1, 9))
def test_merging_scores(case, chunk):
    """merge_scored is associative, commutative and idempotent."""
    a, *rest = shards(case, range(9), 9)
    whole = score_task(case.task, case.samples, case.answers, keep_replies=True, chunk=chunk)
    left = a
    for one in rest:
        left = merge_scored([left, one])
    right = a
    for one in rest[::-1]:
        right = merge_scored([one, right])
    for other in (left, right, merge_scored([a, *rest, a]), merge_scored([whole, a]), merge_scored([whole])):
        assert fingerprint(other) == fingerprint(whole)


def test_merging_refuses_strangers_and_conflicts():
    """Scores of two tasks, or two different scores of one document, do not merge."""

    def scored(name, text):
        asked = Instance(name, 0, 0, Generate("?"))
        return score_task(Task(name, GENERATE_UNTIL), [Sample(0, gold="a")], [Answer(asked, (text,))])

    with pytest.raises(EvalError, match="one task"):
        merge_scored([scored("t", "a"), scored("u", "a")])
    with pytest.raises(EvalError, match="doc 0"):
        merge_scored([scored("t", "a"), scored("t", "b")])
    assert len(EMPTY) == 0


# --- what laws found ---------------------------------------------------------------------------------------------


def gen(doc, replies, repeats=1):
    return Answer(Instance("t", doc, 0, Generate("?"), repeats), replies)


def ll(doc, idx, value):
    return Answer(Instance("t", doc, idx, LogLikelihood("q", "c")), ((value, False),))


def say(doc, results):
    """Declared ``m``; ``x`` or ``y`` without being declared."""
    return {"m": 1.0, **({"x": 1.0} if results[0] == "a" else {"y": 2.0})}


def mixed(doc, results):
    return {"m": 1 if results[0] == "a" else "z"}


def three_docs(task):
    samples = [Sample(i, gold="a") for i in range(3)]
    return task, samples, [gen(0, ("a",)), gen(1, ("b",)), gen(2, (Failure("timeout"),))]


@pytest.mark.parametrize("process", [say, mixed])
def test_what_documents_emit_may_differ(process):
    """process_results may emit other metrics, or other types, for other documents."""
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m"),), process_results=process)
    for seed in range(8):
        check_task(*three_docs(task), seed=seed)


def lengths(prediction, gold):
    return {"long": float(len(prediction)), "short": 1.0}


def test_metrics_that_return_dicts():
    """A metric of several parts gives the same columns for every split, though no part knows all its keys."""
    spec = MetricSpec("own", function=per_document(lengths))
    for seed in range(8):
        check_task(*three_docs(Task("t", GENERATE_UNTIL, (spec,))), seed=seed)


def test_failed_shards_leave_no_trace():
    """A shard whose documents all failed does not change how many repeats the others had."""
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean", "max")),))
    lost = Failure("timeout")
    answers = [gen(0, ("a", "a"), 2), gen(1, (lost, lost), 2), gen(2, ("a", "b"), 2)]
    for seed in range(8):
        check_task(task, [Sample(i, gold="a") for i in range(3)], answers, seed=seed)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("reducers", [(), ("mean",)])
def test_documents_without_replies_are_counted(ragged, reducers):
    """A document without a single reply is never dropped and never touches the others."""
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=reducers),), ragged=ragged)
    answers = [gen(0, ()), gen(1, ("b",)), gen(3, ("b",))]
    scored = check_task(task, [Sample(i, gold="b") for i in range(4)], answers)
    found = dict(list_outcomes(scored.columns[0].column))
    assert {key: isinstance(one, Ok) for key, one in found.items()} == {0: False, 1: True, 2: False, 3: True}


def test_documents_with_and_without_choices():
    """A document that lists no choices, or was asked twice, or once, changes no other document's score."""
    samples = [Sample(0, gold=0, choices=("a", "bb")), Sample(1, gold=0), Sample(2, gold=0, choices=("a", "b"))]
    answers = [ll(0, 0, -1.0), ll(0, 1, -2.0), ll(1, 0, -1.0), ll(1, 1, -2.0), *(ll(2, i, -1.0 - i) for i in range(4))]
    metrics = tuple(map(MetricSpec, ("acc", "acc_norm", "acc_mutual_info")))
    check_task(Task("t", MULTIPLE_CHOICE, metrics), samples, answers)
    several = [*samples, Sample(3, gold="c")]
    check_task(Task("t", LOGLIKELIHOOD, (MetricSpec("acc"),)), several, [*answers, ll(3, 0, -1.0)])


def test_kept_replies_are_as_they_were_given():
    """A reply without a token count looks the same in the log whether or not another document failed."""
    samples = [Sample(i, gold=0, choices=("a",)) for i in range(3)]
    lost = Answer(Instance("t", 2, 0, LogLikelihood("q", "c")), (Failure("timeout"),))
    check_task(Task("t", LOGLIKELIHOOD, (MetricSpec("acc"),)), samples, [ll(0, 0, -1.0), ll(1, 0, -2.0), lost])


def test_one_failure_does_not_stop_bleu():
    """Counts per sentence survive a neighbour without any."""
    task = Task("t", GENERATE_UNTIL, (MetricSpec("bleu"), MetricSpec("ter")))
    samples = [Sample(0, gold="a b c d e"), Sample(1, gold="a b")]
    scored = check_task(task, samples, [gen(0, ("a b c d e",)), gen(1, (Failure("x"),))])
    estimate = report_task(scored).estimates[0][1]
    assert (round(estimate.value, 9), estimate.counts.scored, estimate.counts.failed) == (100.0, 1, 1)


PLAIN = Task("gen", GENERATE_UNTIL, (MetricSpec("exact_match"),))


@LAW
@given(cases(GENERATE_UNTIL, task=PLAIN), st.integers(0, 99))
@example(Case(Task("t", GENERATE_UNTIL), (Sample(0, gold=""),), (gen(0, ("",)),)), 0)
def test_the_other_policy_obeys_the_laws(case, seed):
    """lm-eval's own tables change numbers, not laws: any split gives the same bits."""
    check_task(case.task, case.samples, case.answers, tables=LM_EVAL_0_4_13, seed=seed)


@LAW
@given(cases(GENERATE_UNTIL, failures=False), st.data())
def test_other_documents_do_not_matter(case, data):
    """Under document-scope filters a document's score stays when every other document's answer changes."""
    kept = data.draw(st.sampled_from(case.samples)).doc_id
    changed = [
        one if one.doc_id == kept else Answer(one.instance, ("#### 99",) * len(one.replies)) for one in case.answers
    ]
    before, after = (
        {c.key: dict(list_outcomes(c.column))[kept] for c in score_task(case.task, case.samples, answers).columns}
        for answers in (case.answers, changed)
    )
    assert fingerprint(before) == fingerprint(after)


def test_a_task_scope_filter_is_not_split():
    """A custom filter sees all documents however small the chunks are."""
    seen = []

    def count(replies, docs):
        seen.append(len(docs))
        return [[str(len(replies))] for _ in replies]

    steps = (Step("custom", freeze_options(filter_fn=count)),)
    task = Task("t", GENERATE_UNTIL, filters=(Pipeline("all", steps),))
    samples = [Sample(i, gold="5") for i in range(5)]
    scored = score_task(task, samples, [gen(i, ("x",)) for i in range(5)], chunk=2)
    assert seen == [5]
    assert np.all(scored.columns[0].column.rows.values.floats == 1.0)
    assert score_doc(task, samples[0], [gen(0, ("x",))])[scored.columns[0].key] == Ok(0.0)


@pytest.mark.parametrize(("reducer", "kept"), [("first", [0.5, "x", 0.25]), ("last", [0.5, "y", 0.75])])
def test_the_first_and_last_repeat_are_of_scored_ones_beside_any_neighbour(reducer, kept):
    """Documents with numbers reduce to the same outcomes alone and beside one whose scores are none."""
    columns = [
        build_column(
            [0, 1, 2, 3], Objects((None, "x", 0.25, None)), np.uint8([FAILED, OK, OK, FAILED]), {0: "a", 3: "a"}
        ),
        build_column([0, 1, 2, 3], Objects((0.5, "y", 0.75, None)), np.uint8([OK, OK, OK, UNSCORABLE]), {3: "b"}),
    ]
    whole = dict(list_outcomes(reduce_repeats(reducer, columns)))
    assert [whole[i] for i in range(3)] == [Ok(value) for value in kept]
    for key in (0, 2, 3):
        alone = [take_part(one, one.keys.ints == key) for one in columns]
        numbers = [
            build_column([key], Floats([np.nan if score is None else score]), one.status.data, dict(one.reasons))
            for one in alone
            for (score,) in [one.rows.values if isinstance(one.rows, Objects) else [None]]
        ]
        assert dict(list_outcomes(reduce_repeats(reducer, numbers))) == {key: whole[key]}


def test_the_first_repeat_is_picked_without_a_list_for_every_reason():
    """Documents are listed as often for many reasons as for one."""

    class Listed(np.ndarray):
        lists = 0

        def tolist(self):
            Listed.lists += 1
            return super().tolist()

    def count_lists(n):
        Listed.lists, keys = 0, np.arange(n)
        failed = build_column(
            keys, Floats(np.full(n, np.nan)), np.full(n, FAILED, np.uint8), dict.fromkeys(range(n), "a")
        )
        assert len(pick_first(keys.view(Listed), [failed, failed]).reasons) == n
        return Listed.lists

    assert count_lists(9) == count_lists(1)
