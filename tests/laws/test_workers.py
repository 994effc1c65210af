"""Any number of worker processes gives the same bytes."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec
import numpy as np
import pytest

from evalcore import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    Answer,
    Generate,
    Instance,
    LogLikelihood,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Task,
    build_report,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results

DICE = np.random.default_rng(0)
LLS = DICE.normal(-5, 2, (60, 4)).tolist()
GOLDS = DICE.integers(4, size=60).tolist()
STEPS = (Step.of("regex", regex_pattern="([0-9]+)", group_select=-1), Step.of("take_first"))
CHOICES = Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score", "f1"))))
TEXTS = Task("texts", GENERATE_UNTIL, (MetricSpec("exact_match"), MetricSpec("f1")), (Pipeline("number", STEPS),))


def documents(task):
    if task.name == "texts":
        samples = [Sample(i, gold=str(gold)) for i, gold in enumerate(GOLDS)]
        return samples, [
            Answer(Instance("texts", i, 0, Generate("?")), (f"so {int(-ll[0]) % 4}",)) for i, ll in enumerate(LLS)
        ]
    samples = [Sample(i, gold=gold % 2, choices=("one", "three")) for i, gold in enumerate(GOLDS)]
    return samples, [
        Answer(Instance("choices", i, j, LogLikelihood("", "")), ((ll[j], False),))
        for i, ll in enumerate(LLS)
        for j in range(2)
    ]


def score_part(given):
    task, tables, samples, answers = given
    return score_task(task, samples, answers, tables=tables)


def in_workers(task, tables, workers, pool):
    samples, answers = documents(task)
    parts = [
        (task, tables, samples[k::workers], [one for one in answers if one.doc_id % workers == k])
        for k in range(workers)
    ]
    scored = merge_scored(pool.map(score_part, parts))
    return msgspec.json.encode(lm_eval_results(build_report([report_task(scored, tables=tables)], tables=tables)))


@pytest.mark.parametrize("task", [CHOICES, TEXTS], ids=lambda task: task.name)
def test_any_number_of_workers_gives_the_same_bytes(task):
    from evalcore import EVALCORE

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for tables in (EVALCORE, LM_EVAL_0_4_13):
            assert len({in_workers(task, tables, workers, pool) for workers in (1, 2, 7)}) == 1


@pytest.mark.parametrize("task", [CHOICES, TEXTS], ids=lambda task: task.name)
def test_a_pool_maps_the_chunks_of_a_task(task):
    samples, answers = documents(task)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        spread = score_task(task, samples, answers, chunk=7, map=pool.map, tables=LM_EVAL_0_4_13, keep_replies=True)
    assert spread == score_task(task, samples, answers, tables=LM_EVAL_0_4_13, keep_replies=True)
