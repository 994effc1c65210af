"""Two runs side by side, for people: a row for every number, and what each column means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from evalcore.core.compare.gates import name_verdict, spell_number
from evalcore.core.compare.lines import Comparison, Line
from evalcore.core.groups.tree import Tree
from evalcore.shell.output.compare.footnotes import sections_of, tell_correction, title_of
from evalcore.shell.output.compare.line_order import Compared, place_lines, trees_of
from evalcore.shell.output.terminal.flat import ARROWS, shown_number, shown_percent
from evalcore.shell.output.terminal.grid import Grid, Page

__all__ = ["WHOLE", "indented", "pair_page", "shown_p", "signed", "spell_line"]

DEEPEST = 20


class Shape(Struct, frozen=True):
    """What a table leaves out, its decimals, the space between its columns, whether all names are in one of them."""

    dropped: tuple[str, ...] = ()
    decimals: int = 4
    gap: int = 2
    joined: bool = False


SHAPES = (
    Shape(),
    Shape((), 3),
    Shape((), 3, 1),
    Shape(("detectable",), 3, 1),
    Shape(("detectable", "p"), 3, 1),
    Shape(("detectable", "p", "better : worse"), 3, 1),
    Shape(("detectable", "p", "better : worse"), 3, 1, True),
    Shape(("detectable", "p", "better : worse", "n"), 3, 1, True),
    Shape(("detectable", "p", "better : worse", "n", "A", "B"), 3, 1, True),
    Shape(("detectable", "p", "better : worse", "n", "A", "B", "interval"), 3, 1, True),
)
"""From the widest to the narrowest. The verdict rests on what is never left out."""


class Column(Struct, frozen=True):
    """A column: its head, its cells, what it means, and whether it holds numbers."""

    head: str
    cell: Callable[[Line, int, float], str]
    meaning: str = ""
    number: bool = True


def signed(value: float | None, decimals: int = 4) -> str:
    """A difference, with its sign.

    >>> signed(0.25), signed(-0.25), signed(-0.0), signed(None)
    ('+0.2500', '-0.2500', '0.0000', '')
    """
    return "" if value is None else ("+" if value > 0 else "") + shown_number(value or 0.0, decimals)


def shown_p(p_value: float | None) -> str:
    """A p-value as people write it.

    >>> shown_p(0.04567), shown_p(0.00001), shown_p(1.0), shown_p(None)
    ('0.0457', '<0.0001', '1.0000', '')
    """
    return "" if p_value is None else "<0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def _number(value: float | None, decimals: int) -> str:
    return "" if value is None else shown_number(value, decimals)


def _interval(line: Line, decimals: int) -> str:
    return "" if line.ci is None else " to ".join(signed(end, decimals) for end in line.ci)


def _moved(line: Line) -> str:
    """Empty where no document has a score of its own: those of a group have their tasks', those of a corpus none."""
    known = line.better or line.worse or (line.difference == 0 and not line.group)
    return f"{len(line.better):,} : {len(line.worse):,}" if known else ""


COLUMNS = (
    Column("Metric", lambda line, *_: line.key.metric, number=False),
    Column("Filter", lambda line, *_: line.key.filter, number=False),
    Column("", lambda line, *_: ARROWS[line.higher_is_better]),
    Column("n", lambda line, *_: f"{line.n:,}", "documents with a score in both runs; all of the row is about these"),
    Column("A", lambda line, decimals, _: _number(line.a, decimals), "A's number on these documents; B: B's"),
    Column("B", lambda line, decimals, _: _number(line.b, decimals)),
    Column("A − B", lambda line, decimals, _: signed(line.difference, decimals), "A's number minus B's"),
    Column(
        "interval",
        lambda line, decimals, _: _interval(line, decimals),
        "the difference on endlessly many documents like these would lie in here, with {level} confidence; not "
        "corrected for the number of rows",
    ),
    Column("p", lambda line, *_: shown_p(line.p_value), "how often luck alone gives such a difference or a larger one"),
    Column(
        "adjusted p", lambda line, *_: shown_p(line.adjusted), "p made larger, for with many rows luck has many tries"
    ),
    Column(
        "detectable",
        lambda line, decimals, _: _number(line.detectable, decimals),
        "the smallest true difference that a comparison like this finds 4 times in 5",
    ),
    Column(
        "better : worse", lambda line, *_: _moved(line), "documents where A does better : where A does worse than B"
    ),
    Column(
        "verdict",
        lambda line, _, alpha: name_verdict(line, alpha),
        "who is better if {p} is at most {alpha:g}; no evidence does not mean that they are equal",
        number=False,
    ),
)


NAMES = {"Metric", "Filter"}
WHOLE = 24
"""How much of a task, its metric and its filter in one cell is readable."""


def spell_line(line: Line) -> str:
    """A number in one cell, as ``check --min`` takes it.

    >>> from evalcore.core.records.task import MetricKey
    >>> spell_line(Line(name="t", key=MetricKey("acc"))), spell_line(Line(name="t", key=MetricKey("em", "raw")))
    ('t/acc', 't/em,raw')
    """
    return spell_number((line.name, line.key))[2 if line.key.filter == "none" else 3]


def indented(depth: int, name: str) -> str:
    """A name as far in as it is deep.

    >>> indented(0, "g"), indented(2, "t")
    ('g', '  - t')
    """
    return " " * min(depth, DEEPEST) + "- " * bool(depth) + name


def pair_page(compared: Compared) -> Page:
    """The page of two runs."""
    comparison, alpha = compared.comparisons[0], round(compared.alpha, 9)
    level = shown_percent(comparison.confidence)
    columns, trees = _columns(comparison), trees_of(compared)
    return Page(
        grids=tuple(_grid(comparison, trees, columns, shape, level, alpha) for shape in SHAPES),
        lead=compared.lead,
        title=title_of(compared),
        legend=(tell_correction(comparison.correction, comparison.family, alpha),),
        sections=sections_of(compared),
    )


def _columns(comparison: Comparison) -> tuple[Column, ...]:
    filtered = any(line.key.filter != "none" for line in comparison.lines)
    silent = {*(() if filtered else ("Filter",)), *(("adjusted p",) if comparison.correction == "none" else ())}
    return tuple(column for column in COLUMNS if column.head not in silent)


def _grid(
    comparison: Comparison,
    trees: Sequence[Tree[object]],
    columns: Sequence[Column],
    shape: Shape,
    level: str,
    alpha: float,
) -> Grid:
    # Without an adjusted p, p itself is what the verdict rests on.
    dropped = {*shape.dropped} - ({"p"} if comparison.correction == "none" else set())
    kept = [column for column in columns if column.head not in dropped | (NAMES if shape.joined else set())]
    lines: list[tuple[str, ...]] = []
    before: tuple[int, str] | None = None
    placed = place_lines(comparison.lines, trees)
    for depth, line in placed:
        again, before = (depth, line.name) == before and not shape.joined, (depth, line.name)
        name = spell_line(line) if shape.joined else line.name
        cells = (column.cell(line, shape.decimals, alpha) for column in kept)
        lines.append(("" if again else indented(depth, name), *cells))
    heads = (_head(column, level) for column in kept)
    return Grid(
        heads=("Tasks", *heads),
        numbers=(False, *(column.number for column in kept)),
        lines=tuple(lines),
        bold=tuple(line.group for _, line in placed),
        gap=shape.gap,
        legend=tuple(_legend(kept, columns, level, alpha)),
        readable=WHOLE if shape.joined else 14,
    )


def _legend(kept: Sequence[Column], columns: Sequence[Column], level: str, alpha: float) -> Iterator[str]:
    """What the columns that are shown mean, and which are not."""
    p = "the adjusted p" if any(column.head == "adjusted p" for column in columns) else "p"
    for column in kept:
        if column.meaning:
            yield f"{_head(column, level)}: {column.meaning.format(level=level, alpha=alpha, p=p)}"
    left = [_head(column, level) for column in columns if column not in kept and column.head not in NAMES]
    if left:
        yield f"left out, for this terminal is too narrow: {', '.join(left)} (--csv, --json and --markdown have them)"


def _head(column: Column, level: str) -> str:
    return f"{level} interval" if column.head == "interval" else column.head
