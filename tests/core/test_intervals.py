"""Intervals and standard errors: oracles, identities, errata, and the coverage they promise (trust.md 1.3-1.8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, isnan, log, nan, sqrt

import numpy as np
import pytest
from counting import count_steps
from scipy import linalg, stats

from evalcore import AGGREGATIONS, Estimate, MetricKey, TaskReport, aggregate_metric, freeze_options
from evalcore.core.groups.report import report_group
from evalcore.core.records.array import Floats64
from evalcore.core.records.errors import EvalError
from evalcore.core.stats.bootstrap import bootstrap, median_stderr
from evalcore.core.stats.influence import ERROR_FORMS, independent, measure_error, satterthwaite
from evalcore.core.stats.intervals import exact_binomial, interval, interval_name, wilson
from evalcore.core.stats.links import IDENTITY, JACCARD, LOG
from evalcore.core.stats.quantiles import normal_quantile, t_quantile
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.stats import Array, Floats, Inference, Labels, Resampling, build_column

CELLS = list(product((10, 30, 100, 1000), (0.5, 0.9, 0.99)))


def of_counts(k: int, n: int, method: str = "wilson") -> tuple[float, float]:
    ends = interval(k / n, variance=k * (n - k) / n**3, n=n, df=n - 1, method=method)
    assert ends is not None
    return ends


def ends_of(n: int, method: str = "wilson") -> Floats64:
    return np.array([of_counts(k, n, method) for k in range(n + 1)])


def coverage(ends: Floats64, p: float) -> float:
    n = len(ends) - 1
    inside = (ends[:, 0] <= p) & (p <= ends[:, 1])
    return float(np.sum(stats.binom.pmf(np.arange(n + 1), n, p) * inside))


def influences(x: Floats64) -> Floats64:
    return x - x.mean()


# --- oracles ---


@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 7), (3, 7), (7, 7), (20, 20), (99, 100), (4321, 9999)])
def test_wilson_and_exact_agree_with_scipy(k: int, n: int) -> None:
    test = stats.binomtest(k, n)
    for level in (0.8, 0.95, 0.99):
        want = test.proportion_ci(level, method="wilson")
        assert wilson(k / n, n, normal_quantile((1 + level) / 2)) == pytest.approx(
            (want.low, want.high), rel=1e-10, abs=1e-12
        )
        want = test.proportion_ci(level, method="exact")
        assert exact_binomial(k, n, level) == pytest.approx((want.low, want.high), rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 7), (7, 7), (97, 100), (500, 1000)])
def test_interval_of_plain_binary_scores_is_the_textbook_one(k: int, n: int) -> None:
    assert of_counts(k, n, "z") == pytest.approx(wilson(k / n, n, normal_quantile(0.975)), rel=1e-12)
    assert of_counts(k, n) == pytest.approx(wilson(k / n, n, t_quantile(0.975, n - 1)), rel=1e-12)
    assert of_counts(k, n, "exact") == exact_binomial(k, n, 0.95)


# --- coverage, trust.md 1.3 and 1.8.3 ---


def test_coverage_of_the_default_in_every_listed_cell() -> None:
    found = {(n, p): coverage(ends_of(n), p) for n, p in CELLS}
    assert min(found.values()) >= 0.90, found


def test_coverage_with_z_is_the_published_table() -> None:
    published = (97.9, 93.0, 90.4, 95.7, 97.4, 96.4, 94.3, 93.6, 92.1, 94.6, 94.9, 96.4)
    found = [100 * coverage(ends_of(n, "z"), p) for n, p in CELLS]
    assert found == pytest.approx(published, abs=0.051)


@pytest.mark.parametrize("n", [10, 30, 100, 1000])
def test_coverage_over_the_grid(n: int) -> None:
    grid = np.arange(0.005, 0.9951, 0.005)
    default, exact = ends_of(n), ends_of(n, "exact")
    assert min(coverage(default, p) for p in grid) >= 0.86
    assert min(coverage(exact, p) for p in grid) >= 0.95


@pytest.mark.parametrize(
    ("n", "prevalence", "f1"), [(10, 0.5, 0.8), (30, 0.3, 0.99), (100, 0.1, 0.9), (100, 0.3, 0.99)]
)
def test_coverage_of_f1(n: int, prevalence: float, f1: float) -> None:
    # as many false positives as false negatives: precision = recall = F1
    hit = prevalence * f1
    rng = np.random.default_rng(11)
    counts = rng.multinomial(n, [hit, prevalence - hit, prevalence - hit, 1 - 2 * prevalence + hit], size=2000)
    inside = made = 0
    for tp, fp, fn, _ in counts.tolist():
        trials = tp + fp + fn
        if trials == 0:
            continue
        value, share = 2 * tp / (2 * tp + fp + fn), tp / trials
        slope = 2 / (1 + share) ** 2
        ends = interval(value, variance=slope**2 * share * (1 - share) / trials, n=trials, df=n - 1, link=JACCARD)
        assert ends is not None
        made += 1
        inside += ends[0] <= f1 <= ends[1]
    assert inside / made >= 0.90, inside / made


def test_coverage_of_few_clusters_and_bounded_scores() -> None:
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(6), 5)
    inside = {"clusters": 0, "repeats": 0}
    for _ in range(1000):
        x = (rng.random(30) < np.repeat(rng.beta(0.9 * 7 / 3, 0.1 * 7 / 3, 6), 5)).astype(float)
        found = measure_error(influences(x), codes)
        ends = interval(x.mean(), variance=found.variance, n=found.trials, df=found.df)
        inside["clusters"] += ends is not None and ends[0] <= 0.9 <= ends[1]
        y = rng.binomial(4, rng.beta(9, 1, 30)) / 4
        variance, _, count = independent(influences(y))
        ends = interval(y.mean(), variance=variance, n=count, df=count - 1)
        inside["repeats"] += ends is not None and ends[0] <= 0.9 <= ends[1]
    assert min(inside.values()) >= 920, inside


# --- errata ---


def test_e22_full_marks_are_never_a_point() -> None:
    assert of_counts(20, 20, "z") == pytest.approx((0.839, 1.0), abs=5e-4)
    for n, method in product((2, 3, 20, 1000, 10**6), ("wilson", "z", "exact")):
        low, high = of_counts(n, n, method)
        assert 0 < low < high == 1
        low, high = of_counts(0, n, method)
        assert 0 == low < high < 1


def test_e31_no_cluster_id_is_an_error_not_a_giant_cluster() -> None:
    for ids in ([1, None, None], np.array([1.0, nan, 2.0]), ["a", None, "b"]):
        with pytest.raises(EvalError, match="first at row 1; give each its own id"):
            measure_error(np.array([-1.0, 0.0, 1.0]), ids)
    with pytest.raises(EvalError, match="each of 3 documents, got 2"):
        measure_error(np.array([-1.0, 0.0, 1.0]), [1, 2])


def test_e18_e35_bootstrap_is_corrected_and_not_divided_by_the_draws() -> None:
    x = np.random.default_rng(0).random(30)
    found = bootstrap(lambda at: float(x[at].mean()), 30, draws=4000, seed=3)
    assert found == pytest.approx(x.std(ddof=1) / sqrt(30), rel=0.04)


def test_e37_a_group_of_57_tasks_at_002() -> None:
    one = influences(np.tile([0.0, 1.0], 313))
    task = independent(one)[1]
    assert task == pytest.approx(0.02, rel=1e-3)
    group = independent(np.tile(one, 57))[0]
    assert sqrt(group) == pytest.approx(0.02 / sqrt(57), rel=2e-3)
    assert satterthwaite([0.02**2] * 57, [99] * 57) == pytest.approx(57 * 99), "57 tasks of 100 documents"


def test_e40_no_cancellation() -> None:
    x = 1e9 + np.array([0.0, 1.0, 2.0])
    variance, stderr, n = independent(influences(x))
    assert sqrt(variance * n) == pytest.approx(sqrt(2 / 3), rel=1e-12)
    assert stderr == pytest.approx(1 / sqrt(3), rel=1e-12)
    found = bootstrap(lambda at: 1e9 + float(at.mean()), 3, draws=4000, seed=0)
    assert found == pytest.approx(1 / sqrt(3), rel=0.05)
    assert median_stderr(x) == pytest.approx(median_stderr(x - 1e9), rel=1e-12)


# --- identities ---


def test_clusters_of_one_are_plain_to_the_last_bit() -> None:
    x = influences(np.random.default_rng(1).random(101))
    plain = measure_error(x)
    assert measure_error(x, np.arange(101)) == plain
    assert measure_error(x, [f"doc {i}" for i in range(101)]) == plain
    assert (plain.variance, plain.stderr, plain.units) == independent(x)
    assert plain.stderr == pytest.approx(x.std(ddof=1) / sqrt(101), rel=1e-12)
    weights = np.random.default_rng(2).lognormal(0, 1, 101)
    assert measure_error(x, np.arange(101)[::-1], weights=weights) == measure_error(x, weights=weights)


def test_order_of_documents_and_names_of_clusters_change_no_bit() -> None:
    rng = np.random.default_rng(2)
    x, ids = influences(rng.random(200)), rng.integers(0, 23, 200)
    order = rng.permutation(200)
    for weights in (np.ones(200), rng.lognormal(0, 1, 200)):
        found = measure_error(x, ids, weights=weights)
        assert found == measure_error(x[order], ids[order], weights=weights[order])
        assert found == measure_error(x, [f"c{i}" for i in ids], weights=weights)


def test_duplicated_documents_in_clusters_change_nothing() -> None:
    x = influences(np.random.default_rng(3).random(50))
    found = measure_error(np.repeat(x, 3), np.repeat(np.arange(50), 3))
    assert (found.variance, found.stderr) == pytest.approx(independent(x)[:2], rel=1e-12)


@pytest.mark.parametrize("equal", [True, False])
def test_cr1_and_equal_clusters_have_one_factor(equal: bool) -> None:
    rng = np.random.default_rng(4)
    x, ids = influences(rng.random(63)), np.arange(63) % 7 if equal else rng.integers(0, 7, 63)
    squares = sum(x[ids == c].sum() ** 2 for c in range(7))
    found = measure_error(x, ids, form=ERROR_FORMS["cr1"])
    assert (found.variance, found.stderr) == pytest.approx((squares / 63**2, sqrt(7 / 6 * squares) / 63), rel=1e-12)
    assert (found.df, found.trials) == (6, 7)
    corrected = measure_error(x, ids)
    assert (corrected.stderr == found.stderr) is equal
    assert (corrected.df == 6) is equal


def find_by_matrices(influence: Floats64, ids: Floats64, weights: Floats64) -> tuple[float, float]:
    """Variance and degrees of freedom by CR2's definition, with whole matrices.

    As a regression on one column: a document of weight b has the variance b² and, divided by it, the design 1; its row
    of the hat matrix is b / Σb. Each cluster's residuals are multiplied by A, whose square is the inverse of (I - H).
    """
    n = len(influence)
    members = np.array([[float(one == code) for one in ids] for code in np.unique(ids)])
    hat = np.outer(members @ weights, np.ones(len(members))) / weights.sum()  # of the clusters' sums
    taken = np.eye(n) - np.outer(weights, np.ones(n)) / weights.sum()
    spread = members @ taken @ np.diag(weights**2) @ taken.T @ members.T
    root = np.array([linalg.fractional_matrix_power(np.array([[1 - h]]), -0.5)[0, 0] for h in np.diag(hat)])
    adjusted = root[:, None] * spread * root
    variance = float(np.sum((root * (members @ influence)) ** 2)) / n**2
    return variance, float(np.trace(adjusted) ** 2 / np.trace(adjusted @ adjusted))


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0], ids="weights of log SD {}".format)
@pytest.mark.parametrize("seed", range(12))
def test_cr2_by_whole_matrices(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.choice(9, 40, p=rng.dirichlet(np.full(9, 0.6)))
    weights = rng.lognormal(0, spread, 40)
    scores = rng.random(40) * weights
    influence = 40 * (scores - scores.sum() / weights.sum() * weights) / weights.sum()
    found = measure_error(influence, ids, weights=weights)
    variance, df = find_by_matrices(influence, ids, weights)
    assert found.stderr == pytest.approx(sqrt(variance), rel=1e-10)
    assert found.df == pytest.approx(df, rel=1e-8)
    h = np.array([weights[ids == code].sum() for code in np.unique(ids)]) / weights.sum()
    assert found.trials == pytest.approx(1 / np.sum(h**2), rel=1e-12)
    assert found.variance == pytest.approx(variance * (len(h) - 1) / len(h), rel=1e-10)
    if not spread:  # trust.md 1.9
        a = h**2 / (1 - h)
        assert found.df == pytest.approx(1 / (np.sum(h**2) + np.sum(a) ** 2 - np.sum(a**2)), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_cr2_is_that_of_a_regression(seed: int) -> None:
    """Of scores on a constant: each cluster's residuals by the symmetric root of the inverse of its I - H."""
    rng = np.random.default_rng(seed)
    x, ids = rng.random(30), rng.choice(5, 30, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    hat = np.full((30, 30), 1 / 30)
    meat = 0.0
    for code in np.unique(ids):
        at = np.flatnonzero(ids == code)
        apart = np.eye(len(at)) - hat[np.ix_(at, at)]
        meat += float(np.sum(linalg.inv(linalg.sqrtm(apart)).real @ (x[at] - x.mean()))) ** 2
    assert measure_error(influences(x), ids).stderr == pytest.approx(sqrt(meat) / 30, rel=1e-9)


def test_a_cluster_of_all_but_one_document_leaves_one_degree() -> None:
    x = influences(np.random.default_rng(0).random(1000))
    found = measure_error(x, np.arange(1000) == 7)
    assert 1 <= found.df < 1.01
    assert measure_error(x, np.zeros(1000, np.int64)).stderr is None
    alone = measure_error(x, weights=np.r_[1.0, np.zeros(999)])
    assert (alone.stderr, alone.units) == (None, 1000)


def test_satterthwaite_of_one_task_is_its_own() -> None:
    assert satterthwaite([0.3], [7]) == pytest.approx(7)
    assert satterthwaite([1e-200, 1e-200], [5, 5]) == pytest.approx(10)
    assert satterthwaite([], []) == satterthwaite([1.0, 1.0], [4, 0]) == 0


# --- edges ---


@pytest.mark.parametrize(
    "edit",
    [{"df": 0.0}, {"df": -1.0}, {"n": 0.0}, {"n": nan}, {"df": nan}, {"variance": nan}, {"variance": None}],
)
def test_undefined_is_none(edit: dict[str, float]) -> None:
    assert interval(0.5, **{"variance": 0.01, "n": 25.0, "df": 24.0, **edit}) is None
    assert interval(nan, variance=0.01, n=25, df=24) is None


def test_no_documents_and_one_document() -> None:
    variance, stderr, n = independent(np.zeros(0))
    assert isnan(variance)
    assert (stderr, n) == (None, 0)
    none = measure_error(np.zeros(0), [])
    assert (none.stderr, none.units) == (None, 0)
    assert independent(np.zeros(1)) == (0.0, None, 1)
    one = measure_error(np.array([-1.0, 1.0]), ["c", "c"])
    assert (one.stderr, one.units) == (None, 1)
    assert bootstrap(lambda at: 1.0, 1, draws=9, seed=0) is None
    assert bootstrap(lambda at: nan, 9, draws=9, seed=0) is None
    assert bootstrap(lambda at: 1.0, 9, draws=0, seed=0) is None


def test_equal_scores_are_not_certainty() -> None:
    x = influences(np.full(7, 0.7) + np.array([0, 0, 0, 0, 0, 0, 1e-16]))
    ends = interval(0.7, variance=independent(x)[0] + 1e-33, n=7, df=6)
    assert ends == pytest.approx(wilson(0.7, 7, t_quantile(0.975, 6)))


def test_other_bounds_are_rescaled() -> None:
    low, high = interval(0.6, variance=0.002, n=100, df=99) or (nan, nan)
    assert interval(60.0, variance=20.0, n=100, df=99, bounds=(0, 100)) == pytest.approx((100 * low, 100 * high))
    assert interval(0.2, variance=0.008, n=100, df=99, bounds=(-1, 1)) == pytest.approx((2 * low - 1, 2 * high - 1))


def test_without_bounds_it_is_students_on_the_links_scale() -> None:
    t = t_quantile(0.975, 8)
    free = {"variance": 0.9, "n": 9.0, "df": 8.0, "stderr": 1.0}
    assert interval(5.0, **free, bounds=(-inf, inf)) == pytest.approx((5.0 - t, 5.0 + t))
    assert interval(5.0, **free, bounds=(0, inf), method="z")[1] == pytest.approx(5 + normal_quantile(0.975))
    assert interval(1.0, **free, bounds=(0, inf))[0] == 0, "never outside its bounds"
    low, high = interval(10.0, **free, bounds=(1, inf), link=LOG) or (nan, nan)
    assert (log(low), log(high)) == pytest.approx((log(10) - t / 10, log(10) + t / 10))
    assert interval(0.0, **free, bounds=(0, inf), link=LOG) is None
    assert interval(5.0, variance=0.9, n=9, df=8, bounds=(0, inf)) is None
    assert interval(5.0, **free) == pytest.approx((5.0 - t, 5.0 + t)), "broken bounds are no bounds"


def test_unknown_method_and_impossible_counts_are_named() -> None:
    with pytest.raises(EvalError, match="did you mean 'wilson'"):
        interval(0.5, variance=0.1, n=4, df=3, method="wilso")
    with pytest.raises(EvalError, match="got 5 of 4"):
        exact_binomial(5, 4, 0.95)


@pytest.mark.parametrize("link", [IDENTITY, LOG, JACCARD])
def test_links_invert_and_slope_is_the_derivative(link: object) -> None:
    step = 1e-6
    for value in (0.1, 0.5, 0.999):
        assert link.inverse(link.forward(value)) == pytest.approx(value)
        assert link.slope(value) == pytest.approx(
            (link.forward(value + step) - link.forward(value - step)) / (2 * step)
        )


def test_a_huge_log_is_infinite_not_an_error() -> None:
    assert LOG.inverse(1e4) == inf


# --- resampling ---


def every_resample(x: Floats64) -> float:
    return float(np.std([np.median(x[list(at)]) for at in product(range(len(x)), repeat=len(x))]))


@pytest.mark.parametrize("n", [3, 5])
def test_median_stderr_is_the_bootstrap_with_endless_draws(n: int) -> None:
    x = np.sort(np.random.default_rng(n).exponential(size=n))
    assert median_stderr(x) == pytest.approx(every_resample(x), rel=1e-12)


def test_median_stderr_of_an_even_number_is_close() -> None:
    x = np.sort(np.random.default_rng(6).normal(size=6))
    assert median_stderr(x) == pytest.approx(every_resample(x), rel=0.25)


@pytest.mark.parametrize("n", [2, 4, 9, 30, 1001, 10_000])
def test_median_stderr_has_maritz_and_jarretts_weights(n: int) -> None:
    x = np.sort(np.random.default_rng(n).normal(size=n))
    weights = np.diff(stats.beta.cdf(np.arange(n + 1) / n, (n + 1) / 2, (n + 1) / 2))
    want = sqrt(np.sum(weights * (x - np.sum(weights * x)) ** 2))
    assert median_stderr(x) == pytest.approx(want, rel=1e-10)


def test_median_stderr_takes_the_same_steps_for_any_number_of_documents() -> None:
    few, many = (np.sort(np.random.default_rng(7).normal(size=n)) for n in (101, 10_001))
    median_stderr(few)
    assert count_steps(lambda: median_stderr(many)) == count_steps(lambda: median_stderr(few))


def test_median_stderr_near_scipys() -> None:
    x = np.sort(np.random.default_rng(7).normal(size=10_001))
    found = median_stderr(x)
    # scipy's mjci has Beta(m - 1, n - m) where the exact bootstrap has Beta(m, n - m + 1)
    assert found == pytest.approx(float(stats.mstats.mjci(x, [0.5])[0]), rel=1e-3)
    assert median_stderr(np.array([0.0, nan])) is None
    assert median_stderr(np.full(5, 2.0)) == 0


def test_bootstrap_is_seeded_and_drops_what_is_not_finite() -> None:
    x = np.arange(10.0)

    def shaky(at: np.ndarray) -> float:
        return nan if at[0] == 0 else float(x[at].mean())

    assert bootstrap(shaky, 10, draws=200, seed=1) == bootstrap(shaky, 10, draws=200, seed=1)
    assert bootstrap(shaky, 10, draws=200, seed=1) != bootstrap(shaky, 10, draws=200, seed=2)


# --- what can be asked for, through closing ---

ASKED = ("wilson", "t", "exact", "percentile", "bca", "z")
KEY = MetricKey("acc")


def close(values: Sequence[float], method: str, name: str = "mean", **more: object) -> Estimate:
    made = build_column(range(len(values)), Floats(Array(np.asarray(values, np.float64))))
    chosen = {"resampling": Resampling(400), **more.pop("inference", {})}
    return aggregate_metric(AGGREGATIONS[name], made, inference=Inference(interval=method, **chosen), **more)


def group_of(leaves: dict[str, Estimate], method: str, **spec: object) -> Estimate:
    made = [Leaf(name, TaskReport(name=name, estimates=((KEY, one),), n_docs=one.n)) for name, one in leaves.items()]
    inference = Inference(interval=method, resampling=Resampling(400))
    return report_group(Group("g", tuple(made), (GroupMetric("acc", **spec),)), inference=inference).get(KEY)


@pytest.mark.parametrize("method", ASKED)
def test_one_subtask_is_the_task_and_clusters_of_one_are_plain(method: str) -> None:
    rng = np.random.default_rng(1)
    for values in (rng.random(23), (rng.random(40) < 0.8).astype(float), np.ones(9)):
        plain = close(values, method)
        alone = close(values, method, clusters=np.arange(len(values))[::-1] * 3)
        assert alone.ci == plain.ci
        assert group_of({"a": plain}, method).ci == pytest.approx(plain.ci, rel=1e-12)
    lls = -rng.random(30) * 9
    plain = close(lls, method, "perplexity")
    assert group_of({"a": plain}, method).ci == pytest.approx(plain.ci, rel=1e-9)


@pytest.mark.parametrize("method", ASKED)
def test_every_kind_of_estimate_has_every_interval(method: str) -> None:
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(10), 3)
    one, two = (close(rng.random(30), method, clusters=c) for c in (codes, codes + 100))
    repeated, plain = close(rng.binomial(4, 0.6, 30) / 4, method), close((rng.random(30) < 0.5) * 1.0, method)
    tree = {"a": one, "b": two, "c": repeated, "d": plain}
    spanning = {"a": one, "b": close(rng.random(30), method, clusters=codes), "d": plain}
    medians = {name: close(rng.random(31), method, "median") for name in "ab"}
    for made in (*tree.values(), group_of(tree, method), group_of(spanning, method), *medians.values()):
        assert made.ci is not None
        assert made.ci[0] < made.value < made.ci[1]
        assert made.reason is None
    mixed = group_of(medians, method, aggregation="macro")
    assert mixed.ci is not None
    if method in ("percentile", "bca"):
        assert mixed.reason == f"{method}: nothing to resample; t instead"
        assert "|ci:t|" in mixed.signature


@pytest.mark.parametrize("method", ASKED)
def test_a_higher_confidence_is_wider(method: str) -> None:
    x = np.random.default_rng(5).random(25)
    tight, wide = (close(x, method, inference={"confidence": level}).ci for level in (0.5, 0.99))
    assert wide[0] < tight[0] < tight[1] < wide[1]


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_bootstrap_is_seeded_and_says_so(method: str) -> None:
    x = np.random.default_rng(6).random(25)
    first, again, other = (close(x, method, inference={"resampling": Resampling(300, s)}) for s in (1, 1, 2))
    assert first == again
    assert first.ci != other.ci
    assert first.signature == f"delta|ci:{method}(draws=300,seed=1)"
    assert close(x, method, inference={"resampling": Resampling(0)}).ci is None


def test_a_skewed_sample_moves_bca_and_not_percentile() -> None:
    """Of a mean of few high scores the upper end is the uncertain one."""
    x = np.random.default_rng(7).beta(0.2, 3, 30)
    percentile, bca = (
        close(x, method, inference={"resampling": Resampling(4000)}).ci for method in ("percentile", "bca")
    )
    assert bca[0] > percentile[0]
    assert bca[1] > percentile[1]


def test_equal_scores_without_bounds_have_no_interval_and_a_reason() -> None:
    for method in ASKED:
        made = close([-0.1] * 7, method, "perplexity")
        assert made.ci is None
        assert made.reason == "the documents show no spread, and the value has no bounds"


def test_the_name_is_that_of_the_interval_really_made() -> None:
    names = {method: interval_name(method, 0.5, variance=0.01) for method in ("wilson", "t", "exact", "z")}
    assert names == {"wilson": "wilson-t", "t": "t", "exact": "exact", "z": "wilson-z"}
    beyond = {method: interval_name(method, 5.0, variance=0.01) for method in names}
    assert beyond == {"wilson": "t", "t": "t", "exact": "t", "z": "z"}
    assert interval_name("z", 5.0, variance=0.01, bounds=(1, inf), link=LOG) == "z-log"
    assert interval_name("t", 0.8, variance=0.01, link=JACCARD) == "t-jaccard"


def test_exact_counts_of_clusters_are_korn_and_graubards() -> None:
    """An effective count need not be whole, and shrinks with the degrees of freedom of the clusters."""
    mean, variance, n, count = 0.8, 0.01, 60, 12
    trials = mean * (1 - mean) / variance * (t_quantile(0.975, n - 1) / t_quantile(0.975, count - 1)) ** 2
    found = interval(mean, variance=variance, n=count, df=count - 1, method="exact", documents=n)
    hits = mean * trials
    want = stats.beta.ppf([0.025, 0.975], [hits, hits + 1], [trials - hits + 1, trials - hits])
    assert found == pytest.approx(tuple(want), rel=1e-9)


def test_full_marks_in_few_clusters_are_worth_the_clusters() -> None:
    """Of F1 = 1 on 40 documents in 4 clusters, no more is known than 4 trials say."""
    rows = Labels(Array(np.tile([[1, 1], [0, 0]], (20, 1))))
    made = [
        aggregate_metric(AGGREGATIONS["f1"], build_column(range(40), rows), clusters=codes)
        for codes in (None, np.arange(40), np.arange(40) // 10)
    ]
    assert [one.spread.trials for one in made] == [20, 20, 4]
    assert made[0].ci == made[1].ci
    assert made[2].ci[0] < made[0].ci[0]


def test_a_task_that_shares_no_cluster_is_drawn_by_itself() -> None:
    """Two tasks on the same ten clusters and a third on its own: as if the two were one task."""
    rng, codes = np.random.default_rng(8), np.repeat(np.arange(10), 2)
    one, other = rng.random(20), rng.random(20)
    pair = {name: close(one, "percentile", clusters=codes) for name in "ab"}
    apart = close(other, "percentile", clusters=codes + 50)
    spec = {"weights": freeze_options(a=0.25, b=0.25, c=0.5)}
    found = group_of({**pair, "c": apart}, "percentile", **spec).ci
    single = group_of({"a": pair["a"], "c": apart}, "percentile", weights=freeze_options(a=0.5, c=0.5)).ci
    assert found == pytest.approx(single, rel=1e-12)
