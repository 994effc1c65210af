"""``group_by_doc``: answers are sorted into documents once; later steps read slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Generic, Protocol, TypeVar, overload, runtime_checkable

import numpy as np

from evalcore.core.answers.table import AnswerTable, Requests, likelihoods, sort_places
from evalcore.core.records.array import Array, Ints64, frozen
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import Answer


@runtime_checkable
class Located(Protocol):
    """Anything that knows its task, its document and its place within the document."""

    @property
    def task(self) -> str: ...
    @property
    def doc_id(self) -> int: ...
    @property
    def idx(self) -> int: ...


P = TypeVar("P", bound=Located)


class Grouped(Mapping[int, tuple[P, ...]], Generic[P]):
    """A read-only view of items sorted by (document, idx): ``grouped[doc_id]`` is that document's items."""

    __slots__ = ("docs", "flat", "idxs", "keys_array", "offsets", "task")

    def __init__(self, task: str, flat: tuple[P, ...], docs: Ints64, idxs: Ints64) -> None:
        starts = np.flatnonzero(np.concatenate([[True], docs[1:] != docs[:-1]])) if len(docs) else docs
        self.task, self.flat, self.docs, self.idxs = task, flat, docs, idxs
        self.keys_array, self.offsets = docs[starts], np.append(starts, len(docs))

    def __getitem__(self, doc_id: int) -> tuple[P, ...]:
        at = int(np.searchsorted(self.keys_array, doc_id))
        if at == len(self.keys_array) or self.keys_array[at] != doc_id:
            raise KeyError(doc_id)
        return self.flat[self.offsets[at] : self.offsets[at + 1]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.keys_array.tolist())

    def __len__(self) -> int:
        return len(self.keys_array)

    def __repr__(self) -> str:
        return f"Grouped({self.task!r}, {len(self)} documents, {len(self.flat)} items)"


@overload
def group_by_doc(items: AnswerTable) -> AnswerTable: ...
@overload
def group_by_doc(items: Iterable[P]) -> Grouped[P]: ...
def group_by_doc(items: Iterable[P] | AnswerTable) -> Grouped[P] | AnswerTable:
    """Group the items of one task by document, each in idx order, in whatever order they arrive.

    A table is in that order already and is returned unchanged.

    >>> from evalcore.core.records.request import Generate, Instance
    >>> made = [Instance("t", doc, idx, Generate("?")) for doc, idx in [(1, 1), (0, 0), (1, 0)]]
    >>> [(i.doc_id, i.idx) for i in group_by_doc(made)[1]]
    [(1, 0), (1, 1)]
    """
    if isinstance(items, AnswerTable):
        return items
    flat = tuple(items)
    n = len(flat)
    if n == 0:
        return Grouped("", (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    placed = list(map(attrgetter("instance"), flat)) if isinstance(flat[0], Answer) else flat
    named = "task" if hasattr(placed[0], "task") else "task_name"  # as lm-eval's own instances call it
    task = _expect_one_task(set(map(attrgetter(named), placed)))
    try:
        docs = np.fromiter(map(attrgetter("doc_id"), placed), np.int64, n)
        idxs = np.fromiter(map(attrgetter("idx"), placed), np.int64, n)
    except (OverflowError, ValueError, TypeError) as wrong:
        raise EvalError(f"expected 64-bit integers as doc_id and idx: {wrong}{place(task)}") from wrong
    order = sort_places(task, docs, idxs)
    if order is not None:
        flat, docs, idxs = tuple(flat[i] for i in order.tolist()), docs[order], idxs[order]
    return Grouped(task, flat, docs, idxs)


def _expect_one_task(tasks: set[str]) -> str:
    if len(tasks) > 1:
        raise EvalError(f"expected the answers of one task, got {sorted(tasks)}; group each task by itself")
    return next(iter(tasks))


def table_from_groups(grouped: Grouped[Answer], *, keep_requests: bool = False) -> AnswerTable:
    """Turn grouped answers into columns; what was asked is kept for functions that want to know.

    >>> from evalcore.core.records.request import Generate, Instance
    >>> table_from_groups(group_by_doc([Answer(Instance("t", 3, 0, Generate("?")), ("x",))])).asked.docs
    Array([3])
    """
    replies = list(map(attrgetter("replies"), grouped.flat))
    counts = np.fromiter(map(len, replies), np.int64, len(replies))
    repeats = np.fromiter(map(attrgetter("repeats"), map(attrgetter("instance"), grouped.flat)), np.int64, len(replies))
    values = map(itemgetter(0), replies) if bool(np.all(counts == 1)) else chain.from_iterable(replies)
    asked = Requests(grouped.task, Array(grouped.docs), Array(grouped.idxs), frozen(repeats))
    requests = [answer.instance.request for answer in grouped.flat] if keep_requests else ()
    return AnswerTable(asked, frozen(np.concatenate([[0], np.cumsum(counts)])), likelihoods(values), requests)
