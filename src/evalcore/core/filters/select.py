"""Filters that select replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np

from evalcore.core.filters.reply import FELL_BACK, FilterFn, Replies, nested
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.request import Sample


def take_first() -> FilterFn:
    """Keep the first reply of each unit.

    >>> from evalcore.core.filters.reply import replies
    >>> list(take_first()(replies([["a", "b"], ["c"]]), ()).values)
    ['a', 'c']
    """
    return take_first_k(k=1)


def take_first_k(*, k: int) -> FilterFn:
    """Keep the first ``k`` replies of each unit; fewer is an error, as in lm-eval.

    >>> from evalcore.core.filters.reply import replies
    >>> list(take_first_k(k=2)(replies([["a", "b", "c"]]), ()).values)
    ['a', 'b']
    """
    _expect_positive("take_first_k", k)

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        counts = given.counts
        if len(counts) and int(counts.min()) < k:
            at = int(np.argmin(counts))
            raise EvalError(f"expected at least {k} replies, got {int(counts[at])}{_locate_unit(docs, at)}")
        if len(counts) == 0 or int(counts.max()) == k:
            return given
        keep = (given.offsets[:-1, None] + np.arange(k)).ravel()
        return Replies([given.values[i] for i in keep.tolist()], np.arange(len(counts) + 1) * k, given.rules[keep])

    return apply


def majority_vote(*, ties: str = "first") -> FilterFn:
    """Keep the most frequent reply; fallbacks win only if there is nothing else.

    ``ties``: ``first`` to appear (default) or ``smallest`` in text order, independent of the order of replies.

    >>> from evalcore.core.filters.reply import replies
    >>> list(majority_vote()(replies([["4", "5", "5"]]), ()).values)
    ['5']
    """
    require_known("tie rule", [ties], ("first", "smallest"))

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        won = [
            vote(values, rules, ties)
            for values, rules in zip(nested(given), _split_units(given, given.rules.tolist()), strict=True)
        ]
        return Replies(
            [value for value, _ in won], np.arange(len(won) + 1), np.array([rule for _, rule in won], np.int8)
        )

    return apply


def vote(values: Sequence[object], rules: Sequence[int], ties: str = "first") -> tuple[object, int]:
    """Return the winner of a majority vote and its rule.

    >>> vote(["[invalid]", "4", "[invalid]"], [-1, 0, -1])
    ('4', 0)
    """
    cast = list(zip(values, rules, strict=True))
    if not cast:
        raise EvalError("a majority vote needs a reply, got none")
    standing = [(value, rule) for value, rule in cast if rule != FELL_BACK] or cast
    firsts = {ballot(value): (value, rule) for value, rule in reversed(standing)}
    counts = Counter(ballot(value) for value, _ in standing)
    most = max(counts.values())
    top = [firsts[name] for name, count in counts.items() if count == most]
    return top[0] if ties == "first" else min(top, key=lambda candidate: str(candidate[0]))


def ballot(value: object) -> Hashable:
    """Return what a reply counts as in a vote: itself or, if unhashable, its text.

    >>> ballot("4"), ballot(["4"])
    ('4', "['4']")
    """
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value if value == value else repr(value)


def _split_units(given: Replies, flat: Sequence[int]) -> list[Sequence[int]]:
    return [flat[a:b] for a, b in pairwise(given.offsets.tolist())]


def _expect_positive(name: str, k: object) -> None:
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise EvalError(f"{name}: expected k to be an integer of at least 1, got {k!r}")


def _locate_unit(docs: Sequence[Sample], unit: int) -> str:
    return f" - at doc {docs[unit].doc_id}" if unit < len(docs) else ""
