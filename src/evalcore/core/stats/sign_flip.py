"""Sign-flip tests: if the runs were the same, each document's two results could be swapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from evalcore.core.records.array import Floats64

_BLOCK = 1 << 22


def flip_tests(
    differ: Callable[[Floats64], Floats64], observed: Floats64, slack: Floats64, units: int, *, draws: int, seed: int
) -> Floats64:
    """The p-value of each observed difference: how often random swaps bring the runs at least as far apart.

    ``differ`` maps signs (draws × units, -1 where a unit is swapped) to differences (draws × tests). Ties count, within
    ``slack`` for rounding, and so does the sample itself: p = (count + 1) / (draws + 1) (Riezler and Maxwell 2005).

    >>> means = lambda signs: (signs @ np.ones(8) / 8)[:, None]
    >>> bool(flip_tests(means, np.array([1.0]), np.array([1e-12]), 8, draws=999, seed=0)[0] < 0.03)
    True
    """
    counts = np.zeros(len(observed), np.int64)
    for signs in sign_blocks(units, draws, seed):
        # a draw without a value is no evidence of a difference, so it counts
        counts += np.count_nonzero(~(np.abs(differ(signs)) < np.abs(observed) - slack), axis=0)
    return (counts + 1) / (draws + 1)


def sign_blocks(units: int, draws: int, seed: int) -> Iterator[Floats64]:
    """Random signs, some rows at a time, the same for the same seed.

    >>> next(sign_blocks(3, 2, 0)).shape
    (2, 3)
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    block = max(1, _BLOCK // max(units, 1))
    for start in range(0, draws, block):
        drawn = generator.integers(0, 2, size=(min(block, draws - start), units), dtype=np.int8)
        yield 2 * drawn.astype(np.float64) - 1
