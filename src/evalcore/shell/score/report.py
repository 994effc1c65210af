"""Scored logs closed into numbers: tasks, the groups above them, and what documents without a score leave open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from evalcore.core.groups.tree import Group, Tree, all_groups, leaves
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.shell.config.plan import Plan
from evalcore.shell.logs.log import LogTask
from evalcore.shell.output.terminal.number_text import show_number
from evalcore.shell.run.close import close_task
from evalcore.shell.score.groups import (
    group_tasks,
    read_groups,
    recorded_count,
    recorded_trees,
    regroup,
    whole_groups,
)
from evalcore.shell.score.labels import label_logs, label_runs, label_task, recorded_name, with_own_aliases
from evalcore.shell.score.scored_log import ScoredLog, ScorePlan
from evalcore.shell.score.verdicts import SHARES

__all__ = ["close_logs", "tell_bounds", "tell_missing", "tell_numbers", "trees_over", "unknown_shots"]

Trees = tuple[Tree[object], ...]


def close_logs(parts: Sequence[ScoredLog], plan: Plan) -> tuple[TaskReport, ...]:
    """Close every task of logs, under labels that tell logs of one task apart."""
    labels = label_logs([part.log for part in parts])
    each = [
        (part.log, label_task(_as_told(closed, part), part.log, label))
        for part, label in zip(parts, labels, strict=True)
        for name, scored in part.scored.items()
        for closed in [close_task(scored, plan, n_original=_counted(part, name), shares=part.shares)]
    ]
    return with_own_aliases([task for _, task in each], [log for log, _ in each])


def _as_told(task: TaskReport, part: ScoredLog) -> TaskReport:
    """A task with the shots that the results beside its log tell of, and a config that says what is 0 or 1."""
    told = part.log.results.get("n-shot")
    shots = told.get(recorded_name(part.log)) if isinstance(told, Mapping) else None
    config = task.config.set(SHARES, part.shares) if part.shares else task.config
    return replace(task, num_fewshot=shots if type(shots) is int else task.num_fewshot, config=config)


def unknown_shots(report: Report) -> frozenset[str]:
    """Tasks of which nothing tells how many examples were shown, and the groups that have such a task."""
    lost = {task.name for task in report.tasks if task.num_fewshot is None}
    groups = (group for tree in report.trees for group in (tree, *all_groups(tree)))
    return frozenset(lost | {group.name for group in groups if any(leaf.name in lost for leaf in leaves(group))})


def _counted(part: ScoredLog, name: str) -> int | None:
    """How many documents a task had before any limit, where its results say so."""
    return recorded_count(part.log, "original") if name == part.log.name else None


def tell_missing(parts: Iterable[ScoredLog], tasks: Iterable[TaskReport], plan: Plan) -> tuple[str, ...]:
    """Logs that have fewer documents than the results beside them count."""
    sizes = {task.name: task.n_docs for task in tasks}
    found = [(part.log, sizes.get(part.log.name), recorded_count(part.log, "effective")) for part in parts]
    return tuple(
        f"{log.name}: {log.path.name} has {here} of the {wanted} documents that the results count"
        for log, here, wanted in found
        if here is not None and wanted is not None and here < wanted and plan.limit is None
    )


def tell_numbers(parts: Iterable[ScoredLog], tasks: Iterable[TaskReport]) -> tuple[str, ...]:
    """Where the numbers that logs have in their headers are others than these, or are not measured."""
    found = {task.name: task.estimates for task in tasks}
    logs = [part.log for part in parts if part.log.name in found]
    return tuple(one for log in logs for one in log.tell_numbers(log.name, found[log.name]))


# --- groups ----------------------------------------------------------------------------------------------------


def trees_over(
    parts: Sequence[ScoredLog], tasks: Sequence[TaskReport], asked: ScorePlan, chosen: Trees = ()
) -> tuple[Trees, tuple[str, ...]]:
    """The groups above the tasks: of a file, else of the chosen tasks, else over a field, else those of the results.

    Under rules that change what is measured, a group of results averages what its tasks have now.
    """
    if asked.groups is not None:
        return read_groups(asked.groups, [task.name for task in tasks]), ()
    labels = {id(part.log): label for part, label in zip(parts, label_logs([part.log for part in parts]), strict=True)}
    if asked.group_by is not None:
        below = {part.log.name: [task for task in tasks if task.name in part.scored] for part in parts}
        aliases = {p.log.name: f"{recorded_name(p.log)} ({labels[id(p.log)]})" for p in parts if labels[id(p.log)]}
        made = (
            group_tasks(name, found, by_size=asked.by_size, alias=aliases.get(name)) for name, found in below.items()
        )
        return tuple(made), ()
    if chosen:
        return tuple(tree for tree in chosen if isinstance(tree, Group)), ()
    trees: list[Tree[object]] = []
    told: list[str] = []
    runs: dict[int, list[LogTask]] = {}
    for part in parts:
        runs.setdefault(id(part.log.results), []).append(part.log)
    for logs, where in zip(runs.values(), label_runs([logs[0].path for logs in runs.values()]), strict=True):
        found, warned = recorded_trees(logs[0].results)
        names = {recorded_name(log): log.name for log in logs}
        apart = next((log for log in logs if log.name != recorded_name(log)), None)
        suffix, label = ("", "") if apart is None else (f" ({where})", labels[id(apart)])
        for tree in found:
            named = regroup(tree, names, suffix, _keys(tasks) if asked.rules.changes else (), label)
            whole, lost = whole_groups(named, {task.name for task in tasks})
            trees += whole
            told += [f"group {one} is left out: some of its tasks have no answers here" for one in lost]
        told += warned
    return tuple(trees), tuple(told)


def _keys(tasks: Iterable[TaskReport]) -> list[MetricKey]:
    return list(dict.fromkeys(key for task in tasks for key, one in task.estimates if one.scale.average))


# --- what is left open ------------------------------------------------------------------------------------------


def _numbers(report: Report) -> Iterable[tuple[str, MetricKey, Estimate]]:
    yield from ((one.name, *pair) for one in report.groups for pair in one.estimates)
    yield from ((one.name, *pair) for one in report.tasks for pair in one.estimates)


def tell_bounds(report: Report) -> tuple[str, ...]:
    """Between what each number lies, whatever the documents without a score would have got."""
    return tuple(
        f"{one}: {key} is {show_number(found.value)} of the {found.counts.scored:,} documents that have a score; with "
        f"the other {lost:,} it lies between {show_number(low)} and {show_number(high)}"
        for one, key, found in _numbers(report)
        if (lost := found.counts.unscorable + found.counts.failed)
        and found.value is not None
        and (low := found.counts.lowest) is not None
        and (high := found.counts.highest) is not None
    )
