"""Bad input gives a located error or an outcome with a reason: never a wrong number, never another exception."""

from __future__ import annotations

import re
from math import inf, isfinite, nan

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
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
    freeze_options,
    report_task,
    score_doc,
    score_task,
)
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import Array, Floats, Inference, list_outcomes

DOC = 37
TYPES = (MULTIPLE_CHOICE, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, GENERATE_UNTIL)
REQUESTS = {
    MULTIPLE_CHOICE: LogLikelihood("", ""),
    LOGLIKELIHOOD: LogLikelihood("", ""),
    LOGLIKELIHOOD_ROLLING: Rolling(""),
    GENERATE_UNTIL: Generate(""),
}


def answers(output_type, replies, key=DOC, task="t", repeats=1):
    return [
        Answer(
            Instance(task, key, idx, REQUESTS[output_type], repeats),
            one if isinstance(one, tuple) else (one,),
        )
        for idx, one in enumerate(replies)
    ]


def attempt(call):
    """What a call returns, or the EvalError it raises; any other exception is the test's failure."""
    try:
        return call()
    except EvalError as refused:
        return refused


def says_where(message):
    return re.search(r"\b(at|of) t\b", str(message)) is not None


def refusal(call):
    """The message of the EvalError that a call must raise; any other exception is the test's failure."""
    with pytest.raises(EvalError) as caught:
        call()
    return str(caught.value)


def unscored(outcome, kind=Unscorable):
    """The reason of a document without a score, which must say where."""
    assert isinstance(outcome, kind), outcome
    assert f"t doc {DOC}" in outcome.reason
    return outcome.reason


def choose(gold, choices=("a", "b"), lls=(-1.0, -2.0), metrics=("acc",)):
    task = Task("t", MULTIPLE_CHOICE, tuple(map(MetricSpec, metrics)))
    replies = [(ll,) if isinstance(ll, tuple) else ((ll, False),) for ll in lls]
    found = score_doc(task, Sample(DOC, gold=gold, choices=choices), answers(MULTIPLE_CHOICE, replies))
    return [found[MetricKey(name)] for name in metrics]


def generate(replies, gold="a", metric=None, steps=(), **more):
    pipelines = (Pipeline("none", tuple(steps)),) if steps else ()
    task = Task("t", GENERATE_UNTIL, (metric or MetricSpec("exact_match"),), pipelines, **more)
    several = replies if isinstance(replies, tuple) else (replies,)
    made = Answer(Instance("t", DOC, 0, Generate(""), len(several)), several)
    return next(iter(score_doc(task, Sample(DOC, gold=gold), [made]).values()))


def process(function, metric=None, replies=("x", "y")):
    task = Task("t", GENERATE_UNTIL, (metric or MetricSpec("m"),), process_results=function)
    samples = [Sample(DOC + i) for i in range(len(replies))]
    return score_task(
        task, samples, [one for i, r in enumerate(replies) for one in answers(GENERATE_UNTIL, [r], DOC + i)]
    )


# --- golds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gold",
    [
        2,
        -1,
        10**30,
        -(10**30),
        True,
        False,
        "007",
        "²",
        "٣",
        "1",
        "",
        "c",
        None,
        1.5,
        nan,
        (),
        (0, 5),
        (True,),
        ("a", "z"),
    ],
    ids=repr,
)
def test_a_gold_that_is_no_choice_is_unscorable(gold):
    for outcome in choose(gold, metrics=("acc", "acc_norm", "f1", "brier_score", "exact_match")):
        unscored(outcome)


def test_digits_are_a_gold_where_they_are_a_choice():
    assert choose("٣", ("٣", "3")) == [Ok(1.0)]
    assert choose("007", ("7", "007")) == [Ok(0.0)]


@pytest.mark.parametrize("gold", [None, ()], ids=repr)
def test_a_text_without_a_gold_is_unscorable(gold):
    assert "expected a gold answer" in unscored(generate("a", gold))


def test_a_gold_past_the_choices_of_a_generation_is_unscorable():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),))
    found = score_doc(task, Sample(DOC, gold=5, choices=("a", "b")), answers(GENERATE_UNTIL, ["5"]))
    unscored(found[MetricKey("exact_match")])


@pytest.mark.parametrize("gold", [None, 3, (), ("a",)], ids=repr)
def test_a_rolling_document_without_a_text_is_unscorable(gold):
    found = score_doc(Task("t", LOGLIKELIHOOD_ROLLING), Sample(DOC, gold=gold), answers(LOGLIKELIHOOD_ROLLING, [-1.0]))
    for outcome in found.values():
        unscored(outcome)


@pytest.mark.parametrize(("text", "metrics"), [("", 3), ("   ", 1)])
def test_a_rolling_text_without_words_or_bytes_is_unscorable(text, metrics):
    found = score_doc(Task("t", LOGLIKELIHOOD_ROLLING), Sample(DOC, gold=text), answers(LOGLIKELIHOOD_ROLLING, [-1.0]))
    assert sum(isinstance(outcome, Unscorable) for outcome in found.values()) == metrics


# --- choices ------------------------------------------------------------------------------------------------------


def test_no_choices_and_no_likelihoods():
    found = score_doc(Task("t", MULTIPLE_CHOICE, (MetricSpec("acc"),)), Sample(DOC, gold=0), [])
    assert "no answer" in unscored(found[MetricKey("acc")], Failed)


def test_one_choice_is_always_right():
    assert choose(0, ("a",), (-1.0,), ("acc", "acc_norm", "choice_prob", "brier_score")) == [
        Ok(1.0),
        Ok(1.0),
        Ok(1.0),
        Ok(0.0),
    ]


def test_of_equal_choices_the_first_is_meant_and_the_first_best_wins():
    assert choose(0, ("a", "a"), (-1.0, -1.0)) == [Ok(1.0)]
    assert choose("a", ("a", "a"), (-1.0, -1.0)) == [Ok(1.0)]
    assert choose(1, ("a", "a"), (-1.0, -1.0)) == [Ok(0.0)]


def test_a_choice_without_length_has_no_normalised_score():
    acc, norm, by_bytes = choose(0, ("a", ""), metrics=("acc", "acc_norm", "acc_bytes"))
    assert acc == Ok(1.0)
    assert "none may be 0" in unscored(norm)
    assert "none may be 0" in unscored(by_bytes)


def test_normalised_scores_need_the_choices():
    (norm,) = choose(0, (), metrics=("acc_norm",))
    assert "needs the length" in unscored(norm)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_another_number_of_likelihoods_than_choices(count):
    (found,) = choose(0, ("a", "b"), [-1.0] * count)
    assert f"expected 2 log-likelihoods for 2 choices, got {count}" in unscored(found)


def test_a_missing_choice_is_noticed():
    made = [
        Answer(Instance("t", DOC, idx, LogLikelihood("", "")), ((ll, False),)) for idx, ll in ((0, -3.0), (2, -1.0))
    ]
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("acc"),))
    unscored(score_doc(task, Sample(DOC, gold=1), made)[MetricKey("acc")])


# --- likelihoods ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lls", [(nan, -1.0), (-1.0, nan), (inf, -1.0), (-1.0, inf), (-inf, -inf)], ids=repr)
def test_impossible_likelihoods_are_unscorable(lls):
    for outcome in choose(0, lls=lls, metrics=("acc", "acc_norm", "brier_score", "choice_prob", "ece", "likelihood")):
        unscored(outcome)


def test_one_choice_at_minus_infinity_is_an_answer():
    acc, prob, likelihood = choose(0, lls=(-inf, -1.0), metrics=("acc", "choice_prob", "likelihood"))
    assert (acc, prob) == (Ok(0.0), Ok(0.0))
    assert "-inf" in unscored(likelihood)


@pytest.mark.parametrize("reply", [nan, inf, -inf, "x", (), ("a", False), (None, None), True, b"x", 1j])
@pytest.mark.parametrize("output_type", [LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING])
def test_a_reply_that_is_no_likelihood(output_type, reply):
    for outcome in score_doc(Task("t", output_type), Sample(DOC, gold="a"), answers(output_type, [(reply,)])).values():
        unscored(outcome)


@pytest.mark.parametrize("reply", [10**400, -(10**400), (10**400, False)])
@pytest.mark.parametrize("output_type", [MULTIPLE_CHOICE, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING])
def test_a_likelihood_too_large_for_a_float(output_type, reply):
    for outcome in score_doc(Task("t", output_type), Sample(DOC, gold="a"), answers(output_type, [(reply,)])).values():
        unscored(outcome)


@pytest.mark.parametrize("greedy", ["False", "x"])
def test_a_greedy_flag_that_is_no_flag(greedy):
    found = score_doc(Task("t", LOGLIKELIHOOD), Sample(DOC, gold="a"), answers(LOGLIKELIHOOD, [((-1.0, greedy),)]))
    assert all(outcome == Ok(0.0) or isinstance(outcome, Ok | Unscorable) for outcome in found.values())


HEADS = [-1.5, "-1.5", " -1.5 ", "True", "x", True, np.bool_(1), np.float32(-1.5), None, b"-1.5", (-1.5,), 10**400, nan]


@pytest.mark.parametrize("other", HEADS, ids=lambda one: repr(one)[:9])
@pytest.mark.parametrize("head", HEADS, ids=lambda one: repr(one)[:9])
def test_a_likelihood_is_read_alike_beside_any_other(head, other):
    task, replies = Task("t", LOGLIKELIHOOD), [(head, "True"), (other, "False")]
    made = [answers(LOGLIKELIHOOD, [(reply,)], key) for key, reply in enumerate(replies)]
    samples = [Sample(key, gold="a") for key in range(2)]
    whole = score_task(task, samples, [*made[0], *made[1]])
    for key in range(2):
        alone = score_doc(task, samples[key], made[key])
        assert alone == {one.key: dict(list_outcomes(one.column))[key] for one in whole.columns}
    texts = score_doc(task, samples[0], answers(LOGLIKELIHOOD, [(("-1.5", "True"),)], 0))
    assert texts == score_doc(task, samples[0], answers(LOGLIKELIHOOD, [((-1.5, True),)], 0))


def test_tokens_that_nobody_told():
    (found,) = choose(0, lls=(Likelihood(-1.0), Likelihood(-2.0)), metrics=("acc_token",))
    assert "tokens" in unscored(found)


# --- documents and answers --------------------------------------------------------------------------------------------

TEXT = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),))


def test_a_document_twice():
    samples = [Sample(DOC, gold="a"), Sample(DOC, gold="b")]
    assert refusal(lambda: score_task(TEXT, samples, answers(GENERATE_UNTIL, ["a"]))) == (
        f"expected each document once, got one twice - at t doc {DOC}"
    )


def test_a_place_twice():
    made = answers(GENERATE_UNTIL, ["a"]) * 2
    message = refusal(lambda: score_task(TEXT, [Sample(DOC, gold="a")], made))
    assert message == f"expected each (document, idx) once, got idx 0 twice - at t doc {DOC}"


def test_an_answer_for_an_unknown_document():
    made = answers(GENERATE_UNTIL, ["a"], DOC)
    message = refusal(lambda: score_task(TEXT, [Sample(DOC + 1, gold="a")], made))
    assert message == f"expected a sample for every answer, got none - at t doc {DOC}"
    assert f"t doc {DOC}" in refusal(lambda: score_task(TEXT, [], made))


def test_answers_of_another_task():
    made = answers(GENERATE_UNTIL, ["a"], task="other")
    assert "got answers of 'other'" in refusal(lambda: score_task(TEXT, [Sample(DOC, gold="a")], made))
    mixed = [*made, *answers(GENERATE_UNTIL, ["a"])]
    assert "['other', 't']" in refusal(lambda: score_task(TEXT, [Sample(DOC, gold="a")], mixed))


def test_a_document_without_an_answer_failed_and_is_counted():
    scored = score_task(
        TEXT, [Sample(DOC, gold="a"), Sample(DOC + 1, gold="a")], answers(GENERATE_UNTIL, ["a"], DOC + 1)
    )
    (_, lost), (_, found) = list_outcomes(scored.column("exact_match,none"))
    unscored(lost, Failed)
    assert found == Ok(1.0)
    estimate = report_task(scored).get(MetricKey("exact_match"))
    assert (estimate.value, estimate.counts.scored, estimate.counts.failed) == (1.0, 1, 1)
    assert (estimate.counts.lowest, estimate.counts.highest) == (0.5, 1.0)


@pytest.mark.parametrize("output_type", TYPES)
@pytest.mark.parametrize(("reply", "reason"), [(Failure("timeout"), "timeout"), (None, "no answer")])
def test_no_reply_is_a_failure_never_a_zero(output_type, reply, reason):
    samples = [Sample(DOC, gold=0 if output_type == MULTIPLE_CHOICE else "a")]
    for outcome in score_doc(Task("t", output_type), samples[0], answers(output_type, [(reply,), (reply,)])).values():
        assert reason in unscored(outcome, Failed)


def test_more_replies_than_repeats():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean",)),))
    made = [Answer(Instance("t", DOC, 0, Generate("")), ("a", "b", "b"))]
    told = refusal(lambda: score_doc(task, Sample(DOC, gold="a"), made))
    assert f"expected 1 reply, got 3 - at t doc {DOC}; declare as many repeats, or set ragged" in told
    ragged = score_doc(replace(task, ragged=True), Sample(DOC, gold="a"), made)
    assert ragged == {MetricKey("exact_match"): Ok(1 / 3)}
    plain = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),))
    assert score_doc(plain, Sample(DOC, gold="a"), made, tables=LM_EVAL_0_4_13) == {MetricKey("exact_match"): Ok(1.0)}


@pytest.mark.parametrize("replies", [(), ("a",)])
def test_another_number_of_replies_than_repeats(replies):
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("mean",)),))
    made = [Answer(Instance("t", DOC, 0, Generate(""), 2), replies)]
    found = score_doc(task, Sample(DOC, gold="a"), made)[MetricKey("exact_match")]
    assert f"expected 2 replies, got {len(replies)}" in unscored(found)


def test_one_failed_repeat_fails_the_document_unless_ragged():
    metric = MetricSpec("exact_match", reducers=("mean",))
    unscored(generate((Failure("timeout"), "a"), metric=metric), Failed)
    assert generate((Failure("timeout"), "a"), metric=metric, ragged=True) == Ok(1.0)
    unscored(generate((Failure("timeout"), None), metric=metric, ragged=True), Failed)


@pytest.mark.parametrize("key", [2**70, "x"])
def test_a_key_that_is_no_whole_number(key):
    refusal(lambda: score_task(TEXT, [Sample(key, gold="a")], []))


# --- texts ------------------------------------------------------------------------------------------------------------

TEXT_METRICS = ("exact_match", "quasi_exact_match", "includes", "f1", "anls", "bleu", "chrf", "chrf++", "ter")


@pytest.mark.parametrize("metric", TEXT_METRICS)
@pytest.mark.parametrize("reply", ["", "  \n ", "\ud83d", "a\0b", "\0", "\u202e", "a" * 5000])
@pytest.mark.parametrize("gold", ["a", "", "\ud83d", "\0"])
def test_strange_texts_have_a_score_or_a_reason(metric, reply, gold):
    outcome = generate(reply, gold, MetricSpec(metric))
    if isinstance(outcome, Ok):
        values = outcome.score if isinstance(outcome.score, tuple) else (outcome.score,)
        assert all(map(isfinite, values))
    else:
        unscored(outcome)


def test_an_empty_generation_is_wrong_and_equal_only_to_an_empty_gold():
    assert generate("") == Ok(0.0)
    assert generate("", "") == Ok(1.0)
    assert generate("   ", "") == Ok(0.0)
    assert generate("a\0", "a") == Ok(0.0)
    assert generate("\ud83d", "\ud83d") == Ok(1.0)


# --- process_results ----------------------------------------------------------------------------------------------------


def boom(doc, results):
    raise KeyError("gold")


def test_process_results_that_raises_fails_the_document():
    for key, outcome in list_outcomes(process(boom).column("m,none")):
        assert outcome == Failed(f"KeyError: 'gold' - at t doc {key}")


def test_process_results_that_returns_nothing():
    assert [one for _, one in list_outcomes(process(lambda doc, results: None).column("m,none"))] == [NotEmitted()] * 2
    estimate = report_task(process(lambda doc, results: None)).get(MetricKey("m"))
    assert (estimate.value, estimate.counts.not_emitted) == (None, 2)
    assert estimate.reason


@pytest.mark.parametrize("score", [nan, inf, -inf, None], ids=repr)
def test_a_score_that_is_no_number_is_unscorable(score):
    scored = process(lambda doc, results: {"m": score if results[0] == "x" else 1.0})
    (_, bad), (_, good) = list_outcomes(scored.column("m,none"))
    unscored(bad)
    assert good == Ok(1.0)
    estimate = report_task(scored).get(MetricKey("m"))
    assert (estimate.value, estimate.counts.scored, estimate.counts.unscorable) == (1.0, 1, 1)


@pytest.mark.parametrize("score", ["right", (1, 2), [1.0], {"a": 1}, {1}, 1j], ids=repr)
def test_scores_that_cannot_be_averaged(score):
    assert "at t m,none" in refusal(lambda: report_task(process(lambda doc, results: {"m": score})))


@pytest.mark.parametrize("returned", ["abc", [("m", 1)], 5, True], ids=repr)
def test_process_results_that_returns_no_mapping(returned):
    for _, outcome in list_outcomes(process(lambda doc, results: returned).column("m,none")):
        assert isinstance(outcome, Failed | Unscorable)


def test_process_results_with_a_name_that_is_no_text():
    assert {one.key.metric for one in process(lambda doc, results: {1: 0.5}).columns} == {"m"}


def test_a_score_too_large_for_a_float():
    unscored(list_outcomes(process(lambda doc, results: {"m": 10**400}).column("m,none"))[0][1])


def test_a_score_that_cannot_be_copied():
    unscored(list_outcomes(process(lambda doc, results: {"m": (one for one in "a")}).column("m,none"))[0][1], Failed)


@pytest.mark.parametrize("doc", [b'{"a": NaN}', b'{"a": "\\ud83d"}'])
def test_a_document_that_only_json_can_read_is_read(doc):
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m"),), process_results=lambda doc, results: {"m": 1.0})
    assert score_doc(task, Sample(DOC, doc=doc), answers(GENERATE_UNTIL, ["a"])) == {MetricKey("m"): Ok(1.0)}


@pytest.mark.parametrize("doc", [b"", b"not json", b"\xff"])
def test_a_document_that_is_no_json(doc):
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m"),), process_results=lambda doc, results: {"m": 1.0})
    found = attempt(lambda: score_doc(task, Sample(DOC, doc=doc), answers(GENERATE_UNTIL, ["a"])))
    if isinstance(found, EvalError):
        assert f"doc {DOC}" in str(found)
    else:
        unscored(found[MetricKey("m")], Failed)


# --- metrics and aggregations of the user's own ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda batch, given: 1 / 0,
        lambda batch, given: None,
        lambda batch, given: [1.0],
        lambda batch, given: Floats(Array([1.0, 2.0, 3.0])),
        lambda batch: Floats(Array([1.0])),
    ],
    ids=["raises", "none", "list", "length", "signature"],
)
def test_a_metric_function_that_goes_wrong(function):
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m", function=function),))
    scored = attempt(lambda: score_task(task, [Sample(DOC, gold="a")], answers(GENERATE_UNTIL, ["a"])))
    if isinstance(scored, EvalError):
        assert says_where(scored)
    else:
        unscored(list_outcomes(scored.column("m,none"))[0][1], Failed | Unscorable)
        report_task(scored)


def test_a_metric_function_that_gives_nan():
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m", function=lambda batch, given: Floats(Array([nan]))),))
    unscored(score_doc(task, Sample(DOC, gold="a"), answers(GENERATE_UNTIL, ["a"]))[MetricKey("m")])


@pytest.mark.parametrize(
    "aggregation", [lambda items: "x", lambda items: None, lambda items: items], ids=["str", "none", "list"]
)
def test_an_aggregation_that_returns_no_number(aggregation):
    metric = MetricSpec("m", aggregation=aggregation)
    assert "at t m,none" in refusal(lambda: report_task(process(lambda doc, results: {"m": 1.0}, metric)))


@pytest.mark.parametrize("aggregation", [lambda items: 1 / 0, lambda: 1.0], ids=["raises", "signature"])
def test_an_aggregation_that_raises(aggregation):
    metric = MetricSpec("m", aggregation=aggregation)
    assert "at t m,none" in refusal(lambda: report_task(process(lambda doc, results: {"m": 1.0}, metric)))


def test_an_aggregation_that_gives_nan_has_no_value():
    metric = MetricSpec("m", aggregation=lambda items: nan)
    estimate = report_task(process(lambda doc, results: {"m": 1.0}, metric)).get(MetricKey("m"))
    assert estimate.value is None
    assert "no finite value" in estimate.reason


AGGREGATIONS = sorted(EVALCORE.aggregations)
ROWS = (0.5, "x", (1,), (1, 2), ("a", "b"), (None, None), {"a": 1}, (nan, nan), (1, "x"))
UNHASHABLE = (([1], [2]), (0, [0.5, 0.5]), (True, {"idx": 1, "label": 0}))
UNGUARDED = {"f1": UNHASHABLE, "matthews_corrcoef": UNHASHABLE, "acc_all": UNHASHABLE[2:]}
UNGUARDED["brier_score"] = ((1, 2), ("a", "b"), (None, None), (nan, nan), (1, "x"), *UNHASHABLE[2:])


def closes(name, row):
    metric = MetricSpec("m", aggregation=name)
    report = attempt(lambda: report_task(process(lambda doc, results: {"m": row}, metric)))
    if isinstance(report, EvalError):
        assert "at t m,none" in str(report)
    else:
        value = report.get(MetricKey("m")).value
        assert value is None or isfinite(value)


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_rows_that_an_aggregation_does_not_know(name):
    for row in (*ROWS, *UNHASHABLE):
        if row not in UNGUARDED.get(name, ()) and not (name in UNGUARDED and row == (nan, nan)):
            closes(name, row)


@pytest.mark.parametrize(("name", "row"), [(name, row) for name in sorted(UNGUARDED) for row in UNGUARDED[name]])
def test_rows_that_an_aggregation_stumbles_over(name, row):
    closes(name, row)


# --- names and options ------------------------------------------------------------------------------------------------


def test_unknown_names_suggest_the_nearest():
    assert "unknown metric 'exact_mach'; did you mean 'exact_match'?" in (
        message := refusal(lambda: generate("a", metric=MetricSpec("exact_mach")))
    )
    assert "at t" in message
    assert "unknown filter 'regx'; did you mean 'regex'?" in refusal(lambda: generate("a", steps=[Step.of("regx")]))
    assert "unknown reducer 'men'; did you mean 'mean'?" in refusal(
        lambda: generate(("a", "b"), metric=MetricSpec("exact_match", reducers=("men",)))
    )
    wrong = MetricSpec("m", aggregation="perplxity")
    message = refusal(lambda: report_task(process(lambda doc, results: {"m": 1.0}, wrong)))
    assert "unknown aggregation 'perplxity'; did you mean 'perplexity'?" in message
    assert "at t m" in message
    typo = Task("t", OutputType("multiple_choise"))
    message = refusal(lambda: score_doc(typo, Sample(DOC, gold=0), answers(MULTIPLE_CHOICE, [((-1.0, False),)])))
    assert "did you mean 'multiple_choice'?" in message
    spec = MetricSpec("exact_match", options=freeze_options(ignore_cas=True))
    assert "did you mean 'ignore_case'?" in refusal(lambda: generate("a", metric=spec))


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: generate("a", steps=[Step.of("regx")]), "'regex'"),
        (lambda: generate("a", steps=[Step.of("regex", regex_patern="x")]), "'regex_pattern'"),
        (lambda: generate("a", steps=[Step.of("regex", regex_pattern="(")]), "'('"),
        (
            lambda: generate("a", metric=MetricSpec("exact_match", options=freeze_options(ignore_cas=True))),
            "'ignore_case'",
        ),
        (lambda: generate(("a", "b"), metric=MetricSpec("exact_match", reducers=("men",))), "'mean'"),
    ],
    ids=["filter", "filter option", "regex", "metric option", "reducer"],
)
def test_messages_say_what_was_meant_and_where(call, near):
    message = refusal(call)
    assert near in message
    assert says_where(message)


def test_unknown_options_of_choice_metrics_are_named_in_a_warning():
    """lm-eval ignores them without a word, and task files have them: they must not stop a run."""
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("acc", options=freeze_options(normalise=True)),))
    replies = answers(MULTIPLE_CHOICE, [((-1.0, False),), ((-2.0, False),)])
    report = report_task(score_task(task, [Sample(DOC, gold=0)], replies))
    assert report.warnings == ("t: acc has no option 'normalise'; it is ignored",)


@pytest.mark.parametrize(
    "step",
    [
        Step.of("regex", regex_pattern="("),
        Step.of("regex", regex_pattern=5),
        Step.of("regex", regex_patern="x"),
        Step.of("take_first_k", k=0),
        Step.of("take_first_k", k="2"),
        Step.of("take_first_k", k=True),
        Step.of("take_first_k"),
        Step.of("majority_vote", ties="last"),
        Step.of("multi_choice_regex", regexes_to_ignore=["("]),
        Step.of("map", mapping_dict=5),
        Step.of("custom"),
    ],
    ids=lambda step: f"{step.name} {dict(step.options)}"[:40],
)
def test_filters_made_wrongly(step):
    assert refusal(lambda: generate("a", steps=[step]))


@pytest.mark.parametrize(
    "step",
    [
        Step.of("take_first_k", k=5),
        Step.of("multi_choice_regex"),
        Step.of("custom", filter_fn=lambda responses, docs: []),
    ],
    ids=lambda step: step.name,
)
def test_filters_that_a_document_does_not_fit(step):
    unscored(generate("a", steps=[step]))


@pytest.mark.parametrize(
    "step",
    [
        Step.of("regex", regex_pattern="(a)", group_select="0"),
        Step.of("regex", regex_pattern="(a)", group_select=None),
        Step.of("regex", regex_pattern="(a)", group_select=1.5),
        Step.of("strip_thinking", start=5),
        Step.of("strip_thinking", end=""),
        Step.of("custom", filter_fn=5),
        Step.of("custom", filter_fn=lambda responses, docs: 1 / 0),
        Step.of("custom", filter_fn=lambda responses, docs: None),
        Step.of("custom", filter_fn=lambda responses, docs: responses, scope="bogus"),
    ],
    ids=range(9),
)
def test_filters_made_of_the_wrong_things(step):
    assert refusal(lambda: generate("a", steps=[step]))


@pytest.mark.parametrize("select", [1, 7, -2, -9])
def test_a_match_that_is_not_there_is_the_fallback(select):
    step = Step.of("regex", regex_pattern="(a)", group_select=select)
    assert generate("a", "[invalid]", steps=[step]) == Ok(1.0)


def test_replies_that_are_no_text_after_a_filter():
    for step in (Step.of("map"), Step.of("regex_pos"), Step.of("regex", regex_pattern="(x)", fallback=None)):
        assert "expected one text after filter 'none'" in unscored(generate("a", steps=[step]))


def test_a_vote_among_nans():
    task = Task("t", LOGLIKELIHOOD, (MetricSpec("acc"),), (Pipeline("none", (Step.of("majority_vote"),)),))
    unscored(score_doc(task, Sample(DOC, gold="a"), answers(LOGLIKELIHOOD, [(nan,)]))[MetricKey("acc")])


def listed(responses, docs):
    return [[["l"], ["l"]] for _ in responses]


@pytest.mark.parametrize(
    "step", [Step.of("map", mapping_dict={"a": "b"}), Step.of("majority_vote")], ids=["map", "vote"]
)
def test_values_that_cannot_be_hashed(step):
    outcome = generate("a", steps=[Step.of("custom", filter_fn=listed), step, Step.of("take_first")])
    assert isinstance(outcome, Ok | Unscorable)


@pytest.mark.parametrize("reducer", ["maj@1", "consistency"])
def test_votes_that_cannot_be_hashed(reducer):
    metric = MetricSpec("exact_match", reducers=(reducer,))
    assert isinstance(generate("a", metric=metric, steps=[Step.of("custom", filter_fn=listed)]), Ok | Unscorable)


def test_a_document_that_a_filter_leaves_without_replies_is_still_counted():
    drop = Step.of("custom", filter_fn=lambda responses, docs: [r if i else [] for i, r in enumerate(responses)])
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),), (Pipeline("none", (drop,)),))
    made = [one for i in (0, 1) for one in answers(GENERATE_UNTIL, ["a"], DOC + i)]
    scored = score_task(task, [Sample(DOC, gold="a"), Sample(DOC + 1, gold="a")], made)
    found = dict(list_outcomes(scored.column("exact_match,none")))
    assert found[DOC + 1] == Ok(1.0)
    unscored(found[DOC])


@pytest.mark.parametrize("reducer", ["pass@5", "pass^3", "maj@5", "at_least(3)"])
def test_a_reducer_that_needs_more_replies(reducer):
    outcome = generate(("a", "b"), metric=MetricSpec("exact_match", reducers=(reducer,)))
    assert isinstance(outcome, Unscorable)
    assert "is not defined on 2 replies" in outcome.reason


def test_a_reducer_that_needs_more_replies_says_where():
    unscored(generate(("a", "b"), metric=MetricSpec("exact_match", reducers=("pass@5",))))


@pytest.mark.parametrize(
    "reducer", ["pass@0", "pass@-1", "pass@", "pass@k", "maj@x", "at_least", "at_leastk", "at_least(k)"]
)
def test_reducers_that_are_none(reducer):
    stem = reducer.removesuffix("(k)").removesuffix("k")
    told = f"expected a number in place of k in the reducer {reducer!r}, such as {stem}2"
    assert (told if stem in ("pass@", "at_least") else "unknown reducer") in refusal(
        lambda: generate(("a", "b"), metric=MetricSpec("exact_match", reducers=(reducer,)))
    )


def test_a_threshold_that_is_no_number():
    refusal(lambda: generate(("a", "b"), metric=MetricSpec("exact_match", reducers=("at_least(1,0.5.5)",))))


def test_a_reducer_of_numbers_on_something_else():
    task = Task(
        "t",
        GENERATE_UNTIL,
        (MetricSpec("m", reducers=("mean",)),),
        process_results=lambda doc, results: {"m": (1, 2)},
    )
    made = [Answer(Instance("t", DOC, 0, Generate(""), 2), ("a", "b"))]
    assert "needs numbers" in refusal(lambda: score_doc(task, Sample(DOC), made))


def test_a_reducer_of_numbers_says_where():
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("f1", reducers=("mean",)),), (Pipeline("none"),))
    made = answers(MULTIPLE_CHOICE, [((-1.0, False), (-2.0, False))] * 2, repeats=2)
    assert says_where(refusal(lambda: score_doc(task, Sample(DOC, gold=0), made)))


def test_two_pipelines_of_one_name():
    assert "at t" in refusal(lambda: Task("t", GENERATE_UNTIL, (), (Pipeline("p"), Pipeline("p"))))


def test_refusing_unscored_documents_says_which():
    scored = score_task(TEXT, [Sample(DOC, gold="a")], [])
    assert f"t doc {DOC}" in refusal(lambda: report_task(scored, inference=Inference(on_unscorable="fail")))


# --- few documents ------------------------------------------------------------------------------------------------------


def few(output_type, n, tables):
    gold = 0 if output_type == MULTIPLE_CHOICE else "a b"
    reply = {GENERATE_UNTIL: "a b", LOGLIKELIHOOD_ROLLING: -1.0}.get(output_type, (-1.0, True))
    each = 2 if output_type == MULTIPLE_CHOICE else 1
    samples = [Sample(key, gold=gold, choices=("x", "y") if each == 2 else ()) for key in range(n)]
    made = [one for key in range(n) for one in answers(output_type, [(reply,)] * each, key)]
    return report_task(score_task(Task("t", output_type), samples, made, tables=tables), tables=tables)


@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
@pytest.mark.parametrize("output_type", TYPES)
def test_one_document_has_a_value_and_no_error(output_type, tables):
    report = few(output_type, 1, tables)
    assert report.estimates
    for _, estimate in report.estimates:
        assert isfinite(estimate.value)
        assert estimate.stderr is None
        assert estimate.reason


@pytest.mark.parametrize("output_type", TYPES)
def test_two_documents_have_an_error(output_type):
    for _, estimate in few(output_type, 2, EVALCORE).estimates:
        assert (estimate.n, estimate.stderr) == (2, pytest.approx(0.0, abs=1e-15))
        assert estimate.ci is None or estimate.ci[0] <= estimate.value <= estimate.ci[1]


@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
@pytest.mark.parametrize("output_type", TYPES)
def test_no_documents_have_no_numbers(output_type, tables):
    report = few(output_type, 0, tables)
    assert (report.n_docs, report.sample_len) == (0, 0)
    assert all(estimate.value is None and estimate.reason for _, estimate in report.estimates)


@pytest.mark.parametrize("output_type", TYPES)
def test_no_documents_say_so(output_type):
    estimates = few(output_type, 0, EVALCORE).estimates
    assert estimates
    assert all("cannot score empty instances" in estimate.reason for _, estimate in estimates)


def test_no_document_scored_has_no_value_and_the_first_reason():
    scored = score_task(TEXT, [Sample(DOC, gold="a"), Sample(DOC + 1, gold="a")], [])
    estimate = report_task(scored).get(MetricKey("exact_match"))
    assert (estimate.value, estimate.stderr, estimate.ci, estimate.counts.failed) == (None, None, None, 2)
    assert f"t doc {DOC}" in estimate.reason
    zero = report_task(scored, inference=Inference(on_unscorable="zero")).get(MetricKey("exact_match"))
    assert (zero.value, zero.n) == (0.0, 2)


# --- anything at all ------------------------------------------------------------------------------------------------------

words = st.text(max_size=8) | st.sampled_from(["", " ", "\0", "\ud83d", "٣", "²", "007", "a", "b", "[invalid]", "nan"])
numbers = st.floats() | st.integers(-(2**62), 2**62) | st.booleans()
pairs = st.tuples(st.floats() | st.integers(-5, 5), st.booleans())
triples = st.builds(Likelihood, st.floats(), st.booleans(), st.integers(0, 9))
junk = st.one_of(
    words,
    numbers,
    pairs,
    triples,
    st.none(),
    st.builds(Failure, st.text(max_size=5)),
    st.binary(max_size=3),
    st.tuples(words),
    st.just(()),
)
golds = st.one_of(words, numbers, st.none(), st.lists(words | numbers, max_size=3).map(tuple))
metrics = {
    MULTIPLE_CHOICE: sorted(EVALCORE.metrics[MULTIPLE_CHOICE]),
    LOGLIKELIHOOD: sorted(EVALCORE.metrics[LOGLIKELIHOOD]),
    LOGLIKELIHOOD_ROLLING: sorted(EVALCORE.metrics[LOGLIKELIHOOD_ROLLING]),
    GENERATE_UNTIL: [*TEXT_METRICS, "extraction_rate", "bypass"],
}
steps = st.sampled_from(
    [
        (),
        (Step.of("regex", regex_pattern="([a-z])"), Step.of("take_first")),
        (Step.of("lowercase"), Step.of("strip_punctuation"), Step.of("remove_whitespace")),
        (Step.of("map", mapping_dict={"a": "b"}, default_value="?"),),
        (Step.of("strip_thinking"),),
    ]
)


@st.composite
def runs(draw, output_type):
    """A task with garbage for golds, choices and replies."""
    n = draw(st.integers(1, 3))
    width = draw(st.integers(1, 4)) if output_type == MULTIPLE_CHOICE else draw(st.sampled_from([1, 1, 1, 2]))
    choices = draw(st.lists(words, max_size=4).map(tuple))
    samples = [Sample(key, gold=draw(golds), choices=choices) for key in range(n)]
    reply = draw(st.sampled_from([junk, pairs, words, pairs | junk]))
    made = [one for key in range(n) for one in answers(output_type, [(draw(reply),) for _ in range(width)], key)]
    names = draw(st.lists(st.sampled_from(metrics[output_type]), min_size=1, max_size=3, unique=True))
    pipelines = (Pipeline("none", draw(steps)),)
    return Task("t", output_type, tuple(map(MetricSpec, names)), pipelines), samples, made


@pytest.mark.parametrize("output_type", TYPES)
@pytest.mark.parametrize("tables", [EVALCORE, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
def test_garbage_gives_outcomes_or_a_located_error(output_type, tables):
    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(runs(output_type))
    def check(run):
        task, samples, made = run
        scored = attempt(lambda: score_task(task, samples, made, tables=tables))
        report = scored if isinstance(scored, EvalError) else attempt(lambda: report_task(scored, tables=tables))
        if isinstance(report, EvalError):
            # Where a reducer needs numbers, see test_a_reducer_of_numbers_says_where.
            assert says_where(report) or "needs numbers" in str(report)
            return
        for one in scored.columns:
            assert [key for key, _ in list_outcomes(one.column)] == [sample.doc_id for sample in samples]
            for key, outcome in list_outcomes(one.column):
                if isinstance(outcome, Unscorable | Failed):
                    assert f"t doc {key}" in outcome.reason
        for _, estimate in report.estimates:
            assert estimate.value is None or isfinite(estimate.value)
            assert estimate.stderr is None or (isfinite(estimate.stderr) and estimate.stderr >= 0)
            assert (
                estimate.counts.scored
                + estimate.counts.unscorable
                + estimate.counts.failed
                + estimate.counts.not_emitted
                == len(samples)
            )

    check()
