"""Three or more runs, for people: for every number a matrix of paired differences, row minus column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from evalcore.core.compare.lines import ComparisonLine, has_evidence
from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.compare import Compared
from evalcore.shell.output.compare.footnotes import list_runs, list_sections, tell_correction, tell_same
from evalcore.shell.output.compare.line_order import collect_trees, place_lines
from evalcore.shell.output.compare.pair_table import WHOLE
from evalcore.shell.output.terminal.grid import Grid, Page
from evalcore.shell.output.terminal.number_text import (
    ARROWS,
    FILTER,
    METRIC,
    TASKS,
    VALUE,
    N,
    head_interval,
    indent_name,
    name_number,
    show_difference,
    show_number,
    show_p,
)

Cells = Mapping[tuple[int, int], ComparisonLine]
"""The line of each pair of runs, for one number."""


SIGN = "*: more than luck explains (adjusted p at most {alpha:g}, and an interval without 0)"
SAME = "=: not that, but "
MATRIX = "− A, − B, ...: the row's run minus the column's, on the documents with a score in both{}; intervals: --csv"
OWN = f"{VALUE}: a run's number; empty if it depends on which documents the other run has"


def build_matrix_page(compared: Compared) -> Page:
    """The page of several runs: a matrix for every number, or a row for every pair where that is too wide."""
    first = compared.comparisons[0]
    alpha = round(compared.alpha, 9)
    shapes = ((4, True), (4, False), (3, False))
    return Page(
        grids=(*(_build_matrix(compared, decimals, tested) for decimals, tested in shapes), _build_pairs(compared)),
        lead=compared.lead,
        title=list_runs(compared),
        legend=(
            SIGN.format(alpha=alpha),
            *([] if first.margin is None else [SAME + tell_same(first)]),
            tell_correction(first.correction, first.family, alpha),
            "flipped documents of every pair: --json or --csv, or compare two runs alone",
        ),
        sections=list_sections(compared),
    )


class MatrixNumber(Struct, frozen=True, eq=False):
    """A number in all pairs of runs, and its names as cells."""

    line: ComparisonLine
    names: tuple[str, ...]
    cells: Cells


def _list_numbers(compared: Compared) -> tuple[tuple[str, ...], list[MatrixNumber]]:
    """The heads of the names, and every number in the order of the trees."""
    by_number: dict[tuple[str, MetricKey], dict[tuple[int, int], ComparisonLine]] = {}
    for pair, comparison in zip(compared.pairs, compared.comparisons, strict=True):
        for line in comparison.lines:
            by_number.setdefault((line.name, line.key), {})[pair] = line
    filtered = any(key.filter != "none" for _, key in by_number)
    placed = place_lines((next(iter(cells.values())) for cells in by_number.values()), collect_trees(compared))
    numbers = [
        MatrixNumber(
            line,
            (indent_name(depth, line.name), line.key.metric, *([line.key.filter] if filtered else [])),
            by_number[line.name, line.key],
        )
        for depth, line in placed
    ]
    return (TASKS, METRIC, *([FILTER] if filtered else [])), numbers


def _build_matrix(compared: Compared, decimals: int, tested: bool) -> Grid:
    names, numbers = _list_numbers(compared)
    lines: list[tuple[str, ...]] = []
    count = len(compared.labels)
    for number in numbers:
        for at, label in enumerate(compared.labels):
            head = (*number.names, ARROWS[number.line.higher_is_better]) if at == 0 else ("",) * (len(names) + 1)
            row = _list_differences(number.cells, at, count, compared.alpha, decimals, tested)
            lines.append((*head, label, _show_value(number.cells, at, decimals), *row))
    return Grid(
        heads=(*names, "", "run", VALUE, *(f"− {label}" for label in compared.labels)),
        numbers=(*(False for _ in names), *(True,) * (count + 3)),
        lines=tuple(lines),
        bold=tuple(number.line.group for number in numbers for _ in range(count)),
        legend=(MATRIX.format(", with the adjusted p" if tested else ""), OWN),
    )


def _list_differences(cells: Cells, at: int, count: int, alpha: float, decimals: int, tested: bool) -> Iterable[str]:
    for other in range(count):
        line = cells.get((min(at, other), max(at, other)))
        if at == other or line is None or line.difference is None:
            yield "·" if at == other else ""
        else:
            p = f" ({show_p(line.adjusted)})" if tested and line.adjusted is not None else ""
            way = line.difference if at < other else -line.difference
            yield show_difference(way, decimals) + _mark_finding(line, alpha) + p


def _mark_finding(line: ComparisonLine, alpha: float) -> str:
    if has_evidence(line, alpha):
        return "*"
    return "=" if line.adjusted_same is not None and line.adjusted_same <= alpha else " "


def _build_pairs(compared: Compared) -> Grid:
    """A row for every pair of runs."""
    lines: list[tuple[str, ...]] = []
    _, numbers = _list_numbers(compared)
    for number in numbers:
        for (a, b), line in number.cells.items():
            name = name_number(line.name, line.key) if (a, b) == next(iter(number.cells)) else ""
            way = (
                show_difference(line.difference, 3) + _mark_finding(line, compared.alpha)
                if line.difference is not None
                else ""
            )
            pair = f"{compared.labels[a]} − {compared.labels[b]}"
            ends = " to ".join(show_difference(end, 3) for end in line.ci or ())
            lines.append((name, ARROWS[line.higher_is_better] if name else "", pair, way, ends, f"{line.n:,}"))
    return Grid(
        heads=(TASKS, "", "runs", "", head_interval(compared.comparisons[0].confidence), N),
        numbers=(False, True, True, True, True, True),
        lines=tuple(lines),
        bold=tuple(number.line.group for number in numbers for _ in number.cells),
        gap=1,
        legend=("A − B, ...: the first run minus the second, on the documents with a score in both",),
        readable=WHOLE,
    )


def _show_value(cells: Cells, at: int, decimals: int) -> str:
    """A run's number, if it is the same on the documents shared with every other run."""
    values = {line.a if pair[0] == at else line.b for pair, line in cells.items() if at in pair} - {None}
    return show_number(values.pop(), decimals) if len(values) == 1 else ""
