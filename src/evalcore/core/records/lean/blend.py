"""Statistics column by column, and the weighted sum of such columns: the influence of each unit on a value."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import BLOCK, Array, Floats64, Ints64
from evalcore.core.records.lean.steps import Lean, Level


class Table(Struct, frozen=True, eq=False):
    """Statistics of units, in columns that need not lie side by side; numpy takes it for the array of all.

    >>> scores = count_scores(Array([1.0, 0.5]))
    >>> np.asarray(scores).tolist(), scores[:, 0].tolist(), scores.shape
    ([[1.0, 1.0], [0.5, 1.0]], [1.0, 0.5], (2, 2))
    """

    columns: tuple[Array, ...]

    @property
    def T(self) -> tuple[Array, ...]:
        return self.columns

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Floats64:
        return np.column_stack([column.floats for column in self.columns])

    def __getitem__(self, at: slice | tuple[slice | Ints64, int]) -> Floats64:
        return self.columns[at[1]].floats[at[0]] if isinstance(at, tuple) else np.asarray(self)[at]


def count_scores(scores: Array) -> Table:
    """Scores beside a column of ones, whose sum is their number."""
    return Table((scores, Array(Level(1.0, len(scores)))))


class Blend(Lean, frozen=True, eq=False):
    """The weighted sum of columns, less a number.

    >>> Blend(count_scores(Array([1.0, 3.0])), (10.0, 1.0), 0.5).make(0, 2).tolist()
    [10.5, 30.5]
    """

    table: Table
    weights: tuple[float, ...]
    less: float = 0.0

    def make(self, start: int, stop: int) -> Floats64:
        made = np.zeros(stop - start)
        for at in range(start, stop, BLOCK):  # some at a time, so that products take little
            end = min(at + BLOCK, stop)
            for column, weight in zip(self.table.columns, self.weights, strict=True):
                made[at - start : end - start] += np.asarray(column.part(at, end), np.float64) * weight
        return made - self.less if self.less else made

    def __len__(self) -> int:
        return len(self.table)
