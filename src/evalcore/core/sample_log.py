"""lm-eval's per-document sample log, and plain data for any JSON writer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

import numpy as np

from evalcore.core.answers import AnswerTable, tabulate
from evalcore.core.columns import Column, score_at
from evalcore.core.documents import decode_doc
from evalcore.core.errors import EvalError, place
from evalcore.core.outcome import OK
from evalcore.core.records import Answer, Sample
from evalcore.core.scoring import Scored

__all__ = ["sample_rows", "thaw"]

Plain = dict[str, object]


def sample_rows(
    scored: Scored,
    samples: Iterable[Sample],
    answers: Iterable[Answer] | AnswerTable,
    arguments: Mapping[int, Sequence[object]] | None = None,
) -> list[Plain]:
    """lm-eval's per-document sample log: one row per document and filter. Needs ``keep_replies=True``."""
    if scored.columns and not scored.provenance:
        raise EvalError(f"the replies were not kept; score with keep_replies=True{place(scored.task.name)}")
    by_key = {sample.doc_id: sample for sample in samples}
    table = tabulate(answers)
    return [
        _sample_row(
            scored,
            where.filter,
            by_key[int(key)],
            list(where.replies[a:b]),
            table,
            (arguments or {}).get(int(key), ()),
        )
        for where in scored.provenance
        for key, a, b in zip(
            where.keys.ints.tolist(),
            where.offsets.ints[:-1].tolist(),
            where.offsets.ints[1:].tolist(),
            strict=True,
        )
    ]


def _sample_row(
    scored: Scored,
    filter_name: str,
    sample: Sample,
    kept: list[object],
    answers: AnswerTable,
    arguments: Sequence[object],
) -> Plain:
    scores = {
        one.key.metric: value
        for one in scored.columns
        if one.key.filter == filter_name and (value := _score(one.column, sample.doc_id)) is not None
    }
    doc = decode_doc(sample)
    prompt = str(arguments[0][0]) if arguments and isinstance(arguments[0], list | tuple) else ""
    return {
        "doc_id": sample.doc_id,
        "doc": doc,
        "target": thaw(sample.gold),
        "arguments": [thaw(one) for one in arguments],
        "resps": _raw(answers, sample.doc_id),
        "filtered_resps": [thaw(one) for one in kept],
        "filter": filter_name,
        "metrics": list(scores),
        "doc_hash": _hash(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(str(thaw(sample.gold))),
        **scores,
    }


def _score(column: Column, key: int) -> object | None:
    at = int(np.searchsorted(column.keys.ints, key))
    if at == len(column) or column.keys.ints[at] != key or column.status.data[at] != OK:
        return None
    return thaw(score_at(column.rows, at))


def _raw(answers: AnswerTable, key: int) -> list[object]:
    part = answers.rows(key, key + 1)
    ends = part.offsets.ints.tolist()
    return [[thaw(value) for value in part.values[a:b]] for a, b in pairwise(ends)]


def _hash(text: str) -> str:
    """As lm-eval hashes: of the text in UTF-8."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def thaw(value: object) -> object:
    """Frozen values as plain lists and dicts; callables by name.

    >>> from evalcore.core.records import options
    >>> thaw(options(b=(1, 2), a=None))
    {'a': None, 'b': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): thaw(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, tuple | list):
        return [thaw(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((thaw(one) for one in value), key=str)
    return str(getattr(value, "__name__", value)) if callable(value) else value
