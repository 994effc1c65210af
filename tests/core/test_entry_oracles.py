"""Table entries that no peer has, against brute force, numpy, scikit-learn and scipy."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import (
    AGGREGATIONS,
    FILTERS,
    METRICS,
    REDUCERS,
    EvalError,
    Likelihood,
    MetricKey,
    Sample,
    TaskReport,
    aggregate_metric,
    freeze_options,
    reduce_repeats,
)
from evalcore.core.aggregate.inference import Inference
from evalcore.core.answers.batch import Batch, make_batch
from evalcore.core.answers.choice import MCBatch, make_choices, mc_batch
from evalcore.core.answers.likelihood import ll_batch, rolling_batch
from evalcore.core.answers.text import make_texts
from evalcore.core.filters.reply import nested, replies
from evalcore.core.metrics.metric import Marks
from evalcore.core.records.row import Rows
from evalcore.core.repeats.reducers import reducer
from evalcore.extensions import Repeats, from_callable
from evalcore.groups import Group, GroupMetric, Leaf, report_groups
from evalcore.stats import Array, Floats, Labels, Objects, Resampling, build_column, list_outcomes

FEW = settings(max_examples=60, deadline=None)
SEEDS = pytest.mark.parametrize("seed", range(5))


def rows_of(metric: str, output_type: str, batch: object) -> Rows:
    found = METRICS[output_type][metric].score(batch, freeze_options())
    return found.rows if isinstance(found, Marks) else found


def scores(metric: str, batch: MCBatch) -> list[float]:
    found = rows_of(metric, "multiple_choice", batch)
    assert isinstance(found, Floats)
    return found.values.floats.tolist()


def quiz(seed: int, *, golds: int = 1) -> tuple[list[list[Likelihood]], list[tuple[int, ...]]]:
    """Documents with two to five choices each; likelihoods are rounded, so that there are ties."""
    rng = np.random.default_rng(seed)
    asked, right = [], []
    for _ in range(80):
        n = int(rng.integers(2, 6))
        lls = np.round(-rng.gamma(2, 1, n), 1)
        asked.append([Likelihood(float(ll), False, int(rng.integers(1, 5))) for ll in lls])
        right.append(tuple(rng.permutation(n)[:golds].tolist()))
    return asked, right


def chances(document: Sequence[Likelihood]) -> list[float]:
    raised = [float(np.exp(one.value)) for one in document]
    return [one / fsum(raised) for one in raised]


def likeliest(values: Sequence[float]) -> int:
    return next(i for i, value in enumerate(values) if value == max(values))


# --- choices --------------------------------------------------------------------------------------------------


@SEEDS
def test_acc_token_by_definition(seed):
    asked, right = quiz(seed, golds=1 + seed % 2)
    expected = [float(likeliest([o.value / o.tokens for o in one]) in g) for one, g in zip(asked, right, strict=True)]
    assert scores("acc_token", make_choices(asked, right)) == expected


@SEEDS
def test_choice_prob_and_likelihood_by_definition(seed):
    asked, right = quiz(seed, golds=1 + seed % 2)
    batch = make_choices(asked, right)
    pairs = list(zip(asked, right, strict=True))
    assert scores("choice_prob", batch) == pytest.approx([fsum(chances(one)[i] for i in g) for one, g in pairs])
    assert scores("likelihood", batch) == [max(one[i].value for i in g) for one, g in pairs]


@pytest.mark.parametrize("bins", [1, 5, 10, 15])
@SEEDS
def test_ece_by_its_bins(bins, seed):
    """Guo et al. 2017: the gap between accuracy and mean confidence of each bin, weighted by its share."""
    asked, right = quiz(seed)
    confidence = np.array([max(chances(one)) for one in asked])
    hit = np.array([float(likeliest(one) in g) for one, g in zip(asked, right, strict=True)])
    expected = 0.0
    for low in range(bins):
        inside = (confidence >= low / bins) & ((confidence < (low + 1) / bins) | (low == bins - 1))
        if inside.any():
            expected += inside.mean() * abs(hit[inside].mean() - confidence[inside].mean())
    rows = rows_of("ece", "multiple_choice", make_choices(asked, right))
    found = aggregate_metric(
        AGGREGATIONS["ece"], build_column(range(len(asked)), rows), options=freeze_options(bins=bins)
    )
    assert found.value == pytest.approx(expected, rel=1e-12)


@SEEDS
def test_ece_is_scikit_learns_calibration_curve(seed):
    """The same gaps from scikit-learn's reliability diagram (it drops empty bins, so their sizes are counted apart)."""
    curve = pytest.importorskip("sklearn.calibration").calibration_curve
    rng = np.random.default_rng(seed)
    confidence, hit = rng.random(300), rng.integers(0, 2, 300)
    accuracy, mean = curve(hit, confidence, n_bins=10)
    sizes = np.histogram(confidence, bins=10, range=(0, 1))[0]
    expected = float(np.sum(np.abs(accuracy - mean) * sizes[sizes > 0]) / 300)
    rows = Objects(tuple(zip(confidence.tolist(), hit.tolist(), strict=True)))
    assert aggregate_metric(AGGREGATIONS["ece"], build_column(range(300), rows)).value == pytest.approx(
        expected, rel=1e-12
    )


def test_ece_needs_a_bin():
    rows = build_column([0], Objects(((0.9, 1),)))
    for bins in (0, -3):
        with pytest.raises(EvalError, match=f"expected bins to be an integer of at least 1, got {bins}"):
            aggregate_metric(AGGREGATIONS["ece"], rows, options=freeze_options(bins=bins))


@pytest.mark.parametrize("output_type", ["multiple_choice", "loglikelihood"])
@SEEDS
def test_acc_all_is_lm_evals(output_type, seed):
    """Whole documents: lm-eval's own acc_all of (says yes, document) gives the value of our metric."""
    theirs = pytest.importorskip("lm_eval.api.metrics").acc_all
    rng = np.random.default_rng(seed)
    docs = [{"idx": {"paragraph": p, "question": q}, "label": int(rng.random() < 0.5)} for p, q in np.ndindex(9, 3)] * 2
    said = rng.integers(0, 2, len(docs)).tolist()
    right = [int(one["label"] == yes) for one, yes in zip(docs, said, strict=True)]
    as_json = [f'{{"idx": {{"paragraph": {d["idx"]["paragraph"]}, "question": {d["idx"]["question"]}}}}}' for d in docs]
    samples = [Sample(i, d["label"], doc=text.encode()) for i, (d, text) in enumerate(zip(docs, as_json, strict=True))]
    if output_type == "multiple_choice":
        flat, width, build = [(-1.0 if k == yes else -2.0, False) for yes in said for k in range(2)], 2, mc_batch
    else:
        flat, width, build = [(-1.0, bool(hit)) for hit in right], 1, ll_batch
    offsets, none = np.arange(len(docs) + 1) * width, np.zeros(len(flat), np.bool_)
    batch = build(Batch("t", "none", samples, np.arange(len(docs)), flat, offsets, none))
    found = build_column(range(len(docs)), rows_of("acc_all", output_type, batch))
    items = [(bool(yes), doc) for yes, doc in zip(said, docs, strict=True)]
    assert aggregate_metric(AGGREGATIONS["acc_all"], found).value == pytest.approx(theirs(items), rel=1e-12)


def test_bypass_measures_nothing_as_in_lm_eval():
    theirs = pytest.importorskip("lm_eval.api.metrics").bypass([0, 1])
    made = {
        "multiple_choice": make_choices([[-1.0, -2.0]] * 2, [0, 1]),
        "generate_until": make_texts(["a", "b"], ["a", "a"]),
        "loglikelihood": ll_batch(make_batch([[(-1.0, True)]] * 2)),
        "loglikelihood_rolling": rolling_batch(make_batch([[-1.0]] * 2, ["a", "b"])),
    }
    for output_type, batch in made.items():
        assert rows_of("bypass", output_type, batch) == Objects((theirs, theirs))


# --- texts ----------------------------------------------------------------------------------------------------


@FEW
@given(st.lists(st.text("a1b2 ", max_size=6), min_size=1, max_size=8))
def test_extraction_rate_counts_what_the_pattern_finds(texts):
    found = FILTERS["regex"].make(regex_pattern=r"([0-9]+)", fallback="7")(replies([[text] for text in texts]), ())
    batch = make_texts(list(found.values), ["7"] * len(texts), fell_back=(found.rules < 0).tolist())
    expected = [float(re.search(r"[0-9]+", text) is not None) for text in texts]
    assert rows_of("extraction_rate", "generate_until", batch).values.floats.tolist() == expected


def filtered(name: str, *texts: str, **chosen: object) -> list[object]:
    return nested(FILTERS[name].make(**chosen)(replies([list(texts)]), ()))[0]


PIECES = st.sampled_from(["<think>", "</think>", "4", " so ", "\n", "<thin", "k>"])


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=7).map("".join))
def test_strip_thinking_by_a_regex(text):
    """All up to the last end; if there is none, nothing from the first start on."""
    closed = re.sub(r"(?s)\A.*</think>", "", text)
    expected = closed.strip() if closed != text else re.sub(r"(?s)\s*<think>.*\Z", "", text)
    assert filtered("strip_thinking", text)[0] == (expected.strip() if "think>" in text and expected != text else text)


@FEW
@given(st.text(st.sampled_from(string.printable + "é…«東"), max_size=20))
def test_strip_punctuation_letter_by_letter(text):
    assert filtered("strip_punctuation", text) == ["".join(c for c in text if c not in string.punctuation)]


# --- repeats --------------------------------------------------------------------------------------------------

matrices = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=width, max_size=width), min_size=1, max_size=5
    )
)


@FEW
@given(matrices)
def test_plain_reducers_are_numpys(rows):
    one, matrix = Repeats(np.array(rows)), np.array(rows)
    expected = {"first": matrix[:, 0], "last": matrix[:, -1], "min": matrix.min(axis=1), "variance": matrix.var(axis=1)}
    for name, values in expected.items():
        np.testing.assert_allclose(REDUCERS[name](one), values, rtol=1e-14, atol=1e-16)


def test_the_variance_of_hits_is_binomial():
    for hits, n in product(range(6), range(5, 9)):
        bits = np.array([[1.0] * hits + [0.0] * (n - hits)])
        assert REDUCERS["variance"](Repeats(bits))[0] == pytest.approx(hits / n * (1 - hits / n), abs=1e-15)


@FEW
@given(matrices)
def test_consensus_and_consistency_by_counting(rows):
    answers = [[f"answer {score}" for score in row] for row in rows]
    one = Repeats(np.array(rows), answers)
    assert REDUCERS["consensus"](one).tolist() == [float(sum(s >= 0.5 for s in row) > len(row) / 2) for row in rows]
    shares = [max(row.count(answer) for answer in row) / len(row) for row in answers]
    assert REDUCERS["consistency"](one).tolist() == shares
    assert REDUCERS["consistency"](Repeats(np.array(rows))).tolist() == shares


@FEW
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.integers(1, 9))
def test_majority_by_counting(answers, k):
    hits = np.array([[float(answer == "a") for answer in answers]])
    found = reducer(f"maj@{k}")(Repeats(hits, [answers]))[0]
    if k > len(answers):
        assert np.isnan(found)
    else:
        assert found == float(Counter(answers[:k]).most_common(1)[0][0] == "a")


@FEW
@given(matrices)
def test_collect_keeps_every_score(rows):
    columns = [build_column(range(len(rows)), Floats(Array(list(repeat)))) for repeat in zip(*rows, strict=True)]
    found = reduce_repeats("collect", columns)
    assert [outcome.score for _, outcome in list_outcomes(found)] == [tuple(row) for row in rows]


# --- aggregations ---------------------------------------------------------------------------------------------


def test_a_callable_aggregation_is_called_and_bootstrapped():
    """The value is the function's own; its error is that of all 3125 resamples, with the correction."""

    def spread(scores: list[float]) -> float:
        return max(scores) - min(scores)

    aggregation, values = {"callable": from_callable(spread)}["callable"], [0.1, 0.4, 0.5, 0.7, 1.0]
    inference = Inference(resampling=Resampling(draws=20_000, seed=1))
    found = aggregate_metric(aggregation, build_column(range(5), Floats(Array(values))), inference=inference)
    every = np.std([spread(list(one)) for one in product(values, repeat=5)]) * sqrt(5 / 4)
    assert found.value == spread(values)
    assert found.stderr == pytest.approx(every, rel=0.02)


# --- groups ---------------------------------------------------------------------------------------------------

KEY = MetricKey("m")


def task(name: str, rows: Rows, n: int, aggregation: str) -> Leaf[TaskReport]:
    one = build_column(range(n), rows)
    closed = aggregate_metric(AGGREGATIONS[aggregation], one)
    return Leaf(name, TaskReport(name=name, estimates=((KEY, closed),), columns=((KEY, one),), n_docs=n))


def of(children: Sequence[Leaf[TaskReport] | Group[TaskReport]], **rule: object):
    return report_groups(Group("g", tuple(children), (GroupMetric("m", **rule),)))[-1].get(KEY)


def labelled(seed: int, sizes: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    golds = [rng.integers(0, 2, n) for n in sizes]
    return [(gold, np.where(rng.random(len(gold)) < 0.7, gold, 1 - gold)) for gold in golds]


def class_tasks(data: Sequence[tuple[np.ndarray, np.ndarray]], aggregation: str) -> list[Leaf[TaskReport]]:
    return [
        task(f"t{i}", Labels(Array(np.column_stack(pair).astype(np.int64))), len(pair[0]), aggregation)
        for i, pair in enumerate(data)
    ]


@SEEDS
def test_the_mean_rule_is_all_documents_or_all_tasks(seed):
    """By size it is the mean of all documents, otherwise of the tasks; errors add up in squares."""
    rng = np.random.default_rng(seed)
    data = [rng.random(n) for n in (5, 30, 80)]
    tasks = [task(f"t{i}", Floats(Array(one)), len(one), "mean") for i, one in enumerate(data)]
    sem = [one.std(ddof=1) / sqrt(len(one)) for one in data]
    by_size, equal = of(tasks, aggregation="mean"), of(tasks, aggregation="mean", weight_by_size=False)
    assert by_size.value == pytest.approx(np.concatenate(data).mean(), rel=1e-12)
    assert by_size.stderr == pytest.approx(sqrt(fsum((len(x) / 115 * s) ** 2 for x, s in zip(data, sem, strict=True))))
    assert equal.value == pytest.approx(np.mean([one.mean() for one in data]), rel=1e-12)
    assert equal.stderr == pytest.approx(sqrt(fsum((s / 3) ** 2 for s in sem)), rel=1e-12)


@SEEDS
def test_macro_is_the_average_of_scikit_learns_scores(seed):
    sklearn = pytest.importorskip("sklearn.metrics")
    data = labelled(seed, (20, 50, 90))
    tasks = class_tasks(data, "matthews_corrcoef")
    found = of(tasks, aggregation="macro", weight_by_size=False)
    assert found.value == pytest.approx(np.mean([sklearn.matthews_corrcoef(*pair) for pair in data]), rel=1e-12)
    errors = [leaf.value.get(KEY).stderr for leaf in tasks]
    assert found.stderr == pytest.approx(sqrt(fsum((error / 3) ** 2 for error in errors)), rel=1e-12)


@SEEDS
def test_pool_is_scikit_learns_score_of_all_documents(seed):
    sklearn = pytest.importorskip("sklearn.metrics")
    data = labelled(seed, (20, 50, 90))
    golds, said = (np.concatenate(side) for side in zip(*data, strict=True))
    found = of(class_tasks(data, "f1"), aggregation="pool")
    assert found.value == pytest.approx(sklearn.f1_score(golds, said), rel=1e-12)


def test_the_error_of_pool_is_that_of_resampling_within_tasks():
    rng, data = np.random.default_rng(3), labelled(3, (150, 250, 400))
    found = of(class_tasks(data, "f1"), aggregation="pool")

    def drawn() -> float:
        at = [rng.integers(0, len(gold), len(gold)) for gold, _ in data]
        gold, said = (np.concatenate([pair[k][i] for pair, i in zip(data, at, strict=True)]) for k in range(2))
        return float(2 * (gold & said).sum() / (gold.sum() + said.sum()))

    assert found.stderr == pytest.approx(np.std([drawn() for _ in range(4000)]), rel=0.05)


@SEEDS
def test_a_callable_rule_is_called_with_values_and_sizes(seed):
    """A geometric mean weighted by size: its value is scipy's, its error the delta method's by hand."""
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(seed)
    data = [0.2 + 0.8 * rng.random(n) for n in (10, 40)]
    tasks = [task(f"t{i}", Floats(Array(one)), len(one), "mean") for i, one in enumerate(data)]
    rule = {"callable": lambda values, sizes: float(stats.gmean(values, weights=sizes))}["callable"]
    found, means = of(tasks, aggregation=rule), [one.mean() for one in data]
    expected = stats.gmean(means, weights=[10, 40])
    slopes = [expected * weight / mean for weight, mean in zip((0.2, 0.8), means, strict=True)]
    errors = [one.std(ddof=1) / sqrt(len(one)) for one in data]
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.stderr == pytest.approx(
        sqrt(fsum((s * e) ** 2 for s, e in zip(slopes, errors, strict=True))), rel=1e-6
    )


@SEEDS
def test_averages_of_a_nested_tree_by_hand(seed):
    """g = (a, h = (b, c)): all tasks alike under leaves, all children alike under children."""
    data = [np.random.default_rng([seed, i]).random(10 * (i + 1)) for i in range(3)]
    a, b, c = (task(name, Floats(Array(one)), len(one), "mean") for name, one in zip("abc", data, strict=True))
    x, y, z = (one.mean() for one in data)
    tree = [a, Group("h", (b, c))]
    expected = {"leaves": (x + y + z) / 3, "children": (x + (y + z) / 2) / 2}
    for average, value in expected.items():
        assert of(tree, average=average, weight_by_size=False).value == pytest.approx(value, rel=1e-12)
        assert of(tree, average=average).value == pytest.approx(np.concatenate(data).mean(), rel=1e-12)
