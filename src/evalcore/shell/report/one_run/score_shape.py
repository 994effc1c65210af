"""How the scores of a task's documents are distributed: counts by value where there are few values, else by bin."""

from __future__ import annotations

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from evalcore.core.records.array import Floats64

FEW = 12
"""Up to so many different scores are counted by value."""

BINS = 20

WIDE = 100
"""The largest score is so many times the smallest where bins are by logarithm."""


class ScoreShape(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of scores: of each of ``values``, or between each two of ``edges``; ``beyond`` are those not finite.

    Edges of scores that differ a hundredfold are apart by a factor (``log``).
    """

    n: int
    counts: tuple[int, ...]
    values: tuple[float, ...] | UnsetType = UNSET
    edges: tuple[float, ...] | UnsetType = UNSET
    log: bool = False
    beyond: int = 0


def shape_scores(scores: Floats64) -> ScoreShape | None:
    """Count scores; None where there is nothing to count. Scores of 0 and 1 are two bars, even if one is empty.

    >>> shape_scores(np.array([1.0, 1.0, 1.0]))
    ScoreShape(n=3, counts=(0, 3), values=(0.0, 1.0), edges=UNSET, log=False, beyond=0)
    >>> shape_scores(np.linspace(0, 1, 100)).counts[:3]
    (5, 5, 5)
    >>> shape_scores(np.geomspace(1, 1000, 100)).log
    True
    """
    known = scores[np.isfinite(scores)]
    beyond = len(scores) - len(known)
    if not len(known):
        return None
    values, counts = np.unique(known, return_counts=True)
    if set(values.tolist()) <= {0.0, 1.0}:
        ones = int(np.count_nonzero(known))
        return ScoreShape(n=len(known), counts=(len(known) - ones, ones), values=(0.0, 1.0), beyond=beyond)
    if len(values) <= FEW:
        return ScoreShape(n=len(known), counts=tuple(counts.tolist()), values=tuple(values.tolist()), beyond=beyond)
    low, high = float(values[0]), float(values[-1])
    within = low >= 0 and high <= 1
    log = not within and 0 < low < high / WIDE
    asked = np.geomspace(low, high, BINS + 1) if log else BINS
    binned, edges = np.histogram(known, asked, (0.0, 1.0) if within else (low, high))
    counted, ends = tuple(binned.tolist()), tuple(edges.tolist())
    return ScoreShape(n=len(known), counts=counted, edges=ends, log=log, beyond=beyond)
