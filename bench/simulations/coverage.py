"""How often an interval that promises 95 % holds the truth, and how wide it is: evalcore's, lm-eval's and Inspect's.

Right and wrong answers are exact sums over all outcomes; every other cell (cells.py) is drawn again and again,
with seeds of its own. A width is relative to the oracle's: 3.92 times the true standard deviation of the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, lgamma, log

import numpy as np
from lm_eval.api.metrics import mean_stderr

from bench.rows import Section, write_table
from bench.simulations.cells import CHANCES, SIZES, list_cells
from bench.simulations.measures import Ends, Measured, holds, measure
from bench.simulations.picture import Series, draw_strips
from evalcore import AGGREGATIONS, aggregate_metric
from evalcore.core.stats.quantiles import t_quantile
from evalcore.stats import Array, Floats, Inference, build_column

PROMISE = 0.95


# --- right and wrong answers: exact sums -----------------------------------------------------------------------------


def scores(hits: int, n: int) -> list[float]:
    return [1.0] * hits + [0.0] * (n - hits)


def ours(method: str) -> Callable[[int, int], Ends | None]:
    def ends(hits: int, n: int) -> Ends | None:
        made = build_column(range(n), Floats(Array(scores(hits, n))))
        return aggregate_metric(AGGREGATIONS["mean"], made, inference=Inference(interval=method)).ci

    return ends


def around(quantile: Callable[[int], float]) -> Callable[[int, int], Ends]:
    def ends(hits: int, n: int) -> Ends:
        reach = quantile(n) * float(mean_stderr(scores(hits, n)))
        return hits / n - reach, hits / n + reach

    return ends


WAYS: dict[str, Callable[[int, int], Ends | None]] = {
    "lm-eval, value ± 1.96 `stderr`": around(lambda n: 1.96),
    "value ± t · stderr (Inspect's `ci`)": around(lambda n: t_quantile(0.975, n - 1)),
    "evalcore": ours("wilson"),
    "evalcore, `ci: exact`": ours("exact"),
}


def sum_exactly(ends: Callable[[int, int], Ends | None], n: int, p: float) -> float:
    chances = [chance(k, n, p) for k in range(n + 1)]
    return sum(one for k, one in enumerate(chances) if one > 1e-12 and holds(ends(k, n), p))


def chance(k: int, n: int, p: float) -> float:
    """The chance of k right answers of n."""
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p))


def tabulate_exact() -> str:
    cells = [(n, p) for n in SIZES for p in CHANCES]
    rows = [(name, *(f"{100 * sum_exactly(ends, n, p):.1f}" for n, p in cells)) for name, ends in WAYS.items()]
    return write_table(("", *(f"{n}, {p:g}".replace("0.", ".") for n, p in cells)), rows)


# --- what is printed and written -------------------------------------------------------------------------------------


def tell_cell(one: Measured) -> str:
    peer, clustered = ("     " if share is None else f"{100 * share:5.1f}" for share in (one.peer, one.inspect))
    notes = "".join(
        [
            f"  no interval in {100 * (1 - one.given):.0f} %" if one.given < 1 else "",
            f"  warned in {100 * one.warned:.0f} %" if one.warned else "",
            "" if one.kept else "  BELOW 90 %",
        ]
    )
    return f"{one.cell.name:70s} {100 * one.held:5.1f} {peer} {clustered} {one.width:6.2f}{notes}"


def summarise(found: Sequence[Measured]) -> str:
    """One row a family: the least and the median coverage, and the widths."""
    rows = []
    for family in dict.fromkeys(one.cell.family for one in found):
        own = [one for one in found if one.cell.family == family]
        quiet = [one for one in own if one.warned < 0.5]
        peers = [one.peer for one in own if one.peer is not None]
        inspect = [one.inspect for one in own if one.inspect is not None]
        widths = [one.width for one in quiet]
        rows.append(
            (
                family,
                str(len(own)),
                f"{100 * min((one.unwarned for one in quiet), default=1):.0f}" if quiet else "-",
                f"{100 * float(np.median([one.held for one in own])):.0f}",
                f"{min(widths):.1f} to {max(widths):.1f}" if widths else "-",
                _tell_warned([one for one in own if one.warned >= 0.5]),
                _tell_span(peers) or "no error",
                _tell_span(inspect) or "-",
            )
        )
    head = ("number", "cells", "least %", "median %", "width", "warned cells (least %)", "lm-eval %", "Inspect %")
    return write_table(head, rows)


def _tell_span(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {100 * max(shares):.0f}" if shares else ""


def _tell_warned(cells: Sequence[Measured]) -> str:
    return f"{len(cells)} ({100 * min(one.held for one in cells):.0f})" if cells else "0"


def picture(found: Sequence[Measured]) -> str:
    families = dict.fromkeys(one.cell.family for one in found)
    strips = [
        (
            family,
            (
                Series(
                    "lm-eval", tuple(one.peer for one in found if one.cell.family == family and one.peer is not None)
                ),
                Series("evalcore", tuple(one.held for one in found if one.cell.family == family and one.warned < 0.5)),
                Series(
                    "evalcore, warned",
                    tuple(one.held for one in found if one.cell.family == family and one.warned >= 0.5),
                ),
            ),
        )
        for family in families
    ]
    return draw_strips("Share of 95 % intervals that hold the truth, a dot a cell", strips, PROMISE)


def measure_rows(*, repetitions: int = 1000, family: str = "") -> Iterator[Section]:
    """All families and the exact sums, or one family alone, whose table is not written."""
    found = []
    for cell in list_cells():
        if family in ("", cell.family):
            found.append(measure(cell, repetitions, peers=True))
            print(tell_cell(found[-1]), flush=True)
    if family:
        print(summarise(found))
        return
    yield Section("error-bars.md", "exact coverage", tabulate_exact())
    yield Section("error-bars.md", "coverage", summarise(found))
    yield Section("coverage.svg", "", picture(found))
