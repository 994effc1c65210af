"""YAML as data only: no tags that run code, no aliases; duplicate keys are reported with their line.

Values are built straight from the node tree that the C parser composes: a third of the time of ``yaml.load``, and
every node knows its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Literal

import yaml
from msgspec import Struct
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from evalcore.core.records.errors import EvalError

MOST_BYTES = 16_000_000
MOST_DEPTH = 200
MOST_NODES = 200_000
"""Keys and values of a file; no file of lm-eval's has a hundred."""

PARSER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
CORE = "tag:yaml.org,2002:"
TEXT, MAP, SEQ = f"{CORE}str", f"{CORE}map", f"{CORE}seq"
FUNCTION = "!function"
LEVELS = (b"[", b"{", b"-", b"?", b":")
KINDS: Mapping[type, str] = {MappingNode: "a mapping", SequenceNode: "a list"}

_constructor = SafeConstructor()
SCALARS: Mapping[str, Callable[[ScalarNode], object]] = {
    f"{CORE}null": _constructor.construct_yaml_null,
    f"{CORE}bool": _constructor.construct_yaml_bool,
    f"{CORE}int": _constructor.construct_yaml_int,
    f"{CORE}float": _constructor.construct_yaml_float,
    f"{CORE}timestamp": _constructor.construct_yaml_timestamp,
    f"{CORE}binary": _constructor.construct_yaml_binary,
}
IMPLICIT: Mapping[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers


class FunctionTag(Struct, frozen=True):
    """``!function module.name`` as a file has it: a name, not code."""

    name: str
    line: int
    path: str = ""


class Loaded(Struct):
    """A file's value, warnings about it, and the nodes that know its lines.

    It is not frozen: freezing 14,000 task files would take 0.1 s, and their readers take them apart anyway.
    """

    value: object
    warnings: tuple[str, ...] = ()
    node: Node | None = None

    def line_of(self, *keys: str) -> int:
        """Find the line of the first of these keys that exists; 1 if none does."""
        lines = [_get_line(one) for one, _ in self.node.value if one.value in keys] if self.node is not None else []
        return lines[0] if lines else 1


class YamlReading(Struct):
    """What all nodes of a text share, and the warnings gathered on the way."""

    path: str
    warnings: list[str]
    hold: Callable[[object], object]


@lru_cache(4096)  # most are the same few keys
def _tag_scalar(text: str) -> str:
    """Find the tag of an unquoted text."""
    return next((tag for tag, pattern in IMPLICIT.get(text[:1], ()) if pattern.match(text)), TEXT)


class _Composer(PARSER):  # type: ignore[misc, valid-type]  # which one depends on how PyYAML was built
    """Composes nodes with the tags of the safe loader."""

    # Called for every node although tags do not depend on its path; builtins do nothing fastest.
    descend_resolver = staticmethod(is_)
    ascend_resolver = bool

    def resolve(self, kind: type[Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        if value is None:
            return MAP if kind is MappingNode else SEQ
        return _tag_scalar(value) if implicit[0] else TEXT


def keep_value(value: object) -> object:
    return value


def read_yaml(
    text: str | bytes,
    path: str,
    *,
    duplicates: Literal["error", "warn"] = "error",
    hold: Callable[[object], object] = keep_value,
) -> Loaded:
    """Read a YAML text; a duplicate key is an error or, in a shipped library, a warning (the last one counts).

    ``hold`` replaces every value that is neither text nor a collection.

    >>> read_yaml("task: a\\nmetric: acc", "a.yaml").value
    {'task': 'a', 'metric': 'acc'}
    >>> read_yaml("task: a\\ntask: b", "a.yaml")
    Traceback (most recent call last):
    evalcore.EvalError: a.yaml:2: the key 'task' is given twice, first on line 1; keep one of them
    """
    if len(text) > MOST_BYTES:
        raise EvalError(f"{path}: expected at most {MOST_BYTES // 1_000_000} MB of YAML, got {len(text):,} bytes")
    warnings: list[str] = []
    try:
        node = _compose_node(text, path)
        value = None if node is None else _build_value(node, YamlReading(path, warnings, hold))
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(wrong, "problem", None) or getattr(wrong, "reason", None) or wrong
        raise EvalError(f"{path}{line}: not YAML: {problem}") from wrong
    except UnicodeError as wrong:
        raise EvalError(f"{path}: not YAML: the text is not UTF-8 ({wrong})") from wrong
    if warnings and duplicates == "error":
        raise EvalError(f"{warnings[0]}; keep one of them")
    return Loaded(value, tuple(warnings), node)


def _compose_node(text: str | bytes, path: str) -> Node | None:
    _refuse_bombs(text, path)
    composer = _Composer(text)
    try:
        node: Node | None = composer.get_single_node()
    finally:
        composer.dispose()
    return node


def _refuse_bombs(text: str | bytes, path: str) -> None:
    """Refuse aliases, by which a small file becomes a huge one, nesting that would exhaust the C stack, and more values
    than can be read in a moment.

    A short text without these characters has none: an alias takes an ``&`` and a ``*``, every level one of the others
    and one more character to end it, every value a character and what ends it.
    """
    star, anchor, levels = ("*", "&", "[{-?:") if isinstance(text, str) else (b"*", b"&", LEVELS)
    aliases = star in text and anchor in text  # type: ignore[operator]  # all are text, or all bytes
    many = len(text) > MOST_NODES
    if not (aliases or many) and (len(text) <= 2 * MOST_DEPTH or sum(map(text.count, levels)) <= MOST_DEPTH):  # type: ignore[arg-type]
        return
    depth = nodes = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        nodes += isinstance(event, yaml.NodeEvent)
        if nodes > MOST_NODES:
            raise EvalError(
                f"{path}:{line}: expected at most {MOST_NODES:,} keys and values, got more; "
                "documents belong in a JSONL file"
            )
        if isinstance(event, yaml.AliasEvent):
            raise EvalError(f"{path}:{line}: aliases are not read (*{event.anchor}); write the value out")
        if depth > MOST_DEPTH:
            raise EvalError(f"{path}:{line}: nested more than {MOST_DEPTH} deep")


def _build_value(node: Node, reading: YamlReading) -> object:
    kind, tag = type(node), node.tag
    if kind is ScalarNode:
        return node.value if tag == TEXT else reading.hold(_build_scalar(node, reading.path))
    if kind is MappingNode and tag == MAP:
        made: dict[object, object] = {}
        for key_node, value_node in node.value:
            key = (
                key_node.value
                if type(key_node) is ScalarNode and key_node.tag == TEXT
                else _build_key(key_node, reading.path)
            )
            if key in made:
                reading.warnings.append(_tell_duplicate(node, key, key_node, reading.path))
            # Plain text, the most common value, takes no call.
            plain = type(value_node) is ScalarNode and value_node.tag == TEXT
            made[key] = value_node.value if plain else _build_value(value_node, reading)
        return made
    if kind is SequenceNode and tag == SEQ:
        return [_build_value(one, reading) for one in node.value]
    raise EvalError(f"{reading.path}:{_get_line(node)}: the tag {tag!r} is not read")


def _build_key(node: Node, path: str) -> object:
    if type(node) is not ScalarNode or node.tag == FUNCTION:
        kind = "a function" if node.tag == FUNCTION else KINDS.get(type(node), "another value")
        raise EvalError(f"{path}:{_get_line(node)}: expected a plain key, got {kind}")
    return node.value if node.tag == TEXT else _build_scalar(node, path)


def _build_scalar(node: Node, path: str) -> object:
    if node.tag == FUNCTION:
        return FunctionTag(node.value, _get_line(node), path)
    make = SCALARS.get(node.tag)
    if make is None:
        raise EvalError(f"{path}:{_get_line(node)}: the tag {node.tag!r} is not read")
    try:
        return make(node)  # type: ignore[arg-type]  # callers pass scalars only
    except (ValueError, LookupError, OverflowError, AttributeError) as wrong:  # what yaml's own constructors raise
        kind = node.tag.removeprefix(CORE)
        raise EvalError(
            f"{path}:{_get_line(node)}: expected {kind}, got {node.value[:80]!r}; quote it for text"
        ) from wrong


def _tell_duplicate(node: Node, key: object, again: Node, path: str) -> str:
    first = next(one for one, _ in node.value if _build_key(one, path) == key)
    return f"{path}:{_get_line(again)}: the key {key!r} is given twice, first on line {_get_line(first)}"


def _get_line(node: Node) -> int:
    return int(node.start_mark.line) + 1
