"""The columns of a recorded task, each closed once to verify that it reproduces the recorded number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import isclose

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.metrics.metric import keep_within
from evalcore.core.pipeline import report_task
from evalcore.core.records.column import EMPTY
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Resampling
from evalcore.core.records.request import Options, freeze_options
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.shell.logs.lm_eval.rows import read_float
from evalcore.shell.logs.runs.log_table import LogTable
from evalcore.shell.logs.runs.scores import Cells, are_numbers, build_rows, make_column, make_noise_column
from evalcore.shell.logs.runs.tasks import RecordedTask, find_spec

VALUES = Inference(resampling=Resampling(0))
"""Values without errors, which suffice to verify recorded numbers."""


class Closed(Struct, frozen=True):
    """The usable columns, their estimates, and warnings about the others."""

    columns: tuple[ScoredColumn, ...]
    estimates: tuple[tuple[MetricKey, Estimate], ...]
    warnings: tuple[str, ...]


def as_it_is(one: ScoredColumn) -> ScoredColumn:
    return one


def close_columns(
    recorded: RecordedTask,
    table: LogTable,
    row: Mapping[str, object],
    point: Callable[[ScoredColumn], ScoredColumn] = as_it_is,
) -> Closed:
    """Close every metric of a log; ``row`` is the task's row in the results, which verifies each.

    ``point`` gives a column its direction.
    """
    done: list[tuple[ScoredColumn, Estimate]] = []
    told: list[str] = []
    for key, cells in table.cells.items():
        stated = row.get(str(key))
        found = _close(recorded, key, cells, table, stated, point)
        if isinstance(found, str):
            told.append(f"{recorded.task.name}: {key} is left out: {found}")
            continue
        done.append(found)
        if found[1].value is None and isinstance(stated, int | float):
            told.append(f"{recorded.task.name}: {key} is {str(stated)[:60]} in the results, but has no value here")
    told += _unlogged(recorded.task, table, row)
    return Closed(tuple(one for one, _ in done), tuple((one.key, estimate) for one, estimate in done), tuple(told))


def same_number(value: float | None, stated: object) -> bool:
    """Whether two numbers are equal but for rounding.

    >>> same_number(0.1 + 0.2, 0.3), same_number(0.3, 0.31), same_number(None, 0.3), same_number(0.3, "N/A")
    (True, False, False, False)
    """
    given = read_float(stated)
    return value is not None and given is not None and isclose(value, given, rel_tol=1e-9, abs_tol=1e-12)


def _close(
    recorded: RecordedTask,
    key: MetricKey,
    cells: Cells,
    table: LogTable,
    stated: object,
    point: Callable[[ScoredColumn], ScoredColumn],
) -> tuple[ScoredColumn, Estimate] | str:
    """The first reading of logged scores that reproduces the recorded number, else the first; or why there is none."""
    task, (spec, reducer) = recorded.task, find_spec(recorded.task, key)
    coded = spec is not None and spec.name in recorded.coded
    absent = () if spec is None else _silent(table.filters[key.filter], cells)
    done: list[tuple[ScoredColumn, Estimate]] = []
    wrong = ""
    for named, given in _readings(recorded, key, spec, cells, coded):
        try:
            aggregation = aggregation_of(task, ScoredColumn(key, EMPTY, named), recorded.tables)
            rows = partial(build_rows, aggregation=aggregation, given=given)
            column = make_column(cells, rows, absent, finite=not recorded.tables.as_host)
            column = keep_within(column, named, task.name)
            bare = ScoredColumn(key, column, named, reducer, _repeats(cells), (), make_noise_column(cells.noise))
            made = point(bare)
            scored = Scored(task, (made,), tables=recorded.tables.name)
            closing = replace(VALUES, on_unscorable=recorded.on_unscorable)
            done.append((made, report_task(scored, inference=closing, tables=recorded.tables)[key]))
        except EvalError as problem:
            wrong = wrong or str(problem)
    fitting = next((one for one in done if same_number(one[1].value, stated)), None)
    if coded and fitting is None:
        return "its aggregation is code, which no log can run, and the mean of its scores is not the recorded value"
    return fitting or (done[0] if done else _tell_several(key, cells) or wrong)


def _tell_several(key: MetricKey, cells: Cells) -> str:
    """That documents have lists of numbers for a score, which only a reducer makes one."""
    first = next((one for one in cells.scores.values() if one is not None), None)
    if not isinstance(first, list | tuple) or len(first) < 2 or not are_numbers(first):
        return ""
    reduced = (
        f"`evalcore score RUN --score {key.metric} --reducer mean -o DIR` makes a run with one (or median, max, ...)"
    )
    return f"its documents have several scores, such as {list(first)}, and no reducer; {reduced}"


def _readings(
    recorded: RecordedTask, key: MetricKey, spec: MetricSpec | None, cells: Cells, coded: bool
) -> Iterable[tuple[MetricSpec | None, Options]]:
    """Possible readings of scores, the likeliest first: the metric and its options."""
    plain = spec or MetricSpec(key.metric)
    if coded:
        yield replace(plain, aggregation="mean"), plain.options
        return
    tables, usual = recorded.tables, aggregation_of(recorded.task, ScoredColumn(key, EMPTY, spec), recorded.tables)
    numbers = are_numbers(cells.scores.values())
    if not numbers and usual.read is None:  # F1 of texts is a mean here, and a score of label pairs in lm-eval
        known = (table[plain.name].aggregation for _, table in sorted(tables.metrics.items()) if plain.name in table)
        for name in dict.fromkeys(one for one in known if tables.aggregations[one].read is not None):
            yield replace(plain, aggregation=name), plain.options
    yield spec, plain.options
    if plain.options and not numbers:  # lm-eval counts BLEU and its like without any options
        yield spec, freeze_options()


def _silent(rows: Mapping[int, int], cells: Cells) -> list[int]:
    """The documents of a filter without a word on a metric."""
    return [key for key in rows if key not in cells.scores and key not in cells.unscored]


def _repeats(cells: Cells) -> tuple[int, int] | None:
    replies = [count for _, count in cells.noise.values()]
    return (min(replies), max(replies)) if replies else None


def _unlogged(task: Task, table: LogTable, row: Mapping[str, object]) -> list[str]:
    """Warn of numbers in the results for which no document has a score."""
    keys = [key for text, value in row.items() if (key := MetricKey.parse(text)) and isinstance(value, int | float)]
    lost = [str(key) for key in keys if key not in table.cells]
    return [f"{task.name}: the log has no scores for {', '.join(lost)}"] if lost else []
