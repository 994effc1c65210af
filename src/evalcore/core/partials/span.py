"""Where documents are from: ranges of sources, and rows that were counted in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct


class Span(Struct, frozen=True):
    """What documents were made from: a range of a source, of ``total`` where that is known, and its content's hash.

    ``whole`` is a hash of all that the source held when the range was scored, so that a change of it is noticed.

    >>> str(Span("samples_t.jsonl", "bytes", 0, 64, 128))
    'bytes 0 to 64 of samples_t.jsonl'
    """

    source: str
    unit: str
    start: int
    stop: int
    total: int | None = None
    digest: str = ""
    whole: str = ""

    def __str__(self) -> str:
        return f"{self.unit} {self.start:,} to {self.stop:,} of {self.source}"


class RowCount(Struct, frozen=True):
    """How many rows one filter of a log has in some units, and a sum over them that does not depend on their order."""

    filter: str
    rows: int
    mark: int


def order_span(span: Span) -> tuple[str, str, int, int]:
    """Order spans by source, then by place."""
    return span.source, span.unit, span.start, span.stop


def add_counts(row_counts: Iterable[RowCount]) -> tuple[RowCount, ...]:
    """Add the counts of each filter.

    >>> add_counts([RowCount("a", 1, 5), RowCount("a", 2, 6)])
    (RowCount(filter='a', rows=3, mark=11),)
    """
    sums: dict[str, RowCount] = {}
    for one in row_counts:
        known = sums.get(one.filter, RowCount(one.filter, 0, 0))
        sums[one.filter] = RowCount(one.filter, known.rows + one.rows, (known.mark + one.mark) % (1 << 63))
    return tuple(sums[name] for name in sorted(sums))


def find_change(spans: Iterable[Span]) -> tuple[Span, Span] | None:
    """Find two spans of a source between which it changed; none if it was cut in two ways, which hash to two numbers.

    >>> [span.start for span in find_change([Span("a", "bytes", 0, 5, whole="x"), Span("a", "bytes", 5, 9, whole="y")])]
    [0, 5]
    """
    given = sorted(spans, key=order_span)
    if any((a.start, a.stop) != (b.start, b.stop) for a, b in find_overlaps(given)):
        return None
    first: dict[tuple[str, str], Span] = {}
    for span in given:
        known = first.setdefault((span.source, span.unit), span)
        if known.whole != span.whole:
            return known, span
    return None


def find_gaps(spans: Iterable[Span]) -> Iterator[Span]:
    """Find the ranges of sources that no span covers, as far as their totals are known.

    >>> [str(gap) for gap in find_gaps([Span("a", "bytes", 0, 5, 20), Span("a", "bytes", 12, 20, 20)])]
    ['bytes 5 to 12 of a']
    """
    ends: dict[tuple[str, str], list[Span]] = {}
    for span in sorted(spans, key=order_span):
        ends.setdefault((span.source, span.unit), []).append(span)
    for (source, unit), own in ends.items():
        reached = 0
        for span in own:
            if span.start > reached:
                yield Span(source, unit, reached, span.start, span.total)
            reached = max(reached, span.stop)
        if own[-1].total is not None and reached < own[-1].total:
            yield Span(source, unit, reached, own[-1].total, own[-1].total)


def find_overlaps(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    """Find neighbouring spans of a source that share a range.

    >>> [str(b) for a, b in find_overlaps([Span("a", "bytes", 0, 5), Span("a", "bytes", 3, 7)])]
    ['bytes 3 to 7 of a']
    """
    for a, b in pairwise(sorted(spans, key=order_span)):
        if (a.source, a.unit) == (b.source, b.unit) and b.start < a.stop:
            yield a, b
