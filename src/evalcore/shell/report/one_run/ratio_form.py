"""Numbers that are exact for any choice of documents: functions of a ratio of sums, such as weighted means."""

from __future__ import annotations

from math import isclose, isfinite

import numpy as np
from msgspec import Struct

from evalcore.core.aggregate.task_report import Estimand
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.column import Column, scored_part
from evalcore.core.records.errors import RAISED
from evalcore.core.records.estimate import Aggregation, Estimate, Summary
from evalcore.core.records.row import Floats, Powers
from evalcore.core.stats.links import IDENTITY, LOG

CLOSE = 1e-12


class RatioForm(Struct, frozen=True):
    """A number that is ``factor`` · Σa / Σb, or e to that power if it is a ``log``."""

    factor: float
    log: bool
    keys: Ints64
    a: Floats64
    b: Floats64

    @property
    def plain(self) -> bool:
        """Whether a document's score is its number."""
        return not self.log and self.factor == 1

    @property
    def each(self) -> Floats64:
        """The number of each document alone."""
        with np.errstate(all="ignore"):
            shares = self.factor * self.a / self.b
            return np.exp(shares) if self.log else shares


def find_ratio(asked: Estimand) -> RatioForm | None:
    """Find the ratio that a column's number is; None where it is something else, or not known by document."""
    column = asked.scored.column
    if column.times is not None or isinstance(column.rows, Powers):
        return None
    known = scored_part(column)
    if not len(known):
        return None
    try:
        summary = asked.aggregation.summarise(known.rows, asked.options)
    except RAISED:
        return None
    stats = np.asarray(summary.stats, np.float64)
    if stats.shape != (len(known), 2) or not np.isfinite(stats).all():
        return None
    factor = _find_factor(asked.aggregation, summary, stats)
    return None if factor is None else RatioForm(factor, asked.aggregation.link is LOG, known.keys.ints, *stats.T)


def _find_factor(aggregation: Aggregation, summary: Summary, stats: Floats64) -> float | None:
    """Find the factor by trying what a ratio would give on all documents, and on either half of them."""
    link, finalise = aggregation.link, summary.finalise
    if finalise is None or (link is not IDENTITY and link is not LOG):
        return None
    with np.errstate(all="ignore"):
        factor = link.forward(float(np.real(finalise(np.ones(2)))))
        for some in (stats, stats[::2], stats[1::2], stats[:1]):
            a, b = some.sum(axis=0).tolist()
            if len(some) and b:
                wanted, found = float(np.real(finalise(np.array([a, b])))), link.inverse(factor * a / b)
                if not isclose(wanted, found, rel_tol=CLOSE, abs_tol=CLOSE):
                    return None
    return factor if isfinite(factor) else None


def counts_zero(column: Column) -> bool:
    """Whether a document without a score can count as 0."""
    return isinstance(column.rows, Floats)


def find_influences(estimate: Estimate, column: Column) -> tuple[Ints64, Floats64] | None:
    """The influence of each document on a number; None where documents count only together, or have none."""
    keys, moves = estimate.spread.keys, estimate.spread.influence
    if keys is None or moves is None or len(moves) != int(column.scored.sum()):
        return None
    known = moves.floats
    here = keys.ints if len(keys) == len(known) else column.keys.ints[column.scored]
    return (here, known) if np.isfinite(known).all() else None
