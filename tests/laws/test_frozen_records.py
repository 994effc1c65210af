"""Frozen at the door: a public record made of mutable input does not change when that input does, and is hashable."""

from __future__ import annotations

import pickle
from importlib import import_module

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import evalcore
from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    Answer,
    Estimate,
    Generate,
    GroupReport,
    Instance,
    MetricKey,
    MetricSpec,
    Pipeline,
    Report,
    Sample,
    Scored,
    Step,
    Tables,
    Task,
    TaskReport,
    report_task,
    score_task,
)
from evalcore.extensions import GenResult, MCResult, Metric
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.stats import Array, Column, Floats, Labels, Objects, Stats
from evalcore.testing import fingerprint

TASK = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),))
SCORED = score_task(TASK, [Sample(0, gold="4")], [Answer(Instance("t", 0, 0, Generate("?")), ("4",))])
REPORT = report_task(SCORED)
[(KEY, ESTIMATE)] = REPORT.estimates

MADE: dict[type, tuple[object, dict[str, object]]] = {
    Task: (TASK, {"metrics": [MetricSpec("f1")], "filters": [Pipeline("p")], "config": {"a": [1, {"b": [2]}]}}),
    MetricSpec: (MetricSpec("f1"), {"reducers": ["mean"], "options": {"words": ["a"], "more": {"b": [1]}}}),
    Pipeline: (Pipeline("p"), {"steps": [Step("regex")], "metrics": [MetricSpec("f1")]}),
    Step: (Step("regex"), {"options": {"patterns": [["a"]]}}),
    Sample: (Sample(0), {"gold": ["a", "b"], "choices": ["c"], "doc": {"q": [1]}}),
    Answer: (Answer(Instance("t", 0, 0, Generate("?")), ()), {"replies": ["a", [-1.0, True]]}),
    Generate: (Generate("?"), {"options": {"until": ["\n"]}}),
    Scored: (SCORED, {"columns": list(SCORED.columns), "provenance": [], "clusters": [[0, 1]]}),
    TaskReport: (REPORT, {"estimates": [[KEY, ESTIMATE]], "columns": [], "config": {"a": [1]}, "warnings": ["w"]}),
    GroupReport: (
        GroupReport(name="g", alias="g", estimates=((KEY, ESTIMATE),)),
        {"warnings": ["w"], "estimates": [(KEY, ESTIMATE)]},
    ),
    Report: (Report(tasks=(REPORT,)), {"tasks": [REPORT], "groups": [], "trees": [Leaf("t", REPORT)]}),
    Estimate: (ESTIMATE, {"ci": [0.0, 1.0], "errata": ["E01"]}),
    GenResult: (
        GenResult(("a",), ("b",)),
        {"generations": ["a"], "golds": ["b"], "fell_back": [False], "instances": []},
    ),
    MCResult: (
        MCResult((-1.0,), (True,), (0,)),
        {"lls": [-1.0], "greedy": [True], "gold": [0], "choices": ["a"], "tokens": [1], "unconditional": [-2.0]},
    ),
    Metric: (EVALCORE.metrics[MULTIPLE_CHOICE]["acc"], {"bounds": [0.0, 1.0], "options": ["a"]}),
    Group: (Group("g"), {"children": [Leaf("t", None)], "metrics": [GroupMetric("acc")], "metadata": {"v": [1]}}),
    GroupMetric: (GroupMetric("acc"), {"filters": ["none"], "weights": {"t": 2.0}}),
    Column: (SCORED.columns[0].column, {"keys": [3], "status": np.zeros(1, np.uint8), "reasons": [[3, "why"]]}),
    Floats: (Floats(Array([1.0])), {"values": [1.0, 2.0]}),
    Stats: (Stats(Array([[1.0]])), {"values": [[1.0, 2.0]]}),
    Labels: (Labels(Array([[1, 2]])), {"values": np.array([[1, 2]])}),
    Objects: (Objects((1,)), {"values": [1, 2]}),
    Tables: (EVALCORE, {"filters": dict(EVALCORE.filters), "metrics": {MULTIPLE_CHOICE: {}}}),
}
"""Public records that hold more than one thing: one of each, and mutable values for its fields."""


def spoil(value: object) -> None:
    """Change whatever can be changed, all the way down."""
    if isinstance(value, dict):
        for item in list(value.values()):
            spoil(item)
        value.clear()
    elif isinstance(value, list):
        for item in value:
            spoil(item)
        value.append("spoilt")
    elif isinstance(value, np.ndarray):
        value[...] = 7


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_a_record_keeps_what_it_was_made_of(kind: type) -> None:
    record, given = MADE[kind]
    made = replace(record, **given)  # type: ignore[type-var]
    before = fingerprint(made)
    for value in given.values():
        spoil(value)
    assert fingerprint(made) == before
    assert isinstance(hash(made), int) or kind is Tables
    if kind not in (Tables, Metric):
        assert pickle.loads(pickle.dumps(made)) == made


CONTAINERS = ("tuple[", "Options", "Sequence[", "Mapping[", "PMap[", "Array")
RETURNED = frozenset(
    [
        "Checked",
        "Compared",
        "Comparison",
        "ComparisonLine",
        "ComparisonSide",
        "Contribution",
        "Diffed",
        "Difference",
        "Explained",
        "Guess",
        "Planned",
        "Preview",
        "RunResult",
        "Recorded",
        "Reported",
        "Logged",
        "LogTask",
        "LogTable",
        "Makeup",
        "Scale",
        "ShownRun",
        "Spread",
        "Trace",
        "Counts",
    ]
)
"""What evalcore makes and hands out: their parts are frozen as they are made (``tests/test_frozen.py``)."""
TAKEN_OVER = frozenset(
    [
        "AnswerTable",
        "Backend",
        "Correction",
        "GroupRule",
        "Reducer",
        "Share",
        "Requests",
        "Repeats",
        "Marks",
        "Case",
        "Aggregation",
        "Bracket",
        "Evidence",
        "Inference",
        "ColumnMap",
        "Model",
        "Reader",
    ]
)
"""Columns that are taken over as they are, and records of functions and scalars."""


def test_every_public_record_with_parts_is_here() -> None:
    homes = ["evalcore", *(f"evalcore.{name}" for name in evalcore._NAMESPACES)]
    public = {getattr(import_module(home), name) for home in homes for name in import_module(home).__all__}
    records = [one for one in public if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    parts = {
        one.__name__
        for one in records
        if any(word in str(kind) for kind in one.__annotations__.values() for word in CONTAINERS)
    }
    assert parts - {kind.__name__ for kind in MADE} - RETURNED - TAKEN_OVER == set()


def test_a_record_made_of_lists_equals_one_made_of_tuples() -> None:
    lists = Task("t", GENERATE_UNTIL, [MetricSpec("f1", reducers=["mean"])], [Pipeline("p", [Step("lowercase")])])  # type: ignore[arg-type]
    tuples = Task("t", GENERATE_UNTIL, (MetricSpec("f1", reducers=("mean",)),), (Pipeline("p", (Step("lowercase"),)),))
    assert lists == tuples
    assert hash(lists) == hash(tuples)
    assert MetricKey("f1") == ("f1", "none")
