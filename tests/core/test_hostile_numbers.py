"""Numbers at the edge of what a float holds, scores beyond bounds, weights of nothing: no crash, no empty interval."""

from __future__ import annotations

from math import inf, isfinite, isnan, log
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

from evalcore import AGGREGATIONS, GENERATE_UNTIL, Estimate, MetricKey, MetricSpec, Task, aggregate_metric
from evalcore.core.compare.lines import ComparisonLine, ComparisonSide, adjust_comparisons
from evalcore.core.compare.power import Known, PowerGoal, plan_next
from evalcore.core.compare.sides import compare_sides
from evalcore.core.compare.verdicts.margins import find_drop
from evalcore.core.compare.verdicts.regressions import find_regressions
from evalcore.core.groups.averages import Term
from evalcore.core.groups.combination import macro
from evalcore.core.groups.covariance import spread_of_terms
from evalcore.core.groups.report import sample_of_tasks
from evalcore.core.lm_eval.groups import _average_errors, _pool_errors
from evalcore.core.records.estimate import Scale, Spread
from evalcore.core.records.request import freeze_options
from evalcore.core.records.row import Rows
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.stats.influence import measure_error, weigh_units
from evalcore.core.stats.links import LOG
from evalcore.core.stats.pair_tests import PairInterval, RunEnds
from evalcore.core.stats.sign_flips import flip_sum
from evalcore.core.stats.skewness import marked_skewness, skewness_of_sum
from evalcore.groups import GroupMetric
from evalcore.stats import Array, Floats, Inference, Labels, Stats, build_column

RNG = np.random.default_rng(13)


def floats(scores: object) -> Floats:
    return Floats(Array(np.array(scores, np.float64)))


def stats(scores: object) -> Stats:
    return Stats(Array(np.array(scores, np.float64)))


def close(name: str, rows: Rows, clusters: object = None, *, average: str = "binary", **given: object) -> Estimate:
    codes = None if clusters is None else np.array(clusters, np.int64)
    column = build_column(range(len(rows.values.data)), rows)
    options = freeze_options({"average": average} if name == "f1" else {})
    return aggregate_metric(AGGREGATIONS[name], column, options=options, inference=Inference(**given), clusters=codes)


def compare(aggregation: str, a: Rows, b: Rows) -> ComparisonLine:
    def side(name: str, rows: Rows) -> ComparisonSide:
        spec = MetricSpec("score", aggregation=aggregation, higher_is_better=True)
        column = ScoredColumn(MetricKey("score"), build_column(range(len(rows.values.data)), rows), spec)
        return ComparisonSide(name, (Scored(Task("t", GENERATE_UNTIL, (spec,)), (column,)),))

    made = adjust_comparisons([compare_sides(side("a", a), side("b", b), draws=99)])
    find_regressions(made[0])
    return made[0].lines[0]


# --- one run ---


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.9999])
def test_the_t_interval_of_an_f1_keeps_to_its_bounds(confidence):
    """Beyond −1 the way back from Jaccard's scale changes its sign."""
    few = Labels(Array(np.array([[1, 0], [4, 4], [1, 0], [0, 1]])))
    made = close("f1", few, [0, 0, 0, 3], average="micro", interval="t", confidence=confidence)
    assert made.value == 0.25
    assert 0 <= made.ci[0] <= made.value <= made.ci[1] <= 1


@pytest.mark.parametrize(
    "pairs", [[[0.2, 3.0], [0.9, 2.0], [0.4, 1.0]], [[-2.0, 1.0], [3.0, 1e15]], [[0.5, 1e300]] * 3]
)
def test_a_calibration_error_beyond_its_bounds_lies_in_its_interval(pairs):
    with catch_warnings():
        simplefilter("error")
        made = close("ece", stats(pairs))
    assert made.ci is None or made.ci[0] <= made.value <= made.ci[1]


def test_a_confidence_that_rounding_put_beyond_1_keeps_the_calibration_interval():
    made = close("ece", stats([[1.0000000000000002, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    assert "calibration" in made.signature
    assert made.ci[0] <= made.value <= made.ci[1]


@pytest.mark.parametrize("method", ["wilson", "exact"])
def test_rounding_errors_have_no_skewness(method):
    level, rounded = (close("mean", floats([*[0.3] * 7, last]), interval=method) for last in (0.3, 0.1 + 0.2))
    assert rounded.ci == pytest.approx(level.ci, abs=1e-12)
    low, high = (
        close("mean", floats([-1e-120] * 7 + [1e-120]), confidence=c, interval=method).ci for c in (0.9, 0.999)
    )
    assert high[1] > low[1]


@pytest.mark.parametrize("form", ["cr1", "cr2"])
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("median", floats([0.2, 0.9, 0.4, 0.4, 0.7])),
        ("perplexity", floats([inf, 1.0, 0.0])),
        ("ter", stats([[0.0, 0.0]] * 4)),
        ("bits_per_byte", stats([[-1.0, 1.0], [-3.0, 2.0]])),
        ("weighted_perplexity", stats([[-1.0, 1e300], [-2.0, 1.0], [-3.0, 1e300]])),
    ],
)
def test_clusters_of_one_are_plain_wherever_weights_or_influences_are_odd(name, rows, form):
    plain = close(name, rows, stderr=form)
    alone = close(name, rows, range(5, 5 + len(rows.values.data)), stderr=form)
    assert (plain.value, plain.stderr, plain.ci, plain.warnings) == (
        alone.value,
        alone.stderr,
        alone.ci,
        alone.warnings,
    )


def test_errors_that_take_all_clusters_for_equal_blame_no_long_document():
    rows, clusters = stats([[-1.0, 1.0], [-3.0, 9.0], [-2.0, 1.0], [-9.0, 9.0]]), [0, 0, 1, 1]
    told = {form: " ".join(close("bits_per_byte", rows, clusters, stderr=form).warnings) for form in ("cr1", "cr2")}
    assert ("long documents" in told["cr1"], "long documents" in told["cr2"]) == (False, True)


def test_the_order_of_documents_changes_no_bit_of_a_smoothed_score():
    told = (
        "1 5 30 0 30 2 30 0 1 5 1 5 1 0 2 1 30 1 0 5 30 1 1 0 1 1 30 2 2 2 0 30 0 0 30 0 1 5 2 1 2 0 30 0 30 0 2 0 2 5"
    )
    counts, order = np.array(told.split(), np.float64).reshape(5, 10), [2, 1, 3, 4, 0]
    clusters = np.array([0, 0, 0, 0, 4])
    one, other = close("bleu", stats(counts), clusters), close("bleu", stats(counts[order]), clusters[order])
    assert (one.stderr, one.ci) == (other.stderr, other.ci)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_only_the_ratios_of_weights_count(scale):
    weights, codes = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 0, 1, 2])
    influence = np.array([1.0, -2.0, 0.5, 0.5])
    with catch_warnings():
        simplefilter("error")
        plain, scaled = (measure_error(influence, codes, weights=weights * by) for by in (1.0, scale))
        assert np.isfinite(weigh_units(weights * scale, codes).variances).all()
    assert scaled.df == pytest.approx(plain.df)
    assert scaled.stderr == pytest.approx(plain.stderr)


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e300])
def test_skewness_and_sign_flips_do_not_depend_on_the_unit(scale):
    parts = np.array([-1.0] * 20 + [3.0, 2.5, 9.0] * 3)
    with catch_warnings():
        simplefilter("error")
        assert skewness_of_sum(parts * scale) == pytest.approx(skewness_of_sum(parts))
        assert marked_skewness(parts * scale) == pytest.approx(marked_skewness(parts))
        assert flip_sum(parts * scale) == pytest.approx(flip_sum(parts))


# --- groups ---


def test_a_group_of_numbers_without_a_finite_average_has_a_reason():
    scale = Scale(link=LOG, bounds=(1.0, inf))
    terms = [
        Term(name, 0.5, 9.0, Estimate(value=value, stderr=1.0, scale=scale)) for name, value in (("a", 0), ("b", 2))
    ]
    made = macro(GroupMetric("ppl"), terms)
    assert (made.value, made.stderr) == (None, None)
    assert "no finite average" in made.reason


def test_a_task_that_weighs_nearly_nothing_does_not_end_the_group():
    task = Estimate(value=0.5, stderr=0.1, spread=Spread(variance=0.01, df=8.0, trials=9.0))
    made = spread_of_terms([Term("a", 1.0, 9.0, task), Term("b", 1e-200, 9.0, task)], [1.0, 1e-200])
    assert made.stderr == pytest.approx(0.1)


@pytest.mark.parametrize("little", [1e-2, 1e-4, 1e-5])
def test_a_sample_of_two_tasks_has_one_degree_of_freedom_whatever_they_weigh(little):
    error, df = sample_of_tasks([1 - little, little], [0.0, 1.0])
    assert df == pytest.approx(1.0, rel=1e-6)
    assert isfinite(error)


# --- two runs ---


def test_a_comparison_does_not_care_which_run_has_the_longer_documents():
    rows = [stats(np.column_stack([-RNG.random(12), RNG.integers(1, 9, 12)])) for _ in "ab"]
    line, back = compare("bits_per_byte", *rows), compare("bits_per_byte", *rows[::-1])
    assert line.stderr == pytest.approx(back.stderr)
    assert line.ci == pytest.approx((-back.ci[1], -back.ci[0]))


@pytest.mark.parametrize("aggregation", ["mean", "median", "perplexity"])
@pytest.mark.parametrize("size", [1e-160, 1e-120, 300.0, 1e160, 1e300])
def test_differences_of_any_size_have_no_empty_interval(aggregation, size):
    sign = -1 if aggregation == "perplexity" else 1
    a, b = (floats(sign * size * RNG.random(9)) for _ in "ab")
    line = compare(aggregation, a, b)
    for ci in (line.ci, line.adjusted_ci):
        assert ci is None or (not any(map(isnan, ci)) and ci[0] <= line.difference <= ci[1])
    assert line.p_value is None or 0 < line.p_value <= 1


def test_differences_of_calibration_errors_stay_within_1():
    a, b = (stats(np.column_stack([RNG.random(5), RNG.integers(0, 2, 5)])) for _ in "ab")
    line = compare("ece", a, b)
    assert -1 <= line.adjusted_ci[0] <= line.ci[0] <= line.ci[1] <= line.adjusted_ci[1] <= 1
    assert line.interval.measure_sides(0.999)[1] > 1  # what tests of a margin use is not cut


def test_intervals_combined_from_both_runs_grow_with_the_confidence():
    runs = RunEnds(10.0, 9.0, 1.0, 5000.0, 1.0), RunEnds(8.0, 7.5, 1.0, 3000.0, 1.0)
    made = PairInterval(2.0, 2.0, 4.0, 1.0, runs=runs, link=LOG, confidence=0.95)
    wide = [made.at(confidence) for confidence in (0.95, 0.99, 0.999, 0.999999)]
    assert all(wide[0][0] >= low and wide[0][1] <= high for low, high in wide)
    assert not any(isnan(end) for ci in wide for end in ci)


def test_an_error_too_large_for_its_square_has_no_plan_and_no_drop():
    known = Known(name="t", key=MetricKey("loss"), n=30, units=30, stderr=1e200, paired=True)
    assert plan_next(known, PowerGoal(difference=log(2))).finds is None
    line = ComparisonLine(name="t", key=MetricKey("loss"), difference=1e200, stderr=1e200, ci=(-1e201, 1e201), n=30)
    assert find_drop(line, 0.05) is None


def test_the_pooled_error_of_lm_eval_takes_errors_of_any_size():
    sizes = [9.0, 4.0]
    assert _pool_errors([0.1, 0.1], sizes) == pytest.approx(0.1 * ((8 * 9 + 3 * 4) / 11 / 13) ** 0.5)
    assert _pool_errors([1e200, 0.1], sizes) == inf
    assert _average_errors([1e200, 0.1]) == inf
