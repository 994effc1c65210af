"""How a document is read: its question, target and choices, in every form that lm-eval takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from functools import partial

from jinja2 import UndefinedError

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import thaw_value
from evalcore.shell.prompts.templates.compile import Doc, compile_template, compile_value
from evalcore.shell.prompts.templates.limits import LONGEST

__all__ = ["Read", "is_null", "read_choices", "read_field", "read_target", "read_text"]

Read = Callable[[Doc], object]


def read_text(given: object, columns: Collection[str], *, choices: bool, key: str = "doc_to_text") -> Read:
    """``doc_to_text``: a text, or with choices the index of the one that is asked.

    >>> read_text("Q: {{q}}", ["q"], choices=False)({"q": "?"}), read_text("{{n}}", ["n"], choices=True)({"n": 1})
    ('Q: ?', 1)
    """
    if isinstance(given, str) and given not in columns:
        render = compile_template(given)
        return _told(key, partial(_number_or_text, render) if choices else render)
    return _told(key, _plain_form(key, given, int))


def read_target(given: object, columns: Collection[str], *, choices: bool, key: str = "doc_to_target") -> Read:
    """``doc_to_target``: a text, an index into the choices, or several of either.

    >>> read_target("['a', 'b']", [], choices=False)({}), read_target("{{n}}", ["n"], choices=True)({"n": 2})
    (['a', 'b'], 2)
    """
    if isinstance(given, str) and given not in columns:
        return _told(key, partial(_target, compile_template(given), compile_value(given), choices))
    return _told(key, _plain_form(key, given, int | tuple | list))


def read_choices(given: object, columns: Collection[str], *, key: str = "doc_to_choice") -> Read:
    """``doc_to_choice``: a list of texts.

    >>> read_choices("{{[a, b]}}", ["a", "b"])({"a": "x", "b": "y"}), read_choices({0: "no", 1: "yes"}, [])({})
    (['x', 'y'], ['no', 'yes'])
    """
    if isinstance(given, Mapping):
        return partial(_same, list(given.values()))
    if isinstance(given, str) and given not in columns:
        return _told(key, partial(_choices, compile_template(given), compile_value(given)))
    return _told(key, _plain_form(key, given, tuple | list))


def read_field(given: str | None, columns: Collection[str] | None, *, key: str) -> Read:
    """A column or a template, where nothing given is nothing. Without columns, the document's own fields count.

    >>> read_field("{{a}}!", None, key="description")({"a": "Hi"}), read_field("a", ["a"], key="gen_prefix")({"a": "b"})
    ('Hi!', 'b')
    """
    if given is None or (not given and columns is None):
        return partial(_same, None)
    if columns is not None and given in columns:
        return _told(key, _plain_form(key, given, ()))
    render = compile_template(given)
    return _told(key, render if columns is not None else partial(_own_field, given, render))


def is_null(given: object, target: object, doc: Doc) -> bool:
    """Whether a target, as read by ``doc_to_target``, is nothing, or the text that a template makes of nothing.

    >>> is_null("{{a}}", "None", {"a": None}), is_null("{{a}}", "None", {"a": "None"}), is_null("a", None, {})
    (True, False, True)
    """
    if target is None or (isinstance(target, list | tuple) and list(target) == [None]):
        return True
    value = compile_value(given) if target == "None" and isinstance(given, str) else None
    try:
        return value is not None and value(doc) is None
    except Exception:  # more than a shortcut can tell
        return False


# --- forms ---------------------------------------------------------------------------------------------------


def _plain_form(key: str, given: object, constants: object) -> Read:
    """A column, a constant or a function."""
    if isinstance(given, str):
        return partial(_column, given)
    if constants and isinstance(given, constants):  # type: ignore[arg-type]  # a type or a union of types
        return partial(_same, thaw_value(given))
    if callable(given):
        return given
    raise EvalError(f"expected {key} to be a column, a template or a function, got {given!r}")


def _column(name: str, doc: Doc) -> object:
    return doc[name]


def _same(value: object, doc: Doc) -> object:
    return value


def _own_field(name: str, render: Callable[[Doc], str], doc: Doc) -> object:
    return doc[name] if name in doc else render(doc)


def _number_or_text(render: Callable[[Doc], str], doc: Doc) -> object:
    text = render(doc)
    return _index(text) if text.isdigit() else text


def _target(render: Callable[[Doc], str], value: Read | None, choices: bool, doc: Doc) -> object:
    listed = _texts(value, doc)
    if listed is not None:
        return listed
    text = render(doc)
    if choices and text.isdigit():
        return _index(text)
    if len(text) < 2 or text[0] != "[" or text[-1] != "]":
        return text
    found = _literal(text)
    return text if isinstance(found, Exception) else found


def _choices(render: Callable[[Doc], str], value: Read | None, doc: Doc) -> object:
    found = _texts(value, doc)
    if found is not None:
        return found
    text = render(doc)
    listed = _literal(text)
    if isinstance(listed, Exception):
        raise EvalError(f"expected a list of choices, got {_short(text)!r}")
    return listed


def _texts(value: Read | None, doc: Doc) -> list[str] | None:
    """A list of texts survives being written out and read back, so neither is done."""
    if value is None:
        return None
    try:
        found = value(doc)
    except Exception:
        return None
    return list(found) if type(found) is list and set(map(type, found)) == {str} else None


def _index(text: str) -> int:
    """A number as Python writes it. lm-eval fails on the others: "007", "²", "٣"."""
    if not text.isascii() or (text[0] == "0" and text.strip("0")) or len(text) > 18:
        raise EvalError(f"expected the index of a choice, got {_short(text)!r}")
    return int(text)


def _literal(text: str) -> object:
    """What Python's own notation says, or why it is none. lm-eval takes any other failure as the end of the run."""
    if len(text) > LONGEST:
        raise EvalError(f"expected a list of at most {LONGEST} characters, got {len(text)}")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError) as none:
        return none
    except (RecursionError, MemoryError, TypeError) as wrong:
        raise EvalError(f"expected a list of texts, got {_short(text)!r}") from wrong


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


# --- errors --------------------------------------------------------------------------------------------------


def _told(key: str, read: Read) -> Read:
    """The same reading, whose errors say which setting and which fields there are."""

    def told(doc: Doc) -> object:
        try:
            return read(doc)
        except Exception as raised:
            raise _explained(key, raised, doc) from raised

    return told


def _explained(key: str, raised: Exception, doc: Doc) -> EvalError:
    fields = ", ".join(map(str, doc))
    if isinstance(raised, KeyError):
        return EvalError(f"{key}: expected a field {raised}, got fields {fields}")
    if isinstance(raised, UndefinedError):
        return EvalError(f"{key}: {raised}; the document has the fields {fields}")
    return EvalError(
        f"{key}: {raised}" if isinstance(raised, EvalError) else f"{key}: {type(raised).__name__}: {raised}"
    )
