"""Documents: read for user code, chosen for a run, named for a cache."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import ceil

import msgspec

from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import Gold, Request, Sample
from evalcore.core.records.request import options as _frozen_options

__all__ = [
    "DocumentRow",
    "answer_key",
    "as_gold",
    "decode_doc",
    "document_table",
    "request_digest",
    "request_key",
    "select_docs",
]


NO_OPTIONS = _frozen_options()


def decode_doc(sample: Sample, task: str = "") -> object:
    """The document, decoded afresh, so that user code cannot change what the next one sees.

    >>> decode_doc(Sample(0, doc=b'{"x": NaN}'))
    {'x': nan}
    """
    try:
        return msgspec.json.decode(sample.doc)
    except (ValueError, RecursionError):
        pass
    try:  # NaN, Infinity and lone surrogates, which JSON has no words for but Python's own writer emits
        return json.loads(sample.doc)
    except (ValueError, TypeError, RecursionError) as wrong:
        raise EvalError(
            f"expected a JSON document, got {sample.doc[:60]!r}: {wrong}{place(task, sample.doc_id)}"
        ) from wrong


class DocumentRow(msgspec.Struct, frozen=True):
    """A document as the outside knows it: its declared id, its cluster, hashes of what it says, of what was asked and
    of its target, and its occurrence among documents that say the same. An empty ``prompt`` is an unknown one.
    """

    key: int
    id: int | str | None
    cluster: int | str | None
    content: str
    occurrence: int
    prompt: str = ""
    target: str = ""


def document_table(samples: Iterable[Sample]) -> tuple[DocumentRow, ...]:
    """The documents of a task in key order. Runs are matched by id or content (``match_documents``), not by key.

    >>> [(row.key, row.occurrence) for row in document_table([Sample(0, doc={"q": 1}), Sample(1, doc={"q": 1})])]
    [(0, 0), (1, 1)]
    """
    seen: Counter[str] = Counter()
    out: list[DocumentRow] = []
    for sample in sorted(samples, key=lambda one: one.doc_id):
        content = sha256(sample.doc + repr((sample.gold, sample.choices)).encode("utf-8", "surrogatepass")).hexdigest()
        out.append(DocumentRow(sample.doc_id, sample.id, sample.cluster, content, seen[content]))
        seen[content] += 1
    return tuple(out)


def select_docs(n: int, limit: float | None, *, seed: int | None = None) -> tuple[int, ...]:
    """The documents of a task of ``n`` under a limit: a count, or below 1 a share of this very task.

    Without a seed the first ones, as lm-eval takes them; with a seed a random subset, the same for the same seed.

    >>> select_docs(10, 3), select_docs(10, 0.25)
    ((0, 1, 2), (0, 1, 2))
    """
    if limit is None:
        return tuple(range(n))
    if limit < 0:
        raise EvalError(f"expected a limit of at least 0, got {limit}")
    count = min(n, ceil(n * limit) if limit < 1 else int(limit))
    if seed is None:
        return tuple(range(count))
    from numpy.random import default_rng  # only here: who names requests and lists models does not wait for numpy

    return tuple(sorted(default_rng(seed).permutation(n)[:count].tolist()))


def request_key(model: str, request: Request, options: Mapping[str, object], repeat: int = 0) -> str:
    """A name for one answer: it differs if the model, the request, an option or the repeat does.

    >>> from evalcore.core.records.request import Generate
    >>> request_key("m", Generate("?"), {}, 0) == request_key("m", Generate("?"), {}, 1)
    False
    """
    return answer_key(model, request_digest(request, options), repeat)


def answer_key(model: str, digest: str, repeat: int) -> str:
    """``request_key`` of a request whose digest is known."""
    return _digest((model, digest, str(repeat)))


def request_digest(request: Request, options: Mapping[str, object] = NO_OPTIONS) -> str:
    """A name for what is asked, of whichever model.

    >>> from evalcore.core.records.request import Generate
    >>> request_digest(Generate("?")) == request_digest(Generate("?", {"temperature": 1.0}))
    False
    """
    fields = (getattr(request, name) for name in request.__struct_fields__)
    parts = [one if isinstance(one, str) else _options_text(one) for one in fields]
    return _digest((type(request).__name__, *parts, *((_options_text(options),) if options else ())))[:32]


def _digest(parts: Iterable[str]) -> str:
    """Each part behind its length, so that no two lists of parts read the same."""
    out = sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        out.update(b"%d:" % len(raw))
        out.update(raw)
    return out.hexdigest()


def _options_text(given: Mapping[str, object]) -> str:
    return json.dumps(_plain(given), sort_keys=True, default=str)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def as_gold(target: object) -> Gold:
    """A target as scoring takes it: a number, a text, or several of one kind; anything else by its text.

    >>> as_gold(["a", 1]), as_gold([0, 2]), as_gold({"a": 1})
    (('a', '1'), (0, 2), "{'a': 1}")
    """
    if target is None or isinstance(target, int | str | float):
        return target
    if isinstance(target, list | tuple):
        golds = [as_gold(one) for one in target]
        whole = [one for one in golds if type(one) is int]
        return tuple(whole) if len(whole) == len(golds) else tuple(map(str, golds))
    item = getattr(target, "item", None)  # a scalar of numpy
    return as_gold(item()) if callable(item) and getattr(target, "ndim", None) == 0 else str(target)
