"""GSM8K solutions of OpenAI's fine-tuned models and verifiers: 5,276 published labels."""

from __future__ import annotations

import pytest
from recorded import estimate, extract, generated

from evalcore import GENERATE_UNTIL, MetricSpec, Ok, Sample, Task, freeze_options, report_task, score_task
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import list_outcomes

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
# lm-eval's gsm8k.yaml
EXACT = MetricSpec(
    "exact_match",
    options=freeze_options(
        ignore_case=True, ignore_punctuation=False, regexes_to_ignore=[",", "\\$", "(?s).*#### ", "\\.$"]
    ),
)
STRICT = extract("strict", r"\nA: (.*)$")
FLEXIBLE = extract("flexible-extract", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", group_select=-1)
TASK = Task("gsm8k", GENERATE_UNTIL, (EXACT,), (STRICT, FLEXIBLE))


@pytest.fixture(scope="module", params=MODELS)
def run(request, recorded):
    data, model = recorded("gsm8k_openai"), request.param
    samples = [Sample(row["idx"], gold=row["answer"]) for row in data.rows]
    answers = [generated("gsm8k", row["idx"], row[model]) for row in data.rows]
    labels = [(row["idx"], row[f"{model}_is_correct"]) for row in data.rows]
    return samples, answers, labels, data.meta["expected"][model]


def test_every_document_gets_its_published_label(run):
    samples, answers, labels, expected = run
    scored = score_task(TASK, samples, answers)
    assert list_outcomes(scored.column("exact_match,strict")) == tuple((key, Ok(float(label))) for key, label in labels)
    assert len(labels) == expected["n"] == 1319


@pytest.mark.parametrize("tables", [None, LM_EVAL_0_4_13], ids=["evalcore", "lm-eval"])
def test_accuracy_and_error_are_the_published_ones(run, tables):
    samples, answers, _, expected = run
    chosen = {} if tables is None else {"tables": tables}
    report = report_task(score_task(TASK, samples, answers, **chosen), **chosen)
    strict, flexible = (
        estimate(report, "exact_match,strict"),
        estimate(report, "exact_match,flexible-extract"),
    )
    assert (strict.value, strict.n) == (expected["acc"], expected["n"])
    assert strict.stderr == pytest.approx(expected["stderr"], rel=1e-13)
    assert flexible.value == expected["lmeval_flexible_extract_exact_match"]
