"""A task's scores over some of its documents. Merging is associative and commutative."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, merge_all, unscored_part
from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.task import MetricKey, MetricSpec, Task

__all__ = ["Provenance", "Scored", "ScoredColumn", "column_key", "merge_scored", "whole_columns"]


class Provenance(Struct, frozen=True):
    """What a pipeline left of each document: its final replies and the rule each came by (-1: a fallback)."""

    filter: str
    keys: Array
    offsets: Array
    replies: tuple[object, ...]
    rules: Array


class ScoredColumn(Struct, frozen=True):
    """A column and the metric it was asked for as (None: emitted without being declared).

    ``noise`` has two numbers per document: the variance of its score over other replies (NaN: not known), and how many
    replies the score rests on.
    """

    key: MetricKey
    column: Column
    spec: MetricSpec | None
    reducer: str | None = None
    repeats: tuple[int, int] | None = None
    traits: tuple[str, ...] = ()
    noise: Column | None = None


class Scored(Struct, frozen=True):
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
        for one in self.columns:
            if str(one.key) == wanted:
                return one.column
        raise unknown("metric", wanted, [str(one.key) for one in self.columns], place(self.task.name))


def merge_scored(parts: Iterable[Scored]) -> Scored:
    """Scores of any split of a task's documents, in any order, as one."""
    given = list(parts)
    _refuse_mixtures(given)
    pieces: dict[MetricKey, list[ScoredColumn]] = {}
    kept: dict[str, list[Provenance]] = {}
    for part in given:
        for one in part.columns:
            pieces.setdefault(one.key, []).append(one)
        for where in part.provenance:
            kept.setdefault(where.filter, []).append(where)
    return Scored(
        given[0].task,
        _in_order(given[0].task, map(_merged, pieces.values())),
        tuple(found[0] if len(found) == 1 else _joined(found) for found in kept.values()),
        given[0].tables,
        tuple(sorted({pair for part in given for pair in part.clusters})),
    )


def _refuse_mixtures(parts: Sequence[Scored]) -> None:
    """Scores merge only if they were made by one recipe."""
    names = sorted({part.task.name for part in parts})
    if len(names) != 1:
        raise EvalError(f"expected scores of one task, got {names}")
    tables = sorted({part.tables for part in parts})
    if len(tables) != 1:
        raise EvalError(f"expected scores made with the same tables, got {tables} - at {names[0]}")
    first = parts[0].task
    for part in parts:
        for name in first.__struct_fields__:
            if getattr(part.task, name) != getattr(first, name):
                raise EvalError(f"expected scores made by one recipe, got two different {name} - at {names[0]}")


def _merged(found: Sequence[ScoredColumn]) -> ScoredColumn:
    first = found[0]
    spans = [one.repeats for one in found if one.repeats is not None]
    spread = (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None
    reducer = next((one.reducer for one in found if one.reducer is not None), None)
    traits = tuple(sorted({trait for one in found for trait in one.traits}))
    noises = [one.noise for one in found if one.noise is not None]
    noise = merge_all(noises) if noises else None
    return ScoredColumn(first.key, merge_all(one.column for one in found), first.spec, reducer, spread, traits, noise)


def _in_order(task: Task, columns: Iterable[ScoredColumn]) -> tuple[ScoredColumn, ...]:
    """Declared metrics as they were declared, pipeline by pipeline; the others after them by name."""
    pipelines = [pipeline.name for pipeline in task.filters]

    def place_of(one: ScoredColumn) -> tuple[int, bool, int, str]:
        pipeline = pipelines.index(one.key.filter) if one.key.filter in pipelines else 0
        specs = next((p.metrics for p in task.filters if p.name == one.key.filter and p.metrics), task.metrics)
        declared = one.spec is not None and one.spec in specs
        return pipeline, not declared, specs.index(one.spec) if declared and one.spec else 0, _reduced_name(one)

    return tuple(sorted(columns, key=place_of))


def _reduced_name(one: ScoredColumn) -> str:
    reducers = one.spec.reducers if one.spec is not None else ()
    return f"{reducers.index(one.reducer):04d}" if one.reducer in reducers else one.key.metric


def _joined(found: Sequence[Provenance]) -> Provenance:
    """Provenance of any split, sorted by document; the same document twice collapses."""
    rows = {
        int(key): (one.replies[a:b], one.rules.data[a:b].tolist())
        for one in found
        for key, a, b in zip(
            one.keys.ints.tolist(), one.offsets.ints[:-1].tolist(), one.offsets.ints[1:].tolist(), strict=True
        )
    }
    keys = sorted(rows)
    counts = [len(rows[key][0]) for key in keys]
    return Provenance(
        found[0].filter,
        Array(np.array(keys, np.int64)),
        Array(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])),
        tuple(value for key in keys for value in rows[key][0]),
        Array(np.array([rule for key in keys for rule in rows[key][1]], np.int8)),
    )


def column_key(metric: str, reducer: str | None, reducers: Sequence[str | None], pipeline: str) -> MetricKey:
    """A metric's key: with its reducer where there are several."""
    return MetricKey(f"{metric}@{reducer}" if len(reducers) > 1 else metric, pipeline)


def whole_columns(scored: Scored) -> tuple[ScoredColumn, ...]:
    """The columns to close. Metrics that one function gave under several names share the documents it failed on."""
    by_own = {(one.key, one.reducer): one for one in scored.columns if one.spec is not None}
    out: list[ScoredColumn] = []
    parents: set[MetricKey] = set()
    for one in scored.columns:
        parent = by_own.get((_own_key(one), one.reducer)) if one.spec is not None else None
        if parent is None or parent.key == one.key:
            out.append(one)
        else:
            parents.add(parent.key)
            out.append(replace(one, column=merge_all((one.column, unscored_part(parent.column)))))
    return tuple(one for one in out if one.key not in parents or one.column.scored.any())


def _own_key(one: ScoredColumn) -> MetricKey:
    spec = one.spec or MetricSpec(one.key.metric)
    return column_key(spec.name, one.reducer, spec.reducers, one.key.filter)
