"""Scores that stand as they were recorded, in place of what only a task's own code could score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.lm_eval.result_file import BYPASS
from evalcore.core.lm_eval.sample_log import DocumentRows
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import freeze_options
from evalcore.core.records.row import take_rows
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.tables import EVALCORE, Tables, first_or_all, known_metrics
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import RECORDED, LogTask
from evalcore.shell.score.groups import find_recorded_count
from evalcore.shell.score.labels import find_recorded_name

Plain = Mapping[str, object]
OWN_CODE = (
    "scored by code of the task's own, which no log holds; what was recorded stands "
    "(--task FILE --trust CODE scores it again)"
)
OLD_SCORES = "taken as recorded when this was written; what was recorded stands"


def find_coded(task: Task, coded: Iterable[str], tables: Tables) -> frozenset[str]:
    """Find the metrics of a recorded task that only code could score or close."""
    specs = [*task.metrics, *(spec for one in task.filters for spec in one.metrics or ())]
    known = known_metrics(task.output_type, tables)
    lost = {spec.name for spec in specs if task.process_results is not None or spec.name not in known}
    return frozenset(lost | set(coded))


class Kept(Struct, frozen=True):
    """Metrics of a task whose recorded values stand: their columns, and the task as it is with them.

    ``unclosed`` are scores by document that only code could make a number of: they stay in the rows of a log.
    """

    task: Task
    columns: tuple[ScoredColumn, ...]
    unclosed: Mapping[MetricKey, Mapping[int, object]] = FrozenDict()


def drop_metrics(task: Task, names: frozenset[str]) -> Task:
    """Drop metrics from a task, and the code that gives them; a task without metrics measures nothing.

    >>> task = Task("t", "generate_until", (MetricSpec("own"),))
    >>> [spec.name for spec in drop_metrics(task, frozenset(["own"])).metrics]
    ['bypass']
    """
    named = task.filters or (
        first_or_all(task, EVALCORE),
    )  # what is left may leave replies to a reducer where the task did not
    filters = tuple(replace(one, metrics=_others(one.metrics, names) if one.metrics else None) for one in named)
    return replace(task, metrics=_others(task.metrics, names), filters=filters, process_results=None)


def _others(metrics: Iterable[MetricSpec], names: frozenset[str]) -> tuple[MetricSpec, ...]:
    left = tuple(spec for spec in metrics if spec.name not in names)
    return left or (MetricSpec(BYPASS, reducers=("first",)),)


def add_kept(scored: Scored, kept: Kept | None, tables: Tables) -> Scored:
    """Add recorded scores that stand to the scores of some documents."""
    if kept is None:
        return scored
    measured = tuple(one for one in scored.columns if aggregation_of(scored.task, one, tables).measures)
    keys = {key for one in scored.columns for key in one.column.keys.ints.tolist()}
    here = tuple(replace(one, column=_rows_of(one.column, keys)) for one in kept.columns)
    return replace(scored, task=replace(kept.task, name=scored.task.name), columns=(*measured, *here))


def add_unclosed(document: DocumentRows, kept: Kept) -> DocumentRows:
    """Add recorded scores without a number to the rows of a document.

    >>> kept = Kept(Task("t", "generate_until"), (), {MetricKey("own"): {0: ["a", "b"]}})
    >>> document = DocumentRows({"doc_id": 0}, [{"filter": "none", "metrics": ["acc"], "acc": 1.0}])
    >>> add_unclosed(document, kept).rests
    [{'filter': 'none', 'metrics': ['acc', 'own'], 'acc': 1.0, 'own': ['a', 'b']}]
    """
    head, rests, _ = document
    at, out = head["doc_id"], list[dict[str, object]]()
    for rest in rests:
        found = {
            key.metric: one[at]
            for key, one in kept.unclosed.items()
            if key.filter == rest["filter"] and isinstance(at, int) and at in one
        }
        names = rest["metrics"]
        out.append({**rest, "metrics": [*(names if isinstance(names, list) else ()), *found], **found})
    return DocumentRows(head, out)


def _rows_of(given: Column, keys: Set[int]) -> Column:
    at = np.flatnonzero([key in keys for key in given.keys.ints.tolist()])
    reasons = {key: why for key, why in given.reasons if key in keys}
    return build_column(
        given.keys.ints[at].tolist(), take_rows(given.rows, at), given.status.data[at].astype(np.uint8), reasons
    )


def read_kept(log: LogTask, task: Task, names: frozenset[str], tables: Tables) -> tuple[Kept, tuple[str, ...]]:
    """Read the recorded scores of metrics as columns, each verified by the recorded number; also return warnings."""
    from evalcore.shell.logs.lm_eval.names import list_filters
    from evalcore.shell.logs.runs.columns import close_columns
    from evalcore.shell.logs.runs.log_table import read_log_table
    from evalcore.shell.logs.runs.tasks import build_recorded_task

    row = find_part(log.results, "results", find_recorded_name(log))
    named = list_filters(log.config, row)
    table = read_log_table(log.paths, named)
    recorded = build_recorded_task(log.name, log.config, table.output_type, table.filters, tables=tables)
    whole = len(log.paths) == 1 or find_recorded_count(log, "effective") == len(table.documents)
    closed = close_columns(recorded, table, row if whole else {})  # results of one shard are not those of all
    # a function may emit scores under names that nothing declares
    found = tuple(one for one in closed.columns if one.spec is None or one.spec.name in names)
    closing = {one.key for one in closed.columns}
    unclosed = FrozenDict((key, cells.scores) for key, cells in table.cells.items() if key not in closing)
    why = OLD_SCORES if log.config.get("process_results") == RECORDED else OWN_CODE
    stand = {*names, *(one.key.metric for one in found if one.spec is None)}
    told = (f"{log.name}: {', '.join(sorted(stand))}: {why}", *closed.warnings)
    return Kept(_as_told(task, recorded.task, log.config), found, unclosed), told


def _as_told(task: Task, recorded: Task, config: Plain) -> Task:
    """The task with its log's config, where code stands as text, so that what is written is read in the same way.

    >>> plain = Task("t", "generate_until", config=freeze_options(task="t", repeats=1))
    >>> told = _as_told(plain, plain, {"task": "t", "repeats": 1, "process_results": "def own(doc, results): ..."})
    >>> told.config["process_results"]
    'def own(doc, results): ...'
    """
    changed = {key: value for key, value in task.config.items() if recorded.config.get(key) != value}
    return replace(task, config=freeze_options({**config, **changed, "task": task.name}))
