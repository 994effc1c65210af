"""Intervals and errors against scipy, statsmodels and inspect_ai, run live: equal where they are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from evalcore import AGGREGATIONS, Estimate, MetricKey, TaskReport, aggregate_metric
from evalcore.core.groups.report import report_group
from evalcore.core.records.row import Rows
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.stats import Array, Floats, Inference, Labels, Resampling, Stats, build_column

stats = pytest.importorskip("scipy.stats")
RNG = np.random.default_rng
Values = NDArray[np.float64]
LEVELS = (0.8, 0.95, 0.999)
COUNTS = [(0, 1), (0, 9), (9, 9), (20, 20), (7, 30), (99, 100), (499, 1000)]
DRAWS = 10_000
KEY = MetricKey("acc")


def close(
    rows: Rows,
    method: str,
    *,
    name: str = "mean",
    level: float = 0.95,
    clusters: object = None,
    draws: int = DRAWS,
    stderr: str = "cr2",
) -> Estimate:
    inference = Inference(interval=method, confidence=level, resampling=Resampling(draws, 1), stderr=stderr)
    n = len(rows.values)
    return aggregate_metric(AGGREGATIONS[name], build_column(range(n), rows), inference=inference, clusters=clusters)


def floats(values: Sequence[float] | Values) -> Floats:
    return Floats(Array(np.asarray(values, np.float64)))


def hits(k: int, n: int) -> Floats:
    return floats([1.0] * k + [0.0] * (n - k))


# --- proportions: scipy and statsmodels ---


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("k", "n"), [pair for pair in COUNTS if pair[1] > 1])
def test_proportions(k: int, n: int, level: float) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for ours, scipys, theirs in (("z", "wilson", "wilson"), ("exact", "exact", "beta")):
        found = close(hits(k, n), ours, level=level).ci
        assert found == pytest.approx(tuple(stats.binomtest(k, n).proportion_ci(level, method=scipys)), abs=1e-9)
        # statsmodels leaves a sample of one kind to rounding: nan or a hair beyond 0 and 1
        want = np.clip(
            np.nan_to_num(proportion.proportion_confint(k, n, 1 - level, method=theirs), nan=float(k > 0)), 0, 1
        )
        assert found == pytest.approx(tuple(want), abs=1e-9)


# --- t: scipy ---


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(4))
def test_t_of_a_mean_and_of_a_perplexity(seed: int, level: float) -> None:
    x = 0.4 + 0.2 * RNG(seed).random(5 + 20 * seed)
    want = stats.t.interval(level, len(x) - 1, x.mean(), stats.sem(x))
    assert close(floats(x), "t", level=level).ci == pytest.approx(want, rel=1e-9)
    lls = -RNG(seed).gamma(2, 1, 9)
    low, high = stats.t.interval(level, 8, -lls.mean(), stats.sem(lls))
    want = (max(exp(low), 1.0), exp(high))
    assert close(floats(lls), "t", name="perplexity", level=level).ci == pytest.approx(want, rel=1e-9)
    even = np.r_[lls, 2 * lls.mean() - lls]  # mirrored, so that there is no skew to lengthen an interval for
    low, high = stats.t.interval(level, 17, -even.mean(), stats.sem(even))
    for method in ("t", "wilson", "exact"):
        longer = close(floats(lls), method, name="perplexity", level=level).ci
        assert longer[0] <= want[0] * (1 + 1e-9)
        assert longer[1] >= want[1] * (1 - 1e-9)
        plain = close(floats(even), method, name="perplexity", level=level).ci
        assert plain == pytest.approx((max(exp(low), 1.0), exp(high)), rel=1e-9)


def test_t_stays_between_the_bounds_and_on_the_scale_of_jaccard() -> None:
    low, high = stats.t.interval(0.95, 9, 0.9, stats.sem([1.0] * 9 + [0.0]))
    assert high > 1
    assert close(hits(9, 10), "t").ci == pytest.approx((low, 1.0))
    # 6 found, 2 claimed in vain, 1 missed, of 20: F1 = 2 J / (1 + J) with J = 6 of 9
    rows = Labels(Array(np.array([[1, 1]] * 6 + [[0, 1]] * 2 + [[1, 0]] + [[0, 0]] * 11)))
    shared = np.array([1.0] * 6 + [0.0] * 3)
    spread = sqrt(float(np.sum((shared - 2 / 3) ** 2))) / 9 * sqrt(20 / 19)
    want = [2 * j / (1 + j) for j in stats.t.interval(0.8, 19, 2 / 3, spread)]
    assert close(rows, "t", name="f1", level=0.8).ci == pytest.approx(want, rel=1e-9)


# --- bootstraps: scipy ---

SCIPYS = {"percentile": "percentile", "bca": "BCa"}


def resampled(
    data: Sequence[Values], statistic: Callable[..., object], method: str, level: float = 0.95, *, paired: bool = False
) -> tuple[tuple[float, float], float]:
    """Scipy's interval, and how far two with this many draws may differ: six standard errors of either's quantiles."""
    made = stats.bootstrap(
        data,
        statistic,
        n_resamples=DRAWS,
        confidence_level=level,
        method=SCIPYS[method],
        rng=RNG(7),
        paired=paired,
        vectorized=True,
    )
    tail = (1 - level) / 2
    each = sqrt(tail * (1 - tail) / DRAWS) / stats.norm.pdf(stats.norm.ppf(tail)) * made.standard_error
    return (made.confidence_interval.low, made.confidence_interval.high), 6 * sqrt(2) * each


def agree(found: Estimate, want: tuple[tuple[float, float], float], method: str) -> None:
    ends, slack = want
    assert found.ci == pytest.approx(ends, abs=slack), (found.ci, ends, slack)
    assert f"{method}(draws={DRAWS},seed=1)" in found.signature


@pytest.mark.parametrize("method", SCIPYS)
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bootstrap_of_a_skewed_mean(method: str, level: float) -> None:
    x = RNG(3).beta(0.4, 2.0, 25)
    agree(close(floats(x), method, level=level), resampled([x], np.mean, method, level), method)
    # and the two bootstraps are told apart
    other = resampled([x], np.mean, "bca" if method == "percentile" else "percentile", level)
    assert close(floats(x), method, level=level).ci != pytest.approx(other[0], abs=other[1])


@pytest.mark.parametrize("method", SCIPYS)
def test_bootstrap_of_a_ratio_a_correlation_and_a_median(method: str) -> None:
    rng = RNG(5)
    top, low = -rng.gamma(2, 1, 30), rng.integers(3, 30, 30).astype(float)
    rows = Stats(Array(np.column_stack([top, low])))

    def perplexity(a: Values, b: Values, axis: int) -> Values:
        return np.exp(-a.sum(axis=axis) / b.sum(axis=axis))

    found = close(rows, method, name="weighted_perplexity")
    agree(found, resampled([top, low], perplexity, method, paired=True), method)

    gold = rng.integers(0, 2, 60)
    said = np.where(rng.random(60) < 0.8, gold, 1 - gold)

    def phi(a: Values, b: Values, axis: int) -> Values:
        a, b = a - a.mean(axis=axis, keepdims=True), b - b.mean(axis=axis, keepdims=True)
        return (a * b).sum(axis=axis) / np.sqrt((a * a).sum(axis=axis) * (b * b).sum(axis=axis))

    found = close(Labels(Array(np.column_stack([gold, said]))), method, name="matthews_corrcoef")
    ends, slack = resampled([gold.astype(float), said.astype(float)], phi, method, paired=True)
    # ours differentiates where scipy's leaves one out: the accelerations differ by a few per cent
    agree(found, (ends, slack * (1.5 if method == "bca" else 1)), method)

    x = rng.exponential(size=41)
    agree(close(floats(x), method, name="median"), resampled([x], np.median, method), method)


@pytest.mark.parametrize("method", SCIPYS)
def test_bootstrap_of_whole_clusters(method: str) -> None:
    rng = RNG(11)
    sizes = rng.integers(1, 6, 20)
    codes = np.repeat(np.arange(20), sizes)
    x = np.clip(rng.normal(0.5, 0.2, 20)[codes] + rng.normal(0, 0.05, len(codes)), 0, 1)
    sums = np.bincount(codes, weights=x)

    def mean(index: NDArray[np.int64], axis: int) -> Values:
        return sums[index].sum(axis=axis) / sizes[index].sum(axis=axis)

    found = close(floats(x), method, clusters=codes * 7 - 3)
    ends, slack = resampled([np.arange(20)], mean, method)
    agree(found, (ends, slack), method)
    naive = close(floats(x), method)
    assert naive.ci is not None
    assert naive.ci[1] - naive.ci[0] < 0.8 * (ends[1] - ends[0])


def of_group(tasks: Sequence[Values], inference: Inference, clusters: NDArray[np.int64] | None = None) -> Estimate:
    leaves = []
    for i, values in enumerate(tasks):
        one = build_column(range(len(values)), floats(values))
        made = aggregate_metric(AGGREGATIONS["mean"], one, inference=inference, clusters=clusters)
        leaves.append(Leaf(f"t{i}", TaskReport(name=f"t{i}", estimates=((KEY, made),), n_docs=len(values))))
    spec = GroupMetric("acc", weight_by_size=False)
    found = report_group(Group("g", tuple(leaves), (spec,)), inference=inference).get(KEY)
    assert found is not None
    return found


@pytest.mark.parametrize("method", SCIPYS)
def test_bootstrap_of_a_group(method: str) -> None:
    """Scipy resamples within each sample, as a group's tasks must be."""
    inference = Inference(interval=method, resampling=Resampling(DRAWS, 1))
    tasks = [RNG(i).beta(0.3 + i, 1.5, n) for i, n in enumerate((8, 20, 60))]

    def mean_of_means(a: Values, b: Values, c: Values, axis: int) -> Values:
        return (a.mean(axis=axis) + b.mean(axis=axis) + c.mean(axis=axis)) / 3

    agree(of_group(tasks, inference), resampled(tasks, mean_of_means, method), method)


@pytest.mark.parametrize("method", SCIPYS)
def test_bootstrap_of_clusters_across_tasks(method: str) -> None:
    """A passage with two questions in each of two tasks is drawn with all four."""
    inference, rng = Inference(interval=method, resampling=Resampling(DRAWS, 1)), RNG(2)
    passage = rng.beta(0.5, 1.5, 15)
    codes = np.repeat(np.arange(15), 2)
    tasks = [np.clip(passage[codes] + rng.normal(0, 0.02, 30), 0, 1) for _ in range(2)]
    each = sum(np.bincount(codes, weights=one) / 2 for one in tasks) / 2

    def mean(index: NDArray[np.int64], axis: int) -> Values:
        return each[index].mean(axis=axis)

    found = of_group(tasks, inference, codes)
    ends, slack = resampled([np.arange(15)], mean, method)
    agree(found, (ends, slack), method)
    apart = of_group(tasks, inference)
    assert apart.ci is not None
    assert apart.ci[1] - apart.ci[0] < 0.7 * (ends[1] - ends[0]), "as if the tasks had nothing in common"


@pytest.mark.parametrize("method", SCIPYS)
def test_where_scipy_has_no_answer_we_give_the_default(method: str) -> None:
    found = close(hits(20, 20), method)
    assert found.ci == close(hits(20, 20), "wilson").ci
    assert found.reason == f"{method}: the documents show no spread; wilson-t instead"
    assert found.signature.endswith("|ci:wilson-t")
    made = stats.bootstrap(([1.0] * 20,), np.mean, method="percentile", rng=RNG(0)).confidence_interval
    assert (made.low, made.high) == (1.0, 1.0)


# --- clusters: statsmodels ---


@pytest.mark.parametrize("seed", range(4))
def test_clustered_errors(seed: int) -> None:
    """Of a mean, its correction for few clusters is C/(C-1) · (n-1)/(n-1): ours as well under ``cr1``."""
    regression = pytest.importorskip("statsmodels.regression.linear_model")
    rng = RNG(seed)
    codes = rng.integers(0, 5 + seed, 60)
    x = np.clip(0.5 + rng.normal(0, 0.1, 20)[codes] + rng.normal(0, 0.1, 60), 0, 1)
    fit = regression.OLS(x, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    found = close(floats(x), "t", clusters=codes, stderr="cr1")
    assert found.stderr == pytest.approx(float(fit.bse[0]), rel=1e-9)
    assert found.ci == pytest.approx(tuple(fit.conf_int(0.05)[0]), rel=1e-9)


# --- inspect_ai ---


def inspected(name: str, scores: Sequence[float] | Values, clusters: Sequence[int] = (), **chosen: object) -> object:
    scorer = pytest.importorskip("inspect_ai.scorer")
    codes = clusters if len(clusters) else range(len(scores))
    samples = [
        scorer.SampleScore(score=scorer.Score(value=float(value)), sample_id=i, sample_metadata={"c": int(code)})
        for i, (value, code) in enumerate(zip(scores, codes, strict=True))
    ]
    make = getattr(pytest.importorskip("inspect_ai.scorer._metrics.std"), name)
    return make(**chosen)(samples)


def ends_of(found: object) -> tuple[float, float]:
    assert isinstance(found, dict)
    return found["lower"], found["upper"]


@pytest.mark.parametrize("seed", range(4))
def test_inspect_is_equal_where_it_is_right(seed: int) -> None:
    rng = RNG(seed)
    x, codes = 0.4 + 0.2 * rng.random(40), rng.integers(0, 4 + seed, 40)
    assert close(floats(x), "t").stderr == pytest.approx(inspected("stderr", x), rel=1e-12)
    assert close(floats(x), "t").ci == pytest.approx(ends_of(inspected("ci", x)), rel=1e-9)
    clustered = close(floats(x), "t", clusters=codes, stderr="cr1")
    assert clustered.stderr == pytest.approx(inspected("stderr", x, codes.tolist(), cluster="c"), rel=1e-9)
    assert clustered.ci == pytest.approx(ends_of(inspected("ci", x, codes.tolist(), cluster="c")), rel=1e-9)
    bits = (rng.random(30) < 0.8).astype(float)
    assert close(floats(bits), "z").ci == pytest.approx(ends_of(inspected("ci_wilson", bits)), rel=1e-9)


def test_inspects_bootstrap() -> None:
    """It draws from numpy's global stream, which is put back."""
    x, before = RNG(3).beta(0.4, 2.0, 25), np.random.get_state()
    np.random.seed(1)
    low, high = ends_of(inspected("ci", x, method="bootstrap", num_samples=4000))
    np.random.set_state(before)
    assert close(floats(x), "percentile").ci == pytest.approx((low, high), abs=0.15 * x.std() / 5)


def test_inspect_claims_certainty_where_nothing_is_known() -> None:
    assert inspected("stderr", [1.0]) == 0
    assert ends_of(inspected("ci", [1.0])) == (1.0, 1.0)
    alone = close(hits(1, 1), "t")
    assert (alone.stderr, alone.ci) == (None, None)
    assert alone.reason

    assert ends_of(inspected("ci", [1.0] * 20)) == (1.0, 1.0)
    for method in ("wilson", "t", "exact", "percentile", "bca", "z"):
        made = close(hits(20, 20), method).ci
        assert made is not None
        assert made[0] < 0.9

    one = [7] * 20
    assert inspected("stderr", RNG(0).random(20), one, cluster="c") == 0
    joined = close(floats(RNG(0).random(20)), "t", clusters=np.array(one))
    assert (joined.stderr, joined.ci) == (None, None)
    assert "two clusters" in (joined.reason or "")


def test_a_log_scale_is_not_a_t_on_the_plain_one() -> None:
    lls = -RNG(1).gamma(2, 1, 9)
    found = close(floats(lls), "t", name="perplexity")
    assert found.value is not None
    assert found.ci is not None
    assert log(found.ci[1]) - log(found.value) == pytest.approx(log(found.value) - log(found.ci[0]), rel=1e-9)
