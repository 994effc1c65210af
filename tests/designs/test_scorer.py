"""The design of scorers, element by element: a scorer takes a task's metrics and a batch, and gives scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pytest
from msgspec.structs import replace
from scoring_parts import heard, likelihoods, score_texts, scores_of

from evalcore import (
    FILTERS,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    METRICS,
    MULTIPLE_CHOICE,
    SCORERS,
    Answer,
    EvalError,
    Failed,
    Generate,
    Instance,
    MetricKey,
    MetricSpec,
    NotEmitted,
    Ok,
    OutputType,
    Pipeline,
    Sample,
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
from evalcore.extensions import (
    GenResult,
    MCResult,
    Metric,
    Scorer,
    batch_of,
    from_process_results,
    result_of,
    results_of,
    scorer_of,
)
from evalcore.lm_eval import task_from_config
from evalcore.stats import list_outcomes
from evalcore.testing import check_filter, check_metric, check_task

R = TypeVar("R")
EXACT = (MetricSpec("exact_match"),)
LOWER = Pipeline("lower", (Step.of("lowercase"),))
CHOICES = Sample(0, gold=2, choices=tuple("abcd"))
LLS = (-2.1, -1.5, -0.8, -3.2)


# --- the scorer, its context and its result ---------------------------------------------------------------------------


def note(seen: list[R], score: float = 1.0) -> Callable[[R], float]:
    """A metric that writes down what it gets."""

    def own(result: R) -> float:
        seen.append(result)
        return score

    return own


def spy_tables(kind: OutputType, seen: list[tuple[object, ...]]) -> Tables:
    """Tables whose scorer writes down what it was called with."""

    def score(task: Task, specs: Sequence[MetricSpec], batch: object) -> tuple[()]:
        seen.append((task, tuple(specs), batch))
        return ()

    return Tables(name="spy", scorers=SCORERS.set(kind, score))


def test_every_output_type_has_a_scorer_of_one_signature() -> None:
    batch = batch_of([MCResult((-2.0, -1.0), (False, False), (1,), ("a", "b"))])
    for kind in (LOGLIKELIHOOD, MULTIPLE_CHOICE):
        scorer: Scorer = SCORERS[kind]
        (made,) = scorer(Task("t", kind), [MetricSpec("acc")], batch)
        assert (made.name, [outcome for _, outcome in list_outcomes(made.column)]) == ("acc", [Ok(1.0)])
    assert set(SCORERS) == {"generate_until", "loglikelihood", "loglikelihood_rolling", "multiple_choice"}


def test_a_context_holds_task_metrics_filter_and_answers() -> None:
    seen: list[tuple[object, ...]] = []
    task = Task("t", GENERATE_UNTIL, EXACT, (LOWER,))
    score_texts(task, ["A"], ["a"], tables=spy_tables(GENERATE_UNTIL, seen))
    ((told, specs, batch),) = seen
    assert (told, specs) == (task, EXACT)
    assert (batch.filter, batch.task, batch.replies, batch.samples[0].gold) == ("lower", "t", ("a",), "a")  # type: ignore[attr-defined]


def test_there_is_one_context_per_filter_in_order() -> None:
    seen: list[tuple[object, ...]] = []
    task = Task("t", GENERATE_UNTIL, EXACT, (LOWER, Pipeline("raw")))
    score_texts(task, ["A", "B"], ["a", "b"], tables=spy_tables(GENERATE_UNTIL, seen))
    assert [(batch.filter, list(batch.replies)) for _, _, batch in seen] == [("lower", ["a", "b"]), ("raw", ["A", "B"])]  # type: ignore[attr-defined]


def test_a_filter_has_its_own_metrics_or_the_tasks() -> None:
    own = replace(LOWER, metrics=(MetricSpec("includes"),))
    scored = score_texts(Task("t", GENERATE_UNTIL, EXACT, (own, Pipeline("raw"))), ["It is A"], ["a"])
    assert list(scores_of(scored)) == [("includes", "lower"), ("exact_match", "raw")]


def test_scores_are_by_metric_and_filter() -> None:
    scored = score_texts(Task("t", GENERATE_UNTIL, EXACT, (LOWER, Pipeline("raw"))), ["A", "b"], ["a", "b"])
    assert scores_of(scored) == {("exact_match", "lower"): [1.0, 1.0], ("exact_match", "raw"): [0.0, 1.0]}


def test_a_result_tells_how_it_came_about() -> None:
    scored = score_texts(Task("t", GENERATE_UNTIL, EXACT, (LOWER,)), ["A"], ["a"], keep_replies=True)
    assert (scored.task.name, scored.tables) == ("t", "evalcore")
    assert (scored.provenance[0].filter, scored.provenance[0].replies) == ("lower", ("a",))
    assert scored.columns[0].spec == EXACT[0]


def test_results_of_other_metrics_and_filters_merge() -> None:
    parts = [
        score_texts(Task("t", GENERATE_UNTIL, metrics, (pipeline,)), ["A"], ["a"], keep_replies=True)
        for metrics, pipeline in [(EXACT, LOWER), ((*EXACT, MetricSpec("includes")), Pipeline("raw"))]
    ]
    merged = merge_scored(parts)
    assert scores_of(merged) == scores_of(merge_scored(parts[::-1])) == {**scores_of(parts[0]), **scores_of(parts[1])}
    assert {one.filter for one in merged.provenance} == {"lower", "raw"}


def test_results_that_contradict_each_other_do_not_merge() -> None:
    task = Task("t", GENERATE_UNTIL, EXACT)
    with pytest.raises(EvalError, match=r"two different ones: 1\.0 and 0\.0 - at doc 0"):
        merge_scored([score_texts(task, ["a"], ["a"]), score_texts(task, ["b"], ["a"])])


def test_empty_instances_cannot_be_scored() -> None:
    with pytest.raises(EvalError, match="cannot score empty instances"):
        result_of(Sample(0, "4"), [])
    scored = score_task(Task("t", GENERATE_UNTIL, EXACT), [], [])
    assert scores_of(scored) == {("exact_match", "none"): []}
    found = report_task(scored)["exact_match,none"]
    assert (found.value, found.reason) == (None, "cannot score empty instances: there are no documents")


def test_a_document_without_an_answer_is_failed() -> None:
    (found,) = score_doc(Task("t", GENERATE_UNTIL, EXACT), Sample(0, "4"), []).values()
    assert isinstance(found, Failed)


# --- the scorer of generated texts ------------------------------------------------------------------------------------


def test_a_metric_of_texts_sees_the_result_of_its_filter() -> None:
    seen: list[GenResult] = []
    spec = MetricSpec("own", function=note(seen))
    score_texts(Task("t", GENERATE_UNTIL, (spec,), (LOWER, Pipeline("raw"))), [["A", "B"]], ["a"])
    assert [(one.filter, one.generations) for one in seen] == [("lower", ("a", "b")), ("raw", ("A", "B"))]


def test_every_generation_gets_a_score() -> None:
    collect = MetricSpec("exact_match", reducers=("collect",))
    scored = score_texts(Task("t", GENERATE_UNTIL, (collect,)), [["4", "5", "4"], ["4"]], ["4", "4"])
    assert scores_of(scored) == {("exact_match", "none"): [(1.0, 0.0, 1.0), (1.0,)]}


Calls = list[tuple[list[str], list[str], Mapping[str, object]]]


def by_name(seen: Calls) -> object:
    def own(references: list[str], predictions: list[str], **options: object) -> float:
        seen.append((references, predictions, options))
        return float(predictions[0] in references)

    return own


@pytest.mark.parametrize("gold", ["4", ("4",)], ids=["a text", "a list of one"])
def test_a_metric_is_called_with_references_predictions_and_options(gold: object) -> None:
    seen: Calls = []
    spec = MetricSpec("own", function=by_name(seen), reducers=("mean",), options=freeze_options(strict=True))  # type: ignore[arg-type]
    scored = score_texts(Task("t", GENERATE_UNTIL, (spec,)), [["4", "5"]], [gold])
    assert seen == [(["4"], ["4"], {"strict": True}), (["4"], ["5"], {"strict": True})]
    assert scores_of(scored) == {("own", "none"): [0.5]}


def test_several_targets_are_tried_one_by_one_and_the_best_counts() -> None:
    seen: Calls = []
    spec = MetricSpec("own", function=by_name(seen))  # type: ignore[arg-type]
    assert scores_of(score_texts(Task("t", GENERATE_UNTIL, (spec,)), ["four"], [("4", "four")])) == {
        ("own", "none"): [1.0]
    }
    assert [references for references, _, _ in seen] == [["4"], ["four"]]


def listed(function: object, **more: object) -> Task:
    return task_from_config(
        {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": function}], **more}
    )


def test_a_metric_of_another_signature_gets_the_pair() -> None:
    seen: list[list[str]] = []

    def own(items: list[str]) -> float:
        seen.append(items)
        return float(items[0] == items[1])

    assert scores_of(score_texts(listed(own), ["4", "5"], ["4", "4"])) == {("own", "none"): [1.0, 0.0]}
    assert seen == [["4", "4"], ["4", "5"]]


def test_a_type_error_inside_a_metric_is_no_sign_of_another_signature() -> None:
    def own(references: list[str], predictions: list[str]) -> float:
        return float(references[0] + 1)  # type: ignore[operator]

    (found,) = score_doc(listed(own), Sample(0, "4"), [heard("4")]).values()
    assert isinstance(found, Failed)
    assert "TypeError" in found.reason


def test_a_metric_that_returns_a_dict_is_a_metric_per_key() -> None:
    def both(prediction: str, gold: str) -> dict[str, float]:
        return {"same": float(prediction == gold), "length": float(len(prediction))}

    spec = MetricSpec("both", function=both, reducers=("collect",))
    scored = score_texts(Task("t", GENERATE_UNTIL, (spec,)), [["4", "55"]], ["4"])
    found = {key: scores for key, scores in scores_of(scored).items() if scores}
    assert found == {("same", "none"): [(1.0, 0.0)], ("length", "none"): [(1.0, 2.0)]}


def test_a_metric_without_a_function_is_an_error_before_anything_is_scored() -> None:
    with pytest.raises(EvalError, match=r"unknown metric 'exact_mach'.*did you mean 'exact_match'"):
        score_texts(Task("t", GENERATE_UNTIL, (MetricSpec("exact_mach"),)), ["4"], ["4"])
    skipped = score_texts(Task("t", GENERATE_UNTIL, (MetricSpec("bypass"),)), ["4"], ["4"])
    assert report_task(skipped)["bypass,none"].value is None


# --- the scorer of choices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LOGLIKELIHOOD, MULTIPLE_CHOICE])
def test_the_choices_of_a_document_are_one_result_which_metrics_take_as_it_is(kind: OutputType) -> None:
    seen: list[MCResult] = []
    own = MetricSpec("own", function=note(seen, -0.8))
    task = Task("t", kind, (MetricSpec("acc"), MetricSpec("acc_norm"), own))
    assert score_doc(task, CHOICES, likelihoods(*LLS)) == {
        ("acc", "none"): Ok(1.0),
        ("acc_norm", "none"): Ok(1.0),
        ("own", "none"): Ok(-0.8),
    }
    assert [one.lls for one in seen] == [LLS]


def test_mutual_information_is_there_if_the_choices_were_asked_without_context() -> None:
    task = Task("t", LOGLIKELIHOOD, (MetricSpec("acc"), MetricSpec("acc_mutual_info")))
    found = score_doc(task, replace(CHOICES, gold=0), likelihoods(*LLS, -9.0, -1.5, -0.8, -3.2))
    assert found == {("acc", "none"): Ok(0.0), ("acc_mutual_info", "none"): Ok(1.0)}


def test_every_filter_of_choices_sees_the_same_likelihoods() -> None:
    seen: list[MCResult] = []
    spec = MetricSpec("own", function=note(seen))
    first = Pipeline("first", (Step.of("take_first"),))
    score_doc(Task("t", LOGLIKELIHOOD, (spec,), (Pipeline("raw"), LOWER, first)), CHOICES, likelihoods(*LLS))
    assert [(one.filter, one.lls) for one in seen] == [("raw", LLS), ("lower", LLS), ("first", LLS)]


def test_a_pattern_finds_nothing_in_a_likelihood() -> None:
    pattern = Pipeline("pattern", (Step.of("regex", regex_pattern="(x)"),))
    (found,) = score_doc(
        Task("t", LOGLIKELIHOOD, (MetricSpec("acc"),), (pattern,)), CHOICES, likelihoods(*LLS)
    ).values()
    assert isinstance(found, Unscorable)


# --- the scorer of process_results ------------------------------------------------------------------------------------


def test_process_results_comes_before_the_types_scorer_once_per_filter_and_document() -> None:
    seen: list[tuple[object, object]] = []

    def process(doc: dict[str, object], results: list[object]) -> dict[str, object]:
        seen.append((doc["i"], results))
        return {"acc": 0.25}

    first = Pipeline("first", (Step.of("lowercase"), Step.of("take_first")))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("acc"),), (Pipeline("raw"), first), process)
    samples = [Sample(i, gold="A", doc=json.dumps({"i": i}).encode()) for i in range(2)]
    scored = score_task(task, samples, [heard("A", doc=i) for i in range(2)])
    assert seen == [(0, ["A"]), (1, ["A"]), (0, ["a"]), (1, ["a"])]
    assert scores_of(scored) == {("acc", "raw"): [0.25, 0.25], ("acc", "first"): [0.25, 0.25]}


def test_process_results_gets_all_replies_that_its_filter_left() -> None:
    seen: list[object] = []
    task = Task("t", GENERATE_UNTIL, (), (LOWER,), lambda doc, results: seen.extend(results))
    score_doc(task, Sample(0), [heard("A", "B")])
    assert seen == [["a", "b"]]


def test_process_results_may_return_nothing() -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m"),), process_results=lambda doc, results: None)
    assert score_doc(task, Sample(0), [heard("x")]) == {("m", "none"): NotEmitted()}


def test_process_results_of_choices_gets_pairs() -> None:
    seen: list[object] = []
    task = Task("t", LOGLIKELIHOOD, (), process_results=lambda doc, results: seen.extend(results))
    score_doc(task, CHOICES, likelihoods(*LLS))
    assert seen == [(value, True) for value in LLS]


def test_a_metric_that_process_results_did_not_declare_is_averaged_with_a_warning() -> None:
    task = Task("t", GENERATE_UNTIL, process_results=lambda doc, results: {"extra": float(results[0])})  # type: ignore[arg-type]
    report = report_task(score_texts(task, ["1", "2"], [None, None]))
    assert report["extra,none"].value == 1.5
    few, undeclared = report.warnings
    assert (
        few
        == "t: extra,none: the interval rests on 2 documents: below 30 it may be too short if scores are very skewed"
    )
    assert undeclared == "t: metric 'extra' was emitted without being declared; aggregated by mean"


# --- tasks and scorers of one's own -----------------------------------------------------------------------------------


def test_a_new_task_type_is_an_output_type_and_a_scorer() -> None:
    ranking = OutputType("ranking")

    def rank(result: MCResult) -> dict[str, object]:
        return {"rank": 1 + sum(ll > result.lls[result.gold[0]] for ll in result.lls)}

    tables = Tables(name="mine", scorers=SCORERS.set(ranking, scorer_of(MCResult, rank)))
    task = Task("t", ranking, (MetricSpec("rank"),))
    assert score_doc(task, replace(CHOICES, gold=0), likelihoods(*LLS), tables=tables) == {("rank", "none"): Ok(3.0)}
    with pytest.raises(EvalError, match="unknown output type 'ranking'"):
        score_doc(task, CHOICES, likelihoods(*LLS))


def test_a_scorer_can_be_swapped_without_touching_the_task() -> None:
    task = Task("t", GENERATE_UNTIL, EXACT)
    always = Tables(
        name="kind", scorers=SCORERS.set(GENERATE_UNTIL, scorer_of(GenResult, lambda _: {"exact_match": 1}))
    )
    assert scores_of(score_texts(task, ["5"], ["4"])) == {("exact_match", "none"): [0.0]}
    assert scores_of(score_texts(task, ["5"], ["4"], tables=always)) == {("exact_match", "none"): [1.0]}


# --- each part alone --------------------------------------------------------------------------------------------------


def test_a_scorer_alone() -> None:
    score = from_process_results(lambda doc, results: {"length": len(str(results[0]))})
    (made,) = score(Task("t", GENERATE_UNTIL), [], batch_of([GenResult(("four",), ("4",))]))
    assert (made.name, list_outcomes(made.column)) == ("length", ((0, Ok(4.0)),))


def test_what_a_scorer_prepares_alone() -> None:
    batch = batch_of([MCResult((-1.0, -2.0), (True, False), (0,), ("a", "b"))])
    (result,) = results_of(MCResult, batch)
    assert (result.lls, result.greedy, result.gold) == ((-1.0, -2.0), (True, False), (0,))  # type: ignore[union-attr]


def test_a_metric_alone() -> None:
    entry = METRICS[MULTIPLE_CHOICE]["acc"]
    assert isinstance(entry, Metric)
    check_metric(entry.score, [batch_of([MCResult((-1.0, -2.0), (True, False), (0,), ("a", "b"))])], MULTIPLE_CHOICE)


def test_a_filter_alone() -> None:
    check_filter(FILTERS["lowercase"].make(), [["A", "b"], ["C"]])


def test_a_task_alone() -> None:
    samples = [Sample(i, "4") for i in range(3)]
    check_task(Task("t", GENERATE_UNTIL, EXACT), samples, [heard(text, doc=i) for i, text in enumerate("454")])


def test_errors_say_where_they_come_from() -> None:
    def broken(*_: object) -> list[list[str]]:
        raise ValueError("torn")

    filtered = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("cut", (Step.of("custom", filter_fn=broken),)),))
    with pytest.raises(EvalError, match=r"ValueError: torn \(filter 'cut'\) - at t"):
        score_texts(filtered, ["4"], ["4"])

    def fails(prediction: str, gold: str) -> float:
        return 1 / (len(prediction) - 1)

    scored = score_texts(Task("t", GENERATE_UNTIL, (MetricSpec("own", function=fails),)), ["4", "444"], ["4", "4"])
    (_, first), (_, second) = list_outcomes(scored.column("own,none"))
    assert first == Failed("ZeroDivisionError: division by zero - at t doc 0")
    assert second == Ok(0.5)


def test_nothing_that_is_scored_is_changed() -> None:
    task, sample, answer = Task("t", GENERATE_UNTIL, EXACT, (LOWER,)), Sample(0, "a"), heard("A")
    score_doc(task, sample, [answer])
    assert (sample, answer) == (Sample(0, "a"), heard("A"))
    with pytest.raises(AttributeError):
        task.metrics = ()  # type: ignore[misc]


# --- the two examples -------------------------------------------------------------------------------------------------


def test_a_standard_task() -> None:
    task = task_from_config(
        {
            "task": "gsm8k",
            "output_type": "generate_until",
            "filter_list": [
                {
                    "name": "strict-match",
                    "filter": [{"function": "regex", "regex_pattern": r"The answer is (\-?[0-9\.\,]+)."}],
                    "metric_list": [{"metric": "exact_match"}],
                }
            ],
        }
    )
    scored = score_texts(task, ["The answer is 42.", "It is 42."], ["42", "42"])
    assert scores_of(scored) == {("exact_match", "strict-match"): [1.0, 0.0]}


def test_a_custom_task() -> None:
    def process(doc: dict[str, object], results: list[object]) -> dict[str, object]:
        return {"my_metric": 1.0 if str(results[0]).split()[-1] == doc["answer"] else 0.0}

    task = task_from_config({"task": "t", "process_results": process})
    samples = [Sample(i, doc={"answer": "4"}) for i in range(2)]  # type: ignore[arg-type]
    answers = [Answer(Instance("t", i, 0, Generate("Q")), (text,)) for i, text in enumerate(["it is 4", "5"])]
    assert scores_of(score_task(task, samples, answers)) == {MetricKey("my_metric", "none"): [1.0, 0.0]}
