"""Tallies: how often each score occurs instead of a score for each document, so that memory does not grow with them.

A tally is an ordinary ``Scored`` whose rows stand for many documents: it merges and closes as any other does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.inference import DEFAULT, Inference, refuse_documents
from evalcore.core.aggregate.task_report import aggregation_of, declared_bounds
from evalcore.core.records.array import Ints64, frozen
from evalcore.core.records.column import Column, power_rows
from evalcore.core.records.errors import EvalError, located, place
from evalcore.core.records.row import Objects, Powers, Rows, as_objects, take_rows
from evalcore.core.records.score import Scored, ScoredColumn, merge_scored
from evalcore.core.tables import EVALCORE, Tables

MOST = 1 << 16
"""Different scores that are kept; of more, what they add up to."""
AT_ONCE = 1 << 15
"""Rows that are gathered before they are tallied."""
MOST_REASONS = 1000
MANY = f"more than {MOST_REASONS:,} different reasons"
SHARE_BOUNDS = (0.0, 1.0)


def tally_scored(
    scored: Scored, *, inference: Inference = DEFAULT, tables: Tables = EVALCORE, most: int = MOST
) -> Scored:
    """Tally a task's scores. Merge tallies of other documents with ``merge_scored``, in any order, and tally again.

    A document in two of them counts twice. Replies and their noise are not kept; an aggregation or an interval that
    needs the documents themselves is refused.

    >>> from evalcore.core.records.row import Floats
    >>> from evalcore.core.records.column import build_column
    >>> from evalcore.core.records.task import MetricKey, Task
    >>> column = build_column(range(6), Floats([1.0, 0.0, 1.0, 1.0, 1.0, 0.0]))
    >>> made = tally_scored(Scored(Task("t", "generate_until"), (ScoredColumn(MetricKey("acc"), column, None),)))
    >>> made.column("acc,none").rows, made.column("acc,none").times
    (Floats(values=Array([1., 0.])), Array([4, 2]))
    """

    def tallied(one: ScoredColumn) -> ScoredColumn:
        with located(place(scored.task.name, key=one.key)):
            refuse_documents(aggregation_of(scored.task, one, tables), inference, bool(scored.clusters))
            bounds = declared_bounds(scored.task, one, tables) or SHARE_BOUNDS
            return replace(one, column=tally_column(one.column, bounds, most=most), noise=None)

    return replace(scored, columns=tuple(map(tallied, scored.columns)), provenance=())


def tally_parts(
    parts: Sequence[Scored], *, inference: Inference = DEFAULT, tables: Tables = EVALCORE, least: int = AT_ONCE
) -> list[Scored]:
    """Tally parts of a task into one, once they have enough rows to be worth it; fewer are returned as they are."""
    if sum(max((len(one.column) for one in part.columns), default=0) for part in parts) < least:
        return list(parts)
    whole = merge_scored(replace(part, provenance=()) for part in parts)
    return [tally_scored(whole, inference=inference, tables=tables)]


def tally_column(column: Column, bounds: tuple[float, float] = SHARE_BOUNDS, *, most: int = MOST) -> Column:
    """Tally a column: a row for each different score, cause and reason, under its first document's key.

    Of more than ``most`` different scores there is one row, with what they add up to.
    """
    if not len(column):
        return column
    here, rows = column.scored, column.rows
    codes = np.zeros(len(column), np.int64)
    if not isinstance(rows, Powers) and here.any():
        codes[here] = _encode_rows(take_rows(rows, here))
        if codes.max() >= most:
            rows, codes = power_rows(column, bounds), np.zeros(len(column), np.int64)
    reasons = _share_reasons(column)
    causes = {cause: -1 - i for i, cause in enumerate(dict.fromkeys(reasons.values()))}
    lost = np.flatnonzero(~here)
    codes[lost] = [causes[reasons[key]] for key in column.keys.ints[lost].tolist()]
    _, first, places = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    kept = first[order]
    times = np.bincount(places, None if column.times is None else column.times.ints).astype(np.int64)
    keys, given = column.keys.ints[kept], dict(column.reasons)
    told = ((key, MANY if reasons[key][1] == MANY else given.get(key)) for key in keys.tolist() if key in reasons)
    return Column(
        frozen(keys),
        take_rows(rows, kept),
        frozen(column.status.data[kept]),
        tuple((key, reason) for key, reason in told if reason is not None),
        frozen(times[order]),
    )


def _share_reasons(column: Column) -> Mapping[int, tuple[int, str]]:
    """The cause of each document without a score: its status and its reason, less the document that it names."""
    given, lost = dict(column.reasons), ~column.scored
    pairs = zip(column.keys.ints[lost].tolist(), column.status.data[lost].tolist(), strict=True)
    causes = {key: (status, given.get(key, "").partition(" - at ")[0]) for key, status in pairs}
    different = set(causes.values())
    many = {status for status, reason in different if reason == MANY}
    many |= {status for status in (1, 2, 3) if sum(one == status for one, _ in different) > MOST_REASONS}
    return {key: (status, MANY) if status in many else (status, reason) for key, (status, reason) in causes.items()}


def _encode_rows(rows: Rows) -> Ints64:
    """Number rows 0, 1, 2, ... so that equal ones, to the last bit, have the same number."""
    if isinstance(rows, Powers | Objects):
        known: dict[bytes, int] = {}
        return np.array([known.setdefault(_encode_value(value), len(known)) for value in as_objects(rows)], np.int64)
    values = rows.values.data
    codes = np.zeros(len(values), np.int64)
    for bits in values.reshape(len(values), -1).view(np.int64).T:
        _, own = np.unique(bits, return_inverse=True)
        codes = np.unique(codes * (own.max() + 1) + own, return_inverse=True)[1]
    return codes


def _encode_value(value: object) -> bytes:
    try:
        return msgspec.msgpack.encode(value, order="deterministic")
    except (TypeError, ValueError, OverflowError) as wrong:
        raise EvalError(f"a tally counts equal scores, but {str(value)[:60]!r} compares with none: {wrong}") from wrong


# --- what a tally can do ---------------------------------------------------------------------------------------------

ON_TALLIES: Mapping[str, str] = {
    "sums": "value exact, error to 1e-12",
    "weighted": f"value exact, error to 1e-12; of more than {MOST:,} different scores with stderr: cr1",
    "rows": f"value exact, error to 1e-12; of more than {MOST:,} different scores no number",
    "documents": "refused",
}
"""What becomes of an aggregation, by what it rests on."""


def list_support(tables: Tables = EVALCORE) -> Iterator[tuple[str, str, str]]:
    """List what a tally makes of every aggregation, interval and group rule, beside a score for each document.

    >>> [how for kind, name, how in list_support() if (kind, name) in {("aggregation", "ece"), ("interval", "t")}]
    ['refused', 'to 1e-12']
    """
    for name in sorted(tables.aggregations):
        yield "aggregation", name, ON_TALLIES[tables.aggregations[name].rests_on]
    for name in sorted(tables.intervals):
        yield "interval", name, "to 1e-12" if tables.intervals[name].resampled is None else ON_TALLIES["documents"]
    for name in sorted(tables.group_rules):
        rows = tables.group_rules[name].alike and not tables.group_rules[name].averages
        yield "group", name, ON_TALLIES["sums"] + "; no number of other aggregations than averages" * rows
