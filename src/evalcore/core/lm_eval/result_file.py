"""Reports in the schema of lm-eval's result file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from evalcore.core.groups.edit import has_aggregation, list_groups
from evalcore.core.groups.tree import Group, Tree, all_tasks, child_names, fold_group
from evalcore.core.lm_eval.errata import ERRATA
from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.task import MetricKey, write_bounds
from evalcore.core.stats.noise import question_stderr

Plain = dict[str, object]

BYPASS = "bypass"
"""lm-eval's metric of a task that only records answers (``predict_only``)."""


def lm_eval_results(report: Report, samples: Mapping[str, Sequence[Plain]] | None = None) -> Plain:
    """Write a report in lm-eval's result schema, with evalcore's own under the key ``evalcore``."""
    groups = _list_groups(report.trees)
    group_rows = {row.name: _write_group(row) for row in report.groups}
    with_numbers = {name: group_rows[name] for name in list_shown(report)}
    out: Plain = {
        "results": {**{task.name: _write_task(task) for task in report.tasks}, **group_rows},
        **({"groups": with_numbers} if with_numbers else {}),
        "group_subtasks": {group.name: list(child_names(group)) for group in groups},
        "configs": {task.name: thaw(task.config) for task in sorted(report.tasks, key=lambda task: task.name)},
        "versions": dict(
            sorted([*((t.name, t.version) for t in report.tasks), *((g.name, g.version) for g in report.groups)])
        ),
        "n-shot": dict(sorted(num_fewshot(report).items())),
        "higher_is_better": dict(sorted(higher_is_better(report).items())),
        "n-samples": {task.name: _write_counts(task) for task in report.tasks if task.sample_len is not None},
    }
    if samples is not None:
        out["samples"] = {name: list(rows) for name, rows in samples.items()}
    out["evalcore"] = extras(report)
    return out


def show_group_table(report: Report) -> bool:
    """Whether any group has numbers of its own, so that there is a table of groups."""
    return bool(list_shown(report))


def list_shown(report: Report) -> list[str]:
    """The groups of the table of groups: those that aggregate, whether or not they found a number."""
    return [group.name for group in _list_groups(report.trees) if has_aggregation(group)]


def task_aggregation_list(report: Report) -> dict[str, list[str]]:
    """The tasks below each group that has any, each once."""
    listed = {group.name: [leaf.name for leaf in all_tasks(group)] for group in _list_groups(report.trees)}
    return {name: tasks for name, tasks in listed.items() if tasks}


# --- algebras on the trees ------------------------------------------------------------------------------------------


def num_fewshot(report: Report) -> dict[str, int]:
    """Shots of each task, and of each group whose children agree."""
    known = {task.name: task.num_fewshot or 0 for task in report.tasks}
    for tree in report.trees:
        fold_group(tree, lambda leaf: known.get(leaf.name), lambda group, parts: _agree_on(known, group.name, parts))
    return known


def _agree_on(known: dict[str, int], name: str, parts: Sequence[int | None]) -> int | None:
    values = {part for part in parts if part is not None}
    if len(values) == 1:
        known[name] = next(iter(values))
    return known.get(name)


Directions = dict[str, bool | None]


def higher_is_better(report: Report) -> dict[str, Directions]:
    """The direction of each metric, per task and group; None in a group whose children disagree."""
    known: dict[str, Directions] = {
        task.name: {key.metric: estimate.scale.higher_is_better for key, estimate in task.estimates}
        if task.directions is None
        else dict(task.directions)
        for task in report.tasks
    }
    for tree in report.trees:
        fold_group(
            tree,
            lambda leaf: known.get(leaf.name, {}),
            lambda group, parts: known.setdefault(group.name, _merge_directions(parts)),
        )
    return {name: found for name, found in known.items() if found}


def _merge_directions(parts: Iterable[Directions]) -> Directions:
    out: Directions = {}
    for part in parts:
        for metric, direction in part.items():
            out[metric] = direction if out.get(metric, direction) == direction else None
    return out


# --- rows ------------------------------------------------------------------------------------------------------------


def _write_task(task: TaskReport) -> Plain:
    numbers = {text: value for key, estimate in task.estimates for text, value in write_pair(key, estimate)}
    return {"name": task.name, "alias": task.alias or task.name, **write_size(task), **numbers}


def _write_group(group: GroupReport) -> Plain:
    row: Plain = {"alias": group.alias, "name": group.name, **write_size(group)}
    row |= {text: value for key, estimate in group.estimates for text, value in write_pair(key, estimate)}
    counts = {str(key): estimate.n for key, estimate in group.estimates if estimate.n is not None}
    return {**row, **({"sample_count": counts} if counts else {})}


def write_size(row: TaskReport | GroupReport, key: str = "sample_len") -> Plain:
    return {} if row.sample_len is None else {key: row.sample_len}


def write_pair(key: MetricKey, estimate: Estimate) -> tuple[tuple[str, object], tuple[str, object]]:
    # lm-eval's table code needs the word "N/A" for a missing number.
    value = "N/A" if estimate.value is None else estimate.value
    return (str(key), value), (key.stderr, "N/A" if estimate.stderr is None else estimate.stderr)


def _write_counts(task: TaskReport) -> Plain:
    return {
        "original": task.n_original if task.n_original is not None else task.n_docs,
        "effective": task.sample_len,
    }


def extras(report: Report) -> Plain:
    """Write what lm-eval's schema has no place for: intervals, counts, outcomes, recipes, errata."""
    rows: list[TaskReport | GroupReport] = [*report.tasks, *report.groups]
    used = sorted({name for row in rows for _, estimate in row.estimates for name in estimate.errata})
    return {
        "estimates": write_estimates(report),
        "warnings": [warning for row in rows for warning in row.warnings],
        "errata": {name: ERRATA[name] for name in used},
    }


def write_estimates(report: Report) -> dict[str, dict[str, Plain]]:
    """Write all that is known about each number of each task and group."""
    rows: list[TaskReport | GroupReport] = [*report.tasks, *report.groups]
    known = {(task.name, key): estimate for task in report.tasks for key, estimate in task.estimates}
    return {
        row.name: {
            str(key): _write_extra(estimate, _find_behind(key, estimate, known)) for key, estimate in row.estimates
        }
        for row in rows
    }


def _find_behind(key: MetricKey, estimate: Estimate, known: Mapping[tuple[str, MetricKey], Estimate]) -> list[Estimate]:
    """Find the tasks' numbers behind a group's number; a task's number is its own."""
    parts = [known[part.name, key] for part in estimate.group.parts if (part.name, key) in known]
    return parts or [estimate]


def _write_extra(estimate: Estimate, behind: Sequence[Estimate]) -> Plain:
    return {
        "value": estimate.value,
        "stderr": estimate.stderr,
        "ci": None if estimate.ci is None else list(estimate.ci),
        "n": estimate.n,
        "n_scored": estimate.counts.scored,
        "n_unscorable": estimate.counts.unscorable,
        "n_failed": estimate.counts.failed,
        "n_not_emitted": estimate.counts.not_emitted,
        "lowest": estimate.counts.lowest,
        "highest": estimate.counts.highest,
        "reason": estimate.reason,
        "warnings": list(estimate.warnings),
        "missing": list(estimate.group.missing),
        "bounds": write_bounds(estimate.scale.score_bounds),
        "errata": list(estimate.errata),
        "signature": estimate.signature,
        **_write_sources(estimate, behind),
    }


def _write_sources(estimate: Estimate, behind: Sequence[Estimate]) -> Plain:
    """Write what a number is to be seen beside, and where its error comes from: clusters, drawn answers, tasks."""
    out: Plain = {}
    if estimate.reference is not None:
        out["reference"] = dict(zip(("of", "value"), estimate.reference, strict=True))
    named = [one.spread.clusters.ints.tolist() for one in behind if one.spread.clusters is not None]
    if named:  # in a task without clusters, every document is its own
        out["clusters"] = len(set().union(*named)) + sum(one.count for one in behind if one.spread.clusters is None)
    if estimate.spread.df is not None and (named or any(one.spread.weights is not None for one in behind)):
        out["df"] = estimate.spread.df
    if estimate.spread.repeats is not None:
        out["repeats"] = estimate.spread.repeats
    if estimate.spread.noise is not None and estimate.stderr is not None:
        out["question_stderr"] = question_stderr(estimate.stderr, estimate.spread.noise)
        out["sampling_stderr"] = sqrt(estimate.spread.noise)
    if estimate.group.across is not None:
        ci = estimate.group.across.ci
        out["tasks_as_sample"] = {
            "tasks": estimate.group.across.tasks,
            "stderr": estimate.group.across.stderr,
            "ci": None if ci is None else list(ci),
        }
    return out


# --- small parts ---------------------------------------------------------------------------------------------------


def _list_groups(trees: Iterable[Tree[TaskReport]]) -> list[Group[TaskReport]]:
    return list({group.name: group for group in reversed(list_groups(trees))}.values())[::-1]
