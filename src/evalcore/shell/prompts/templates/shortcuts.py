"""Template expressions simple enough for plain Python. Any other case raises, and jinja2 decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jinja2 import nodes

Value = Callable[[dict[str, object]], object]
TEXT_METHODS = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "capitalize", "title", "split"})


def make_shortcut(node: nodes.Node) -> Value | None:
    """Make a function that evaluates an expression on plain values; None unless it has one of the simplest forms.

    These are names, constants, items, attributes that are items, lists, and methods that only shorten texts.

    >>> from jinja2 import Environment
    >>> tree = Environment().parse("{{ choices.text[1].strip() }}")
    >>> make_shortcut(tree.body[0].nodes[0])({"choices": {"text": ["a", " b "]}})
    'b'
    """
    match node:
        case nodes.TemplateData(data=text):
            return partial(_make_constant, text)
        case nodes.Const(value=value) if isinstance(value, str | int):
            return partial(_make_constant, value)
        case nodes.Name(name=name, ctx="load"):
            return partial(_make_field, name)
        case nodes.Neg(node=nodes.Const(value=int(value))):
            return partial(_make_constant, -value)
        case nodes.Getitem(node=inner, arg=arg):
            return _make_item(make_shortcut(inner), make_shortcut(arg))
        case nodes.Getattr(node=inner, attr=name) if not hasattr(dict, name):
            return _make_item(make_shortcut(inner), partial(_make_constant, name))
        case nodes.List(items=items):
            values = [make_shortcut(one) for one in items]
            known = [value for value in values if value is not None]
            return partial(_make_list, known) if len(known) == len(values) else None
        case nodes.Call(
            node=nodes.Getattr(node=inner, attr=name), args=args, kwargs=[], dyn_args=None, dyn_kwargs=None
        ):
            return _make_method(make_shortcut(inner), name, args)
    return None


def _make_constant(value: object, doc: dict[str, object]) -> object:
    return value


def _make_field(name: str, doc: dict[str, object]) -> object:
    return doc[name]


def _make_item(inner: Value | None, arg: Value | None) -> Value | None:
    if inner is None or arg is None:
        return None

    def item(doc: dict[str, object]) -> object:
        value, key = inner(doc), arg(doc)
        if type(value) is dict:
            return value[key]
        if type(value) is list and type(key) is int:
            return value[key]
        raise TypeError

    return item


def _make_list(values: list[Value], doc: dict[str, object]) -> object:
    return [value(doc) for value in values]


def _make_method(inner: Value | None, name: str, args: list[nodes.Expr]) -> Value | None:
    texts = [one.value for one in args if isinstance(one, nodes.Const) and isinstance(one.value, str)]
    if inner is None or name not in TEXT_METHODS or len(texts) != len(args):
        return None

    def method(doc: dict[str, object]) -> object:
        value = inner(doc)
        if type(value) is str:
            return getattr(value, name)(*texts)
        raise TypeError

    return method
