"""Chunks of whole documents with their answers: what is usable, what is not, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

import numpy as np

from evalcore.core.answers.table import AnswerTable, Likelihoods, likelihoods
from evalcore.core.filters.reply import Replies
from evalcore.core.records.array import Bools, ColumnRecord, Ints64
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.outcome import FAILED, UNSCORABLE
from evalcore.core.records.request import GENERATE_UNTIL, Failure, Sample
from evalcore.core.records.task import Task
from evalcore.core.tables import BoundPipeline, Tables

CHUNK = 8192
"""Documents scored at a time: large enough for arrays to pay, small enough for memory to stay flat."""


class Chunk(ColumnRecord, frozen=True, eq=False):
    """Some documents of a task and their answers, to go through one pipeline."""

    bound: BoundPipeline
    docs: Sequence[Sample]
    keys: Ints64
    table: AnswerTable


def split_chunks(
    bound: BoundPipeline, docs: Sequence[Sample], keys: Ints64, table: AnswerTable, size: int
) -> Iterator[Chunk]:
    """Split documents into chunks of ``size``; into a single one if a filter looks at all of them."""
    step = max(len(docs) if bound.whole else size, 1)
    for a in range(0, len(docs), step):
        here = keys[a : a + step]
        yield Chunk(bound, docs[a : a + step], here, table.rows(int(here[0]), int(here[-1]) + 1))


def sort_documents(task: Task, samples: Iterable[Sample]) -> tuple[Sequence[Sample], Ints64]:
    """Sort documents by key, each once, and return them with their keys."""
    docs = tuple(samples)
    try:
        keys = np.fromiter(map(attrgetter("doc_id"), docs), np.int64, len(docs))
    except (OverflowError, ValueError, TypeError) as wrong:
        raise EvalError(f"expected 64-bit integers as doc_id: {wrong}{place(task.name)}") from wrong
    if len(keys) > 1 and not bool(np.all(keys[1:] > keys[:-1])):
        order = np.argsort(keys, kind="stable")
        twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        if len(twice):
            raise EvalError(f"expected each document once, got one twice{place(task.name, int(keys[order][twice[0]]))}")
        docs, keys = tuple(docs[i] for i in order.tolist()), keys[order]
    return docs, keys


def refuse_strangers(task: Task, keys: Ints64, table: AnswerTable) -> None:
    """Refuse answers of another task, or to unknown documents."""
    docs = table.asked.docs.ints
    if len(docs) and table.task != task.name:
        raise EvalError(f"expected answers of {task.name!r}, got answers of {table.task!r}")
    asked = docs[np.concatenate([[True], docs[1:] != docs[:-1]])] if len(docs) else docs
    if len(asked) == len(keys) and bool(np.all(asked == keys)):
        return
    strangers = np.setdiff1d(asked, keys, assume_unique=True)
    if len(strangers):
        raise EvalError(f"expected a sample for every answer, got none{place(task.name, int(strangers[0]))}")


class Gathered(ColumnRecord, frozen=True, eq=False):
    """Replies of a chunk by unit, the number of units of each usable document, and what is wrong with the rest."""

    replies: Replies
    units: Ints64
    usable: Bools
    problems: Mapping[int, tuple[int, str]]


def gather_replies(task: Task, keys: Ints64, table: AnswerTable, tables: Tables) -> Gathered:
    """Gather the replies of a chunk by unit; set aside documents without usable replies, with the reason."""
    docs = table.asked.docs.ints
    per_doc = np.searchsorted(docs, keys, side="right") - np.searchsorted(docs, keys)
    counts = np.diff(table.offsets.ints)
    values = table.values
    problems = {int(i): (FAILED, "no answer was recorded") for i in np.flatnonzero(per_doc == 0)}
    problems |= _find_reply_problems(task, table, counts, per_doc, tables)
    usable = np.ones(len(keys), np.bool_)
    usable[list(problems)] = False
    kept = np.repeat(usable, per_doc)
    good = np.repeat(kept, counts) & _find_present(values)
    if not (kept.all() and good.all()):
        owners = np.repeat(np.arange(len(counts)), counts)[good]
        counts = np.bincount(owners, minlength=len(counts))[kept]
        values = likelihoods(values[i] for i in np.flatnonzero(good).tolist())
    per_doc = per_doc[usable]
    if task.output_type == GENERATE_UNTIL and not bool(np.all(per_doc == 1)):
        counts = np.add.reduceat(counts, np.cumsum(per_doc) - per_doc) if len(counts) else counts
        per_doc = np.ones_like(per_doc)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Gathered(Replies(values, offsets, np.zeros(len(values), np.int8)), per_doc, usable, problems)


def _refuse_surplus(task: Task, table: AnswerTable, counts: Ints64) -> None:
    """Refuse more replies than were declared."""
    asked = table.asked.repeats.ints
    for j in np.flatnonzero(counts > asked)[:1].tolist():
        where = place(task.name, int(table.asked.docs.ints[j]))
        raise EvalError(
            f"expected {asked[j]} {'reply' if asked[j] == 1 else 'replies'}, got {counts[j]}{where}; declare as many "
            f"repeats, or set ragged if their number varies"
        )


def _find_present(values: Sequence[object]) -> Bools:
    """Find the replies that are neither missing nor failures."""
    if isinstance(values, Likelihoods) or not {Failure, type(None)} & set(map(type, values)):
        return np.ones(len(values), np.bool_)
    return np.array([value is not None and not isinstance(value, Failure) for value in values], np.bool_)


def _find_reply_problems(
    task: Task, table: AnswerTable, counts: Ints64, per_doc: Ints64, tables: Tables
) -> dict[int, tuple[int, str]]:
    """Find documents with a request whose replies are too few or failed; with ragged repeats, all of them."""
    asked = table.asked.repeats.ints
    doc_of = np.repeat(np.arange(len(per_doc)), per_doc)
    short = counts == 0 if task.ragged else counts != asked
    if not task.ragged and bool(short.any()):
        if tables.unreduced is None:
            _refuse_surplus(task, table, counts)
        short = counts < asked
    out = {
        int(doc_of[j]): (UNSCORABLE, f"expected {asked[j]} replies, got {counts[j]}")
        for j in np.flatnonzero(short)[::-1].tolist()
    }
    wanted = np.arange(len(doc_of)) - np.repeat(np.cumsum(per_doc) - per_doc, per_doc)
    for j in np.flatnonzero(table.asked.idxs.ints != wanted)[::-1].tolist():
        idxs = table.asked.idxs.ints[doc_of == doc_of[j]].tolist()
        out[int(doc_of[j])] = (UNSCORABLE, f"expected requests 0 to {len(idxs) - 1}, got idx {idxs}")
    present = _find_present(table.values)
    if bool(present.all()):
        return out
    owners = np.repeat(np.arange(len(counts)), counts)
    lost = np.bincount(owners[~present], minlength=len(counts))
    for j in np.flatnonzero((lost == counts) & (counts > 0) if task.ragged else lost > 0)[::-1].tolist():
        first = next(
            v
            for v in table.values[table.offsets.ints[j] : table.offsets.ints[j + 1]]
            if v is None or isinstance(v, Failure)
        )
        out[int(doc_of[j])] = (FAILED, first.reason if isinstance(first, Failure) else "no answer")
    return out
