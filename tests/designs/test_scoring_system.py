"""The design of metrics and scoring, element by element: results, scores, reduction, aggregation, filters, the whole flow."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, nan, sqrt
from statistics import stdev

import pytest
from msgspec.structs import replace
from scoring_parts import heard, likelihoods, score_texts, scores_of

import evalcore
from evalcore import (
    AGGREGATIONS,
    EVALCORE,
    FILTERS,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    METRICS,
    REDUCERS,
    Answer,
    Estimate,
    EvalError,
    Generate,
    Instance,
    MetricSpec,
    Ok,
    Pipeline,
    Rolling,
    Sample,
    Scored,
    Step,
    Tables,
    Task,
    aggregate_metric,
    build_report,
    group_by_doc,
    reduce_repeats,
    report_task,
    score_doc,
)
from evalcore.extensions import (
    Filter,
    GenResult,
    LLResult,
    MCResult,
    Result,
    RollingResult,
    each_text,
    metric_inputs,
    result_of,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results, repeats_of, task_from_config
from evalcore.stats import Array, Floats, Inference, Objects, Resampling, build_column
from evalcore.traces import trace_filters

EXACT = (MetricSpec("exact_match"),)
OPTIONS = tuple(f"{letter}) option{i}" for i, letter in enumerate("ABCD", 1))
LLS = (-2.1, -1.5, -0.8, -3.2)
ANATOMY = Sample(0, gold=2, choices=OPTIONS)


def chosen(result: Result) -> MCResult:
    assert isinstance(result, MCResult)
    return result


def written(result: Result) -> GenResult:
    assert isinstance(result, GenResult)
    return result


# --- 1. results: of generated texts -----------------------------------------------------------------------------------

TEXTS = written(result_of(Sample(0, ("4", "four"), doc={"q": "2+2"}), [heard("4", "5", "4")], filter="strict"))  # type: ignore[arg-type]


def test_gen_results() -> None:
    assert TEXTS.generations == ("4", "5", "4")


@pytest.mark.parametrize(("gold", "golds"), [("4", ("4",)), (("4", "four"), ("4", "four")), (None, ())])
def test_gen_target(gold: object, golds: object) -> None:
    assert written(result_of(Sample(0, gold), [heard("4")])).golds == golds  # type: ignore[arg-type]


def test_gen_instances() -> None:
    assert TEXTS.instances == (Instance("t", 0, 0, Generate("Q"), 3),)


def test_gen_repeats() -> None:
    assert (TEXTS.repeats, written(result_of(Sample(0), [heard("4")])).repeats) == (3, 1)


def test_gen_filter_name() -> None:
    assert (TEXTS.filter, written(result_of(Sample(0), [heard("4")])).filter) == ("strict", "none")


def test_gen_doc() -> None:
    assert TEXTS.doc == {"q": "2+2"}


def test_gen_from_several_instances_of_one_document() -> None:
    made = written(result_of(Sample(0, "4"), [heard("b", "c", idx=1), heard("x", doc=1), heard("a", idx=0)]))
    assert made.generations == ("a", "b", "c")


def test_gen_inputs_of_metrics() -> None:
    assert metric_inputs(TEXTS) == {"predictions": ["4", "5", "4"], "references": ["4", "four"]}


# --- 1. results: of choices -------------------------------------------------------------------------------------------

CHOSEN = chosen(
    result_of(Sample(0, 1, ("a", "bé")), likelihoods(-1.0, -2.0, -1.5, -4.0, choices=("a", "bé")), filter="strict")
)


def test_mc_lls() -> None:
    assert CHOSEN.lls == (-1.0, -2.0)


def test_mc_is_greedy() -> None:
    assert CHOSEN.greedy == (True, True)


@pytest.mark.parametrize(("gold", "golds"), [(1, (1,)), ("bé", (1,)), ((0, 1), (0, 1))])
def test_mc_target(gold: object, golds: object) -> None:
    sample = Sample(0, gold, ("a", "bé"))  # type: ignore[arg-type]
    assert chosen(result_of(sample, likelihoods(-1.0, -2.0, choices=("a", "bé")))).gold == golds


def test_mc_instances() -> None:
    assert [(one.idx, one.request.context, one.request.continuation) for one in CHOSEN.instances] == [  # type: ignore[union-attr]
        (0, "Q", "a"),
        (1, "Q", "bé"),
        (2, "", "a"),
        (3, "", "bé"),
    ]


def test_mc_choices_and_their_lengths() -> None:
    assert (CHOSEN.choices, CHOSEN.chars, CHOSEN.bytes, CHOSEN.tokens) == (("a", "bé"), (1, 2), (1, 3), (1, 2))


def test_mc_mutual_information_is_with_context_minus_without() -> None:
    assert CHOSEN.mutual_information == (-1.0 - -1.5, -2.0 - -4.0)
    alone = chosen(result_of(Sample(0, 1, ("a", "b")), likelihoods(-1.0, -2.0, choices=("a", "b"))))
    assert alone.mutual_information == ()


def test_mc_is_made_of_the_instances_of_its_document_in_order() -> None:
    mixed = [*likelihoods(*LLS, choices=OPTIONS)[::-1], *likelihoods(*LLS[::-1], choices=OPTIONS, doc=1)]
    assert chosen(result_of(ANATOMY, mixed)).lls == LLS


def test_mc_inputs_of_metrics() -> None:
    assert metric_inputs(CHOSEN) is CHOSEN


@pytest.mark.parametrize(
    ("metric", "right"), [("acc", 0), ("acc_norm", 1), ("acc_bytes", 2), ("acc_token", 3), ("acc_mutual_info", 4)]
)
def test_mc_lengths_normalise(metric: str, right: int) -> None:
    """Each choice is best by one measure alone."""
    choices = ("a", "b" * 10, "é" * 7, "d", "e")
    values = (-3.0, -6.0, -5.6, -4.0, -5.0)
    answers = likelihoods(*values, *(-3.0, -6.0, -5.6, -4.0, -9.0), choices=choices)
    tokens = (1, 2, 2, 8, 1)
    counted = [replace(one, replies=((*one.replies[0][:2], tokens[one.idx % 5]),)) for one in answers]  # type: ignore[index]
    found = score_doc(Task("t", LOGLIKELIHOOD, (MetricSpec(metric),)), Sample(0, right, choices), counted)
    assert found == {(metric, "none"): Ok(1.0)}


# --- 1. results: what they share --------------------------------------------------------------------------------------


def test_all_results_are_one_type() -> None:
    single = result_of(Sample(0, "a"), likelihoods(-1.5, choices="a"))
    rolling = result_of(Sample(0, "a b"), [Answer(Instance("t", 0, 0, Rolling("a b")), (-8.0,))])
    for result in (TEXTS, CHOSEN, single, rolling):
        assert isinstance(result, Result)
        assert result.instances[0].task == "t"


def test_the_request_decides_what_is_made() -> None:
    made = [
        result_of(ANATOMY, likelihoods(*LLS, choices=OPTIONS)),
        result_of(Sample(0, "4"), [heard("4")]),
        result_of(Sample(0, "a"), likelihoods(-1.5, choices="a")),
        result_of(Sample(0, "a b"), [Answer(Instance("t", 0, 0, Rolling("a b")), (-8.0,))]),
    ]
    assert list(map(type, made)) == [MCResult, GenResult, LLResult, RollingResult]


def test_results_hold_no_scores_and_cannot_change() -> None:
    assert not hasattr(TEXTS, "scores")
    with pytest.raises(AttributeError):
        TEXTS.generations = ()  # type: ignore[misc]


# --- 2. from instances to scores --------------------------------------------------------------------------------------


def test_instances_are_grouped_by_document_and_sorted_by_idx() -> None:
    made = [Instance("t", doc, idx, Generate("Q")) for doc, idx in [(5, 1), (3, 0), (5, 0)]]
    assert {doc: [one.idx for one in several] for doc, several in group_by_doc(made).items()} == {3: [0], 5: [0, 1]}
    assert dict(group_by_doc([])) == {}


def test_filter_then_document_then_metric() -> None:
    seen: list[tuple[str, str, int]] = []

    def spy(name: str) -> MetricSpec:
        def own(result: GenResult) -> float:
            seen.append((result.filter, name, result.sample.doc_id if result.sample else -1))
            return 1.0

        return MetricSpec(name, function=own)

    pipelines = (Pipeline("one"), Pipeline("two", (), (spy("b"),)))
    scored = score_texts(Task("t", GENERATE_UNTIL, (spy("a"),), pipelines), ["x", "y"], ["x", "y"])
    assert seen == [("one", "a", 0), ("one", "a", 1), ("two", "b", 0), ("two", "b", 1)]
    assert scores_of(scored) == {("a", "one"): [1.0, 1.0], ("b", "two"): [1.0, 1.0]}


def test_a_score_that_is_none_is_no_score() -> None:
    def own(prediction: str, gold: str) -> float | None:
        return None if prediction == "?" else 1.0

    scored = score_texts(Task("t", GENERATE_UNTIL, (MetricSpec("own", function=own),)), ["4", "?"], ["4", "4"])
    assert scores_of(scored) == {("own", "none"): [1.0]}
    found = report_task(scored)["own,none"]
    assert (found.value, found.n, found.counts.unscorable) == (1.0, 1, 1)


def test_one_function_may_score_texts_by_several_metrics() -> None:
    def both(prediction: str, gold: str) -> dict[str, float]:
        return {"first": float(prediction == gold), "second": 0.5}

    report = report_task(score_texts(Task("t", GENERATE_UNTIL, (MetricSpec("both", function=both),)), ["4"], ["4"]))
    assert {str(key): estimate.value for key, estimate in report.estimates} == {"first,none": 1.0, "second,none": 0.5}


# --- 3. aggregation ---------------------------------------------------------------------------------------------------


def aggregate(name: str, rows: Sequence[object], *, tables: Tables = EVALCORE, draws: int | None = None) -> Estimate:
    kind = Floats(Array(rows)) if isinstance(rows[0], float) else Objects(tuple(rows))
    inference = Inference(resampling=Resampling(draws))
    return aggregate_metric(tables.aggregations[name], build_column(range(len(rows)), kind), inference=inference)


@pytest.mark.parametrize(
    ("name", "rows", "value"),
    [
        ("mean", [1.0, 0.0, 1.0, 1.0], 0.75),
        ("nanmean", [1.0, nan, 0.0], 0.5),
        ("median", [3.0, 1.0, 2.0], 2.0),
        ("perplexity", [-1.0, -2.0], exp(1.5)),
        ("weighted_perplexity", [(-1.0, 2), (-3.0, 4)], exp(4 / 6)),
        ("bits_per_byte", [(-1.0, 2), (-3.0, 4)], 4 / 6 / log(2)),
        ("f1", [(1, 1), (0, 1), (1, 0), (1, 1)], 2 / 3),
        ("matthews_corrcoef", [(1, 1), (0, 0), (1, 0), (0, 0)], 1 / sqrt(3)),
        ("acc_all", [(True, ("p", 1)), (False, ("p", 1)), (True, ("q", 1))], 0.5),
    ],
)
def test_aggregations(name: str, rows: Sequence[object], value: float) -> None:
    for tables in (EVALCORE, LM_EVAL_0_4_13):
        assert aggregate(name, rows, tables=tables, draws=100).value == pytest.approx(value, rel=1e-15)


def test_nanmean_of_nothing_but_nan_is_no_number() -> None:
    found = aggregate("nanmean", [nan, nan])
    assert (found.value, found.reason) == (None, "nanmean has no finite value on these documents")


def test_the_median_of_an_even_number_is_between_the_middle_ones() -> None:
    scores = [4.0, 1.0, 2.0, 3.0]
    assert aggregate("median", scores).value == 2.5
    assert aggregate("median", scores, tables=LM_EVAL_0_4_13, draws=100).value == 3.0


def test_an_aggregation_of_ones_own() -> None:
    spec = MetricSpec("exact_match", aggregation=lambda scores: max(scores) - min(scores))
    assert report_task(score_texts(Task("t", GENERATE_UNTIL, (spec,)), "45", "44"))["exact_match,none"].value == 1.0
    tables = Tables(name="mine", aggregations=AGGREGATIONS.set("average", AGGREGATIONS["mean"]))
    named = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", aggregation="average"),))
    assert report_task(score_texts(named, "45", "44", tables=tables), tables=tables)["exact_match,none"].value == 0.5


def test_a_metric_without_an_aggregation_is_averaged_with_a_warning() -> None:
    spec = MetricSpec("own", function=lambda prediction, gold: len(prediction))
    report = report_task(score_texts(Task("t", GENERATE_UNTIL, (spec,)), ["a", "abc"], ["x", "x"]))
    assert report["own,none"].value == 2.0
    few, undefined = report.warnings
    assert (
        few == "t: own,none: the interval rests on 2 documents: below 30 it may be too short if scores are very skewed"
    )
    assert undefined == "t: no aggregation defined for 'own', using mean"


def test_an_estimate_counts_its_documents() -> None:
    report = report_task(score_texts(Task("t", GENERATE_UNTIL, EXACT), "454", "444"))
    assert (report["exact_match,none"].n, report.n_docs) == (3, 3)
    assert lm_eval_results(build_report([report]))["results"]["t"]["sample_len"] == 3  # type: ignore[index]


# --- 3. standard errors -----------------------------------------------------------------------------------------------

MEAN = [1.0, 0.0, 1.0, 1.0]


def test_the_mean_has_a_closed_form() -> None:
    for tables in (EVALCORE, LM_EVAL_0_4_13):
        assert aggregate("mean", MEAN, tables=tables).stderr == pytest.approx(stdev(MEAN) / 2, rel=1e-15)


def test_acc_all_has_a_closed_form_over_questions() -> None:
    rows = [(True, ("p", 1)), (False, ("p", 1)), (True, ("q", 1)), (True, ("q", 2))]
    assert aggregate("acc_all", rows).stderr == pytest.approx(stdev([0, 1, 1]) / sqrt(3), rel=1e-15)


PAIRS = [(1, 1), (0, 1), (1, 0), (0, 0), (1, 1)] * 6
BOOTSTRAPPED: dict[str, Sequence[object]] = {
    "median": [3.0, 1.0, 2.0],
    "nanmean": [3.0, 1.0, 2.0],
    "perplexity": [-1.0, -2.0, -1.5],
    "f1": PAIRS,
    "matthews_corrcoef": PAIRS,
}


@pytest.mark.parametrize("name", BOOTSTRAPPED)
def test_what_is_resampled_by_lm_eval_is_exact_here(name: str) -> None:
    exact = aggregate(name, BOOTSTRAPPED[name])
    assert exact.signature.partition("|ci:")[0] == ("maritz-jarrett" if name == "median" else "delta")
    replayed = aggregate(name, BOOTSTRAPPED[name], tables=LM_EVAL_0_4_13, draws=50)
    assert replayed.signature.partition("|ci:")[0] == "lm-eval-bootstrap(draws=50)"
    assert replayed.stderr == pytest.approx(exact.stderr, rel=0.5)


def test_a_function_of_ones_own_is_resampled() -> None:
    spec = MetricSpec("exact_match", aggregation=lambda scores: max(scores) - min(scores))
    scored = score_texts(Task("t", GENERATE_UNTIL, (spec,)), "454", "444")
    found = report_task(scored, inference=Inference(resampling=Resampling(50)))["exact_match,none"]
    assert "bootstrap(draws=50,seed=0)" in found.signature
    assert found.stderr


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_metrics_of_translation_are_resampled_at_most_a_hundred_times(metric: str) -> None:
    pytest.importorskip("sacrebleu")
    said, golds = ["a b c d f", "a b c d e f", "a b x d e"], ["a b c d e"] * 3
    for tables, method in ((LM_EVAL_0_4_13, "lm-eval-bootstrap(draws=100)"), (EVALCORE, "delta")):
        scored = score_texts(Task("t", GENERATE_UNTIL, (MetricSpec(metric),)), said, golds, tables=tables)
        report = report_task(scored, tables=tables, inference=Inference(resampling=Resampling(1000)))
        assert f"|se:{method}|" in report[f"{metric},none"].signature


def test_what_has_no_formula_in_lm_eval_has_one_here() -> None:
    rows = [(-1.0, 2), (-3.0, 4)]
    assert aggregate("weighted_perplexity", rows, tables=LM_EVAL_0_4_13).stderr is None
    assert aggregate("weighted_perplexity", rows).stderr


def results_row(scored: Scored, draws: int | None = None) -> object:
    report = report_task(scored, inference=Inference(resampling=Resampling(draws)))
    return lm_eval_results(build_report([report]))["results"]["t"]  # type: ignore[index]


def test_bootstrap_iters_0_turns_errors_off() -> None:
    scored = score_texts(Task("t", GENERATE_UNTIL, EXACT), "45", "44")
    found = report_task(scored, inference=Inference(resampling=Resampling(0)))["exact_match,none"]
    assert (found.value, found.stderr) == (0.5, None)
    assert results_row(scored, 0)["exact_match_stderr,none"] == "N/A"  # type: ignore[index]


@pytest.mark.parametrize("draws", [1.5, "100", True])
def test_bootstrap_iters_is_an_integer(draws: object) -> None:
    with pytest.raises(EvalError, match="expected bootstrap_iters to be an integer"):
        Resampling(draws)  # type: ignore[arg-type]
    with pytest.raises(EvalError, match="bootstrap_iters"):
        evalcore.run(model="dummy", tasks=["t"], bootstrap_iters=draws)


def test_one_document_has_no_error() -> None:
    row = results_row(score_texts(Task("t", GENERATE_UNTIL, EXACT), "4", "4"))
    assert (row["exact_match,none"], row["exact_match_stderr,none"]) == (1.0, "N/A")  # type: ignore[index]


def test_keys_of_the_output() -> None:
    pipelines = (Pipeline("strict"), Pipeline("flexible", (), (MetricSpec("f1"),)))
    row = results_row(score_texts(Task("t", GENERATE_UNTIL, EXACT, pipelines), "45", "44"))
    numbers = [key for key in row if "," in key]  # type: ignore[attr-defined]
    assert numbers == ["exact_match,strict", "exact_match_stderr,strict", "f1,flexible", "f1_stderr,flexible"]


# --- 4. reduction -----------------------------------------------------------------------------------------------------

REPEATS = [[0.8, 0.75, 0.78], [0.9, 0.85, 0.92], [0.7, 0.72, 0.69]]


def middle(scores: list[float]) -> float:
    return sorted(scores)[len(scores) // 2]


def reduce_by(reducer: object, rows: Sequence[Sequence[float]] = REPEATS) -> Scored:
    """Texts that are their own score."""
    spec = MetricSpec("score", reducers=(reducer,), function=lambda prediction, gold: float(prediction))  # type: ignore[arg-type]
    return score_texts(Task("t", GENERATE_UNTIL, (spec,)), [list(map(str, row)) for row in rows], ["x"] * len(rows))


@pytest.mark.parametrize(
    ("reducer", "reduced"),
    [
        ("max", [0.8, 0.92, 0.72]),
        ("min", [0.75, 0.85, 0.69]),
        ("mean", [sum(row) / 3 for row in REPEATS]),
        ("median", [0.78, 0.9, 0.7]),
        ("first", [0.8, 0.9, 0.7]),
        (max, [0.8, 0.92, 0.72]),
        (middle, [0.78, 0.9, 0.7]),
    ],
)
def test_reducers(reducer: object, reduced: list[float]) -> None:
    assert scores_of(reduce_by(reducer)) == {("score", "none"): pytest.approx(reduced, rel=1e-15)}


def test_the_best_of_three_repeats_then_the_mean() -> None:
    scored = reduce_by("max")
    assert scores_of(scored)["score", "none"] == [0.80, 0.92, 0.72]
    assert round(report_task(scored)["score,none"].value or 0, 4) == 0.8133


def test_columns_are_reduced_without_a_task() -> None:
    columns = [build_column(range(3), Floats(Array(scores))) for scores in zip(*REPEATS, strict=True)]
    assert reduce_repeats("max", columns).rows == Floats(Array([0.80, 0.92, 0.72]))
    assert reduce_repeats("max", columns[:1]) == columns[0]


def test_the_median_of_an_even_number_of_repeats() -> None:
    assert scores_of(reduce_by("median", [[0.2, 0.4]]))["score", "none"] == [pytest.approx(0.3)]
    assert scores_of(reduce_by(middle, [[0.2, 0.4]]))["score", "none"] == [0.4]


def test_single_scores_need_no_reducer() -> None:
    assert scores_of(score_texts(Task("t", GENERATE_UNTIL, EXACT), "45", "44")) == {("exact_match", "none"): [1.0, 0.0]}


def test_one_repeat_reduces_to_itself() -> None:
    for reducer in ("max", "min", "mean", "median", "first"):
        assert scores_of(reduce_by(reducer, [[0.8], [0.9]]))["score", "none"] == [0.8, 0.9]


def test_several_generations_without_a_reducer() -> None:
    task = Task("t", GENERATE_UNTIL, EXACT)
    scored = score_texts(task, [["4", "5"]], ["4"])
    assert scores_of(scored) == {("exact_match", "none"): [1.0]}
    assert "only the first reply is scored" in report_task(scored).warnings[0]
    with pytest.raises(EvalError, match="expected one reply per document or a reducer, got 2 replies"):
        score_texts(replace(task, filters=(Pipeline("raw"),)), [["4", "5"]], ["4"])


def test_repeats_of_a_task_file() -> None:
    config = {
        "task": "t",
        "output_type": "generate_until",
        "metric_list": [{"metric": "exact_match"}],
        "generation_kwargs": {"do_sample": True, "temperature": 0.8, "num_return_sequences": 3},
        "repeats": 3,
        "repeat_cfg": {"reducer": "max"},
    }
    assert repeats_of(config) == repeats_of({key: config[key] for key in ("repeats",)}) == 3
    assert repeats_of({"generation_kwargs": config["generation_kwargs"]}) == 3
    scored = score_texts(task_from_config(config), [["5", "4", "5"], ["5", "5", "5"]], ["4", "4"])
    assert scores_of(scored) == {("exact_match", "none"): [1.0, 0.0]}
    called = task_from_config({**config, "repeat_cfg": {"reducer": min}})
    assert scores_of(score_texts(called, [["5", "4", "5"]], ["4"])) == {("exact_match", "none"): [0.0]}


def test_choices_of_a_document_are_one_score() -> None:
    task = Task("t", LOGLIKELIHOOD, (MetricSpec("acc"),))
    assert score_doc(task, ANATOMY, likelihoods(*LLS, choices=OPTIONS)) == {("acc", "none"): Ok(1.0)}


def test_a_reducer_of_ones_own_has_a_name() -> None:
    tables = Tables(name="mine", reducers=REDUCERS.set("best", REDUCERS["max"]))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match", reducers=("best",)),))
    assert scores_of(score_texts(task, [["5", "4"]], ["4"], tables=tables)) == {("exact_match", "none"): [1.0]}


# --- 5. filters -------------------------------------------------------------------------------------------------------


class Shout:
    """A filter as task files bring it: a class that is made with options and applied to all replies."""

    def __init__(self, end: str = "") -> None:
        self.end = end

    def apply(self, resps: list[list[str]], docs: list[dict[str, object]]) -> list[list[str]]:
        assert len(resps) == len(docs)
        return [[text.upper() + self.end for text in several] for several in resps]


def test_a_filter_gets_all_replies_and_documents_and_keeps_their_order() -> None:
    steps = [{"function": Shout, "end": "!"}]
    task = task_from_config(
        {
            "task": "t",
            "output_type": "generate_until",
            "metric_list": [{"metric": "exact_match"}],
            "filter_list": [{"name": "loud", "filter": steps}],
        }
    )
    said = ["hello world", "hi there", "goodbye"]
    scored = score_texts(task, said, [text.upper() + "!" for text in said], keep_replies=True)
    assert scored.provenance[0].replies == ("HELLO WORLD!", "HI THERE!", "GOODBYE!")
    assert scores_of(scored) == {("exact_match", "loud"): [1.0, 1.0, 1.0]}


def test_a_filter_of_ones_own_takes_options() -> None:
    def cut(length: int = 1) -> object:
        return each_text(lambda text: text[:length])

    tables = Tables(name="mine", filters=FILTERS.set("cut", Filter(cut)))  # type: ignore[arg-type]
    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("two", (Step.of("cut", length=2),)),))
    assert scores_of(score_texts(task, ["Paris"], ["Pa"], tables=tables)) == {("exact_match", "two"): [1.0]}


LENIENT = Pipeline("exact_match_lowercase", (Step.of("lowercase"), Step.of("strip_punctuation")))


def test_lowercase_then_strip_punctuation() -> None:
    steps = trace_filters(LENIENT, ["Hello, World!", "Hi there!"], Sample(0))
    assert [one.replies for one in steps] == [
        ("Hello, World!", "Hi there!"),
        ("hello, world!", "hi there!"),
        ("hello world", "hi there"),
    ]


def test_filters_apply_in_order() -> None:
    steps = (Step.of("regex", regex_pattern="([a-z]+)"), Step.of("lowercase"))
    pipelines = (Pipeline("lowercase last", steps), Pipeline("lowercase first", steps[::-1]))
    scored = score_texts(Task("t", GENERATE_UNTIL, EXACT, pipelines), ["HELLO you"], ["you"], keep_replies=True)
    assert [one.replies for one in scored.provenance] == [("you",), ("hello",)]
    assert [trace_filters(one, ["HELLO you"], Sample(0))[-1].replies for one in pipelines] == [("you",), ("hello",)]


def test_several_pipelines_see_the_same_answers() -> None:
    task = Task("t", GENERATE_UNTIL, EXACT, (Pipeline("default"), LENIENT))
    scored = score_texts(task, ["Hello, World!", "hi"], ["hello world", "hi"], keep_replies=True)
    assert {one.filter: one.replies for one in scored.provenance} == {
        "default": ("Hello, World!", "hi"),
        "exact_match_lowercase": ("hello world", "hi"),
    }
    assert scores_of(scored) == {
        ("exact_match", "default"): [0.0, 1.0],
        ("exact_match", "exact_match_lowercase"): [1.0, 1.0],
    }


def test_without_filters_answers_pass_through() -> None:
    plain = score_texts(Task("t", GENERATE_UNTIL, EXACT), [" 4\n"], ["4"], keep_replies=True)
    assert (plain.provenance[0].filter, plain.provenance[0].replies) == ("none", (" 4\n",))
    assert report_task(plain).warnings == ()
    nothing = report_task(score_texts(Task("t", GENERATE_UNTIL, EXACT), [], []))
    assert "cannot score empty instances" in (nothing["exact_match,none"].reason or "")


def test_each_filter_has_metrics_of_its_own() -> None:
    """Names that evalcore does not know come with their functions."""

    def f1_score(prediction: str, gold: str) -> float:
        return 0.5

    def bert_score(prediction: str, gold: str) -> float:
        return 0.9

    strict = {"name": "strict", "metric_list": [{"metric": "exact_match"}]}
    flexible = {
        "name": "flexible",
        "metric_list": [{"metric": "exact_match"}, {"metric": f1_score}, {"metric": bert_score}],
    }
    task = task_from_config({"task": "t", "output_type": "generate_until", "filter_list": [strict, flexible]})
    assert list(scores_of(score_texts(task, ["4"], ["4"]))) == [
        ("exact_match", "strict"),
        ("exact_match", "flexible"),
        ("f1_score", "flexible"),
        ("bert_score", "flexible"),
    ]


# --- the metrics by name ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "aggregation"),
    [
        ("acc", "mean"),
        ("acc_norm", "mean"),
        ("exact_match", "mean"),
        ("bleu", "bleu"),
        ("chrf", "chrf"),
        ("ter", "ter"),
        ("f1", "f1"),
        ("mcc", "matthews_corrcoef"),
        ("perplexity", "perplexity"),
        ("word_perplexity", "weighted_perplexity"),
        ("byte_perplexity", "weighted_perplexity"),
    ],
)
def test_the_metrics_of_the_design_are_registered(metric: str, aggregation: str) -> None:
    assert aggregation in {known[metric].aggregation for known in METRICS.values() if metric in known}
