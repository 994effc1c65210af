"""Documents and repeats that a difference or an interval takes: against statsmodels, scipy and simulation."""

from __future__ import annotations

from functools import cache
from math import ceil, inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats
from statsmodels.stats.power import TTestPower

from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.compare.power import Known, PowerGoal, pair_known, plan_next
from evalcore.core.records.errors import EvalError
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.pair_tests import paired_binary
from evalcore.core.stats.sample_size import (
    Variances,
    distance_at,
    questions_for,
    reach_of_interval,
    reach_of_test,
    repeats_for,
    variances_of_difference,
)
from evalcore.shell.logs.runs.result_errors import list_known

KEY = MetricKey("acc")


@pytest.mark.parametrize("effect", [0.02, 0.1, 0.3, 0.8, 1.5])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.01, 0.9), (0.1, 0.7)])
def test_questions_for_a_difference_are_those_of_statsmodels(effect, alpha, power):
    found = questions_for(effect * 0.5, Variances(0.25), reach=reach_of_test(alpha, power))
    theirs = TTestPower().solve_power(effect_size=effect, alpha=alpha, power=power, alternative="two-sided")
    assert abs(found - ceil(float(np.squeeze(theirs)))) <= 1 + found * 2e-4  # they count the wrong tail too


@pytest.mark.parametrize("n", [5, 12, 30, 200, 5000])
@pytest.mark.parametrize("power", [0.7, 0.8, 0.95])
def test_a_detectable_difference_is_that_of_statsmodels(n, power):
    found = distance_at(n, Variances(0.25), reach=reach_of_test(0.05, power)) / 0.5
    reached = TTestPower().power(found, n, 0.05, alternative="two-sided")
    assert reached == pytest.approx(power, abs=0.02 if n < 12 else 0.005)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("n", [2, 10, 1000])
def test_a_half_width_is_half_of_students_interval(n, confidence):
    scores = np.random.default_rng(n).normal(size=n)
    low, high = stats.t.interval(confidence, n - 1, scores.mean(), stats.sem(scores))
    found = distance_at(n, Variances(float(scores.var(ddof=1))), reach=reach_of_interval(confidence))
    assert found == pytest.approx((high - low) / 2, rel=1e-9)


def test_the_formula_of_two_models_with_repeats():
    """n = (z + z)² (ω² + σ_A²/K_A + σ_B²/K_B) / δ², but for what a t test takes over a normal one."""
    w2, a, b, delta = 0.12, 0.1, 0.06, 0.02
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    plain = z**2 * (w2 + a / 4 + b / 4) / delta**2
    assert 0 <= questions_for(delta, Variances(w2, a + b), 4, reach_of_test()) - plain < 3.5


variances = st.builds(Variances, st.floats(0, 5), st.floats(0, 5)).filter(lambda one: one.question + one.reply > 1e-9)
goals = st.sampled_from([reach_of_interval(), reach_of_test(), reach_of_test(0.01, 0.95)])


@given(st.floats(0.003, 3), variances, st.integers(1, 50), goals)
def test_questions_are_enough_and_none_too_many(distance, spread, repeats, reach):
    n = questions_for(distance, spread, repeats, reach)
    assert distance_at(n, spread, repeats, reach) <= distance * (1 + 1e-9)
    assert n == 2 or distance_at(n - 1, spread, repeats, reach) > distance * (1 - 1e-9)


@given(st.floats(0.003, 3), st.integers(2, 10**5), variances, goals)
def test_repeats_are_enough_and_none_too_many(distance, n, spread, reach):
    found = repeats_for(distance, n, spread, reach)
    if found is None:
        assert distance_at(n, Variances(spread.question), 1, reach) > distance * (1 - 1e-6)
    else:
        assert distance_at(n, spread, found, reach) <= distance * (1 + 1e-9)
        assert found == 1 or distance_at(n, spread, found - 1, reach) > distance * (1 - 1e-9)


@pytest.mark.parametrize("distance", [0, -1.0, inf, float("nan")])
def test_a_distance_that_nothing_reaches_is_refused(distance):
    with pytest.raises(EvalError, match="above 0"):
        questions_for(distance, Variances(0.25))
    with pytest.raises(EvalError, match="above 0"):
        repeats_for(distance, 10, Variances(0.25))


def test_what_makes_no_sense_is_refused():
    for wrong in (
        lambda: distance_at(1, Variances(0.25)),
        lambda: distance_at(9, Variances(0.25), 0),
        lambda: Variances(-0.1),
        lambda: reach_of_interval(1.0),
        lambda: reach_of_test(0.05, 0.0),
        lambda: variances_of_difference(Variances(0.25), 1.5),
        lambda: PowerGoal(repeats=(0,)),
    ):
        with pytest.raises(EvalError, match="expected"):
            wrong()


def test_a_very_small_distance_ends():
    assert questions_for(1e-12, Variances(0.25)) == pytest.approx(1.96**2 * 0.25e24, rel=1e-3)
    for wrong in (
        lambda: questions_for(1e-200, Variances(0.25)),
        lambda: questions_for(5e-324, Variances(1e200)),
    ):
        with pytest.raises(EvalError, match="expected a distance"):
            wrong()
    assert repeats_for(1e-160, 400, Variances(0.0, 0.25)) is None


# --- the promise is kept ---------------------------------------------------------------------------------------------


def two_models(size, generator):
    """The chance that each of two models is right on each question: alike, the second worse by about 0.03 to 0.05."""
    hard = generator.normal(0.3, 1.5, size)
    a, b = (1 / (1 + np.exp(-(hard + shift + generator.normal(0, 0.5, size)))) for shift in (0.3, 0.0))
    return a, b


@pytest.mark.parametrize("repeats", [1, 2, 6])
def test_the_power_that_is_promised_is_reached_with_0_1_scores_and_repeats(repeats):
    generator = np.random.default_rng(repeats)
    a, b = two_models(400_000, generator)
    delta = float((a - b).mean())
    spread = Variances(float((a - b).var()), float((a * (1 - a) + b * (1 - b)).mean()))
    n = questions_for(delta, spread, repeats, reach_of_test())
    found = 0
    for _ in range(20):
        a, b = two_models((50, n), generator)
        scores = (generator.binomial(repeats, a) - generator.binomial(repeats, b)) / repeats
        found += int(np.sum(stats.ttest_1samp(scores, 0, axis=1).pvalue < 0.05))
    assert found / 1000 == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("repeats", [1, 4])
def test_the_half_width_that_is_promised_is_reached(repeats):
    generator = np.random.default_rng(repeats)
    theta = generator.beta(0.5, 0.5, (300, questions_for(0.05, Variances(0.125, 0.125), repeats)))
    scores = generator.binomial(repeats, theta) / repeats
    width = stats.sem(scores, axis=1) * stats.t.ppf(0.975, scores.shape[1] - 1)
    assert width.mean() == pytest.approx(0.05, rel=0.01)


# --- near the ceiling ------------------------------------------------------------------------------------------------


@cache
def most_wins(pairs, alpha=0.05):
    """The most wins among so many discordant pairs with which McNemar's mid-p test still finds that the run is worse."""
    wins = np.arange(pairs // 2 + 1)
    p_values = stats.binom.cdf(wins, pairs, 0.5) + stats.binom.cdf(wins - 1, pairs, 0.5)
    found = np.flatnonzero((p_values <= alpha) & (2 * wins < pairs))
    return int(found[-1]) if len(found) else -1


def exact_power(n, wins, losses, alpha=0.05):
    """How often the test finds the loss, summed over all outcomes of n documents."""
    low, high = stats.binom.ppf([1e-9, 1 - 1e-9], n, wins + losses).astype(int)
    pairs = np.arange(low, high + 1)
    found = stats.binom.cdf([most_wins(int(one), alpha) for one in pairs], pairs, wins / (wins + losses))
    return float(stats.binom.pmf(pairs, n, wins + losses) @ found)


def test_the_test_whose_power_is_summed_is_the_one_that_compare_uses():
    for pairs in (4, 5, 6, 9, 17, 40):
        wins = most_wins(pairs)
        for right, finds in ((wins, True), (wins + 1, False)):
            a = np.array([1.0] * max(right, 0) + [0.0] * (pairs - max(right, 0)) + [1.0])
            tested = paired_binary(a, np.append(1 - a[:-1], 1.0))
            assert right < 0 or (tested.p_value <= 0.05 and tested.difference < 0) is finds


@pytest.mark.parametrize("correlation", [0.2, 0.4, 0.7, 0.9])
@pytest.mark.parametrize("p", [0.7, 0.9, 0.95, 0.97, 0.98, 0.99])
@pytest.mark.parametrize("drop", [0.02, 0.03, 0.05])
def test_a_drop_near_the_ceiling_is_found_as_often_as_promised(p, drop, correlation):
    """A run of right and wrong answers plans the documents; the worse model varies more. Without that: 0 to 78 %."""
    row = {"acc,none": p, "acc_stderr,none": sqrt(p * (1 - p) / 999), "sample_len": 1000}
    (seen,) = list_known({"results": {"t": row}})
    assert seen.coarseness == pytest.approx(1)
    plan = plan_next(seen, PowerGoal(difference=drop, correlation=correlation))
    worse = p - drop
    both = min(worse, p * worse + correlation * sqrt(p * (1 - p) * worse * (1 - worse)))
    n = dict(plan.documents)[None]
    assert 0.79 <= exact_power(n, worse - both, p - both) < 0.93
    again = replace(seen, n=n, units=n, stderr=sqrt(p * (1 - p) / (n - 1)))
    assert plan_next(again, PowerGoal(correlation=correlation)).finds == pytest.approx(drop, rel=0.01)


@pytest.mark.parametrize("churn", [0.002, 0.01, 0.05])
@pytest.mark.parametrize("drop", [0.01, 0.02, 0.05])
def test_two_runs_that_hardly_differ_plan_for_documents_that_will(churn, drop):
    """Two equal runs that disagree on a share of the documents; a drop adds documents to these."""
    value = 0.97
    one = Known(name="t", key=KEY, n=1000, units=1000, stderr=0.0054, share=True, value=value, coarseness=1.0)
    line = ComparisonLine(name="t", key=KEY, n=1000, a=value, b=value, difference=0.0, stderr=sqrt(churn / 1000))
    n = dict(plan_next(pair_known(line, one, one), PowerGoal(difference=drop)).documents)[None]
    assert 0.79 <= exact_power(n, churn / 2, churn / 2 + drop) < 0.93


def test_scores_that_shift_without_jumping_are_planned_as_they_vary():
    """Real-valued scores that vary little: a drop of all of them adds no variance, and hardly any is planned."""
    row = {"f1,none": 0.9, "f1_stderr,none": 0.03 / sqrt(100), "sample_len": 100}
    (seen,) = list_known({"results": {"t": row}})
    assert seen.coarseness == pytest.approx(0.03**2 / 0.09, rel=0.02)
    plan = plan_next(seen, PowerGoal(difference=0.02))
    flat = questions_for(0.02, variances_of_difference(Variances(0.03**2), 0.4), 1, reach_of_test())
    assert flat <= dict(plan.documents)[None] <= 1.25 * flat


# --- plans -----------------------------------------------------------------------------------------------------------


def known(**changed):
    return Known(**{"name": "t", "key": KEY, "n": 400, "units": 400, "stderr": 0.025} | changed)


def test_a_plan_of_one_run_is_for_a_model_that_varies_alike():
    """Where replies are not told apart, 2(1 − R) times the variance; replies themselves never cancel."""
    seen = plan_next(known(), PowerGoal(difference=0.02, correlation=0.75))
    spread = Variances(400 * 0.025**2 * 0.5)
    assert seen.finds == pytest.approx(distance_at(400, spread, 1, reach_of_test()))
    assert seen.documents == ((None, questions_for(0.02, spread, 1, reach_of_test())),)
    assert (seen.best, seen.more_repeats) == (None, None)
    split = plan_next(known(sampling=0.015, repeats=4.0), PowerGoal(difference=0.02, correlation=0.75, repeats=(1, 4)))
    both = Variances(0.5 * 400 * (0.025**2 - 0.015**2), 2 * 400 * 0.015**2 * 4)
    assert dict(split.documents) == {
        None: questions_for(0.02, both, 4, reach_of_test()),
        1: questions_for(0.02, both, 1, reach_of_test()),
        4: questions_for(0.02, both, 4, reach_of_test()),
    }
    assert split.best == pytest.approx(distance_at(400, Variances(both.question), 1, reach_of_test()))


def test_a_plan_reproduces_the_run_it_comes_from():
    """The half-width now is t · stderr, and the documents for it are those there are."""
    one = known(sampling=0.015, repeats=3.0)
    width = stats.t.ppf(0.975, 399) * 0.025
    seen = plan_next(one, PowerGoal(half_width=width))
    assert seen.half_width == pytest.approx(width)
    assert dict(seen.documents)[None] == 400
    assert seen.more_repeats == 3


def test_clusters_are_planned_whole():
    """Forty clusters of ten: t with 39 degrees of freedom, and documents by the ten."""
    one = known(units=40)
    seen = plan_next(one, PowerGoal(half_width=0.03))
    assert seen.half_width == pytest.approx(stats.t.ppf(0.975, 39) * 0.025)
    assert dict(seen.documents)[None] % 10 == 0
    alone = plan_next(known(), PowerGoal(half_width=0.03))
    assert dict(alone.documents)[None] <= dict(seen.documents)[None] <= dict(alone.documents)[None] + 40


@pytest.mark.parametrize("changed", [{"stderr": None}, {"stderr": 0.0}, {"n": 1, "units": 1}, {"n": 0, "units": 0}])
def test_without_a_spread_there_is_no_plan(changed):
    seen = plan_next(known(**changed), PowerGoal(difference=0.1))
    assert (seen.half_width, seen.finds, seen.documents) == (None, None, ())


def test_noise_that_chance_made_larger_than_the_error_leaves_no_question_variance():
    seen = plan_next(known(sampling=0.03, repeats=2.0), PowerGoal(half_width=0.01))
    assert seen.best == 0
    assert seen.half_width == pytest.approx(stats.t.ppf(0.975, 399) * 0.025)


def test_fewer_replies_than_pass_at_k_has_are_not_planned():
    seen = plan_next(known(sampling=0.015, repeats=4.0, fewest=4.0), PowerGoal(half_width=0.03, repeats=(2, 4, 8)))
    assert [k for k, count in seen.documents if count is None] == [2]


def test_two_runs_give_the_variance_of_their_difference():
    line = ComparisonLine(name="t", key=KEY, n=400, stderr=0.03)
    a, b = known(sampling=0.015, repeats=4.0), known(sampling=0.01, repeats=4.0)
    pair = pair_known(line, a, b)
    assert pair.variances.question == pytest.approx(400 * (0.03**2 - 0.015**2 - 0.01**2))
    assert pair.variances.reply == pytest.approx(400 * 4 * (0.015**2 + 0.01**2))
    assert plan_next(pair, PowerGoal(correlation=0.9)).finds == pytest.approx(
        distance_at(400, Variances(400 * 0.03**2), 1, reach_of_test())
    )
    assert pair_known(line, a, known()).sampling is None
    half = pair_known(ComparisonLine(name="t", key=KEY, n=200, stderr=0.05), a, b)
    assert half.sampling == pytest.approx(sqrt(2 * (0.015**2 + 0.01**2)))


def test_two_runs_with_clusters_are_planned_by_their_clusters():
    """Forty clusters of ten documents: 39 degrees of freedom, and documents by the ten."""
    line = ComparisonLine(name="t", key=KEY, n=400, clusters=40, stderr=0.03)
    pair = pair_known(line, known(), known())
    assert (pair.n, pair.units) == (400, 40)
    seen = plan_next(pair, PowerGoal(half_width=0.05))
    assert seen.half_width == pytest.approx(stats.t.ppf(0.975, 39) * 0.03)
    assert seen.finds == pytest.approx((stats.t.ppf(0.975, 39) + stats.t.ppf(0.8, 39)) * 0.03)
    assert dict(seen.documents)[None] % 10 == 0
