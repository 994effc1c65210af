"""Estimates and reports: every number with its interval, n and what became of the other documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from evalcore.core.groups.tree import fold_group
from evalcore.core.notebook.interval_bar import Ends, draw_interval, find_axis
from evalcore.core.notebook.markup import (
    Html,
    HtmlTable,
    escape_text,
    write_facts,
    write_list,
    write_panel,
    write_table,
)
from evalcore.core.plain_text import ARROWS, show_interval, show_number
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import GroupReport, Report, TaskReport
from evalcore.core.records.task import MetricKey


class NumberLine(Struct, frozen=True):
    """A line of a report: a number of a task or group, ``depth`` levels down; none where it has no number."""

    row: TaskReport | GroupReport
    depth: int = 0
    key: MetricKey | None = None
    estimate: Estimate | None = None


def write_estimate(estimate: Estimate) -> Html:
    """One number with all that is known of it."""
    counts, across = estimate.counts, estimate.group.across
    span = None if counts.lowest is None or counts.highest is None else show_interval(counts.lowest, counts.highest)
    facts = (
        ("value", show_value(estimate)),
        ("interval", show_interval(*(estimate.ci or (None, None)))),
        ("standard error", show_number(estimate.stderr)),
        ("n", "not known" if estimate.n is None else f"{estimate.n:,}"),
        ("documents", tell_counts(estimate, whole=True)),
        ("whatever the others would get", span if count_lost(estimate) else None),
        ("if its tasks are a sample", None if across is None else show_interval(*(across.ci or (None, None)))),
        ("beside it", None if estimate.reference is None else "{}: {:.4g}".format(*estimate.reference)),
        ("why something is missing", estimate.reason),
        ("missing tasks", ", ".join(estimate.group.missing)),
        ("lm-eval differs", ", ".join(estimate.errata)),
        ("recipe", estimate.signature),
    )
    bar = draw_interval(estimate.value, estimate.ci, _find_axis([estimate]))
    return write_panel("Estimate", bar, write_facts(facts), write_list(estimate.warnings, "Warnings:"))


def write_task(task: TaskReport) -> Html:
    """The numbers of a task."""
    docs = f"{task.n_docs:,} document{'s' * (task.n_docs != 1)}"
    lines = _list_block(task)
    return write_panel(f"{task.alias or task.name}: {docs}", write_numbers(lines), _write_notes(lines, task.warnings))


def write_group(group: GroupReport) -> Html:
    """The numbers of a group."""
    lines = _list_block(group)
    return write_panel(group.alias, write_numbers(lines), _write_notes(lines, group.warnings))


def write_report(report: Report) -> Html:
    """Every number of a report in the order of its trees."""
    lines = list_lines(report)
    title = f"{_count(len(report.tasks), 'task')}, {_count(len(report.groups), 'group')}"
    warnings = [one for group in report.groups for one in group.warnings]
    warnings += [one for task in report.tasks for one in task.warnings]
    return write_panel(title, write_numbers(lines), _write_notes(lines, warnings))


def list_lines(report: Report) -> list[NumberLine]:
    """A line for every number, parents before children; a task in two groups stands in both.

    >>> from evalcore.core.groups.tree import Group, Leaf
    >>> task = TaskReport(name="a")
    >>> tree = Group("g", (Leaf("a", task),))
    >>> [(line.depth, line.row.name) for line in list_lines(Report(tasks=(task,), trees=(tree,)))]
    [(1, 'a')]
    """
    rows: list[TaskReport | GroupReport] = [*report.groups, *report.tasks]
    known = {row.name: row for row in rows}
    places = [
        place
        for tree in report.trees
        for place in fold_group(
            tree,
            lambda leaf: ((0, leaf.name),),
            lambda group, parts: ((0, group.name), *((depth + 1, name) for part in parts for depth, name in part)),
        )
    ]
    placed = {name for _, name in places}
    places += [(0, task.name) for task in report.tasks if task.name not in placed]
    return [line for depth, name in places if name in known for line in _list_block(known[name], depth)]


def _list_block(row: TaskReport | GroupReport, depth: int = 0) -> list[NumberLine]:
    return [NumberLine(row, depth, key, estimate) for key, estimate in row.estimates] or [NumberLine(row, depth)]


def write_numbers(lines: Sequence[NumberLine], interval: str = "interval") -> Html:
    """The lines as a table. A column stands only where a line has something in it, but value, interval and n always."""
    axes = {
        key.metric: _find_axis(
            [one.estimate for one in lines if one.key and one.estimate and one.key.metric == key.metric]
        )
        for key in (line.key for line in lines)
        if key is not None
    }
    cells = [_list_cells(line, axes, again=at > 0 and lines[at - 1].row is line.row) for at, line in enumerate(lines)]
    heads = ("Tasks", "Filter", "Metric", "", "Value", interval, "", "n", "unscored")
    numbers = (False, False, False, False, True, True, False, True, False)
    always = {0, 2, 4, 5, 7}
    dull = {1: "none"}
    used = [at for at in range(len(heads)) if at in always or any(line[at] not in ("", dull.get(at)) for line in cells)]
    return write_table(
        HtmlTable(
            heads=tuple(heads[at] for at in used),
            numbers=tuple(numbers[at] for at in used),
            lines=tuple(tuple(line[at] for at in used) for line in cells),
            bold=tuple(isinstance(line.row, GroupReport) for line in lines),
            depths=tuple(line.depth for line in lines),
            what="numbers",
        )
    )


def _list_cells(line: NumberLine, axes: dict[str, Ends | None], *, again: bool) -> tuple[Html, ...]:
    name = escape_text("" if again else line.row.alias or line.row.name)
    key, estimate = line.key, line.estimate
    if key is None or estimate is None:
        return (name, *(escape_text(""),) * 8)
    return (
        name,
        escape_text(key.filter),
        escape_text(key.metric),
        escape_text(ARROWS[estimate.scale.higher_is_better]),
        escape_text(show_value(estimate)),
        escape_text(show_interval(*(estimate.ci or (None, None)))),
        draw_interval(estimate.value, estimate.ci, axes[key.metric]),
        escape_text("" if estimate.n is None else f"{estimate.n:,}"),
        escape_text(tell_counts(estimate)),
    )


def show_value(estimate: Estimate) -> str:
    """A value, or what stands in its place.

    >>> show_value(Estimate(value=0.5)), show_value(Estimate(value=None))
    ('0.5000', 'none')
    """
    return show_number(estimate.value, none="none" if estimate.scale.measures else "recorded")


def tell_counts(estimate: Estimate, *, whole: bool = False) -> str:
    """What became of documents that have no score, or of all.

    >>> from evalcore.core.records.outcome import Counts
    >>> tell_counts(Estimate(value=1.0, counts=Counts(scored=3, failed=1)))
    '1 failed'
    """
    counts = estimate.counts
    parts = ((counts.scored, "scored"), (counts.unscorable, "unscorable"), (counts.failed, "failed"))
    shown = [f"{count:,} {word}" for count, word in parts if whole or (count and word != "scored")]
    return ", ".join([*shown, *([f"{counts.not_emitted:,} not emitted"] if counts.not_emitted else [])])


def count_lost(estimate: Estimate) -> int:
    """How many documents should have a score and have none."""
    return estimate.counts.unscorable + estimate.counts.failed


def _find_axis(estimates: Iterable[Estimate | None]) -> Ends | None:
    known = [one for one in estimates if one is not None]
    ends = [end for one in known for end in (one.value, *(one.ci or ()))]
    bounds = known[0].scale.bounds if known else None
    return find_axis(ends, bounds if bounds and all(abs(end) < float("inf") for end in bounds) else None)


def _write_notes(lines: Iterable[NumberLine], warnings: Iterable[str]) -> Html:
    """Why numbers are missing, and the warnings, each once."""
    why = [f"{one.row.name} {one.key}: {one.estimate.reason}" for one in lines if one.estimate and one.estimate.reason]
    return Html(write_list(dict.fromkeys(why), "Missing:") + write_list(dict.fromkeys(warnings), "Warnings:"))


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
