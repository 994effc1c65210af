"""Laws of records: frozen, equal by value, hashable, picklable; functions never change what they are given."""

from __future__ import annotations

import copy
import pickle

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    Answer,
    Failed,
    Failure,
    Generate,
    Instance,
    Likelihood,
    LogLikelihood,
    MetricKey,
    MetricSpec,
    NotEmitted,
    Ok,
    Pipeline,
    Rolling,
    Sample,
    Step,
    Task,
    Unscorable,
    aggregate_metric,
    build_report,
    freeze_options,
    group_by_doc,
    report_task,
    score_task,
)
from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.records.score import Provenance, ScoredColumn
from evalcore.groups import Group, GroupMetric, GroupStatistics, Leaf, leaf_from_flat
from evalcore.lm_eval import lm_eval_results, lmms_eval_results, sample_rows
from evalcore.logs import request_table, tabulate_answers
from evalcore.stats import Array, Floats, Inference, Labels, Objects, Resampling, Stats, build_column, merge_columns
from evalcore.testing import answers, cases, columns, estimates, fingerprint, group_trees, instances, results, samples

LAW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def scored():
    asked = [Answer(Instance("t", i, 0, Generate("?")), ("4", "5")[i : i + 1]) for i in range(2)]
    return score_task(Task("t", GENERATE_UNTIL), [Sample(0, gold="4"), Sample(1, gold="4")], asked, keep_replies=True)


def make():
    """One of every record, made afresh on each call."""
    numbers = build_column([0, 1], Floats(Array([0.5, np.nan])), np.array([0, 1], np.uint8), {1: "why"})
    leaf = leaf_from_flat("a", {"acc,none": 0.5, "acc_stderr,none": 0.1, "sample_len": 4})
    tree = Group("g", (leaf,), (GroupMetric("acc"),), "G", freeze_options(version=1))
    done = scored()
    report = build_report([report_task(done), leaf.value], [tree])
    return [
        LogLikelihood("a", "b"),
        Rolling("é"),
        Generate("a", freeze_options(until=["\n"])),
        Failure("why"),
        Likelihood(-1.0, True, 3),
        Instance("t", 0, 0, Generate("a", freeze_options(x={"y": [1]}))),
        Answer(Instance("t", 0, 0, Rolling("a")), ((-1.0, True), Failure("x"))),
        Sample(0, ("a", "b"), ("c",), b"{}", "id", 3),
        MetricKey("acc", "none"),
        MetricSpec("acc", "mean", ("mean",), True, freeze_options(a=1)),
        Step.of("regex", regex_pattern="a"),
        Pipeline("p", (Step.of("take_first"),), (MetricSpec("acc"),)),
        Task("t", GENERATE_UNTIL, (MetricSpec("acc"),), (Pipeline("p"),), config=freeze_options(a=[1, {"b": 2}])),
        Array([1.0, 2.0]),
        numbers,
        numbers.rows,
        Stats(Array(np.ones((2, 2)))),
        Labels(Array(np.ones((2, 2), np.int64))),
        Objects(((True, "q"), "text", 3)),
        Ok(1.0),
        Unscorable("why"),
        Failed("why"),
        NotEmitted(),
        Resampling(5, 1),
        Inference(),
        aggregate_metric(AGGREGATIONS["mean"], numbers, clusters=np.arange(2)),
        GroupMetric("acc", ("none",), weights=freeze_options(a=1)),
        Leaf("a", 1),
        tree,
        GroupStatistics(1, 2, 3),
        leaf.value,
        report.groups[0],
        report,
        done,
        done.columns[0],
        done.provenance[0],
        request_table("t", [0, 1], [0, 0]),
        request_table("t", [0, 1], [0, 0]).answered([(-1.0, True), (-2.0, False)]),
    ]


NAMES = [f"{i}-{type(one).__name__}" for i, one in enumerate(make())]


@pytest.mark.parametrize("at", range(len(NAMES)), ids=NAMES)
def test_records_are_values(at):
    """Made twice, a record is equal, hashes the same and survives pickle and copy; no field can be set."""
    one, two = make()[at], make()[at]
    assert one == two
    assert hash(one) == hash(two)
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert other == one
        assert hash(other) == hash(one)
        assert type(other) is type(one)
    before = fingerprint(one)
    fields = one.__struct_fields__ if isinstance(one, msgspec.Struct) else getattr(one, "_fields", ("data",))
    for field in fields:
        with pytest.raises(AttributeError):
            setattr(one, field, None)
    assert fingerprint(one) == before
    assert one != object()


def test_all_kinds_are_made():
    """The list above holds the records of scoring that hypothesis cannot make."""
    assert {ScoredColumn, Provenance} <= {type(one) for one in make()}


def test_pickled_arrays_stay_read_only():
    """Arrays in records cannot be written to, also after a journey to another process."""
    for one in (Array([1.0]), pickle.loads(pickle.dumps(Array([1.0])))):
        with pytest.raises(ValueError, match="read-only"):
            one.data[0] = 2.0
    given = np.zeros(2)
    held = Array(given)
    given[0] = 1.0
    assert held.data.tolist() == [0.0, 0.0]
    table = pickle.loads(pickle.dumps(request_table("t", [0], [0]).answered([(-1.0, True)])))
    assert not table.values.values.flags.writeable


@LAW
@given(st.one_of(instances(), answers(), samples(), results(), columns(), columns("objects"), estimates()))
def test_any_record_is_a_value(one):
    """Records of any content are equal to their pickle and hash the same."""
    again = pickle.loads(pickle.dumps(one))
    assert fingerprint(again) == fingerprint(one)
    assert again == one or one != one  # a NaN inside a plain tuple is not equal to itself
    assert hash(again) == hash(one)


@LAW
@given(group_trees())
def test_trees_are_values(tree):
    """A tree of task reports with their columns is equal to its pickle and hashes the same."""
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree
    assert hash(again) == hash(tree)


@settings(LAW, max_examples=15)
@given(cases(GENERATE_UNTIL))
def test_no_step_changes_what_it_is_given(case):
    """Grouping, scoring, merging, closing, reporting: deep copies of the inputs stay equal to them."""
    inputs = case.samples, case.answers, case.task, EVALCORE.name
    before = copy.deepcopy(inputs)
    table = tabulate_answers(case.answers)
    group_by_doc(case.answers)
    found = score_task(case.task, case.samples, table, keep_replies=True)
    kept, tabled = fingerprint(found), fingerprint(table)
    report = build_report([report_task(found)], [Group("g", (Leaf(case.task.name, None),), (GroupMetric("f1"),))])
    made = fingerprint(report)
    merge_columns(found.columns[0].column, found.columns[0].column)
    lm_eval_results(report)["results"].clear()
    lmms_eval_results(report)
    for row in sample_rows(found, case.samples, table):
        row["doc"]["changed"] = row["resps"].clear()
    assert (fingerprint(found), fingerprint(table), fingerprint(report)) == (kept, tabled, made)
    assert inputs == before


def test_options_are_frozen_all_the_way_down():
    """Lists become tuples and dicts become PMaps, so that what the caller holds cannot reach in."""
    given_list = [1, {"a": [2]}]
    made = freeze_options(x=given_list)
    given_list.append(3)
    assert made["x"] == (1, freeze_options(a=(2,)))
    with pytest.raises(TypeError):
        made["x"] = 1
