"""lmms-eval's lists of scores as columns: any number, any padding, each document once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, nan

import numpy as np
from msgspec.structs import replace

from evalcore.adapters.lmms_eval.host import Key, LmmsOutput, Row
from evalcore.adapters.lmms_eval.keys import RankPlace, group_rows, number_scores
from evalcore.core.aggregate.clusters import cluster_codes
from evalcore.core.answers.table import as_number
from evalcore.core.metrics.process_results import NoValue, collected
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, build_column, merge_all
from evalcore.core.records.errors import place
from evalcore.core.records.outcome import NOT_EMITTED, OK, UNSCORABLE
from evalcore.core.records.request import GENERATE_UNTIL, freeze_options
from evalcore.core.records.row import Floats, as_objects, blank_rows
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Task
from evalcore.core.repeats.reduce import measure_noise, reduce_repeats


def read_scores(output: LmmsOutput, where: RankPlace, *, singletons: bool = False) -> Scored:
    """Read a rank's scores of a task. A document that occurs twice in its lists counts once."""
    filters = list(dict.fromkeys(name for _, name in output.sample_metrics))
    metrics = list(dict.fromkeys(metric for metric, _ in output.sample_metrics))
    higher, config = output.task.higher_is_better(), dict(output.task_config or {})
    specs = {one: MetricSpec(one, "mean", (), higher.get(one)) for one in metrics}
    shots, alias = output.n_shot, config.get("task_alias")
    task = Task(
        output.task_name,
        GENERATE_UNTIL,
        tuple(specs.values()),
        tuple(map(Pipeline, filters)),
        alias=alias if isinstance(alias, str) else None,
        version=output.version,
        num_fewshot=shots if isinstance(shots, int) else 0,
        config=freeze_options(task=output.task_name),
    )
    logged = group_rows(output, where)
    placed = {
        key: list(zip(number_scores(output, key, len(items), logged.get(key[1]), where), items, strict=True))
        for key, items in output.sample_metrics.items()
    }
    columns = tuple(
        ScoredColumn(MetricKey(*key), _build_scores(task.name, scores), specs[key[0]]) for key, scores in placed.items()
    )
    columns += tuple(_read_repeats(output, placed))
    return Scored(task, columns, clusters=_find_clusters(output, placed, logged, singletons))


def _build_scores(task: str, scores: Sequence[tuple[int | None, object]]) -> Column:
    """Build the column of a metric, by document."""
    keys = [key for key, _ in scores if key is not None]
    marks = collected([_check_score(item) for key, item in scores if key is not None])
    status = np.array([marks.missing.get(at, (OK, ""))[0] for at in range(len(keys))], np.uint8)
    reasons = {keys[at]: why + place(task, keys[at]) for at, (_, why) in marks.missing.items()}
    return build_column(keys, marks.rows, status, reasons)


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


def _read_repeats(
    output: LmmsOutput, placed: Mapping[Key, Sequence[tuple[int | None, object]]]
) -> Iterator[ScoredColumn]:
    """Read the scores of every reply to a question, if lmms-eval has them: their mean, and the noise of drawing them.

    Its consensus of scores is not made here: a vote is on answers, which are not known any more (E32).
    """
    given: Mapping[Key, Sequence[Sequence[object]]] = getattr(output, "per_sample_metrics", {})
    for (metric, name), items in given.items():
        keys = [key for key, _ in placed[metric, name]]
        repeats = [
            (key, list(map(read_number, scores))) for key, scores in zip(keys, items, strict=True) if key is not None
        ]
        if not repeats or any(score is None for _, scores in repeats for score in scores):
            continue
        spec = MetricSpec(f"{metric}_expected_accuracy", "mean", ("mean",), output.task.higher_is_better().get(metric))
        turns = [
            _build_scores(output.task_name, [(key, scores[at]) for key, scores in repeats if at < len(scores)])
            for at in range(max(len(scores) for _, scores in repeats))
        ]
        spread = min(len(scores) for _, scores in repeats), len(turns)
        mean, noise = reduce_repeats("mean", turns), measure_noise("mean", turns)
        yield ScoredColumn(MetricKey(spec.name, name), mean, spec, "mean", spread, noise=noise)


def _check_score(item: object) -> object:
    """Keep a score; a real number becomes a float, one that is not finite the reason."""
    if not isinstance(item, bool | int | float | np.number | np.bool_):
        return item
    value = as_number(item)
    return value if isfinite(value) else NoValue(UNSCORABLE, f"the score is {value}")


def read_number(item: object) -> float | None:
    """Read the number in a score of lmms-eval: itself, or what a dict has under ``score``.

    >>> read_number({"score": 1, "videoID": "v"}), read_number(np.float32(0.5)), read_number({"pred": "A"})
    (1.0, 0.5, None)
    """
    number = item.get("score") if isinstance(item, Mapping) else item
    value = as_number(number) if isinstance(number, bool | int | float | np.number | np.bool_) else nan
    return value if isfinite(value) else None


def read_numbers(column: Column) -> Column | None:
    """Read the numbers of a column; None if a score has none."""
    if isinstance(column.rows, Floats):
        return column
    here = column.scored
    values = [read_number(item) for item in as_objects(column.rows)]
    if any(value is None for value, ok in zip(values, here.tolist(), strict=True) if ok):
        return None
    numbers = Array(np.array([nan if value is None else value for value in values]))
    return build_column(column.keys.ints, Floats(numbers), column.status.data.astype(np.uint8), dict(column.reasons))


def _find_clusters(
    output: LmmsOutput,
    placed: Mapping[Key, Sequence[tuple[int | None, object]]],
    logged: Mapping[str, Sequence[Row]],
    singletons: bool,
) -> tuple[tuple[int, int], ...]:
    """Find the cluster of each document under the task's ``cluster_key``, in its scores or in the logged document."""
    field = (output.task_config or {}).get("cluster_key")
    if not isinstance(field, str):
        return ()
    docs: dict[int, object] = {int(str(row["doc_id"])): row.get("doc") for rows in logged.values() for row in rows}
    ids: dict[int, int | str | None] = {}
    for scores in placed.values():
        for key, item in scores:
            if key is not None and ids.get(key) is None:
                ids[key] = (
                    _read_id(item, field) if _read_id(item, field) is not None else _read_id(docs.get(key), field)
                )
    keys = sorted(ids)
    codes = cluster_codes([ids[key] for key in keys], keys=keys, singletons=singletons, task=output.task_name)
    return tuple(zip(keys, codes.tolist(), strict=True))


def _read_id(holder: object, field: str) -> int | str | None:
    value = holder.get(field) if isinstance(holder, Mapping) else None
    return value if isinstance(value, int | str) else None
