"""A task's scores over some of its documents. Merging is associative and commutative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, merge_all, unscored_part
from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.frozen_dict import ShallowRecord
from evalcore.core.records.request import Options
from evalcore.core.records.task import MetricKey, MetricSpec, Task


class Provenance(Struct, frozen=True):
    """The final replies of each document under a pipeline, and the rule behind each (-1: a fallback).

    ``listed``: a log shows those to each request as a list, for the pipeline took none of them.
    """

    filter: str
    keys: Array
    offsets: Array
    replies: tuple[object, ...]
    rules: Array
    listed: bool = False


class ScoredColumn(Struct, frozen=True):
    """A column and its declared metric (None: emitted without being declared).

    ``noise`` has two numbers per document: the variance of its score over other replies (NaN: unknown), and how many
    replies the score rests on.
    """

    key: MetricKey
    column: Column
    spec: MetricSpec | None
    reducer: str | None = None
    repeats: tuple[int, int] | None = None
    traits: tuple[str, ...] = ()
    noise: Column | None = None


class Scored(ShallowRecord, frozen=True):
    """A task's scores over some of its documents. Merging is associative and commutative."""

    task: Task
    columns: tuple[ScoredColumn, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    tables: str = "evalcore"
    clusters: tuple[tuple[int, int], ...] = ()

    def clusters_by_key(self) -> Mapping[int, int] | None:
        """Cluster codes by document, None if no document has a cluster."""
        return dict(self.clusters) or None

    def column(self, key: MetricKey | str) -> Column:
        wanted = str(key)
        for scored in self.columns:
            if str(scored.key) == wanted:
                return scored.column
        raise unknown("metric", wanted, [str(one.key) for one in self.columns], place(self.task.name))


def adopt_scores(scored: Scored, task: Task) -> Scored:
    """Give scores their own task back: functions that came back from a worker are copies, which compare unequal."""
    if scored.task is task:
        return scored
    known = {spec.name: spec for spec in task.metrics}
    below = {one.name: {spec.name: spec for spec in one.metrics} for one in task.filters if one.metrics}
    columns = (
        one if one.spec is None else replace(one, spec=below.get(one.key.filter, known).get(one.spec.name, one.spec))
        for one in scored.columns
    )
    return replace(scored, task=task, columns=tuple(columns))


def merge_scored(parts: Iterable[Scored]) -> Scored:
    """Merge scores of any split of a task's documents, in any order, by the same metrics or by different ones."""
    given = list(parts)
    if len(given) == 1:
        return replace(given[0], columns=_order_columns(given[0].task, given[0].columns))
    task = _unite_tasks(given)
    pieces: dict[MetricKey, list[ScoredColumn]] = {}
    kept: dict[str, list[Provenance]] = {}
    for part in given:
        for scored in part.columns:
            pieces.setdefault(scored.key, []).append(scored)
        for where in part.provenance:
            kept.setdefault(where.filter, []).append(where)
    return Scored(
        task,
        _order_columns(task, map(_merge_columns, pieces.values())),
        tuple(_join_provenance(kept[name], task) for name in sorted(kept, key=_order_names(task))),
        given[0].tables,
        tuple(sorted({pair for part in given for pair in part.clusters})),
    )


def _unite_tasks(parts: Sequence[Scored]) -> Task:
    """Unite the metrics of the parts' tasks; refuse to merge scores made by different recipes."""
    names = sorted({part.task.name for part in parts})
    if len(names) != 1:
        raise EvalError(f"expected scores of one task, got {names}")
    tables = sorted({part.tables for part in parts})
    if len(tables) != 1:
        raise EvalError(f"expected scores made with the same tables, got {tables} - at {names[0]}")
    first, tasks = parts[0].task, [part.task for part in parts]
    if all(task == first for task in tasks):
        return first
    tasks = [replace(task, config=_drop_lists(task.config)) for task in tasks]
    for name in first.__struct_fields__:
        if name not in UNITED and any(getattr(task, name) != getattr(tasks[0], name) for task in tasks):
            raise EvalError(f"expected scores made by one recipe, got two different {name} - at {names[0]}")
    where = place(names[0])
    metrics = _unite_named("metric", [task.metrics for task in tasks], where)
    pipelines = [[replace(one, metrics=None) for one in task.filters] for task in tasks]
    filters = tuple(
        replace(one, metrics=_unite_metrics(tasks, one.name, where))
        for one in _unite_named("pipeline", pipelines, where)
    )
    return replace(tasks[0], metrics=metrics, filters=filters)


UNITED = ("metrics", "filters")
"""What may differ between scorings that are united; their configs are united without the lists of these."""


def _drop_lists(config: Options) -> Options:
    return config.discard("metric_list").discard("filter_list")


class HasName(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=HasName)


def _unite_named(what: str, lists: Sequence[Sequence[N]], where: str) -> tuple[N, ...]:
    """Unite lists of entries by name, sorted where they differ, so that the order of parts does not matter."""
    if all(tuple(one) == tuple(lists[0]) for one in lists):
        return tuple(lists[0])
    known: dict[str, N] = {}
    for entry in (entry for one in lists for entry in one):
        if known.setdefault(entry.name, entry) != entry:
            raise EvalError(f"expected scores made by one recipe, got {what} {entry.name!r} by two{where}")
    return tuple(known[name] for name in sorted(known))


def _unite_metrics(tasks: Sequence[Task], name: str, where: str) -> tuple[MetricSpec, ...] | None:
    """Unite the metrics of one pipeline; those of the task where it gives the pipeline none of its own."""
    own = [(task, one) for task in tasks for one in task.filters if one.name == name]
    if not any(one.metrics for _, one in own):
        return None
    return _unite_named("metric", [one.metrics or task.metrics for task, one in own], where)


def _merge_columns(columns: Sequence[ScoredColumn]) -> ScoredColumn:
    first = columns[0]
    spec = next((one.spec for one in columns if one.spec is not None), None)
    spans = [one.repeats for one in columns if one.repeats is not None]
    spread = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
    reducer = next((one.reducer for one in columns if one.reducer is not None), None)
    traits = tuple(sorted({trait for one in columns for trait in one.traits}))
    noises = [one.noise for one in columns if one.noise is not None]
    noise = merge_all(noises) if noises else None
    return ScoredColumn(first.key, merge_all(one.column for one in columns), spec, reducer, spread, traits, noise)


def _order_names(task: Task) -> Callable[[str], tuple[int, str]]:
    """Order the names of pipelines as the task has them."""
    names = [pipeline.name for pipeline in task.filters]
    return lambda name: (names.index(name) if name in names else len(names), name)


def _order_columns(task: Task, columns: Iterable[ScoredColumn]) -> tuple[ScoredColumn, ...]:
    """Order columns: declared metrics as declared, pipeline by pipeline, then the others by name."""
    pipelines = [pipeline.name for pipeline in task.filters]

    def find_place(own: ScoredColumn) -> tuple[int, bool, int, str, str]:
        pipeline = pipelines.index(own.key.filter) if own.key.filter in pipelines else 0
        specs = next((p.metrics for p in task.filters if p.name == own.key.filter and p.metrics), task.metrics)
        declared = own.spec is not None and own.spec in specs
        at = specs.index(own.spec) if declared and own.spec else 0
        return pipeline, not declared, at, _name_reduced(own), own.key.metric

    return tuple(sorted(columns, key=find_place))


def _name_reduced(scored: ScoredColumn) -> str:
    reducers = scored.spec.reducer_names if scored.spec is not None else ()
    return f"{reducers.index(scored.reducer):04d}" if scored.reducer in reducers else scored.key.metric


def _join_provenance(parts: Sequence[Provenance], task: Task) -> Provenance:
    """Join provenance of any split, sorted by document; duplicates collapse, and must be the same."""
    if len(parts) == 1:
        return parts[0]
    keys = np.concatenate([one.keys.ints for one in parts])
    sizes = np.concatenate([np.diff(one.offsets.ints) for one in parts])
    replies: Sequence[object] = [reply for one in parts for reply in one.replies]
    rules = np.concatenate([one.rules.data for one in parts])
    if not (keys[1:] > keys[:-1]).all():
        order, starts = np.argsort(keys, kind="stable"), np.cumsum(sizes) - sizes
        again = keys[order[1:]] == keys[order[:-1]]
        for pair in zip(order[:-1][again].tolist(), order[1:][again].tolist(), strict=True):
            spans = [slice(starts[i], starts[i] + sizes[i]) for i in pair]
            if len({repr((replies[span], rules[span].tolist())) for span in spans}) > 1:
                where = place(task.name, int(keys[pair[0]]))
                raise EvalError(f"expected the same replies, got others under filter {parts[0].filter!r}{where}")
        order = order[np.append(True, ~again)]
        keys, starts, sizes = keys[order], starts[order], sizes[order]
        places = np.repeat(starts + sizes - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        replies, rules = [replies[i] for i in places.tolist()], rules[places]
    ends = Array(np.append(0, np.cumsum(sizes)))
    listed = any(one.listed for one in parts)
    return Provenance(parts[0].filter, Array(keys), ends, tuple(replies), Array(rules), listed)


def column_key(metric: str, reducer: str | None, reducers: Sequence[str | None], pipeline: str) -> MetricKey:
    """Build a metric's key, with its reducer if there are several."""
    return MetricKey(f"{metric}@{reducer}" if len(reducers) > 1 else metric, pipeline)


def whole_columns(scored: Scored) -> tuple[ScoredColumn, ...]:
    """List the columns to close. Metrics that one function emitted share the documents it failed on."""
    by_own = {(one.key, one.reducer): one for one in scored.columns if one.spec is not None}
    out: list[ScoredColumn] = []
    parents: set[MetricKey] = set()
    for own in scored.columns:
        parent = by_own.get((_build_own_key(own), own.reducer)) if own.spec is not None else None
        if parent is None or parent.key == own.key:
            out.append(own)
        else:
            parents.add(parent.key)
            out.append(replace(own, column=merge_all((own.column, unscored_part(parent.column)))))
    return tuple(one for one in out if one.key not in parents or one.column.scored.any())


def _build_own_key(scored: ScoredColumn) -> MetricKey:
    spec = scored.spec or MetricSpec(scored.key.metric)
    return column_key(spec.name, scored.reducer, spec.reducer_names, scored.key.filter)
