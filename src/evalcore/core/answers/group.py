"""Answers sorted into documents: one sort, then everything reads slices of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from evalcore.core.records.array import Ints64
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import Answer

__all__ = ["Grouped", "Placed", "group_by_doc"]


@runtime_checkable
class Placed(Protocol):
    """Anything that knows its task, its document and its place within the document."""

    @property
    def task(self) -> str: ...
    @property
    def doc_id(self) -> int: ...
    @property
    def idx(self) -> int: ...


P = TypeVar("P", bound=Placed)


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


def group_by_doc(items: Iterable[P]) -> Grouped[P]:
    """Items of one task by document, each in idx order, whatever order they came in.

    >>> from evalcore.core.records.request import Generate, Instance
    >>> made = [Instance("t", doc, idx, Generate("?")) for doc, idx in [(1, 1), (0, 0), (1, 0)]]
    >>> [(i.doc_id, i.idx) for i in group_by_doc(made)[1]]
    [(1, 0), (1, 1)]
    """
    flat = tuple(items)
    n = len(flat)
    if n == 0:
        return Grouped("", (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    placed = list(map(attrgetter("instance"), flat)) if isinstance(flat[0], Answer) else flat
    task = _one_task(set(map(attrgetter("task"), placed)))
    try:
        docs = np.fromiter(map(attrgetter("doc_id"), placed), np.int64, n)
        idxs = np.fromiter(map(attrgetter("idx"), placed), np.int64, n)
    except (OverflowError, ValueError, TypeError) as wrong:
        raise EvalError(f"expected whole numbers of 64 bits as doc_id and idx: {wrong}{place(task)}") from wrong
    order = sort_places(task, docs, idxs)
    if order is not None:
        flat, docs, idxs = tuple(flat[i] for i in order.tolist()), docs[order], idxs[order]
    return Grouped(task, flat, docs, idxs)


def sort_places(task: str, docs: Ints64, idxs: Ints64) -> Ints64 | None:
    """The order that sorts places by (document, idx), None if they are sorted; a place twice is an error."""
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


def _one_task(tasks: set[str]) -> str:
    if len(tasks) > 1:
        raise EvalError(f"expected the answers of one task, got {sorted(tasks)}; group each task by itself")
    return next(iter(tasks))
