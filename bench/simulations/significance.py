"""How often equal runs are called different, how often a better run is found, and whether the interval holds the truth.

Every cell (pair_cells.py) is drawn again and again with seeds of its own. Beside evalcore stand the paired t test
(scipy's, as lmms-eval does it) and the unpaired z test of lm-eval's comparison script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.rows import Section, write_table
from bench.simulations.measures import ALPHA, PairMeasured, measure_pairs
from bench.simulations.pair_cells import list_null_cells, list_other_cells
from bench.simulations.picture import Series, draw_strips


def tabulate(found: Sequence[PairMeasured]) -> str:
    head = ("runs", "evalcore", "paired t", "unpaired z", "interval holds the truth", "width")
    rows = [
        (
            one.cell.name,
            f"{100 * one.found:.1f}",
            _percent(one.paired_t),
            _percent(one.unpaired_z),
            f"{100 * one.held:.1f}",
            f"{one.width:.2f}",
        )
        for one in found
    ]
    return write_table(head, rows)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def picture(found: Sequence[PairMeasured]) -> str:
    families = dict.fromkeys(one.cell.family for one in found)
    own = {family: [one for one in found if one.cell.family == family] for family in families}
    strips = [
        (
            family,
            (
                Series("paired t (lmms-eval)", tuple(one.paired_t for one in cells if one.paired_t is not None)),
                Series("evalcore", tuple(one.found for one in cells)),
                Series("unpaired z (lm-eval)", tuple(one.unpaired_z for one in cells if one.unpaired_z is not None)),
            ),
        )
        for family, cells in own.items()
    ]
    return draw_strips(
        "Share of equal runs that are called different at 5 %, a dot a cell (right edge: 20 % or more)",
        strips,
        ALPHA,
        most=0.2,
    )


def measure_rows(*, repetitions: int = 1000, family: str = "") -> Iterator[Section]:
    """All families, or one alone, whose tables are not written."""
    equal, other = (
        [measure_pairs(cell, repetitions) for cell in cells if family in ("", cell.family)]
        for cells in (list_null_cells(), list_other_cells())
    )
    if family:
        print(f"{tabulate(equal)}\n\n{tabulate(other)}")
        return
    yield Section("compare.md", "equal runs", tabulate(equal))
    yield Section("compare.md", "better runs", tabulate(other))
    yield Section("significance.svg", "", picture(equal))
