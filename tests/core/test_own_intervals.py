"""Intervals that belong to an aggregation (calibration, rare classes), and the reasons where there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sklearn.metrics import f1_score, matthews_corrcoef

from evalcore import AGGREGATIONS, Estimate, MetricKey, TaskReport, aggregate_metric, freeze_options
from evalcore.core.aggregate.aggregations import from_callable
from evalcore.core.groups.report import report_group
from evalcore.core.lm_eval.result_file import lm_eval_results
from evalcore.core.records.estimate import Bracket, Evidence
from evalcore.core.records.report import Report
from evalcore.core.records.row import Rows
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.shell.output.terminal.notes import collect_notes
from evalcore.stats import Array, Floats, Inference, Labels, Resampling, Stats, build_column, merge_columns

RNG = np.random.default_rng(13)


def close(name: str, rows: Rows, n: int, **given: object) -> Estimate:
    options = freeze_options(given.pop("options", {}))
    return aggregate_metric(AGGREGATIONS[name], build_column(range(n), rows), options=options, **given)


def of_scores(name: str, scores: Sequence[float], **given: object) -> Estimate:
    return close(name, Floats(Array(np.array(scores, np.float64))), len(scores), **given)


def answers(n: int, off: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    said = 0.2 + 0.8 * rng.beta(2.0, 2.0, n)
    return np.column_stack([said, rng.random(n) < said + off])


def of_answers(scores: np.ndarray, **given: object) -> Estimate:
    return close("ece", Stats(Array(scores)), len(scores), **given)


# --- calibration, trust.md 1.9 ---


def naive_ece(scores: np.ndarray, draws: int, codes: np.ndarray | None = None) -> tuple[float, float, float]:
    """The recipe as it is written, document by document, with draws of its own."""
    rng, n = np.random.default_rng(99), len(scores)
    bins = np.minimum((scores[:, 0] * 10).astype(int), 9)
    gaps = scores[:, 1] - scores[:, 0]
    value = sum(abs(gaps[bins == b].sum()) for b in range(10)) / n
    shrunk = np.zeros(10)
    for b in range(10):
        total, error = gaps[bins == b].sum() / n, np.sqrt((gaps[bins == b] ** 2).sum()) / n
        shrunk[b] = np.sign(total) * max(abs(total) - error, 0.0)
    chance, added = [], []
    for _ in range(draws):
        right = rng.random(n) < scores[:, 0]
        chance.append(sum(abs((right - scores[:, 0])[bins == b].sum()) for b in range(10)) / n)
        signs = rng.choice([-1.0, 1.0], n) * gaps / n
        moved = [abs(shrunk[b] + signs[bins == b].sum()) for b in range(10)]
        added.append(sum(moved) - np.abs(shrunk).sum())
    low = max(0.0, value - np.quantile(added, 0.975)) if value > np.quantile(chance, 0.975) else 0.0
    return low, value + 1.96 * np.sqrt(np.mean(gaps**2) / n), float(np.mean(chance))


@pytest.mark.parametrize("off", [0.0, -0.2, -0.4])
def test_calibration_follows_the_recipe(off: float) -> None:
    scores = answers(200, off)
    made, (low, high, usual) = of_answers(scores), naive_ece(scores, 3000)
    assert made.ci is not None
    assert made.reference is not None
    assert made.ci[0] == pytest.approx(low, abs=0.012)
    assert (made.ci[0] == 0.0) == (off == 0.0)
    assert made.ci[1] == pytest.approx(high, abs=2e-5)
    assert made.reference[0] == "a calibrated model"
    assert made.reference[1] == pytest.approx(usual, rel=0.04)


def test_a_task_with_more_documents_than_are_drawn_at_once_draws_as_before() -> None:
    """Blocks of rows: with clusters, one that spans two blocks goes on with its own draws."""
    scores = answers(6000, 0.0, seed=3)
    alone, paired = of_answers(scores), of_answers(scores, clusters=np.arange(6000) // 2500)
    assert alone.reference is not None
    assert alone.reference[1] == pytest.approx(naive_ece(scores, 60)[2], rel=0.1)
    assert paired.reference is not None
    assert paired.reference[1] > 3 * alone.reference[1], "three clusters are three draws"
    assert alone.signature.endswith("calibration(draws=400,seed=0)")


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_calibration_does_not_depend_on_ids_or_order(n: int, seed: int, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = np.round(answers(n, -0.1, seed), 1 if tied else 9)
    codes, order = rng.integers(0, 4, n), rng.permutation(n)
    for clusters, moved in ((None, None), (codes, 7 - codes[order] * 3)):
        plain, other = of_answers(scores, clusters=clusters), of_answers(scores[order], clusters=moved)
        assert (plain.ci, plain.reference) == (other.ci, other.reference)
    halves = [build_column(keys, Stats(Array(scores[keys]))) for keys in (range(n // 2), range(n // 2, n))]
    merged = aggregate_metric(AGGREGATIONS["ece"], merge_columns(halves[1], halves[0]))
    assert (merged.ci, merged.reference) == (of_answers(scores).ci, of_answers(scores).reference)


def test_the_seed_of_the_resampling_is_that_of_the_draws() -> None:
    scores = answers(100, -0.3)
    other = of_answers(scores, inference=Inference(resampling=Resampling(seed=5)))
    assert other.reference != of_answers(scores).reference
    assert "calibration(draws=400,seed=5)" in other.signature


def test_clusters_of_one_are_documents_and_clusters_that_agree_say_less() -> None:
    scores = answers(120, -0.3)
    alone = of_answers(scores, clusters=np.arange(120))
    assert alone.ci is not None
    assert alone.ci[1] == pytest.approx(of_answers(scores).ci[1], rel=1e-12)  # type: ignore[index]
    one = of_answers(scores, clusters=np.zeros(120, np.int64))
    assert (one.ci, one.reason) == (None, "needs two clusters, got 1")


def test_what_a_calibrated_model_would_get_is_shown_and_written() -> None:
    made = of_answers(answers(100, 0.0))
    report = Report(tasks=(TaskReport(name="t", estimates=((MetricKey("ece"), made),)),))
    assert made.reference is not None
    assert f"ece: a calibrated model would get {made.reference[1]:.3g} (t)" in collect_notes(report)
    written = json.loads(json.dumps(lm_eval_results(report)["evalcore"]))["estimates"]["t"]["ece,none"]
    assert written["reference"] == {"of": "a calibrated model", "value": made.reference[1]}
    assert written["warnings"] == []


def test_groups_of_calibration_errors() -> None:
    key = MetricKey("ece")

    def leaf(i: int) -> Leaf[TaskReport]:
        column = build_column(range(60), Stats(Array(answers(60, -0.1, i))))
        made = aggregate_metric(AGGREGATIONS["ece"], column)
        return Leaf(f"t{i}", TaskReport(name=f"t{i}", estimates=((key, made),), columns=((key, column),)))

    for how in ("macro", "pool"):
        one, many = (
            report_group(Group("g", tuple(map(leaf, range(k))), (GroupMetric("ece", aggregation=how),))) for k in (1, 3)
        )
        task = leaf(0).value.estimates[0][1]
        assert (one[key].ci, one[key].reference, one.warnings) == (task.ci, task.reference, ())
        assert many[key].ci is not None
        assert [warning for warning in many.warnings if "own intervals" in warning]


# --- any aggregation may have an interval of its own ---


def test_an_own_interval_stands_for_every_closed_form() -> None:
    def bracket(evidence: Evidence, confidence: float) -> Bracket:
        return Bracket(ci=(evidence.value - confidence, evidence.value), method="mine", warnings=("odd",))

    own = replace(AGGREGATIONS["mean"], name="another", interval=bracket)
    column = build_column(range(4), Floats(Array(np.array([0.0, 1.0, 1.0, 0.5]))))
    for method in ("wilson", "t", "exact", "z"):
        made = aggregate_metric(own, column, inference=Inference(interval=method, confidence=0.5))
        assert (made.ci, made.warnings, made.signature) == ((0.125, 0.625), ("odd",), "delta|ci:mine")
    drawn = aggregate_metric(own, column, inference=Inference(interval="percentile"))
    assert drawn.ci != (0.125, 0.625)
    assert "percentile" in drawn.signature


# --- rare classes, trust.md 1.9 ---


def naive_cells(labels: np.ndarray, score: str) -> tuple[float, float]:
    """scikit-learn's score of the filled table, and its delta error by differences in each cell."""
    k = int(labels.max()) + 1
    cells = np.array([(i, j) for i in range(k) for j in range(k)])
    filled = np.array([(labels == cell).all(axis=1).sum() for cell in cells], np.float64)
    filled += np.where(cells[:, 0] == cells[:, 1], 0.5, (1.0 if k == 2 else 1.5) / (k * (k - 1)))

    def at(weights: np.ndarray) -> float:
        if score == "mcc":
            return float(matthews_corrcoef(cells[:, 0], cells[:, 1], sample_weight=weights))
        return float(f1_score(cells[:, 0], cells[:, 1], average=score, sample_weight=weights))

    steps = np.eye(len(cells)) * 1e-4
    slopes = np.array([(at(filled + step) - at(filled - step)) / 2e-4 for step in steps])
    return at(filled), float(np.sqrt(filled @ slopes**2))


@pytest.mark.parametrize("score", ["macro", "weighted", "mcc"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_error_of_rare_classes_is_that_of_the_filled_table(k: int, score: str) -> None:
    gold = np.r_[np.arange(k), RNG.choice(k, 60, p=np.arange(k, 0, -1) / np.arange(1, k + 1).sum())]
    labels = np.column_stack([gold, np.where(RNG.random(len(gold)) < 0.6, gold, RNG.integers(0, k, len(gold)))])
    centre, stderr = naive_cells(labels, score)
    name, options = ("matthews_corrcoef", {}) if score == "mcc" else ("f1", {"average": score})
    made = close(name, Labels(Array(labels)), len(labels), options=options)
    assert made.ci is not None
    assert made.ci == pytest.approx((centre - 1.959964 * stderr, centre + 1.959964 * stderr), abs=1e-6)
    apart = close(name, Labels(Array(labels)), len(labels), options=options, clusters=np.arange(len(labels)))
    assert apart.ci is not None
    assert apart.ci[1] - apart.ci[0] == pytest.approx(made.ci[1] - made.ci[0], rel=0.04), "t, and n / (n - 1)"
    assert "ci:delta-filled" in made.signature


def test_rare_classes_are_named_and_renamed_classes_are_the_same() -> None:
    gold = np.r_[np.zeros(30, np.int64), np.ones(12, np.int64), np.full(3, 2)]
    labels = np.column_stack([gold, np.roll(gold, 5)])
    made = close("f1", Labels(Array(labels)), 45, options={"average": "macro"})
    assert made.warnings == ("fewer than 10 documents of class 2 (3): the interval may be too short",)
    renamed = close("f1", Labels(Array(np.array([8, 5, 3])[labels])), 45, options={"average": "macro"})
    assert renamed.ci == pytest.approx(made.ci, rel=1e-12)
    assert renamed.warnings == ("fewer than 10 documents of class 3 (3): the interval may be too short",)
    micro = close("f1", Labels(Array(labels)), 45, options={"average": "micro"})
    assert micro.warnings == (), "micro F1 is a share of right answers"


def test_scores_without_a_positive_or_a_second_class_could_be_anything() -> None:
    none = Labels(Array(np.zeros((8, 2), np.int64)))
    f1, macro = close("f1", none, 8), close("f1", none, 8, options={"average": "macro"})
    assert (f1.value, f1.ci, f1.warnings) == (0.0, (0.0, 1.0), ("no document is positive or predicted to be",))
    mcc = close("matthews_corrcoef", none, 8)
    assert (macro.ci, mcc.ci) == ((0.0, 1.0), (-1.0, 1.0))
    assert macro.warnings == mcc.warnings == ("only one class occurs, so others are unknown",)


# --- reasons ---


@pytest.mark.parametrize("method", ["wilson", "t", "exact", "z", "percentile", "bca"])
def test_a_translation_error_of_zero_has_an_interval(method: str) -> None:
    """As if a sentence with an edit had one in every word: Wilson's interval for 20 of 20."""
    perfect = Stats(Array(np.tile([0.0, 7.0], (20, 1))))
    made = close("ter", perfect, 20, inference=Inference(interval=method))
    right = of_scores("mean", [1.0] * 20).ci
    assert right is not None
    assert made.ci == pytest.approx((0.0, 100 * (1 - right[0])))
    assert "no sentence has an edit" in made.warnings[0]
    alike = close("ter", Stats(Array(np.tile([1.0, 7.0], (20, 1)))), 20)
    assert (alike.ci, alike.reason) == (None, "the documents show no spread, and the value has no bounds")
    mixed = np.column_stack([np.r_[np.zeros(19), 3.0], np.full(20, 7.0)])
    assert close("ter", Stats(Array(mixed)), 20).ci[0] == 0.0, "no edit rate is negative"  # type: ignore[index]


@pytest.mark.parametrize("name", ["mean", "median"])
def test_huge_scores_have_the_interval_of_their_small_twins(name: str) -> None:
    scores = [1.0, 2.0, 3.0, 7.0]
    for codes in (None, np.array([0, 0, 1, 2])):
        small, huge = (of_scores(name, [one * by for one in scores], clusters=codes) for by in (1e3, 1e200))
        assert huge.reason is None
        assert huge.ci == pytest.approx(tuple(1e197 * end for end in small.ci or ()), rel=1e-12)
        assert huge.stderr == pytest.approx(1e197 * (small.stderr or 0.0), rel=1e-12)


def test_reasons_are_true() -> None:
    infinite = of_scores("perplexity", [inf, -1.0, -2.0])
    assert (infinite.value, infinite.stderr, infinite.reason) == (0.0, None, "a score is not finite")
    assert of_scores("median", [1.0]).reason == "needs two documents, got 1"
    assert of_scores("median", [1.0, 2.0, inf]).reason == "a score is not finite"
    assert of_scores("median", [1.0, 2.0], clusters=np.array([4, 4])).reason == "needs two clusters, got 1"
    alone = build_column(range(1), Floats(Array(np.array([1.0]))))
    assert aggregate_metric(from_callable(max), alone).reason == "needs two documents, got 1"


def test_a_group_of_huge_scores_has_an_interval() -> None:
    key = MetricKey("loss")
    tasks = tuple(
        Leaf(f"t{i}", TaskReport(name=f"t{i}", estimates=((key, of_scores("mean", [i * 1e200, 2e200, 5e200])),)))
        for i in range(3)
    )
    made = report_group(Group("g", tasks, (GroupMetric("loss"),)))[key]
    small = tuple(
        Leaf(f"t{i}", TaskReport(name=f"t{i}", estimates=((key, of_scores("mean", [i * 1e3, 2e3, 5e3])),)))
        for i in range(3)
    )
    twin = report_group(Group("g", small, (GroupMetric("loss"),)))[key]
    assert made.ci == pytest.approx(tuple(1e197 * end for end in twin.ci or ()), rel=1e-9)
