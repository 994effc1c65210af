"""Comparing whole runs: live oracles, coverage of the intervals, false positives of the tests (trust.md 1.7)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from evalcore import (
    AGGREGATIONS,
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    MULTIPLE_CHOICE,
    MetricKey,
    MetricSpec,
    Task,
    aggregate_metric,
    freeze_options,
)
from evalcore.comparisons import compare_estimates
from evalcore.core.compare.lines import Comparison, ComparisonSide, adjust_comparisons, too_few
from evalcore.core.compare.sides import compare_sides
from evalcore.core.records.array import Floats64
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import FAILED, OK
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.stats.families import benjamini_hochberg, holm
from evalcore.core.stats.quantiles import binomial_cdf, normal_quantile
from evalcore.core.stats.sample_size import Variances, distance_at, reach_of_test
from evalcore.core.stats.sign_flips import flip_sum, flip_tests
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.stats import Array, Floats, Inference, Labels, Stats, build_column


def run_of(
    tasks: dict[str, Floats64], *, metric: str = "acc", trees=(), clusters: dict[str, np.ndarray] | None = None
) -> ComparisonSide:
    def scored(name: str, values: Floats64) -> Scored:
        kind = MULTIPLE_CHOICE if metric == "acc" else GENERATE_UNTIL
        rows = Floats(Array(values)) if values.ndim == 1 else Stats(Array(values))
        one = ScoredColumn(MetricKey(metric), build_column(range(len(values)), rows), MetricSpec(metric))
        codes = tuple(enumerate(clusters[name].tolist())) if clusters else ()
        return Scored(Task(name, kind, (MetricSpec(metric),)), (one,), clusters=codes)

    return ComparisonSide("run", tuple(scored(name, values) for name, values in tasks.items()), trees=trees)


def suite(names, *, metric: str = "acc", by_size: bool = False) -> tuple[Group[object], ...]:
    return (Group("suite", tuple(Leaf(name, None) for name in names), (GroupMetric(metric, weight_by_size=by_size),)),)


def latent(rng: np.random.Generator, p: float, q: float, shape: tuple[int, ...], correlation: float = 0.8):
    """Two models' right answers to the same questions."""
    x, y = rng.normal(size=(2, *shape))
    z = correlation * x + np.sqrt(1 - correlation**2) * y
    return (x < normal_quantile(p)).astype(float), (z < normal_quantile(q)).astype(float)


# --- oracles ----------------------------------------------------------------------------------------------------------


def test_unbounded_scores_are_scipys_paired_t() -> None:
    rng = np.random.default_rng(0)
    shared, apart = rng.normal(size=40), rng.normal(size=20)
    runs = [{"t": shared + np.r_[apart, -apart]}, {"t": shared + 0.4}]  # without skew, which makes a side longer
    line = compare_sides(*(run_of(run, metric="my_score") for run in runs)).lines[0]
    want = stats.ttest_rel(runs[0]["t"], runs[1]["t"])
    ci = want.confidence_interval(0.95)
    assert line.ci == pytest.approx((ci.low, ci.high), rel=1e-10)
    assert line.difference / line.stderr == pytest.approx(want.statistic, rel=1e-12)
    assert line.p_value == pytest.approx(want.pvalue, abs=0.02), "a sign-flip test, near Student's for such scores"


def test_sign_flips_are_scipys_permutations() -> None:
    rng = np.random.default_rng(1)
    runs = [{"t": rng.random(9)} for _ in "ab"]
    line = compare_sides(*(run_of(run) for run in runs)).lines[0]
    want = stats.permutation_test(
        (runs[0]["t"], runs[1]["t"]),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
    )
    assert len(want.null_distribution) == 2**9, "every flip"
    assert line.p_value == pytest.approx(want.pvalue, rel=1e-12)


def test_bits_are_mcnemars_without_half_of_what_was_seen() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b = latent(rng, 0.8, 0.7, (50,))
        line = compare_sides(run_of({"t": a}), run_of({"t": b})).lines[0]
        wins, losses = int(np.sum(a > b)), int(np.sum(a < b))
        table = [[0, wins], [losses, 0]]
        seen = stats.binom.pmf(min(wins, losses), wins + losses, 0.5)
        want = mcnemar(table, exact=True).pvalue - seen if wins != losses else 1.0
        assert line.p_value == pytest.approx(want, abs=1e-12)
        assert (len(line.better), len(line.worse)) == (wins, losses)


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_corrections_are_statsmodels(ours, theirs: str) -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 40):
        p_values = (rng.random(n) ** 3).tolist()
        assert ours(p_values) == pytest.approx(multipletests(p_values, method=theirs)[1], rel=1e-12)


def test_clustered_error_is_that_of_cluster_sums() -> None:
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(12), 4)
    a, b = rng.random((2, 48))
    line = compare_sides(*(run_of({"t": x}, clusters={"t": codes}) for x in (a, b))).lines[0]
    sums = (a - b - (a - b).mean()).reshape(12, 4).sum(axis=1)
    assert line.stderr == pytest.approx(np.sqrt(12 / 11 * np.sum(sums**2)) / 48, rel=1e-12)


def test_clusters_of_unequal_size_are_corrected_and_named() -> None:
    """Also of two tasks that share them: each task's part of a cluster by its own share."""
    rng = np.random.default_rng(4)
    codes = {"t": np.repeat([0, 1, 2, 3], [12, 4, 4, 4]), "u": np.repeat([0, 1, 2, 3], [4, 12, 6, 2])}
    runs = [{name: rng.random(24) for name in codes} for _ in "ab"]
    found = compare_sides(*(run_of(run, clusters=codes, trees=suite("tu")) for run in runs))
    parts = {}
    for name, ids in codes.items():
        apart = runs[0][name] - runs[1][name]
        sums, sizes = np.bincount(ids, apart - apart.mean()), np.bincount(ids)
        parts[name] = sums / np.sqrt(1 - sizes / 24) / 24
    lines = {line.name: line for line in found.lines}
    for name, part in {**parts, "suite": (parts["t"] + parts["u"]) / 2}.items():
        assert lines[name].stderr == pytest.approx(np.sqrt(np.sum(part**2)), rel=1e-12)
    told = [one for one in found.warnings if "holds" in one]
    assert [one.split(":")[0] for one in told] == ["t", "u"]
    assert "the cluster of document 0 holds 12 of 24 documents" in told[0]
    assert "the cluster of document 4 holds 12 of 24 documents" in told[1]


def test_texts_of_unequal_length_are_corrected() -> None:
    rng = np.random.default_rng(6)
    lengths = np.rint(rng.lognormal(4, 1.5, 20))
    rates = rng.normal(2, 0.4, (2, 20))
    runs = [np.column_stack([-rate * lengths, lengths]) for rate in rates]
    sides = []
    for run in runs:
        spec = MetricSpec("m", aggregation="bits_per_byte")
        one = ScoredColumn(MetricKey("m"), build_column(range(20), Stats(Array(run))), spec)
        sides.append(ComparisonSide("run", (Scored(Task("t", GENERATE_UNTIL, (spec,)), (one,)),)))
    line = compare_sides(*sides).lines[0]
    shares, apart = lengths / lengths.sum(), (rates[0] - rates[1]) / np.log(2)
    parts = shares * (apart - np.sum(shares * apart))
    assert line.stderr == pytest.approx(np.sqrt(np.sum(parts**2 / (1 - shares))), rel=1e-9)


def test_a_median_is_compared_by_drawing_the_same_documents() -> None:
    rng = np.random.default_rng(5)
    shared = rng.normal(size=200)
    runs = [shared + 0.2 * rng.normal(size=200) + shift for shift in (0.3, 0.0)]
    sides = []
    for run in runs:
        spec = MetricSpec("m", aggregation="median")
        one = ScoredColumn(MetricKey("m"), build_column(range(200), Floats(Array(run))), spec)
        sides.append(ComparisonSide("run", (Scored(Task("t", GENERATE_UNTIL, (spec,)), (one,)),)))
    line = compare_sides(*sides).lines[0]
    assert line.difference == np.median(runs[0]) - np.median(runs[1])
    drawn = rng.integers(0, 200, (4000, 200))
    assert line.stderr == pytest.approx(
        np.std(np.median(runs[0][drawn], axis=1) - np.median(runs[1][drawn], axis=1)), rel=0.15
    )
    assert line.p_value is not None
    assert line.p_value < 0.05
    assert "t test" in line.method


# --- what is not in both ----------------------------------------------------------------------------------------------


def test_what_only_one_run_has_is_counted_and_named() -> None:
    rows = [tuple(DocumentRow(i, None, None, text, 0) for i, text in enumerate(texts)) for texts in ("abcd", "cdbe")]
    one, two = run_of({"t": np.array([1.0, 0, 1, 0]), "x": np.zeros(2)}), run_of({"t": np.array([0.0, 0, 0, 1])})
    found = compare_sides(
        ComparisonSide("one", one.scored, {"t": rows[0]}), ComparisonSide("two", two.scored, {"t": rows[1]})
    )
    shared = found.documents[0]
    assert (shared.both, shared.only_a, shared.only_b) == (3, (0,), (3,))
    assert (found.tasks_only_a, found.tasks_only_b) == (("x",), ())
    line = found.lines[0]
    assert (line.n, line.a, line.b) == (3, pytest.approx(1 / 3), 0.0)
    assert (line.better, line.worse) == ((2,), ()), "keys of the first run"


def test_a_document_without_a_score_in_one_run_leaves_the_comparison_and_is_counted() -> None:
    one, two = run_of({"t": np.array([1.0, 0, 1, 0])}), run_of({"t": np.array([1.0, 1, 1, 1])})
    status = np.array([OK, FAILED, OK, OK], np.uint8)
    broken = build_column(range(4), Floats(Array([1.0, np.nan, 1, 1])), status, {1: "time-out"})
    hurt = ComparisonSide("two", (Scored(two.scored[0].task, (ScoredColumn(MetricKey("acc"), broken, None),)),))
    line = compare_sides(one, hurt).lines[0]
    assert (line.n, line.unscored, line.a, line.b) == (3, 1, pytest.approx(2 / 3), 1.0)


def test_a_group_whose_tasks_only_one_run_has_is_not_compared() -> None:
    bits = np.array([1.0, 0, 1])
    one, two = run_of({"t": bits, "u": bits}, trees=suite("tu")), run_of({"t": bits})
    group = compare_sides(one, two).lines[-1]
    assert (group.name, group.difference, group.reason) == ("suite", None, "only one run has u")


def test_metrics_and_groups_that_differ_are_told() -> None:
    bits = np.array([1.0, 0, 1])
    one, two = run_of({"t": bits}, trees=suite("t")), run_of({"t": bits}, metric="acc_norm", trees=suite("tu"))
    found = compare_sides(one, two)
    assert found.lines == ()
    assert found.warnings == (
        "t: only run has acc,none",
        "t: only run has acc_norm,none",
        "group suite differs between the runs; the first run's tasks and weights are used for both",
    )


def test_clusters_that_one_run_declares_hold_for_both() -> None:
    codes = {"t": np.array([0, 0, 1, 1, 2, 2])}
    a, b = np.array([1.0, 1, 0, 0, 1, 0]), np.array([0.0, 0, 0, 1, 1, 0])
    both = compare_sides(run_of({"t": a}, clusters=codes), run_of({"t": b}, clusters=codes)).lines[0]
    for pair in ((codes, None), (None, codes)):
        one, two = (run_of({"t": x}, clusters=given) for x, given in zip((a, b), pair, strict=True))
        assert compare_sides(one, two).lines[0] == both


def test_estimates_alone_give_the_same_comparison() -> None:
    rng = np.random.default_rng(6)
    for values in (latent(rng, 0.8, 0.7, (60,)), rng.random((2, 60))):
        estimates = [aggregate_metric(AGGREGATIONS["mean"], build_column(range(60), Floats(Array(x)))) for x in values]
        found = compare_estimates(*estimates, draws=2000)
        line = compare_sides(*(run_of({"t": x}) for x in values), draws=2000).lines[0]
        assert found.difference == pytest.approx(line.difference, abs=1e-15)
        assert (found.stderr, found.p_value) == pytest.approx((line.stderr, line.p_value), rel=1e-6)
        assert found.ci == pytest.approx(line.ci)


@pytest.mark.parametrize("chosen", [{"seed": -1}, {"draws": 0}])
def test_impossible_draws_are_refused(chosen: dict[str, int]) -> None:
    with pytest.raises(EvalError, match="at least"):
        compare_sides(run_of({"t": np.ones(3)}), run_of({"t": np.ones(3)}), **chosen)


def test_unknown_corrections_are_named() -> None:
    found = compare_sides(run_of({"t": np.ones(3)}), run_of({"t": np.ones(3)}))
    with pytest.raises(EvalError, match="holm"):
        adjust_comparisons([found], "holmes")


# --- what the lines rest on -------------------------------------------------------------------------------------------


def test_translations_of_the_same_questions_count_once_in_their_group() -> None:
    """Two tasks that are copies of each other, document by document: the group is worth no more than the task."""
    rng = np.random.default_rng(20)
    a, b = latent(rng, 0.8, 0.6, (60,))
    codes = {"de": np.arange(60), "fr": np.arange(60)}
    sides = [run_of({"de": x, "fr": x}, trees=suite(("de", "fr")), clusters=codes) for x in (a, b)]
    task, _, group = compare_sides(*sides).lines
    assert group.stderr == pytest.approx(task.stderr, rel=1e-12)
    assert group.clusters == 60
    assert task.clusters is None
    assert 0.3 < group.p_value / task.p_value < 4
    apart = compare_sides(*(run_of({"de": x, "fr": x}, trees=suite(("de", "fr"))) for x in (a, b))).lines[-1]
    assert apart.stderr < 0.8 * group.stderr, "what it costs not to say that they are copies"


def test_too_few_clusters_to_find_anything_is_said() -> None:
    codes = {"t": np.repeat(np.arange(4), 30)}
    a, b = np.ones(120), np.zeros(120)
    b[::10] = 1
    line = compare_sides(*(run_of({"t": x}, clusters=codes) for x in (a, b))).lines[0]
    assert line.least_p == 0.125
    assert too_few(line, 0.05)
    assert line.p_value >= 0.12
    assert line.reason == "only 4 clusters: no p-value below 0.125 is possible"
    few = compare_sides(run_of({"t": np.ones(4)}), run_of({"t": np.zeros(4)})).lines[0]
    assert few.reason == "only 4 documents: no p-value below 0.0625 is possible"
    assert few.p_value == pytest.approx(few.least_p, rel=1e-12)
    assert few.least_p == 0.0625
    fine = compare_sides(run_of({"t": np.ones(5)}), run_of({"t": np.zeros(5)})).lines[0]
    assert (fine.reason, too_few(fine, 0.05)) == (None, False)
    assert fine.p_value == pytest.approx(0.03125, rel=1e-12)


def test_medians_of_clusters_are_drawn_by_clusters() -> None:
    rng = np.random.default_rng(21)
    base = np.repeat(rng.normal(size=(2, 30)), 6, axis=1)
    runs = base + 0.1 * rng.normal(size=base.shape)
    spec = MetricSpec("m", aggregation="median")

    def side(values: Floats64, clusters) -> ComparisonSide:
        one = ScoredColumn(MetricKey("m"), build_column(range(180), Floats(Array(values))), spec)
        return ComparisonSide("run", (Scored(Task("t", GENERATE_UNTIL, (spec,)), (one,), clusters=clusters),))

    codes = tuple((i, i // 6) for i in range(180))
    plain, whole = (compare_sides(*(side(x, given) for x in runs)).lines[0] for given in ((), codes))
    assert whole.stderr > 1.5 * plain.stderr
    members = np.arange(180).reshape(30, 6)
    drawn = members[rng.integers(0, 30, (3000, 30))].reshape(3000, 180)
    want = np.std(np.median(runs[0][drawn], axis=1) - np.median(runs[1][drawn], axis=1))
    assert whole.stderr == pytest.approx(want, rel=0.15)


def perplexities(rng: np.random.Generator, n: int) -> tuple[ComparisonSide, ComparisonSide]:
    shared = rng.normal(-2.0, 0.8, n)
    runs = [{"t": shared + 0.3 * rng.normal(size=n)} for _ in "ab"]

    def side(run: dict[str, Floats64]) -> ComparisonSide:
        one = ScoredColumn(
            MetricKey("perplexity"), build_column(range(n), Floats(Array(run["t"]))), MetricSpec("perplexity")
        )
        return ComparisonSide("run", (Scored(Task("t", LOGLIKELIHOOD, (MetricSpec("perplexity"),)), (one,)),))

    return side(runs[0]), side(runs[1])


def test_differences_of_perplexities_are_made_on_the_log_scale() -> None:
    rng = np.random.default_rng(22)
    line = compare_sides(*perplexities(rng, 25)).lines[0]
    assert "MOVER" in line.method
    assert line.ci[0] > -line.b, "no run can have a perplexity below 0"
    assert line.ci[0] < line.difference < line.ci[1]
    assert covered(lambda: perplexities(rng, 25), 0.0, 300) >= 0.92


def test_detectable_is_what_power_says() -> None:
    rng = np.random.default_rng(23)
    a, b = latent(rng, 0.8, 0.7, (40,))
    line = compare_sides(run_of({"t": a}), run_of({"t": b})).lines[0]
    want = distance_at(40, Variances(line.stderr**2 * 40), 1, reach_of_test())
    assert line.detectable == pytest.approx(want, rel=1e-12)
    many = adjust_comparisons([Comparison(names=("a", "b"), lines=(line,) * 20)])[0].lines[0]
    assert many.detectable == pytest.approx(
        distance_at(40, Variances(line.stderr**2 * 40), 1, reach_of_test(0.05 / 20)), rel=1e-12
    )
    assert adjust_comparisons([Comparison(names=("a", "b"), lines=(many,))], "none")[0].lines[0].detectable == want


def test_a_metric_of_unknown_direction_has_none() -> None:
    bits = np.array([1.0, 0, 1])
    one = run_of({"t": bits}, metric="wer", trees=suite("t", metric="wer"))
    hidden = replace(one.scored[0], columns=(replace(one.scored[0].columns[0], traits=("unknown direction",)),))
    lines = compare_sides(ComparisonSide("a", (hidden,), trees=one.trees), one).lines
    assert [line.higher_is_better for line in lines] == [None, None]
    assert [line.higher_is_better for line in compare_sides(one, one).lines] == [None, None]
    column = one.scored[0].columns[0]
    told = replace(column, spec=replace(column.spec or MetricSpec("wer"), higher_is_better=True))
    known = ComparisonSide("a", (replace(one.scored[0], columns=(told,)),), trees=one.trees)
    assert [line.higher_is_better for line in compare_sides(known, known).lines] == [True, True]


def test_groups_are_the_same_whatever_filters_they_name_and_lone_ones_are_told() -> None:
    bits = np.array([1.0, 0, 1])
    named = Group("suite", (Leaf("t", None),), (GroupMetric("acc", weight_by_size=False, filters=("none",)),))
    other = Group("other", (Leaf("t", None),), (GroupMetric("acc"),))
    one, two = run_of({"t": bits}, trees=suite("t")), run_of({"t": bits}, trees=(named, other))
    assert compare_sides(one, two).warnings == ("group other is only in the second run and is not compared",)


# --- coverage of the intervals ----------------------------------------------------------------------------------------

TRUTHS = [(0.7, 0.7), (0.9, 0.85), (0.99, 0.97)]


def often(few: int, least: float, many: int, most: float):
    """A few rounds with an allowance for luck; the slow tests take many with less of it."""
    return pytest.mark.parametrize(
        ("rounds", "least"), [(few, least), pytest.param(many, most, marks=pytest.mark.slow)]
    )


def covered(make, truth: float, rounds: int) -> float:
    inside = 0
    for _ in range(rounds):
        one, two = make()
        line = compare_sides(one, two, draws=1).lines[-1]
        inside += line.ci is not None and line.ci[0] <= truth <= line.ci[1]
    return inside / rounds


@often(60, 0.88, 300, 0.92)
@pytest.mark.parametrize(("p", "q"), TRUTHS)
@pytest.mark.parametrize("n", [10, 30, 100])
def test_the_difference_of_bits_is_covered(p: float, q: float, n: int, rounds: int, least: float) -> None:
    rng = np.random.default_rng(7)

    def make():
        return tuple(run_of({"t": x}) for x in latent(rng, p, q, (n,)))

    assert covered(make, p - q, rounds) >= least


@often(40, 0.85, 250, 0.92)
@pytest.mark.parametrize(("p", "q"), TRUTHS)
def test_the_difference_in_a_group_of_uneven_tasks_is_covered(p: float, q: float, rounds: int, least: float) -> None:
    rng = np.random.default_rng(8)
    sizes = {"a": 10, "b": 20, "c": 60}

    def make():
        drawn = {name: latent(rng, p, q, (n,)) for name, n in sizes.items()}
        return tuple(run_of({name: pair[i] for name, pair in drawn.items()}, trees=suite(sizes)) for i in (0, 1))

    assert covered(make, p - q, rounds) >= least


@often(50, 0.85, 250, 0.90)
@pytest.mark.parametrize(("p", "q"), TRUTHS)
@pytest.mark.parametrize("clusters", [4, 20])
def test_the_difference_of_clustered_bits_is_covered(
    p: float, q: float, clusters: int, rounds: int, least: float
) -> None:
    rng = np.random.default_rng(9)
    codes = {"t": np.repeat(np.arange(clusters), 5)}

    def make():
        base = np.repeat(rng.normal(size=(2, clusters)), 5, axis=1) * 0.6
        x, y = base + 0.8 * rng.normal(size=base.shape)
        z = 0.8 * x + 0.6 * y
        bits = (x < normal_quantile(p)).astype(float), (z < normal_quantile(q)).astype(float)
        return tuple(run_of({"t": one}, clusters=codes) for one in bits)

    assert covered(make, p - q, rounds) >= least


def shifted(rng: np.random.Generator, n: int) -> tuple[Floats64, Floats64]:
    """A difference of .03 ± .01 on scores that vary far more."""
    a = rng.uniform(0.3, 0.6, n)
    return a, a - 0.03 - 0.01 * rng.normal(size=n)


def betas(rng: np.random.Generator, n: int) -> tuple[Floats64, Floats64]:
    ease = rng.beta(2, 2, n)
    return rng.beta(20 * ease, 20 * (1 - ease)), rng.beta(18 * ease, 20 - 18 * ease)


def skewed(rng: np.random.Generator, n: int) -> tuple[Floats64, Floats64]:
    a = rng.beta(5, 2, n)
    return a, a * (1 - rng.beta(1, 9, n))


def repeated(rng: np.random.Generator, n: int) -> tuple[Floats64, Floats64]:
    """The means of four replies to each question."""
    ease = rng.beta(0.5, 0.5, n)
    return rng.binomial(4, ease) / 4, rng.binomial(4, 0.9 * ease) / 4


def token_f1(rng: np.random.Generator, n: int) -> tuple[Floats64, Floats64]:
    """80 % ones; the second run fails on one document in ten, and is the same elsewhere."""
    a = np.where(rng.random(n) < 0.8, 1.0, rng.random(n))
    return a, np.where(rng.random(n) < 0.1, 0.0, a)


REAL = {shifted: (0.03, 1.3), betas: (0.05, 1.3), skewed: (1 / 14, 1.35), repeated: (0.05, 1.45), token_f1: (0.09, 1.6)}


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("draw", REAL)
def test_the_difference_of_real_valued_scores_is_covered_by_an_interval_that_is_not_too_wide(draw, n: int) -> None:
    """Width is relative to 3.92 times the true standard deviation. Documents that differ by 1 would give up to 31."""
    rng, (truth, widest) = np.random.default_rng(15), REAL[draw]
    lines = [compare_sides(*(run_of({"t": x}) for x in draw(rng, n))).lines[0] for _ in range(300)]
    assert np.mean([line.ci[0] <= truth <= line.ci[1] for line in lines]) >= 0.90
    oracle = 3.92 * np.std([np.mean(np.subtract(*draw(rng, n))) for _ in range(4000)])
    assert np.mean([line.ci[1] - line.ci[0] for line in lines]) / oracle <= widest
    outside = [(line.ci[0] > 0 or line.ci[1] < 0, line.p_value) for line in lines]
    assert not any(found and p > 0.2 for found, p in outside), "the interval and the p-value agree"
    assert np.mean([not found and p < 0.01 for found, p in outside]) <= 0.1


@pytest.mark.slow
def test_the_interval_of_small_differences_is_theirs_in_clusters_and_groups() -> None:
    rng = np.random.default_rng(16)
    codes = {"t": np.repeat(np.arange(15), 4), "u": np.repeat(np.arange(20, 35), 4)}
    inside, widths, values = [0, 0], [[], []], [[], []]
    for _ in range(300):
        drawn = {}
        for name in codes:
            a = rng.uniform(0.3, 0.6, 60)
            drawn[name] = a, a - 0.03 - 0.01 * np.repeat(rng.normal(size=15), 4) - 0.005 * rng.normal(size=60)
        sides = [run_of({t: pair[i] for t, pair in drawn.items()}, trees=suite("tu"), clusters=codes) for i in (0, 1)]
        task, _, group = compare_sides(*sides).lines
        for at, line in enumerate((task, group)):
            inside[at] += line.ci[0] <= 0.03 <= line.ci[1]
            widths[at].append(line.ci[1] - line.ci[0])
            values[at].append(line.difference)
    for at in (0, 1):
        assert inside[at] / 300 >= 0.90
        assert np.mean(widths[at]) <= 1.35 * 3.92 * np.std(values[at])


@pytest.mark.slow
def test_adjusted_intervals_cover_all_rows_at_once() -> None:
    rng = np.random.default_rng(17)
    plain, together = 0, 0
    for _ in range(100):
        pairs = {f"t{i}": betas(rng, 30) for i in range(12)}
        found = compare_sides(*(run_of({name: pair[i] for name, pair in pairs.items()}) for i in (0, 1)))
        lines = adjust_comparisons([found])[0].lines
        plain += all(line.ci[0] <= 0.05 <= line.ci[1] for line in lines)
        together += all(line.adjusted_ci[0] <= 0.05 <= line.adjusted_ci[1] for line in lines)
    assert together / 100 >= 0.9
    assert plain / 100 < 0.8, "what it costs to read many plain intervals at once"


def apart(rng: np.random.Generator, n: int, shift: float) -> tuple[Floats64, Floats64]:
    a = rng.uniform(0.3, 0.5, n)
    return a, a - shift - 0.1 * rng.normal(size=n)


def bits_apart(rng: np.random.Generator, n: int, shift: float) -> tuple[Floats64, Floats64]:
    """One document in five differs, so that the variance of the difference is .2 less the square of the shift."""
    luck = rng.random(n)
    way = np.where(luck < 0.1 + shift / 2, 1, np.where(luck < 0.2, -1, 0))
    return (way > 0).astype(float), (way < 0).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "sd", "n"), [(apart, 0.1, 60), (bits_apart, 0.43, 400)])
def test_a_detectable_difference_is_found_in_four_tables_of_five(draw, sd: float, n: int) -> None:
    """One row of 20 differs; before, the row's own level gave it 38 to 45 %."""
    rng, rows, rounds = np.random.default_rng(18), 20, 400
    shift = reach_of_test(0.05 / rows)(n - 1) * sd / np.sqrt(n)
    hits, told = 0, []
    for _ in range(rounds):
        found = compare_sides(*(run_of({"t": one}) for one in draw(rng, n, shift)))
        others = (replace(found.lines[0], p_value=1.0),) * (rows - 1)
        line = adjust_comparisons([replace(found, lines=(*found.lines, *others))])[0].lines[0]
        hits += line.adjusted <= 0.05
        told.append(line.detectable)
    assert np.mean(told) == pytest.approx(shift, rel=0.05), "it is what the lines promise"
    assert hits / rounds >= 0.76, "80 %, less the luck of 400 tables"


# --- false positives --------------------------------------------------------------------------------------------------


def rejection(pairs: int) -> float:
    """How often McNemar's mid-p test of so many discordant pairs is at most .05, if both runs are alike."""
    wins = np.arange(pairs + 1)
    fewer = np.minimum(wins, pairs - wins)
    mid = [binomial_cdf(int(k), pairs, 0.5) + binomial_cdf(int(k) - 1, pairs, 0.5) for k in fewer]
    return float(np.sum(stats.binom.pmf(wins, pairs, 0.5) * (np.array(mid) <= 0.05)))


def test_false_positives_of_bits_exactly() -> None:
    """At most 6 % whatever the number of documents, if the runs agree on at least one document in ten."""
    by_pairs = np.array([0.0, *map(rejection, range(1, 301))])
    for n in (5, 8, 10, 11, 30, 50, 100, 300):
        for share in np.linspace(0.02, 0.9, 45):
            rate = float(np.sum(stats.binom.pmf(np.arange(n + 1), n, share) * by_pairs[: n + 1]))
            assert rate <= 0.06, (n, share, rate)
            assert n * share < 10 or rate >= 0.02, (n, share, rate)


def flipped_rate(contributions: Floats64, draws: int = 499) -> float:
    """The share of data sets (columns) whose sign-flip p is at most .05; rows are documents or clusters."""
    found = flip_tests(
        lambda signs: signs @ contributions,
        contributions.sum(axis=0),
        1e-12 * np.abs(contributions).sum(axis=0),
        len(contributions),
        draws=draws,
        seed=0,
    )
    return float(np.mean(found <= 0.05))


@pytest.mark.parametrize("p", [0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("n", [10, 30, 100])
def test_false_positives_of_groups(n: int, p: float) -> None:
    """Three tasks of n, 2n and 5n documents, averaged equally."""
    rng = np.random.default_rng(10)
    parts = []
    for size in (n, 2 * n, 5 * n):
        a, b = latent(rng, p, p, (size, 3000))
        parts.append((a - b) / size / 3)
    contributions = np.concatenate(parts)
    rate = flipped_rate(contributions)
    assert rate <= 0.06
    if np.count_nonzero(contributions) / 3000 >= 10:
        assert rate >= 0.02


@pytest.mark.parametrize("clusters", [3, 6, 12, 40])
def test_false_positives_of_clusters(clusters: int) -> None:
    rng = np.random.default_rng(11)
    base = np.repeat(rng.normal(size=(2, clusters, 3000)), 5, axis=1)
    x, y = 0.7 * base + 0.7 * rng.normal(size=base.shape)
    apart = (x < 0.5).astype(float) - (y < 0.5)
    sums = apart.reshape(clusters, 5, 3000).sum(axis=1) / (5 * clusters)
    assert flipped_rate(sums) <= 0.06
    if clusters >= 12:
        assert flipped_rate(sums) >= 0.02
        naive = apart.sum(axis=0) / np.sqrt((apart**2).sum(axis=0))
        assert np.mean(np.abs(naive) > 1.96) > 0.1, "what it costs not to declare the clusters"


@pytest.mark.parametrize("n", [10, 30, 200])
def test_false_positives_of_scores_between_0_and_1(n: int) -> None:
    rng = np.random.default_rng(12)
    shared = rng.beta(0.8, 0.3, (n, 3000))
    a, b = (np.round(4 * np.clip(shared + 0.2 * rng.normal(size=shared.shape), 0, 1)) / 4 for _ in "ab")
    rate = flipped_rate((a - b) / n)
    assert rate <= 0.06
    assert np.count_nonzero(a - b) / 3000 < 10 or rate >= 0.02


def rejected(make, rounds: int) -> float:
    """How often a comparison of two runs alike finds a difference in its last line."""
    found = [compare_sides(*make(), draws=199).lines[-1].p_value for _ in range(rounds)]
    return float(np.mean([p is not None and p <= 0.05 for p in found]))


def labels_side(tasks: dict[str, tuple[np.ndarray, np.ndarray]], metric: str, trees=()) -> ComparisonSide:
    spec = MetricSpec(metric)

    def scored(name: str, gold: np.ndarray, said: np.ndarray) -> Scored:
        rows = Labels(Array(np.stack([gold, said], axis=1)))
        one = ScoredColumn(MetricKey(metric), build_column(range(len(gold)), rows), spec)
        return Scored(Task(name, MULTIPLE_CHOICE, (spec,)), (one,))

    return ComparisonSide("run", tuple(scored(name, *pair) for name, pair in tasks.items()), trees=trees)


MANY = [pytest.param(*case, 300, 0.06, marks=pytest.mark.slow) for case in ((10, 3), (20, 2))]


@pytest.mark.parametrize(("count", "size", "rounds", "most"), [(10, 3, 60, 0.1), *MANY])
def test_false_positives_of_pooled_groups_of_small_tasks(count: int, size: int, rounds: int, most: float) -> None:
    rng = np.random.default_rng(30)
    names = [f"t{i}" for i in range(count)]
    trees = (Group("g", tuple(Leaf(name, None) for name in names), (GroupMetric("mcc", aggregation="pool"),)),)

    def make():
        gold = rng.integers(0, 2, (count, size))
        runs = [np.where(rng.random(gold.shape) < 0.7, gold, 1 - gold) for _ in "ab"]
        return [labels_side({n: (gold[i], run[i]) for i, n in enumerate(names)}, "mcc", trees) for run in runs]

    assert rejected(make, rounds) <= most


@pytest.mark.parametrize(("rounds", "most"), [(60, 0.1), pytest.param(300, 0.06, marks=pytest.mark.slow)])
@pytest.mark.parametrize("clusters", [8, 25])
def test_false_positives_of_clusters_in_the_comparison_itself(clusters: int, rounds: int, most: float) -> None:
    rng = np.random.default_rng(31)
    codes = {"t": np.repeat(np.arange(clusters), 5)}

    def make():
        base = np.repeat(rng.normal(size=(2, clusters)), 5, axis=1)
        runs = 0.8 * base + 0.6 * rng.normal(size=base.shape) < 0.4
        return [run_of({"t": run.astype(float)}, clusters=codes) for run in runs]

    assert rejected(make, rounds) <= most


@pytest.mark.parametrize(
    ("rounds", "most", "least"), [(60, 0.1, 0.85), pytest.param(300, 0.06, 0.90, marks=pytest.mark.slow)]
)
def test_false_positives_of_questions_that_several_tasks_share(rounds: int, most: float, least: float) -> None:
    rng = np.random.default_rng(32)
    names = ("a", "b", "c", "d")
    codes = dict.fromkeys(names, np.arange(30))

    def make():
        base = rng.normal(size=(2, 30))
        return [
            run_of(
                {name: (0.9 * one + 0.4 * rng.normal(size=30) < 0.4).astype(float) for name in names},
                trees=suite(names),
                clusters=codes,
            )
            for one in base
        ]

    assert rejected(make, rounds) <= most
    assert covered(make, 0.0, rounds * 2 // 3) >= least


def test_false_positives_of_perplexities() -> None:
    rng = np.random.default_rng(33)
    assert rejected(lambda: perplexities(rng, 15), 300) <= 0.06


def test_a_median_against_itself_is_zero_with_p_1() -> None:
    spec = MetricSpec("m", aggregation="median")
    one = ScoredColumn(MetricKey("m"), build_column(range(9), Floats(Array(np.arange(9.0)))), spec)
    side = ComparisonSide("run", (Scored(Task("t", GENERATE_UNTIL, (spec,)), (one,)),))
    line = compare_sides(side, side).lines[0]
    assert (line.difference, line.p_value) == (0, 1)


def test_numbers_made_by_different_rules_are_not_compared() -> None:
    rng = np.random.default_rng(34)
    gold, said = rng.integers(0, 3, (2, 30))

    def side(average: str) -> ComparisonSide:
        spec = MetricSpec("f1", options=freeze_options(average=average))
        one = ScoredColumn(
            MetricKey("f1"), build_column(range(30), Labels(Array(np.stack([gold, said], axis=1)))), spec
        )
        return ComparisonSide("run", (Scored(Task("t", MULTIPLE_CHOICE, (spec,)), (one,)),))

    found = compare_sides(side("macro"), side("micro"))
    assert found.lines == ()
    assert found.warnings == ("t: f1,none is not compared: f1 average=macro in one run, f1 average=micro in the other",)


def test_clusters_that_the_runs_declare_differently_are_told() -> None:
    bits, codes = np.tile([1.0, 0, 1, 1], 2), np.arange(8) // 2
    one, two = (run_of({"t": bits}, clusters={"t": given}) for given in (codes, np.arange(1, 9) // 2))
    assert compare_sides(one, two).warnings == ("t: the runs declare different clusters; the first run's are used",)
    assert compare_sides(one, one).warnings == ()


def test_the_rates_above_are_those_of_the_comparison_itself() -> None:
    rng = np.random.default_rng(13)
    sizes = {"a": 10, "b": 30}
    hits, expected = [], []
    for _ in range(150):
        drawn = {name: latent(rng, 0.7, 0.7, (n,), 0.5) for name, n in sizes.items()}
        sides = [run_of({name: pair[i] for name, pair in drawn.items()}, trees=suite(sizes)) for i in (0, 1)]
        line = compare_sides(*sides, draws=499).lines[-1]
        each = np.concatenate([(a - b) / len(a) / 2 for a, b in drawn.values()])
        hits.append(line.p_value <= 0.05)
        flipped = flip_sum(each)
        expected.append(flipped <= 0.05)
        assert line.difference == pytest.approx(each.sum(), abs=1e-12)
        assert line.p_value >= flipped * (1 - 1e-9), "skewness may only raise it"
    assert sum(expected) - 3 <= sum(hits) <= sum(expected)
    assert np.mean(hits) <= 0.06


@pytest.mark.parametrize(("tables", "most"), [(40, 0.1), pytest.param(120, 0.06, marks=pytest.mark.slow)])
def test_power_and_false_alarms_over_a_table(tables: int, most: float) -> None:
    """Twenty tasks without any difference: Holm finds something in at most 5 % of tables."""
    rng = np.random.default_rng(14)
    draw = partial(latent, rng, 0.7, 0.7, (60,))
    alarms = 0
    for _ in range(tables):
        pairs = {f"t{i}": draw() for i in range(20)}
        found = compare_sides(*(run_of({name: pair[i] for name, pair in pairs.items()}) for i in (0, 1)), draws=1)
        alarms += any((line.adjusted or 1) <= 0.05 for line in adjust_comparisons([found])[0].lines)
    assert alarms / tables <= most


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-150, 1e-110, 1e-10, 1e110, 1e200])
def test_the_unit_of_scores_does_not_matter(unit: float) -> None:
    rng = np.random.default_rng(47)
    runs = rng.gamma(0.5, size=(2, 30))
    mean = replace(AGGREGATIONS["mean"], bounds=(-np.inf, np.inf))

    def compare_in(unit: float):
        return compare_estimates(
            *(aggregate_metric(mean, build_column(range(30), Floats(Array(run * unit)))) for run in runs)
        )

    def bracket_in(unit: float):
        column = build_column(range(30), Floats(Array(runs[0] * unit)))
        return aggregate_metric(mean, column, inference=Inference(interval="bca")).ci

    plain, other = compare_in(1.0), compare_in(unit)
    assert plain.p_value is not None
    assert other.p_value == pytest.approx(plain.p_value, rel=1e-9)
    assert other.method == plain.method
    assert np.array(other.ci) / unit == pytest.approx(plain.ci, rel=1e-9)
    assert np.array(bracket_in(unit)) / unit == pytest.approx(bracket_in(1.0), rel=1e-9)
