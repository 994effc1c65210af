"""Reports in lmms-eval's schema: its six mappings, and the rows of its tasks and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evalcore.core.aggregate.inference import Inference
from evalcore.core.lm_eval.result_file import (
    higher_is_better,
    list_shown,
    num_fewshot,
    write_estimates,
    write_pair,
    write_size,
)
from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.pipeline import close_column
from evalcore.core.records.column import Column
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.row import Floats
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.influence import CR2

Plain = dict[str, object]
Clusters = Mapping[int, int]
Numbers = tuple[Column | None, Clusters | None]
"""The numbers in a metric's scores, if it has any, and the cluster of each document, if it is known."""

OWN = "evalcore_stderr"
"""The key of evalcore's own numbers in a row. lmms-eval's tables and groups pass over what is called an error."""

UNAGGREGATED = " "
"""lmms-eval's key and value in the row of a group without numbers, which keeps it out of the table of groups."""


def lmms_eval_results(
    report: Report, samples: Mapping[str, Sequence[Plain]] | None = None, *, rank: int = 0
) -> tuple[Plain, ...]:
    """Write lmms-eval's six mappings (results, samples, configs, versions, num_fewshot, higher_is_better).

    Ranks other than 0 get empty ones. Intervals, counts and reasons stand under the key ``evalcore_stderr`` of a row.
    """
    if rank != 0:
        return ({}, {}, {}, {}, {}, {})
    rows: Plain = {task.name: write_task_row(task, _list_numbers(task)) for task in report.tasks}
    return (
        {**rows, **write_group_rows(report)},
        {name: list(found) for name, found in (samples or {}).items()},
        {task.name: thaw(task.config) for task in report.tasks},
        {**{task.name: task.version for task in report.tasks}, **{g.name: g.version for g in report.groups}},
        dict(num_fewshot(report)),
        dict(higher_is_better(report)),
    )


def write_task_row(task: TaskReport, numbers: Mapping[MetricKey, Numbers]) -> Plain:
    """Write a task's row: each value, its error, and the two errors of the mean of its numbers."""
    row: Plain = {"alias": task.alias or task.name}
    for key, estimate in task.estimates:
        row |= dict(write_pair(key, estimate))
    forms = {key: estimate.spread.form.name for key, estimate in task.estimates}
    for key, known in numbers.items():
        for kind, stderr in zip(("clt", "clustered"), find_mean_errors(*known, forms.get(key, CR2.name)), strict=True):
            row[f"{key.metric}_stderr_{kind},{key.filter}"] = "N/A" if stderr is None else stderr
    own = write_estimates(Report(tasks=(task,)))[task.name]
    return {**row, **write_size(task, "samples"), OWN: own} if own else row


def write_group_rows(report: Report) -> dict[str, Plain]:
    """Write the rows of a report's groups; those without an aggregation list bear lmms-eval's mark."""
    own, shown = write_estimates(report), list_shown(report)
    return {group.name: _write_group(group, own[group.name], group.name in shown) for group in report.groups}


def _write_group(group: GroupReport, own: Mapping[str, Plain], shown: bool) -> Plain:
    if not shown:
        return {"alias": group.alias, UNAGGREGATED: UNAGGREGATED}
    numbers = {text: value for key, estimate in group.estimates for text, value in write_pair(key, estimate)}
    return {"alias": group.alias, **numbers, **write_size(group, "samples"), **({OWN: own} if own else {})}


def find_mean_errors(
    numbers: Column | None, clusters: Clusters | None, form: str = CR2.name
) -> tuple[float | None, float | None]:
    """Find the error of a mean with documents taken as independent, and with clusters taken together.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import build_column
    >>> find_mean_errors(build_column(range(4), Floats(Array([1.0, 1.0, 0.0, 0.0]))), {0: 7, 1: 7, 2: 8, 3: 8})
    (0.28867513459481287, 0.5)
    """
    if numbers is None:
        return None, None
    alone = close_column(numbers).stderr
    if clusters is None:
        return alone, None
    codes = np.array([clusters[key] for key in numbers.keys.ints.tolist()], np.int64)
    return alone, close_column(numbers, clusters=codes, inference=Inference(stderr=form)).stderr


def _list_numbers(task: TaskReport) -> dict[MetricKey, Numbers]:
    columns = dict(task.columns)
    return {key: _find_numbers(columns.get(key), estimate) for key, estimate in task.estimates}


def _find_numbers(column: Column | None, estimate: Estimate) -> Numbers:
    if column is None or not isinstance(column.rows, Floats):
        return None, None
    keys, codes = estimate.spread.keys, estimate.spread.clusters
    if keys is None or codes is None:
        return column, None
    named = dict(zip(keys.ints.tolist(), codes.ints.tolist(), strict=True))
    return column, {key: named.get(key, 0) for key in column.keys.ints.tolist()}
