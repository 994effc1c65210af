"""Three or more runs, for people: for every number a matrix of paired differences, row minus column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.lines import ComparisonLine, has_evidence
from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.compare import Compared
from evalcore.shell.output.compare.footnotes import list_runs, list_sections, tell_correction, tell_same
from evalcore.shell.output.compare.line_order import collect_trees, place_lines
from evalcore.shell.output.compare.pair_table import WHOLE, PairShape
from evalcore.shell.output.terminal.grid import Grid, GridColumn, Page, lay_grid
from evalcore.shell.output.terminal.number_table import NumberName, build_name_columns
from evalcore.shell.output.terminal.number_text import (
    ADJUSTED_P,
    ARROWS,
    VALUE,
    N,
    head_interval,
    show_difference,
    show_ends,
    show_number,
    show_p,
)

T = TypeVar("T")
Cells = Mapping[tuple[int, int], ComparisonLine]
"""The line of each pair of runs, for one number."""


SIGN = "*: more than luck explains (adjusted p at most {alpha:g}, and an interval without 0)"
SAME = "=: not that, but "
MATRIX = "− A, − B, ...: the row's run minus the column's, on the documents with a score in both; its {interval}{p}"
OWN = f"{VALUE}: a run's number, empty if it depends on which documents the other run has; {N}: these, or least–most"
PAIRS = "A − B, ...: the first run minus the second, on the documents with a score in both"
ENDS = f"first, second: the two runs' numbers on these documents; {N} counts them"
SHAPES = (PairShape(), PairShape(1), PairShape(1, 3), PairShape(1, 3, 1, True), PairShape(2, 3, 1, True))
"""A row for each pair: p goes first, the numbers of the runs at last; the difference, its interval and n stay."""


def build_matrix_page(compared: Compared) -> Page:
    """The page of several runs: a matrix for every number, or a row for every pair where that is too wide."""
    first = compared.comparisons[0]
    alpha = compared.alpha
    numbers = _list_numbers(compared)
    return Page(
        grids=(
            *(_build_matrix(compared, numbers, tested=tested) for tested in (True, False)),
            *(_build_pairs(compared, numbers, shape) for shape in SHAPES),
        ),
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


class ComparedNumber(Struct, frozen=True, eq=False):
    """A number in all pairs of runs, and its name."""

    name: NumberName
    line: ComparisonLine
    cells: Cells


NamedColumn: TypeAlias = GridColumn[tuple[ComparedNumber, T]]
"""A column of rows that each begin with their number."""


def _list_numbers(compared: Compared) -> list[ComparedNumber]:
    """Every number in the order of the trees."""
    by_number: dict[tuple[str, MetricKey], dict[tuple[int, int], ComparisonLine]] = {}
    for pair, comparison in zip(compared.pairs, compared.comparisons, strict=True):
        for line in comparison.lines:
            by_number.setdefault((line.name, line.key), {})[pair] = line
    placed = place_lines((next(iter(cells.values())) for cells in by_number.values()), collect_trees(compared))
    aliases = compared.aliases
    return [
        ComparedNumber(
            NumberName(aliases.get(line.name, line.name), line.key, depth), line, by_number[line.name, line.key]
        )
        for depth, line in placed
    ]


def _build_name_columns(rows: Sequence[tuple[ComparedNumber, T]], *, joined: bool = False) -> list[NamedColumn[T]]:
    """The names of a number and its arrow, in the first of its rows."""
    names = build_name_columns(lambda row: row[0].name, rows, joined=joined)
    arrow = GridColumn[tuple[ComparedNumber, T]]("", lambda row: ARROWS[row[0].line.higher_is_better])
    return [replace(column, once=True) for column in (*names, arrow)]


# --- a matrix for every number ----------------------------------------------------------------------------------------


def _build_matrix(compared: Compared, numbers: Sequence[ComparedNumber], *, tested: bool) -> Grid:
    labels = compared.labels
    rows = [(number, at) for number in numbers for at in range(len(labels))]
    show = partial(_show_cell, alpha=compared.alpha, tested=tested)
    columns: list[NamedColumn[int]] = [
        *_build_name_columns(rows),
        GridColumn("run", lambda row: labels[row[1]]),
        GridColumn(N, lambda row: _show_count(row[0].cells, row[1])),
        GridColumn(VALUE, lambda row: _show_value(row[0].cells, row[1])),
        *(GridColumn(f"− {label}", partial(show, other)) for other, label in enumerate(labels)),
    ]
    grid = lay_grid(columns, rows, bold=lambda row: row[0].line.group, place=lambda row: row[0])
    interval = head_interval(compared.comparisons[0].confidence)
    return replace(grid, legend=(MATRIX.format(interval=interval, p=f" ({ADJUSTED_P})" * tested), OWN))


def _show_cell(other: int, row: tuple[ComparedNumber, int], *, alpha: float, tested: bool) -> str:
    """The row's run minus another, with the interval, and the adjusted p if it is shown."""
    number, at = row
    line = number.cells.get((min(at, other), max(at, other)))
    if at == other or line is None or line.difference is None:
        return "·" if at == other else ""
    low, high = line.ci or (0.0, 0.0)
    difference, ci = (line.difference, (low, high)) if at < other else (-line.difference, (-high, -low))
    ends = f" {show_ends(ci, 4)}" if line.ci is not None else ""
    p = f" ({show_p(line.adjusted)})" if tested and line.adjusted is not None else ""
    return show_difference(difference) + _mark_finding(line, alpha) + ends + p


def _list_own(cells: Cells, at: int) -> Iterable[tuple[ComparisonLine, float | None]]:
    """The lines of a run's pairs, each with its number there."""
    return ((line, line.a if pair[0] == at else line.b) for pair, line in cells.items() if at in pair)


def _show_value(cells: Cells, at: int) -> str:
    """A run's number, if it is the same on the documents shared with every other run."""
    values = {value for _, value in _list_own(cells, at)} - {None}
    return show_number(values.pop()) if len(values) == 1 else ""


def _show_count(cells: Cells, at: int) -> str:
    """How many documents a run's number is about; a range if that depends on the other run."""
    counts = {line.n for line, _ in _list_own(cells, at)}
    return "–".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else ""


def _mark_finding(line: ComparisonLine, alpha: float) -> str:
    if has_evidence(line, alpha):
        return "*"
    return "=" if line.adjusted_same is not None and line.adjusted_same <= alpha else " "


# --- a row for every pair ---------------------------------------------------------------------------------------------


def _build_pairs(compared: Compared, numbers: Sequence[ComparedNumber], shape: PairShape) -> Grid:
    rows = [(number, pair) for number in numbers for pair in number.cells]
    labels, decimals = compared.labels, shape.decimals
    columns: list[NamedColumn[tuple[int, int]]] = [
        *_build_name_columns(rows, joined=shape.joined),
        GridColumn("runs", lambda row: f"{labels[row[1][0]]} − {labels[row[1][1]]}"),
        GridColumn("", lambda row: _show_marked(_line_of(row), compared.alpha, decimals)),
        GridColumn(
            head_interval(compared.comparisons[0].confidence), lambda row: show_ends(_line_of(row).ci, decimals)
        ),
        GridColumn(ADJUSTED_P, lambda row: show_p(_line_of(row).adjusted), spare=1),
        GridColumn("first", lambda row: show_number(_line_of(row).a, decimals), spare=2),
        GridColumn("second", lambda row: show_number(_line_of(row).b, decimals), spare=2),
        GridColumn(N, lambda row: f"{_line_of(row).n:,}"),
    ]
    grid = lay_grid(
        [column for column in columns if not column.spare or column.spare > shape.dropped],
        rows,
        bold=lambda row: row[0].line.group,
        place=lambda row: row[0],
        gap=shape.gap,
        readable=WHOLE if shape.joined else 14,
    )
    return replace(grid, legend=(PAIRS, *([ENDS] if shape.dropped < 2 else [])))


def _line_of(row: tuple[ComparedNumber, tuple[int, int]]) -> ComparisonLine:
    return row[0].cells[row[1]]


def _show_marked(line: ComparisonLine, alpha: float, decimals: int) -> str:
    shown = show_difference(line.difference, decimals)
    return shown + _mark_finding(line, alpha) if shown else ""
