"""lm-eval's per-document sample log, and plain data for any JSON writer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from json.encoder import encode_basestring as _quote

import numpy as np

from evalcore.core.answers.table import AnswerTable
from evalcore.core.pipeline import tabulate_answers
from evalcore.core.records.column import Column
from evalcore.core.records.document import decode_doc
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.outcome import OK
from evalcore.core.records.request import LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE, Answer, Sample
from evalcore.core.records.row import score_at
from evalcore.core.records.score import Provenance, Scored

Plain = dict[str, object]
_PLAIN = (str, int, float)  # as a tuple: a union is made anew at every call

METRIC_ORDERS: Mapping[str, tuple[str, ...]] = {
    MULTIPLE_CHOICE: ("acc", "f1", "mcc", "acc_norm", "acc_bytes", "exact_match", "brier_score", "likelihood"),
    LOGLIKELIHOOD: ("perplexity", "acc"),
    LOGLIKELIHOOD_ROLLING: ("word_perplexity", "byte_perplexity", "bits_per_byte"),
}
"""The order in which lm-eval's ``process_results`` gives metrics, whatever the order they were asked for in."""


def sample_rows(
    scored: Scored,
    samples: Iterable[Sample],
    answers: Iterable[Answer] | AnswerTable,
    arguments: Mapping[int, Sequence[object]] | None = None,
) -> list[Plain]:
    """lm-eval's per-document sample log: one row per document and filter. Needs ``keep_replies=True``."""
    return list(iterate_rows(scored, samples, answers, arguments or {}))


def iterate_rows(
    scored: Scored,
    samples: Iterable[Sample],
    answers: Iterable[Answer] | AnswerTable,
    arguments: Mapping[int, Sequence[object]],
    rewrite: Callable[[Plain], Plain] | None = None,
) -> Iterator[Plain]:
    """The rows one by one; ``rewrite`` changes what the rows of a document have in common."""
    if scored.columns and not scored.provenance and any(len(one.column) for one in scored.columns):
        raise EvalError(f"the replies were not kept; score with keep_replies=True{place(scored.task.name)}")
    raw = _list_replies(tabulate_answers(answers))
    shared = {one.doc_id: _list_shared(one, raw.get(one.doc_id, []), arguments.get(one.doc_id, ())) for one in samples}
    if rewrite is not None:
        shared = {doc: rewrite(row) for doc, row in shared.items()}
    for where in scored.provenance:
        yield from _list_filter_rows(scored, where, shared)


def _list_filter_rows(scored: Scored, where: Provenance, shared: Mapping[int, Plain]) -> Iterator[Plain]:
    columns = [(one.key.metric, _list_scores(one.column)) for one in scored.columns if one.key.filter == where.filter]
    ends = where.offsets.ints.tolist()
    for key, a, b in zip(where.keys.ints.tolist(), ends[:-1], ends[1:], strict=True):
        scores = {metric: found[key] for metric, found in columns if key in found}
        kept = [thaw(one) for one in where.replies[a:b]]
        kept = _list_by_request(kept, shared[key]["resps"]) if where.listed else kept
        # lm-eval's order of keys is that of the shared part
        yield {**shared[key], "filtered_resps": kept, "filter": where.filter, "metrics": list(scores), **scores}


def _list_by_request(kept: list[object], replies: object) -> list[object]:
    """List what is left of the replies to each request by itself, as many of each.

    >>> _list_by_request(["a", "b"], [["a", "b", "c"]]), _list_by_request([1, 2, 3, 4], [[1, 2], [3, 4]])
    ([['a', 'b']], [[1, 2], [3, 4]])
    """
    count = len(replies) if isinstance(replies, list) and replies and len(kept) % len(replies) == 0 else 1
    size = len(kept) // count
    return [kept[i * size : (i + 1) * size] for i in range(count)]


def _list_shared(sample: Sample, replies: list[object], arguments: Sequence[object]) -> Plain:
    """List what the rows of a document have in common, in lm-eval's order of keys."""
    doc, target = decode_doc(sample), thaw(sample.gold)
    prompt = str(arguments[0][0]) if arguments and isinstance(arguments[0], list | tuple) else ""
    return {
        "doc_id": sample.doc_id,
        "doc": doc,
        "target": target,
        "arguments": [thaw(one) for one in arguments],
        "resps": replies,
        "filtered_resps": None,
        "filter": None,
        "metrics": None,
        "doc_hash": hash_text(write_indented(doc)),
        "prompt_hash": hash_text(prompt),
        "target_hash": hash_text(str(target)),
    }


def _list_scores(column: Column) -> dict[int, object]:
    fine = np.flatnonzero(column.status.data == OK).tolist()
    keys = column.keys.ints.tolist()
    return {keys[at]: thaw(score_at(column.rows, at)) for at in fine}


def _list_replies(answers: AnswerTable) -> dict[int, list[object]]:
    """List every document's replies, request by request."""
    out: dict[int, list[object]] = {}
    ends, values = answers.offsets.ints.tolist(), [thaw(value) for value in answers.values]
    for doc, a, b in zip(answers.asked.docs.ints.tolist(), ends[:-1], ends[1:], strict=True):
        out.setdefault(doc, []).append(values[a:b])
    return out


def hash_text(text: str) -> str:
    """Hash a text as lm-eval does, in UTF-8."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_indented(doc: object) -> str:
    """``json.dumps(doc, indent=2, ensure_ascii=False)``, whose indented form is slow, for texts under names at once.

    >>> print(write_indented({"q": "why?", "a": "so"}))
    {
      "q": "why?",
      "a": "so"
    }
    """
    if type(doc) is dict and doc and all(type(key) is str and type(value) is str for key, value in doc.items()):
        return "{\n" + ",\n".join([f"  {_quote(key)}: {_quote(value)}" for key, value in doc.items()]) + "\n}"
    return json.dumps(doc, indent=2, ensure_ascii=False)


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
