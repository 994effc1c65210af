"""Question variance and sampling variance: the part of an error that comes from drawing answers is what it says."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from math import comb, sqrt
from pathlib import Path

import numpy as np
import pytest

from evalcore import (
    GENERATE_UNTIL,
    Answer,
    Generate,
    Instance,
    MetricSpec,
    Sample,
    Task,
    build_report,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.row import Floats
from evalcore.core.repeats.reduce import measure_noise
from evalcore.lm_eval import lm_eval_results
from evalcore.stats import Inference

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cruxeval_codellama7b" / "data.jsonl.gz"
SMOOTH = ("mean", "first", "pass@1", "pass@2", "pass^2")


def noise(name, scores):
    """Variance and replies of each row of (questions × replies)."""
    found = measure_noise(name, [build_column(range(len(scores)), Floats(Array(one))) for one in scores.T.copy()])
    return found.rows.values.floats.T


def task(*reducers, name="t"):
    return Task(name, GENERATE_UNTIL, (MetricSpec("exact_match", reducers=reducers),))


def asked(texts, name="t", clusters=None):
    """Samples whose right answer is 1, and the replies to them."""
    samples = [Sample(i, gold="1", cluster=None if clusters is None else clusters[i]) for i in range(len(texts))]
    replies = [Answer(Instance(name, i, 0, Generate(""), len(one)), tuple(one)) for i, one in enumerate(texts)]
    return samples, replies


def drawn(shape, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.random(shape) < generator.beta(0.5, 0.5, shape[0])[:, None]).astype(float)


def estimates(scores, *reducers, clusters=None, inference=None):
    texts = [[str(int(one)) for one in row] for row in scores]
    samples, replies = asked(texts, clusters=clusters)
    report = report_task(score_task(task(*reducers), samples, replies), inference=inference or Inference())
    return [estimate for _, estimate in report.estimates]


@pytest.mark.parametrize(
    ("name", "replies"),
    [
        ("mean", 2),
        ("mean", 9),
        ("pass@1", 2),
        ("pass@2", 4),
        ("pass@2", 9),
        ("pass@3", 6),
        ("pass^1", 4),
        ("pass^3", 9),
    ],
)
@pytest.mark.parametrize("p", [0.05, 0.4, 0.9])
def test_the_noise_of_a_question_is_unbiased(name, replies, p):
    """Summed over every number of right replies, it is the variance of the reduced score."""
    k = 1 if name == "mean" else int(name[5:])
    counts = np.arange(replies + 1)
    scores = (np.arange(replies)[None, :] < counts[:, None]).astype(float)
    chance = np.array([comb(replies, c) * p**c * (1 - p) ** (replies - c) for c in counts])
    fails = np.array([1 - comb(replies - int(c), k) / comb(replies, k) for c in counts])
    passes = np.array([comb(int(c), k) / comb(replies, k) for c in counts])
    reduced = {"mean": counts / replies, "pass@": fails, "pass^": passes}[name[:5]]
    true = chance @ reduced**2 - (chance @ reduced) ** 2
    assert chance @ noise(name, scores)[0] == pytest.approx(true, rel=1e-10, abs=1e-14)


def test_the_first_of_several_replies_is_as_noisy_as_one():
    scores = drawn((50, 4))
    variance, used = noise("first", scores)
    assert variance.tolist() == pytest.approx(scores.var(axis=1, ddof=1).tolist())
    assert set(used.tolist()) == {1.0}


@pytest.mark.parametrize(
    "name", ["median", "min", "max", "mode", "variance", "consensus", "consistency", "at_least(2)", "pass@4", "pass^5"]
)
def test_no_noise_is_better_than_a_wrong_one(name):
    """Reducers that jump with one reply, and pass@k of fewer than 2k: the replies are counted, the noise is not told."""
    [found] = estimates(drawn((40, 7)), name)
    assert found.spread.noise is None
    assert found.spread.repeats == 7
    assert found.stderr > 0


def test_one_reply_says_nothing_about_sampling():
    [found] = estimates(drawn((40, 1)), "mean")
    assert (found.spread.noise, found.spread.repeats) == (None, None)


@pytest.mark.parametrize("clusters", [None, [i // 3 for i in range(120)]])
def test_the_parts_of_an_error_are_those_of_the_model_that_made_it(clusters):
    """θ ~ Beta: Var = Var(θ)/n + E[θ(1−θ)]/(nK), whether or not documents come in clusters."""
    n, k, made = 120, 3, []
    for seed in range(60):
        [found] = estimates(drawn((n, k), seed), "mean", clusters=clusters)
        made.append((found.spread.noise, found.stderr**2))
    within, total = np.mean(made, axis=0)
    assert within == pytest.approx(0.125 / (n * k), rel=0.05)
    assert total - within == pytest.approx(0.125 / n, rel=0.12)


def test_noise_and_stderr_of_a_plain_mean_by_hand():
    scores = drawn((80, 5))
    [found] = estimates(scores, "mean")
    assert found.spread.noise == pytest.approx((scores.var(axis=1, ddof=1) / 5).sum() / 80**2)
    assert found.spread.repeats == 5
    assert found.stderr == pytest.approx(scores.mean(axis=1).std(ddof=1) / sqrt(80))


def ragged(n=60, seed=3):
    """Between one and four replies to each question, two thirds of them with more than one."""
    generator = np.random.default_rng(seed)
    return [[str(int(one)) for one in generator.random(int(generator.integers(1, 5))) < 0.5] for _ in range(n)]


def test_questions_of_one_reply_vary_like_the_others():
    texts = ragged()
    counts = np.array([len(one) for one in texts])
    [(_, found)] = report_task(score_task(task("mean"), *asked(texts))).estimates
    spread = np.array([np.var(list(map(int, one)), ddof=1) if len(one) > 1 else np.nan for one in texts])
    filled = np.where(counts > 1, spread, np.nanmean(spread)) / counts
    assert found.spread.repeats == pytest.approx(len(counts) / (1 / counts).sum())
    assert found.spread.noise == pytest.approx(filled.sum() / 60**2)


def test_pass_at_2_of_three_replies_is_filled_in_by_the_replies_there_are():
    """Of four replies it is known, of three it is taken to be a third more."""
    texts = [["1", "0", "0", "1"]] * 6 + [["1", "0", "0"]] * 4
    [(_, found)] = report_task(score_task(task("pass@2"), *asked(texts))).estimates
    known = noise("pass@2", np.array([[1.0, 0.0, 0.0, 1.0]]))[0][0]
    assert known == pytest.approx((1 / 6) ** 2)
    assert found.spread.noise == pytest.approx((6 * known + 4 * known * 4 / 3) / 100)


def test_where_most_questions_have_one_reply_nothing_is_known():
    texts = [["1", "0"]] * 4 + [["1"]] * 6
    [(_, found)] = report_task(score_task(task("mean"), *asked(texts))).estimates
    assert found.spread.noise is None
    assert found.spread.repeats == pytest.approx(10 / 8)


@pytest.mark.parametrize("reducers", [SMOOTH, ("mean",)])
@pytest.mark.parametrize("parts", [2, 7, 60])
def test_the_bits_do_not_depend_on_how_documents_are_split(reducers, parts):
    samples, replies = asked(ragged())
    whole = score_task(task(*reducers), samples, replies)
    order = np.random.default_rng(parts).permutation(60)
    pieces = [order[at::parts] for at in range(parts)]
    made = [score_task(task(*reducers), [samples[i] for i in p], [replies[i] for i in p]) for p in pieces]
    assert merge_scored(made) == whole
    assert report_task(merge_scored(made)).estimates == report_task(whole).estimates
    assert report_task(whole).estimates[0][1].spread.noise > 0


def test_documents_that_count_as_zero_add_no_noise():
    texts = [["1", "0"], ["1", "1"], ["0", "0"], ["1", "0"]]
    samples, replies = asked(texts)
    scored = score_task(task("mean"), [*samples, Sample(4, gold=None)], [*replies, asked([["1", "1"]] * 5)[1][4]])
    [(_, apart)] = report_task(scored).estimates
    assert apart.counts.unscorable == 1
    [(_, zero)] = report_task(scored, inference=Inference(on_unscorable="zero")).estimates
    assert apart.spread.noise == pytest.approx((0.25 + 0.25) / 4**2)
    assert zero.spread.noise == pytest.approx((0.25 + 0.25) / 5**2)


def test_a_group_adds_up_the_noise_of_its_tasks():
    reports = []
    for name, (n, k) in (("a", (40, 2)), ("b", (90, 4))):
        samples, replies = asked([[str(int(x)) for x in row] for row in drawn((n, k))], name=name)
        reports.append(report_task(score_task(task("mean", name=name), samples, replies)))
    tree = Group("g", (Leaf("a", None), Leaf("b", None)), (GroupMetric("exact_match", weight_by_size=False),))
    done = build_report(reports, [tree])
    a, b = (one.estimates[0][1] for one in reports)
    [(_, both)] = done.group("g").estimates
    assert both.spread.noise == pytest.approx((a.spread.noise + b.spread.noise) / 4)
    assert both.spread.noise * both.spread.repeats == pytest.approx((a.spread.noise * 2 + b.spread.noise * 4) / 4)


def test_results_tell_the_parts_where_they_exist():
    scores = drawn((30, 4))
    samples, replies = asked([[str(int(one)) for one in row] for row in scores], clusters=[i % 10 for i in range(30)])
    report = build_report([report_task(score_task(task("mean", "max"), samples, replies))])
    told = lm_eval_results(report)["evalcore"]["estimates"]["t"]
    mean, highest = told["exact_match@mean,none"], told["exact_match@max,none"]
    assert mean["clusters"] == 10
    assert mean["repeats"] == highest["repeats"] == 4
    assert mean["question_stderr"] ** 2 + mean["sampling_stderr"] ** 2 == pytest.approx(mean["stderr"] ** 2)
    assert {"question_stderr", "sampling_stderr", "tasks_as_sample"}.isdisjoint(highest)
    samples, replies = asked([["1"], ["0"]])
    plain = lm_eval_results(build_report([report_task(score_task(task(), samples, replies))]))
    assert {"repeats", "question_stderr", "clusters"}.isdisjoint(
        plain["evalcore"]["estimates"]["t"]["exact_match,none"]
    )


# --- ten replies of a real model to each of 800 problems -------------------------------------------------------------


@pytest.fixture(scope="module", params=["input", "output"])
def labels(request):
    if not DATA.exists():
        pytest.skip(f"no recorded data set: expected {DATA}")
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["mode"] == request.param]
    # the file does not keep the order in which replies were drawn: alike ones stand together
    return np.random.default_rng(7).permuted(np.array([row["correct"] for row in rows], float), axis=1)


def test_two_of_ten_replies_vary_as_two_replies_predict(labels):
    """Drawn without replacement, two of ten vary by 1 − 2/10 of what two of endlessly many do."""
    generator = np.random.default_rng(0)
    values, within = [], []
    for _ in range(700):
        chosen = generator.permuted(labels, axis=1)
        values.append(chosen[:, :2].mean())
        within.append(noise("mean", chosen[:, :2])[0].sum() / len(labels) ** 2)
    assert np.var(values, ddof=1) == pytest.approx(0.8 * np.mean(within), rel=0.16)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "replies"), [("mean", 4), ("pass@2", 4), ("pass^2", 5), ("first", 3)])
def test_replies_drawn_from_ten_vary_as_predicted(labels, name, replies):
    generator = np.random.default_rng(1)
    n = len(labels)
    values, within = [], []
    for _ in range(700):
        chosen = labels[np.arange(n)[:, None], generator.integers(0, 10, (n, replies))]
        right = chosen.sum(axis=1)
        values.append(
            {
                "mean": right / replies,
                "first": chosen[:, 0],
                "pass@2": 1 - (replies - right) * (replies - right - 1) / (replies * (replies - 1)),
                "pass^2": right * (right - 1) / (replies * (replies - 1)),
            }[name].mean()
        )
        within.append(noise(name, chosen)[0].sum() / n**2)
    assert np.var(values, ddof=1) == pytest.approx(np.mean(within), rel=0.16)


def test_more_replies_leave_the_question_variance(labels):
    """From K to K the sampling part shrinks as 1/K; what is left is the same."""
    parts = []
    for replies in (2, 5, 10):
        within = noise("mean", labels[:, :replies])[0].mean()
        parts.append((labels[:, :replies].mean(axis=1).var(ddof=1) - within, within * replies))
    for (question, reply), (other, one) in pairwise(parts):
        assert question == pytest.approx(other, rel=0.08)
        assert reply == pytest.approx(one, rel=0.12)
