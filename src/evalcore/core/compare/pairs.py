"""The same documents in two runs: matched by who they are, never by their answers; the rest is counted and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.lines import Shared
from evalcore.core.records.column import Column, column, take_rows
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.outcome import NOT_EMITTED
from evalcore.core.records.score import Scored, ScoredColumn

__all__ = ["Matched", "Paired", "match_documents", "pair_documents"]


class Matched(Struct, frozen=True):
    """The documents that two runs have in common: (key in the first, key in the second), in the first's order.

    ``by_id`` is whether both runs declare ids, and ``unlike`` counts those of one id that have another target, or
    another prompt and content. ``by_prompt`` counts those whose content differs, ``by_order`` those that nothing but
    their order tells from others. ``unclear`` is whether both runs have others that neither id nor prompt identifies.
    """

    pairs: tuple[tuple[int, int], ...]
    by_id: bool = False
    unlike: int = 0
    by_prompt: int = 0
    by_order: int = 0
    unclear: bool = False


Rows = Sequence[DocumentRow]
Pairs = list[tuple[DocumentRow, DocumentRow]]


def match_documents(a: Rows, b: Rows) -> Matched:
    """Match documents by their declared ids; where a run has none by prompt and content, or either of them alone.

    A prompt alone identifies a document only if no other one has it. Of documents that are the same, the first of one
    run is matched with the first of the other. Documents without an id match only one another if both runs have ids.

    >>> one, two = DocumentRow(0, None, None, "c", 0, "p"), DocumentRow(7, None, None, "other", 0, "p")
    >>> match_documents([one], [two])
    Matched(pairs=((0, 7),), by_id=False, unlike=0, by_prompt=1, by_order=0, unclear=False)
    >>> match_documents([DocumentRow(0, "q1", None, "c", 0)], [DocumentRow(7, "q1", None, "d", 0)]).pairs
    ((0, 7),)
    """
    named_a, named_b = ([row for row in rows if row.id is not None] for rows in (a, b))
    if not (named_a and named_b):
        return _match_nameless(a, b)
    by_id, again = _matched(named_a, named_b, lambda row: str(row.id))
    rest = _match_nameless(*([row for row in rows if row.id is None] for rows in (a, b)))
    unlike = sum(_unlike(one, two) for one, two in by_id)
    pairs = tuple(sorted((*_keys(by_id), *rest.pairs)))
    return Matched(pairs, True, unlike, rest.by_prompt, again + rest.by_order, rest.unclear)


def _match_nameless(a: Rows, b: Rows) -> Matched:
    """Documents matched by prompt or content."""
    whole, by_order = _matched(a, b, lambda row: (row.content, row.prompt))
    shared = {prompt for rows in (a, b) for prompt, n in Counter(row.prompt for row in rows).items() if n > 1}
    one, two = ([row for row in rows if row.prompt and row.prompt not in shared] for rows in _without(a, b, whole))
    by_prompt, _ = _matched(one, two, lambda row: row.prompt)
    by_content, more = _matched(*_without(a, b, whole + by_prompt), lambda row: row.content)
    pairs = whole + by_prompt + by_content
    left = _without(a, b, pairs)
    known = all(one.prompt == two.prompt for one, two in pairs)
    clear = known and all(row.prompt and row.prompt not in shared for rows in left for row in rows)
    return Matched(_keys(pairs), False, 0, len(by_prompt), by_order + more, all(left) and not clear)


def _unlike(one: DocumentRow, two: DocumentRow) -> bool:
    """Whether documents of one id are hardly the same. Other examples make another prompt, an answer other content."""
    asked = one.prompt and two.prompt and one.prompt != two.prompt
    return one.target != two.target or bool(asked and one.content != two.content)


def _matched(a: Rows, b: Rows, name: Callable[[DocumentRow], object]) -> tuple[Pairs, int]:
    """Pairs of one name, and how many of them share their name with others."""
    named_a, named_b = _by_name(a, name), _by_name(b, name)
    pairs: Pairs = []
    shared = 0
    for one, rows in named_a.items():
        others = named_b.get(one, [])
        both = list(zip(rows, others, strict=False))
        pairs += both
        shared += len(both) if len(rows) > 1 or len(others) > 1 else 0
    return pairs, shared


def _by_name(rows: Rows, name: Callable[[DocumentRow], object]) -> dict[object, list[DocumentRow]]:
    out: dict[object, list[DocumentRow]] = {}
    for row in sorted(rows, key=lambda row: (row.occurrence, row.key)):
        out.setdefault(name(row), []).append(row)
    return out


def _without(a: Rows, b: Rows, pairs: Pairs) -> tuple[list[DocumentRow], list[DocumentRow]]:
    kept_a, kept_b = {one.key for one, _ in pairs}, {two.key for _, two in pairs}
    return [row for row in a if row.key not in kept_a], [row for row in b if row.key not in kept_b]


def _keys(pairs: Pairs) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((one.key, two.key) for one, two in pairs))


class Paired(FrozenRecord, frozen=True):
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
    """Match the documents of one task in two runs, with their document tables or, where there are none, by key.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import Floats
    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> from evalcore.core.records.task import MetricKey, Task
    >>> task, key = Task("t", GENERATE_UNTIL), MetricKey("acc")
    >>> one, two = (
    ...     Scored(task, (ScoredColumn(key, column(keys, Floats(Array(scores))), None),))
    ...     for keys, scores in (([0, 1, 2], [1.0, 0.0, 1.0]), ([1, 2, 3], [1.0, 1.0, 0.0]))
    ... )
    >>> shared = pair_documents(one, two).shared
    >>> shared.both, shared.only_a, shared.only_b
    (2, (0,), (3,))
    """
    tables = documents if all(documents) else ((), ())  # the keys of one run are no ids of the other's
    rows_a, rows_b = _rows(a, tables[0]), _rows(b, tables[1])
    matched = match_documents(rows_a, rows_b)
    both = {two: one for one, two in matched.pairs}
    kept_a = frozenset(both.values())
    one = _renamed(a, {key: key for key in kept_a})
    two = _renamed(b, both)
    columns = _common(one, two)
    clusters = one.clusters or two.clusters
    shared = Shared(
        a.task.name,
        len(both),
        tuple(sorted(row.key for row in rows_a if row.key not in kept_a)),
        tuple(sorted(row.key for row in rows_b if row.key not in both)),
        matched.by_id and bool(tables[0]),
        matched.unlike,
        matched.by_prompt,
        matched.by_order,
        matched.unclear,
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


def _rows(scored: Scored, documents: Rows) -> Rows:
    """The document table of a task; without one, its keys are its documents' ids."""
    keys = sorted({key for one in scored.columns for key in one.column.keys.ints.tolist()})
    if not documents:
        return [DocumentRow(key, key, None, "", 0) for key in keys]
    known = {row.key for row in documents}
    strange = next((key for key in keys if key not in known), None)
    if strange is not None:
        raise EvalError(f"expected every scored document in the document table{place(scored.task.name, strange)}")
    return documents


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
