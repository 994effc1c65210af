"""CRUXEval by Code Llama 7B, ten samples per problem: pass@k from published labels, and a majority vote."""

from __future__ import annotations

import ast
import json

import pytest
from recorded import estimate, generated

from evalcore import GENERATE_UNTIL, MetricSpec, Ok, Sample, Task, merge_scored, report_task, score_task
from evalcore.extensions import per_document
from evalcore.stats import list_outcomes

KS = (1, 2, 3, 5, 10)
MODES = ("input", "output")


def published_label(doc, results):
    """The label that upstream found by running the program."""
    return {"correct": doc["labels"][results[0]]}


def literal(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def same_literal(prediction, gold):
    return repr(literal(prediction)) == repr(literal(gold))


def same_value(prediction, gold):
    """Equality as the program that checked the labels sees it: the order of a dict is irrelevant."""
    return literal(prediction) == literal(gold)


BY_LABEL = Task(
    "cruxeval",
    GENERATE_UNTIL,
    (MetricSpec("correct", reducers=tuple(f"pass@{k}" for k in KS)),),
    process_results=published_label,
)
BY_LITERAL = Task(
    "cruxeval",
    GENERATE_UNTIL,
    (MetricSpec("literal", function=per_document(same_literal), reducers=("maj@10", "mean", "pass@1")),),
)


@pytest.fixture(scope="module", params=MODES)
def run(request, recorded):
    data = recorded("cruxeval_codellama7b")
    rows = [row for row in data.rows if row["mode"] == request.param]
    samples = [
        Sample(
            key,
            gold=row["output"],
            doc=json.dumps({"labels": dict(zip(row["generations"], row["correct"], strict=True))}).encode(),
        )
        for key, row in enumerate(rows)
    ]
    answers = [generated("cruxeval", key, *row["generations"]) for key, row in enumerate(rows)]
    return samples, answers, rows, data.meta["expected"][request.param]


def test_pass_at_k_is_the_published_one(run):
    samples, answers, _, expected = run
    report = report_task(score_task(BY_LABEL, samples, answers))
    assert len(samples) == expected["problems"]
    for k in KS:
        found = estimate(report, f"correct@pass@{k},none")
        assert 100 * found.value == pytest.approx(expected[f"pass@{k}"], rel=1e-13), k
        assert found.n == expected["problems"]
        assert found.stderr > 0


def test_the_question_stays_the_unit_however_documents_are_split(run):
    samples, answers, _, _ = run
    whole = score_task(BY_LABEL, samples, answers)
    halves = [score_task(BY_LABEL, samples[a::2], answers[a::2]) for a in (1, 0)]
    assert report_task(merge_scored(halves)).estimates == report_task(whole).estimates


def test_the_majority_of_ten_by_literal_equality(recorded):
    data = recorded("cruxeval_codellama7b")
    rows = [row for row in data.rows if row["mode"] == "output"]
    expected = data.meta["expected"]["output"]
    samples = [Sample(key, gold=row["output"]) for key, row in enumerate(rows)]
    answers = [generated("cruxeval", key, *row["generations"]) for key, row in enumerate(rows)]
    scored = score_task(BY_LITERAL, samples, answers)
    report = report_task(scored)
    assert 100 * estimate(report, "literal@maj@10,none").value == expected["maj@10_literal_equality"]
    assert estimate(report, "literal@mean,none").value == pytest.approx(estimate(report, "literal@pass@1,none").value)
    assert all(isinstance(outcome, Ok) for _, outcome in list_outcomes(scored.column("literal@mean,none")))


@pytest.mark.parametrize("same", [same_literal, same_value])
def test_literal_equality_agrees_with_the_published_labels(recorded, same):
    data = recorded("cruxeval_codellama7b")
    agreed, total = data.meta["expected"]["output"]["literal_equality_agrees_with_published_label"]
    rows = [row for row in data.rows if row["mode"] == "output"]
    flat = [
        (text, row["output"], label)
        for row in rows
        for text, label in zip(row["generations"], row["correct"], strict=True)
    ]
    task = Task("cruxeval", GENERATE_UNTIL, (MetricSpec("same", function=per_document(same)),))
    samples = [Sample(key, gold=gold) for key, (_, gold, _) in enumerate(flat)]
    answers = [generated("cruxeval", key, text) for key, (text, _, _) in enumerate(flat)]
    found = list_outcomes(score_task(task, samples, answers).column("same,none"))
    hits = sum(outcome == Ok(float(flat[key][2])) for key, outcome in found)
    assert (hits, len(flat)) == (agreed if same is same_literal else total, total)
