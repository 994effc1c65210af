"""The unit that a document belongs to: what ``cluster`` says of it, which is never nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

from jinja2 import StrictUndefined, UndefinedError

from evalcore.core.records.errors import EvalError
from evalcore.shell.prompts.templates.compile import Doc, compile_template
from evalcore.shell.prompts.templates.sandbox import Sandbox, environment, refuse_unwritable

__all__ = ["read_cluster"]

WHAT_TO_DO = "; fill it in, or write a template that gives a document that stands alone an id of its own"


class Nothing(Exception):
    """An id, or a part of one, that is not there."""


class Strict(Sandbox):
    """Templates of ids: nothing (null, NaN) is never written as text, where it would make one id of many documents."""

    def concat_texts(self, parts: Iterable[object]) -> str:
        return super().concat_texts(map(_present, parts))


def read_cluster(given: str, columns: Collection[str]) -> Callable[[Doc], str]:
    """A function from a document to its unit: a field, or a template. Numbers are ids as they are written.

    >>> read_cluster("source", ["source"])({"source": 3.0}), read_cluster("{{a}}/{{b}}", ["a", "b"])({"a": "x", "b": 3})
    ('3', 'x/3')
    >>> read_cluster("{{a}}/{{b}}", ["a", "b"])({"a": "x", "b": None})
    Traceback (most recent call last):
    evalcore.EvalError: cluster: expected an id in '{{a}}/{{b}}', got nothing (null); fill it in, ...
    """
    if given in columns:
        read: Callable[[Doc], object] = lambda doc: doc[given]  # noqa: E731
    elif "{" in given:
        compile_template(given)  # says what is wrong with it
        read = _ids().from_string(given).render
    else:
        raise EvalError(
            f"cluster: expected a field or a template, got {given!r}; fields: {', '.join(columns)}; "
            "to choose by task, write cluster: {task: field} in the run's config"
        )

    def cluster(doc: Doc) -> str:
        try:
            found = _text(read(doc))
        except Nothing as nothing:
            raise EvalError(f"cluster: expected an id in {given!r}, got nothing ({nothing}){WHAT_TO_DO}") from None
        except UndefinedError as wrong:
            raise EvalError(f"cluster: {wrong}; the document has the fields {', '.join(map(str, doc))}") from wrong
        if found is None:
            raise EvalError(f"cluster: expected a number or a text in {given!r}, got {read(doc)!r}")
        return found

    return cluster


def _text(found: object) -> str | None:
    """An id as text: 3, 3.0 and "3" are one; None for what is neither a number nor a text."""
    one = _present(found)
    if isinstance(one, str) and not one.strip():
        raise Nothing("an empty text")
    if isinstance(one, float) and one.is_integer():
        return str(int(one))
    return str(one) if isinstance(one, str | int | float) else None


def _present(value: object) -> object:
    if value is None:
        raise Nothing("null")
    if value != value:
        raise Nothing("NaN")
    return value


@lru_cache(1)
def _ids() -> Strict:
    made = Strict(
        undefined=StrictUndefined, keep_trailing_newline=True, finalize=lambda one: refuse_unwritable(_present(one))
    )
    made.globals, made.filters = environment().globals, environment().filters
    return made
