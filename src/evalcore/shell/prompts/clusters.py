"""The cluster of a document, as ``cluster`` declares it; it is never empty."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

from jinja2 import StrictUndefined, UndefinedError

from evalcore.core.records.errors import EvalError
from evalcore.shell.prompts.templates.compile import Doc, compile_template
from evalcore.shell.prompts.templates.sandbox import Sandbox, get_environment, refuse_unwritable

WHAT_TO_DO = "; fill it in, or write a template that gives a document that stands alone an id of its own"


class Nothing(Exception):
    """An id, or a part of one, is missing."""


class Strict(Sandbox):
    """Templates of ids: null and NaN are never written as text, where they would make one id of many documents."""

    def concat_texts(self, parts: Iterable[object]) -> str:
        return super().concat_texts(map(_require_value, parts))


def read_cluster(given: str, columns: Collection[str]) -> Callable[[Doc], str]:
    """Make a function from a document to its cluster, by a field or a template. Numbers are ids as they are written.

    >>> read_cluster("source", ["source"])({"source": 3.0}), read_cluster("{{a}}/{{b}}", ["a", "b"])({"a": "x", "b": 3})
    ('3', 'x/3')
    >>> read_cluster("{{a}}/{{b}}", ["a", "b"])({"a": "x", "b": None})
    Traceback (most recent call last):
    evalcore.EvalError: cluster: expected an id in '{{a}}/{{b}}', got nothing (null); fill it in, ...
    """
    if given in columns:
        read: Callable[[Doc], object] = lambda doc: doc[given]  # noqa: E731
    elif "{" in given:
        compile_template(given)  # raises an error that explains what is wrong
        read = _make_environment().from_string(given).render
    else:
        raise EvalError(
            f"cluster: expected a field or a template, got {given!r}; fields: {', '.join(columns)}; "
            "to choose by task, write cluster: {task: field} in the run's config"
        )

    def cluster(doc: Doc) -> str:
        try:
            written = _write_id(read(doc))
        except Nothing as nothing:
            raise EvalError(f"cluster: expected an id in {given!r}, got nothing ({nothing}){WHAT_TO_DO}") from None
        except UndefinedError as wrong:
            raise EvalError(f"cluster: {wrong}; the document has the fields {', '.join(map(str, doc))}") from wrong
        if written is None:
            raise EvalError(f"cluster: expected a number or a text in {given!r}, got {read(doc)!r}")
        return written

    return cluster


def _write_id(given: object) -> str | None:
    """Write an id as text: 3, 3.0 and "3" are the same; None for what is neither a number nor a text."""
    value = _require_value(given)
    if isinstance(value, str) and not value.strip():
        raise Nothing("an empty text")
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def _require_value(value: object) -> object:
    if value is None:
        raise Nothing("null")
    if value != value:
        raise Nothing("NaN")
    return value


@lru_cache(1)
def _make_environment() -> Strict:
    made = Strict(
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=lambda one: refuse_unwritable(_require_value(one)),
    )
    made.globals, made.filters = get_environment().globals, get_environment().filters
    return made
