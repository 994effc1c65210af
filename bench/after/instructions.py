"""What a document takes in instructions: the same number however busy the machine is.

A process counts everything, its start too, so a document's share is the difference of two sizes; a third size shows
whether that share grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from bench.after.aggregation import KINDS
from bench.measure import count_instructions, run_python
from bench.rows import Row, at_most
from bench.scale.growth import CASES

PREPARE = """
import sys
from bench.scale.growth import *
case, n = sys.argv[1], int(sys.argv[2])
piece = CASES[case](n)(0, n)
"""
SCORE = PREPARE + "report_task(score_task(*piece))"
CLOSE = "import sys; from bench.after.aggregation import *; KINDS[sys.argv[1]](int(sys.argv[2]))()"


def measure_rows(*, docs: int = 2_000, rows: int = 10_000, kind: str = "") -> Iterator[Row]:
    """Scoring at ``docs``, twice and four times as many, closing at ``rows``, twice and ten times; or one kind."""
    run_python(CLOSE, next(iter(KINDS)), 10)  # bytecode is written before
    for case in [] if kind else CASES:
        sizes = docs, 2 * docs, 4 * docs
        both = [[count_instructions(code, case, n) for n in sizes] for code in (SCORE, PREPARE)]
        counts = [whole - prepared for whole, prepared in zip(*both, strict=True)]
        yield _compare(f"scoring, {case}", sizes, counts)
    for one in [kind] if kind else KINDS:
        sizes = rows, 2 * rows, 10 * rows
        yield _compare(f"closing, {one}", sizes, [count_instructions(CLOSE, one, n) for n in sizes])


def _compare(what: str, sizes: tuple[int, int, int], counts: list[int]) -> Row:
    shares = [(counts[at + 1] - counts[at]) / (sizes[at + 1] - sizes[at]) for at in (0, 1)]
    middles = [(sizes[at + 1] + sizes[at]) / 2 for at in (0, 1)]
    return Row(
        what=what,
        ours=shares[1],
        unit="instructions a document",
        exponent=1 + log(shares[1] / shares[0]) / log(middles[1] / middles[0]),
        targets=(at_most(1.05, "exponent"),),
        note=f"{shares[0]:,.0f} from {sizes[0]:,} to {sizes[1]:,}, {shares[1]:,.0f} to {sizes[2]:,}",
    )
