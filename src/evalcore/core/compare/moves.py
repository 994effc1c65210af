"""One metric of a task in two runs, how far it moves a line, and what kind of scores are behind it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.column import Column
from evalcore.core.records.estimate import Aggregation, Estimate, Part
from evalcore.core.records.task import MetricKey


class Pair(Struct, frozen=True, eq=False):
    """One metric of a task in both runs, on the documents with a score in both, in the same order.

    Without columns, the influences of the estimates approximate the runs' values after a swap.
    """

    task: str
    key: MetricKey
    a: Estimate
    b: Estimate
    columns: tuple[Column, Column] | None = None
    aggregation: Aggregation | None = None
    unscored: int = 0

    @property
    def clusters(self) -> Ints64 | None:
        """Cluster codes of the units, which other tasks may share; None if none are declared."""
        return None if self.a.spread.clusters is None else self.a.spread.clusters.ints

    @property
    def alone(self) -> bool:
        """Whether every unit is a cluster of its own, declared or not."""
        return self.clusters is None or len(np.unique(self.clusters)) == len(self.clusters)


class Move(Struct, frozen=True, eq=False):
    """How far a pair moves a line's number in either run."""

    pair: Pair
    a: Part
    b: Part

    @property
    def weight(self) -> float:
        """Its slope in the line: the mean of both runs', which differ only for values on a scale of their own."""
        return (self.a.slope + self.b.slope) / 2 or 1.0


def influence_of(part: Part, estimate: Estimate) -> Floats64 | None:
    """The influence of a task's documents on a number that the task is part of."""
    if part.influence is not None:
        return part.influence.floats
    return None if estimate.spread.influence is None else part.slope * estimate.spread.influence.floats


def count_clusters(moves: Sequence[Move]) -> int | None:
    """Count the distinct clusters of a line; None if every document is a cluster of its own."""
    codes = [move.pair.clusters for move in moves if move.pair.clusters is not None]
    if not codes:
        return None
    count = len(np.unique(np.concatenate(codes)))
    return count if count < sum(map(len, codes)) else None


def find_binary_scores(moves: Sequence[Move]) -> tuple[Floats64, Floats64] | None:
    """Find the 0/1 scores behind a line, if it is one task's mean of independent documents."""
    if len(moves) != 1 or any(part.slope != 1 or part.influence is not None for part in (moves[0].a, moves[0].b)):
        return None
    pair = moves[0].pair
    first, second = _find_bits(pair.a), _find_bits(pair.b)
    return (first, second) if pair.alone and first is not None and second is not None else None


def _find_bits(estimate: Estimate) -> Floats64 | None:
    """Find the 0/1 scores behind a mean; None if the scores are something else."""
    given = _find_scores(estimate)
    if not estimate.scale.even or not len(given):
        return None
    scores = np.rint(given)
    if given.any() and not scores.any():  # where all scores are as small as 1e-10, that is no rounding error of 0
        return None
    return scores if ((np.abs(given - scores) < 1e-9) & np.isin(scores, (0, 1))).all() else None


def find_reach(moves: Sequence[Move]) -> float | None:
    """Find the most that one document can differ by; None unless the numbers are means within bounds."""
    bounds = {move.pair.a.scale.bounds for move in moves} | {move.pair.b.scale.bounds for move in moves}
    means = all(move.pair.a.scale.average and move.pair.a.scale.link.plain for move in moves)
    low, high = next(iter(bounds))
    return high - low if means and len(bounds) == 1 and isfinite(high - low) else None


def has_mainly_extremes(moves: Sequence[Move]) -> bool:
    """Whether more than half of each run's scores are the lowest or the highest possible.

    Documents on which such runs differ by the whole reach may be too rare to be in the sample.
    """
    sides = [move.pair.a for move in moves], [move.pair.b for move in moves]
    return all(2 * sum(map(_count_extremes, side)) > sum(one.count for one in side) for side in sides)


def _count_extremes(estimate: Estimate) -> int:
    scores, (low, high) = _find_scores(estimate), estimate.scale.bounds
    return int(np.count_nonzero(np.minimum(np.abs(scores - low), np.abs(scores - high)) < 1e-9 * (high - low)))


def _find_scores(estimate: Estimate) -> Floats64:
    """Find the scores behind a mean; none if the influences of its documents are unknown."""
    influence = estimate.spread.influence
    return np.zeros(0) if influence is None or estimate.value is None else influence.floats + estimate.value
