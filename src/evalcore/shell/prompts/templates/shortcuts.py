"""Template expressions simple enough to be plain Python. Whatever is not the plain case raises, and jinja2 decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jinja2 import nodes

__all__ = ["Value", "shortcut"]

Value = Callable[[dict[str, object]], object]
TEXT_METHODS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "capitalize", "title", "split"})


def shortcut(node: nodes.Node) -> Value | None:
    """What an expression means for a document with plain values; None if it is none of the simplest forms.

    Names, constants, items, attributes that are items, lists, and methods of texts that only make them shorter.

    >>> from jinja2 import Environment
    >>> tree = Environment().parse("{{ choices.text[1].strip() }}")
    >>> shortcut(tree.body[0].nodes[0])({"choices": {"text": ["a", " b "]}})
    'b'
    """
    match node:
        case nodes.TemplateData(data=text):
            return partial(_constant, text)
        case nodes.Const(value=value) if isinstance(value, str | int):
            return partial(_constant, value)
        case nodes.Name(name=name, ctx="load"):
            return partial(_field, name)
        case nodes.Neg(node=nodes.Const(value=int(value))):
            return partial(_constant, -value)
        case nodes.Getitem(node=inner, arg=arg):
            return _item(shortcut(inner), shortcut(arg))
        case nodes.Getattr(node=inner, attr=name) if not hasattr(dict, name):
            return _item(shortcut(inner), partial(_constant, name))
        case nodes.List(items=items):
            values = [shortcut(one) for one in items]
            known = [value for value in values if value is not None]
            return partial(_list, known) if len(known) == len(values) else None
        case nodes.Call(
            node=nodes.Getattr(node=inner, attr=name), args=args, kwargs=[], dyn_args=None, dyn_kwargs=None
        ):
            return _method(shortcut(inner), name, args)
    return None


def _constant(value: object, doc: dict[str, object]) -> object:
    return value


def _field(name: str, doc: dict[str, object]) -> object:
    return doc[name]


def _item(inner: Value | None, arg: Value | None) -> Value | None:
    if inner is None or arg is None:
        return None

    def item(doc: dict[str, object]) -> object:
        found, key = inner(doc), arg(doc)
        if type(found) is dict:
            return found[key]
        if type(found) is list and type(key) is int:
            return found[key]
        raise TypeError

    return item


def _list(values: list[Value], doc: dict[str, object]) -> object:
    return [value(doc) for value in values]


def _method(inner: Value | None, name: str, args: list[nodes.Expr]) -> Value | None:
    texts = [one.value for one in args if isinstance(one, nodes.Const) and isinstance(one.value, str)]
    if inner is None or name not in TEXT_METHODS or len(texts) != len(args):
        return None

    def method(doc: dict[str, object]) -> object:
        found = inner(doc)
        if type(found) is str:
            return getattr(found, name)(*texts)
        raise TypeError

    return method
