"""lmms-eval's lists of scores as columns: any number, any padding, each document once."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from msgspec.structs import replace

from evalcore.adapters.lmms_eval.host import LmmsOutput
from evalcore.adapters.lmms_eval.keys import RankPlace, group_rows, number_scores
from evalcore.adapters.lmms_eval.numbers import get_score_key
from evalcore.adapters.lmms_eval.repeats import read_repeats
from evalcore.core.answers.table import as_number
from evalcore.core.metrics.process_results import NoValue, collected
from evalcore.core.records.column import Column, build_column, merge_all
from evalcore.core.records.errors import place
from evalcore.core.records.outcome import NOT_EMITTED, OK, UNSCORABLE
from evalcore.core.records.request import GENERATE_UNTIL, freeze_options
from evalcore.core.records.row import blank_rows
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Task


def read_scores(output: LmmsOutput, where: RankPlace, *, singletons: bool = False) -> Scored:
    """Read a rank's scores of a task. A document that occurs twice in its lists counts once."""
    task = _read_task(output, singletons)
    specs = {spec.name: spec for spec in task.metrics}
    logged = group_rows(output, where)
    columns: list[ScoredColumn] = []
    for key, items in output.sample_metrics.items():
        documents = number_scores(output, key, len(items), logged.get(key[1]), where)
        column = _build_scores(task.name, list(zip(documents, items, strict=True)))
        columns += [ScoredColumn(MetricKey(*key), column, specs[key[0]]), *read_repeats(output, key, documents, where)]
    return Scored(task, tuple(columns))


def _read_task(output: LmmsOutput, singletons: bool) -> Task:
    filters = dict.fromkeys(name for _, name in output.sample_metrics)
    metrics = dict.fromkeys(metric for metric, _ in output.sample_metrics)
    higher, config = output.task.higher_is_better(), output.task_config or {}
    alias, shots, cluster_key = config.get("task_alias"), output.n_shot, config.get("cluster_key")
    return Task(
        output.task_name,
        GENERATE_UNTIL,
        tuple(MetricSpec(one, "mean", (), higher.get(one)) for one in metrics),
        tuple(map(Pipeline, filters)),
        alias=alias if isinstance(alias, str) else None,
        version=output.version,
        num_fewshot=shots if isinstance(shots, int) else 0,
        config=freeze_options(
            task=output.task_name,
            score_key=get_score_key(config),
            singletons=singletons,
            **({"cluster_key": cluster_key} if isinstance(cluster_key, str) else {}),
        ),
    )


def _build_scores(task: str, scores: Sequence[tuple[int | None, object]]) -> Column:
    """Build the column of a metric, by document."""
    keys = [key for key, _ in scores if key is not None]
    marks = collected([_check_score(item) for key, item in scores if key is not None])
    status = np.array([marks.missing.get(at, (OK, ""))[0] for at in range(len(keys))], np.uint8)
    reasons = {keys[at]: why + place(task, keys[at]) for at, (_, why) in marks.missing.items()}
    return build_column(keys, marks.rows, status, reasons)


def _check_score(item: object) -> object:
    """Keep a score; a real number becomes a float, one that is not finite the reason."""
    if not isinstance(item, bool | int | float | np.number | np.bool_):
        return item
    value = as_number(item)
    return value if isfinite(value) else NoValue(UNSCORABLE, f"the score is {value}")


def count_silent(scored: Scored) -> Scored:
    """Add a row for every document: one that has some metric under a filter did not emit the others."""
    return replace(scored, columns=tuple(_add_silent(one, scored.columns) for one in scored.columns))


def _add_silent(one: ScoredColumn, columns: Sequence[ScoredColumn]) -> ScoredColumn:
    if one.reducer is not None:
        return one
    others = [other.column.keys.ints for other in columns if other.key.filter == one.key.filter]
    silent = np.setdiff1d(np.concatenate(others), one.column.keys.ints)
    added = build_column(silent, blank_rows(len(silent)), np.full(len(silent), NOT_EMITTED, np.uint8))
    return replace(one, column=merge_all((one.column, added)))
