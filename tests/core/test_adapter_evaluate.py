"""The calls of Hugging Face's ``evaluate``: its protocol run live, the numbers of scikit-learn, sacrebleu and rouge-score."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np
import pytest

from evalcore import EvalError, Step
from evalcore.adapters.evaluate import MEASURES, Evaluation, combine, load

WORDS = ("the", "old", "river", "runs", "past", "a", "mill", "where", "two", "friends", "count", "apples")


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def texts(seed: int, n: int, most: int = 9) -> list[str]:
    draw = rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(4, most))) for _ in range(n)]


def near(seed: int, golds: Sequence[str]) -> list[str]:
    """Each text with some words exchanged."""
    draw = rng(seed)
    return [" ".join(w if draw.random() < 0.7 else str(draw.choice(WORDS)) for w in gold.split()) for gold in golds]


# --- labels against scikit-learn -----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [(0, 1), ("no", "yes"), (0, 1, 2), ("a", "b", "c", "d")], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_labels_as_scikit_learn(names: tuple[object, ...], seed: int) -> None:
    sk = pytest.importorskip("sklearn.metrics")
    draw = rng(seed)
    gold = [names[i] for i in draw.integers(0, len(names), 60)]
    said = [one if draw.random() < 0.6 else names[draw.integers(len(names))] for one in gold]
    found = load("accuracy").compute(predictions=said, references=gold)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(gold, said), rel=1e-12)
    p = sk.accuracy_score(gold, said)
    assert found["accuracy_stderr"] == pytest.approx(sqrt(p * (1 - p) / 59), rel=1e-9)
    assert (found["n"], found["n_unscored"]) == (60, 0)
    mcc = load("matthews_correlation").compute(predictions=said, references=gold)
    assert mcc["matthews_correlation"] == pytest.approx(sk.matthews_corrcoef(gold, said), rel=1e-9)
    averages = ["macro", "micro", "weighted"] + (["binary"] if len(names) == 2 else [])
    for average in averages:
        chosen = {"pos_label": "yes"} if average == "binary" and "yes" in names else {}
        wanted = sk.f1_score(gold, said, average=average, **chosen)
        got = load("f1").compute(predictions=np.array(said), references=np.array(gold), average=average, **chosen)
        assert got["f1"] == pytest.approx(wanted, rel=1e-12)


def test_labels_that_are_none_are_counted() -> None:
    for name in ("accuracy", "f1", "matthews_correlation"):
        found = load(name).compute(predictions=[1, None, 0, nan], references=[1, 1, 0, 0])
        assert (found[name], found["n"], found["n_unscored"]) == (1.0, 2, 2)


# --- texts against their own libraries ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen",
    [{}, {"ignore_case": True}, {"ignore_punctuation": True, "ignore_numbers": True}, {"regexes_to_ignore": ["the "]}],
    ids=str,
)
def test_exact_match_as_evaluate_has_it(chosen: dict[str, object]) -> None:
    """lm-eval carries evaluate's own function, which else lives on the hub."""
    theirs = pytest.importorskip("lm_eval.api.metrics").exact_match_hf_evaluate
    said = ["the cat", "The cat.", "cat 9", "dog!", "the dog"]
    gold = ["the cat", "the cat", "cat 8", "dog", "dog"]
    found = load("exact_match", **chosen).compute(predictions=said, references=gold)
    assert found["exact_match"] == pytest.approx(float(theirs(said, gold, **chosen)["exact_match"]))


@pytest.mark.parametrize("references", [1, 3])
def test_corpus_metrics_as_sacrebleu(references: int) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    golds = [texts(seed, 30) for seed in range(references)]
    said = near(9, golds[0])
    per_document = [list(one) for one in zip(*golds, strict=True)]
    given = [one[0] for one in per_document] if references == 1 else per_document
    for name, theirs in (
        ("sacrebleu", sacrebleu.corpus_bleu),
        ("bleu", sacrebleu.corpus_bleu),
        ("chrf", sacrebleu.corpus_chrf),
        ("ter", sacrebleu.corpus_ter),
    ):
        found = load(name).compute(predictions=said, references=given)
        assert found[name] == pytest.approx(theirs(said, golds).score, rel=1e-12)
        assert found[f"{name}_ci"][0] < found[name] < found[f"{name}_ci"][1]  # type: ignore[index]


@pytest.mark.parametrize("references", [1, 2])
def test_rouge_as_rouge_score(references: int) -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer")
    golds = [list(one) for one in zip(*(texts(seed, 12) for seed in range(references)), strict=True)]
    said = near(4, [one[0] for one in golds])
    found = load("rouge").compute(predictions=said, references=golds)
    for kind in ("rouge1", "rouge2", "rougeL"):
        judge = scorer.RougeScorer([kind])
        wanted = np.mean([judge.score_multi(gold, one)[kind].fmeasure for gold, one in zip(golds, said, strict=True)])
        assert found[kind] == pytest.approx(wanted, rel=1e-12)


def test_filters_come_first_and_missing_texts_are_counted() -> None:
    numbers = load("exact_match", filters=[Step.of("regex", regex_pattern="([0-9]+)")])
    found = numbers.compute(predictions=["it is 4", None, "no"], references=["4", "4", "5"])
    assert (found["exact_match"], found["n"], found["n_unscored"]) == (0.5, 2, 1)


def test_every_measure_computes() -> None:
    for name in MEASURES:
        found = load(name).compute(
            predictions=["yes", "no"], references=["yes", "no"], **({"average": "macro"} if name == "f1" else {})
        )
        assert found["n"] == 2, name
        assert isinstance(found[MEASURES[name][0].name], float), name


def test_clusters_count_together() -> None:
    said, gold = [1, 1, 0, 0], [1, 1, 1, 1]
    alone = load("accuracy").compute(predictions=said, references=gold)
    together = load("accuracy").compute(predictions=said, references=gold, clusters=["a", "a", "b", "b"])
    assert alone["accuracy_stderr"] == pytest.approx(sqrt(1 / 12))
    assert together["accuracy_stderr"] == pytest.approx(0.5)
    texts_too = load("exact_match").compute(predictions=["1", "1", "0", "0"], references=["1"] * 4, clusters="aabb")
    assert texts_too["exact_match_stderr"] == pytest.approx(0.5)


def test_one_pair_has_no_error_and_all_right_no_certainty() -> None:
    assert load("accuracy").compute(predictions=[1], references=[1])["accuracy_stderr"] is None
    low, high = load("accuracy").compute(predictions=[1] * 20, references=[1] * 20)["accuracy_ci"]  # type: ignore[misc]
    assert low < 0.9 < high


# --- the protocol, beside evaluate's own ---------------------------------------------------------------------------


def theirs_accuracy(tmp: str) -> object:
    hf = pytest.importorskip("evaluate")
    datasets = pytest.importorskip("datasets")
    sk = pytest.importorskip("sklearn.metrics")

    class Accuracy(hf.Metric):  # type: ignore[misc, name-defined]
        def _info(self):  # type: ignore[no-untyped-def]
            kind = datasets.Value("int32")
            features = datasets.Features({"predictions": kind, "references": kind})
            return hf.MetricInfo(description="", citation="", features=features, inputs_description="")

        def _compute(self, predictions, references):  # type: ignore[no-untyped-def]
            return {"accuracy": float(sk.accuracy_score(references, predictions))}

    return Accuracy(cache_dir=tmp)


def drive(judge: object) -> list[object]:
    """Every way of handing over pairs, in turn."""
    out = [judge.compute(predictions=[0, 1, 1], references=[0, 1, 0])]  # type: ignore[attr-defined]
    for gold, said in zip([0, 1, 0, 1], [1, 0, 0, 1], strict=True):
        judge.add(prediction=said, reference=gold)  # type: ignore[attr-defined]
    out.append(judge.compute())  # type: ignore[attr-defined]
    for golds, said in zip([[0, 1], [0, 1]], [[1, 0], [0, 1]], strict=True):
        judge.add_batch(predictions=said, references=golds)  # type: ignore[attr-defined]
    out.append(judge.compute(predictions=[1], references=[1]))  # type: ignore[attr-defined]
    out.append(judge.compute(references=[1, 1], predictions=[1, 0]))  # type: ignore[attr-defined]
    return [one["accuracy"] for one in out]  # type: ignore[index]


def test_the_calls_are_those_of_evaluate(tmp_path: object) -> None:
    assert drive(load("accuracy")) == pytest.approx(drive(theirs_accuracy(str(tmp_path))))


def test_combined_as_evaluate_combines(tmp_path: object) -> None:
    hf = pytest.importorskip("evaluate")
    theirs = hf.combine([theirs_accuracy(str(tmp_path))])
    ours = combine(["accuracy", "f1", load("matthews_correlation")])
    given = {"predictions": [0, 1, 1], "references": [0, 1, 0]}
    found = ours.compute(**given)
    assert found["accuracy"] == theirs.compute(**given)["accuracy"]
    assert {"accuracy", "f1", "matthews_correlation", "f1_stderr", "f1_ci", "n", "n_unscored"} <= set(found)
    ours.add(prediction=1, reference=1)
    ours.add_batch(predictions=[0], references=[1])
    assert ours.compute()["accuracy"] == 0.5


def test_counts_that_differ_are_told_apart() -> None:
    found = combine(["exact_match", "extraction_rate"]).compute(predictions=["a", "b"], references=["a", None])
    assert (found["exact_match_n"], found["extraction_rate_n"], found["exact_match_n_unscored"]) == (1, 2, 1)
    assert "n" not in found


def test_bad_input_is_refused_with_a_reason() -> None:
    judge = load("accuracy")
    cases: list[tuple[str, dict[str, object]]] = [
        ("got 2 for 3 predictions", {"predictions": [1, 2, 3], "references": [1, 2]}),
        ("got one of them", {"predictions": [1]}),
        ("got none: pass them, or add them before", {}),
        ("texts and numbers", {"predictions": ["1"], "references": [1]}),
        ("expected one label", {"predictions": [1], "references": [[1, 2]]}),
        ("got 1 for 2", {"predictions": [1, 1], "references": [1, 1], "clusters": ["a"]}),
    ]
    for message, given in cases:
        with pytest.raises(EvalError, match=message):
            judge.compute(**given)  # type: ignore[arg-type]
    with pytest.raises(EvalError, match="did you mean 'accuracy'"):
        load("acuracy")
    with pytest.raises(EvalError, match="ignore_cases"):
        load("exact_match", ignore_cases=True)
    with pytest.raises(EvalError, match="averages"):
        load("f1", averages="macro")
    with pytest.raises(EvalError, match="'accuracy' twice"):
        combine(["accuracy", "accuracy"])
    with pytest.raises(EvalError, match="average: macro"):
        load("f1").compute(predictions=[0, 1, 2], references=[0, 1, 2])
    assert isinstance(judge, Evaluation)


def test_whole_numbers_of_columns_with_gaps_are_whole() -> None:
    """pandas has 4 as 4.0 where a column has gaps: the same answer, whichever way it comes in."""
    found = load("exact_match").compute(predictions=["4", 4.0, "4.5"], references=[4.0, "4", [4.5, 5.0]])
    assert found["exact_match"] == 1.0
    assert load("exact_match").compute(predictions=["4"], references=[nan])["n_unscored"] == 1


def test_one_text_is_no_list_of_texts() -> None:
    """A text in place of a list would be taken apart into letters."""
    for said, wanted in (("44", ["4", "4"]), (["4", "4"], "44")):
        with pytest.raises(EvalError, match="got one text: '44'"):
            load("exact_match").compute(predictions=said, references=wanted)
