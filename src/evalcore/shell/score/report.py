"""Scored logs closed into numbers: tasks, the groups above them, and what documents without a score leave open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Group, Tree, leaves
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.outcome import NOT_EMITTED
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import ScoredColumn
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import LogTask
from evalcore.shell.output.terminal.number_text import show_number
from evalcore.shell.run.close import close_task
from evalcore.shell.score.groups import (
    build_recorded_trees,
    find_recorded_count,
    find_whole_groups,
    group_tasks,
    read_groups,
    regroup,
)
from evalcore.shell.score.labels import drop_shared_aliases, find_recorded_name, label_logs, label_paths, label_task
from evalcore.shell.score.scored_log import ScoredLog
from evalcore.shell.score.units.log_plan import ScorePlan
from evalcore.shell.score.verdicts import SHARES

Trees = tuple[Tree[object], ...]


def close_logs(parts: Sequence[ScoredLog], plan: Plan, tables: Tables) -> tuple[TaskReport, ...]:
    """Close every task of some logs; logs of the same task get labels that tell them apart."""
    labels = label_logs([part.log for part in parts])
    each = [
        (part.log, label_task(_describe_task(closed, part), part.log, label))
        for part, label in zip(parts, labels, strict=True)
        for name, scored in part.scored.items()
        for closed in [close_task(scored, plan, tables, n_original=_count_original(part, name), shares=part.shares)]
    ]
    return drop_shared_aliases([task for _, task in each], [log for log, _ in each])


def list_emitted(parts: Iterable[ScoredLog]) -> Iterator[ScoredColumn]:
    """List the columns that some document has a word on."""
    columns = (one for part in parts for scored in part.scored.values() for one in scored.columns)
    return (one for one in columns if one.column.count(NOT_EMITTED) < one.column.documents)


def _describe_task(task: TaskReport, part: ScoredLog) -> TaskReport:
    """Add the number of shots from the results beside the log, and to the config which scores are 0 or 1."""
    shots = find_part(part.log.results, "n-shot").get(find_recorded_name(part.log))
    config = task.config.set(SHARES, part.shares) if part.shares else task.config
    return replace(task, num_fewshot=shots if type(shots) is int else task.num_fewshot, config=config)


def find_unknown_shots(report: Report) -> frozenset[str]:
    """Find the tasks whose number of shots is not recorded, and the groups that contain such a task."""
    lost = {task.name for task in report.tasks if task.num_fewshot is None}
    return frozenset(
        lost | {group.name for group in list_groups(report.trees) if any(leaf.name in lost for leaf in leaves(group))}
    )


def _count_original(part: ScoredLog, name: str) -> int | None:
    """Count the documents that a task had before any limit, if its results say so."""
    return find_recorded_count(part.log, "original") if name == part.log.name else None


def tell_missing(parts: Iterable[ScoredLog], tasks: Iterable[TaskReport], plan: Plan) -> tuple[str, ...]:
    """Warn of logs with fewer documents than the results beside them count."""
    sizes = {task.name: task.n_docs for task in tasks}
    counts = [(part.log, sizes.get(part.log.name), find_recorded_count(part.log, "effective")) for part in parts]
    return tuple(
        f"{log.name}: {log.path.name} has {here} of the {wanted} documents that the results count"
        for log, here, wanted in counts
        if here is not None and wanted is not None and here < wanted and plan.limit is None
    )


def tell_numbers(parts: Sequence[ScoredLog], tasks: Iterable[TaskReport], tables: Tables) -> tuple[str, ...]:
    """Warn where these numbers differ from those in a log's header or in the results beside it, or do not include them.

    They differ on purpose where another policy was chosen than the usual one and that of the log.
    """
    estimates = {task.name: task.estimates for task in tasks}
    policies = ({EVALCORE.name, find_part(part.log.results, "evalcore").get("policy", tables.name)} for part in parts)
    logs = [
        part.log
        for part, known in zip(parts, policies, strict=True)
        if part.log.name in estimates and tables.name in known
    ]
    return tuple(warning for log in logs for warning in log.tell_numbers(log.name, estimates[log.name]))


# --- groups ----------------------------------------------------------------------------------------------------


def choose_trees(
    parts: Sequence[ScoredLog], tasks: Sequence[TaskReport], asked: ScorePlan, chosen: Trees = ()
) -> tuple[Trees, tuple[str, ...]]:
    """Choose the groups above the tasks, and say what was left out.

    They are those of a file, else one over the values of a field, else those of the chosen tasks, else those of the
    results beside the logs. Under rules that change what is measured, the latter average what their tasks have now.
    """
    if asked.groups is not None:
        return read_groups(asked.groups, [task.name for task in tasks], asked.tables), ()
    labels = {id(part.log): label for part, label in zip(parts, label_logs([part.log for part in parts]), strict=True)}
    if asked.group_by is not None:
        below = {part.log.name: [task for task in tasks if task.name in part.scored] for part in parts}
        aliases = {p.log.name: f"{find_recorded_name(p.log)} ({labels[id(p.log)]})" for p in parts if labels[id(p.log)]}
        by_size = asked.by_size
        groups = (group_tasks(name, own, by_size=by_size, alias=aliases.get(name)) for name, own in below.items())
        return tuple(groups), ()
    if chosen:
        return tuple(tree for tree in chosen if isinstance(tree, Group)), ()
    trees: list[Tree[object]] = []
    warnings: list[str] = []
    runs: dict[int, list[LogTask]] = {}
    for part in parts:
        runs.setdefault(id(part.log.results or part.log), []).append(part.log)
    for logs, where in zip(runs.values(), label_paths([logs[0].path for logs in runs.values()]), strict=True):
        recorded, problems = build_recorded_trees(logs[0].results, asked.tables)
        names = {find_recorded_name(log): log.name for log in logs}
        apart = next((log for log in logs if log.name != find_recorded_name(log)), None)
        suffix, label = ("", "") if apart is None else (f" ({where})", labels[id(apart)])
        for tree in recorded:
            named = regroup(tree, names, suffix, _list_averages(tasks) if asked.rules.changes else (), label)
            whole, lost = find_whole_groups(named, {task.name for task in tasks})
            trees += whole
            warnings += [f"group {name} is left out: some of its tasks have no answers here" for name in lost]
        warnings += problems
    return tuple(trees), tuple(warnings)


def _list_averages(tasks: Iterable[TaskReport]) -> list[MetricKey]:
    return list(dict.fromkeys(key for task in tasks for key, estimate in task.estimates if estimate.scale.average))


# --- what is left open ------------------------------------------------------------------------------------------


def _list_numbers(report: Report) -> Iterable[tuple[str, MetricKey, Estimate]]:
    yield from ((one.name, *pair) for one in report.groups for pair in one.estimates)
    yield from ((one.name, *pair) for one in report.tasks for pair in one.estimates)


def tell_bounds(report: Report) -> tuple[str, ...]:
    """Say between what bounds each number lies, whatever the documents without a score would have got."""
    return tuple(
        f"{name}: {key} is {show_number(estimate.value)} of the {counts.scored:,} documents that have a score; with "
        f"the other {lost:,} it lies between {show_number(counts.lowest)} and {show_number(counts.highest)}"
        for name, key, estimate in _list_numbers(report)
        for counts in [estimate.counts]
        if (lost := counts.unscorable + counts.failed) and not {estimate.value, counts.lowest, counts.highest} & {None}
    )
