"""A p-value for every line: without draws where its difference is a sum over documents, else by random swaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from evalcore.core.compare.flips.swaps import (
    FlipShare,
    Swap,
    add_share,
    build_share,
    build_swap,
    close_swap,
    is_pooled,
    join_influences,
    measure_share,
    pool_moves,
    weigh_move,
)
from evalcore.core.compare.flips.units import Where, find_distinct, find_places, number_units, pack_places, sum_units
from evalcore.core.compare.lines import ComparisonLine, explain_few
from evalcore.core.compare.moves import Move
from evalcore.core.records.array import ColumnRecord, Floats64, Ints64
from evalcore.core.stats.links import IDENTITY
from evalcore.core.stats.pair_tests import t_test
from evalcore.core.stats.sign_flips import flip_sum, flip_tests
from evalcore.core.stats.skewness import marked_skewness, skew_test

DRAWS = 10_000


class FlipTest(ColumnRecord, frozen=True, eq=False):
    """A line's test: its shares, the sign of each of its units, and their centred influences on its difference."""

    line: ComparisonLine
    shares: tuple[FlipShare, ...]
    places: Ints64
    influence: Floats64

    @property
    def linear(self) -> bool:
        """Whether the difference is a sum over units, so that its law under random signs needs no draws."""
        return all(share.sums is not None for share in self.shares)


def flip_lines(
    drafts: Sequence[tuple[ComparisonLine, Sequence[Move]]], draws: int, seed: int, alpha: float = 0.05
) -> list[ComparisonLine]:
    """Add a p-value to every line that has a difference and no p-value yet."""
    lines = [line for line, _ in drafts]
    wanted = [i for i, (line, moves) in enumerate(drafts) if _is_testable(line, moves)]
    pairs = list({id(move.pair): move.pair for i in wanted for move in drafts[i][1]}.values())
    if not pairs:
        return lines
    units, width = number_units(pairs)
    at = {id(pair): i for i, pair in enumerate(pairs)}
    swaps = [build_swap(pair, where) for pair, where in zip(pairs, units, strict=True)]
    tests: list[FlipTest] = []
    for i in wanted:
        line, moves = drafts[i]
        places = find_places(moves, at, units)
        if is_pooled(moves):
            pooled = pool_moves(moves)
            units.append(pack_places(places))
            swaps.append(build_swap(pooled, units[-1]))
            shares = [build_share(pooled, len(swaps) - 1, swaps[-1], 1.0, IDENTITY)]
        else:
            shares = [weigh_move(line, move, at[id(move.pair)], swaps[at[id(move.pair)]]) for move in moves]
        tests.append(FlipTest(line, tuple(shares), places, join_influences(moves)))
    drawn = iter(_draw_swaps([test for test in tests if not test.linear], swaps, units, width, draws, seed))
    for i, test in zip(wanted, tests, strict=True):
        p_value = _test_sum(test) if test.linear else next(drawn)
        lines[i] = _add_test(test, p_value, None if test.linear else draws, alpha)
    return lines


def _is_testable(line: ComparisonLine, moves: Sequence[Move]) -> bool:
    known = all(move.pair.a.spread.influence is not None and move.pair.b.spread.influence is not None for move in moves)
    return line.difference is not None and line.p_value is None and known and bool(moves)


def _test_sum(test: FlipTest) -> float:
    """Test a sum over units by sign flips and, since these take skewed differences for symmetric ones, for skewness."""
    line, sums = test.line, [share.sums for share in test.shares if share.sums is not None]
    p_value = flip_sum(sum_units(np.concatenate(sums), test.places))
    if line.stderr == 0 and line.interval is not None:  # equal differences: only the bounds say what others may be
        return max(p_value, t_test(line.interval.middle, line.interval.error, line.interval.df) or 0.0)
    skewness = marked_skewness(sum_units(test.influence, test.places))
    if not skewness or line.difference is None or not line.stderr or not line.df:
        return p_value
    return max(p_value, skew_test(line.difference / line.stderr, skewness, line.df))


def _draw_swaps(
    tests: Sequence[FlipTest], swaps: Sequence[Swap | None], units: Sequence[Where], width: int, draws: int, seed: int
) -> list[float]:
    """Test lines by the same random swaps."""
    if not tests:
        return []
    needed = {share.pair for test in tests for share in test.shares}

    def swap_units(signs: Floats64) -> Floats64:
        ends = {at: close_swap(swaps[at], signs) for at in needed}
        return np.stack([sum(add_share(one, ends, signs, units) for one in test.shares) for test in tests], axis=1)

    still = np.ones((1, width))
    ends = {at: close_swap(swaps[at], still) for at in needed}
    slack = np.array([1e-12 * sum(measure_share(one, ends) for one in test.shares) for test in tests])
    p_values = flip_tests(swap_units, swap_units(still)[0], slack, width, draws=draws, seed=seed)
    return [float(p_value) for p_value in p_values]


def _add_test(test: FlipTest, p_value: float, draws: int | None, alpha: float) -> ComparisonLine:
    line, count = test.line, len(find_distinct(test.places))
    least = 0.5 ** (count - 1)
    why = explain_few(count, "document" if line.clusters is None else "cluster", least, alpha)
    how = "sign-flip test" if draws is None else f"sign-flip test, {draws:,} draws"
    method = ", ".join(filter(None, [line.method, how]))
    return replace(line, p_value=p_value, draws=draws, method=method, least_p=least, reason=line.reason or why)
