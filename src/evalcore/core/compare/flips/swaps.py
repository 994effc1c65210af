"""What swapping the runs' results of some units does to the numbers of a task, and so to a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite

import numpy as np
from msgspec.structs import replace

from evalcore.core.compare.flips.units import Where
from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.compare.moves import Move, Pair, influence_of
from evalcore.core.records.array import ColumnRecord, Finalise, Floats64, frozen
from evalcore.core.records.column import build_column, concat_rows
from evalcore.core.records.errors import EvalError
from evalcore.core.stats.influence import gradient
from evalcore.core.stats.links import IDENTITY, Link

Ends = tuple[Floats64, Floats64]


class Swap(ColumnRecord, frozen=True, eq=False):
    """A pair's statistics, ready to be swapped by unit: the runs' sum, their gap, and the units' signs."""

    total: Floats64
    gap: Floats64
    finalise: Finalise
    units: Where


class FlipShare(ColumnRecord, frozen=True, eq=False):
    """A pair's part in a line: its values on the scale of their link, times a weight; or a sum over its units."""

    pair: int
    weight: float = 0.0
    link: Link = IDENTITY
    sums: Floats64 | None = None


def build_swap(pair: Pair, units: Where) -> Swap | None:
    """Collect both runs' statistics over the same classes, however differently the runs answered."""
    if pair.columns is None or pair.aggregation is None:
        return None
    n = len(pair.a.spread.keys) if pair.a.spread.keys is not None else 0
    both = pair.aggregation.summarise(concat_rows(pair.columns), pair.a.scale.options)
    if len(both.stats) == 2 * n:
        first, second, finalise = both.stats[:n], both.stats[n:], both.finalise
    else:  # units of several documents that the runs share: questions of acc_all
        alone = [pair.aggregation.summarise(column.rows, pair.a.scale.options) for column in pair.columns]
        first, second, finalise = np.asarray(alone[0].stats), np.asarray(alone[1].stats), alone[0].finalise
    if finalise is None:
        raise EvalError(f"{pair.aggregation.name} is not a function of sums, so it has no sign-flip test")
    return Swap((first + second).sum(axis=0), first - second, finalise, units)


def is_pooled(moves: Sequence[Move]) -> bool:
    """Whether a line is a function of all its tasks' documents together, not of the tasks' numbers."""
    return all(move.a.influence is not None and move.pair.columns is not None for move in moves)


def pool_moves(moves: Sequence[Move]) -> Pair:
    """Join the documents of all tasks behind a pooled line."""
    first = moves[0].pair
    columns = [[move.pair.columns[side] for move in moves if move.pair.columns is not None] for side in (0, 1)]
    first_run, second_run = (build_column(range(sum(map(len, some))), concat_rows(some)) for some in columns)
    keys = frozen(np.arange(sum(move.pair.a.count for move in moves)))
    return replace(
        first, columns=(first_run, second_run), a=replace(first.a, spread=replace(first.a.spread, keys=keys))
    )


def close_swap(swap: Swap | None, signs: Floats64) -> Ends:
    """Return both runs' values after the swaps."""
    if swap is None:
        return np.zeros(len(signs)), np.zeros(len(signs))
    return _close_gap(swap, signs[:, swap.units] @ swap.gap)


def _close_gap(swap: Swap, gap: Floats64) -> Ends:
    with np.errstate(all="ignore"):
        first, second = (np.real(swap.finalise((swap.total + way * gap) / 2)) for way in (1, -1))
    return np.asarray(first, np.float64), np.asarray(second, np.float64)


def weigh_move(line: ComparisonLine, move: Move, at: int, swap: Swap | None) -> FlipShare:
    """Build the share of a task in a line."""
    pair = move.pair
    if swap is None:
        return FlipShare(at, sums=join_influences([move]) + (line.difference or 0.0) / max(pair.a.count, 1))
    link = pair.a.scale.link if pair.a.scale.average else IDENTITY
    weights = [
        _weigh_slope(link, part.slope, whole, estimate.value)
        for part, whole, estimate in ((move.a, line.a, pair.a), (move.b, line.b, pair.b))
    ]
    return build_share(pair, at, swap, sum(weights) / 2, link)


def _weigh_slope(link: Link, slope: float, whole: float | None, part: float | None) -> float:
    """Turn a slope into a weight on the scale of the link, where it does not depend on the values."""
    scale = link.slope(part or 0.0)
    return slope * link.slope(whole or 0.0) / scale if isfinite(scale) and scale else 0.0


def build_share(pair: Pair, at: int, swap: Swap | None, weight: float, link: Link) -> FlipShare:
    """Build a pair's share; a sum over units if its number is a mean on the scale of the link, as groups need it."""
    share = FlipShare(at, weight, link)
    if swap is None or not pair.a.scale.average:
        return share
    with np.errstate(all="ignore"):
        slope = weight * link.slope(float(np.real(swap.finalise(swap.total / 2))))
        sums = swap.gap @ (slope * gradient(swap.finalise, swap.total / 2))
        ends = [float(_apply_link(link, end[None])[0] * weight) for end in _close_gap(swap, swap.gap.sum(axis=0))]
    if not all(map(isfinite, (*ends, float(np.abs(sums).sum())))):
        return share
    # runs that weigh their documents differently, such as by other counts of bytes, have no such sum
    fits = abs(fsum(sums.tolist()) - (ends[0] - ends[1])) <= 1e-9 * (abs(ends[0]) + abs(ends[1]))
    return replace(share, sums=sums) if fits else share


def join_influences(moves: Sequence[Move]) -> Floats64:
    """List the influences of all units on the difference, task by task."""
    both = [(influence_of(move.a, move.pair.a), influence_of(move.b, move.pair.b)) for move in moves]
    return np.concatenate([(a - b) / max(len(a), 1) for a, b in both if a is not None and b is not None])


def add_share(share: FlipShare, ends: Mapping[int, Ends], signs: Floats64, units: Sequence[Where]) -> Floats64:
    """The part of a share in the difference after each row of swaps."""
    if share.sums is not None:
        return np.asarray(signs[:, units[share.pair]] @ share.sums, np.float64)
    first, second = (_apply_link(share.link, values) for values in ends[share.pair])
    with np.errstate(invalid="ignore"):
        return share.weight * (first - second)


def measure_share(share: FlipShare, ends: Mapping[int, Ends]) -> float:
    """The size of the numbers in a share, to which rounding errors are relative."""
    if share.sums is not None:
        return float(np.abs(share.sums).sum())
    return abs(share.weight) * sum(float(np.abs(_apply_link(share.link, one)).sum()) for one in ends[share.pair])


def _apply_link(link: Link, values: Floats64) -> Floats64:
    if link.plain:
        return values
    return np.array([link.forward(value) for value in values.tolist()])
