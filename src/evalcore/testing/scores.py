"""Strategies for what comes out of the pipe: columns, repeats, estimates, task reports, trees of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, Tree
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.errors import require_known
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.outcome import FAILED, NOT_EMITTED, OK, UNSCORABLE
from evalcore.core.records.report import TaskReport
from evalcore.core.records.row import Floats, Labels, Objects, Rows, Stats
from evalcore.core.records.task import MetricKey
from evalcore.core.repeats.repeat import Repeats

UNIT = st.sampled_from((0.0, 1.0, 0.5)) | st.floats(0.0, 1.0, allow_subnormal=False)
OBJECTS = st.tuples(st.booleans(), st.integers(0, 2)) | st.text(max_size=2) | st.integers(-3, 3)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "floats": UNIT,
    "labels": st.tuples(st.integers(0, 2), st.integers(0, 2)),
    "stats": st.tuples(st.floats(-9.0, -0.25), st.integers(1, 9)),
    "objects": OBJECTS,
}


def columns(
    kind: str = "floats", *, min_size: int = 0, max_size: int = 8, unscored: bool = True
) -> st.SearchStrategy[Column]:
    """Draw columns of ``floats`` in [0, 1], ``labels``, ``stats`` (log-likelihood, length) or ``objects``.

    With ``unscored`` some rows are unscorable, failed or not emitted.

    >>> from hypothesis import find
    >>> type(find(columns("labels", min_size=2, unscored=False), lambda one: True).rows).__name__
    'Labels'
    """
    require_known("kind of column", [kind], CELLS)
    return _draw_column(kind, min_size, max_size, unscored)


@st.composite
def _draw_column(draw: st.DrawFn, kind: str, least: int, most: int, unscored: bool) -> Column:
    keys = sorted(draw(st.lists(st.integers(0, 60), min_size=least, max_size=most, unique=True)))
    cells = [draw(CELLS[kind]) for _ in keys]
    codes = st.sampled_from((OK, OK, OK, UNSCORABLE, FAILED, NOT_EMITTED)) if unscored else st.just(OK)
    status = np.array([draw(codes) for _ in keys], np.uint8)
    reasons = {key: f"reason {key % 3}" for key, code in zip(keys, status, strict=True) if code in (UNSCORABLE, FAILED)}
    return build_column(keys, _draw_rows(kind, cells, status), status, reasons)


def _draw_rows(kind: str, cells: list[Any], status: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> Rows:
    if kind == "objects":
        return Objects(tuple(cells))
    if kind == "labels":
        return Labels(Array(np.array(cells, np.int64).reshape(-1, 2)))
    if kind == "stats":
        return Stats(Array(np.array(cells, np.float64).reshape(-1, 2)))
    return Floats(Array(np.where(status == OK, np.array(cells, np.float64), np.nan)))


def repeats(*, max_docs: int = 5, max_repeats: int = 4) -> st.SearchStrategy[Repeats]:
    """Draw scores of documents with ragged repeats (NaN after the last), with the answers they were given for.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(repeats())
    ... def check(one):
    ...     assert [len(row) for row in one.answers] == (~np.isnan(one.scores)).sum(axis=1).tolist()
    >>> check()
    """
    return _draw_repeats(max_docs, max_repeats)


@st.composite
def _draw_repeats(draw: st.DrawFn, max_docs: int, most: int) -> Repeats:
    counts = draw(st.lists(st.integers(1, most), min_size=1, max_size=max_docs))
    scores = np.full((len(counts), max(counts)), np.nan)
    for row, count in zip(scores, counts, strict=True):
        row[:count] = draw(st.lists(UNIT, min_size=count, max_size=count))
    answers = [draw(st.lists(st.sampled_from(("4", "5", "")), min_size=count, max_size=count)) for count in counts]
    fell = [[draw(st.booleans()) and i < count for i in range(max(counts))] for count in counts]
    scores.setflags(write=False)
    return Repeats(scores, answers, np.array(fell, np.bool_))


def estimates(*, min_size: int = 2, max_size: int = 8) -> st.SearchStrategy[Estimate]:
    """Draw means of scores in [0, 1], with influence, error and interval.

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=20, deadline=None)
    ... @given(estimates())
    ... def check(one):
    ...     low, high = one.ci
    ...     assert 0 <= low <= one.value <= high <= 1
    >>> check()
    """
    made = columns(min_size=min_size, max_size=max_size, unscored=False)
    return made.map(lambda one: aggregate_metric(AGGREGATIONS["mean"], one))


def task_reports(name: str = "t", *, min_size: int = 2, max_size: int = 8) -> st.SearchStrategy[TaskReport]:
    """Draw a task with one metric, ``acc,none``, and the column it rests on.

    >>> from hypothesis import find
    >>> find(task_reports("a"), lambda task: True).name
    'a'
    """

    def report(one: Column) -> TaskReport:
        closed = aggregate_metric(AGGREGATIONS["mean"], one)
        key = MetricKey("acc")
        return TaskReport(name=name, estimates=((key, closed),), columns=((key, one),), n_docs=len(one))

    return columns(min_size=min_size, max_size=max_size, unscored=False).map(report)


@st.composite
def group_trees(
    draw: st.DrawFn, metrics: tuple[GroupMetric, ...] = (GroupMetric("acc"),), names: str = "abcd"
) -> Group[TaskReport]:
    """Draw a group of groups over a few tasks; a task may be reached by several paths, a group's name occurs once.

    >>> from hypothesis import given, settings
    >>> from evalcore.groups import report_groups
    >>> @settings(max_examples=20, deadline=None)
    ... @given(group_trees())
    ... def check(tree):
    ...     assert 1 <= len(tree.children) <= 3
    ...     report_groups(tree)
    >>> check()
    """
    tasks = {name: Leaf(name, draw(task_reports(name))) for name in names}
    serial = iter(range(10**6))

    def node(depth: int) -> Tree[TaskReport]:
        if depth == 0 or draw(st.booleans()):
            return tasks[draw(st.sampled_from(names))]
        return group(depth)

    def group(depth: int) -> Group[TaskReport]:
        children: dict[str, Tree[TaskReport]] = {}
        for _ in range(draw(st.integers(1, 3))):
            child = node(depth - 1)
            children.setdefault(child.name, child)
        return Group(f"G{next(serial)}", tuple(children.values()), metrics)

    return group(3)
