"""Documents of a log: identified by id, prompt or content, shown in a line, then dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.request import Request
from evalcore.shell.logs.lm_eval.requests import list_arguments, unwrap_parts
from evalcore.shell.safety.safe_text import shorten, visible
from evalcore.shell.safety.strict_json import dump_json

ENCODER = msgspec.json.Encoder(order="sorted")
SHOWN = 100


class Matching(Struct, frozen=True):
    """How to pair the documents of two runs: by the fields ``match``, else by identity.

    ``cluster`` is a field or template that groups documents if a log has no clusters. Without ``texts``, no line of a
    document is kept for display, which is faster. Faster still, documents of sample logs may be ``known_by`` the bytes
    of their rows (where these are the same in two logs, so are the documents) or by their number alone.
    """

    cluster: str | None = None
    match: tuple[str, ...] = ()
    texts: bool = True
    known_by: Literal["content", "bytes", "number"] = "content"


class Noticed(Struct, frozen=True, gc=False):
    """What is kept of a document. ``raw`` is a hash of its bytes, to recognise them in another row."""

    raw: int
    content: str
    text: str
    cluster: int | str | None
    id: int | str | None = None
    prompt: str = ""
    target: str = ""


class Look(Struct, frozen=True):
    """How to identify the documents of a log, by a ``Matching``.

    ``content`` distinguishes documents; ``unit`` reads their cluster, None for that of the log; ``named`` is whether
    ids and prompts count as well.
    """

    content: Callable[[object, object], str]
    unit: Callable[[object], str] | None = None
    named: bool = True
    texts: bool = True

    def see(
        self,
        doc: object,
        target: object,
        *,
        id: int | str | None,
        cluster: int | str | None,
        prompt: Callable[[], str],
        raw: int = 0,
    ) -> Noticed:
        """Keep the identity of a document with its declared id and cluster; ``prompt`` hashes what was asked."""
        unit = cluster if self.unit is None else self.unit(doc)
        text = excerpt_document(doc) if self.texts else ""
        content = self.content(doc, target)
        if not self.named:
            return Noticed(raw, content, text, unit)
        return Noticed(raw, content, text, unit, id, prompt(), hash_content(None, target))


def make_look(matching: Matching) -> Look:
    """Make the look of a matching."""
    unit = make_cluster_reader(matching.cluster) if matching.cluster is not None else None
    return Look(make_content_reader(matching.match), unit, not matching.match, matching.texts)


def hash_content(doc: object, target: object) -> str:
    """Hash the content of a document; the order of keys, spacing and escapes do not matter.

    >>> hash_content({"q": "?", "n": 1}, 2) == hash_content({"n": 1, "q": "?"}, "2")
    True
    """
    return sha256(encode_sorted(doc) + b"\0" + str(target).encode("utf-8", "surrogatepass")).hexdigest()


def encode_sorted(value: object) -> bytes:
    """Encode a value as JSON with sorted keys."""
    try:
        return ENCODER.encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError):  # lone surrogates, which UTF-8 has no bytes for
        return dump_json(_sorted(value)).encode()


def hash_arguments(arguments: object) -> str:
    """Hash what a model was asked about a document: the texts of its requests, whatever their order and number.

    Generation options do not count. The hash is empty if nothing is known of the requests.

    >>> hash_arguments({"gen_args_0": {"arg_0": "2+2=", "arg_1": {"until": []}}}) == hash_arguments([["2+2=", {}]])
    True
    >>> hash_arguments([["", {"until": []}]]), hash_arguments(None)
    ('', '')
    """
    parts = (part for one in list_arguments(arguments) for part in unwrap_parts(one))
    return hash_prompt(part for part in parts if isinstance(part, str))


def list_options(arguments: object) -> Iterator[Mapping[str, object]]:
    """List the options of the requests for a document, which come after its prompt.

    >>> list(list_options({"gen_args_0": {"arg_0": "2+2=", "arg_1": {"until": []}}}))
    [{'until': []}]
    """
    for one in list_arguments(arguments):
        yield from (part for part in unwrap_parts(one[1:]) if isinstance(part, Mapping))


def hash_requests(requests: Iterable[Request]) -> str:
    """``hash_arguments`` these requests.

    >>> from evalcore.core.records.request import Generate
    >>> hash_requests([Generate("2+2=")]) == hash_arguments([["2+2=", {}]])
    True
    """
    texts = (getattr(one, name) for one in requests for name in one.__struct_fields__)
    return hash_prompt(text for text in texts if isinstance(text, str))


def hash_prompt(texts: Iterable[str]) -> str:
    """Hash texts, whatever their order and number; empty if there are none."""
    known = sorted({*texts} - {""})
    return sha256(encode_sorted(known)).hexdigest() if known else ""


def make_content_reader(match: Sequence[str] = ()) -> Callable[[object, object], str]:
    """Make the function that distinguishes documents: by content and target, or by some fields.

    >>> read = make_content_reader(["q"])
    >>> read({"q": "?", "id": 1}, "yes") == read({"q": "?", "source": "x"}, "no")
    True
    >>> read({"question": "?"}, "yes")
    Traceback (most recent call last):
    evalcore.EvalError: unknown field to match by 'q'. Known: question
    """
    if not match:
        return hash_content

    def content(doc: object, target: object) -> str:
        fields = doc if isinstance(doc, dict) else {}
        missing = next((name for name in match if name not in fields), None)
        if missing is not None:
            raise unknown("field to match by", missing, fields)
        return hash_content([fields[name] for name in match], "")

    return content


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def excerpt_document(doc: object) -> str:
    r"""Show a document in a line: the beginning of its longest text.

    >>> excerpt_document({"id": "7", "question": "How many\n\x1b[1m legs?", "answer": 4})
    'How many \\x1b[1m legs?'
    """
    fields = doc.values() if isinstance(doc, Mapping) else (doc,)
    texts = [one for one in fields if type(one) is str]
    longest = max(texts, key=len) if texts else str(doc)
    line = " ".join(longest[: 2 * SHOWN].split())
    return line if len(line) <= SHOWN and line.isprintable() else visible(shorten(line, SHOWN))


def make_cluster_reader(given: str) -> Callable[[object], str]:
    """Make the function that reads the cluster of a document: a field or a template, as in a run.

    >>> make_cluster_reader("passage")({"passage": 7}), make_cluster_reader("{{a}}-{{b}}")({"a": 1, "b": 2})
    ('7', '1-2')
    >>> make_cluster_reader("pasage")({"passage": 7})
    Traceback (most recent call last):
    evalcore.EvalError: cluster: expected a field or a template, got 'pasage'; fields: passage
    >>> make_cluster_reader("metadata.passage")({"metadata": {"passage": 7}})
    Traceback (most recent call last):
    evalcore.EvalError: cluster: ... fields: metadata; a field of a field is a template: '{{metadata.passage}}'
    """
    from evalcore.shell.prompts.clusters import read_cluster  # only here: templates take their time to import

    template = read_cluster(given, ()) if "{" in given else None

    def cluster(doc: object) -> str:
        fields = doc if isinstance(doc, dict) else {}
        if given in fields:
            return read_cluster(given, fields)(fields)
        if template is None or not fields:
            shown = ", ".join(map(str, fields)) or "none"
            path = f"; a field of a field is a template: '{{{{{given}}}}}'" if given.partition(".")[0] in fields else ""
            raise EvalError(f"cluster: expected a field or a template, got {given!r}; fields: {shown}{path}")
        return template(fields)

    return cluster


def tabulate_documents(seen: Iterable[tuple[int, Noticed]]) -> tuple[DocumentRow, ...]:
    """Tabulate documents in key order, each with its occurrence among identical documents.

    >>> one = Noticed(0, "c", "text", None)
    >>> [(row.key, row.occurrence) for row in tabulate_documents([(5, one), (2, one)])]
    [(2, 0), (5, 1)]
    """
    counts: Counter[str] = Counter()
    out: list[DocumentRow] = []
    for key, one in sorted(seen, key=lambda pair: pair[0]):
        out.append(DocumentRow(key, one.id, one.cluster, one.content, counts[one.content], one.prompt, one.target))
        counts[one.content] += 1
    return tuple(out)


def refuse_lone_clusters(
    seen: Mapping[int, Noticed], line_of: Callable[[int], int], path: Path, *, several: bool = False
) -> None:
    """Refuse clusters of only some documents."""
    lone = [key for key, one in seen.items() if one.cluster is None]
    if lone and len(lone) < len(seen):
        where = f"{path.parent}" if several else f"{path}:{line_of(lone[0])}"
        many = f"{len(lone)} of {len(seen)}"
        raise EvalError(f"{where}: expected a cluster for every document, {many} have none - at doc {lone[0]}")
