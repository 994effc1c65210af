"""Filters that rewrite answers."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence

from evalcore.core.filters.reply import (
    FELL_BACK,
    FilterFn,
    Replies,
    Scope,
    each_text,
    keep_fallbacks,
    nested,
    replies,
)
from evalcore.core.filters.select import ballot
from evalcore.core.records.document import decode_doc
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.request import Sample


def remove_whitespace() -> FilterFn:
    """Remove leading and trailing white space.

    >>> list(remove_whitespace()(replies([[" a "]]), ()).values)
    ['a']
    """
    return each_text(str.strip)


def lowercase() -> FilterFn:
    """Turn replies into lower case.

    >>> list(lowercase()(replies([["Hi"]]), ()).values)
    ['hi']
    """
    return each_text(str.lower)


def uppercase() -> FilterFn:
    """Turn replies into upper case.

    >>> list(uppercase()(replies([["Hi"]]), ()).values)
    ['HI']
    """
    return each_text(str.upper)


def strip_punctuation() -> FilterFn:
    """Remove ASCII punctuation.

    >>> list(strip_punctuation()(replies([["Hello, World!"]]), ()).values)
    ['Hello World']
    """
    table = str.maketrans("", "", string.punctuation)
    return each_text(lambda text: text.translate(table))


def map_values(*, mapping_dict: Mapping[object, object] | None = None, default_value: object = None) -> FilterFn:
    """Look up each reply in a table; anything else becomes the default and counts as a fallback.

    >>> list(map_values(mapping_dict={"A": 1}, default_value=0)(replies([["A", "B"]]), ()).values)
    [1, 0]
    """
    table = dict(mapping_dict or {})

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        keys = [ballot(value) for value in given.values]
        rules = [0 if key in table else FELL_BACK for key in keys]
        values = [table.get(key, default_value) for key in keys]
        return Replies(values, given.offsets, keep_fallbacks(given, rules))

    return apply


NER_LABELS = (
    ("PER", ("person", "people", "persons", "per")),
    ("LOC", ("location", "counties", "places", "country", "continent", "loc")),
    ("ORG", ("organization", "company", "org")),
    ("DATE", ("time", "date")),
)


def format_span() -> FilterFn:
    """Write named entities as ``label: value $ label: value`` (MasakhaNER's form).

    >>> list(format_span()(replies([["Person: Ada $$ Location: Nairobi, none"]]), ()).values)
    ['per: ada $ loc: nairobi']
    """
    labels = [
        (re.compile(rf"\b{word}\s*:"), f"{label}:")
        for label, words in NER_LABELS
        for word in sorted(words, key=len, reverse=True)
    ]
    entity = re.compile(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)")

    def span(text: str) -> str:
        text = text.lower()
        for pattern, label in labels:
            text = pattern.sub(label, text)
        text = text.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
        pairs = [(label.lower(), part.strip()) for label, parts in entity.findall(text) for part in parts.split(",")]
        return " $ ".join(f"{label}: {part}" for label, part in pairs if part.lower() != "none")

    return each_text(span)


CustomFilter = Callable[[list[list[object]], list[object]], Iterable[object]]


def custom(*, filter_fn: CustomFilter, scope: Scope = "task") -> FilterFn:
    """Apply a callable to all responses and documents, as in lm-eval; it gets copies and decoded documents.

    >>> f = custom(filter_fn=lambda resps, docs: [[r.upper() for r in rs] for rs in resps])
    >>> list(f(replies([["a"], ["b"]]), [Sample(0), Sample(1)]).values)
    ['A', 'B']
    """

    require_known("scope", [scope], ("document", "task"))

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        try:
            out = list(filter_fn(nested(given), [decode_doc(doc) for doc in docs]))
        except Exception as raised:
            raise EvalError(f"the custom filter raised {type(raised).__name__}: {raised}") from raised
        if len(out) != len(given.offsets) - 1:
            raise EvalError(
                f"expected {len(given.offsets) - 1} lists of replies from the custom filter, got {len(out)}"
            )
        return replies([unit if isinstance(unit, list | tuple) else [unit] for unit in out])

    return apply
