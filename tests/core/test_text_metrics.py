"""Text metrics against lm-eval, rouge-score, nltk, Inspect and the SQuAD script."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from evalcore import GENERATE_UNTIL, Answer, Generate, Instance, MetricSpec, Sample, Task, report_task, score_task
from evalcore.core.answers.batch import make_batch
from evalcore.core.answers.text import GenBatch, gen_batch, make_texts
from evalcore.core.metrics.custom import per_document
from evalcore.core.metrics.metric import Marks
from evalcore.core.metrics.normalise import answer_words, edit_distance, normaliser, required_text
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.array import Array
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, UNSCORABLE
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Floats, Objects

NO_GOLD = "expected a gold answer, got none"
REGEXES = [",", r"\$", "(?s).*#### ", r"\.$", r"^\s+", r"\b(?:The |the |A )", "a|b", "a+b?", r"\d{2}", "[xy]", ""]
PER_PAIR = ["exact_match", "quasi_exact_match", "includes", "f1", "anls", "rouge1", "rouge2", "rougeL", "rougeLsum"]

pieces = st.sampled_from(
    ["a", "A ", "the ", "cat", "cats", "$", ",", "1,000", "12", "#### ", ".", "!", " ", "\n", "é", "ß", "x", "ab"]
)
texts = st.lists(pieces, max_size=6).map("".join) | st.text(max_size=8)
settings_of_exact_match = st.fixed_dictionaries(
    {},
    optional={
        "ignore_case": st.booleans(),
        "ignore_punctuation": st.booleans(),
        "ignore_numbers": st.booleans(),
        "regexes_to_ignore": st.none() | st.lists(st.sampled_from(REGEXES), max_size=4),
    },
)
pairs = st.lists(st.tuples(texts, st.lists(texts, max_size=3).map(tuple)), max_size=6)


def batch_of(predictions: Sequence[str], golds: Sequence[tuple[str, ...]]) -> GenBatch:
    return make_texts(list(predictions), list(golds))


def scores(name: str, batch: GenBatch, chosen: Options | None = None) -> tuple[list[float], Mapping[int, object]]:
    found = TEXT_METRICS[name].score(batch, chosen or freeze_options())
    rows, missing = (found.rows, found.missing) if isinstance(found, Marks) else (found, {})
    assert isinstance(rows, Floats)
    return rows.values.floats.tolist(), missing


def one(name: str, prediction: str, *golds: str, **chosen: object) -> float:
    values, missing = scores(name, batch_of([prediction], [golds]), freeze_options(chosen))
    assert not missing
    return values[0]


# --- exact match ------------------------------------------------------------------------------------------


@settings(max_examples=500, deadline=None)
@given(texts, texts, settings_of_exact_match)
def test_exact_match_is_lm_evals(prediction: str, gold: str, chosen: dict[str, object]) -> None:
    metrics = pytest.importorskip("lm_eval.api.metrics")
    # numpy's fixed-width strings drop trailing NULs (E13) and cut texts that grow when lowered.
    assume("\0" not in prediction + gold)
    assume(all(len(letter.lower()) == 1 for letter in prediction + gold))
    everything = normaliser(
        tuple(chosen.get("regexes_to_ignore") or ()),
        case=bool(chosen.get("ignore_case")),
        punctuation=bool(chosen.get("ignore_punctuation")),
        numbers=bool(chosen.get("ignore_numbers")),
    )
    assume(not gold or everything([gold])[0])
    theirs = metrics.exact_match_hf_evaluate([prediction], [gold], **chosen)["exact_match"]
    assert one("exact_match", prediction, gold, **chosen) == theirs


def test_e13_texts_that_normalisation_empties_differ() -> None:
    metrics = pytest.importorskip("lm_eval.api.metrics")
    theirs = metrics.exact_match_hf_evaluate(["!!!"], ["..."], ignore_punctuation=True)["exact_match"]
    assert (theirs, one("exact_match", "!!!", "...", ignore_punctuation=True)) == (1.0, 0.0)
    assert one("exact_match", "...", "...", ignore_punctuation=True) == 1.0
    assert one("exact_match", "7", "42", ignore_numbers=True) == 0.0
    assert one("exact_match", "", "42", regexes_to_ignore=[r"\d+"]) == 0.0


def test_e13_a_trailing_nul_is_a_character() -> None:
    metrics = pytest.importorskip("lm_eval.api.metrics")
    theirs = metrics.exact_match_hf_evaluate(["abc\0"], ["abc"])["exact_match"]
    assert (theirs, one("exact_match", "abc\0", "abc")) == (1.0, 0.0)


def test_lowering_does_not_cut_texts() -> None:
    metrics = pytest.importorskip("lm_eval.api.metrics")
    assert "İx".lower() == "i̇x"
    theirs = metrics.exact_match_hf_evaluate(["İx"], ["i̇"], ignore_case=True)["exact_match"]
    assert (theirs, one("exact_match", "İx", "i̇", ignore_case=True)) == (1.0, 0.0)


def test_exact_match_takes_the_best_gold() -> None:
    assert one("exact_match", "b", "a", "b") == 1.0
    assert one("exact_match", "c", "a", "b") == 0.0
    assert (one("exact_match", "4", "4"), one("exact_match", "The answer is 4", "4")) == (1.0, 0.0)


@pytest.mark.filterwarnings("ignore:Possible")
@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(REGEXES) | st.text(alphabet="ab.*+?$^|[](){}\\ds ,", max_size=6),
    texts | st.text("ab., d\\", max_size=8),
)
@example(r"xa+b", "xaab")
@example(r"ab?", "a")
@example(r"a\*b", "a*b a*b")
def test_removal_is_re_sub(regex: str, text: str) -> None:
    try:
        expected = re.sub(regex, "", text)
    except (re.error, OverflowError):
        with pytest.raises(EvalError, match="expected a regex in regexes_to_ignore"):
            normaliser((regex,))
        return
    assert list(normaliser((regex,))([text])) == [expected]


@pytest.mark.parametrize(
    ("regex", "found"),
    [(",", (",", True)), (r"\$", ("$", True)), (r"\.$", (".", False)), (r"\x41", ("", False)), ("(?i)a", ("", False))],
)
def test_required_text(regex: str, found: tuple[str, bool]) -> None:
    assert required_text(regex) == found


def test_wrong_options_are_named() -> None:
    with pytest.raises(EvalError, match=r"did you mean 'ignore_case'\? Known: ignore_case, ignore_numbers"):
        one("exact_match", "a", "a", ignore_cases=True)
    with pytest.raises(EvalError, match=r"expected a regex in regexes_to_ignore, got '\('"):
        one("exact_match", "a", "a", regexes_to_ignore=["("])
    with pytest.raises(EvalError, match="expected a list of regular expressions"):
        one("exact_match", "a", "a", regexes_to_ignore="ab")
    with pytest.raises(EvalError, match=r"expected a number for threshold, got '0\.5'"):
        one("anls", "a", "a", threshold="0.5")
    with pytest.raises(EvalError, match="unknown option of f1 'average'"):
        one("f1", "a", "a", average="macro")


# --- other equalities -------------------------------------------------------------------------------------


def test_quasi_exact_match_as_helm() -> None:
    assert one("quasi_exact_match", "  The Eiffel  tower!", "eiffel tower") == 1.0
    assert one("quasi_exact_match", "Eiffel towers", "eiffel tower") == 0.0
    assert one("quasi_exact_match", "a.", "A") == 1.0
    assert one("quasi_exact_match", "the", "A") == 0.0
    assert one("quasi_exact_match", "!!!", "...") == 0.0


@settings(max_examples=200, deadline=None)
@given(texts, texts)
def test_quasi_exact_match_is_equality_of_squad_forms(prediction: str, gold: str) -> None:
    normalise = pytest.importorskip("lm_eval.tasks.qasper.metrics").normalize_answer
    assume(normalise(gold))
    assert one("quasi_exact_match", prediction, gold) == float(normalise(prediction) == normalise(gold))


@settings(max_examples=40, deadline=None)
@given(texts, st.lists(texts, min_size=1, max_size=3), st.booleans())
def test_includes_is_inspects(prediction: str, golds: list[str], ignore_case: bool) -> None:
    scorer = pytest.importorskip("inspect_ai.scorer")
    state = type("State", (), {"output": type("Output", (), {"completion": prediction})})
    theirs = asyncio.run(scorer.includes(ignore_case=ignore_case)(state, scorer.Target(golds)))
    assert one("includes", prediction, *golds, ignore_case=ignore_case) == float(theirs.value == "C")


# --- similarities -----------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(texts, texts)
def test_f1_is_squads(prediction: str, gold: str) -> None:
    script = pytest.importorskip("lm_eval.tasks.qasper.metrics")
    # SQuAD 1.1 knows no empty answer; 2.0 gives 1 where both are empty.
    assume(answer_words(prediction) or answer_words(gold))
    theirs = script.f1_abstractive([prediction], [gold])
    assert one("f1", prediction, gold) == pytest.approx(theirs, rel=1e-12)
    assert " ".join(answer_words(prediction)) == script.normalize_answer(prediction)


def test_f1_by_hand() -> None:
    assert one("f1", "the big red cat", "a red cat") == pytest.approx(0.8)
    assert one("f1", "cat cat", "cat") == pytest.approx(2 / 3)
    assert (one("f1", "the", "an"), one("f1", "", "cat"), one("f1", "cat", "")) == (1.0, 0.0, 0.0)
    # Erratum E10: the best gold counts with its own score, not as 1.
    assert one("f1", "x y z", "x", "q") == 0.5


@settings(max_examples=400, deadline=None)
@given(st.text("abc é", max_size=12), st.text("abc é", max_size=12))
def test_edit_distance_is_nltks(a: str, b: str) -> None:
    distance = pytest.importorskip("nltk.metrics.distance").edit_distance
    assert edit_distance(a, b) == edit_distance(b, a) == distance(a, b)


def test_edit_distance_of_long_texts() -> None:
    distance = pytest.importorskip("nltk.metrics.distance").edit_distance
    letters = np.random.default_rng(5).choice(list("abcd"), size=(2, 150))
    a, b = "".join(letters[0]), "".join(letters[1][:130])
    assert edit_distance(a, b) == distance(a, b)


@settings(max_examples=200, deadline=None)
@given(texts, texts, st.sampled_from([0.0, 0.3, 0.5, 0.8]))
def test_anls_by_definition(prediction: str, gold: str, threshold: float) -> None:
    distance = pytest.importorskip("nltk.metrics.distance").edit_distance
    a, b = (" ".join(text.lower().split()) for text in (prediction, gold))
    similarity = 1 - distance(a, b) / max(len(a), len(b), 1)
    expected = similarity if similarity >= threshold else 0.0
    assert one("anls", prediction, gold, threshold=threshold) == expected


def test_anls_at_the_threshold() -> None:
    assert one("anls", "ab", "ac") == 0.5
    assert one("anls", "abc", "ade") == 0.0
    assert one("anls", " HELLO ", "hello", "bye") == 1.0


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
@settings(max_examples=80, deadline=None)
@given(texts, st.lists(texts, min_size=1, max_size=3), st.booleans())
def test_rouge_is_rouge_scores(kind: str, prediction: str, golds: list[str], stem: bool) -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer([kind], use_stemmer=stem)
    theirs = scorer.score_multi(golds, prediction)[kind].fmeasure
    assert one(kind, prediction, *golds, use_stemmer=stem) == theirs


# --- laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PER_PAIR)
@settings(max_examples=60, deadline=None)
@given(pairs)
def test_a_batch_equals_its_documents_one_by_one(name: str, documents: list[tuple[str, tuple[str, ...]]]) -> None:
    chosen = freeze_options(ignore_case=True, regexes_to_ignore=REGEXES) if name == "exact_match" else freeze_options()
    together, missing = scores(name, batch_of(*zip(*documents, strict=True)) if documents else batch_of([], []), chosen)
    alone = [scores(name, batch_of([text], [golds]), chosen) for text, golds in documents]
    np.testing.assert_array_equal(together, [values[0] for values, _ in alone])
    assert missing == {i: gone[0] for i, (_, gone) in enumerate(alone) if gone}


@pytest.mark.parametrize("name", PER_PAIR)
def test_no_gold_is_unscorable(name: str) -> None:
    values, missing = scores(name, batch_of(["a", "b", "c"], [("a",), (), ("c", "d")]))
    assert missing == {1: (UNSCORABLE, NO_GOLD)}
    assert np.isnan(values[1])
    assert np.isfinite([values[0], values[2]]).all()
    assert scores(name, batch_of(["a"], [()]))[1] == {0: (UNSCORABLE, NO_GOLD)}
    assert scores(name, batch_of([], [])) == ([], {})


@pytest.mark.parametrize("name", PER_PAIR)
def test_lone_surrogates_are_texts(name: str) -> None:
    assert np.isfinite(one(name, "\ud83d x", "x \udc00"))


def test_metrics_without_a_gold() -> None:
    batch = make_texts(["a", "b"], [(), ()], [True, False])
    assert scores("extraction_rate", batch) == ([0.0, 1.0], {})
    assert TEXT_METRICS["bypass"].score(batch, freeze_options()) == Objects((None, None))
    assert (TEXT_METRICS["bypass"].aggregation, TEXT_METRICS["bypass"].higher_is_better) == ("bypass", None)


def test_the_table_pickles() -> None:
    assert pickle.loads(pickle.dumps(TEXT_METRICS)) == TEXT_METRICS


# --- a function of one's own ------------------------------------------------------------------------------


def ratio(prediction: str, gold: str, scale: float = 1.0) -> float:
    return scale * len(prediction) / len(gold)


def test_per_document_takes_options_and_the_best_gold() -> None:
    batch = batch_of(["abcd", "ab"], [("a", "ab"), ("abcd",)])
    assert per_document(ratio)(batch, freeze_options(scale=2)) == Floats(Array([8.0, 1.0]))
    assert pickle.loads(pickle.dumps(per_document(ratio)))(batch, freeze_options(scale=2)) == Floats(Array([8.0, 1.0]))
    assert per_document(ratio, min)(batch, freeze_options()) == Floats(Array([2.0, 0.5]))


def test_per_document_keeps_failures_apart() -> None:
    batch = gen_batch(make_batch([["a"], ["b", "b"], ["c"]], [("",), ("b",), ()]))
    found = per_document(ratio)(batch, freeze_options())
    assert isinstance(found, Marks)
    assert found.missing == {
        0: (FAILED, "ZeroDivisionError: float division by zero"),
        1: (UNSCORABLE, "expected one reply, got 2"),
        2: (UNSCORABLE, NO_GOLD),
    }


@pytest.mark.parametrize("value", [nan, inf, "1.0", None, [1.0], 10**400, 1j])
def test_what_is_not_a_finite_number_is_unscorable(value: object) -> None:
    found = per_document(lambda prediction, gold: value)(batch_of(["a"], [("a",)]), freeze_options())
    assert isinstance(found, Marks)
    assert found.missing == {0: (UNSCORABLE, f"expected a finite number, got {value!r}")}


@pytest.mark.parametrize("value", [1, 1.0, True, np.float32(1), np.int64(1), np.True_, Fraction(1)])
def test_every_real_number_is_a_score(value: object) -> None:
    found = per_document(lambda prediction, gold: value)(batch_of(["a"], [("a",)]), freeze_options())
    assert found == Floats(Array([1.0]))


def several(prediction: str, gold: str) -> object:
    if prediction == "raise":
        raise KeyError("x")
    if prediction == "number":
        return 0.5
    return {"length": len(prediction)} if gold == "" else {"length": len(prediction), "same": prediction == gold}


def test_a_dict_gives_several_metrics() -> None:
    """Each key is its own metric; what concerns a whole document stands under the function's own name."""
    batch = batch_of(["ab", "abc", "raise", "number"], [("ab", ""), ("",), ("a",), ("a",)])
    found = per_document(several)(batch, freeze_options())
    assert isinstance(found, Mapping)
    assert list(found) == ["", "length", "same"]
    own, length, same = found[""], found["length"], found["same"]
    assert isinstance(own, Marks)
    assert isinstance(length, Marks)
    assert isinstance(same, Marks)
    np.testing.assert_array_equal(length.rows.values.floats, [2, 3, nan, nan])
    np.testing.assert_array_equal(same.rows.values.floats, [1, nan, nan, nan])
    np.testing.assert_array_equal(own.rows.values.floats, [nan, nan, nan, 0.5])
    assert own.missing[2] == (FAILED, "KeyError: 'x'")
    assert length.missing[2] == same.missing[1] == own.missing[0] == (NOT_EMITTED, "")


def test_documents_a_function_of_several_metrics_fails_on_count_for_each() -> None:
    task = Task("t", GENERATE_UNTIL, (MetricSpec("m", function=per_document(several)),))
    answers = [Answer(Instance("t", i, 0, Generate("?")), (text,)) for i, text in enumerate(["ab", "raise"])]
    report = report_task(score_task(task, [Sample(0, gold="ab"), Sample(1, gold="a")], answers))
    counts = [(key.metric, one.counts.scored, one.counts.failed) for key, one in report.estimates]
    assert counts == [("length", 1, 1), ("same", 1, 1)]
