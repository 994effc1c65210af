"""ROUGE and TER against rouge-score and sacrebleu, to the bit: words repeated, shifted, left out; long and real texts."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalcore.core.answers.text import make_texts
from evalcore.core.metrics.corpus import CORPUS_DEFAULTS, pair_statistics
from evalcore.core.metrics.overlap import rouge
from evalcore.core.metrics.overlap import ter as edits
from evalcore.core.metrics.overlap.ter import count_edits
from evalcore.core.metrics.text import TEXT_METRICS
from evalcore.core.records.request import freeze_options
from evalcore.core.records.row import Floats

lib_ter = pytest.importorskip("sacrebleu.metrics.lib_ter")
TER = pytest.importorskip("sacrebleu.metrics").TER
rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
porter = pytest.importorskip("nltk.stem.porter")
tokenize = pytest.importorskip("rouge_score.tokenize")
WMT17 = Path(__file__).resolve().parents[3] / "shared" / "data" / "wmt17_ende_sacrebleu"
KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
INFLECTED = ["runs", "running", "ran", "dogged", "dogs", "generalise", "generously", "ties", "3.5", "ein"]
WORDS = [*INFLECTED, *(f"w{i}" for i in range(500))]


def shuffle_words(rng: random.Random, words: Sequence[str]) -> list[str]:
    """Some words left out, replaced or doubled, and up to four blocks shifted."""
    made = [one for word in words for one in rng.choice([(word,)] * 7 + [(), ("other",), (word, word)])]
    for _ in range(rng.randint(0, 4)):
        start = rng.randint(0, len(made))
        block = made[start : start + rng.randint(1, 12)]
        del made[start : start + len(block)]
        target = rng.randint(0, len(made))
        made[target:target] = block
    return made


@st.composite
def word_pairs(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A salad of few words, so that many shifts compete, and another one, unlike or made of it."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    vocabulary = WORDS[: draw(st.sampled_from([1, 2, 4, 9, 40]))]
    first, second = (rng.choices(vocabulary, k=draw(st.integers(0, 45))) for _ in range(2))
    return (first, shuffle_words(rng, first)) if draw(st.booleans()) else (first, second)


# --- TER --------------------------------------------------------------------------------------------------------


def check_edits(said: Sequence[str], gold: Sequence[str]) -> None:
    assert count_edits(said, gold) == lib_ter.translation_edit_rate(list(said), list(gold))[0]


@settings(max_examples=60, deadline=None)
@given(word_pairs())
@example(([], []))
@example((["a"], []))
@example(([], ["a"]))
@example((list("abbbc"), list("cbabb")))  # decided by a target right behind its block
def test_edits_are_sacrebleus(words: tuple[list[str], list[str]]) -> None:
    check_edits(*words)


LIMITS = {
    "BEAM": "_BEAM_WIDTH",
    "FARTHEST": "_MAX_SHIFT_DIST",
    "LONGEST": "_MAX_SHIFT_SIZE",
    "MOST_TRIED": "_MAX_SHIFT_CANDIDATES",
}
"""Our names of sacrebleu's limits."""


def test_the_limits_are_sacrebleus() -> None:
    assert {ours: getattr(edits, ours) for ours in LIMITS} == {
        ours: getattr(lib_ter, name) for ours, name in LIMITS.items()
    }


@pytest.mark.parametrize("name", LIMITS)
@settings(max_examples=40, deadline=None)
@given(words=word_pairs(), limit=st.sampled_from([1, 2, 3, 7, 20, 90]))
def test_edits_within_other_limits(name: str, words: tuple[list[str], list[str]], limit: int) -> None:
    """Limits so low that short texts meet them, in both libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits, name, limit)
        patch.setattr(lib_ter, LIMITS[name], limit)
        check_edits(*words)


def test_the_round_that_reaches_the_limit_is_lost() -> None:
    for limit in range(1, 80):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(edits, "MOST_TRIED", limit)
            patch.setattr(lib_ter, "_MAX_SHIFT_CANDIDATES", limit)
            check_edits(list("cdxabyefgh"), list("abcdefygh"))


LENGTHS = [
    (24, 25),
    (25, 24),
    (26, 51),
    pytest.param(60, 85, marks=pytest.mark.slow),
    (1, 130),
    (2, 130),
    (3, 155),
    (130, 2),
    (9, 140),
]


@pytest.mark.parametrize(("said", "gold"), LENGTHS)
def test_edits_at_the_edges_of_the_beam(said: int, gold: int) -> None:
    """Texts longer than the beam is wide, and so unlike in length that it jumps."""
    rng = random.Random(said * 1000 + gold)
    for size in (5, 50, 500):
        check_edits(rng.choices(WORDS[:size], k=said), rng.choices(WORDS[:size], k=gold))
        base = rng.choices(WORDS[:size], k=max(said, gold))
        check_edits(shuffle_words(rng, base)[:said], base[:gold])


pieces = st.sampled_from(
    ["A b, ", "a B. ", "&amp;lt; ", "3.5 ", "x-1's ", "猫、犬 ", "カナ", "b a ", "\n-", "1,a.b ", "?!"]
)
raw_texts = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=10)


@pytest.mark.parametrize("flags", list(product([False, True], repeat=4)), ids=str)
@settings(max_examples=25, deadline=None)
@given(raw_texts, st.lists(raw_texts, min_size=1, max_size=3))
@example("a &lt; b", ["a &amp;amp;lt; b"])
def test_ter_counts_are_sacrebleus_under_all_options(flags: tuple[bool, ...], said: str, golds: list[str]) -> None:
    chosen = dict(zip(sorted(CORPUS_DEFAULTS["ter"]), flags, strict=True))
    theirs = TER(**chosen)._extract_corpus_statistics([said], [[gold] for gold in golds])[0]
    assert pair_statistics("ter", [(golds, said)], freeze_options(chosen)).tolist() == [theirs]


# --- ROUGE ------------------------------------------------------------------------------------------------------


def find_score(kind: str, said: str, gold: str, stem: bool) -> float:
    rows = TEXT_METRICS[kind].score(make_texts([said], [gold]), freeze_options(use_stemmer=stem))
    assert isinstance(rows, Floats)
    return float(rows.values.floats[0])


def check_scores(said: str, gold: str, stem: bool) -> None:
    theirs = rouge_scorer.RougeScorer(KINDS, use_stemmer=stem).score(gold, said)
    assert {kind: find_score(kind, said, gold, stem) for kind in KINDS} == {
        kind: theirs[kind].fmeasure for kind in KINDS
    }


@pytest.mark.parametrize("stem", [False, True])
@settings(max_examples=150, deadline=None)
@given(word_pairs(), st.sampled_from([" ", "\n", ".\n\n"]), st.randoms(use_true_random=False))
def test_scores_are_rouge_scores(stem: bool, words: tuple[list[str], list[str]], end: str, rng: random.Random) -> None:
    said, gold = ("".join(word + rng.choice(["  ", " ", end]) for word in part) for part in words)
    check_scores(said, gold, stem)


@pytest.mark.parametrize(("strip", "stored"), [(1, 1), (3, 2), (7, 5)])
@settings(max_examples=60, deadline=None)
@given(words=word_pairs())
def test_scores_do_not_depend_on_the_size_of_a_part(
    strip: int, stored: int, words: tuple[list[str], list[str]]
) -> None:
    said, gold = map(" ".join, words)
    whole = [find_score(kind, said, gold, stem=False) for kind in KINDS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rouge, "STRIP", strip)
        patch.setattr(rouge, "STORED", stored)
        assert [find_score(kind, said, gold, stem=False) for kind in KINDS] == whole


endings = st.sampled_from(["s", "ies", "sses", "ing", "ed", "eed", "y", "ational", "fulness", "ement", "ion", "1", "a"])


@settings(max_examples=300, deadline=None)
@given(st.text() | raw_texts | st.lists(endings, min_size=2, max_size=4).map("".join))
@example("\ud83d a\x00B\u2028c İK 4e\u0301")
def test_words_are_rouge_scores(text: str) -> None:
    assert rouge._read_words(text) == tokenize.tokenize(text, None)
    assert rouge._read_stems(text) == tokenize.tokenize(text, porter.PorterStemmer())


def test_long_texts_in_little_memory() -> None:
    """A table of these words would have 4 * 10^8 cells."""
    gold = [f"w{i}" for i in range(20_000)]
    said = [word for i, word in enumerate(gold) if i % 9]
    tracemalloc.start()
    try:
        found = find_score("rougeL", " ".join(said), " ".join(gold), stem=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == pytest.approx(2 * len(said) / (len(said) + len(gold)), rel=1e-15)
    assert peak < 16e6


# --- real texts ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def translations() -> list[tuple[str, str]]:
    if not WMT17.exists():
        pytest.skip(f"{WMT17} is not here")
    with gzip.open(WMT17 / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [(row["online-B.0.en-de"], row["reference"]) for row in map(json.loads, lines)]


@pytest.mark.slow
def test_ter_of_real_sentences(translations: list[tuple[str, str]]) -> None:
    for chosen in ({}, {"normalized": True, "case_sensitive": True}):
        metric, some = TER(**chosen), translations[::9]
        theirs = metric._extract_corpus_statistics([said for said, _ in some], [[gold for _, gold in some]])
        assert pair_statistics("ter", [(gold, said) for said, gold in some], freeze_options(chosen)).tolist() == theirs


@pytest.mark.parametrize("sentences", [3, *(pytest.param(many, marks=pytest.mark.slow) for many in (8, 40))])
def test_ter_of_real_paragraphs(translations: list[tuple[str, str]], sentences: int) -> None:
    for start in (0, 100, 200):
        check_edits(*(" ".join(part).split() for part in zip(*translations[start : start + sentences], strict=True)))


@pytest.mark.parametrize("stem", [False, True])
@pytest.mark.parametrize(("sentences", "end"), [(1, ""), (12, "\n"), (12, " ")])
def test_rouge_of_real_texts(translations: list[tuple[str, str]], sentences: int, end: str, stem: bool) -> None:
    for start in range(0, 300, 30):
        check_scores(*map(end.join, zip(*translations[start : start + sentences], strict=True)), stem)
