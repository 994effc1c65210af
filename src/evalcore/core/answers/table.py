"""Answers as a table: one row per request, sorted by document; later steps read slices of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from operator import itemgetter
from typing import overload

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Array, ColumnRecord, Floats64, Ints64, frozen
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import Instance, Likelihood, Request


class Likelihoods(Sequence[tuple[float, ...]]):
    """Likelihood replies whose values are also an array.

    >>> replies = likelihoods([(-1.5, True), (-2.0, False)])
    >>> replies[0], replies.values.tolist()
    ((-1.5, True), [-1.5, -2.0])
    """

    __slots__ = ("raw", "values")

    def __init__(self, raw: tuple[tuple[float, ...], ...], values: Floats64) -> None:
        self.raw, self.values = raw, values

    def part(self, at: int) -> Floats64:
        """Another field of every reply (1: greedy, 2: tokens); 0 if missing, NaN if not a number."""
        return np.array([as_number(one[at]) if len(one) > at else 0.0 for one in self.raw], np.float64)

    def __len__(self) -> int:
        return len(self.raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Likelihoods) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __reduce__(self) -> tuple[Callable[[Sequence[object]], Sequence[object]], tuple[Sequence[object]]]:
        return likelihoods, (self.raw,)

    @overload
    def __getitem__(self, at: int) -> tuple[float, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> Likelihoods: ...
    def __getitem__(self, at: int | slice) -> tuple[float, ...] | Likelihoods:
        return Likelihoods(self.raw[at], self.values[at]) if isinstance(at, slice) else self.raw[at]


def as_number(value: object) -> float:
    """Read a number or its text, or one of the words True and False, as in lm-eval's logs; NaN for anything else.

    >>> as_number("True"), as_number("-1.5"), as_number("x")
    (1.0, -1.5, nan)
    """
    if isinstance(value, str):
        return TRUTHS[value] if value in TRUTHS else _read_text(value)
    try:
        return float(value) if isinstance(value, int | float | np.number | np.bool_) else nan
    except OverflowError:
        return nan


TRUTHS: Mapping[str, float] = {"True": 1.0, "False": 0.0}


def _read_text(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def read_value(reply: object) -> float:
    """Read the log-likelihood of a reply: a number, or a tuple that begins with one or its text; else NaN.

    >>> read_value(("-1.5", "True")), read_value(-2), read_value("-1.5"), read_value((True, True))
    (-1.5, -2.0, nan, nan)
    """
    if isinstance(reply, tuple):
        head = reply[0] if reply else nan
        return _read_text(head) if isinstance(head, str) else read_value(head)
    return nan if isinstance(reply, bool | np.bool_ | str) else as_number(reply)


def likelihoods(replies: Iterable[object]) -> Sequence[object]:
    """Replies as ``Likelihoods`` if all are tuples that begin with a number, else as a tuple."""
    replies = tuple(replies)
    kinds = set(map(type, replies))
    if list in kinds:  # JSON has no tuples
        replies = tuple(tuple(one) if type(one) is list else one for one in replies)
        kinds = set(map(type, replies))
    if not replies or not kinds <= {tuple, Likelihood}:
        return replies
    try:
        heads = list(map(itemgetter(0), replies))  # type: ignore[arg-type]
        values = _read_plain(heads)
        if values is None:
            values = np.fromiter(map(read_value, replies), np.float64, len(replies))
            if bool(np.isnan(values).any()):
                return replies
    except (IndexError, OverflowError):
        return replies
    values.setflags(write=False)
    return Likelihoods(replies, values)  # type: ignore[arg-type]  # just checked: tuples


def _read_plain(heads: Sequence[object]) -> Floats64 | None:
    """Read numbers as ``read_value`` does, only faster; None if some may be none."""
    try:
        found = np.array(heads)
    except (TypeError, ValueError, OverflowError):
        return None
    if found.ndim != 1 or found.dtype.kind not in "fiu":
        return None
    if bool(((found == 0) | (found == 1)).any()) and not {bool, np.bool_}.isdisjoint(map(type, heads)):
        return None  # which numpy takes for numbers among numbers
    return np.asarray(found, np.float64)


class Requests(Struct, frozen=True):
    """The requests of one task as arrays sorted by (document, idx), a row per request."""

    task: str
    docs: Array
    idxs: Array
    repeats: Array

    def answered(self, replies: Sequence[object], requests: Sequence[Request] = ()) -> AnswerTable:
        """Build the table of answers from replies in request order, the repeats of a request together.

        >>> asked = Requests("t", Array([0, 0]), Array([0, 1]), Array([1, 1]))
        >>> asked.answered([(-1.0, True), (-2.0, False)]).values.values.tolist()
        [-1.0, -2.0]
        """
        offsets = np.concatenate([[0], np.cumsum(self.repeats.ints)])
        if len(replies) != offsets[-1]:
            raise EvalError(f"expected {offsets[-1]} replies, got {len(replies)} - at {self.task}")
        return AnswerTable(self, frozen(offsets), likelihoods(replies), requests)


class AnswerTable(ColumnRecord, frozen=True, eq=True):
    """Requests and the replies to each: request ``i`` got ``values[offsets[i]:offsets[i + 1]]``.

    ``requests`` are their texts, where known.
    """

    asked: Requests
    offsets: Array
    values: Sequence[object]
    requests: Sequence[Request] = ()

    @property
    def task(self) -> str:
        return self.asked.task

    def rows(self, first: int, last: int) -> AnswerTable:
        """The part of the table with keys from ``first`` up to, but not including, ``last``."""
        a, b = np.searchsorted(self.asked.docs.ints, [first, last])
        if b - a == len(self.asked.docs):
            return self
        ends = self.offsets.ints[a : b + 1]
        asked = Requests(
            self.task,
            Array(self.asked.docs.ints[a:b]),
            Array(self.asked.idxs.ints[a:b]),
            Array(self.asked.repeats.ints[a:b]),
        )
        return AnswerTable(asked, frozen(ends - ends[0]), self.values[ends[0] : ends[-1]], self.requests[a:b])

    def list_instances(self, key: int) -> tuple[Instance, ...]:
        """The instances of a document; none if the texts of its requests are not known."""
        asked = self.asked
        a, b = np.searchsorted(asked.docs.ints, [key, key + 1]).tolist()
        rows = zip(asked.idxs.ints[a:b].tolist(), self.requests[a:b], asked.repeats.ints[a:b].tolist(), strict=False)
        return tuple(Instance(self.task, key, idx, request, repeats) for idx, request, repeats in rows)


def request_table(task: str, docs: Sequence[int], idxs: Sequence[int], repeats: Sequence[int] | int = 1) -> Requests:
    """Build requests from columns sorted by (document, idx), each place once.

    >>> request_table("t", [0, 0, 1], [0, 1, 0]).repeats
    Array([1, 1, 1])
    """
    doc_keys, places = np.asarray(docs, np.int64), np.asarray(idxs, np.int64)
    order = sort_places(task, doc_keys, places)
    if order is not None:
        raise EvalError(f"expected requests sorted by document and idx, got them out of order - at {task}")
    each = np.full(len(doc_keys), repeats) if isinstance(repeats, int) else np.asarray(repeats, np.int64)
    return Requests(task, Array(doc_keys), Array(places), frozen(each.astype(np.int64)))


def sort_places(task: str, docs: Ints64, idxs: Ints64) -> Ints64 | None:
    """Return the order that sorts places by (document, idx), None if they are sorted; duplicates are an error."""
    same = docs[1:] == docs[:-1]
    if bool(np.all((docs[1:] > docs[:-1]) | (same & (idxs[1:] > idxs[:-1])))):
        return None
    order = np.lexsort((idxs, docs))
    docs, idxs = docs[order], idxs[order]
    twice = np.flatnonzero((docs[1:] == docs[:-1]) & (idxs[1:] == idxs[:-1]))
    if len(twice):
        at = int(twice[0])
        raise EvalError(f"expected each (document, idx) once, got idx {idxs[at]} twice{place(task, int(docs[at]))}")
    return order
