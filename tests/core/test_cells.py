"""Every cell of the grids in bench/: intervals hold the truth as they promise, and equal runs are not called different.

The quick tests draw each cell a few times and allow for luck; the slow ones draw more and allow for less. The seeds are
fixed, so that a failure is a change of the code.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")
from bench.simulations.cells import list_cells
from bench.simulations.measures import LEAST, measure, measure_pairs
from bench.simulations.pair_cells import list_null_cells, list_other_cells

CELLS = list(list_cells())
FAMILIES = tuple(dict.fromkeys(cell.family for cell in CELLS))
NULLS, OTHERS = list(list_null_cells()), list(list_other_cells())
PAIRED = tuple(dict.fromkeys(cell.family for cell in NULLS))


def luck(share: float, draws: int) -> float:
    """How far a share of so many draws may fall from the truth by luck: two and a half standard deviations."""
    return float(2.5 * np.sqrt(share * (1 - share) / draws))


def check_coverage(family: str, draws: int, most: int) -> None:
    short = []
    for cell in CELLS:
        if cell.family == family and cell.n <= most:
            seen = measure(cell, draws)
            least = LEAST - luck(LEAST, draws)
            if not (seen.held >= least or (seen.warned > 0 and seen.unwarned >= least)):
                short.append((cell.name, seen.held, seen.warned))
    assert not short


@pytest.mark.parametrize(
    "family", [name for name in FAMILIES if name != "bits per byte"]
)  # rows of weighted perplexity
def test_intervals_hold_the_truth(family: str) -> None:
    check_coverage(family, 50, 30)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_hold_the_truth_in_many_draws(family: str) -> None:
    check_coverage(family, 1000, 1000)


def check_findings(family: str, draws: int, most: int) -> None:
    wrong = []
    for cell in NULLS:
        if cell.family == family and cell.n <= most:
            seen = measure_pairs(cell, draws)
            if seen.found > 0.06 + luck(0.06, draws) or seen.held < LEAST - luck(LEAST, draws):
                wrong.append((cell.name, seen.found, seen.held))
    assert not wrong


@pytest.mark.parametrize("family", PAIRED)
def test_equal_runs_are_not_called_different(family: str) -> None:
    check_findings(family, 50, min(cell.n for cell in NULLS if cell.family == family))


@pytest.mark.slow
@pytest.mark.parametrize("family", PAIRED)
def test_equal_runs_are_not_called_different_in_many_draws(family: str) -> None:
    check_findings(family, 1000, 1000)


@pytest.mark.parametrize("cell", OTHERS, ids=lambda cell: cell.name)
def test_intervals_of_differences_hold_the_truth_and_tests_find_what_students_does(cell) -> None:
    seen = measure_pairs(cell, 60)
    assert seen.held >= LEAST - luck(LEAST, 60)
    assert seen.paired_t is not None
    assert seen.found >= seen.paired_t - 0.1, "about as many findings as the paired t test's, whose errors are more"
