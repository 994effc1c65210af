"""How the target of a document becomes its golds: as it is or, as in lm-eval, as the first document's says."""

from __future__ import annotations

from collections.abc import Callable

ReadGolds = Callable[[object], object]
"""Makes golds of a target: a list is several."""


def keep_target(target: object) -> object:
    """Keep a target as it is: the items of a list are golds, and a text is one.

    >>> keep_target(["a", "b"]), keep_target("abc")
    (['a', 'b'], 'abc')
    """
    return target


def split_target(target: object) -> object:
    """Split a text into characters, as lm-eval does once its first document had a list (E53).

    >>> split_target(["a", "b"]), split_target("abc")
    (['a', 'b'], ['a', 'b', 'c'])
    """
    return list(target) if isinstance(target, str) else target


def write_target(target: object) -> object:
    """Write a list as a text, as lm-eval does unless its first document had a list.

    >>> write_target(["a", "b"]), write_target("abc")
    ("['a', 'b']", 'abc')
    """
    return str(target) if isinstance(target, list) else target


def choose_golds(first: object, *, choices: bool, as_host: bool) -> ReadGolds:
    """Choose how targets become golds.

    In lm-eval, ``first``, the target of the first document, decides for all; the number of a choice is never split.

    >>> choose_golds(["a"], choices=False, as_host=True)("bc"), choose_golds(["a"], choices=False, as_host=False)("bc")
    (['b', 'c'], 'bc')
    """
    if not as_host:
        return keep_target
    if not isinstance(first, list) or not first:
        return write_target
    return keep_target if choices else split_target
