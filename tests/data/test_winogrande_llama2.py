"""WinoGrande by Llama 2: log-likelihoods of both fillings, lm-eval's published accuracy and error."""

from __future__ import annotations

import pytest
from recorded import estimate, likelihoods

from evalcore import EVALCORE, MULTIPLE_CHOICE, MetricSpec, Ok, Sample, Task, report_task, score_task
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import list_outcomes

TASK = Task("winogrande", MULTIPLE_CHOICE, (MetricSpec("acc"),))


@pytest.fixture(scope="module", params=["Llama-2-7b-hf", "Llama-2-13b-hf"])
def run(request, recorded):
    data = recorded("winogrande_llama2")
    rows = [row for row in data.rows if row["model"] == request.param]
    samples = [Sample(row["doc_id"], gold=row["gold"]) for row in rows]
    answers = [
        answer
        for row in rows
        for answer in likelihoods("winogrande", row["doc_id"], [(ll, False) for ll in row["loglikelihoods"]])
    ]
    return samples, answers, rows, data.meta["expected"][request.param]


def test_every_document_scores_as_published(run):
    samples, answers, rows, _ = run
    column = score_task(TASK, samples, answers).column("acc,none")
    assert list_outcomes(column) == tuple((row["doc_id"], Ok(row["acc_published"])) for row in rows)


def test_lm_evals_tables_give_its_bits(run):
    samples, answers, _, expected = run
    scored = score_task(TASK, samples, answers, tables=LM_EVAL_0_4_13)
    found = estimate(report_task(scored, tables=LM_EVAL_0_4_13), "acc,none")
    assert (found.value, found.stderr, found.n) == (expected["acc"], expected["acc_stderr"], expected["n"])


def test_the_default_gives_the_same_to_the_last_digits(run):
    samples, answers, _, expected = run
    found = estimate(report_task(score_task(TASK, samples, answers, tables=EVALCORE)), "acc,none")
    assert found.value == expected["acc"]
    assert found.stderr == pytest.approx(expected["acc_stderr"], abs=1e-15)
