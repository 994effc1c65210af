"""Differences between runs: each with its interval around no difference, n, and who is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalcore.core.compare.lines import Comparison, ComparisonLine
from evalcore.core.compare.verdicts.margins import tell_verdict
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
from evalcore.core.plain_text import ARROWS, show_difference, show_ends, show_number, show_p, show_share
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.stats.pair_tests import Difference

NUMBERS = (False, False, False, False, True, True, True, True, True, False, True, True, False, False)
LABELS = ("A", "B")
NO_ALIASES: Mapping[str, str] = FrozenDict()


def write_difference(difference: Difference) -> Html:
    """A difference with all that is known of it."""
    facts = (
        ("first − second", show_difference(difference.difference)),
        ("interval", show_ends(difference.ci)),
        ("standard error", show_number(difference.stderr)),
        ("p", show_p(difference.p_value)),
        ("n", f"{difference.n:,}"),
        ("method", difference.method),
    )
    axis = find_axis([0.0, difference.difference, *(difference.ci or ())])
    return write_panel("Difference", draw_interval(difference.difference, difference.ci, axis, 0.0), write_facts(facts))


def write_comparison(comparison: Comparison) -> Html:
    """Two runs side by side."""
    names = [f"{label}: {name}" for label, name in zip(LABELS, comparison.names, strict=True)]
    return write_panel(", ".join(names), write_lines(comparison), write_list(comparison.warnings, "Warnings:"))


def write_line_of(line: ComparisonLine) -> Html:
    """One line of a comparison. It knows neither its runs nor the level of its interval, and so has no verdict."""
    a, b = LABELS
    facts = (
        ("n", f"{line.n:,}"),
        (a, show_number(line.a)),
        (b, show_number(line.b)),
        (f"{a} − {b}", show_difference(line.difference)),
        ("interval", show_ends(line.ci)),
        ("p", show_p(line.p_value)),
        ("adjusted p", show_p(line.adjusted)),
        ("better : worse", f"{len(line.better):,} : {len(line.worse):,}" if line.better or line.worse else ""),
    )
    bar = draw_interval(line.difference, line.ci, _find_axis(line.key.metric, [line]), 0.0)
    return write_panel(
        f"{line.name}, {line.key}",
        bar,
        write_facts([(name, said) for name, said in facts if said]),
        write_list(_list_notes(line)),
    )


def write_lines(
    comparison: Comparison, labels: tuple[str, str] = LABELS, aliases: Mapping[str, str] = NO_ALIASES
) -> Html:
    """A line for every number of both runs; ``aliases`` are what tables call tasks and groups."""
    lines, alpha = comparison.lines, comparison.alpha
    axes = {line.key.metric: _find_axis(line.key.metric, lines) for line in lines}
    cells = [
        _list_cells(
            aliases.get(line.name, line.name),
            line,
            axes[line.key.metric],
            tell_verdict(line, alpha, labels, comparison.margin),
        )
        for line in lines
    ]
    level = f"{show_share(comparison.confidence)} interval"
    tested = "adjusted p" if comparison.correction.corrects else "p"
    a, b = labels
    heads = (
        "Tasks",
        "Filter",
        "Metric",
        "",
        "n",
        a,
        b,
        f"{a} − {b}",
        level,
        "",
        tested,
        "better : worse",
        "verdict",
        "note",
    )
    used = [
        at
        for at in range(len(heads))
        if at not in (1, 11, 13) or any(line[at] not in ("", "none" if at == 1 else "") for line in cells)
    ]
    return write_table(
        HtmlTable(
            heads=tuple(heads[at] for at in used),
            numbers=tuple(NUMBERS[at] for at in used),
            lines=tuple(tuple(line[at] for at in used) for line in cells),
            bold=tuple(line.group for line in lines),
            what="differences",
        )
    )


def _list_cells(name: str, line: ComparisonLine, axis: Ends | None, verdict: str) -> tuple[Html, ...]:
    moved = f"{len(line.better):,} : {len(line.worse):,}" if line.better or line.worse else ""
    return (
        escape_text(name),
        escape_text(line.key.filter),
        escape_text(line.key.metric),
        escape_text(ARROWS[line.higher_is_better]),
        escape_text(f"{line.n:,}"),
        escape_text(show_number(line.a)),
        escape_text(show_number(line.b)),
        escape_text(show_difference(line.difference)),
        escape_text(show_ends(line.ci)),
        draw_interval(line.difference, line.ci, axis, 0.0),
        escape_text(show_p(line.adjusted if line.adjusted is not None else line.p_value)),
        escape_text(moved),
        escape_text(verdict),
        escape_text("; ".join(_list_notes(line))),
    )


def _list_notes(line: ComparisonLine) -> list[str]:
    lost = f"{line.unscored:,} without a score in both" if line.unscored else ""
    return [note for note in (lost, line.reason) if note]


def _find_axis(metric: str, lines: Sequence[ComparisonLine]) -> Ends | None:
    """As far to the left of no difference as to its right."""
    ends = [end for line in lines if line.key.metric == metric for end in (line.difference, *(line.ci or ()))]
    known = find_axis(ends)
    widest = max(map(abs, known)) if known is not None else 0.0
    return (-widest, widest) if widest else None
