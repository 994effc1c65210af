"""How often equal runs are called different, how often a better run is found, and whether the interval holds the truth.

Every cell (bench/pair_cells.py) is drawn again and again with seeds of its own. Beside evalcore stand the paired t test
(scipy's, as lmms-eval does it) and the unpaired z test of lm-eval's comparison script.

    python bench/significance.py [REPETITIONS] [FAMILY ...] [--write]

``--write`` puts the tables into docs/compare.md and the picture into docs/significance.svg.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from measures import ALPHA, PairMeasured, measure_pairs
from pair_cells import list_null_cells, list_other_cells
from picture import Series, draw_strips
from rewrite import DOCS, write_section, write_table


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


def main(arguments: Sequence[str]) -> None:
    flags = [one for one in arguments if one.startswith("--")]
    words = [one for one in arguments if not one.startswith("--")]
    repetitions = int(words.pop(0)) if words and words[0].isdigit() else 1000
    equal, other = (
        [measure_pairs(cell, repetitions) for cell in cells if not words or cell.family in words]
        for cells in (list_null_cells(), list_other_cells())
    )
    print(f"Equal runs: findings at 5 % ({repetitions:,} comparisons a cell)\n{tabulate(equal)}")
    print(f"\nA better run: findings\n{tabulate(other)}")
    if "--write" in flags:
        write_section(DOCS / "compare.md", "equal runs", tabulate(equal))
        write_section(DOCS / "compare.md", "better runs", tabulate(other))
        (DOCS / "significance.svg").write_text(picture(equal), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
