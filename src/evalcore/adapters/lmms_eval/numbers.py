"""The numbers in lmms-eval's scores, and the clusters that the scores name."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan

import numpy as np

from evalcore.core.aggregate.clusters import cluster_codes
from evalcore.core.answers.table import as_number
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.outcome import NOT_EMITTED, OK
from evalcore.core.records.row import Floats, as_objects
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, Task

Config = Mapping[str, object]
Clusters = Mapping[int, int]


def get_score_key(config: Config | None) -> str:
    """The field of a score's number, if scores are dicts: the task's ``score_key``."""
    return str((config or {}).get("score_key", "score"))


def read_number(item: object, score_key: str = "score") -> float | None:
    """Read the number in a score of lmms-eval: itself, or what a dict has under the task's ``score_key``.

    >>> read_number({"score": 1, "videoID": "v"}), read_number(np.float32(0.5)), read_number({"pred": "A"})
    (1.0, 0.5, None)
    """
    number = item.get(score_key) if isinstance(item, Mapping) else item
    value = as_number(number) if isinstance(number, bool | int | float | np.number | np.bool_) else nan
    return value if isfinite(value) else None


def read_numbers(column: Column, score_key: str) -> Column | None:
    """Read the numbers of a column, without the scores that have none; None if no score has one."""
    if isinstance(column.rows, Floats):
        return column
    values = [read_number(item, score_key) if ok else None for item, ok in _list_items(column)]
    if all(value is None for value in values):
        return None
    numbers = Array(np.array([nan if value is None else value for value in values]))
    lost = np.isnan(numbers.floats) & (column.status.data == OK)
    status = np.where(lost, NOT_EMITTED, column.status.data).astype(np.uint8)
    return build_column(column.keys.ints, Floats(numbers), status, dict(column.reasons))


def read_clusters(column: Column, task: Task) -> Clusters | None:
    """Read the cluster of each document under the task's ``cluster_key``; None if no score names one."""
    field, singletons = task.config.get("cluster_key"), bool(task.config.get("singletons"))
    keys = column.keys.ints[column.scored].tolist()
    ids = [_read_id(item, field) for item, ok in _list_items(column) if ok]
    if all(one is None for one in ids):
        return None
    codes = cluster_codes(ids, keys=keys, singletons=singletons, task=task.name)
    return {**dict.fromkeys(column.keys.ints.tolist(), 0), **dict(zip(keys, codes.tolist(), strict=True))}


def find_clusters(scored: Scored) -> dict[MetricKey, Clusters | None]:
    """Find the clusters of each column; repeats have those of their documents under the same filter."""
    named = {one.key: read_clusters(one.column, scored.task) for one in scored.columns if one.reducer is None}
    return {one.key: named[one.key] if one.key in named else _borrow_clusters(one, named) for one in scored.columns}


def _borrow_clusters(one: ScoredColumn, named: Mapping[MetricKey, Clusters | None]) -> Clusters | None:
    keys, same = one.column.keys.ints.tolist(), [found for key, found in named.items() if key.filter == one.key.filter]
    return next((found for found in same if found is not None and all(key in found for key in keys)), None)


def _list_items(column: Column) -> list[tuple[object, bool]]:
    return list(zip(as_objects(column.rows), column.scored.tolist(), strict=True))


def _read_id(item: object, field: object) -> int | str | None:
    value = item.get(field) if isinstance(item, Mapping) and field is not None else None
    return value if value is None or isinstance(value, int | str) else repr(value)
