"""Documents of a log: told apart by what they say, shown in a line, then dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from evalcore.core.documents import DocumentRow
from evalcore.core.errors import EvalError
from evalcore.shell.output.strict import dump_json
from evalcore.shell.output.text import shorten, visible

__all__ = ["Seen", "cluster_reader", "content_of", "excerpt_of", "tabulate_documents"]

ENCODER = msgspec.json.Encoder(order="sorted")
SHOWN = 100


class Seen(Struct, frozen=True, gc=False):
    """What is kept of a document. ``raw`` tells whether another row has the very same bytes."""

    raw: int
    content: str
    text: str
    cluster: int | str | None


def content_of(doc: object, target: object) -> str:
    """A hash of what a document says, whoever wrote it down: key order, spacing and escapes do not count.

    >>> content_of({"q": "?", "n": 1}, 2) == content_of({"n": 1, "q": "?"}, "2")
    True
    """
    try:
        canonical = ENCODER.encode(doc)
    except (ValueError, TypeError, OverflowError, RecursionError):  # lone surrogates, which UTF-8 has no bytes for
        canonical = dump_json(_sorted(doc)).encode()
    return sha256(canonical + b"\0" + str(target).encode("utf-8", "surrogatepass")).hexdigest()


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def excerpt_of(doc: object) -> str:
    r"""A document in a line, for people: the beginning of its longest text.

    >>> excerpt_of({"id": "7", "question": "How many\n\x1b[1m legs?", "answer": 4})
    'How many \\x1b[1m legs?'
    """
    fields = doc.values() if isinstance(doc, Mapping) else (doc,)
    texts = [one for one in fields if type(one) is str]
    longest = max(texts, key=len) if texts else str(doc)
    line = " ".join(longest[: 2 * SHOWN].split())
    return line if len(line) <= SHOWN and line.isprintable() else visible(shorten(line, SHOWN))


def cluster_reader(given: str) -> Callable[[object], int | str]:
    """The unit that a document belongs to: a field of it or a template.

    >>> cluster_reader("passage")({"passage": 7}), cluster_reader("{{a}}-{{b}}")({"a": 1, "b": 2})
    (7, '1-2')
    >>> cluster_reader("pasage")({"passage": 7})
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: cluster: expected a field or a template, got 'pasage'; fields: passage
    """
    from evalcore.shell.prompts.reading import read_field  # only here: templates take their time to import

    read = read_field(given, None, key="cluster")

    def cluster(doc: object) -> int | str:
        if not isinstance(doc, dict) or ("{" not in given and given not in doc):
            fields = ", ".join(doc) if isinstance(doc, dict) else "none"
            raise EvalError(f"cluster: expected a field or a template, got {given!r}; fields: {fields}")
        found = read(doc)
        if not isinstance(found, int | str) or found == "":
            raise EvalError(f"cluster: expected a number or a text in {given!r}, got {found!r}")
        return found

    return cluster


def tabulate_documents(seen: Iterable[tuple[int, Seen]]) -> tuple[DocumentRow, ...]:
    """The documents in key order, those that say the same numbered.

    >>> one = Seen(0, "c", "text", None)
    >>> [(row.key, row.occurrence) for row in tabulate_documents([(5, one), (2, one)])]
    [(2, 0), (5, 1)]
    """
    counts: Counter[str] = Counter()
    out: list[DocumentRow] = []
    for key, one in sorted(seen, key=lambda pair: pair[0]):
        out.append(DocumentRow(key, None, one.cluster, one.content, counts[one.content]))
        counts[one.content] += 1
    return tuple(out)
