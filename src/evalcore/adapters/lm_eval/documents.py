"""The documents and replies of an lm-eval task: what scoring reads of them, and tables that see them as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from evalcore.adapters.lm_eval.host import LmInstance, LmTask
from evalcore.adapters.lm_eval.tasks import THEIRS, is_known
from evalcore.core.answers.table import AnswerTable, request_table
from evalcore.core.filters.chain import Filter, FilterFn, Replies, nested
from evalcore.core.filters.reply import replies
from evalcore.core.records.document import convert_gold
from evalcore.core.records.errors import EvalError, locate, place
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, Failure, Gold, Sample
from evalcore.core.records.task import ProcessResults
from evalcore.core.tables import Tables

__all__ = ["Filled", "answers_of", "processed_by", "read_filled", "read_samples", "see_documents"]

NO_REPLY = Failure("the model gave no reply")
READ_DOCUMENTS = ("multi_choice_regex",)
"""Filters of evalcore that look into the document."""


class Filled(Struct, frozen=True, eq=False):
    """What a task asked, by document: lm-eval's document objects and the instances with their replies."""

    docs: FrozenDict[int, object]
    asked: FrozenDict[int, tuple[LmInstance, ...]]


def read_filled(name: str, task: LmTask) -> Filled:
    """The instances of a task by document, in the order of their idx, which several of a document may share."""
    instances: Sequence[LmInstance] | None = getattr(task, "instances", None)
    if not instances:
        raise EvalError(f"expected requests with replies, got none; build and run them first{place(name)}")
    asked: dict[int, list[LmInstance]] = {}
    for one in instances:
        if one.doc_id is None:
            raise EvalError(f"expected a doc_id for every instance, got none{place(name)}")
        asked.setdefault(one.doc_id, []).append(one)
    ordered = {doc_id: tuple(sorted(asked[doc_id], key=lambda one: one.idx)) for doc_id in sorted(asked)}
    return Filled(FrozenDict({doc_id: several[0].doc for doc_id, several in ordered.items()}), FrozenDict(ordered))


def answers_of(name: str, filled: Filled) -> AnswerTable:
    """The replies as a table. What lies beyond the repeats asked for are replies to padding."""
    rows = [(doc_id, idx, one) for doc_id, found in filled.asked.items() for idx, one in enumerate(found)]
    repeats = [one.repeats or 1 for _, _, one in rows]
    asked = request_table(name, [doc_id for doc_id, _, _ in rows], [idx for _, idx, _ in rows], repeats)
    given = (_padded(one.resps, n) for (_, _, one), n in zip(rows, repeats, strict=True))
    return asked.answered(list(chain.from_iterable(given)))


def _padded(found: Sequence[object], repeats: int) -> Sequence[object]:
    return [*found[:repeats], *[NO_REPLY] * (repeats - len(found))]


def read_samples(name: str, task: LmTask, filled: Filled, tables: Tables, cluster: str | None) -> list[Sample]:
    """What scoring knows of each document. Its JSON is only its number: own code gets the document itself."""
    read = _golds_and_choices(task) if is_known(task, tables) else _nothing
    out: list[Sample] = []
    for doc_id, doc in filled.docs.items():
        try:
            gold, choices = read(doc)
            out.append(Sample(doc_id, gold, choices, str(doc_id).encode(), None, _cluster(doc, cluster)))
        except Exception as raised:
            raise locate(raised, place(name, doc_id)) from raised
    return out


def _cluster(doc: object, field: str | None) -> int | str | None:
    if field is None:
        return None
    found = doc.get(field) if isinstance(doc, Mapping) else None
    if not isinstance(found, int | str):
        raise EvalError(f"expected a cluster in the field {field!r}, as a text or an integer, got {found!r}")
    return found


def _nothing(doc: object) -> tuple[Gold, tuple[str, ...]]:
    return None, ()


def _golds_and_choices(task: LmTask) -> Callable[[object], tuple[Gold, tuple[str, ...]]]:
    """How a task that evalcore scores itself says what is right."""
    several_inputs = bool(getattr(task, "multiple_input", False))
    several_targets = bool(getattr(task, "multiple_target", False))
    chosen = task.OUTPUT_TYPE == MULTIPLE_CHOICE or task.config.doc_to_choice is not None

    def read(doc: object) -> tuple[Gold, tuple[str, ...]]:
        gold = getattr(task, "doc_to_text" if several_inputs else "doc_to_target")(doc)
        if task.OUTPUT_TYPE == GENERATE_UNTIL and isinstance(gold, list) and not several_targets:
            gold = str(gold)
        return convert_gold(gold), tuple(getattr(task, "doc_to_choice")(doc)) if chosen else ()  # noqa: B009

    return read


# --- own code sees the documents as they are -----------------------------------------------------------------------


def processed_by(task: LmTask, filled: Filled) -> ProcessResults:
    """The task's ``process_results`` for a document that is known by its number."""

    def process(doc_id: object, results: list[object]) -> Mapping[str, object]:
        return task.process_results(filled.docs[doc_id], results)  # type: ignore[index]  # as read_samples wrote it

    return process


def see_documents(tables: Tables, filled: Filled) -> Tables:
    """The tables with filters that read documents as lm-eval holds them."""
    read = {name: _reading(tables.filters[name], filled) for name in READ_DOCUMENTS}
    return replace(tables, filters=tables.filters.update(read).set(THEIRS, Filter(_running(filled), "task")))


def _reading(entry: Filter, filled: Filled) -> Filter:
    """A filter of evalcore that gets the documents' JSON when it runs."""

    @wraps(entry.make)
    def make(**named: object) -> FilterFn:
        apply = entry.make(**named)
        return lambda given, samples: apply(given, [_whole(one, filled) for one in samples])

    return Filter(make, entry.scope)


def _whole(sample: Sample, filled: Filled) -> Sample:
    return replace(sample, doc=json.dumps(filled.docs[sample.doc_id], default=str).encode())


def _running(filled: Filled) -> Callable[..., FilterFn]:
    """Runs a filter of lm-eval: all replies and all documents at once, a list of replies for each request."""

    def make_filter(*, make: Callable[[], object], whole: bool = False) -> FilterFn:
        def apply(given: Replies, samples: Sequence[Sample]) -> Replies:
            units = nested(given)
            docs = [filled.docs[one.doc_id] for one in samples]
            out: Iterable[object] = getattr(make(), "apply")(nested(given), docs)  # noqa: B009
            return replies([one] if whole else _listed(one, unit) for one, unit in zip(out, units, strict=True))

        return apply

    return make_filter


def _listed(found: object, given: Sequence[object]) -> Sequence[object]:
    """What a filter left of a request: replies, or the one that it took (a likelihood is a tuple itself)."""
    pairs = bool(given) and isinstance(given[0], tuple)
    return found if isinstance(found, list) or (isinstance(found, tuple) and not pairs) else [found]
