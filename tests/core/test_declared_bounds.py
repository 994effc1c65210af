"""Bounds and direction of a metric: declared in its spec or its table, else unknown."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore import (
    AGGREGATIONS,
    GENERATE_UNTIL,
    Answer,
    EvalError,
    Generate,
    Instance,
    MetricSpec,
    Ok,
    Sample,
    Tables,
    Task,
    Unscorable,
    merge_scored,
    report_task,
    score_doc,
    score_task,
)
from evalcore.core.pipeline import close_column
from evalcore.core.records.task import describe_metric
from evalcore.core.tables import EVALCORE
from evalcore.extensions import Metric, per_document
from evalcore.lm_eval import LM_EVAL_0_4_13, task_from_config
from evalcore.stats import Array, Floats, Inference, build_column, list_outcomes

KEY = "grade,none"


def grade(prediction: str, gold: str) -> float:
    return float(prediction)


def task_of(**declared: object) -> Task:
    return Task("t", GENERATE_UNTIL, (MetricSpec("grade", "mean", function=per_document(grade), **declared),))


def answers_of(texts: list[str]) -> tuple[list[Sample], list[Answer]]:
    samples = [Sample(at, gold="x") for at in range(len(texts))]
    return samples, [Answer(Instance("t", at, 0, Generate("q")), (text,)) for at, text in enumerate(texts)]


def close(texts: list[str], **declared: object):
    return report_task(score_task(task_of(**declared), *answers_of(texts)))[KEY]


def test_an_own_metric_has_neither_direction_nor_bounds() -> None:
    found = close(["7", "3", "10"])
    assert (found.scale.higher_is_better, found.scale.score_bounds, found.scale.bounds) == (None, None, (-inf, inf))


def test_an_own_metric_declares_both() -> None:
    found = close(["7", "3", "10"], higher_is_better=False, bounds=(0, 10))
    assert (found.scale.higher_is_better, found.scale.score_bounds, found.scale.bounds) == (False, (0, 10), (0, 10))
    half = close(["0.7", "0.3", "1"], bounds=(0, 1))
    assert found.ci == pytest.approx([10 * end for end in half.ci])


def test_0_and_1_alone_are_a_share_but_bound_nothing() -> None:
    found = close(["1", "0", "1", "1"])
    told = close(["1", "0", "1", "1"], bounds=(0, 1))
    assert (found.ci, found.scale.score_bounds, told.scale.score_bounds) == (told.ci, None, (0.0, 1.0))
    lost = report_task(score_task(task_of(), *answers_of(["1", "0", "1", "nan"])))[KEY]
    assert (lost.counts.unscorable, lost.counts.lowest, lost.counts.highest) == (1, None, None)
    known = report_task(score_task(task_of(bounds=(0, 1)), *answers_of(["1", "0", "1", "nan"])))[KEY]
    assert (known.counts.lowest, known.counts.highest) == (0.5, 0.75)


def test_a_score_outside_its_bounds_is_none() -> None:
    sample, answer = (one[0] for one in answers_of(["12"]))
    (found,) = score_doc(task_of(bounds=(0, 10)), sample, [answer]).values()
    assert found == Unscorable("expected a score between 0 and 10, got 12 - at t doc 0")
    assert list(score_doc(task_of(), sample, [answer]).values()) == [Ok(12.0)]


@given(st.lists(st.floats(-20, 20).map(lambda value: round(value, 3)), min_size=1, max_size=12), st.integers(0, 12))
def test_bounds_hold_for_every_split(values: list[float], at: int) -> None:
    """What lies outside is lost in the whole as in its parts, and nothing else is."""
    task, (samples, answers) = task_of(bounds=(-5, 5)), answers_of([repr(value) for value in values])
    whole = score_task(task, samples, answers)
    parts = [score_task(task, samples[a:b], answers[a:b]) for a, b in ((0, at), (at, len(values))) if samples[a:b]]
    assert merge_scored(parts[::-1]) == whole
    kept = [key for key, one in list_outcomes(whole.column(KEY)) if isinstance(one, Ok)]
    assert kept == [key for key, value in enumerate(values) if -5 <= value <= 5]


def test_process_results_keep_to_the_bounds_that_a_task_declares() -> None:
    config = {
        "task": "t",
        "output_type": "generate_until",
        "metric_list": [{"metric": "grade", "bounds": [0, 10], "higher_is_better": False}],
        "process_results": lambda doc, results: {"grade": float(results[0])},
    }
    for tables in (EVALCORE, LM_EVAL_0_4_13):
        found = report_task(
            score_task(task_from_config(config), *answers_of(["12", "5"]), tables=tables), tables=tables
        )
        assert (found[KEY].value, found[KEY].counts.unscorable, found[KEY].scale.higher_is_better) == (5.0, 1, False)


def test_bounds_are_no_option_of_a_metric() -> None:
    task = task_from_config({"task": "t", "metric_list": [{"metric": "exact_match", "bounds": [0, 1], "a": 2}]})
    (spec,) = task.metrics
    assert (dict(spec.options), spec.bounds) == ({"a": 2}, (0.0, 1.0))
    assert describe_metric(spec) == {"metric": "exact_match", "bounds": [0.0, 1.0], "a": 2}


@pytest.mark.parametrize("given", [5, "0,1", [1], [1, 1], [2, 1], ["a", "b"], [float("nan"), 1], [0, 1, 2]])
def test_what_bounds_cannot_be(given: object) -> None:
    with pytest.raises(EvalError, match=r"expected bounds as the lowest and the highest score.* - at metric grade"):
        MetricSpec("grade", bounds=given)  # type: ignore[arg-type]
    with pytest.raises(EvalError, match=r"expected bounds as the lowest .* - at t grade"):
        task_from_config({"task": "t", "metric_list": [{"metric": "grade", "bounds": given}]})


def test_the_bounds_of_a_table_entry_are_those_of_its_mean() -> None:
    """A host's metric from 0 to 10 had an interval between 0 and 1, which its mean does not lie in."""
    entry = Metric(lambda batch, options: Floats(Array([10.0] * len(batch.samples))), bounds=(0.0, 10.0))
    own = EVALCORE.metrics[GENERATE_UNTIL].set("stars", entry)
    tables = Tables(metrics=EVALCORE.metrics.set(GENERATE_UNTIL, own))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("stars"),))
    found = report_task(score_task(task, *answers_of(["a"] * 20), tables=tables), tables=tables)["stars,none"]
    assert found.ci == pytest.approx((8.203, 10.0), abs=1e-3)


def test_a_column_of_no_task_is_not_taken_to_be_a_share() -> None:
    losses = build_column(range(4), Floats(Array(np.array([0.2, 0.3, 0.4, 0.9]))))
    assert close_column(losses).scale.bounds == (-inf, inf)
    bits = build_column(range(4), Floats(Array(np.array([0.0, 1.0, 1.0, 1.0]))))
    assert close_column(bits).scale.bounds == AGGREGATIONS["mean"].bounds


def test_failures_count_as_0_where_more_is_known_to_be_better() -> None:
    zero = Inference(on_unscorable="zero")
    lost = score_task(task_of(), *answers_of(["7", "nan"]))
    with pytest.raises(EvalError, match=r"nobody said whether more grade is better.*--higher_is_better grade.* - at t"):
        report_task(lost, inference=zero)
    told = score_task(task_of(higher_is_better=True), *answers_of(["7", "nan"]))
    assert report_task(told, inference=zero)[KEY].value == 3.5
    assert report_task(score_task(task_of(), *answers_of(["7", "8"])), inference=zero)[KEY].value == 7.5
