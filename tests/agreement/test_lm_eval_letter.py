"""lm-eval to the letter under its policy: whole tasks from config to results and sample log, live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lm_eval")

from both_sides import EVALCORE, LM_EVAL_0_4_13, Case, assert_same_row, lm_group, our_group, run_evalcore, run_lm_eval
from lm_eval.api.registry import higher_is_better_registry
from whole_cases import Row, Whole, run_ours, run_theirs

from evalcore import EvalError
from evalcore.core.lm_eval.metrics import REGISTERED

pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = {"generation_kwargs": {"until": ["\n"]}}
EXACT = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}


def assert_same(theirs: Whole, ours: Whole, name: str = "t") -> None:
    """Numbers (lm-eval's NaN is our N/A), directions, counts, and the sample log key by key."""
    row = {
        key: "N/A" if isinstance(one, float) and isnan(one) else one
        for key, one in theirs.results["results"][name].items()
    }
    assert_same_row(row, ours.results["results"][name])
    for key in ("higher_is_better", "n-samples"):
        assert ours.results[key] == theirs.results[key]
    assert len(theirs.lines) == len(ours.lines) > 0
    for one, other in zip(theirs.lines, ours.lines, strict=True):
        assert repr(plain(other)) == repr(plain(one))


def plain(line: Row) -> Row:
    """A line without evalcore's own key and the arguments, in one order; a score is a number, whole or not."""
    names = sorted(line["metrics"])
    scores = {name: float(line[name]) for name in names if isinstance(line[name], int)}
    given = {**line, **scores, "metrics": names}
    return {key: given[key] for key in sorted(given) if key not in ("evalcore", "arguments")}


def texts(replies: Sequence[Sequence[str]], **more: object) -> Case:
    rows = [{"question": f"q{i}", "target": str(i)} for i in range(len(replies))]
    said = {(i, 0): list(given) for i, given in enumerate(replies)}
    return Case("t", "generate_until", rows, said, repeats=len(replies[0]), config=TEXTS, **more)


def choices(n: int = 5, repeats: int = 1, **more: object) -> Case:
    rng = np.random.default_rng(n)
    rows = [{"question": f"q{i}", "choices": ["a", "b"], "target": int(rng.integers(2))} for i in range(n)]
    said = {(i, k): [(float(-rng.gamma(3)), False) for _ in range(repeats)] for i in range(n) for k in range(2)}
    return Case("t", "multiple_choice", rows, said, repeats=repeats, **more)


# --- NaN ----------------------------------------------------------------------------------------------------------


def read_number(doc: Mapping[str, object], results: Sequence[str]) -> Row:
    return {"m": nan if results[0] == "none" else float(results[0])}


def distance(references: Sequence[str], predictions: Sequence[str]) -> float:
    return nan if predictions[0] == "none" else abs(float(predictions[0]) - float(references[0]))


def distances(references: Sequence[str], predictions: Sequence[str]) -> Row:
    return {"near": distance(references, predictions), "far": -distance(references, predictions)}


SAID = [[str(i / 7) if i % 4 else "none"] for i in range(40)]


@pytest.mark.parametrize("how", ["nanmean", "mean", "median"])
def test_nan_from_process_results(how: str, tmp_path: Path) -> None:
    metrics = [{"metric": "m", "aggregation": how, "higher_is_better": True}]
    case = texts(SAID, metrics=metrics, process_results=read_number)
    assert_same(run_theirs(case, tmp_path), run_ours(case))


@pytest.mark.parametrize("function", [distance, distances])
def test_nan_from_a_metric_of_the_tasks_own(function: object, tmp_path: Path) -> None:
    case = texts(SAID, metrics=[{"metric": function, "aggregation": "nanmean", "higher_is_better": False}])
    theirs = run_theirs(case, tmp_path)
    assert_same(theirs, run_ours(case))
    assert theirs.results["results"]["t"]["sample_len"] == 40
    assert run_ours(case, EVALCORE).results["results"]["t"]["sample_len"] == 30  # by default NaN is no score


# --- corpora --------------------------------------------------------------------------------------------------------

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat"]


def sentences(n: int = 12) -> tuple[list[Row], dict[tuple[int, int], list[str]]]:
    rng = np.random.default_rng(n)
    wanted = [" ".join(rng.choice(WORDS, 6)) for _ in range(n)]
    said = {(i, 0): [" ".join(w if rng.random() < 0.7 else "x" for w in t.split())] for i, t in enumerate(wanted)}
    return [{"question": "q", "target": one} for one in wanted], said


def pairs_and_lengths(doc: Mapping[str, object], results: Sequence[str]) -> Row:
    pair, length = (doc["target"], results[0]), len(results[0]) / 7
    return {"mine": pair, "ter": pair, "bleu": length, "chrf": length, "chrf++": length, "other": length}


def test_draws_go_by_the_name_of_the_metric(tmp_path: Path) -> None:
    """At most 100 for bleu, chrf, chrf++ and ter, whatever they are closed by; as many as asked for under other names."""
    closed_by = {
        "mine": "bleu",
        "ter": "ter",
        "bleu": "median",
        "chrf": "nanmean",
        "chrf++": "median",
        "other": "median",
    }
    metrics = [{"metric": name, "aggregation": how, "higher_is_better": True} for name, how in closed_by.items()]
    rows, said = sentences()
    case = Case("t", "generate_until", rows, said, metrics, process_results=pairs_and_lengths, config=TEXTS)
    theirs = run_theirs(case, tmp_path, draws=300)
    assert_same(theirs, run_ours(case, draws=300))
    row = theirs.results["results"]["t"]
    assert row["chrf++_stderr,none"] != row["other_stderr,none"]  # the same scores, fewer draws


@pytest.mark.parametrize(("name", "how"), [("bleu", "chrf"), ("ter", "chrf++"), ("chrf++", "bleu")])
def test_a_corpus_metric_closed_by_another(name: str, how: str, tmp_path: Path) -> None:
    rows, said = sentences()
    metrics = [{"metric": name, "aggregation": how, "higher_is_better": True}]
    case = Case("t", "generate_until", rows, said, metrics, config=TEXTS)
    assert_same(run_theirs(case, tmp_path, draws=300), run_ours(case, draws=300))


def test_a_corpus_metric_closed_by_a_mean_is_refused_by_both(tmp_path: Path) -> None:
    rows, said = sentences()
    case = Case("t", "generate_until", rows, said, [{"metric": "bleu", "aggregation": "mean"}], config=TEXTS)
    with pytest.raises(TypeError):
        run_theirs(case, tmp_path)
    with pytest.raises(EvalError, match="expected one number per document"):
        run_ours(case)


# --- repeats ------------------------------------------------------------------------------------------------------

FOUR = [[str(i + 1), str(i), str(i), str(i + 2)] for i in range(5)]


def test_reducers_see_every_reply(tmp_path: Path) -> None:
    """lm-eval has no reducers: it refuses ``repeat_cfg``, and takes ``reducers`` of a metric for an option of it."""
    case = texts(FOUR, metrics=[{**EXACT, "reducers": ["mean", "pass@2"]}])
    with pytest.raises(TypeError, match="takes 0 positional arguments"):
        run_theirs(case, tmp_path)
    for tables in (LM_EVAL_0_4_13, EVALCORE):
        row = run_ours(case, tables).results["results"]["t"]
        assert row["exact_match@mean,none"] == 0.5
        assert row["exact_match@pass@2,none"] == pytest.approx(1 - (2 * 1) / (4 * 3))


def test_beside_reducers_the_first_reply_counts_for_other_metrics(tmp_path: Path) -> None:
    plain_case = texts(FOUR, metrics=[{"metric": "bleu"}, EXACT])
    theirs = run_theirs(plain_case, tmp_path).results["results"]["t"]
    mixed = texts(FOUR, metrics=[{"metric": "bleu"}, {**EXACT, "reducers": "max"}])
    ours = run_ours(mixed).results["results"]["t"]
    assert ours["bleu,none"] == pytest.approx(theirs["bleu,none"])
    assert ours["bleu_stderr,none"] == pytest.approx(theirs["bleu_stderr,none"])
    assert ours["exact_match,none"] == 1.0 != theirs["exact_match,none"]


@pytest.mark.parametrize(
    "steps",
    [
        [{"function": "lowercase"}],
        [{"function": "take_first_k", "k": 2}],
        [{"function": "majority_vote"}],
        [{"function": "regex", "regex_pattern": "([0-9])"}],
        [{"function": "lowercase"}, {"function": "take_first"}],
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("repeats", [1, 4])
def test_what_filters_leave_in_the_log(steps: list[Row], repeats: int, tmp_path: Path) -> None:
    """A list for each request unless a filter takes the first."""
    given = [{**one, "k": min(repeats, 2)} if "k" in one else one for one in steps]
    case = texts([one[:repeats] for one in FOUR], metrics=[EXACT], filters=[{"name": "f", "filter": given}])
    assert_same(run_theirs(case, tmp_path), run_ours(case))


def test_what_own_code_gets_is_in_the_log(tmp_path: Path) -> None:
    """Choices, too, where the task's code takes all replies."""
    filters = [{"name": "two", "filter": [{"function": "take_first_k", "k": 2}]}]
    metrics = [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]
    case = choices(repeats=2, metrics=metrics, filters=filters, process_results=lambda doc, got: {"acc": len(got[0])})
    assert_same(run_theirs(case, tmp_path), run_ours(case))


# --- answers only -------------------------------------------------------------------------------------------------


def likelihoods() -> Case:
    rows = [{"question": f"q{i}", "target": "x"} for i in range(4)]
    return Case("t", "loglikelihood", rows, {(i, 0): [(-1.0 - i, False)] for i in range(4)}, [{"metric": "acc"}])


def lines_of_text() -> Case:
    rows = [{"question": "", "target": f"some text {i}"} for i in range(4)]
    metrics = [{"metric": "word_perplexity"}]
    return Case("t", "loglikelihood_rolling", rows, {(i, 0): [-9.0 - i] for i in range(4)}, metrics)


@pytest.mark.parametrize(
    "case",
    [
        choices(metrics=[{"metric": "acc"}]),
        choices(metrics=[{"metric": "acc_mutual_info"}]),
        texts([[str(i)] for i in range(4)], metrics=[EXACT]),
        texts(FOUR, metrics=[EXACT]),
        texts(FOUR, metrics=[EXACT], filters=[{"name": "all", "filter": [{"function": "lowercase"}]}]),
        likelihoods(),
        lines_of_text(),
    ],
    ids=["choices", "mutual information", "texts", "repeats", "unreduced", "likelihoods", "rolling"],
)
def test_predict_only(case: Case, tmp_path: Path) -> None:
    """But for texts lm-eval has no number at all, a sample_len of 0 and rows without metrics."""
    theirs, ours = run_theirs(case, tmp_path, predict_only=True), run_ours(case, predict_only=True)
    assert_same(theirs, ours)
    assert ("bypass,none" in ours.results["results"]["t"]) == (
        case.output_type == "generate_until" and not case.filters
    )


def test_bypass_beside_a_metric_of_choices(tmp_path: Path) -> None:
    case = choices(metrics=[{"metric": "bypass"}, {"metric": "acc"}])
    assert_same(run_theirs(case, tmp_path), run_ours(case))


# --- directions ---------------------------------------------------------------------------------------------------


def test_registered_directions_are_theirs() -> None:
    assert dict(REGISTERED) == {name: higher_is_better_registry.get(name) for name in higher_is_better_registry}


def emit_some(doc: Mapping[str, object], results: Sequence[str]) -> Row:
    return {"known": 1.0, "undeclared": 2.0}


@pytest.mark.parametrize("lists", [True, False])
def test_directions_of_declared_metrics_emitted_or_not(lists: bool, tmp_path: Path) -> None:
    names = ("known", "silent", "ter")
    metrics = [
        {"metric": name, "aggregation": "mean", **({"higher_is_better": True} if lists else {})} for name in names
    ]
    case = texts([[str(i)] for i in range(4)], metrics=metrics, process_results=emit_some)
    assert_same(run_theirs(case, tmp_path), run_ours(case))


def test_directions_in_groups() -> None:
    """A group lists what its tasks list, the silent metrics among it."""
    metrics = [{"metric": "bypass"}, {"metric": "acc"}]
    case = choices(metrics=metrics)
    theirs = run_lm_eval(case, groups={"g": lm_group("g", ["t"], [{"metric": "acc"}])}, draws=4)
    ours = run_evalcore(case, trees=[our_group("g", ["t"], [{"metric": "acc"}])], draws=4)
    assert ours["higher_is_better"] == theirs["higher_is_better"]
