"""Tasks as a random sample: the column that says how far a group's mean may be off over other tasks of its kind."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest

from evalcore import AGGREGATIONS, MetricKey, TaskReport, aggregate_metric, freeze_options
from evalcore.core.groups.report import across_tasks, sample_of_tasks
from evalcore.core.records.estimate import Estimate, Makeup, Part
from evalcore.groups import Group, GroupMetric, Leaf, report_groups
from evalcore.stats import Array, Floats, Inference, build_column

KEY = MetricKey("acc")


def leaf(name, values, aggregation="mean"):
    one = build_column(range(len(values)), Floats(Array(np.asarray(values, np.float64))))
    closed = aggregate_metric(AGGREGATIONS[aggregation], one)
    return Leaf(name, TaskReport(name=name, estimates=((KEY, closed),), columns=((KEY, one),), n_docs=len(one)))


def of(leaves, inference=None, **rule):
    tree = Group("g", tuple(leaves), (GroupMetric("acc", **rule),))
    return report_groups(tree, inference=inference or Inference())[-1].get(KEY)


def tasks(seed, sizes, aggregation="mean"):
    rng = np.random.default_rng(seed)
    sign = 1 if aggregation == "mean" else -3
    return [leaf(f"t{k}", sign * rng.random(n) ** rng.uniform(0.3, 3), aggregation) for k, n in enumerate(sizes)]


@pytest.mark.parametrize("seed", range(5))
def test_equal_weights_are_the_standard_error_of_the_task_values(seed):
    """scipy's sem and t interval of the values; the t interval on an unbounded score is the interval itself."""
    stats = pytest.importorskip("scipy.stats")
    leaves = tasks(seed, (5, 9, 30, 14))
    values = [one.value.get(KEY).value for one in leaves]
    made = of(leaves, weight_by_size=False)
    assert made.group.across.tasks == 4
    assert made.group.across.stderr == pytest.approx(stats.sem(values), rel=1e-12)
    assert made.stderr != pytest.approx(made.group.across.stderr)
    low, high = made.group.across.ci
    assert 0 <= low < made.value < high <= 1


def test_perplexities_are_sampled_on_the_log_scale():
    """exp of scipy's t interval of the logs."""
    stats = pytest.importorskip("scipy.stats")
    leaves = tasks(1, (20, 30, 40, 50, 60), "perplexity")
    logs = [log(one.value.get(KEY).value) for one in leaves]
    made = of(leaves, Inference(confidence=0.9), weight_by_size=False)
    expected = stats.t.interval(0.9, 4, np.mean(logs), stats.sem(logs))
    assert made.group.across.ci == pytest.approx([exp(end) for end in expected], rel=1e-9)
    assert made.group.across.stderr == pytest.approx(made.value * stats.sem(logs), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_unequal_weights_are_unbiased_with_matching_degrees(seed):
    """By the matrices themselves: E[x'Ax] and Var[x'Ax] for independent normal x."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(6))
    values = rng.random(6)
    centre = np.eye(6) - np.outer(np.ones(6), weights)
    form = centre.T @ np.diag(weights**2) @ centre
    factor = (weights @ weights) / np.trace(form)
    error, df = sample_of_tasks(weights.tolist(), values.tolist())
    assert error == pytest.approx(sqrt(values @ form @ values * factor), rel=1e-12)
    assert df == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form), rel=1e-9)


def test_weights_are_those_of_the_number():
    """By size, given, and with a task reached by two paths."""
    leaves = tasks(2, (4, 12, 40))
    values = [one.value.get(KEY).value for one in leaves]
    for made, weights in (
        (of(leaves), np.array([4, 12, 40]) / 56),
        (of(leaves, weights=freeze_options(t0=3, t1=2, t2=1)), np.array([3, 2, 1]) / 6),
        (
            of([Group("h", tuple(leaves[:2])), *leaves], average="children", weight_by_size=False),
            np.array([3, 3, 2]) / 8,
        ),
        (of(leaves, aggregation="pool"), np.array([4, 12, 40]) / 56),
    ):
        assert made.group.across.stderr == pytest.approx(sample_of_tasks(weights.tolist(), values)[0], rel=1e-10)


def test_none_where_there_is_no_sample():
    """One task, one that counts, or a number that is no mean of tasks."""
    leaves = tasks(3, (5, 6))
    assert of(leaves[:1]).group.across is None
    assert of([Group("h", tuple(leaves[:1])), leaves[0]], average="children").group.across is None
    assert of(leaves, weights=freeze_options(t0=1, t1=0)).group.across is None
    assert of(leaves, aggregation=lambda values, sizes: min(values)).group.across is None


def test_tasks_that_agree_are_no_certainty():
    """All tasks at 100 %: Wilson's interval of so many tasks, never a point."""
    made = of([leaf(name, [1.0, 1.0]) for name in "abcd"], weight_by_size=False)
    assert made.group.across.stderr == 0
    assert made.group.across.ci[0] < 0.5
    assert made.group.across.ci[1] == 1.0


def covered(k, p, c, equal, runs=400):
    """How often Wilson's form holds the mean of all tasks, and how often Student's interval does."""
    quantile = pytest.importorskip("scipy.stats").t.ppf
    rng = np.random.default_rng([k, int(100 * p)])
    weights = (np.ones(k) if equal else np.arange(1.0, k + 1)) / (k if equal else k * (k + 1) / 2)
    scores = rng.binomial(100, rng.beta(p * c, (1 - p) * c, (runs, k))) / 100
    parts = tuple(Part(f"t{i}", weight) for i, weight in enumerate(weights.tolist()))
    ours = student = 0
    for values in scores.tolist():
        made = Estimate(value=float(weights @ values), group=Makeup(parts=parts))
        low, high = across_tasks(made, {part.name: value for part, value in zip(parts, values, strict=True)}).ci
        ours += low <= p <= high
        error, df = sample_of_tasks(weights.tolist(), values)
        student += abs(made.value - p) <= quantile(0.975, df) * error
    return ours / runs, student / runs


@pytest.mark.slow
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("p", "c"), [(0.5, 4), (0.7, 10), (0.9, 10), (0.97, 20)])
@pytest.mark.parametrize("k", [2, 3, 5, 10, 20])
def test_coverage_over_random_tasks(k, p, c, equal):
    """Task scores from a beta, 100 documents each: at least 90 % in every cell."""
    assert covered(k, p, c, equal)[0] >= 0.9


def test_students_interval_misses_near_a_bound():
    """Why it is not used between bounds."""
    assert covered(3, 0.97, 20, True)[1] < 0.89
