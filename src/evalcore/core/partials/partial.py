"""What a unit of work leaves behind: scores of some documents, where they are from, and how such parts merge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.partials.check import check_record
from evalcore.core.partials.codec import RECORDS, pack, unpack
from evalcore.core.partials.span import RowCount, Span, add_counts, find_change, order_span
from evalcore.core.records.array import Array, Ints64, frozen
from evalcore.core.records.column import Column
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.score import Scored, merge_scored

VERSION = 2
MAGIC = b"evalcore partial %d\n"
MOST = 1 << 30
"""How many bytes a file may unpack to; the scores of a unit of work take a few megabytes."""


class Partial(Struct, frozen=True, kw_only=True):
    """Scores of some documents of a log, under the names of their tasks.

    ``head`` is what is known of the log and the rules, ``made`` the programs whose bits these are. ``places`` are the
    documents by their places in the source if they have no numbers of their own, ``ids`` the hashes of their ids;
    ``row_counts`` count the rows of each filter. ``beyond`` are recorded scores other than 0 and 1, ``lost`` counts
    repeats without a score by document, ``hashes`` are those of tasks whose samples were written, and ``problems`` are
    records that could not be read. ``stopped`` counts what took too long: such a unit is scored again.
    """

    scored: tuple[Scored, ...] = ()
    spans: tuple[Span, ...] = ()
    head: Mapping[str, object] = FrozenDict()
    made: tuple[str, ...] = ()
    places: Array | None = None
    ids: Array | None = None
    row_counts: tuple[RowCount, ...] = ()
    beyond: tuple[str, ...] = ()
    lost: tuple[tuple[int, int], ...] = ()
    hashes: tuple[tuple[str, str], ...] = ()
    problems: tuple[tuple[str, int, int, str, bool], ...] = ()
    stopped: int = 0


KNOWN: Mapping[str, type[Struct]] = {**RECORDS, **{kind.__name__: kind for kind in (Span, RowCount, Partial)}}


def encode_partial(partial: Partial) -> bytes:
    """Encode a partial as the content of a file: a line with the version of the format, then packed records.

    >>> decode_partial(encode_partial(Partial(made=("a",)))).made
    ('a',)
    """
    return MAGIC % VERSION + pack(partial, KNOWN)


def decode_partial(data: bytes, where: str = "a partial") -> Partial:
    """Decode a partial; bytes of another format or version, or damaged ones, are an error that names the place.

    >>> decode_partial(b"evalcore partial 9\\n...", "x.partial")
    Traceback (most recent call last):
    evalcore.EvalError: x.partial: expected a partial of version 2, got version 9; score its log again
    """
    line, _, packed = data.partition(b"\n")
    begin = MAGIC.partition(b"%")[0]
    if not line.startswith(begin):
        raise EvalError(f"{where}: expected a partial of evalcore, got {data[:24]!r}")
    if line + b"\n" != MAGIC % VERSION:
        got = line.removeprefix(begin).decode("ascii", "replace")[:20]
        raise EvalError(f"{where}: expected a partial of version {VERSION}, got version {got}; score its log again")
    try:
        found = unpack(packed, KNOWN, most=MOST)
    except EvalError as wrong:
        raise EvalError(f"{where}: {wrong}") from wrong
    if not isinstance(found, Partial):
        raise EvalError(f"{where}: expected a partial, got {type(found).__name__}")
    try:
        check_record(found)
    except EvalError as wrong:
        raise EvalError(f"{where}: expected a partial, got damaged records: {wrong}; score its log again") from wrong
    return found


def unite_partials(parts: Iterable[Partial]) -> Partial:
    """Merge partials of one log, in any order; those of one span collapse, and contradictory ones are refused.

    >>> unite_partials([Partial(spans=(Span("a", "bytes", 0, 5),)), Partial(spans=(Span("a", "bytes", 0, 5),))]).spans
    (Span(source='a', unit='bytes', start=0, stop=5, total=None, digest='', whole=''),)
    """
    given = sorted(parts, key=lambda one: one.spans[:1] and order_span(one.spans[0]))
    if (change := find_change(span for part in given for span in part.spans)) is not None:
        told = f"{change[0].source} changed between partials: {change[0]} and {change[1]} are not of the same content"
        raise EvalError(f"{told}; score all parts again, which scores only ranges that changed")
    given = _each_once(given)
    if len(given) == 1:
        return given[0]
    first = given[0]
    for other in given[1:]:
        _expect_same(first, other)
    tasks: dict[str, list[Scored]] = {}
    for one in (one for part in given for one in part.scored):
        tasks.setdefault(one.task.name, []).append(one)
    return replace(
        first,
        scored=tuple(map(merge_scored, tasks.values())),
        spans=tuple(sorted({span for part in given for span in part.spans}, key=order_span)),
        places=_join(part.places for part in given),
        ids=_join(part.ids for part in given),
        row_counts=add_counts(count for part in given for count in part.row_counts),
        beyond=tuple(sorted({name for part in given for name in part.beyond})),
        lost=tuple(sorted({pair for part in given for pair in part.lost})),
        hashes=tuple(pair for part in given for pair in part.hashes),
        problems=tuple(problem for part in given for problem in part.problems),
        stopped=sum(part.stopped for part in given),
    )


def _each_once(parts: Sequence[Partial]) -> list[Partial]:
    """Each set of spans once; two of the same spans must have the same scores."""
    first: dict[object, Partial] = {}
    for one in parts:
        where = one.spans or id(one)
        known = first.setdefault(where, one)
        if known is not one and (known.scored != one.scored or known.head != one.head):
            raise EvalError(f"expected one partial of {one.spans[0]}, got two with different scores")
    return list(first.values()) or [Partial()]


def _expect_same(first: Partial, other: Partial) -> None:
    place = f"{other.spans[0]}" if other.spans else "a partial"
    if first.made != other.made:
        ours, theirs = (", ".join(one.made) for one in (first, other))
        told = f"expected partials made by the same programs, got {ours} and {theirs}"
        raise EvalError(f"{told}, whose bits may differ; score again - at {place}")
    if first.head != other.head:
        raise EvalError(f"expected partials of one log by one set of rules, got two - at {place}")


def _join(arrays: Iterable[Array | None]) -> Array | None:
    found = [one.ints for one in arrays if one is not None]
    return frozen(np.concatenate(found)) if found else None


def tell_unevenness(partial: Partial) -> str:
    """Say what is wrong with the rows of a whole log; empty if all documents occur once under every filter.

    >>> tell_unevenness(Partial(row_counts=(RowCount("a", 3, 7), RowCount("b", 2, 7))))
    'expected as many rows under each filter, got 3 under a, 2 under b'
    """
    row_counts = partial.row_counts
    if len({one.rows for one in row_counts}) > 1:
        counts = ", ".join(f"{one.rows} under {one.filter}" for one in row_counts)
        return f"expected as many rows under each filter, got {counts}"
    if len({one.mark for one in row_counts}) > 1:
        return "expected the same documents and replies under each filter, got others"
    longest = max((one.column.documents for scored in partial.scored for one in scored.columns), default=0)
    alone = len(partial.scored) == 1 and bool(partial.scored[0].columns)
    if row_counts and alone and longest != row_counts[0].rows:
        return f"expected one row per document and filter, got {row_counts[0].rows} rows of {longest} documents"
    if partial.ids is not None and len(np.unique(partial.ids.ints)) < len(partial.ids):
        return "expected each id once, got one again"
    return ""


def number_documents(partial: Partial) -> Partial:
    """Number documents that have only places by their order; others have their numbers already.

    >>> number_documents(Partial(places=Array([0, 90, 40]), lost=((90, 1),))).lost
    ((2, 1),)
    """
    if partial.places is None:
        return partial
    places: Ints64 = np.unique(partial.places.ints)
    scored = tuple(_renumber(one, places) for one in partial.scored)
    lost = tuple((int(np.searchsorted(places, place)), count) for place, count in partial.lost)
    return replace(partial, scored=scored, places=None, lost=lost)


def _renumber(scored: Scored, places: Ints64) -> Scored:
    name = scored.task.name

    def number(column: Column) -> Column:
        keys = np.searchsorted(places, column.keys.ints).astype(np.int64)
        numbers = ((key, int(np.searchsorted(places, key)), why) for key, why in column.reasons)
        reasons = tuple((new, why.replace(place(name, old), place(name, new))) for old, new, why in numbers)
        return replace(column, keys=frozen(keys), reasons=reasons)

    columns = tuple(
        replace(one, column=number(one.column), noise=None if one.noise is None else number(one.noise))
        for one in scored.columns
    )
    clusters = tuple((int(np.searchsorted(places, key)), code) for key, code in scored.clusters)
    return replace(scored, columns=columns, clusters=clusters)
