"""Scores that stand as they were recorded, in place of what only a task's own code could score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import pmap

from evalcore.core.columns import Column, column, take_rows
from evalcore.core.records import MetricKey, MetricSpec, Task
from evalcore.core.scored import Scored, ScoredColumn
from evalcore.core.tables import METRICS
from evalcore.shell.answers.record import LogTask
from evalcore.shell.rescoring.grouping import recorded_name
from evalcore.shell.rescoring.verdicts import RECORDED

if TYPE_CHECKING:
    from evalcore.shell.recorded.logs import LogTable

__all__ = ["Kept", "needs_code", "paths_of", "read_kept", "with_kept", "without"]

Plain = Mapping[str, object]
OWN_CODE = (
    "scored by code of the task's own, which no log holds; what was recorded stands "
    "(--task FILE --trust CODE scores it again)"
)
OLD_SCORES = "taken as recorded when this was written; what was recorded stands"
BYPASS = "bypass"
"""The metric of a task that measures nothing."""


def needs_code(task: Task, coded: Iterable[str]) -> frozenset[str]:
    """The metrics of a recorded task that only code could score or close."""
    specs = [*task.metrics, *(spec for one in task.filters for spec in one.metrics or ())]
    known = METRICS.get(task.output_type, pmap())
    lost = {spec.name for spec in specs if task.process_results is not None or spec.name not in known}
    return frozenset(lost | set(coded))


class Kept(Struct, frozen=True):
    """Metrics of a task whose recorded values stand: their columns, and the task as it is with them."""

    task: Task
    columns: tuple[ScoredColumn, ...]


def without(task: Task, names: frozenset[str]) -> Task:
    """The task without these metrics and without the code that gives them; with nothing left, it measures nothing.

    >>> task = Task("t", "generate_until", (MetricSpec("own"),))
    >>> [spec.name for spec in without(task, frozenset(["own"])).metrics]
    ['bypass']
    """
    filters = tuple(replace(one, metrics=_others(one.metrics, names) if one.metrics else None) for one in task.filters)
    return replace(task, metrics=_others(task.metrics, names), filters=filters, process_results=None)


def _others(metrics: Iterable[MetricSpec], names: frozenset[str]) -> tuple[MetricSpec, ...]:
    left = tuple(spec for spec in metrics if spec.name not in names)
    return left or (MetricSpec(BYPASS, reducers=("first",)),)


def with_kept(scored: Scored, kept: Kept | None) -> Scored:
    """The scores of some documents with those that stand as they were recorded."""
    if kept is None:
        return scored
    measured = tuple(one for one in scored.columns if one.key.metric != BYPASS)
    keys = {key for one in scored.columns for key in one.column.keys.ints.tolist()}
    here = tuple(replace(one, column=_rows_of(one.column, keys)) for one in kept.columns)
    return replace(scored, task=replace(kept.task, name=scored.task.name), columns=(*measured, *here))


def _rows_of(given: Column, keys: Set[int]) -> Column:
    at = np.flatnonzero([key in keys for key in given.keys.ints.tolist()])
    reasons = {key: why for key, why in given.reasons if key in keys}
    return column(
        given.keys.ints[at].tolist(), take_rows(given.rows, at), given.status.data[at].astype(np.uint8), reasons
    )


def read_kept(log: LogTask, task: Task, names: frozenset[str]) -> tuple[Kept, tuple[str, ...]]:
    """The recorded scores of these metrics as columns, each verified by the recorded number; and what to say of it."""
    from evalcore.shell.recorded.columns import close_columns
    from evalcore.shell.recorded.logs import read_log
    from evalcore.shell.recorded.tasks import filter_names, recorded_task

    row = _row(log)
    named = filter_names(log.config, row)
    table = merge_logs([read_log(path, named) for path in paths_of(log)])
    recorded = recorded_task(log.name, log.config, table.output_type, table.filters)
    closed = close_columns(recorded, table, row)
    found = tuple(one for one in closed.columns if (one.spec.name if one.spec else one.key.metric) in names)
    why = OLD_SCORES if log.config.get("process_results") == RECORDED else OWN_CODE
    return Kept(task, found), (f"{log.name}: {', '.join(sorted(names))}: {why}", *closed.warnings)


def paths_of(log: LogTask) -> tuple[Path, ...]:
    """Every file that a task is read from."""
    return log.paths or (log.path,)


def merge_logs(tables: Sequence[LogTable]) -> LogTable:
    """The shards of a log as one: what each says of its own documents."""
    from evalcore.shell.recorded.logs import Cells

    first = tables[0]
    if len(tables) == 1:
        return first
    filters: dict[str, dict[int, int]] = {}
    cells: dict[MetricKey, Cells] = {}
    for table in tables:
        for name, rows in table.filters.items():
            filters.setdefault(name, {}).update(rows)
        for key, one in table.cells.items():
            into = cells.setdefault(key, Cells({}, {}, {}))
            into.scores.update(one.scores)
            into.unscored.update(one.unscored)
            into.noise.update(one.noise)
    documents = tuple(row for table in tables for row in table.documents)
    texts = {key: text for table in tables for key, text in table.texts.items()}
    return replace(first, documents=documents, texts=texts, filters=filters, cells=cells)


def _row(log: LogTask) -> Plain:
    rows = log.results.get("results")
    row = rows.get(recorded_name(log)) if isinstance(rows, Mapping) else None
    return row if isinstance(row, Mapping) else {}
