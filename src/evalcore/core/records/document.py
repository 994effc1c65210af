"""Documents: decoded for user code, selected for a run, named for a cache."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from math import ceil
from operator import attrgetter

import msgspec
from msgspec.structs import astuple

from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import NO_OPTIONS, Gold, Request, Sample


def decode_doc(sample: Sample, task: str = "") -> object:
    """Decode the document afresh, so that user code cannot change what the next call sees.

    >>> decode_doc(Sample(0, doc=b'{"x": NaN}'))
    {'x': nan}
    """
    try:
        return msgspec.json.decode(sample.doc)
    except (ValueError, RecursionError):
        pass
    try:  # NaN, Infinity and lone surrogates: not in JSON, but Python's json writes them
        return json.loads(sample.doc)
    except (ValueError, TypeError, RecursionError) as wrong:
        raise EvalError(
            f"expected a JSON document, got {sample.doc[:60]!r}: {wrong}{place(task, sample.doc_id)}"
        ) from wrong


_encode, _DOC = msgspec.json.Encoder().encode, attrgetter("doc")
_decode_texts = msgspec.json.Decoder(dict[str, str | int | bool | list[str | int | bool | None] | None]).decode


def recode_docs(samples: Iterable[Sample]) -> list[bytes]:
    """Encode documents as ``encode_alike`` does, if the decoder alone finds that they can be; else a ``ValueError``.

    >>> recode_docs([Sample(0, doc=b'{"q": "\\\\u00e9"}')])
    [b'{"q":"\\xc3\\xa9"}']
    """
    return list(map(_encode, map(_decode_texts, map(_DOC, samples))))


_SAME = frozenset({str, int, bool, type(None)})


def encode_alike(value: object) -> bytes | None:
    """Encode plain data by msgspec where Python's json, far slower, writes the same but for blanks and escapes.

    None where it does not: of NaN, of floats with an exponent, of other types.

    >>> encode_alike({"q": "é", "n": [1, 0.5]}), encode_alike([1e-9])
    (b'{"q":"\\xc3\\xa9","n":[1,0.5]}', None)
    """
    try:
        return msgspec.json.encode(value) if is_alike(value) else None
    except (ValueError, TypeError, OverflowError, RecursionError):  # a lone surrogate, null as a key
        return None


def is_alike(value: object) -> bool:
    """Whether msgspec writes plain data as Python's json does, but for blanks, escapes and lone surrogates."""
    parts = [value]
    for one in parts:  # which grows while there are containers
        kind = type(one)
        if kind in _SAME:
            continue
        if isinstance(one, float):
            if kind is not float or not (one == 0 or 1e-4 <= abs(one) < 1e16):
                return False
        elif isinstance(one, dict) and kind is dict:
            parts += one
            parts += one.values()
        elif isinstance(one, list | tuple) and (kind is list or kind is tuple):
            parts += one
        else:
            return False
    return True


class DocumentRow(msgspec.Struct, frozen=True):
    """A document as others know it: its declared id, its cluster, hashes of its content, of its prompt and
    of its target, and its occurrence among identical documents. An empty ``prompt`` is an unknown one.
    """

    key: int
    id: int | str | None
    cluster: int | str | None
    content: str
    occurrence: int
    prompt: str = ""
    target: str = ""


def document_table(samples: Iterable[Sample]) -> tuple[DocumentRow, ...]:
    """Build the document table of a task in key order. Runs are matched by it (``match_documents``), not by key.

    >>> [(row.key, row.occurrence) for row in document_table([Sample(0, doc={"q": 1}), Sample(1, doc={"q": 1})])]
    [(0, 0), (1, 1)]
    """
    seen: Counter[str] = Counter()
    out: list[DocumentRow] = []
    for sample in sorted(samples, key=lambda sample: sample.doc_id):
        content = sha256(sample.doc + repr((sample.gold, sample.choices)).encode("utf-8", "surrogatepass")).hexdigest()
        out.append(DocumentRow(sample.doc_id, sample.id, sample.cluster, content, seen[content]))
        seen[content] += 1
    return tuple(out)


def select_docs(n: int, limit: float | None, *, seed: int | None = None) -> tuple[int, ...]:
    """Select the documents of a task of ``n`` under a limit: a count or, below 1, a share of the task.

    Without a seed the first ones, as in lm-eval; with a seed a random subset, the same for the same seed.

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
    from numpy.random import default_rng  # imported late: naming requests and listing models need no numpy

    return tuple(sorted(default_rng(seed).permutation(n)[:count].tolist()))


def request_key(model: str, request: Request, options: Mapping[str, object], repeat: int = 0) -> str:
    """Name one answer: the name differs if the model, the request, an option or the repeat does.

    >>> from evalcore.core.records.request import Generate
    >>> request_key("m", Generate("?"), {}, 0) == request_key("m", Generate("?"), {}, 1)
    False
    """
    return answer_key(model, digest_request(request, options), repeat)


def answer_key(model: str, digest: str, repeat: int) -> str:
    """``request_key`` of a request whose digest is known."""
    return _hash_parts((_pack(model), _pack(digest), _pack(str(repeat))))


def digest_request(request: Request, options: Mapping[str, object] = NO_OPTIONS) -> str:
    """Name what is asked, independent of the model.

    >>> from evalcore.core.records.request import Generate
    >>> digest_request(Generate("?")) == digest_request(Generate("?", {"temperature": 1.0}))
    False
    """
    more = (write_options(options),) if options else ()
    return _hash_parts(map(_pack, (*write_request(request), *more)))[:32]


def write_request(request: Request, write: Callable[[Mapping[str, object]], str] | None = None) -> tuple[str, ...]:
    """Write what is asked as texts, which are equal where digests are: its kind, its texts and its options as JSON.

    >>> from evalcore.core.records.request import Generate
    >>> write_request(Generate("?", {"temperature": 1.0}))
    ('Generate', '?', '{"temperature": 1.0}')
    """
    written = write or write_options
    return (type(request).__name__, *[o if isinstance(o, str) else written(o) for o in astuple(request)])


def write_options(given: Mapping[str, object]) -> str:
    """Write options as JSON, in the order of their keys.

    >>> write_options({"until": ("a",), "do_sample": False})
    '{"do_sample": false, "until": ["a"]}'
    """
    return json.dumps(_make_plain(given), sort_keys=True, default=str)


def share_options() -> Callable[[Mapping[str, object]], str]:
    """``write_options``, once for options that requests share."""
    written: dict[int, tuple[object, str]] = {}

    def write(options: Mapping[str, object]) -> str:
        known = written.get(id(options))
        if known is None:
            known = written[id(options)] = (options, write_options(options))  # held, so that its id stays its own
        return known[1]

    return write


def digest_requests(requests: Iterable[Request]) -> Iterator[str]:
    """``digest_request`` of each; options that requests share are written once.

    >>> from evalcore.core.records.request import Generate
    >>> asked = [Generate("?"), Generate("!")]
    >>> list(digest_requests(asked)) == list(map(digest_request, asked))
    True
    """
    write = share_options()
    for request in requests:
        yield _hash_parts(map(_pack, write_request(request, write)))[:32]


def _hash_parts(parts: Iterable[bytes]) -> str:
    return sha256(b"".join(parts)).hexdigest()


def _pack(part: str) -> bytes:
    """Write a part after its length, so that no two lists of parts look the same."""
    raw = part.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(raw), raw)


def _make_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _make_plain(item) for key, item in value.items()}
    return [_make_plain(one) for one in value] if isinstance(value, list | tuple) else value


def convert_gold(target: object) -> Gold:
    """Read a target as scoring takes it: a number, a text, or several of one kind; anything else as text.

    >>> convert_gold(["a", 1]), convert_gold([0, 2]), convert_gold({"a": 1})
    (('a', '1'), (0, 2), "{'a': 1}")
    """
    if target is None or isinstance(target, int | str | float):
        return target
    if isinstance(target, list | tuple):
        golds = [convert_gold(one) for one in target]
        whole = [one for one in golds if type(one) is int]
        return tuple(whole) if len(whole) == len(golds) else tuple(map(str, golds))
    item = getattr(target, "item", None)  # a numpy scalar
    return convert_gold(item()) if callable(item) and getattr(target, "ndim", None) == 0 else str(target)
