"""The sign-flip test of corpus metrics beside sacrebleu's approximate randomisation, and how often each cries wolf."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
import pytest

pytest.importorskip("sacrebleu")

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result, _paired_bs_test

from evalcore.core.metrics.corpus import pair_statistics
from evalcore.core.metrics.corpus_score import bleu_score, chrf_score, ter_score
from evalcore.core.records.array import Floats64
from evalcore.core.stats.sign_flips import flip_tests, sign_flip_test

logging.getLogger("sacrebleu").setLevel(logging.ERROR)

RNG = np.random.default_rng
SCORES: dict[str, Callable[[Floats64], Floats64]] = {"bleu": bleu_score, "chrf": chrf_score, "ter": ter_score}
LINE = "the river runs past an old mill where two friends count apples and trade coins for bread"
WORDS = LINE.split()
Sentences = list[str]


def said(references: Sequence[str], errors: float, seed: int) -> Sentences:
    """What a system makes of references: some words are others, some are missing."""
    rng = RNG(seed)

    def word(right: str) -> str:
        luck = rng.random()
        return str(rng.choice(WORDS)) if luck < errors else "" if luck < 1.2 * errors else right

    return [" ".join(filter(None, map(word, one.split()))) for one in references]


def sentences(n: int, seed: int) -> Sentences:
    rng = RNG(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(5, 16))) for _ in range(n)]


def counts(kind: str, references: Sentences, predictions: Sentences) -> Floats64:
    return pair_statistics(kind, list(zip(references, predictions, strict=True)))


def flipped(kind: str, a: Floats64, b: Floats64) -> Callable[[Floats64], Floats64]:
    """The difference after each row of swaps, for all draws at once."""
    total, gap, score = (a + b).sum(axis=0), a - b, SCORES[kind]
    return lambda signs: (score((total + signs @ gap) / 2) - score((total - signs @ gap) / 2))[:, None]


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 0.0), (2, 0.02), (3, 0.05))]


@pytest.mark.parametrize(("seed", "worse"), [*SLOW, (4, 0.1)])
def test_same_scores_and_p_values_as_sacrebleu(seed: int, worse: float) -> None:
    draws = 3000
    references = sentences(60, seed)
    a, b = said(references, 0.25, seed + 10), said(references, 0.25 + worse, seed + 20)
    metrics = {"BLEU": BLEU(), "chrF2": CHRF(), "TER": TER()}
    found = PairedTest([("a", a), ("b", b)], metrics, [references], "ar", n_samples=draws)()[1]
    theirs = dict(zip(SCORES, (found[name] for name in metrics), strict=True))
    for kind, score in SCORES.items():
        of_a, of_b = counts(kind, references, a), counts(kind, references, b)
        ours = sign_flip_test(of_a, of_b, lambda sums, score=score: float(score(sums)), draws=draws, seed=seed)
        scored = [float(score(one.sum(axis=0))) for one in (of_a, of_b)]
        assert scored == pytest.approx([one.score for one in theirs[kind]], rel=1e-9)
        assert ours.difference == pytest.approx(scored[0] - scored[1])
        # sacrebleu leaves ties out, we count them: TER moves in whole edits.
        signs = 2.0 * RNG(seed).integers(0, 2, size=(draws, len(a))) - 1
        ties = np.isclose(np.abs(flipped(kind, of_a, of_b)(signs)), abs(ours.difference), rtol=0, atol=1e-9).mean()
        expected = theirs[kind][1].p_value + ties
        assert ours.p_value == pytest.approx(expected, abs=4 * sqrt(3 * expected / draws) + 2 / draws), kind


def null_sets(kind: str, sets: int, n: int = 40) -> list[tuple[Floats64, Floats64]]:
    """Pairs of systems that are equally good: the same law of errors, sentences counted once and drawn many times."""
    references = sentences(300, 0)
    a, b = (counts(kind, references, said(references, 0.25, seed)) for seed in (1, 2))
    rng = RNG(3)
    picks, swaps = rng.integers(0, 300, (sets, n)), rng.integers(0, 2, (sets, n, 1)).astype(bool)
    return [
        (np.where(swap, a[pick], b[pick]), np.where(swap, b[pick], a[pick]))
        for pick, swap in zip(picks, swaps, strict=True)
    ]


@pytest.mark.parametrize(
    ("sets", "least", "most"), [(400, 0.01, 0.08), pytest.param(2000, 0.02, 0.06, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", SCORES)
def test_five_per_cent_of_equal_systems_are_found_different(kind: str, sets: int, least: float, most: float) -> None:
    found = []
    for seed, (a, b) in enumerate(null_sets(kind, sets)):
        moved = flipped(kind, a, b)
        observed = moved(np.ones((1, len(a))))[0]
        found.append(flip_tests(moved, observed, np.full(1, 1e-9), len(a), draws=199, seed=seed)[0])
    assert least <= np.mean(np.array(found) <= 0.05) <= most


def test_all_draws_at_once_are_the_draws_one_by_one() -> None:
    """What the test above simulates is ``sign_flip`` itself."""
    for seed, (a, b) in enumerate(null_sets("bleu", 10)):
        moved = flipped("bleu", a, b)
        one = sign_flip_test(a, b, lambda sums: float(bleu_score(sums)), draws=99, seed=seed)
        at_once = flip_tests(moved, np.array([one.difference]), np.full(1, 1e-9), len(a), draws=99, seed=seed)
        assert one.p_value == at_once[0]


class Counted(BLEU):
    """sacrebleu's BLEU of sentences that are counted already."""

    def _extract_corpus_statistics(self, hypotheses: Floats64, references: object) -> Floats64:
        return hypotheses


def test_sacrebleus_paired_bootstrap_finds_too_many() -> None:
    """It takes absolute differences before it centres them; on the same pairs of equal systems sign flips hold."""
    metric = Counted()

    def p_value(a: Floats64, b: Floats64, seed: int) -> float:
        baseline = {"BLEU": (a, Result(float(bleu_score(a.sum(axis=0)))))}
        return _paired_bs_test(baseline, "b", b, None, {"BLEU": metric}, n_samples=199, seed=seed)[1]["BLEU"].p_value

    found = [p_value(a, b, seed) for seed, (a, b) in enumerate(null_sets("bleu", 400))]
    assert np.mean(np.array(found) <= 0.05) > 0.07
