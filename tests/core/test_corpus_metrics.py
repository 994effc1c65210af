"""BLEU, chrF and TER against sacrebleu itself."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from evalcore.core.answers.text import GenBatch, make_texts
from evalcore.core.metrics.corpus import bleu, pair_statistics, ter
from evalcore.core.metrics.corpus_score import bleu_score, chrf_score, ter_score
from evalcore.core.metrics.metric import Marks
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.row import Stats

WMT17 = Path(__file__).resolve().parents[3] / "shared" / "data" / "wmt17_ende_sacrebleu"
KINDS = ["bleu", "chrf", "chrf++", "ter"]
WIDTHS = {"bleu": 10, "chrf": 18, "chrf++": 24, "ter": 2}
CLOSE = {"rtol": 1e-12, "atol": 1e-12}

words = st.sampled_from(["the", "a", "cat", "Cat", "sat", "on", "mat", ",", ".", "mat.", "dog's", "3.5", "ü", "猫"])
sentences = st.lists(words, max_size=9).map(" ".join)
documents = st.tuples(sentences, st.lists(sentences, min_size=1, max_size=3).map(tuple))
corpora = st.lists(documents, min_size=1, max_size=6)
Corpus = Sequence[tuple[str, tuple[str, ...]]]


def batch_of(corpus: Corpus) -> GenBatch:
    return make_texts([text for text, _ in corpus], [golds for _, golds in corpus])


def counts_of(kind: str, corpus: Corpus, given_options: Options | None = None) -> np.ndarray:
    rows = TEXT_METRICS[kind].score(batch_of(corpus), given_options or freeze_options())
    assert isinstance(rows, Stats)
    return rows.values.floats


def streams_of(corpus: Corpus) -> list[list[str | None]]:
    """sacrebleu's reference streams; None where a document has fewer references than the widest."""
    width = max(len(golds) for _, golds in corpus)
    return [[golds[i] if i < len(golds) else None for _, golds in corpus] for i in range(width)]


def sacrebleu_score(metric: BLEU | CHRF | TER, corpus: Corpus) -> float:
    return metric.corpus_score([text for text, _ in corpus], streams_of(corpus)).score


@settings(max_examples=150, deadline=None)
@given(corpora)
def test_default_scores_are_sacrebleus(corpus: Corpus) -> None:
    hypotheses, streams = [text for text, _ in corpus], streams_of(corpus)
    found = [
        bleu_score(counts_of("bleu", corpus).sum(axis=0)),
        chrf_score(counts_of("chrf", corpus).sum(axis=0)),
        chrf_score(counts_of("chrf++", corpus).sum(axis=0)),
        ter_score(counts_of("ter", corpus).sum(axis=0)),
    ]
    expected = [
        sacrebleu.corpus_bleu(hypotheses, streams).score,
        sacrebleu.corpus_chrf(hypotheses, streams).score,
        sacrebleu.corpus_chrf(hypotheses, streams, word_order=2).score,
        sacrebleu.corpus_ter(hypotheses, streams).score,
    ]
    np.testing.assert_allclose(found, expected, **CLOSE)


@settings(max_examples=150, deadline=None)
@given(
    corpora,
    st.sampled_from(["exp", "floor", "add-k", "none"]),
    st.sampled_from([None, 0.25, 2.0]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["13a", "none", "intl", "char", None]),
)
def test_bleu_options_are_sacrebleus(
    corpus: Corpus, method: str, value: float | None, effective: bool, lower: bool, tokenize: str | None
) -> None:
    closing = {"smooth_method": method, "smooth_value": value, "effective_order": effective}
    sums = counts_of("bleu", corpus, freeze_options(closing, lowercase=lower, tokenize=tokenize)).sum(axis=0)
    expected = sacrebleu_score(BLEU(**closing, lowercase=lower, tokenize=tokenize), corpus)
    np.testing.assert_allclose(bleu_score(sums, **closing), expected, **CLOSE)


@settings(max_examples=100, deadline=None)
@given(corpora, st.integers(1, 6), st.integers(0, 3), st.integers(1, 3), st.booleans(), st.booleans(), st.booleans())
def test_chrf_options_are_sacrebleus(
    corpus: Corpus, char_order: int, word_order: int, beta: int, lower: bool, whitespace: bool, eps: bool
) -> None:
    chosen = {"char_order": char_order, "word_order": word_order, "beta": beta, "eps_smoothing": eps}
    chosen |= {"lowercase": lower, "whitespace": whitespace}
    counts = counts_of("chrf", corpus, freeze_options(chosen))
    assert counts.shape == (len(corpus), 3 * (char_order + word_order))
    found = chrf_score(counts.sum(axis=0), beta=beta, eps_smoothing=eps)
    np.testing.assert_allclose(found, sacrebleu_score(CHRF(**chosen), corpus), **CLOSE)


@settings(max_examples=60, deadline=None)
@given(corpora, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_ter_options_are_sacrebleus(corpus: Corpus, normalized: bool, no_punct: bool, asian: bool, case: bool) -> None:
    chosen = {"normalized": normalized, "no_punct": no_punct, "asian_support": asian, "case_sensitive": case}
    found = ter_score(counts_of("ter", corpus, freeze_options(chosen)).sum(axis=0))
    np.testing.assert_allclose(found, sacrebleu_score(TER(**chosen), corpus), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(corpora)
def test_a_batch_equals_its_documents_one_by_one(kind: str, corpus: Corpus) -> None:
    alone = [counts_of(kind, [document]) for document in corpus]
    assert np.array_equal(counts_of(kind, corpus), np.concatenate(alone))


@settings(max_examples=60, deadline=None)
@given(st.lists(corpora, min_size=1, max_size=4))
def test_finalisers_are_vectorised_bit_by_bit(several: list[Corpus]) -> None:
    for kind, close in {"bleu": bleu_score, "chrf": chrf_score, "ter": ter_score}.items():
        sums = np.stack([counts_of(kind, corpus).sum(axis=0) for corpus in several])
        many = close(sums[:, None, :])
        assert many.shape == (len(several), 1)
        assert many.dtype == np.float64
        assert many[:, 0].tolist() == [float(close(row)) for row in sums]


@settings(max_examples=100, deadline=None)
@given(corpora, st.integers(0, 23), st.sampled_from(["exp", "floor", "add-k", "none"]), st.booleans())
def test_the_complex_step_is_the_derivative(corpus: Corpus, place: int, method: str, effective: bool) -> None:
    closers = {
        "bleu": lambda sums: bleu_score(sums, smooth_method=method, effective_order=effective),
        "chrf": chrf_score,
        "chrf++": chrf_score,
        "ter": ter_score,
    }
    for kind, close in closers.items():
        sums = counts_of(kind, corpus).sum(axis=0)
        at = place % len(sums)
        if sums[at] == 0 or (kind == "bleu" and sums[0] == sums[1]):
            continue  # a kink: there the derivative is one-sided
        step, h = np.zeros(len(sums)), 1e-5
        step[at] = h
        slope = (close(sums + step) - close(sums - step)) / (2 * h)
        complex_step = close(sums + 1e-30j * (step / h)).imag / 1e-30
        assert close(sums + 0j).real == pytest.approx(float(close(sums)), rel=1e-13, abs=1e-13)
        assert float(complex_step) == pytest.approx(float(slope), rel=1e-5, abs=1e-5)


def test_lengths_are_not_truncated() -> None:
    """sacrebleu cuts summed lengths to integers; a weighted sum must not jump."""
    sums = np.array([3.5, 4.5, 3, 2, 1, 1, 3.5, 2.5, 1.5, 1.0])
    ratio = bleu_score(sums) / bleu_score(np.array([4.5, 4.5, *sums[2:]]))
    assert float(ratio) == pytest.approx(np.exp(1 - 4.5 / 3.5), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_texts_do_not_raise(kind: str) -> None:
    odd = ["", " ", "\ud83d", "\x00", "a\u2028b", "\n", "\ufeff", "x" * 300]
    rows = counts_of(kind, [(text, (gold,)) for text in odd for gold in odd])
    assert rows.shape == (64, WIDTHS[kind])
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_gold_is_unscorable(kind: str) -> None:
    marks = TEXT_METRICS[kind].score(batch_of([("a", ("a",)), ("b", ())]), freeze_options())
    assert isinstance(marks, Marks)
    assert marks.missing == {1: (UNSCORABLE, "expected a gold answer, got none")}
    assert isinstance(marks.rows, Stats)
    assert np.isfinite(marks.rows.values.floats[0]).all()


def test_what_sacrebleu_cannot_take_is_unscorable(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalcore.core.metrics import corpus

    def extract(hypotheses: list[str], references: list[list[str]]) -> list[list[float]]:
        if "bad" in hypotheses[0]:
            raise UnicodeError("surrogates not allowed")
        return BLEU()._extract_corpus_statistics(hypotheses, references)

    stub = type("Stub", (), {"_extract_corpus_statistics": staticmethod(extract)})()
    monkeypatch.setattr(corpus, "_make_extractor", lambda kind, given_options: stub)
    marks = bleu(batch_of([("a", ("a",)), ("bad", ("a",))]), freeze_options())
    assert isinstance(marks, Marks)
    reason = "sacrebleu cannot count this text: UnicodeError: surrogates not allowed"
    assert marks.missing == {1: (UNSCORABLE, reason)}
    with pytest.raises(EvalError, match="item 0 of bleu"):
        pair_statistics("bleu", [("a", "bad")])


def test_counts_are_those_of_the_public_scores() -> None:
    """The private call that counts a sentence gives what the public score of BLEU and of TER holds; chrF's has none."""
    corpus = [("the cat sat on a mat", ("a cat sat on the mat", "the cat")), ("b c", ("b",))]
    for row, (text, golds) in zip(bleu(batch_of(corpus), freeze_options()).values.data.tolist(), corpus, strict=True):
        score = BLEU(effective_order=True).sentence_score(text, golds)
        assert row == [score.sys_len, score.ref_len, *score.counts, *score.totals]
    for row, (text, golds) in zip(ter(batch_of(corpus), freeze_options()).values.data.tolist(), corpus, strict=True):
        score = TER().sentence_score(text, golds)
        assert row == [score.num_edits, score.ref_length]


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_give_the_same_counts(kind: str) -> None:
    corpus = [("a cat sat", ("the cat sat", "a cat")), ("b", ("b",)), ("", ("c d",))]
    items = [(list(golds) if len(golds) > 1 else golds[0], text) for text, golds in corpus]
    assert np.array_equal(pair_statistics(kind, items), counts_of(kind, corpus))
    assert np.array_equal(pair_statistics(kind, [(golds, [text]) for golds, text in items]), counts_of(kind, corpus))
    assert pair_statistics(kind, []).shape == (0, WIDTHS[kind])


def test_pairs_agree_with_lm_eval() -> None:
    metrics = pytest.importorskip("lm_eval.api.metrics")
    items = [("the cat sat on the mat", "the cat sat on a mat"), ("it is 3.5 dogs", "It is 3 dogs.")]
    close = {"bleu": bleu_score, "chrf": chrf_score, "chrf++": chrf_score, "ter": ter_score}
    theirs = {"bleu": metrics.bleu, "chrf": metrics.chrf, "chrf++": metrics.chrfpp, "ter": metrics.ter}
    for kind in KINDS:
        found = float(close[kind](pair_statistics(kind, items).sum(axis=0)))
        assert found == pytest.approx(theirs[kind](items), rel=1e-12)


def test_lm_eval_cuts_references_to_the_fewest_and_we_do_not() -> None:
    metrics = pytest.importorskip("lm_eval.api.metrics")
    items = [(["x y z w v", "the cat sat on mats"], "the cat sat on mats"), (["a b c d"], "a b c d")]
    assert metrics.bleu(items) < 50
    assert float(bleu_score(pair_statistics("bleu", items).sum(axis=0))) == pytest.approx(100)


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        ("bleu", {"tokenise": "13a"}, "did you mean 'tokenize'"),
        ("bleu", {"tokenize": "no-such"}, "sacrebleu cannot make bleu"),
        ("ter", {"beta": 2}, "Known: asian_support, case_sensitive, no_punct, normalized"),
    ],
)
def test_wrong_options_are_named(kind: str, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        TEXT_METRICS[kind].score(batch_of([("a", ("a",))]), freeze_options(wrong))


def test_wrong_pairs_and_kinds_are_named() -> None:
    with pytest.raises(EvalError, match=r"expected one prediction, got .* .item 0"):
        pair_statistics("bleu", [("a", ["b", "c"])])
    with pytest.raises(EvalError, match=r"expected a text or texts, got 3 .item 1"):
        pair_statistics("bleu", [("a", "b"), (3, "c")])
    with pytest.raises(EvalError, match="did you mean 'bleu'"):
        pair_statistics("blue", [("a", "b")])
    with pytest.raises(EvalError, match="did you mean 'floor'"):
        bleu_score(np.ones(10), smooth_method="flor")


SYSTEMS = ["LIUM-NMT.4900", "online-A.0", "online-B.0", "online-F.0", "online-G.0"]


@pytest.mark.parametrize(
    "system", [SYSTEMS[0], *(pytest.param(system, marks=pytest.mark.slow) for system in SYSTEMS[1:])]
)
@pytest.mark.skipif(not WMT17.exists(), reason=f"{WMT17} is not here")
def test_published_wmt17_scores(system: str) -> None:
    meta, name = json.loads((WMT17 / "meta.json").read_text()), f"newstest2017.{system}.en-de"
    with gzip.open(WMT17 / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        items = [(row["reference"], row[f"{system}.en-de"]) for row in map(json.loads, lines)]
    published, expected = meta["published"][name], meta["expected"][name]
    found_bleu = float(bleu_score(pair_statistics("bleu", items).sum(axis=0)))
    found_chrf = float(chrf_score(pair_statistics("chrf", items).sum(axis=0)))
    assert (round(found_bleu, 1), round(found_chrf, 1)) == (published["BLEU"], published["chrF2"])
    assert found_bleu == pytest.approx(expected["bleu_13a"], rel=1e-12)
    assert found_chrf == pytest.approx(expected["chrf"], rel=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not WMT17.exists(), reason=f"{WMT17} is not here")
def test_wmt17_under_other_options() -> None:
    name = "newstest2017.online-B.0.en-de"
    expected = json.loads((WMT17 / "meta.json").read_text())["expected"][name]
    with gzip.open(WMT17 / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        items = [(row["reference"], row["online-B.0.en-de"]) for row in map(json.loads, lines)]
    for key, chosen in {
        "bleu_tok_none": {"tokenize": "none"},
        "bleu_13a_lowercase": {"lowercase": True},
        "bleu_intl": {"tokenize": "intl"},
        "bleu_char": {"tokenize": "char"},
    }.items():
        found = bleu_score(pair_statistics("bleu", items, freeze_options(chosen)).sum(axis=0))
        assert float(found) == pytest.approx(expected[key], rel=1e-12)
    found = chrf_score(pair_statistics("chrf++", items).sum(axis=0))
    assert float(found) == pytest.approx(expected["chrfpp"], rel=1e-12)
    assert float(ter_score(pair_statistics("ter", items).sum(axis=0))) == pytest.approx(expected["ter"], rel=1e-12)
