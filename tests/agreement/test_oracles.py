"""Our default numbers against libraries that are right: scikit-learn, scipy, inspect_ai, sacrebleu."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore import AGGREGATIONS, Estimate, aggregate_metric, freeze_options
from evalcore.core.records.row import Rows
from evalcore.core.repeats.reducers import reducer
from evalcore.extensions import Repeats
from evalcore.stats import Array, Floats, Inference, Labels, Objects, build_column

RNG = np.random.default_rng


def estimate(
    name: str,
    rows: Rows,
    n: int,
    *,
    interval: str = "wilson",
    clusters: object = None,
    stderr: str = "cr2",
    **chosen: object,
) -> Estimate:
    inference = Inference(interval=interval, stderr=stderr)
    return aggregate_metric(
        AGGREGATIONS[name],
        build_column(range(n), rows),
        options=freeze_options(chosen),
        inference=inference,
        clusters=clusters,
    )


def labels(gold: Sequence[int], said: Sequence[int]) -> Labels:
    return Labels(Array(np.column_stack([gold, said]).astype(np.int64)))


def floats(values: Sequence[float]) -> Floats:
    return Floats(Array(np.asarray(values, np.float64)))


# --- scikit-learn -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
@pytest.mark.parametrize("seed", range(10))
def test_f1_of_many_classes(average: str, seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = RNG(seed)
    gold, said = rng.integers(0, 2 + seed % 4, (2, 80))
    found = estimate("f1", labels(gold, said), 80, average=average).value
    assert found == pytest.approx(sklearn.f1_score(gold, said, average=average), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60), st.integers(0, 1))
def test_binary_f1(pairs: list[tuple[int, int]], positive: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    gold, said = zip(*pairs, strict=True)
    expected = sklearn.f1_score(gold, said, pos_label=positive, labels=[0, 1], zero_division=0)
    found = estimate("f1", labels(gold, said), len(pairs), pos_label=positive).value
    assert found == pytest.approx(expected, rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60))
def test_matthews_correlation(pairs: list[tuple[int, int]]) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    gold, said = zip(*pairs, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sklearn.matthews_corrcoef(gold, said)
    found = estimate("matthews_corrcoef", labels(gold, said), len(pairs)).value
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_classes_by_name() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = RNG(4)
    gold, said = rng.choice(["cat", "dog", "emu"], (2, 50)).tolist()
    rows = Objects(tuple(zip(gold, said, strict=True)))
    assert estimate("f1", rows, 50, average="macro").value == pytest.approx(
        sklearn.f1_score(gold, said, average="macro")
    )
    assert estimate("matthews_corrcoef", rows, 50).value == pytest.approx(sklearn.matthews_corrcoef(gold, said))


@pytest.mark.parametrize("seed", range(5))
def test_brier_score(seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = RNG(seed)
    gold, chance = rng.integers(0, 2, 70), rng.random(70)
    rows = Objects(tuple((int(g), [1 - p, p]) for g, p in zip(gold, chance, strict=True)))
    # scikit-learn's binary score counts one of the two classes
    assert estimate("brier_score", rows, 70).value == pytest.approx(
        2 * sklearn.brier_score_loss(gold, chance), rel=1e-12
    )


# --- scipy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_mean_and_stderr(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    values = RNG(seed).normal(5, 2, 3 + 20 * seed)
    found = estimate("mean", floats(values), len(values))
    assert found.value == pytest.approx(values.mean(), rel=1e-14)
    assert found.stderr == pytest.approx(stats.sem(values), rel=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (20, 20), (7, 30), (199, 200), (1, 2)])
def test_exact_interval(hits: int, n: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    found = estimate("mean", floats([1.0] * hits + [0.0] * (n - hits)), n, interval="exact")
    low, high = stats.binomtest(hits, n).proportion_ci(method="exact")
    assert found.ci == pytest.approx((low, high), abs=1e-9)


def test_geometric_mean() -> None:
    """Perplexity is the geometric mean of inverse likelihoods."""
    stats = pytest.importorskip("scipy.stats")
    lls = -RNG(1).gamma(2, 1, 50)
    assert estimate("perplexity", floats(lls), 50).value == pytest.approx(stats.gmean(np.exp(-lls)), rel=1e-12)


def test_median_error_is_the_bootstraps() -> None:
    """Maritz and Jarrett against all 3125 resamples of five documents."""
    from itertools import product

    values = RNG(5).normal(size=5)
    medians = np.array([np.median(one) for one in product(values, repeat=5)])
    found = estimate("median", floats(values), 5)
    assert found.value == np.median(values)
    assert found.stderr == pytest.approx(medians.std(), rel=1e-12)


# --- inspect_ai ---------------------------------------------------------------------------------------------


def inspected(make: Callable[..., object], scores: Sequence[float], *args: object) -> float:
    inspect = pytest.importorskip("inspect_ai.scorer")
    return float(make(*args)([inspect.Score(value=value) for value in scores]).as_float())


@pytest.mark.parametrize(
    ("ours", "theirs", "args"),
    [
        ("mean", "mean_score", ()),
        ("median", "median_score", ()),
        ("mode", "mode_score", ()),
        ("max", "max_score", ()),
        ("at_least(2)", "at_least", (2,)),
        ("at_least(1)", "at_least", (1,)),
        ("pass@1", "pass_at", (1,)),
        ("pass@2", "pass_at", (2,)),
        ("pass@5", "pass_at", (5,)),
    ],
)
def test_reducers(ours: str, theirs: str, args: tuple[int, ...]) -> None:
    inspect = pytest.importorskip("inspect_ai.scorer")
    for seed in range(40):
        rng = RNG(seed)
        bits = rng.integers(0, 2, int(rng.integers(5, 12))).astype(float)
        expected = inspected(getattr(inspect, theirs), bits.tolist(), *args)
        assert reducer(ours)(Repeats(bits[None, :]))[0] == pytest.approx(expected, rel=1e-12), (ours, bits)


@pytest.mark.parametrize("name", ["mean", "median", "max"])
def test_reducers_of_fractions(name: str) -> None:
    inspect = pytest.importorskip("inspect_ai.scorer")
    for seed in range(20):
        scores = RNG(seed).random(1 + seed)
        expected = inspected(getattr(inspect, f"{name}_score"), scores.tolist())
        assert reducer(name)(Repeats(scores[None, :]))[0] == pytest.approx(expected, rel=1e-12)


def test_pass_k_by_counting() -> None:
    """pass@k and pass^k against all subsets of k replies."""
    from itertools import combinations

    for seed in range(10):
        bits = RNG(seed).integers(0, 2, 7)
        for k in range(1, 8):
            subsets = list(combinations(bits.tolist(), k))
            one = Repeats(bits[None, :].astype(float))
            assert reducer(f"pass@{k}")(one)[0] == pytest.approx(np.mean([any(s) for s in subsets]))
            assert reducer(f"pass^{k}")(one)[0] == pytest.approx(np.mean([all(s) for s in subsets]))


@pytest.mark.parametrize("seed", range(5))
def test_clustered_stderr(seed: int) -> None:
    scorer = pytest.importorskip("inspect_ai.scorer")
    rng = RNG(seed)
    values, clusters = rng.integers(0, 2, 60).astype(float), rng.integers(0, 12, 60)
    given = [
        scorer.SampleScore(score=scorer.Score(value=v), sample_metadata={"c": int(c)})
        for v, c in zip(values.tolist(), clusters.tolist(), strict=True)
    ]
    expected = float(scorer.stderr(cluster="c")(given))
    found = estimate("mean", floats(values), 60, clusters=clusters, stderr="cr1").stderr
    assert found == pytest.approx(expected, rel=1e-10)


# --- sacrebleu ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_corpus_scores(seed: int) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = RNG(seed)
    words = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", ",", ".", "quickly", "house", "über", "東京"]
    golds = [[" ".join(rng.choice(words, rng.integers(2, 12))) for _ in range(2)] for _ in range(25)]
    said = [" ".join(w if rng.random() < 0.7 else "x" for w in gold[0].split()) for gold in golds]
    rows = Objects(tuple((gold, one) for gold, one in zip(golds, said, strict=True)))
    streams = list(zip(*golds, strict=True))
    expected = {
        "bleu": sacrebleu.corpus_bleu(said, streams).score,
        "chrf": sacrebleu.corpus_chrf(said, streams).score,
        "chrf++": sacrebleu.corpus_chrf(said, streams, word_order=2).score,
        "ter": sacrebleu.corpus_ter(said, streams).score,
    }
    for name, value in expected.items():
        assert estimate(name, rows, 25).value == pytest.approx(value, rel=1e-12), name


def test_uncorrected_variance_is_stable() -> None:
    """E40: far from zero nothing cancels."""
    values = 1e9 + np.array([0.0, 1.0, 2.0])
    assert estimate("mean", floats(values), 3).stderr == pytest.approx(1 / math.sqrt(3), rel=1e-12)
