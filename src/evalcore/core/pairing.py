"""The same documents in two runs: matched by what they say, with the rest counted and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.columns import Column, column, take_rows
from evalcore.core.comparison import Shared
from evalcore.core.documents import DocumentRow
from evalcore.core.errors import EvalError, place
from evalcore.core.outcome import NOT_EMITTED
from evalcore.core.scored import Scored, ScoredColumn

__all__ = ["Paired", "pair_documents"]


class Paired(Struct, frozen=True):
    """A task in two runs, both under the first run's keys and with the documents that both have.

    Each metric keeps only the documents that both runs have a score for; ``unscored`` counts the others by metric.
    """

    a: Scored
    b: Scored
    shared: Shared
    unscored: Mapping[str, int]
    warnings: tuple[str, ...] = ()


def pair_documents(
    a: Scored, b: Scored, documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]] = ((), ())
) -> Paired:
    """Match the documents of one task in two runs by content and occurrence; by key where the runs have no tables.

    >>> from evalcore.core.arrays import Array
    >>> from evalcore.core.columns import Floats
    >>> from evalcore.core.records import GENERATE_UNTIL, MetricKey, Task
    >>> task, key = Task("t", GENERATE_UNTIL), MetricKey("acc")
    >>> one, two = (
    ...     Scored(task, (ScoredColumn(key, column(keys, Floats(Array(scores))), None),))
    ...     for keys, scores in (([0, 1, 2], [1.0, 0.0, 1.0]), ([1, 2, 3], [1.0, 1.0, 0.0]))
    ... )
    >>> pair_documents(one, two).shared
    Shared(task='t', both=2, only_a=(0,), only_b=(3,))
    """
    names_a, names_b = _names(a, documents[0]), _names(b, documents[1])
    keys_b = {name: key for key, name in names_b.items()}
    both = {keys_b[name]: key for key, name in names_a.items() if name in keys_b}
    kept_a = frozenset(both.values())
    one = _renamed(a, {key: key for key in kept_a})
    two = _renamed(b, both)
    columns = _common(one, two)
    clusters = one.clusters or two.clusters
    shared = Shared(
        a.task.name,
        len(both),
        tuple(sorted(key for key in names_a if key not in kept_a)),
        tuple(sorted(key for key in names_b if key not in both)),
    )
    return Paired(
        replace(one, columns=tuple(left for left, _, _ in columns), clusters=clusters),
        replace(two, columns=tuple(right for _, right, _ in columns), clusters=clusters),
        shared,
        {str(left.key): lost for left, _, lost in columns},
        _other_clusters(one, two),
    )


def _other_clusters(a: Scored, b: Scored) -> tuple[str, ...]:
    differ = a.clusters and b.clusters and a.clusters != b.clusters
    return (f"{a.task.name}: the runs declare different clusters; the first run's are used",) if differ else ()


Name = tuple[str, int] | int


def _names(scored: Scored, documents: Sequence[DocumentRow]) -> dict[int, Name]:
    """What each document is known by, in key order."""
    keys = sorted({key for one in scored.columns for key in one.column.keys.ints.tolist()})
    if not documents:
        return {key: key for key in keys}
    known: dict[int, Name] = {row.key: (row.content, row.occurrence) for row in documents}
    strange = next((key for key in keys if key not in known), None)
    if strange is not None:
        raise EvalError(f"expected every scored document in the document table{place(scored.task.name, strange)}")
    return known


def _renamed(scored: Scored, keys: Mapping[int, int]) -> Scored:
    """The scores of some documents, under other keys."""
    columns = tuple(replace(one, column=_kept(one.column, keys)) for one in scored.columns)
    clusters = tuple(sorted((keys[key], code) for key, code in scored.clusters if key in keys))
    return replace(scored, columns=columns, provenance=(), clusters=clusters)


def _kept(given: Column, keys: Mapping[int, int]) -> Column:
    old = given.keys.ints.tolist()
    at = np.array([i for i, key in enumerate(old) if key in keys], np.int64)
    return column(
        [keys[old[i]] for i in at.tolist()],
        take_rows(given.rows, at),
        given.status.data[at].astype(np.uint8),
        {keys[key]: reason for key, reason in given.reasons if key in keys},
    )


def _common(a: Scored, b: Scored) -> list[tuple[ScoredColumn, ScoredColumn, int]]:
    """The metrics that both runs have, on the documents that both have a score for, and how many these are not."""
    others = {one.key: one for one in b.columns}
    return [(*_both_scored(one, others[one.key]),) for one in a.columns if one.key in others]


def _both_scored(a: ScoredColumn, b: ScoredColumn) -> tuple[ScoredColumn, ScoredColumn, int]:
    fine = _scored_keys(a.column) & _scored_keys(b.column)
    meant = _meant_keys(a.column) | _meant_keys(b.column)
    kept = {key: key for key in fine}
    left, right = (replace(one, column=_kept(one.column, kept)) for one in (a, b))
    return left, right, len(meant - fine)


def _scored_keys(given: Column) -> set[int]:
    return set(given.keys.ints[given.scored].tolist())


def _meant_keys(given: Column) -> set[int]:
    """The documents that should have had a score."""
    return set(given.keys.ints[given.status.data != NOT_EMITTED].tolist())
