"""lm-eval's per-document sample log, and plain data for any JSON writer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from hashlib import sha256
from itertools import compress, pairwise
from operator import attrgetter
from typing import NamedTuple

import msgspec

from evalcore.core.answers.table import AnswerTable
from evalcore.core.pipeline import tabulate_answers
from evalcore.core.records.column import Column
from evalcore.core.records.document import decode_doc, encode_alike, is_alike
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.outcome import OK
from evalcore.core.records.request import LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE, Answer, Failure, Sample
from evalcore.core.records.row import NumberRows, Objects
from evalcore.core.records.score import Provenance, Scored

Plain = dict[str, object]
_PLAIN = (str, int, float)  # as a tuple: a union is made anew at every call
DOC_ID = attrgetter("doc_id")

METRIC_ORDERS: Mapping[str, tuple[str, ...]] = {
    MULTIPLE_CHOICE: ("acc", "f1", "mcc", "acc_norm", "acc_bytes", "exact_match", "brier_score", "likelihood"),
    LOGLIKELIHOOD: ("perplexity", "acc"),
    LOGLIKELIHOOD_ROLLING: ("word_perplexity", "byte_perplexity", "bits_per_byte"),
}
"""The order in which lm-eval's ``process_results`` gives metrics, whatever the order they were asked for in."""


class DocumentRows(NamedTuple):
    """The rows of a document, one for each filter: what all begin with, and how each goes on.

    ``alike`` is whether msgspec is known to write them as Python's json does (see ``is_alike``).
    """

    head: Plain
    rests: Sequence[Plain] = ({},)
    alike: bool = False


def sample_rows(
    scored: Scored,
    samples: Iterable[Sample],
    answers: Iterable[Answer] | AnswerTable,
    arguments: Mapping[int, Sequence[object]] | None = None,
) -> list[Plain]:
    """lm-eval's per-document sample log: one row per document and filter. Needs ``keep_replies=True``."""
    docs = tuple(samples)
    given = {doc: [thaw(one) for one in asked] for doc, asked in (arguments or {}).items()}
    prompts = {doc: str(asked[0][0]) for doc, asked in given.items() if asked and isinstance(asked[0], list)}
    targets = {one.doc_id: thaw(one.gold) for one in docs}
    make = RowMaker(scored, answers, given, prompts, targets).make_rows
    return join_rows(map(make, sorted(docs, key=DOC_ID)), [where.filter for where in scored.provenance])


def join_rows(documents: Iterable[DocumentRows], filters: Sequence[str]) -> list[Plain]:
    """The rows of documents in lm-eval's order, filter by filter.

    >>> two = [DocumentRows({"doc_id": i}, ({"filter": "a"}, {"filter": "b"})) for i in range(2)]
    >>> [(row["filter"], row["doc_id"]) for row in join_rows(two, ["a", "b"])]
    [('a', 0), ('a', 1), ('b', 0), ('b', 1)]
    """
    rows = [{**document.head, **rest} for document in documents for rest in document.rests]
    return sorted(rows, key=lambda row: filters.index(str(row["filter"])))


class RowMaker:
    """Makes the rows of one document after another, in lm-eval's order of keys.

    With ``lost``, documents that a filter did not see have a row as well.
    """

    def __init__(
        self,
        scored: Scored,
        answers: Iterable[Answer] | AnswerTable,
        arguments: Mapping[int, object],
        prompts: Mapping[int, str],
        targets: Mapping[int, object],
        *,
        lost: bool = False,
    ) -> None:
        if scored.columns and not scored.provenance and any(len(one.column) for one in scored.columns):
            raise EvalError(f"the replies were not kept; score with keep_replies=True{place(scored.task.name)}")
        self.arguments, self.prompts, self.targets, self.lost = arguments, prompts, targets, lost
        self.replies = _list_replies(tabulate_answers(answers))
        self.filters = [FilterRows(scored, where) for where in scored.provenance]
        self.alike = all(one.alike for one in self.filters)

    def make_rows(self, sample: Sample) -> DocumentRows:
        """Make the rows of a document."""
        key = sample.doc_id
        doc, target, replies = decode_doc(sample), self.targets[key], self.replies.get(key, [])
        encoded, asked = encode_alike(doc), self.arguments.get(key, [])
        head = {"doc_id": key, "doc": doc, "target": target, "arguments": asked, "resps": replies}
        hashes = {
            "doc_hash": hash_doc(doc, encoded),
            "prompt_hash": hash_text(self.prompts.get(key, "")),
            "target_hash": hash_text(str(target)),
        }
        rests = [one.go_on(key, replies, hashes) for one in self.filters if self.lost or key in one.spans]
        return DocumentRows(head, rests, self.alike and encoded is not None)


HEAD = frozenset({"doc_id", "doc", "target", "arguments", "resps"})


class FilterRows:
    """How the rows of a filter go on; ``alike`` is whether its scores are, under names of their own."""

    def __init__(self, scored: Scored, where: Provenance) -> None:
        columns = [one for one in scored.columns if one.key.filter == where.filter]
        self.columns = [(one.key.metric, _list_scores(one.column)) for one in columns]
        fine = HEAD.isdisjoint(metric for metric, _ in self.columns)
        self.alike = fine and is_alike([list(found.values()) for _, found in self.columns])
        ends = where.offsets.ints.tolist()
        self.spans = dict(zip(where.keys.ints.tolist(), pairwise(ends), strict=True))
        self.name, self.listed = where.filter, where.listed
        self.replies = [one if type(one) is str else thaw(one) for one in where.replies]

    def go_on(self, key: int, replies: list[object], hashes: Mapping[str, str]) -> Plain:
        a, b = self.spans.get(key, (0, 0))
        kept, names = self.replies[a:b], list[str]()
        kept = _list_by_request(kept, replies) if self.listed else kept
        rest: Plain = {"filtered_resps": kept, "filter": self.name, "metrics": names, **hashes}
        for metric, found in self.columns:
            if key in found:
                names.append(metric)
                rest[metric] = found[key]
        return rest


def _list_by_request(kept: list[object], replies: list[object]) -> list[object]:
    """List what is left of the replies to each request by itself, as many of each.

    >>> _list_by_request(["a", "b"], [["a", "b", "c"]]), _list_by_request([1, 2, 3, 4], [[1, 2], [3, 4]])
    ([['a', 'b']], [[1, 2], [3, 4]])
    """
    count = len(replies) if replies and len(kept) % len(replies) == 0 else 1
    size = len(kept) // count
    return [kept[i * size : (i + 1) * size] for i in range(count)]


def _list_scores(column: Column) -> dict[int, object]:
    """List the scores there are as plain data, by document."""
    rows, fine = column.rows, (column.status.data == OK).tolist()
    if isinstance(rows, NumberRows):
        values = rows.values.data.tolist()
    else:  # scores of a tally have no documents
        values = [thaw(deepcopy(one)) for one in rows.values] if isinstance(rows, Objects) else [None] * len(fine)
    return dict(compress(zip(column.keys.ints.tolist(), values, strict=True), fine))


def _list_replies(answers: AnswerTable) -> dict[int, list[object]]:
    """List every document's replies, request by request."""
    out: dict[int, list[object]] = {}
    ends, values = answers.offsets.ints.tolist(), [one if type(one) is str else thaw(one) for one in answers.values]
    for doc, a, b in zip(answers.asked.docs.ints.tolist(), ends[:-1], ends[1:], strict=True):
        out.setdefault(doc, []).append(values[a:b])
    return out


def hash_text(text: str) -> str:
    """Hash a text as lm-eval does, in UTF-8."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_doc(doc: object, encoded: bytes | None) -> str:
    """Hash a document, which msgspec may have encoded, as lm-eval does: as indented JSON.

    >>> hash_doc({"q": "why?"}, b'{"q":"why?"}') == hash_doc({"q": "why?"}, None)
    True
    """
    if encoded is None:
        return hash_text(json.dumps(doc, indent=2, ensure_ascii=False))
    return sha256(msgspec.json.format(encoded, indent=2)).hexdigest()


def thaw(value: object) -> object:
    """Turn frozen values into plain lists and dicts, callables into their names.

    >>> from evalcore.core.records.request import freeze_options
    >>> thaw(freeze_options(b=(1, 2), a=None))
    {'a': None, 'b': [1, 2]}
    """
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {str(key): thaw(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, tuple | list):
        return [thaw(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((thaw(one) for one in value), key=str)
    return str(getattr(value, "__name__", value)) if callable(value) else value


def write_reply(reply: object, rolling: bool = False) -> object:
    """Every part of a reply as text; a failure is null, and a likelihood is without what lm-eval does not know of."""
    if isinstance(reply, list):
        if _is_likelihood(reply):
            return str(reply[0]) if rolling else [str(reply[0]), str(reply[1])]
        return [one if type(one) is str else write_reply(one, rolling) for one in reply]
    return None if isinstance(reply, Failure) else str(reply)


def _is_likelihood(reply: list[object]) -> bool:
    return len(reply) == 3 and isinstance(reply[0], float) and isinstance(reply[1], bool) and type(reply[2]) is int
