"""The documents and replies of an lm-eval task: what scoring reads of them, and tables that see them unchanged."""

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
from evalcore.core.filters.reply import Filter, FilterFn, Replies, nested, replies
from evalcore.core.lm_eval.target import ReadGolds, choose_golds, keep_target
from evalcore.core.records.document import convert_gold
from evalcore.core.records.errors import EvalError, locate, place
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, Failure, Gold, Sample
from evalcore.core.records.task import ProcessResults
from evalcore.core.tables import Tables

NO_REPLY = Failure("the model gave no reply")
READ_DOCUMENTS = ("multi_choice_regex",)
"""Filters of evalcore that read the document."""


class Filled(Struct, frozen=True, eq=False):
    """What a task asked, by document: lm-eval's document objects and the instances with their replies."""

    docs: FrozenDict[int, object]
    asked: FrozenDict[int, tuple[LmInstance, ...]]


def read_filled(name: str, task: LmTask) -> Filled:
    """Read the instances of a task by document, sorted by idx, which several of a document may share."""
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


def tabulate_replies(name: str, filled: Filled) -> AnswerTable:
    """Tabulate the replies; those beyond the repeats asked for are replies to padding."""
    rows = [(doc_id, idx, one) for doc_id, several in filled.asked.items() for idx, one in enumerate(several)]
    repeats = [one.repeats or 1 for _, _, one in rows]
    asked = request_table(name, [doc_id for doc_id, _, _ in rows], [idx for _, idx, _ in rows], repeats)
    padded = (
        [*one.resps[:n], *[NO_REPLY] * (n - len(one.resps))] for (_, _, one), n in zip(rows, repeats, strict=True)
    )
    return asked.answered(list(chain.from_iterable(padded)))


def read_samples(name: str, task: LmTask, filled: Filled, tables: Tables, cluster: str | None) -> list[Sample]:
    """Read what scoring knows of each document. Its JSON is only its number: own code gets the document itself."""
    read = _make_reader(task, tables) if is_known(task, tables) else lambda doc: (None, ())
    out: list[Sample] = []
    for doc_id, doc in filled.docs.items():
        try:
            gold, choices = read(doc)
            out.append(Sample(doc_id, gold, choices, str(doc_id).encode(), None, _read_cluster(doc, cluster)))
        except Exception as raised:
            raise locate(raised, place(name, doc_id)) from raised
    return out


def _read_cluster(doc: object, field: str | None) -> int | str | None:
    if field is None:
        return None
    value = doc.get(field) if isinstance(doc, Mapping) else None
    if not isinstance(value, int | str):
        raise EvalError(f"expected a cluster in the field {field!r}, as a text or an integer, got {value!r}")
    return value


def _make_reader(task: LmTask, tables: Tables) -> Callable[[object], tuple[Gold, tuple[str, ...]]]:
    """Make the function that reads gold and choices of a document, for a task that evalcore scores itself."""
    field = "doc_to_text" if getattr(task, "multiple_input", False) else "doc_to_target"
    chosen = task.OUTPUT_TYPE == MULTIPLE_CHOICE or task.config.doc_to_choice is not None
    golds = _choose_golds(task, tables) if task.OUTPUT_TYPE == GENERATE_UNTIL else keep_target

    def read(doc: object) -> tuple[Gold, tuple[str, ...]]:
        gold = golds(getattr(task, field)(doc))
        return convert_gold(gold), tuple(getattr(task, "doc_to_choice")(doc)) if chosen else ()  # noqa: B009

    return read


def _choose_golds(task: LmTask, tables: Tables) -> ReadGolds:
    """Choose how targets become golds. What a template writes may only look like a list: there the first document
    decides, as in lm-eval; but no text is split unless under lm-eval's policy (E53).
    """
    told = [""] * int(getattr(task, "multiple_target", 0))  # as many as the first document's target has
    theirs = choose_golds(told, choices=task.config.doc_to_choice is not None, as_host=True)
    if tables.as_host:
        return theirs
    given = task.config.doc_to_target
    typed = not isinstance(given, str) or given in getattr(task, "features", ())
    return keep_target if typed or told else theirs


# --- own code sees the documents as they are -----------------------------------------------------------------------


def make_process_results(task: LmTask, filled: Filled) -> ProcessResults:
    """Make the task's ``process_results`` for documents known by their number."""

    def process(doc_id: object, results: list[object]) -> Mapping[str, object]:
        return task.process_results(filled.docs[doc_id], results)  # type: ignore[index]  # as read_samples wrote it

    return process


def see_documents(tables: Tables, filled: Filled) -> Tables:
    """Give tables filters that see documents as lm-eval holds them."""
    read = {name: _read_documents(tables.filters[name], filled) for name in READ_DOCUMENTS}
    return replace(tables, filters=tables.filters.update(read).set(THEIRS, Filter(_run_filters(filled), "task", "any")))


def _read_documents(entry: Filter, filled: Filled) -> Filter:
    """Make a filter of evalcore read the documents' JSON when it runs."""

    @wraps(entry.make)
    def make(**named: object) -> FilterFn:
        apply = entry.make(**named)
        return lambda given, samples: apply(given, [_add_document(one, filled) for one in samples])

    return Filter(make, entry.scope)


def _add_document(sample: Sample, filled: Filled) -> Sample:
    return replace(sample, doc=json.dumps(filled.docs[sample.doc_id], default=str).encode())


def _run_filters(filled: Filled) -> Callable[..., FilterFn]:
    """Run filters of lm-eval: all replies and all documents at once, a list of replies for each request."""

    def make_filter(*, make: Callable[[], object], whole: bool = False) -> FilterFn:
        def apply(given: Replies, samples: Sequence[Sample]) -> Replies:
            units = nested(given)
            docs = [filled.docs[one.doc_id] for one in samples]
            out: Iterable[object] = getattr(make(), "apply")(nested(given), docs)  # noqa: B009
            return replies([one] if whole else _list_left(one, unit) for one, unit in zip(out, units, strict=True))

        return apply

    return make_filter


def _list_left(left: object, given: Sequence[object]) -> Sequence[object]:
    """List what a filter left of a request: replies, or the one that it took (a likelihood is a tuple itself)."""
    pairs = bool(given) and isinstance(given[0], tuple)
    return left if isinstance(left, list) or (isinstance(left, tuple) and not pairs) else [left]
