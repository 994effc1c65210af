"""Scores that a log has already: taken as they are, or in place of what only a task's own code could score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import pmap

from evalcore.core.columns import Column, column, take_rows
from evalcore.core.errors import unknown
from evalcore.core.records import GENERATE_UNTIL, MetricKey, MetricSpec, Task
from evalcore.core.scored import Scored, ScoredColumn
from evalcore.core.tables import METRICS
from evalcore.shell.answers.record import Logged, LogTask
from evalcore.shell.rescoring.grouping import recorded_name
from evalcore.shell.rescoring.rules import Rules

__all__ = ["Kept", "name_scores", "needs_code", "read_kept", "verdict_task", "verdicts_of", "with_kept", "without"]

Plain = Mapping[str, object]
BYPASS = "bypass"
"""The metric of a task that measures nothing."""


def verdict_task(task: Task, rules: Rules) -> Task:
    """A task that measures by recorded scores: its own metrics of these names, else plain ones."""
    known = {spec.name: spec for spec in task.metrics}
    specs = [known.get(name) or MetricSpec(name, "mean") for name in rules.scores]
    metrics = tuple(replace(one, reducers=rules.reducers or one.reducers, function=None) for one in specs)
    return replace(task, output_type=GENERATE_UNTIL, metrics=metrics, filters=(), process_results=give_scores)


def give_scores(doc: dict[str, object], results: list[object]) -> Plain:
    """A reply that is its own scores."""
    found = results[0]
    return found if isinstance(found, Mapping) else {}


def name_scores(one: Logged) -> tuple[str, ...]:
    """The metrics that a document has recorded scores for.

    >>> name_scores(Logged(doc_id=0, doc=b"{}", gold=None, scores={"acc,none": 1, "acc,strict": 0, "correct": [1]}))
    ('acc', 'correct')
    """
    return tuple(dict.fromkeys(_metric(key) for key in one.scores))


def verdicts_of(one: Logged, names: Sequence[str]) -> list[dict[str, object]]:
    """The recorded scores of a document, one mapping per repeat.

    >>> row = Logged(doc_id=0, doc=b"{}", gold=None, replies=(("a", "b"),), scores={"correct,none": [True, False]})
    >>> verdicts_of(row, ["correct"])
    [{'correct': True}, {'correct': False}]
    """
    found = {name: _values(one, name) for name in names}
    most = max(map(len, found.values()))
    return [{name: values[at] for name, values in found.items() if at < len(values)} for at in range(most)]


def _values(one: Logged, name: str) -> Sequence[object]:
    key = next((key for key in one.scores if _metric(key) == name), None)
    if key is None:
        raise unknown("recorded score", name, name_scores(one), f" - at doc {one.doc_id}")
    value, replies = one.scores[key], len(one.replies[0]) if one.replies else 0
    several = isinstance(value, list | tuple) and (len(value) == replies > 1 or not replies)
    return value if several and isinstance(value, list | tuple) else (value,)


def _metric(key: str) -> str:
    found = MetricKey.parse(key)
    return found.metric if found is not None else key


# --- in place of code ---------------------------------------------------------------------------------------------


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

    >>> task = Task("t", GENERATE_UNTIL, (MetricSpec("own"),), process_results=give_scores)
    >>> [spec.name for spec in without(task, frozenset(["own"])).metrics]
    ['bypass']
    """
    filters = tuple(replace(one, metrics=_others(one.metrics, names) if one.metrics else None) for one in task.filters)
    measured = _others(task.metrics, names) or (MetricSpec(BYPASS, reducers=("first",)),)
    return replace(task, metrics=measured, filters=filters, process_results=None)


def _others(metrics: Iterable[MetricSpec], names: frozenset[str]) -> tuple[MetricSpec, ...]:
    return tuple(spec for spec in metrics if spec.name not in names)


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
    table = read_log(log.path, filter_names(log.config, row))
    recorded = recorded_task(log.name, log.config, table.output_type, table.filters)
    closed = close_columns(recorded, table, row)
    found = tuple(one for one in closed.columns if (one.spec.name if one.spec else one.key.metric) in names)
    told = f"{', '.join(sorted(names))}: scored by code of the task's own, which no log holds; what was recorded stands"
    return Kept(task, found), (f"{log.name}: {told} (--task FILE --trust CODE scores it again)", *closed.warnings)


def _row(log: LogTask) -> Plain:
    rows = log.results.get("results")
    row = rows.get(recorded_name(log)) if isinstance(rows, Mapping) else None
    return row if isinstance(row, Mapping) else {}
