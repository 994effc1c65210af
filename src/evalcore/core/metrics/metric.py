"""What a metric is: a function from a batch of results to rows, and what is known about its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Bools, ColumnRecord
from evalcore.core.records.column import Rows
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import Options

__all__ = ["Emitted", "Marks", "Metric", "only_where"]

B = TypeVar("B")
B_contra = TypeVar("B_contra", contravariant=True)


class Marks(ColumnRecord, frozen=True, eq=True):
    """Rows of a batch, and for those that are not scores (position -> status, reason) why."""

    rows: Rows
    missing: Mapping[int, tuple[int, str]]


Emitted = Rows | Marks | Mapping[str, Rows | Marks]
"""A metric gives rows; a dict of rows gives several metrics, each under its own name."""


class Metric(Struct, Generic[B], frozen=True):
    """A metric over batches of one kind.

    ``bounds`` are those of one document's score; ``options`` the names it takes, None if it checks them itself.
    """

    score: Callable[[B, Options], Emitted]
    aggregation: str = "mean"
    higher_is_better: bool | None = True
    bounds: tuple[float, float] = (0.0, 1.0)
    options: tuple[str, ...] | None = ()


def only_where(usable: Bools, rows: Rows, reason: str) -> Marks:
    """Rows that count only where ``usable``; elsewhere the document is unscorable for this reason."""
    missing = {int(i): (UNSCORABLE, reason) for i in np.flatnonzero(~usable)}
    return Marks(rows, missing)
