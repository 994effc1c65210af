"""Whole evaluations inside Inspect, offline, with and without evalcore: equal where Inspect is right, right where not."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from math import isnan, sqrt
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from evalcore import EvalError, MetricSpec, Step
from evalcore.adapters.inspect import close_values, evalcore_metrics, evalcore_reducers, evalcore_scorer
from evalcore.extensions import per_document

inspect_ai = pytest.importorskip("inspect_ai")

from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import (  # noqa: E402
    accuracy,
    choice,
    ci,
    grouped,
    includes,
    match,
    mean_score,
    pass_at,
    pass_k,
    stderr,
)
from inspect_ai.solver import multiple_choice  # noqa: E402

LAST_NUMBER = Step.of("regex", regex_pattern=r"(-?[0-9]+)", group_select=-1)
CELL = Callable[[list[ChatMessage]], str]


def run(samples: Sequence[Sample], reply: CELL, where: Path, **task: Any) -> Any:
    """One evaluation on Inspect's mock model; its log."""

    def answer(messages: list[ChatMessage], *rest: object) -> ModelOutput:
        said = ModelOutput.from_content("mockllm", reply(messages))
        return said.model_copy(update={"usage": ModelUsage()})  # else it counts tokens with a file off the web

    log = inspect_ai.eval(
        inspect_ai.Task(dataset=list(samples), **task),
        model=get_model("mockllm/model", custom_outputs=answer, memoize=False),
        display="none",
        log_dir=str(where),
    )[0]
    assert log.status == "success", log.error
    return log


def numbers(log: Any, name: str, reducer: str | None = None) -> dict[str, float]:
    """The metrics of a scorer in a log."""
    (found,) = [one for one in log.results.scores if one.name == name and reducer in (None, one.reducer)]
    return {key.removeprefix("evalcore/estimate_"): one.value for key, one in found.metrics.items()}


def sums(n: int, wrong: Callable[[int], bool]) -> tuple[list[Sample], CELL]:
    """Sums, and a model that gets some of them wrong."""
    samples = [
        Sample(
            input=f"{i} + 1", target=str(i + 1), id=i + 1, metadata={"passage": f"p{i // 3}", "topic": "ab"[i % 4 == 0]}
        )
        for i in range(n)
    ]

    def reply(messages: list[ChatMessage]) -> str:
        i = int(messages[-1].text.split()[0])
        return f"I think it is {i + 1 + int(wrong(i))}"

    return samples, reply


# --- equal where Inspect is right --------------------------------------------------------------------------------


def test_a_whole_evaluation_with_and_without_evalcore(tmp_path: Path) -> None:
    samples, reply = sums(25, lambda i: i % 3 == 0)
    ours = evalcore_scorer(["exact_match"], [LAST_NUMBER])
    log = run(samples, reply, tmp_path, scorer=[match(numeric=True), ours])
    theirs, found = numbers(log, "match"), numbers(log, "evalcore_scorer")
    assert found["value"] == pytest.approx(theirs["accuracy"], rel=1e-12)
    assert found["stderr"] == pytest.approx(theirs["stderr"], rel=1e-12)
    assert found["n"] == 25
    assert found["ci_low"] < found["value"] < found["ci_high"]
    for sample in log.samples:
        score = sample.scores["evalcore_scorer"]
        assert score.as_float() == (sample.scores["match"].value == "C")
        assert score.answer == sample.output.completion.split()[-1]
        assert score.explanation == f"none: regex gave {score.answer!r} by rule 0"
        assert score.metadata["filters"]["none"] == [{"filter": "regex", "replies": [score.answer], "rules": [0]}]


def test_our_metrics_close_inspects_own_scorers(tmp_path: Path) -> None:
    samples, reply = sums(18, lambda i: i % 5 < 2)
    log = run(samples, reply, tmp_path, scorer=includes(), metrics=[accuracy(), *evalcore_metrics(interval="t"), ci()])
    found = numbers(log, "includes")
    assert found["value"] == pytest.approx(found["accuracy"], rel=1e-12)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((found["lower"], found["upper"]), rel=1e-9)


def test_clusters_as_inspect_has_them(tmp_path: Path) -> None:
    samples, reply = sums(24, lambda i: i % 7 < 3)
    ours = evalcore_scorer(["includes"], cluster="passage")
    log = run(samples, reply, tmp_path, scorer=[includes(), ours])
    plain = run(samples, reply, tmp_path, scorer=includes(), metrics=[stderr(cluster="passage")])
    assert numbers(log, "evalcore_scorer")["stderr"] == pytest.approx(numbers(plain, "includes")["stderr"], rel=1e-9)
    assert numbers(log, "evalcore_scorer")["stderr"] != pytest.approx(numbers(log, "includes")["stderr"])


def test_several_metrics_and_pipelines_are_numbers_by_name(tmp_path: Path) -> None:
    samples, reply = sums(9, lambda i: i % 2 == 0)
    both = [
        {"name": "number", "filter": [{"function": "regex", "regex_pattern": "([0-9]+)", "group_select": -1}]},
        {"name": "whole", "filter": [{"function": "lowercase"}]},
    ]
    log = run(samples, reply, tmp_path, scorer=evalcore_scorer(["exact_match", "includes"], both))
    found = {one.name: numbers(log, one.name)["value"] for one in log.results.scores}
    wrong = pytest.approx(4 / 9)
    assert found == {
        "exact_match,number": wrong,
        "includes,number": wrong,
        "exact_match,whole": 0.0,
        "includes,whole": wrong,
    }
    again = evalcore_scorer(**{key: log.results.scores[0].params[key] for key in ("metrics", "filters")})
    rescored = inspect_ai.score(log, again, action="overwrite", display="none")
    assert {one.name: numbers(rescored, one.name)["value"] for one in rescored.results.scores} == found


# --- epochs --------------------------------------------------------------------------------------------------------


def drawn(seed: int) -> CELL:
    """A model that is right two times in three, by the luck of the draw."""
    draw = np.random.default_rng(seed)

    def reply(messages: list[ChatMessage]) -> str:
        i = int(messages[-1].text.split()[0])
        return str(i + 1 if draw.random() < 0.67 else 99)

    return reply


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("mean", mean_score()), ("pass@2", pass_at(2)), ("pass^2", pass_k(2))],
    ids=["mean", "pass@2", "pass^2"],
)
def test_epochs_reduce_as_inspect_reduces_them(ours: str, theirs: Any, tmp_path: Path) -> None:
    samples, _ = sums(10, lambda i: False)
    epochs = inspect_ai.Epochs(4, [*evalcore_reducers(ours), theirs])
    log = run(samples, drawn(3), tmp_path, scorer=evalcore_scorer(), epochs=epochs)
    one, two = (
        [(each.sample_id, each.value) for each in part.samples]
        for part in log.reductions
        if part.scorer == "evalcore_scorer"
    )
    assert one == [(key, pytest.approx(value)) for key, value in two]
    assert len({value for _, value in one}) > 2
    names = [found.reducer for found in log.results.scores]
    assert names[0] == f"evalcore/{ours}"
    found = log.results.scores[0].metrics
    values = [value for _, value in one]
    assert found["stderr"].value == pytest.approx(np.std(values, ddof=1) / sqrt(10))
    assert found["n"].value == 10


def test_reducers_of_our_own(tmp_path: Path) -> None:
    samples, _ = sums(8, lambda i: False)
    epochs = inspect_ai.Epochs(3, evalcore_reducers("maj@3", "pass@5", "consistency"))
    log = run(samples, drawn(1), tmp_path, scorer=evalcore_scorer(["exact_match", "includes"]), epochs=epochs)
    by_reducer = {part.reducer: part.samples for part in log.reductions}
    majority = {each.sample_id: each.value["exact_match"] for each in by_reducer["evalcore/maj@3"]}
    right: dict[object, list[float]] = {}
    for sample in log.samples:
        right.setdefault(sample.id, []).append(sample.scores["evalcore_scorer"].value["exact_match"])
    assert majority == {key: float(sum(values) >= 2) for key, values in right.items()}
    assert all(isnan(each.value["exact_match"]) for each in by_reducer["evalcore/pass@5"])  # erratum E28: not 1.0
    lost = next(one for one in log.results.scores if one.reducer == "evalcore/pass@5")
    assert (lost.scored_samples, lost.unscored_samples) == (0, 8)


@pytest.mark.parametrize("seed", range(3))
def test_cr1_gives_inspects_errors_of_clusters(seed: int) -> None:
    from inspect_ai.scorer import SampleScore, Score, stderr

    rng = np.random.default_rng(seed)
    passages = rng.choice(6, 40, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]).tolist()
    scores = [
        SampleScore(score=Score(value=float(rng.random() < 0.6)), sample_id=i, sample_metadata={"passage": passage})
        for i, passage in enumerate(passages)
    ]
    theirs = stderr(cluster="passage")(scores)
    own, plain = (evalcore_metrics(cluster="passage", stderr=form)[0](scores) for form in ("cr1", "cr2"))  # type: ignore[arg-type]
    assert own["stderr"] == pytest.approx(theirs, rel=1e-10)  # type: ignore[index, call-overload]
    assert plain["stderr"] > own["stderr"]  # type: ignore[index, call-overload, operator]


def test_epochs_that_nobody_reduces_are_no_new_questions() -> None:
    from inspect_ai.scorer import SampleScore, Score

    close = evalcore_metrics()[0]
    scores = [SampleScore(score=Score(value=float(i % 2)), sample_id=i) for i in range(6) for _ in range(5)]
    found, once = close(scores), close(scores[::5])  # type: ignore[arg-type]
    assert found["stderr"] == pytest.approx(once["stderr"])  # type: ignore[index, call-overload]


# --- right where Inspect is not ----------------------------------------------------------------------------------


def test_one_sample_has_no_error(tmp_path: Path) -> None:
    """Erratum E38."""
    samples, reply = sums(1, lambda i: False)
    log = run(samples, reply, tmp_path, scorer=[includes(), evalcore_scorer(["includes"])])
    assert numbers(log, "includes")["stderr"] == 0.0
    found = numbers(log, "evalcore_scorer")
    assert isnan(found["stderr"])
    assert (found["value"], found["n"]) == (1.0, 1)


def test_all_right_is_no_certainty(tmp_path: Path) -> None:
    samples, reply = sums(20, lambda i: False)
    log = run(samples, reply, tmp_path, scorer=includes(), metrics=[ci(), *evalcore_metrics()])
    found = numbers(log, "includes")
    assert (found["lower"], found["upper"]) == (1.0, 1.0)
    assert found["ci_low"] == pytest.approx(close_values([1.0] * 20).ci[0])  # type: ignore[index]
    assert 0.7 < found["ci_low"] < 0.9
    assert found["ci_high"] == 1.0


def test_the_error_of_groups_is_not_the_mean_of_their_errors(tmp_path: Path) -> None:
    samples, reply = sums(24, lambda i: i % 5 == 0)
    theirs = grouped(stderr(), "topic", all="groups")
    log = run(samples, reply, tmp_path, scorer=includes(), metrics=[theirs, *evalcore_metrics(group="topic")])
    found = numbers(log, "includes")
    parts = [
        [score.scores["includes"].value == "C" for score in log.samples if score.metadata["topic"] == topic]
        for topic in "ab"
    ]
    assert found["value"] == pytest.approx(np.mean([np.mean(part) for part in parts]))
    errors = [np.std(part, ddof=1) / sqrt(len(part)) for part in parts]
    assert found["stderr"] == pytest.approx(sqrt(sum(error**2 for error in errors)) / 2)
    assert found["all"] == pytest.approx(np.mean(errors))
    assert found["all"] > 1.2 * found["stderr"]


def test_one_number_alone_goes_into_inspects_groups(tmp_path: Path) -> None:
    samples, reply = sums(12, lambda i: i % 5 == 0)
    low = grouped(evalcore_metrics(only="ci_low")[0], "topic", all=False)
    found = numbers(run(samples, reply, tmp_path, scorer=includes(), metrics=[low]), "includes")
    assert set(found) == {"a", "b"}
    assert all(0 < value < 1 for value in found.values())


def test_what_cannot_be_scored_is_unscored_not_zero(tmp_path: Path) -> None:
    samples, reply = sums(6, lambda i: False)
    inverse = MetricSpec("inverse", function=per_document(lambda text, gold: 1 / (int(text) - 3)))
    log = run(samples, reply, tmp_path, scorer=evalcore_scorer([inverse], [LAST_NUMBER]))
    (result,) = log.results.scores
    assert (result.scored_samples, result.unscored_samples) == (5, 1)
    lost = log.samples[2].scores["evalcore_scorer"]
    assert isnan(lost.value)
    assert lost.reason == "scoring_failed"
    assert "ZeroDivisionError" in lost.explanation


def test_a_fallback_is_told(tmp_path: Path) -> None:
    samples, _ = sums(1, lambda i: False)
    log = run(samples, lambda messages: "no idea", tmp_path, scorer=evalcore_scorer(["exact_match"], [LAST_NUMBER]))
    score = log.samples[0].scores["evalcore_scorer"]
    assert (score.value, score.answer, score.reason) == (0.0, "[invalid]", "invalid_response_format")
    assert score.explanation == "none: regex fell back to '[invalid]'"


# --- multiple choice -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
def test_choices_as_inspect_judges_them(shuffle: bool, tmp_path: Path) -> None:
    colours = ["red", "green", "blue", "white"]
    samples = [Sample(input=f"question {i}", choices=colours, target="ABCD"[i % 4], id=i + 1) for i in range(16)]

    def reply(messages: list[ChatMessage]) -> str:
        i = int(messages[-1].text.split("question ")[1].split()[0])
        lines = [
            line for line in messages[-1].text.splitlines() if line.endswith(colours[i % 4 if i % 3 else (i + 1) % 4])
        ]
        return "no idea" if i == 7 else f"ANSWER: {lines[0][0]}"

    both = [choice(), evalcore_scorer(["exact_match"], answer="choice")]
    solver = multiple_choice(shuffle=Random(1)) if shuffle else multiple_choice()
    log = run(samples, reply, tmp_path, solver=solver, scorer=both)
    theirs, found = numbers(log, "choice"), numbers(log, "evalcore_scorer")
    assert found["value"] == pytest.approx(theirs["accuracy"])
    assert found["stderr"] == pytest.approx(theirs["stderr"])
    assert 0 < found["value"] < 1
    for sample in log.samples:
        assert sample.scores["evalcore_scorer"].answer == sample.scores["choice"].answer


def test_several_right_choices_must_all_be_marked(tmp_path: Path) -> None:
    samples = [
        Sample(input="which?", choices=["a", "b", "c"], target=list(target), id=i + 1)
        for i, target in enumerate(("AC", "A"))
    ]
    both = [choice(), evalcore_scorer(["exact_match"], answer="choice")]
    log = run(
        samples, lambda messages: "ANSWER: A, C", tmp_path, solver=multiple_choice(multiple_correct=True), scorer=both
    )
    assert [one.scores["evalcore_scorer"].value for one in log.samples] == [1.0, 0.0]
    assert [one.scores["choice"].value for one in log.samples] == ["C", "I"]


# --- bad input -----------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(EvalError, match="did you mean 'exact_match'"):
        evalcore_scorer(["exact_macth"])
    with pytest.raises(EvalError, match="bleu is a number of all texts together"):
        evalcore_scorer(["bleu"])
    with pytest.raises(EvalError, match="give them to Epochs"):
        evalcore_scorer([MetricSpec("exact_match", reducers=("pass@2",))])
    with pytest.raises(EvalError, match="did you mean 'stderr'"):
        evalcore_metrics(only="stder")
    with pytest.raises(EvalError, match="expected a number in place of k in the reducer 'pass@', such as pass@2"):
        evalcore_reducers("pass@")
    with pytest.raises(EvalError, match="collect"):
        evalcore_reducers("collect")


def test_a_sample_without_its_cluster_is_refused() -> None:
    from inspect_ai.scorer import SampleScore, Score

    scores = [SampleScore(score=Score(value=1.0), sample_id=7, sample_metadata={"other": 1})]
    with pytest.raises(EvalError, match="'passage' in the metadata of every sample, got none - at sample 7"):
        evalcore_metrics(cluster="passage")[0](scores)  # type: ignore[arg-type]


def test_inspects_own_names_stay_its_own() -> None:
    from inspect_ai._util.registry import registry_lookup

    before = [registry_lookup("score_reducer", "mean"), registry_lookup("metric", "stderr")]
    evalcore_reducers("mean")
    evalcore_metrics(only="stderr")
    assert [registry_lookup("score_reducer", "mean"), registry_lookup("metric", "stderr")] == before


# --- the page ------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "hosts.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


OF_SNIPPETS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "ours": lambda made: made["ours"].metrics["value"].value == made["theirs"].metrics["accuracy"].value == 13 / 20,
    "close": lambda made: made["found"]["ci_high"] == 1.0 and made["found"]["n"] == 20,
    "epochs": lambda made: made["epochs"].epochs == 4 and len(made["epochs"].reducer) == 3,
    "exact": lambda made: made["found"]["exact_match"] == 2 / 3 and made["found"]["n_unscored"] == 0,
    "reward": lambda made: made["reward"]("= 5", "4") == 0.0 and made["judge"].__name__ == "exact_match",
    "batches": lambda made: made["result"].report.tasks[0].estimates[0][1].value == 0.5 and not made["result"].complete,
    "ranks": lambda made: made["ranks"].report.tasks[0].n_docs == 10,
    "pooled": lambda made: made["verdicts"][0].score == 1.0 and made["trl"].__name__ == "judge",
}
"""What each snippet has to have made, by a name that only it has."""


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[str(at) for at in range(len(SNIPPETS))])
def test_the_snippets_of_the_page_run(snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(snippet, str(PAGE), "exec"), made)
    [name] = [name for name in OF_SNIPPETS if name in made]
    assert OF_SNIPPETS[name](made)


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    names = "evalcore.adapters.inspect, evalcore.adapters.evaluate, evalcore.adapters.reward"
    code = (
        f"import sys, {names}; print(sorted({{'inspect_ai', 'evaluate', 'sacrebleu', 'lm_eval'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_inspect_it_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    for call in (evalcore_scorer, evalcore_metrics, lambda: evalcore_reducers("mean")):
        with pytest.raises(EvalError, match=re.escape('pip install "evalcore[inspect]"')):
            call()


def test_a_scorer_without_metrics_is_refused() -> None:
    with pytest.raises(EvalError, match="at least one metric"):
        evalcore_scorer([])
