"""YAML as data only: no tags that run code, no aliases, duplicate keys named with their line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import yaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from evalcore.core.errors import EvalError

__all__ = ["FunctionTag", "Loaded", "read_yaml"]

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MOST_NODES = 1_000_000
MOST_DEPTH = 200


class FunctionTag(Struct, frozen=True):
    """``!function module.name`` as it stands in a file: a name, not code."""

    name: str
    line: int


class Loaded(Struct, frozen=True):
    """A file's value and what was odd about it."""

    value: object
    warnings: tuple[str, ...] = ()


def read_yaml(text: str, path: str, *, duplicates: Literal["error", "warn"] = "error") -> Loaded:
    """The value of a YAML text; a key given twice is an error, or in a shipped library a warning (the last one counts).

    >>> read_yaml("task: a\\nmetric: acc", "a.yaml").value
    {'task': 'a', 'metric': 'acc'}
    >>> read_yaml("task: a\\ntask: b", "a.yaml")
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: a.yaml:2: the key 'task' is given twice, first on line 1; keep one of them
    """
    loader = Loader(text)
    try:
        _refuse_aliases(text, path)
        node = loader.get_single_node()
        warnings: list[str] = []
        value = None if node is None else _value(loader, node, path, warnings, 0)
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise EvalError(f"{path}{line}: not YAML: {getattr(wrong, 'problem', None) or wrong}") from wrong
    finally:
        loader.dispose()
    if warnings and duplicates == "error":
        raise EvalError(f"{warnings[0]}; keep one of them")
    return Loaded(value, tuple(warnings))


def _refuse_aliases(text: str, path: str) -> None:
    """Aliases are how a small file becomes a huge one; no task file needs them."""
    if "*" not in text and "&" not in text:
        return
    for count, event in enumerate(yaml.parse(text, Loader=Loader)):
        if isinstance(event, yaml.AliasEvent) or count > MOST_NODES:
            raise EvalError(
                f"{path}:{event.start_mark.line + 1}: aliases are not read (*{getattr(event, 'anchor', '')})"
            )


def _value(loader: object, node: Node, path: str, warnings: list[str], depth: int) -> object:
    if depth > MOST_DEPTH:
        raise EvalError(f"{path}:{_line(node)}: nested more than {MOST_DEPTH} deep")
    if node.tag == "!function" and isinstance(node, ScalarNode):
        return FunctionTag(node.value, _line(node))
    if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.startswith("tag:yaml.org,2002:python"):
        raise EvalError(f"{path}:{_line(node)}: the tag {node.tag!r} is not read")
    if isinstance(node, MappingNode):
        return dict(_items(loader, node, path, warnings, depth))
    if isinstance(node, SequenceNode):
        return [_value(loader, one, path, warnings, depth + 1) for one in node.value]
    return loader.construct_object(node)  # type: ignore[attr-defined]  # a scalar: text, number, date, null


def _items(
    loader: object, node: MappingNode, path: str, warnings: list[str], depth: int
) -> Iterator[tuple[object, object]]:
    seen: dict[object, int] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode):
            raise EvalError(f"{path}:{_line(key_node)}: expected a plain key, got a {key_node.id}")
        key = _value(loader, key_node, path, warnings, depth + 1)
        if key in seen:
            warnings.append(f"{path}:{_line(key_node)}: the key {key!r} is given twice, first on line {seen[key]}")
        seen.setdefault(key, _line(key_node))
        yield key, _value(loader, value_node, path, warnings, depth + 1)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
