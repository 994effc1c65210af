"""Metrics of a task's own, on every output type: what a function gets is read off its signature."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings

from evalcore import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    EvalError,
    Failed,
    Generate,
    Instance,
    LogLikelihood,
    MetricKey,
    MetricSpec,
    Ok,
    OutputType,
    Pipeline,
    Rolling,
    Sample,
    Scored,
    Step,
    Tables,
    Task,
    Unscorable,
    freeze_options,
    merge_scored,
    report_task,
    score_doc,
    score_task,
)
from evalcore.core.answers.batch import Batch
from evalcore.extensions import (
    GenResult,
    LLResult,
    MCResult,
    Metric,
    RollingResult,
    batch_of,
    metric_inputs,
    per_document,
    result_of,
    scorer_of,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, task_from_config
from evalcore.stats import Floats, list_outcomes
from evalcore.testing import batches, check_metric
from evalcore.traces import trace_document

CHOICES = ("cat", "horse")


def ask_choices(*lls: float, kind: OutputType = MULTIPLE_CHOICE) -> list[Answer]:
    asked = [Instance("t", 0, i, LogLikelihood("Q", CHOICES[i % 2])) for i in range(len(lls))]
    return [Answer(one, ((ll, False, 1 + i),)) for i, (one, ll) in enumerate(zip(asked, lls, strict=True))]


def ask_texts(*texts: str) -> list[Answer]:
    return [Answer(Instance("t", 0, 0, Generate("Q"), repeats=len(texts)), texts)]


CHOICE = Sample(0, gold=1, choices=CHOICES, doc={"level": 3})  # type: ignore[arg-type]
TEXT = Sample(0, gold=("4", "four"))


def score(kind: OutputType, function: object, sample: Sample, answers: list[Answer], **given: object) -> object:
    spec = MetricSpec("own", function=function, options=freeze_options(given))  # type: ignore[arg-type]
    return score_doc(Task("t", kind, (spec,)), sample, answers)[MetricKey("own")]


# --- what a function gets -------------------------------------------------------------------------------------------


def test_beside_acc_in_multiple_choice() -> None:
    def margin(result: MCResult) -> float:
        return result.lls[result.gold[0]] - min(result.lls)

    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("acc"), MetricSpec("margin", function=margin)))
    assert score_doc(task, CHOICE, ask_choices(-3.0, -1.0)) == {MetricKey("acc"): Ok(1.0), MetricKey("margin"): Ok(2.0)}


def test_a_result_of_choices_holds_all_that_was_heard_and_asked() -> None:
    seen: list[MCResult] = []
    answers = ask_choices(-3.0, -1.0, -2.5, -4.0)
    assert score(MULTIPLE_CHOICE, lambda result: seen.append(result) or 1.0, CHOICE, answers) == Ok(1.0)
    [result] = seen
    assert (result.lls, result.unconditional, result.mutual_information) == ((-3, -1), (-2.5, -4), (-0.5, 3))
    assert (result.choices, result.chars, result.bytes, result.tokens) == (CHOICES, (3, 5), (3, 5), (1, 2))
    assert (result.gold, result.best, result.greedy, result.filter) == ((1,), 1, (False, False), "none")
    assert result.instances == tuple(answer.instance for answer in answers)
    assert result.doc == {"level": 3}
    assert metric_inputs(result) is result


def test_likelihoods_and_whole_texts() -> None:
    asked = [Answer(Instance("t", 0, 0, LogLikelihood("Q", " x")), ((-1.5, True),))]
    assert score(LOGLIKELIHOOD, lambda result: -result.value, Sample(0, gold=" x"), asked) == Ok(1.5)
    rolling = [Answer(Instance("t", 0, 0, Rolling("a b")), (-8.0,))]
    per_word = per_document(lambda result: result.value / len(result.text.split()))
    assert score(LOGLIKELIHOOD_ROLLING, per_word, Sample(0, gold="a b"), rolling) == Ok(-4.0)


def test_likelihoods_of_choices_are_a_result_of_choices() -> None:
    assert score(LOGLIKELIHOOD, lambda result: len(result.lls), CHOICE, ask_choices(-1.0, -2.0)) == Ok(2.0)


def test_a_result_of_texts_holds_all_generations() -> None:
    seen: list[GenResult] = []

    def any_right(result: GenResult) -> float:
        seen.append(result)
        return float(any(text in result.golds for text in result.generations))

    assert score(GENERATE_UNTIL, any_right, TEXT, ask_texts("5", "four", "6")) == Ok(1.0)
    [result] = seen  # once for the document, not once for each reply
    assert (result.generations, result.repeats, result.golds) == (("5", "four", "6"), 3, ("4", "four"))
    assert metric_inputs(result) == {"predictions": ["5", "four", "6"], "references": ["4", "four"]}
    assert result.instances[0].request == Generate("Q")


def test_a_filter_leaves_a_function_what_it_leaves_everyone() -> None:
    pipeline = Pipeline("two", (Step.of("take_first_k", k=2),))
    spec = MetricSpec("n", function=lambda result: result.repeats)
    task = Task("t", GENERATE_UNTIL, (spec,), (pipeline,))
    assert score_doc(task, TEXT, ask_texts("a", "b", "c")) == {MetricKey("n", "two"): Ok(2.0)}


def test_a_score_for_each_generation_is_left_to_reducers() -> None:
    def right(result: GenResult) -> list[float]:
        return [float(text in result.golds) for text in result.generations]

    spec = MetricSpec("right", function=right, reducers=("mean", "max", "pass@2"))
    other = MetricSpec("exact_match", reducers=("mean", "max", "pass@2"))
    found = score_doc(Task("t", GENERATE_UNTIL, (spec, other)), TEXT, ask_texts("5", "four", "6"))
    for reducer in ("mean", "max", "pass@2"):
        assert found[MetricKey(f"right@{reducer}")] == found[MetricKey(f"exact_match@{reducer}")]
    with pytest.raises(EvalError, match="expected one reply per document or a reducer, got 3 replies for own - at t"):
        score(GENERATE_UNTIL, right, TEXT, ask_texts("5", "four", "6"))


def test_plain_pairs() -> None:
    same = lambda prediction, gold: float(prediction == gold)  # noqa: E731
    assert score(GENERATE_UNTIL, same, TEXT, ask_texts("four")) == Ok(1.0)
    assert score(MULTIPLE_CHOICE, same, CHOICE, ask_choices(-3.0, -1.0)) == Ok(1.0)
    assert score(MULTIPLE_CHOICE, same, CHOICE, ask_choices(-1.0, -3.0)) == Ok(0.0)


def test_lm_evals_names() -> None:
    def length(references: list[str], predictions: list[str], scale: float = 1.0) -> float:
        return scale * len(references[0]) / len(predictions[0])

    assert score(GENERATE_UNTIL, length, TEXT, ask_texts("45"), scale=3.0) == Ok(6.0)
    assert score(MULTIPLE_CHOICE, length, CHOICE, ask_choices(-1.0, -3.0)) == Ok(5 / 3)
    assert score(GENERATE_UNTIL, lambda **given: len(given["predictions"]), TEXT, ask_texts("45")) == Ok(1.0)


def test_lm_evals_own_functions_are_taken_as_they_are() -> None:
    from lm_eval.api.metrics import exact_match_fn

    spec = MetricSpec("own", function=exact_match_fn, options=freeze_options(ignore_case=True))
    found = score_doc(Task("t", GENERATE_UNTIL, (spec,)), Sample(0, gold="YES"), ask_texts("yes"))
    assert found[MetricKey("exact_match")] == Ok(1.0)


def test_options_reach_the_function() -> None:
    above = lambda result, *, bar: float(result.lls[0] > bar)  # noqa: E731
    assert score(MULTIPLE_CHOICE, above, CHOICE, ask_choices(-1.0, -3.0), bar=-2.0) == Ok(1.0)


# --- what is refused, before anything is scored ---------------------------------------------------------------------


@pytest.mark.parametrize("function", [max, lambda: 1.0, lambda a, b, c: 1.0, lambda result, *, bar: 1.0])
@pytest.mark.parametrize("kind", [MULTIPLE_CHOICE, GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING])
def test_a_wrong_signature_is_an_error_that_shows_the_forms(kind: OutputType, function: object) -> None:
    spec = MetricSpec("own", function=function)  # type: ignore[arg-type]
    with pytest.raises(EvalError, match=r"expected a metric of .*f\(result: \w+.*, got .* - at t .*own") as raised:
        score_task(Task("t", kind, (spec,)), [], [])
    assert ("f(prediction, gold)" in str(raised.value)) == (kind != LOGLIKELIHOOD_ROLLING)


@pytest.mark.parametrize(("kind", "right"), [(MULTIPLE_CHOICE, "MCResult"), (GENERATE_UNTIL, "GenResult")])
def test_a_function_of_another_result_is_an_error(kind: OutputType, right: str) -> None:
    def rolling(result: RollingResult) -> float:
        return result.value

    with pytest.raises(EvalError, match=rf"f\(result: {right}\).*got f\(result: 'RollingResult'\)"):
        score_task(Task("t", kind, (MetricSpec("own", function=rolling),)), [], [])


def test_pairs_need_a_prediction() -> None:
    pair = MetricSpec("own", function=lambda prediction, gold: 1.0)
    with pytest.raises(EvalError, match=re.escape("the form f(result: RollingResult), its options by name")):
        score_task(Task("t", LOGLIKELIHOOD_ROLLING, (pair,)), [], [])
    asked = [Answer(Instance("t", 0, 0, LogLikelihood("Q", " x")), ((-1.5, True),))]
    found = score_doc(Task("t", LOGLIKELIHOOD, (pair,)), Sample(0, gold=" x"), asked)[MetricKey("own")]
    assert isinstance(found, Unscorable)
    assert "a log-likelihood has no prediction" in found.reason


def test_what_a_function_raises_fails_its_document() -> None:
    assert score(MULTIPLE_CHOICE, lambda result: 1 / 0, CHOICE, ask_choices(-1.0, -2.0)) == Failed(
        "ZeroDivisionError: division by zero - at t doc 0"
    )


def test_a_document_that_cannot_be_scored_does_not_reach_the_function() -> None:
    found = score(MULTIPLE_CHOICE, lambda result: 1.0, Sample(0, gold=9, choices=CHOICES), ask_choices(-1.0, -2.0))
    assert found == Unscorable("expected a choice index below 2, got 9 - at t doc 0")


# --- the same by other ways -----------------------------------------------------------------------------------------


def by_length(result: MCResult) -> float:
    return result.lls[0] / result.chars[0]


def first_word(items: list[str]) -> float:
    return float(items[0] == items[1].split()[0])


def count_generations(result: GenResult) -> float:
    return float(len(result.generations))


def test_from_a_task_file() -> None:
    config = {"task": "t", "output_type": "multiple_choice", "metric_list": [{"metric": "acc"}, {"metric": by_length}]}
    found = score_doc(task_from_config(config), CHOICE, ask_choices(-3.0, -1.0))
    assert found == {MetricKey("acc"): Ok(1.0), MetricKey("by_length"): Ok(-1.0)}
    texts = {"task": "t", "output_type": "generate_until", "repeats": 2, "repeat_cfg": {"reducer": "mean"}}
    several = task_from_config({**texts, "metric_list": [{"metric": "exact_match"}, {"metric": count_generations}]})
    found = score_doc(several, TEXT, ask_texts("four", "5"))
    assert found == {MetricKey("exact_match"): Ok(0.5), MetricKey("count_generations"): Ok(2.0)}


def test_one_argument_without_a_type_is_lm_evals_pair_in_its_task_files() -> None:
    config = {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": first_word}]}
    assert score_doc(task_from_config(config), Sample(0, gold="4"), ask_texts("4 of them"), tables=LM_EVAL_0_4_13) == {
        MetricKey("first_word"): Ok(1.0)
    }


def test_scorers_of_texts_get_all_generations() -> None:
    chat = OutputType("chat")
    seen: list[GenResult] = []

    def judge(result: GenResult) -> dict[str, object]:
        seen.append(result)
        return {"n": result.repeats, "each": [float(len(str(text))) for text in result.generations]}

    tables = Tables(scorers=Tables().scorers.set(chat, scorer_of(GenResult, judge)))
    task = Task("t", chat, (MetricSpec("n"), MetricSpec("each", reducers=("max",))))
    assert score_doc(task, TEXT, ask_texts("a", "bbb"), tables=tables) == {
        MetricKey("n"): Ok(2.0),
        MetricKey("each"): Ok(3.0),
    }
    assert [result.generations for result in seen] == [("a", "bbb")]


def test_scorers_are_tried_alone() -> None:
    score_margin = scorer_of(MCResult, lambda result: {"margin": max(result.lls) - min(result.lls)})
    batch = batch_of([MCResult((-1.0, -3.5), (False, False), (0,)), MCResult((-2.0, -2.0), (False, False), (0,))])
    [made] = score_margin(Task("t", MULTIPLE_CHOICE), [], batch)
    assert made.column.rows.values.floats.tolist() == [2.5, 0.0]


def test_one_factory_for_every_kind_of_request() -> None:
    assert isinstance(result_of(CHOICE, ask_choices(-1.0, -2.0)), MCResult)
    assert isinstance(result_of(TEXT, ask_texts("a", "b")), GenResult)
    assert isinstance(result_of(Sample(0, "x"), ask_choices(-1.0)), LLResult)
    rolling = result_of(Sample(0, "a b"), [Answer(Instance("t", 0, 0, Rolling("a b")), (-8.0,))], filter="f")
    assert (rolling.value, rolling.text, rolling.filter) == (-8.0, "a b", "f")  # type: ignore[union-attr]
    with pytest.raises(EvalError, match="cannot score empty instances"):
        result_of(Sample(7), ask_texts("a"))


def test_traces_go_the_same_way() -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("n", function=count_generations),))
    [trace] = trace_document(task, TEXT, ask_texts("a", "b"))
    assert [[(one.metric, one.outcome) for one in repeat] for repeat in trace.repeats] == [[("n", Ok(2.0))], []]
    assert trace.outcomes == ((MetricKey("n"), Ok(2.0)),)


def test_a_column_of_an_own_metric_closes_as_any_other() -> None:
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("own", function=partial(_over, 2.0), aggregation="median"),))
    samples = [Sample(i, 0, CHOICES) for i in range(3)]
    answers = [
        Answer(Instance("t", i, j, LogLikelihood("Q", CHOICES[j])), ((-1.0 - i * j, False),))
        for i in range(3)
        for j in range(2)
    ]
    estimate = report_task(score_task(task, samples, answers))["own,none"]
    assert (estimate.value, estimate.n) == (1.0, 3)


def _over(factor: float, result: MCResult) -> float:
    return (result.lls[0] - result.lls[1]) * factor / 2


# --- reducers of a task's own ---------------------------------------------------------------------------------------


def spread(scores: list[float]) -> float:
    return max(scores) - min(scores)


def test_functions_as_reducers() -> None:
    spec = MetricSpec("exact_match", reducers=(max, "mean", spread))
    assert score_doc(Task("t", GENERATE_UNTIL, (spec,)), TEXT, ask_texts("5", "four", "6")) == {
        MetricKey("exact_match@max"): Ok(1.0),
        MetricKey("exact_match@mean"): Ok(1 / 3),
        MetricKey("exact_match@spread"): Ok(1.0),
    }
    [one] = score_doc(
        Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=(min,)),)), TEXT, ask_texts("5", "4")
    )
    assert one == MetricKey("exact_match")


def test_functions_as_reducers_in_task_files() -> None:
    config = {"task": "t", "output_type": "generate_until", "repeats": 2, "metric_list": [{"metric": "exact_match"}]}
    for more in ({"repeat_cfg": {"reducer": max}}, {"metric_list": [{"metric": "exact_match", "reducer": max}]}):
        task = task_from_config({**config, **more})
        assert score_doc(task, TEXT, ask_texts("5", "four")) == {MetricKey("exact_match"): Ok(1.0)}


def test_the_worked_example_of_repeats() -> None:
    rows = ([0.8, 0.75, 0.78], [0.9, 0.85, 0.92], [0.7, 0.72, 0.69])
    spec = MetricSpec("own", function=lambda prediction, gold: float(prediction), reducers=(max,))
    answers = [Answer(Instance("t", i, 0, Generate("?"), 3), tuple(map(str, row))) for i, row in enumerate(rows)]
    scored = score_task(Task("t", GENERATE_UNTIL, (spec,)), [Sample(i, gold="x") for i in range(3)], answers)
    assert scored.column("own,none").rows.values.floats.tolist() == [0.8, 0.92, 0.72]
    assert report_task(scored)["own,none"].value == pytest.approx(0.8133, abs=1e-4)


def test_a_reducer_that_fails_says_so() -> None:
    spec = MetricSpec("exact_match", reducers=(lambda scores: "much",))
    [outcome] = score_doc(Task("t", GENERATE_UNTIL, (spec,)), TEXT, ask_texts("5", "four")).values()
    assert isinstance(outcome, Unscorable)
    assert outcome.reason.startswith("reducer 'lambda' failed on [0.0, 1.0]: ValueError")
    assert outcome.reason.endswith(f" - at t doc {TEXT.doc_id}")


# --- scorings by different metrics ----------------------------------------------------------------------------------


def scored_by(*specs: MetricSpec, config: dict[str, object] | None = None) -> Scored:
    samples = [Sample(i, gold=gold) for i, gold in enumerate(["4", "Five"])]
    answers = [Answer(Instance("t", i, 0, Generate("?")), (text,)) for i, text in enumerate(["4", "It is five"])]
    return score_task(Task("t", GENERATE_UNTIL, specs, config=freeze_options(config)), samples, answers)


def test_scorings_by_different_metrics_are_united() -> None:
    parts = [scored_by(MetricSpec(name)) for name in ("includes", "exact_match", "f1")]
    whole = merge_scored(parts)
    assert [str(one.key) for one in whole.columns] == ["exact_match,none", "f1,none", "includes,none"]
    assert whole == merge_scored(parts[::-1]) == merge_scored([merge_scored(parts[:2]), parts[2]])
    assert merge_scored([whole, parts[0]]) == whole
    together = scored_by(MetricSpec("exact_match"), MetricSpec("f1"), MetricSpec("includes"))
    assert {one.key: one.column for one in whole.columns} == {one.key: one.column for one in together.columns}
    assert report_task(whole)["exact_match,none"].value == 0.5


def test_one_metric_by_two_recipes_is_refused() -> None:
    strict = scored_by(MetricSpec("exact_match"))
    loose = scored_by(MetricSpec("exact_match", options=freeze_options(ignore_case=True)), MetricSpec("f1"))
    with pytest.raises(EvalError, match="expected scores made by one recipe, got metric 'exact_match' by two - at t"):
        merge_scored([strict, loose])
    with pytest.raises(EvalError, match="got two different config - at t"):
        merge_scored([scored_by(MetricSpec("f1"), config={"doc_to_text": "a"}), strict])


def test_an_empty_list_of_metrics_is_the_tasks() -> None:
    pipeline = Pipeline("p", (Step.of("take_first"),), ())
    task = Task("t", GENERATE_UNTIL, (MetricSpec("f1"),), (pipeline,))
    assert list(score_doc(task, TEXT, ask_texts("4"))) == [MetricKey("f1", "p")]


# --- what two reviewers broke ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reducers", [(min, min), ("mean", mean), (lambda s: 1.0, lambda s: 0.0), ("max", max)])
def test_reducers_of_one_name_are_refused(reducers: tuple[object, ...]) -> None:
    with pytest.raises(EvalError, match=r"expected reducers of different names, got .* - at metric m"):
        MetricSpec("m", reducers=reducers)  # type: ignore[arg-type]


def test_two_metrics_do_not_share_a_name() -> None:
    both = MetricSpec("exact_match"), MetricSpec("m", function=lambda result: {"exact_match": 5.0})
    with pytest.raises(EvalError, match="got 'exact_match' from exact_match and m - at t"):
        score_doc(Task("t", GENERATE_UNTIL, both), TEXT, ask_texts("4"))


def test_a_function_may_give_its_own_name_as_a_key() -> None:
    spec = MetricSpec("m", function=lambda result: {"m": 1.0, "k": 2.0})
    found = score_doc(Task("t", GENERATE_UNTIL, (spec,)), TEXT, ask_texts("4"))
    assert found == {MetricKey("m"): Ok(1.0), MetricKey("k"): Ok(2.0)}


def test_keys_that_are_no_texts_are_written_as_texts() -> None:
    spec = MetricSpec("m", function=lambda prediction, gold: {1: 0.5})
    assert score_doc(Task("t", GENERATE_UNTIL, (spec,)), TEXT, ask_texts("4"))[MetricKey("1")] == Ok(0.5)


@pytest.mark.parametrize("scores", [[], [1.0], [1.0] * 4, [1.0, None, 0.0], [1.0, 10**400, 1.0]])
def test_scores_are_as_many_numbers_as_generations(scores: list[object]) -> None:
    spec = MetricSpec("m", function=lambda result: scores, reducers=("mean",))
    found = score_doc(Task("t", GENERATE_UNTIL, (spec,)), TEXT, ask_texts("a", "b", "c"))[MetricKey("m")]
    assert isinstance(found, Unscorable)
    assert "expected a number for each of 3 generations" in found.reason
    assert found.reason.endswith("- at t doc 0")


def test_scores_of_any_kind_of_number() -> None:
    spec = MetricSpec("m", function=lambda result: [np.True_, True, np.float32(0)], reducers=("mean",))
    assert score_doc(Task("t", GENERATE_UNTIL, (spec,)), TEXT, ask_texts("a", "b", "c")) == {MetricKey("m"): Ok(2 / 3)}


def test_names_of_parameters_are_honoured() -> None:
    def swapped(gold: str, prediction: str) -> float:
        return float(len(prediction) > len(gold))

    assert score(GENERATE_UNTIL, swapped, Sample(0, gold="a"), ask_texts("abc")) == Ok(1.0)
    default = lambda prediction, gold="z": float(prediction == gold)  # noqa: E731
    assert score(GENERATE_UNTIL, default, TEXT, ask_texts("four")) == Ok(1.0)


async def wait(result: GenResult) -> float:
    return 1.0


def go_through(result: GenResult) -> Iterator[float]:
    yield 1.0


@pytest.mark.parametrize("function", [wait, go_through])
def test_what_returns_no_score_is_refused(function: object) -> None:
    with pytest.raises(EvalError, match=r"something to wait for or to go through - at t .*own"):
        score_task(Task("t", GENERATE_UNTIL, (MetricSpec("own", function=function),)), [], [])  # type: ignore[arg-type]


def test_a_batch_function_with_several_columns_spares_documents_with_problems() -> None:
    both = Metric(lambda batch, options: {"a": Floats(np.ones(len(batch))), "b": Floats(np.zeros(len(batch)))})  # type: ignore[arg-type]
    task = Task("t", MULTIPLE_CHOICE, (MetricSpec("own", function=both),))
    found = score_doc(task, Sample(0, gold=7, choices=CHOICES), ask_choices(-1.0, -2.0))
    assert all(isinstance(outcome, Unscorable) for outcome in found.values())
    assert set(found) == {MetricKey("a"), MetricKey("b")}


def test_all_replies_at_once_are_a_list_to_functions_of_task_files() -> None:
    seen: list[object] = []
    spec = MetricSpec("m", function=lambda references, predictions: seen.append(predictions[0]) or 1.0, lists=True)
    pipeline = Pipeline("lower", (Step.of("lowercase"),))
    score_doc(Task("t", GENERATE_UNTIL, (spec,), (pipeline,)), Sample(0, gold="x"), ask_texts("X", "Y"))
    assert seen == [["x", "y"]]


class Half:
    def __call__(self, prediction: str, gold: str) -> float:
        return 0.5


def test_functions_that_compare_unequal_after_pickling_go_through_a_pool() -> None:
    samples = [Sample(i, gold="a") for i in range(6)]
    answers = [Answer(Instance("t", i, 0, Generate("?")), ("a",)) for i in range(6)]
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m", function=Half()), MetricSpec("n", function=partial(_same, k=2))))

    def copy(function: Callable[..., object], chunks: Iterable[object]) -> Iterator[object]:
        return (pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(chunk))))) for chunk in chunks)

    spread_out = score_task(task, samples, answers, chunk=2, map=copy)  # type: ignore[arg-type]
    assert spread_out == score_task(task, samples, answers)


def _same(prediction: str, gold: str, k: int) -> float:
    return k * float(prediction == gold)


def test_one_chunk_or_many_give_the_same() -> None:
    samples = [Sample(0, gold=("a", "b")), Sample(1, gold="...")]
    answers = [Answer(Instance("t", i, 0, Generate("?"), 2), ("a", "b")) for i in range(2)]
    for task in (
        Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),)),
        Task("t", GENERATE_UNTIL, (MetricSpec("m", function=several_keys, reducers=("mean",)),)),
    ):
        assert score_task(task, samples, answers, chunk=1) == score_task(task, samples, answers)


def several_keys(prediction: str, gold: str) -> dict[str, float]:
    return {"b": 1.0, "a": 0.0} if gold == "..." else {"a": 1.0, "b": 0.0}


def test_likelihoods_with_and_without_choices_do_not_depend_on_each_other() -> None:
    kind = OutputType("mixed")
    tables = Tables(scorers=Tables().scorers.set(kind, scorer_of(LLResult, lambda result: {"v": result.value})))
    samples = [Sample(0, gold="x"), Sample(1, gold=0, choices=("a", "b"))]
    answers = [
        Answer(Instance("t", doc, idx, LogLikelihood("Q", "x")), ((-1.0, False),))
        for doc, idx in [(0, 0), (1, 0), (1, 1)]
    ]
    whole = score_task(Task("t", kind, (MetricSpec("v"),)), samples, answers, tables=tables)
    assert list_outcomes(whole.column("v,none"))[0] == (0, Ok(-1.0))


def test_a_result_of_answers_that_cannot_be_scored_says_why() -> None:
    with pytest.raises(EvalError, match="expected a choice index below 2, got 9 - at t doc 0"):
        result_of(Sample(0, gold=9, choices=CHOICES), ask_choices(-1.0, -2.0))


def test_replies_that_differ_under_one_document_do_not_merge() -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("bypass"),))
    one, two = (score_task(task, [TEXT], ask_texts(text), keep_replies=True) for text in ("x", "y"))
    with pytest.raises(EvalError, match="expected the same replies, got others under filter 'none' - at t doc 0"):
        merge_scored([one, two])


def test_an_output_type_under_another_name_behaves_as_the_original() -> None:
    other, known = OutputType("another_name"), Tables()
    metrics = known.metrics.set(other, known.metrics[GENERATE_UNTIL])
    tables = Tables(scorers=known.scorers.set(other, known.scorers[GENERATE_UNTIL]), metrics=metrics)
    for spec in (MetricSpec("n", function=count_generations), MetricSpec("n", function=first_word)):
        found = [
            score_doc(Task("t", kind, (spec,)), TEXT, ask_texts("4", "5"), tables=tables)
            for kind in (GENERATE_UNTIL, other)
        ]
        assert found[0] == found[1]


# --- laws -----------------------------------------------------------------------------------------------------------

OF_RESULTS = {
    MULTIPLE_CHOICE: lambda result: sum(result.gold) + len(result.choices) + result.tokens[0],
    GENERATE_UNTIL: lambda result: len(result.generations) + len(result.golds) + sum(result.fell_back),
    LOGLIKELIHOOD: lambda result: len(result.target) + result.tokens + result.greedy,
    LOGLIKELIHOOD_ROLLING: lambda result: len(result.text),
}


@pytest.mark.parametrize("kind", sorted(OF_RESULTS))
def test_a_batch_scores_as_its_results_do_one_by_one(kind: OutputType) -> None:
    @settings(max_examples=40, deadline=None)
    @given(batches(kind))
    def check(batch: Batch) -> None:
        check_metric(per_document(OF_RESULTS[kind]), [batch], kind)

    check()
