"""Every aggregation of lm-eval 0.4.13 and every stderr it has, the bootstraps replayed draw by draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("lm_eval")

from both_sides import quiet, same_number
from lm_eval.api import metrics as lm
from lm_eval.api.registry import AGGREGATION_REGISTRY

from evalcore import AGGREGATIONS, EVALCORE, Estimate, Tables, aggregate_metric
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import Array, Floats, Inference, Objects, Resampling, build_column

RNG = np.random.default_rng


def estimate(name: str, items: Sequence[object], tables: Tables = LM_EVAL_0_4_13, draws: int | None = 1000) -> Estimate:
    plain = all(isinstance(item, float | int) for item in items)
    rows = Floats(Array(np.array(items, np.float64))) if plain else Objects(tuple(items))
    inference = Inference(resampling=Resampling(draws))
    return aggregate_metric(tables.aggregations[name], build_column(range(len(items)), rows), inference=inference)


def lm_stderr(function: Callable[..., float], items: Sequence[object], draws: int) -> float:
    return quiet(lm.stderr_for_metric(function, draws), list(items))


def words(seed: int, n: int) -> list[tuple[str, str]]:
    """(reference, prediction) pairs that share some of their words."""
    rng = RNG(seed)
    vocabulary = [
        "the",
        "a",
        "cat",
        "dog",
        "sat",
        "ran",
        "on",
        "mat",
        ",",
        ".",
        "quickly",
        "über",
        "naïve",
        "東京",
        "house",
    ]
    out = []
    for _ in range(n):
        gold = rng.choice(vocabulary, size=rng.integers(3, 12)).tolist()
        said = [word if rng.random() < 0.7 else str(rng.choice(vocabulary)) for word in gold][: rng.integers(1, 12)]
        out.append((" ".join(gold), " ".join(said)))
    return out


def numbers(seed: int, n: int) -> list[float]:
    return RNG(seed).normal(0, 3, n).tolist()


def bits(seed: int, n: int) -> list[float]:
    return RNG(seed).integers(0, 2, n).astype(float).tolist()


def pairs(seed: int, n: int, classes: int = 2) -> list[tuple[int, int]]:
    rng = RNG(seed)
    gold = rng.integers(0, classes, n)
    said = np.where(rng.random(n) < 0.6, gold, rng.integers(0, classes, n))
    return list(zip(gold.tolist(), said.tolist(), strict=True))


def lengths(seed: int, n: int) -> list[tuple[float, int]]:
    rng = RNG(seed)
    return [(-float(x), int(k)) for x, k in zip(rng.gamma(5, 20, n), rng.integers(1, 90, n), strict=True)]


def probabilities(seed: int, n: int) -> list[tuple[int, list[float]]]:
    rng = RNG(seed)
    return [(int(g), p.tolist()) for g, p in zip(rng.integers(0, 4, n), rng.dirichlet(np.ones(4), n), strict=True)]


ITEMS: dict[str, Callable[[int, int], list[object]]] = {
    "mean": numbers,
    "median": numbers,
    "nanmean": numbers,
    "perplexity": lambda seed, n: (-np.abs(RNG(seed).normal(2, 1, n))).tolist(),
    "weighted_perplexity": lengths,
    "bits_per_byte": lengths,
    "f1": pairs,
    "matthews_corrcoef": lambda seed, n: pairs(seed, n, 2 + seed % 3),
    "brier_score": probabilities,
    "bleu": words,
    "chrf": words,
    "chrf++": words,
    "ter": words,
}

LM = {name: AGGREGATION_REGISTRY[name] for name in ITEMS}
BOOTSTRAPPED = ("median", "nanmean", "perplexity", "f1", "matthews_corrcoef")
CORPUS = ("bleu", "chrf", "chrf++", "ter")


def test_every_aggregation_of_lm_eval_is_here() -> None:
    assert set(AGGREGATION_REGISTRY) <= set(AGGREGATIONS)


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("seed", range(8))
def test_values(name: str, seed: int) -> None:
    items = ITEMS[name](seed, [2, 3, 10, 41, 64, 100, 101, 250][seed])
    assert same_number(LM[name](items), estimate(name, items).value)
    if name != "median" or len(items) % 2:
        assert same_number(LM[name](items), estimate(name, items, EVALCORE).value)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=400))
def test_means_of_bits_agree_to_the_last_bit(items: list[float]) -> None:
    assert estimate("mean", items).value == lm.mean(items)
    assert estimate("mean", items, EVALCORE).value == lm.mean(items)


@settings(max_examples=200)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60))
def test_mean_and_its_stderr(items: list[float]) -> None:
    found = estimate("mean", items)
    assert same_number(lm.mean(items), found.value)
    assert same_number(lm.mean_stderr(items), found.stderr, stderr=True)


@settings(max_examples=200)
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=300))
def test_stderr_of_bits(items: list[float]) -> None:
    for tables in (LM_EVAL_0_4_13, EVALCORE):
        assert same_number(lm.mean_stderr(items), estimate("mean", items, tables).stderr, stderr=True)


@pytest.mark.parametrize("name", BOOTSTRAPPED)
@pytest.mark.parametrize("draws", [1000, 1999, 2500])
def test_bootstrap_replayed(name: str, draws: int) -> None:
    slow = name in ("f1", "matthews_corrcoef")  # scikit-learn takes a millisecond a draw
    draws = draws // 10 if slow else draws
    items = ITEMS[name](draws, 40 if slow else 101)
    assert same_number(lm_stderr(LM[name], items, draws), estimate(name, items, draws=draws).stderr, stderr=True)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_bootstrap_replayed_at_any_size(n: int) -> None:
    for name in ("median", "perplexity", "nanmean"):
        items = ITEMS[name](n, n)
        assert same_number(lm_stderr(LM[name], items, 1000), estimate(name, items).stderr, stderr=True)


@pytest.mark.parametrize("draws", [2, 7, 999])
def test_bootstrap_with_few_draws(draws: int) -> None:
    items = numbers(1, 30)
    assert same_number(lm_stderr(lm.median, items, draws), estimate("median", items, draws=draws).stderr, stderr=True)


def test_one_draw_has_no_spread() -> None:
    with pytest.raises(ZeroDivisionError):
        lm_stderr(lm.median, numbers(1, 30), 1)
    assert estimate("median", numbers(1, 30), draws=1).stderr is None


@pytest.mark.parametrize("name", CORPUS)
def test_corpus_bootstrap_replayed(name: str) -> None:
    items = words(7, 25)
    for draws in (100, 40):
        assert same_number(lm_stderr(LM[name], items, draws), estimate(name, items, draws=draws).stderr, stderr=True)


def test_several_references() -> None:
    items = [([gold, gold.upper()], [said]) for gold, said in words(9, 20)]
    for name in CORPUS:
        assert same_number(LM[name](items), estimate(name, items).value)


@pytest.mark.parametrize("name", ["weighted_perplexity", "bits_per_byte", "brier_score"])
def test_where_lm_eval_has_no_stderr(name: str) -> None:
    items = ITEMS[name](3, 30)
    assert lm.stderr_for_metric(LM[name], 1000) is None
    assert estimate(name, items).stderr is None
    ours = estimate(name, items, EVALCORE)
    assert ours.stderr is not None
    assert ours.stderr > 0


def test_bypass() -> None:
    assert estimate("bypass", [1.0, 2.0]).value == lm.bypass_agg([1.0, 2.0]) == 999
    assert estimate("bypass", [1.0, 2.0], EVALCORE).value is None


@pytest.mark.parametrize("seed", range(5))
def test_acc_all(seed: int) -> None:
    rng = RNG(seed)
    items = [
        (bool(rng.integers(0, 2)), {"idx": {"paragraph": p, "question": q}, "label": int(rng.random() < 0.7)})
        for p in range(12)
        for q in range(int(rng.integers(1, 4)))
        for _ in range(int(rng.integers(1, 3)))
    ]
    found = estimate("acc_all", items)
    assert same_number(lm.acc_all(items), found.value)
    assert same_number(lm.acc_all_stderr(items), found.stderr, stderr=True)
    assert same_number(lm.acc_all(items), estimate("acc_all", items, EVALCORE).value)


def gaps() -> list[float]:
    return [float("nan") if i % 6 == 0 else x for i, x in enumerate(numbers(2, 60))]


def test_nanmean_with_gaps() -> None:
    items = gaps()
    assert same_number(lm.nanmean(items), estimate("nanmean", items).value)
    assert same_number(lm.nanmean(items), estimate("nanmean", items, EVALCORE).value)


def test_nanmean_with_gaps_replayed() -> None:
    items = gaps()
    assert same_number(lm_stderr(lm.nanmean, items, 1000), estimate("nanmean", items).stderr, stderr=True)


def test_zero_draws_give_no_stderr() -> None:
    assert lm.stderr_for_metric(lm.mean, 0) is None
    for tables in (LM_EVAL_0_4_13, EVALCORE):
        found = estimate("mean", [0.0, 1.0], tables, draws=0)
        assert found.stderr is None
        assert found.reason == "bootstrap_iters is 0, so no errors are computed"


def test_one_document_has_no_stderr() -> None:
    for name in ("mean", "perplexity"):
        assert estimate(name, [-1.0]).stderr is None
        assert estimate(name, [-1.0], EVALCORE).stderr is None


@pytest.mark.parametrize("name", ["perplexity", "f1", "matthews_corrcoef", "bleu", "chrf"])
def test_our_default_stderr_is_what_the_bootstrap_estimates(name: str) -> None:
    """E18: closed forms against many replayed draws, corrected by sqrt(n / (n - 1))."""
    items = ITEMS[name](5, 400 if name in BOOTSTRAPPED else 150)
    ours = estimate(name, items, EVALCORE).stderr
    draws = 20_000 if name in BOOTSTRAPPED else 100
    replayed = estimate(name, items, draws=draws).stderr
    assert ours is not None
    assert replayed is not None
    n = len(items)
    assert math.isclose(ours, replayed * math.sqrt(n / (n - 1)), rel_tol=0.04 if draws > 100 else 0.25)
