"""A task's row of lmms-eval's results."""

from __future__ import annotations

from collections.abc import Mapping

from evalcore.adapters.lmms_eval.aggregations import Called
from evalcore.adapters.lmms_eval.host import LmmsOutput
from evalcore.adapters.lmms_eval.numbers import Clusters, get_score_key, read_numbers
from evalcore.adapters.lmms_eval.repeats import VOTE
from evalcore.core.lm_eval.lmms_results import Plain, write_task_row
from evalcore.core.records.report import TaskReport
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey


def write_row(
    task: TaskReport, scored: Scored, clusters: Mapping[MetricKey, Clusters | None], output: LmmsOutput
) -> Plain:
    """Write a task's row. A function's result that is no number stands there as it is, a vote on scores as N/A."""
    config = output.task_config or {}
    listed = config.get("skip_stderr_metrics")
    skipped = listed if isinstance(listed, list | tuple) else ()
    known = [one for one in scored.columns if one.reducer is None]
    numbers = {
        one.key: (None, None)
        if one.key.metric in skipped
        else (read_numbers(one.column, get_score_key(config)), clusters[one.key])
        for one in known
    }
    made = {one.key: get_call(one) for one in known}
    odd = {key: call.raw for key, call in made.items() if call is not None and task[key].value is None}
    raw = {str(key): "N/A" if value is None else value for key, value in odd.items()}
    repeated = getattr(output, "per_sample_metrics", {})
    votes = {f"{metric}_{VOTE},{name}": "N/A" for metric, name in repeated if MetricKey(metric, name) in made}
    return {**write_task_row(task, numbers), **raw, **votes}


def get_call(scored: ScoredColumn) -> Called | None:
    """Get the call of a task's own function, if a column was closed by one."""
    aggregation = scored.spec.aggregation if scored.spec is not None else None
    return aggregation if isinstance(aggregation, Called) else None
