"""MMLU-Pro by Llama 3 70B: fourteen categories, 814 answers that no rule finds, and what to make of them."""

from __future__ import annotations

import json

import pytest
from recorded import STRIPPED, estimate, extract, generated, report_texts

from evalcore import GENERATE_UNTIL, EvalError, MetricSpec, Sample, Task, build_report, report_task, score_task
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.stats import Inference

L1 = r"answer is \(?([A-J])\)?"
# compute_accuracy.py tries each rule only where the one before finds nothing in the whole text; the last one
# takes the last letter that stands alone.
L2 = r"\A(?s:.*?)answer is \(?([A-J])\)?|\A(?s:.*?)[aA]nswer:\s*([A-J])|\A(?s:.*)\b([A-J])\b"
KEY = "exact_match,none"


def trees(categories, metric="exact_match"):
    leaves = tuple(Leaf(name, None) for name in categories)
    return (
        Group("micro", leaves, (GroupMetric(metric),)),
        Group("macro_14", leaves, (GroupMetric(metric, weight_by_size=False),)),
    )


@pytest.fixture(scope="module")
def data(recorded):
    return recorded("mmlu_pro_llama3_70b")


@pytest.fixture(scope="module")
def categories(data):
    found: dict[str, list[dict]] = {}
    for row in data.rows:
        found.setdefault(row["category"], []).append(row)
    return found


def report(categories, pipeline, column="model_output", **more):
    tasks = [
        report_texts(name, rows, lambda row: row[column], lambda row: row["answer"], [pipeline], **more)
        for name, rows in sorted(categories.items())
    ]
    return build_report(tasks, trees(sorted(categories)))


def check(found, expected, key=KEY):
    assert len(found.tasks) == 14
    for task in found.tasks:
        one = estimate(task, key)
        assert one.value == pytest.approx(expected["per_category"][task.name]["acc"], rel=1e-14), task.name
        assert one.n == expected["per_category"][task.name]["n"]
    for name in ("micro", "macro_14"):
        assert estimate(found.group(name), key).value == pytest.approx(expected[name], rel=1e-14)


@pytest.mark.parametrize(("name", "pattern"), [("l1_regex", L1), ("l2_regex", L2)], ids=["l1", "l2"])
def test_an_answer_that_no_rule_finds_is_wrong(data, categories, name, pattern):
    check(report(categories, extract("none", pattern)), data.meta["expected"][f"{name}_none_is_wrong"])


def test_published_predictions_without_an_answer_count_as_zero(data, categories):
    found = report(categories, STRIPPED, "pred_published", inference=Inference(on_unscorable="zero"))
    check(found, data.meta["expected"]["pred_published_none_is_wrong"])
    assert sum(estimate(task, KEY).counts.failed for task in found.tasks) == data.meta["expected"]["none_l1"]


def test_the_rate_of_extraction_counts_them(data, categories):
    metrics = (MetricSpec("exact_match"), MetricSpec("extraction_rate"))
    found = report(categories, extract("none", L1), metrics=metrics)
    rates = [(task.n_docs, estimate(task, "extraction_rate,none").value) for task in found.tasks]
    assert sum(round(n * (1 - rate)) for n, rate in rates) == data.meta["expected"]["none_l1"]


def test_unscorable_counted_as_zero_is_the_same_as_wrong(data, categories):
    found = report(categories, extract("none", L1, fallback=None), inference=Inference(on_unscorable="zero"))
    check(found, data.meta["expected"]["l1_regex_none_is_wrong"])
    assert sum(estimate(task, KEY).counts.unscorable for task in found.tasks) == data.meta["expected"]["none_l1"]


def test_unscorable_left_out_keeps_its_bounds(data, categories):
    expected = data.meta["expected"]["l1_regex_none_is_wrong"]
    found = report(categories, extract("none", L1, fallback=None))
    for task in found.tasks:
        one, total = estimate(task, KEY), expected["per_category"][task.name]
        assert (one.counts.scored + one.counts.unscorable, one.counts.failed) == (total["n"], 0)
        assert one.value == pytest.approx(total["acc"] * total["n"] / one.counts.scored, rel=1e-13)
        assert one.counts.lowest == pytest.approx(total["acc"], rel=1e-14)
        assert one.counts.lowest <= one.value <= one.counts.highest
        assert one.counts.highest - one.counts.lowest == pytest.approx(one.counts.unscorable / total["n"], abs=1e-12)
    micro = estimate(found.group("micro"), KEY)
    assert (micro.counts.scored, micro.counts.unscorable) == (12032 - 814, 814)
    assert micro.value == pytest.approx(expected["micro"] * 12032 / (12032 - 814), rel=1e-13)


def test_refusing_them_says_where(categories):
    with pytest.raises(EvalError, match=r"\d+ have none; the first: .* at biology doc \d+"):
        report(
            {"biology": categories["biology"]},
            extract("none", L1, fallback=None),
            inference=Inference(on_unscorable="fail"),
        )


def guessed(doc, results):
    """One in n options where nothing was found: the expected value of the official script's random guess."""
    right = results[0] == doc["answer"]
    return {"exact_match": 1 / doc["n_options"] if results[0] == "[invalid]" else float(right)}


def test_the_expected_value_of_guessing(data, categories):
    tasks = []
    for name, rows in sorted(categories.items()):
        task = Task(name, GENERATE_UNTIL, (MetricSpec("exact_match"),), (extract("none", L1),), guessed)
        samples = [
            Sample(key, doc=json.dumps({"answer": row["answer"], "n_options": row["n_options"]}).encode())
            for key, row in enumerate(rows)
        ]
        answers = [generated(name, key, row["model_output"]) for key, row in enumerate(rows)]
        tasks.append(report_task(score_task(task, samples, answers)))
    found = build_report(tasks, trees(sorted(categories)))
    check(found, data.meta["expected"]["l1_regex_none_is_1_over_n_options"])
    published = data.meta["published"]["README mini-leaderboard overall accuracy"]
    assert abs(100 * estimate(found.group("micro"), KEY).value - published) < 0.06
