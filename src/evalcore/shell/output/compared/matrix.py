"""Three or more runs, for people: for every number a matrix of paired differences, row minus column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalcore.core.comparison import Line
from evalcore.core.records import MetricKey
from evalcore.shell.output.compared.notes import sections_of, tell_correction, title_of
from evalcore.shell.output.compared.pair import indented, signed
from evalcore.shell.output.compared.rows import Compared, place_lines, trees_of
from evalcore.shell.output.flat import ARROWS, shown_number
from evalcore.shell.output.grid import Grid, Page

__all__ = ["matrix_page"]

Cells = Mapping[tuple[int, int], Line]
"""The line of each pair of runs, for one number."""


def matrix_page(compared: Compared) -> Page:
    """The page of several runs."""
    first = compared.comparisons[0]
    alpha = round(compared.alpha, 9)
    return Page(
        grids=tuple(_grid(compared, decimals) for decimals in (4, 3)),
        title=title_of(compared),
        legend=(
            "− A, − B, ...: the row's run minus the column's, on the documents that both have a score for",
            f"*: more than luck explains (adjusted p at most {alpha:g})",
            "value: a run's number; empty where it depends on which documents the other run has",
            tell_correction(first.correction, first.family, alpha),
            "intervals, p-values and flipped documents of every pair: --json or --csv, or compare two runs alone",
        ),
        sections=sections_of(compared),
    )


def _grid(compared: Compared, decimals: int) -> Grid:
    by_number: dict[tuple[str, MetricKey], dict[tuple[int, int], Line]] = {}
    for pair, comparison in zip(compared.pairs, compared.comparisons, strict=True):
        for line in comparison.lines:
            by_number.setdefault((line.name, line.key), {})[pair] = line
    filtered = any(key.filter != "none" for _, key in by_number)
    placed = place_lines((next(iter(cells.values())) for cells in by_number.values()), trees_of(compared))
    lines: list[tuple[str, ...]] = []
    for depth, line in placed:
        cells = by_number[line.name, line.key]
        head = (indented(depth, line.name), line.key.metric, *([line.key.filter] if filtered else []))
        for at, label in enumerate(compared.labels):
            told = (*head, ARROWS[line.higher_is_better]) if at == 0 else ("",) * (len(head) + 1)
            row = _row(cells, at, len(compared.labels), compared.alpha, decimals)
            lines.append((*told, label, _value(cells, at, decimals), *row))
    names = ("Tasks", "Metric", *(["Filter"] if filtered else []))
    count = len(compared.labels)
    return Grid(
        heads=(*names, "", "run", "value", *(f"− {label}" for label in compared.labels)),
        numbers=(*(False for _ in names), *(True,) * (count + 3)),
        lines=tuple(lines),
        bold=tuple(line.group for _, line in placed for _ in range(count)),
    )


def _row(cells: Cells, at: int, count: int, alpha: float, decimals: int) -> Iterable[str]:
    for other in range(count):
        line = cells.get((min(at, other), max(at, other)))
        if at == other or line is None or line.difference is None:
            yield "·" if at == other else ""
        else:
            star = "*" if line.adjusted is not None and line.adjusted <= alpha else " "
            yield signed(line.difference if at < other else -line.difference, decimals) + star


def _value(cells: Cells, at: int, decimals: int) -> str:
    """A run's number, if it is the same on the documents shared with every other run."""
    found: Sequence[float | None] = [line.a if pair[0] == at else line.b for pair, line in cells.items() if at in pair]
    value = next((one for one in found if one is not None), None)
    return "" if value is None or len({one for one in found if one is not None}) > 1 else shown_number(value, decimals)
