"""Sign-flip tests of all lines at once: the same random swaps of documents, followed through tasks and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.differences import Move, Pair, influence_of
from evalcore.core.compare.lines import ComparisonLine, explain_few
from evalcore.core.records.array import ColumnRecord, Finalise, Floats64, Ints64, frozen
from evalcore.core.records.column import build_column, concat_rows
from evalcore.core.records.errors import EvalError
from evalcore.core.stats.links import IDENTITY, Link
from evalcore.core.stats.pair_tests import flip_tests

DRAWS = 10_000

Where = slice | Ints64


class Swap(ColumnRecord, frozen=True, eq=False):
    """A pair's statistics, ready to be swapped by unit: the runs' sum, their gap, and the units' signs."""

    total: Floats64
    gap: Floats64
    finalise: Finalise
    units: Where


class FlipShare(Struct, frozen=True, eq=False):
    """A pair's part in a line: its values on the scale of their link, times a weight; or a sum over its units."""

    pair: int
    weight: float = 0.0
    link: Link = IDENTITY
    sums: Floats64 | None = None


Ends = tuple[Floats64, Floats64]


def flip_lines(
    drafts: Sequence[tuple[ComparisonLine, Sequence[Move]]], draws: int, seed: int, alpha: float = 0.05
) -> list[ComparisonLine]:
    """Add a p-value to every line that has a difference and no p-value yet."""
    wanted = [i for i, (line, moves) in enumerate(drafts) if _is_testable(line, moves)]
    pairs = list({id(move.pair): move.pair for i in wanted for move in drafts[i][1]}.values())
    if not pairs:
        return [line for line, _ in drafts]
    units, width = _number_units(pairs)
    at = {id(pair): i for i, pair in enumerate(pairs)}
    swaps = [_build_swap(pair, where) for pair, where in zip(pairs, units, strict=True)]
    tests: list[list[FlipShare]] = []
    for i in wanted:
        line, moves = drafts[i]
        if _is_pooled(moves):
            swaps.append(_build_swap(_pool_moves(moves), _pack_places(_find_places(moves, at, units).tolist())))
            tests.append([FlipShare(len(swaps) - 1, 1.0)])
        else:
            tests.append([_build_share(line, move, at[id(move.pair)]) for move in moves])

    def swap_units(signs: Floats64) -> Floats64:
        ends = [_close_swap(swap, signs) for swap in swaps]
        return np.stack([sum(_add_share(one, ends, signs, units) for one in test) for test in tests], axis=1)

    still = np.ones((1, width))
    ends = [_close_swap(swap, still) for swap in swaps]
    slack = np.array([1e-12 * sum(_measure_share(one, ends) for one in test) for test in tests])
    p_values = flip_tests(swap_units, swap_units(still)[0], slack, width, draws=draws, seed=seed).tolist()
    lines = [line for line, _ in drafts]
    for i, p_value in zip(wanted, p_values, strict=True):
        count = len(np.unique(_find_places(drafts[i][1], at, units)))
        lines[i] = _add_test(lines[i], p_value, count, alpha)
    return lines


def _add_test(line: ComparisonLine, p_value: float, count: int, alpha: float) -> ComparisonLine:
    least = 0.5 ** (count - 1)
    why = explain_few(count, "document" if line.clusters is None else "cluster", least, alpha)
    method = ", ".join(filter(None, [line.method, "sign-flip test"]))
    return replace(line, p_value=p_value, method=method, least_p=least, reason=line.reason or why)


def _find_places(moves: Sequence[Move], at: Mapping[int, int], units: Sequence[Where]) -> Ints64:
    """Find the signs that move a line, unit by unit of its tasks."""
    places = [units[at[id(move.pair)]] for move in moves]
    return np.concatenate([np.arange(one.start, one.stop) if isinstance(one, slice) else one for one in places])


def _is_pooled(moves: Sequence[Move]) -> bool:
    """Whether a line is a function of all its tasks' documents together, not of the tasks' numbers."""
    return all(move.a.influence is not None and move.pair.columns is not None for move in moves)


def _pool_moves(moves: Sequence[Move]) -> Pair:
    first = moves[0].pair
    columns = [[move.pair.columns[side] for move in moves if move.pair.columns is not None] for side in (0, 1)]
    first_run, second_run = (build_column(range(sum(map(len, some))), concat_rows(some)) for some in columns)
    keys = frozen(np.arange(sum(move.pair.a.count for move in moves)))
    return replace(
        first, columns=(first_run, second_run), a=replace(first.a, spread=replace(first.a.spread, keys=keys))
    )


def _is_testable(line: ComparisonLine, moves: Sequence[Move]) -> bool:
    known = all(move.pair.a.spread.influence is not None and move.pair.b.spread.influence is not None for move in moves)
    return line.difference is not None and line.p_value is None and known and bool(moves)


def _number_units(pairs: Sequence[Pair]) -> tuple[list[Where], int]:
    """Number the signs of each pair's units: those of clusters, which tasks may share, or one for each unit."""
    shared = _find_shared_codes(pairs)
    names = [_name_units(pair, shared) for pair in pairs]
    places = {name: i for i, name in enumerate(sorted({name for some in names for name in some}))}
    return [_pack_places([places[name] for name in some]) for some in names], len(places)


def _find_shared_codes(pairs: Sequence[Pair]) -> set[int]:
    """Find the clusters that lie in several tasks."""
    tasks: dict[int, set[str]] = {}
    for pair in pairs:
        for code in set(pair.clusters.tolist()) if pair.clusters is not None else ():
            tasks.setdefault(code, set()).add(pair.task)
    return {code for code, found in tasks.items() if len(found) > 1}


def _name_units(pair: Pair, shared: set[int]) -> list[tuple[str, int]]:
    if pair.clusters is not None and (not pair.alone or not shared.isdisjoint(pair.clusters.tolist())):
        return [("", code) for code in pair.clusters.tolist()]
    return [(pair.task, key) for key in (pair.a.spread.keys.ints.tolist() if pair.a.spread.keys is not None else ())]


def _pack_places(places: list[int]) -> Where:
    """Pack consecutive places into a slice, so that no copy of the signs is made."""
    first = places[0] if places else 0
    if places == list(range(first, first + len(places))):
        return slice(first, first + len(places))
    return np.array(places, np.int64)


def _build_swap(pair: Pair, units: Where) -> Swap | None:
    """Collect both runs' statistics over the same classes, however differently the runs answered."""
    if pair.columns is None or pair.aggregation is None:
        return None
    n = len(pair.a.spread.keys) if pair.a.spread.keys is not None else 0
    both = pair.aggregation.summarise(concat_rows(pair.columns), pair.a.scale.options)
    if len(both.stats) == 2 * n:
        first, second, finalise = both.stats[:n], both.stats[n:], both.finalise
    else:  # units of several documents that the runs share: questions of acc_all
        alone = [pair.aggregation.summarise(column.rows, pair.a.scale.options) for column in pair.columns]
        first, second, finalise = alone[0].stats, alone[1].stats, alone[0].finalise
    if finalise is None:
        raise EvalError(f"{pair.aggregation.name} is not a function of sums, so it has no sign-flip test")
    return Swap((first + second).sum(axis=0), first - second, finalise, units)


def _close_swap(swap: Swap | None, signs: Floats64) -> Ends:
    """Return both runs' values after the swaps."""
    if swap is None:
        return np.zeros(len(signs)), np.zeros(len(signs))
    gap = signs[:, swap.units] @ swap.gap
    with np.errstate(all="ignore"):
        first, second = (np.real(swap.finalise((swap.total + way * gap) / 2)) for way in (1, -1))
    return np.asarray(first, np.float64), np.asarray(second, np.float64)


def _build_share(line: ComparisonLine, move: Move, at: int) -> FlipShare:
    pair = move.pair
    first, second = (influence_of(part, whole) for part, whole in ((move.a, pair.a), (move.b, pair.b)))
    if pair.columns is None and first is not None and second is not None:
        return FlipShare(at, sums=(first - second + (line.difference or 0.0)) / len(first))
    link = pair.a.scale.link if pair.a.scale.average else IDENTITY
    weights = [
        _weigh_slope(link, part.slope, whole, estimate.value)
        for part, whole, estimate in ((move.a, line.a, pair.a), (move.b, line.b, pair.b))
    ]
    return FlipShare(at, sum(weights) / 2, link)


def _weigh_slope(link: Link, slope: float, whole: float | None, part: float | None) -> float:
    """Turn a slope into a weight on the scale of the link, where it does not depend on the values."""
    scale = link.slope(part or 0.0)
    return slope * link.slope(whole or 0.0) / scale if isfinite(scale) and scale else 0.0


def _add_share(share: FlipShare, ends: Sequence[Ends], signs: Floats64, units: Sequence[Where]) -> Floats64:
    if share.sums is not None:
        return np.asarray(signs[:, units[share.pair]] @ share.sums, np.float64)
    first, second = (_apply_link(share.link, values) for values in ends[share.pair])
    return share.weight * (first - second)


def _measure_share(share: FlipShare, ends: Sequence[Ends]) -> float:
    if share.sums is not None:
        return float(np.abs(share.sums).sum())
    return abs(share.weight) * sum(float(np.abs(_apply_link(share.link, one)).sum()) for one in ends[share.pair])


def _apply_link(link: Link, values: Floats64) -> Floats64:
    if link.plain:
        return values
    return np.array([link.forward(value) for value in values.tolist()])
