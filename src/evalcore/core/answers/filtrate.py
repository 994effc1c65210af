"""What the filters of a pipeline leave of a chunk: replies to score, documents lost on the way and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from evalcore.core.answers.batch import Batch, take_documents
from evalcore.core.answers.chunk import Chunk, gather_replies
from evalcore.core.answers.table import AnswerTable
from evalcore.core.filters.chain import leaves_of
from evalcore.core.filters.reply import FELL_BACK, Replies
from evalcore.core.records.array import Array, ColumnRecord, Ints64, frozen
from evalcore.core.records.column import EMPTY, Column, build_column, merge_all
from evalcore.core.records.errors import RAISED, EvalError, blame_entry, place
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import GENERATE_UNTIL, Sample
from evalcore.core.records.row import blank_rows
from evalcore.core.records.score import Provenance
from evalcore.core.records.task import Task
from evalcore.core.tables import BoundPipeline


class Filtrate(ColumnRecord, frozen=True, eq=False):
    """The remaining replies, their documents (``units`` of each), and the documents without any.

    ``traits`` names what makes other harnesses give other numbers for these documents.
    """

    docs: Sequence[Sample]
    keys: Ints64
    replies: Replies
    units: Ints64
    lost: Column = EMPTY
    traits: tuple[str, ...] = ()


def filter_chunk(chunk: Chunk) -> Filtrate:
    """Pass the replies of a chunk through the filters of its pipeline."""
    bound, task, docs = chunk.bound, chunk.bound.task, chunk.docs
    raw = gather_replies(task, chunk.keys, chunk.table, bound.tables)
    kept = [docs[i] for i in np.flatnonzero(raw.usable).tolist()] if raw.problems else docs
    try:
        out = check_replies(bound.apply(raw.replies, spread_docs(kept, raw.units)), len(raw.replies.counts))
    except RAISED as wrong:
        raise blame_entry(wrong, f"filter {bound.pipeline.name!r}", place(task.name), always=True) from wrong
    dropped = _find_dropped(bound, kept, out, raw.units)
    return Filtrate(
        kept,
        chunk.keys[raw.usable],
        list_replies(out) if bound.lists else out,
        raw.units,
        merge_all((_build_lost(docs, raw.problems, task), dropped)),
        tuple(
            sorted((*name_traits(task, docs), *_name_growth(bound, docs, out), *_name_drops(task, raw.replies, out)))
        ),
    )


def check_replies(left: object, units: int) -> Replies:
    """Check that filters left replies for every unit, whoever wrote them.

    >>> check_replies(None, 2)
    Traceback (most recent call last):
    evalcore.EvalError: expected Replies of 2 units, got None
    """
    if not isinstance(left, Replies):
        raise EvalError(f"expected Replies of {units} units, got {left!r:.200}")
    ends, count = left.offsets, len(left.values)
    if len(ends) != units + 1 or ends[0] != 0 or ends[-1] != count or len(left.rules) != count:
        raise EvalError(
            f"expected Replies of {units} units, got {len(ends) - 1}, with {count} values and {len(left.rules)} rules"
        )
    return left


def batch_repeats(task: str, pipeline: str, left: Filtrate, table: AnswerTable | None = None) -> Iterator[Batch]:
    """Yield a batch for each repeat that a pipeline left; a document is in as many as it has replies."""
    out, units = left.replies, left.units
    counts = out.counts
    fell = out.rules == FELL_BACK
    ends = np.concatenate([[0], np.cumsum(units)])
    if bool(np.all(counts == 1)):
        yield Batch(task, pipeline, left.docs, left.keys, out.values, ends, fell, table)
        return
    per_doc = np.minimum.reduceat(counts, ends[:-1]) if len(counts) else counts
    for repeat in range(int(per_doc.max(initial=0))):
        here = np.flatnonzero(per_doc > repeat)
        picked = np.concatenate([out.offsets[:-1][ends[i] : ends[i + 1]] for i in here.tolist()]) + repeat
        offsets = np.concatenate([[0], np.cumsum(units[here])])
        values = [out.values[i] for i in picked.tolist()]
        docs = [left.docs[i] for i in here.tolist()]
        yield Batch(task, pipeline, docs, left.keys[here], values, offsets, fell[picked], table)


def batch_together(task: str, pipeline: str, left: Filtrate, table: AnswerTable | None = None) -> Batch:
    """Make the batch of all replies of each document, whatever their number."""
    out = left.replies
    ends = out.offsets[np.concatenate([[0], np.cumsum(left.units)])]
    fell = out.rules == FELL_BACK
    return take_documents(Batch(task, pipeline, left.docs, left.keys, out.values, ends, fell, table), np.diff(ends) > 0)


def keep_provenance(bound: BoundPipeline, left: Filtrate) -> Provenance:
    """Keep the final replies of each document and the rule behind each."""
    ends, out = np.concatenate([[0], np.cumsum(left.units)]), left.replies
    taken = bound.lists or {"first", "any"} & set(leaves_of(bound.pipeline, bound.tables.filters))
    return Provenance(
        bound.pipeline.name,
        Array(left.keys),
        frozen(out.offsets[ends]),
        tuple(out.values),
        frozen(out.rules.copy()),
        listed=bound.tables.as_host and not taken,
    )


def list_replies(given: Replies) -> Replies:
    """Turn each unit's replies into one reply, a list."""
    values: list[object] = [list(given.values[a:b]) for a, b in pairwise(given.offsets.tolist())]
    firsts = np.minimum(given.offsets[:-1], max(len(given.rules) - 1, 0))
    rules = given.rules[firsts] if len(given.rules) else np.zeros(len(values), np.int8)
    return Replies(values, np.arange(len(values) + 1), rules)


class ByUnit(Sequence[Sample]):
    """The document of each unit, looked up only if a filter asks."""

    def __init__(self, docs: Sequence[Sample], units: Ints64) -> None:
        self.docs, self.ends = docs, np.cumsum(units)

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @overload
    def __getitem__(self, at: int) -> Sample: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sample]: ...
    def __getitem__(self, at: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self.docs[int(np.searchsorted(self.ends, at, side="right"))]


def spread_docs(docs: Sequence[Sample], units: Ints64) -> Sequence[Sample]:
    return docs if bool(np.all(units == 1)) else ByUnit(docs, units)


def _build_lost(docs: Sequence[Sample], problems: Mapping[int, tuple[int, str]], task: Task) -> Column:
    if not problems:  # most chunks; for a single document it is a tenth of the work
        return EMPTY
    at = sorted(problems)
    keys = [docs[i].doc_id for i in at]
    status: NDArray[np.uint8] = np.array([problems[i][0] for i in at], np.uint8)
    reasons = {key: problems[i][1] + place(task.name, key) for i, key in zip(at, keys, strict=True)}
    return build_column(keys, blank_rows(len(keys)), status, reasons)


def _find_dropped(bound: BoundPipeline, docs: Sequence[Sample], out: Replies, units: Ints64) -> Column:
    """Find documents of which a pipeline left no reply."""
    ends = np.concatenate([[0], np.cumsum(units)])
    least = np.minimum.reduceat(out.counts, ends[:-1]) if len(out.counts) else out.counts
    reason = (UNSCORABLE, f"filter {bound.pipeline.name!r} left no reply")
    return _build_lost(docs, {int(i): reason for i in np.flatnonzero(least == 0)}, bound.task)


def name_traits(task: Task, docs: Sequence[Sample]) -> tuple[str, ...]:
    """Name what makes other harnesses give other numbers for these documents (see ``core/lm_eval/errata.py``).

    >>> name_traits(Task("t", GENERATE_UNTIL), [Sample(0, gold=("a", "b")), Sample(1, gold="...")])
    ('bare gold', 'several golds')
    """
    if task.output_type != GENERATE_UNTIL:
        return ()
    golds = [doc.gold for doc in docs]
    several = any(isinstance(gold, tuple) for gold in golds)
    bare = any(isinstance(gold, str) and (NO_WORD.fullmatch(gold) or "\0" in gold) for gold in golds)
    return (("bare gold",) if bare else ()) + (("several golds",) if several else ())


NO_WORD = re.compile(r"[\W\d_]+")


GROWING = "\u0130"
"""The one letter that is two in lower case (Turkish I with a dot)."""


def _name_growth(bound: BoundPipeline, docs: Sequence[Sample], left: Replies) -> tuple[str, ...]:
    """Name texts that grow in lower case, where case is ignored."""
    if not any(spec.options.get("ignore_case") for spec in bound.specs):
        return ()
    golds = (gold for doc in docs for gold in (doc.gold if isinstance(doc.gold, tuple) else (doc.gold,)))
    texts = "".join([one for one in chain(left.values, golds) if isinstance(one, str)])
    return ("growing text",) if GROWING in texts else ()


def _name_drops(task: Task, given: Replies, left: Replies) -> tuple[str, ...]:
    """Name replies that were dropped although no filter was named."""
    return ("first reply",) if not task.filters and len(left.values) < len(given.values) else ()
