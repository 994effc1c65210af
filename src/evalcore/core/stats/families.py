"""Corrections for many tests in one table."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.core.records.errors import EvalError


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return Holm's adjusted p-values in the given order; undefined ones stay undefined and do not count.

    >>> holm([0.01, 0.04, None, 0.03])
    (0.03, 0.06, None, 0.06)
    """
    ranked = _rank_p_values(p_values)
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (p, at) in enumerate(ranked):
        highest = adjusted[at] = max(highest, min(1.0, p * (len(ranked) - rank)))
    return tuple(adjusted.get(at) for at in range(len(p_values)))


def benjamini_hochberg(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return Benjamini and Hochberg's adjusted p-values: below a level, that share of the findings may be false.

    >>> benjamini_hochberg([0.01, 0.04, None, 0.03])
    (0.03, 0.04, None, 0.04)
    """
    ranked = _rank_p_values(p_values)
    adjusted: dict[int, float] = {}
    lowest = 1.0
    for rank, (p, at) in reversed(list(enumerate(ranked, start=1))):
        lowest = adjusted[at] = min(lowest, p * len(ranked) / rank)
    return tuple(adjusted.get(at) for at in range(len(p_values)))


def _rank_p_values(p_values: Sequence[float | None]) -> list[tuple[float, int]]:
    wrong = next((p for p in p_values if p is not None and not 0 <= p <= 1), None)
    if wrong is not None:
        raise EvalError(f"expected p-values between 0 and 1, got {wrong}")
    return sorted((p, at) for at, p in enumerate(p_values) if p is not None)
