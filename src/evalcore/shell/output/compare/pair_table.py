"""Two runs side by side, for people: a row for every number, and what each column means."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.lines import Comparison, ComparisonLine
from evalcore.core.compare.verdicts.margins import tell_verdict
from evalcore.shell.compare.compare import Compared
from evalcore.shell.compare.run_names import Aliases
from evalcore.shell.output.compare.footnotes import list_runs, list_sections, sum_up, tell_correction, tell_same
from evalcore.shell.output.compare.line_order import collect_trees, place_lines
from evalcore.shell.output.terminal.grid import Grid, GridColumn, Page, lay_grid
from evalcore.shell.output.terminal.number_table import NumberName, build_name_columns
from evalcore.shell.output.terminal.number_text import (
    ADJUSTED_P,
    ARROWS,
    DETECTABLE,
    VERDICT,
    N,
    P,
    head_interval,
    show_difference,
    show_ends,
    show_number,
    show_p,
    show_share,
)

WHOLE = 24
"""How much of a task, its metric and its filter in one cell is readable."""


class PairShape(Struct, frozen=True):
    """How many columns a table leaves out, its decimals, the space between, whether all names are in one column."""

    dropped: int = 0
    decimals: int = 4
    gap: int = 2
    joined: bool = False


SHAPES = (
    PairShape(),
    PairShape(1),
    PairShape(2),
    PairShape(3),
    PairShape(3, 3),
    PairShape(3, 3, 1),
    PairShape(4, 3, 1),
    PairShape(5, 3, 1),
    PairShape(5, 3, 1, True),
    PairShape(6, 3, 1, True),
)
"""From the widest to the narrowest. P-values go first, for the verdict says what they say; the difference, its interval
and n stay.
"""

Placed = tuple[int, ComparisonLine]
"""A line, and how deep in the tree it stands."""


def _count_moved(line: ComparisonLine) -> str:
    """Empty where no document has a score of its own: those of a group have their tasks', those of a corpus none."""
    known = line.better or line.worse or (line.difference == 0 and not line.group)
    return f"{len(line.better):,} : {len(line.worse):,}" if known else ""


def _build_columns(comparison: Comparison, decimals: int, alpha: float) -> list[GridColumn[Placed]]:
    level, adjusted = show_share(comparison.confidence), comparison.correction.corrects
    several = adjusted and comparison.family > 1
    together = GridColumn[Placed](
        "adjusted interval",
        lambda at: show_ends(at[1].adjusted_ci, decimals),
        f"widened for the number of rows: all of them together contain all differences {level} of the time; "
        "the adjusted p is sharper, so one may reach 0 beside a verdict",
        spare=3,
    )
    unknown = any(line.higher_is_better is None and line.difference is not None for line in comparison.lines)
    unpointed = "; without an arrow, where A is higher : lower, for nobody said which is better" if unknown else ""
    tested = GridColumn[Placed](
        ADJUSTED_P,
        lambda at: show_p(at[1].adjusted),
        "p corrected for the number of tests: of many, some differ by luck",
        spare=2,
    )
    return [
        GridColumn("", lambda at: ARROWS[at[1].higher_is_better]),
        GridColumn(
            N,
            lambda at: f"{at[1].n:,}",
            "documents with a score in both runs; the whole row is about these",
        ),
        GridColumn("A", lambda at: show_number(at[1].a, decimals), "A's number on these documents; B: B's", spare=6),
        GridColumn("B", lambda at: show_number(at[1].b, decimals), spare=6),
        GridColumn("A − B", lambda at: show_difference(at[1].difference, decimals), "A's number minus B's"),
        GridColumn(
            head_interval(comparison.confidence),
            lambda at: show_ends(at[1].ci, decimals),
            f"about {level} of intervals made this way contain the difference on all documents like these; not "
            "corrected for the number of rows",
        ),
        GridColumn(
            P,
            lambda at: show_p(at[1].p_value),
            "how often luck alone would give a difference this large, were the runs equally good",
            spare=1,
        ),
        *([tested] if adjusted else []),
        *([together] if several else []),
        GridColumn(
            DETECTABLE,
            lambda at: show_number(at[1].detectable, decimals),
            "the smallest true difference that a comparison like this finds 4 times in 5"
            + ", among so many rows" * several,
            spare=4,
        ),
        GridColumn(
            "better : worse",
            lambda at: _count_moved(at[1]),
            f"documents where A does better : where A does worse than B{unpointed}",
            spare=5,
        ),
        GridColumn(
            VERDICT,
            lambda at: tell_verdict(at[1], alpha, margin=comparison.margin),
            f"who is better if {'the adjusted p' if adjusted else 'p'} is at most {alpha:g} and the interval lacks 0; "
            + ("no evidence does not mean that they are equal" if comparison.margin is None else tell_same(comparison)),
            number=False,
        ),
    ]


def build_pair_page(compared: Compared) -> Page:
    """The page of two runs."""
    comparison, alpha, aliases = compared.comparisons[0], compared.alpha, compared.aliases
    placed = place_lines(comparison.lines, collect_trees(compared))
    return Page(
        grids=tuple(_build_grid(comparison, placed, shape, alpha, aliases) for shape in SHAPES),
        lead=compared.lead,
        title=list_runs(compared),
        legend=(tell_correction(comparison.correction, comparison.family, alpha),),
        sections=(*list_sections(compared), sum_up(compared)),
    )


def _build_grid(
    comparison: Comparison, placed: Sequence[Placed], shape: PairShape, alpha: float, aliases: Aliases
) -> Grid:
    columns = _build_columns(comparison, shape.decimals, alpha)
    kept = [column for column in columns if not column.spare or column.spare > shape.dropped]
    names = build_name_columns(
        lambda at: NumberName(aliases.get(at[1].name, at[1].name), at[1].key, at[0]), placed, joined=shape.joined
    )
    grid = lay_grid(
        [*names, *kept],
        placed,
        bold=lambda at: at[1].group,
        place=lambda at: (at[0], at[1].name),
        gap=shape.gap,
        readable=WHOLE if shape.joined else 14,
    )
    left = ", ".join(column.head for column in columns if column not in kept)
    narrow = f"left out because this terminal is too narrow: {left} (--csv, --json and --markdown have them)"
    return replace(grid, legend=(*grid.legend, narrow)) if left else grid
