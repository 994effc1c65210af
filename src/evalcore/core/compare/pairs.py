"""The same documents in two runs, matched by identity, never by answer; the rest is counted and named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.lines import Shared
from evalcore.core.records.column import Column, build_column
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.outcome import NOT_EMITTED
from evalcore.core.records.row import take_rows
from evalcore.core.records.score import Scored, ScoredColumn


class Matched(Struct, frozen=True):
    """The documents of both runs: (key in the first, key in the second), in the first's order.

    ``by_id``: both runs declare ids. ``unlike`` counts pairs of one id with different targets, or different prompts
    and contents; ``by_prompt`` those whose contents differ; ``by_order`` those that only their order tells from
    others. ``unclear``: both runs have other documents that neither id nor prompt identifies.
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
    """Match documents by declared id or, if a run has none, by prompt and content or either of them alone.

    A prompt alone identifies a document only if no other has it. Of identical documents, the first of one
    run is matched with the first of the other. If both runs have ids, documents without one match only each other.

    >>> one, two = DocumentRow(0, None, None, "c", 0, "p"), DocumentRow(7, None, None, "other", 0, "p")
    >>> match_documents([one], [two])
    Matched(pairs=((0, 7),), by_id=False, unlike=0, by_prompt=1, by_order=0, unclear=False)
    >>> match_documents([DocumentRow(0, "q1", None, "c", 0)], [DocumentRow(7, "q1", None, "d", 0)]).pairs
    ((0, 7),)
    """
    named_a, named_b = ([row for row in rows if row.id is not None] for rows in (a, b))
    if not (named_a and named_b):
        return _match_nameless(a, b)
    by_id, again = _match_by(named_a, named_b, lambda row: str(row.id))
    rest = _match_nameless(*([row for row in rows if row.id is None] for rows in (a, b)))
    unlike = sum(_is_unlike(one, two) for one, two in by_id)
    pairs = tuple(sorted((*_list_keys(by_id), *rest.pairs)))
    return Matched(pairs, True, unlike, rest.by_prompt, again + rest.by_order, rest.unclear)


def _match_nameless(a: Rows, b: Rows) -> Matched:
    """Match documents by prompt or content."""
    whole, by_order = _match_by(a, b, lambda row: (row.content, row.prompt))
    shared = {prompt for rows in (a, b) for prompt, n in Counter(row.prompt for row in rows).items() if n > 1}
    mine, theirs = (
        [row for row in rows if row.prompt and row.prompt not in shared] for rows in _drop_pairs(a, b, whole)
    )
    by_prompt, _ = _match_by(mine, theirs, lambda row: row.prompt)
    by_content, more = _match_by(*_drop_pairs(a, b, whole + by_prompt), lambda row: row.content)
    pairs = whole + by_prompt + by_content
    left = _drop_pairs(a, b, pairs)
    known = all(one.prompt == two.prompt for one, two in pairs)
    clear = known and all(row.prompt and row.prompt not in shared for rows in left for row in rows)
    return Matched(_list_keys(pairs), False, 0, len(by_prompt), by_order + more, all(left) and not clear)


def _is_unlike(a: DocumentRow, b: DocumentRow) -> bool:
    """Whether documents of one id are different: few-shot examples change the prompt, a logged answer the content."""
    asked = a.prompt and b.prompt and a.prompt != b.prompt
    return a.target != b.target or bool(asked and a.content != b.content)


def _match_by(a: Rows, b: Rows, name: Callable[[DocumentRow], object]) -> tuple[Pairs, int]:
    """Pair documents of one name, and count the pairs that share their name with others."""
    named_a, named_b = _group_by_name(a, name), _group_by_name(b, name)
    pairs: Pairs = []
    shared = 0
    for shared_name, rows in named_a.items():
        others = named_b.get(shared_name, [])
        both = list(zip(rows, others, strict=False))
        pairs += both
        shared += len(both) if len(rows) > 1 or len(others) > 1 else 0
    return pairs, shared


def _group_by_name(rows: Rows, name: Callable[[DocumentRow], object]) -> dict[object, list[DocumentRow]]:
    out: dict[object, list[DocumentRow]] = {}
    for row in sorted(rows, key=lambda row: (row.occurrence, row.key)):
        out.setdefault(name(row), []).append(row)
    return out


def _drop_pairs(a: Rows, b: Rows, pairs: Pairs) -> tuple[list[DocumentRow], list[DocumentRow]]:
    kept_a, kept_b = {one.key for one, _ in pairs}, {two.key for _, two in pairs}
    return [row for row in a if row.key not in kept_a], [row for row in b if row.key not in kept_b]


def _list_keys(pairs: Pairs) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((one.key, two.key) for one, two in pairs))


class Paired(FrozenRecord, frozen=True):
    """A task in two runs: the documents of both, under the first run's keys.

    Each metric keeps the documents with a score in both runs; ``unscored`` counts the others by metric.
    """

    a: Scored
    b: Scored
    shared: Shared
    unscored: Mapping[str, int]
    warnings: tuple[str, ...] = ()


def pair_documents(
    a: Scored, b: Scored, documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]] = ((), ())
) -> Paired:
    """Match the documents of a task in two runs by their document tables or, without these, by key.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import Floats
    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> from evalcore.core.records.task import MetricKey, Task
    >>> task, key = Task("t", GENERATE_UNTIL), MetricKey("acc")
    >>> one, two = (
    ...     Scored(task, (ScoredColumn(key, build_column(keys, Floats(Array(scores))), None),))
    ...     for keys, scores in (([0, 1, 2], [1.0, 0.0, 1.0]), ([1, 2, 3], [1.0, 1.0, 0.0]))
    ... )
    >>> shared = pair_documents(one, two).shared
    >>> shared.both, shared.only_a, shared.only_b
    (2, (0,), (3,))
    """
    if any(one.column.times is not None for one in (*a.columns, *b.columns)):
        raise EvalError(f"tallies have no documents to pair; score without tally{place(a.task.name)}")
    tables = documents if all(documents) else ((), ())  # one run's keys are not the other's ids
    rows_a, rows_b = _list_rows(a, tables[0]), _list_rows(b, tables[1])
    matched = match_documents(rows_a, rows_b)
    both = {key_b: key_a for key_a, key_b in matched.pairs}
    kept_a = frozenset(both.values())
    mine = _rename_keys(a, {key: key for key in kept_a})
    theirs = _rename_keys(b, both)
    columns = _keep_common(mine, theirs)
    clusters = mine.clusters or theirs.clusters
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
        replace(mine, columns=tuple(left for left, _, _ in columns), clusters=clusters),
        replace(theirs, columns=tuple(right for _, right, _ in columns), clusters=clusters),
        shared,
        {str(left.key): lost for left, _, lost in columns},
        _warn_of_clusters(mine, theirs),
    )


def _warn_of_clusters(a: Scored, b: Scored) -> tuple[str, ...]:
    differ = a.clusters and b.clusters and a.clusters != b.clusters
    return (f"{a.task.name}: the runs declare different clusters; the first run's are used",) if differ else ()


def _list_rows(scored: Scored, documents: Rows) -> Rows:
    """Return the document table of a task; without one, its keys are the ids."""
    keys = sorted({key for one in scored.columns for key in one.column.keys.ints.tolist()})
    if not documents:
        return [DocumentRow(key, key, None, "", 0) for key in keys]
    known = {row.key for row in documents}
    strange = next((key for key in keys if key not in known), None)
    if strange is not None:
        raise EvalError(f"expected every scored document in the document table{place(scored.task.name, strange)}")
    return documents


def _rename_keys(scored: Scored, keys: Mapping[int, int]) -> Scored:
    """Keep the scores of these documents, under other keys."""
    columns = tuple(replace(one, column=_rename_rows(one.column, keys)) for one in scored.columns)
    clusters = tuple(sorted((keys[key], code) for key, code in scored.clusters if key in keys))
    return replace(scored, columns=columns, provenance=(), clusters=clusters)


def _rename_rows(given: Column, keys: Mapping[int, int]) -> Column:
    old = given.keys.ints.tolist()
    at = np.array([i for i, key in enumerate(old) if key in keys], np.int64)
    return build_column(
        [keys[old[i]] for i in at.tolist()],
        take_rows(given.rows, at),
        given.status.data[at].astype(np.uint8),
        {keys[key]: reason for key, reason in given.reasons if key in keys},
    )


def _keep_common(a: Scored, b: Scored) -> list[tuple[ScoredColumn, ScoredColumn, int]]:
    """Keep the metrics of both runs on the documents with a score in both, and count the others."""
    others = {one.key: one for one in b.columns}
    return [_keep_scored(one, others[one.key]) for one in a.columns if one.key in others]


def _keep_scored(a: ScoredColumn, b: ScoredColumn) -> tuple[ScoredColumn, ScoredColumn, int]:
    fine = set.intersection(*(set(one.column.keys.ints[one.column.scored].tolist()) for one in (a, b)))
    meant = set.union(*(set(one.column.keys.ints[one.column.status.data != NOT_EMITTED].tolist()) for one in (a, b)))
    kept = {key: key for key in fine}
    left, right = (replace(one, column=_rename_rows(one.column, kept)) for one in (a, b))
    return left, right, len(meant - fine)
