"""How a document is read: its question, target and choices, in every form that lm-eval takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import thaw_value
from evalcore.shell.prompts.templates.on_demand import compile_template, compile_value

if TYPE_CHECKING:
    from evalcore.shell.prompts.templates.compile import Doc

Read = Callable[[dict[str, object]], object]


def read_text(given: object, columns: Collection[str], *, choices: bool, key: str = "doc_to_text") -> Read:
    """Make the reader of ``doc_to_text``: a text or, with choices, the index of the one that is asked.

    >>> read_text("Q: {{q}}", ["q"], choices=False)({"q": "?"}), read_text("{{n}}", ["n"], choices=True)({"n": 1})
    ('Q: ?', 1)
    """
    if isinstance(given, str) and given not in columns:
        render = compile_template(given)
        return _explain_errors(key, partial(_read_index, render) if choices else render)
    return _explain_errors(key, _read_plain(key, given, int))


def read_target(
    given: object, columns: Collection[str], *, choices: bool, texts: bool = False, key: str = "doc_to_target"
) -> Read:
    """Make the reader of ``doc_to_target``: a text, an index into the choices, or several of either.

    ``texts``: a field that is a text stays one, even if it looks like a list.

    >>> read_target("['a', 'b']", [], choices=False)({}), read_target("{{n}}", ["n"], choices=True)({"n": 2})
    (['a', 'b'], 2)
    >>> read_target("{{a}}", ["a"], choices=False, texts=True)({"a": "[1, 2]"})
    '[1, 2]'
    """
    if isinstance(given, str) and given not in columns:
        value = compile_value(given)
        read = partial(_read_target, compile_template(given), value, choices)
        return _explain_errors(key, partial(_keep_text, value, read) if texts and value is not None else read)
    return _explain_errors(key, _read_plain(key, given, int | tuple | list))


def hold_plain_text(given: object, columns: Collection[str], docs: Iterable[Doc]) -> bool:
    """Whether a template that shows a field of the documents shows a text in some that is no list.

    Then a text that only looks like a list is a text, too: ``[1, 2]`` among ``7`` and ``x``.

    >>> hold_plain_text("{{a}}", ["a"], [{"a": "[1, 2]"}, {"a": "x"}]), hold_plain_text("{{a}}", ["a"], [{"a": "[1]"}])
    (True, False)
    """
    value = compile_value(given) if isinstance(given, str) and given not in columns else None
    if value is None:
        return False
    for doc in docs:
        try:
            text = value(doc)
        except Exception:  # reading the target will say why
            continue
        if type(text) is str and not _looks_listed(text):
            return True
    return False


def read_choices(given: object, columns: Collection[str], *, key: str = "doc_to_choice") -> Read:
    """Make the reader of ``doc_to_choice``: a list of texts.

    >>> read_choices("{{[a, b]}}", ["a", "b"])({"a": "x", "b": "y"}), read_choices({0: "no", 1: "yes"}, [])({})
    (['x', 'y'], ['no', 'yes'])
    """
    if isinstance(given, Mapping):
        return partial(_get_constant, list(given.values()))
    if isinstance(given, str) and given not in columns:
        return _explain_errors(key, partial(_read_choices, compile_template(given), compile_value(given)))
    return _explain_errors(key, _read_plain(key, given, tuple | list))


def read_field(given: str | None, columns: Collection[str] | None, *, key: str) -> Read:
    """Make the reader of a column or a template; None stays None. Without columns, the document's own fields count.

    >>> read_field("{{a}}!", None, key="description")({"a": "Hi"}), read_field("a", ["a"], key="gen_prefix")({"a": "b"})
    ('Hi!', 'b')
    """
    if given is None or (not given and columns is None):
        return partial(_get_constant, None)
    if columns is not None and given in columns:
        return _explain_errors(key, _read_plain(key, given, ()))
    render = compile_template(given)
    return _explain_errors(key, render if columns is not None else partial(_get_field, given, render))


def is_null(given: object, target: object, doc: Doc) -> bool:
    """Whether a target, as read by ``doc_to_target``, is null or the text that a template makes of null.

    >>> is_null("{{a}}", "None", {"a": None}), is_null("{{a}}", "None", {"a": "None"}), is_null("a", None, {})
    (True, False, True)
    """
    if target is None or (isinstance(target, list | tuple) and list(target) == [None]):
        return True
    value = compile_value(given) if target == "None" and isinstance(given, str) else None
    try:
        return value is not None and value(doc) is None
    except Exception:  # beyond what a shortcut can evaluate
        return False


# --- forms ---------------------------------------------------------------------------------------------------


def _read_plain(key: str, given: object, constants: object) -> Read:
    """Make the reader of a column, a constant or a function."""
    if isinstance(given, str):
        return partial(_get_column, given)
    if constants and isinstance(given, constants):  # type: ignore[arg-type]  # a type or a union of types
        return partial(_get_constant, thaw_value(given))
    if callable(given):
        return given
    raise EvalError(f"expected {key} to be a column, a template or a function, got {given!r}")


def _get_column(name: str, doc: Doc) -> object:
    return doc[name]


def _get_constant(value: object, doc: Doc) -> object:
    return value


def _get_field(name: str, render: Callable[[Doc], str], doc: Doc) -> object:
    return doc[name] if name in doc else render(doc)


def _read_index(render: Callable[[Doc], str], doc: Doc) -> object:
    text = render(doc)
    return _parse_index(text) if text.isdigit() else text


def _read_target(render: Callable[[Doc], str], value: Read | None, choices: bool, doc: Doc) -> object:
    listed = _read_texts(value, doc)
    if listed is not None:
        return listed
    text = render(doc)
    if choices and text.isdigit():
        return _parse_index(text)
    if not _is_bracketed(text):
        return text
    literal = _parse_literal(text)
    return text if isinstance(literal, Exception) else literal


def _keep_text(value: Read, read: Read, doc: Doc) -> object:
    try:
        text = value(doc)
    except Exception:
        return read(doc)
    return text if type(text) is str else read(doc)


def _is_bracketed(text: str) -> bool:
    return len(text) > 1 and text[0] == "[" and text[-1] == "]"


def _looks_listed(text: str) -> bool:
    return _is_bracketed(text) and not isinstance(_parse_literal(text), Exception)


def _read_choices(render: Callable[[Doc], str], value: Read | None, doc: Doc) -> object:
    texts = _read_texts(value, doc)
    if texts is not None:
        return texts
    text = render(doc)
    listed = _parse_literal(text)
    if isinstance(listed, Exception):
        raise EvalError(f"expected a list of choices, got {_shorten(text)!r}")
    return listed


def _read_texts(value: Read | None, doc: Doc) -> list[str] | None:
    """Read a list of texts directly: it would survive being written out and parsed."""
    if value is None:
        return None
    try:
        texts = value(doc)
    except Exception:
        return None
    return list(texts) if type(texts) is list and set(map(type, texts)) == {str} else None


def _parse_index(text: str) -> int:
    """Parse a number as Python writes it. lm-eval fails on others: "007", "²", "٣"."""
    if not text.isascii() or (text[0] == "0" and text.strip("0")) or len(text) > 18:
        raise EvalError(f"expected the index of a choice, got {_shorten(text)!r}")
    return int(text)


def _parse_literal(text: str) -> object:
    """Parse Python's own notation, or return why it is none. Any other failure ends the run in lm-eval."""
    from evalcore.shell.prompts.templates.limits import LONGEST

    if len(text) > LONGEST:
        raise EvalError(f"expected a list of at most {LONGEST} characters, got {len(text)}")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError) as none:
        return none
    except (RecursionError, MemoryError, TypeError) as wrong:
        raise EvalError(f"expected a list of texts, got {_shorten(text)!r}") from wrong


def _shorten(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


# --- errors --------------------------------------------------------------------------------------------------


def _explain_errors(key: str, read: Read) -> Read:
    """Wrap a reader so that its errors name the setting and the fields of the document."""

    def explained(doc: Doc) -> object:
        try:
            return read(doc)
        except Exception as raised:
            raise _explain_error(key, raised, doc) from raised

    return explained


def _explain_error(key: str, raised: Exception, doc: Doc) -> EvalError:
    from jinja2 import UndefinedError

    fields = ", ".join(map(str, doc))
    if isinstance(raised, KeyError):
        return EvalError(f"{key}: expected a field {raised}, got fields {fields}")
    if isinstance(raised, UndefinedError):
        return EvalError(f"{key}: {raised}; the document has the fields {fields}")
    return EvalError(
        f"{key}: {raised}" if isinstance(raised, EvalError) else f"{key}: {type(raised).__name__}: {raised}"
    )
