"""Code and values of rules as configs record them, and whether two of them are the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from hashlib import sha256
from textwrap import dedent
from typing import NamedTuple

from evalcore.core.records.task import name_function


class RecordedCode(NamedTuple):
    """A function by its name and, where known, by its source without formatting, or the hash of its file."""

    name: str
    source: str = ""
    digest: str = ""

    @property
    def whole(self) -> str:
        """The name, with the beginning of a hash that tells it from others of this name."""
        digest = self.digest or sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.name} (sha256 {digest[:8]})"


SOURCE = re.compile(r"\s*(?:@[^\n]*\n\s*)*(?:async\s+)?(?:def|class)\s+(\w+)")
NAMED = re.compile(r"<(?:function|class|bound method|built-in function) '?([^ >']+)|!function\s+(\S+)")
HASHED = re.compile(r"(\w+) sha256:(\w+)")
LAST_WORD = re.compile(r"(\w+)\W*$")
LONGEST = 100_000


def read_code(given: object) -> RecordedCode:
    """Read a function in any form that logs have: itself, its source, a name with a path or an address.

    >>> read_code("def f(doc):\\n  return 1").name, read_code("<function f at 0x7f01>"), read_code("!function utils.f")
    ('f', RecordedCode(name='f', source='', digest=''), RecordedCode(name='f', source='', digest=''))
    >>> read_code("def f(x): return [1,2]") == read_code("    def f( x ):\\n        return [1, 2]  # both")
    True
    """
    text = name_function(given) if callable(given) else str(given)
    defined, named, hashed = SOURCE.match(text), NAMED.search(text), HASHED.fullmatch(text)
    if defined is not None or "lambda " in text:
        return RecordedCode(defined[1] if defined is not None else "lambda", _drop_format(text))
    if hashed is not None:
        return RecordedCode(hashed[1], digest=hashed[2])
    whole = next(filter(None, named.groups()), text) if named is not None else text
    last = LAST_WORD.search(whole)
    return RecordedCode(last[1] if last is not None else whole)


def _drop_format(source: str) -> str:
    """Source without layout and comments; as words if Python cannot read it."""
    try:
        return ast.dump(ast.parse(dedent(source))) if len(source) < LONGEST else source
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return " ".join(source.split())


def read_rule(value: object) -> object:
    """Read a value of a rule, in which there may be code.

    >>> read_rule(["a", "<function f at 0x7f01>"])
    ('a', RecordedCode(name='f', source='', digest=''))
    """
    if callable(value) or (isinstance(value, str) and (SOURCE.match(value) or NAMED.match(value))):
        return read_code(value)
    if isinstance(value, Mapping):
        return {str(key): read_rule(one) for key, one in value.items()}
    return tuple(map(read_rule, value)) if isinstance(value, list | tuple) else value


def are_alike(one: object, two: object) -> bool:
    """Whether two values of a rule are equal as far as they are known; 1 is 1.0.

    >>> bare, hashed, other = RecordedCode("f"), RecordedCode("f", digest="12ab"), RecordedCode("f", digest="34cd")
    >>> are_alike((1, bare), (1.0, hashed)), are_alike(hashed, other)
    (True, False)
    """
    if isinstance(one, RecordedCode) and isinstance(two, RecordedCode):
        unlike = ((one.source, two.source), (one.digest, two.digest))
        return one.name == two.name and not any(x and y and x != y for x, y in unlike)
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(are_alike, one, two))
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return one.keys() == two.keys() and all(are_alike(one[key], two[key]) for key in one)
    return one == two
