"""Every document has one outcome, and counts add up; a report that says otherwise is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from evalcore import Task, report_task
from evalcore.core.ledger import Ledger, check_report, check_task, count_outcomes, sum_ledgers
from evalcore.core.records.column import build_column, list_outcomes
from evalcore.core.records.errors import InternalError
from evalcore.core.records.estimate import Estimate, Makeup, Part
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, OK, UNSCORABLE, Counts
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey
from evalcore.core.tally import tally_scored

WORDS = {OK: "scored", UNSCORABLE: "unscorable", FAILED: "failed", NOT_EMITTED: "not_emitted"}


def close(*columns: list[int]) -> TaskReport:
    """The report of a task whose columns have these statuses."""
    made = [build_column(range(len(one)), Floats(np.ones(len(one))), np.array(one, np.uint8)) for one in columns]
    named = [ScoredColumn(MetricKey(f"m{at}"), column, None) for at, column in enumerate(made)]
    return report_task(Scored(Task("t", "generate_until"), tuple(named)))


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=n, max_size=n), min_size=1, max_size=3)
    )
)
def test_a_document_counts_once_by_its_worst_outcome(columns: list[list[int]]) -> None:
    task = close(*columns)
    check_task(task, len(columns[0]))
    own = [max(outcomes, key=[NOT_EMITTED, OK, UNSCORABLE, FAILED].index) for outcomes in zip(*columns, strict=True)]
    assert count_outcomes(task) == Ledger(**{word: own.count(status) for status, word in WORDS.items()})
    assert count_outcomes(task).documents == len(own)
    assert all(len(list_outcomes(column)) == len(own) for _, column in task.columns)


def test_a_tally_counts_by_its_worst_column() -> None:
    scored = Scored(
        Task("t", "generate_until"),
        tuple(ScoredColumn(key, column, None) for key, column in close([0, 0, 1, 0], [0, 2, 0, 1]).columns),
    )
    task = report_task(tally_scored(scored))
    check_task(task, 4)
    assert count_outcomes(task) == Ledger(scored=2, unscorable=1, failed=1)


@pytest.mark.parametrize("rule", ["exclude", "zero"])
def test_a_rule_for_unscorable_documents_changes_no_outcome(rule: str) -> None:
    from evalcore.core.aggregate.inference import Inference
    from evalcore.core.records.task import MetricSpec

    column = build_column(range(4), Floats(np.ones(4)), np.array([0, 1, 2, 0], np.uint8))
    spec = MetricSpec("m", higher_is_better=True, aggregation="mean")
    scored = Scored(Task("t", "generate_until"), (ScoredColumn(MetricKey("m"), column, spec),))
    task = report_task(scored, inference=Inference(on_unscorable=rule))  # type: ignore[arg-type]
    check_task(task, 4)
    assert count_outcomes(task) == Ledger(scored=2, unscorable=1, failed=1)


def test_a_missing_document_is_a_mistake_of_ours() -> None:
    with pytest.raises(InternalError, match=r"of 3 documents 2 have an outcome - at t m0,none"):
        check_task(close([0, 1]), 3)
    task = close([0, 1])
    forged = replace(task, estimates=((task.estimates[0][0], Estimate(value=1.0, counts=Counts(scored=1))),))
    with pytest.raises(InternalError, match=r"of 2 documents 1 have an outcome - at t m0,none"):
        check_task(forged, 2)


def test_a_document_that_occurs_twice_is_a_mistake_of_ours() -> None:
    task = close([0, 0])
    key, column = task.columns[0]
    twice = replace(task, columns=((key, replace(column, keys=np.array([1, 1]))),))
    with pytest.raises(InternalError, match="counts do not add up"):
        check_task(twice, 2)


def test_groups_count_the_documents_of_their_tasks() -> None:
    key, tasks = MetricKey("m0"), (close([0, 0, 1]), replace(close([0, 2]), name="u"))
    parts = Makeup((Part("t", 0.5), Part("u", 0.5)))

    def report(**counts: int) -> Report:
        estimate = Estimate(value=1.0, counts=Counts(**counts), group=parts)
        return Report(tasks=tasks, groups=(GroupReport(name="g", alias="g", estimates=((key, estimate),)),))

    check_report(report(scored=3, unscorable=1, failed=1))
    with pytest.raises(InternalError, match=r"3 documents of its tasks are scored, and 2 of the group - at g m0,none"):
        check_report(report(scored=2, unscorable=1, failed=1))
    assert sum_ledgers(map(count_outcomes, tasks)) == Ledger(scored=3, unscorable=1, failed=1)


def test_documents_have_failed_under_a_metric_that_could_not_be_closed() -> None:
    task = close([0, 0, 1], [0, 0, 0])
    lost = Estimate(value=None, counts=Counts(scored=0, failed=3), reason="its aggregation raised")
    task = replace(task, estimates=(*task.estimates, (MetricKey("m2"), lost)))
    check_task(task, 3)
    assert count_outcomes(task) == Ledger(failed=3)
