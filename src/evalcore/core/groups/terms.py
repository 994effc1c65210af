"""The tasks in a group's number, each with its weight."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace
from toolz import unique

from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate

__all__ = ["Term", "merged_terms", "value_of_term"]


class Term(Struct, frozen=True):
    """One task's part in a group's number."""

    name: str
    weight: float
    size: float
    estimate: Estimate
    column: Column | None = None


def merged_terms(terms: Sequence[Term]) -> list[Term]:
    """A leaf reached by several paths is one leaf with the sum of its weights: its covariance is exact.

    >>> one = Estimate(value=0.5)
    >>> [(term.name, term.weight) for term in merged_terms([Term("a", 0.25, 9.0, one), Term("a", 0.75, 9.0, one)])]
    [('a', 1.0)]
    """
    weights: dict[str, list[float]] = {}
    for term in terms:
        weights.setdefault(term.name, []).append(term.weight)
    return [replace(term, weight=fsum(weights[term.name])) for term in unique(terms, key=lambda term: term.name)]


def value_of_term(term: Term) -> float:
    """The task's number, which is there: tasks without one have no part."""
    if term.estimate.value is None:
        raise EvalError(f"expected a value, got none - at {term.name}")
    return term.estimate.value
