"""Regular expressions: which match is meant, found with as little searching as possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

from evalcore.core.records.errors import EvalError

__all__ = ["compiled", "finder"]


def compiled(pattern: str) -> re.Pattern[str]:
    """A compiled pattern, or an error that shows it.

    >>> compiled("(")
    Traceback (most recent call last):
    evalcore.EvalError: expected a regular expression, got '(': missing ), unterminated ...
    """
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as wrong:
        raise EvalError(f"expected a regular expression, got {pattern!r}: {wrong}") from wrong


def finder(pattern: re.Pattern[str], select: int) -> Callable[[str], str | None]:
    """The ``select``-th match of ``findall``: its first group that is not empty, stripped; None if there is none.

    >>> finder(compiled(r"([0-9]+)|(x)"), -1)("4 and 5 x")
    'x'
    """
    if not isinstance(select, int) or isinstance(select, bool):
        raise EvalError(f"expected group_select to be a whole number, got {select!r}")
    if select == 0:
        return _first(pattern)
    inside = _alphabet(pattern) if select == -1 else None
    return _nth(pattern, select) if inside is None else _last(pattern, inside)


def _first(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    """``search`` stops where ``findall`` would go on."""
    search, groups = pattern.search, pattern.groups

    def find(text: str) -> str | None:
        match = search(text)
        if match is None:
            return None
        return _chosen(match.groups("")) if groups > 1 else (match[groups] or "").strip()

    return find


def _nth(pattern: re.Pattern[str], select: int) -> Callable[[str], str | None]:
    findall = pattern.findall

    def find(text: str) -> str | None:
        matches = findall(text)
        if not -len(matches) <= select < len(matches):
            return None
        match = matches[select]
        return match.strip() if isinstance(match, str) else _chosen(match)

    return find


def _last(pattern: re.Pattern[str], inside: re.Pattern[str]) -> Callable[[str], str | None]:
    """Every match lies within a run of the pattern's alphabet, so the last run that has one has the last one."""
    runs, last = inside.findall, _nth(pattern, -1)
    search = pattern.search

    def find(text: str) -> str | None:
        for run in reversed(runs(text)):
            if search(run) is not None:
                return last(run)
        return None

    return find


def _chosen(groups: Sequence[str]) -> str | None:
    for group in groups:
        if group:
            return group.strip()
    return None


# --- what a pattern can match -----------------------------------------------------------------------------------

ESCAPES = {codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_SPACE: r"\s", codes.CATEGORY_WORD: r"\w"}


@lru_cache(maxsize=256)
def _alphabet(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Runs of the characters that a match consists of; None if the pattern looks at anything else.

    >>> _alphabet(compiled(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")).findall("a $5 b 6.")
    ['$5', '6.']
    """
    if pattern.flags & ~re.UNICODE:
        return None
    tree = parser.parse(pattern.pattern)
    if tree.getwidth()[0] < 1:
        return None
    characters = _characters(tree)
    return None if characters is None else re.compile(f"[{characters}]+")


def _characters(tree: object) -> str | None:
    parts = [_of(op, argument) for op, argument in tree]  # type: ignore[attr-defined]
    known = [part for part in parts if part is not None]
    return "".join(known) if len(known) == len(parts) else None


def _of(op: object, argument: object) -> str | None:
    """The characters of one node, in the syntax of a character class; None for anchors, look-arounds and the like."""
    if op is codes.LITERAL:
        return re.escape(chr(argument))  # type: ignore[arg-type]
    if op is codes.RANGE:
        return "-".join(re.escape(chr(end)) for end in argument)  # type: ignore[attr-defined]
    if op is codes.CATEGORY:
        return ESCAPES.get(argument)
    if op is codes.IN:
        return _characters(argument)
    if op is codes.BRANCH:
        return _joined(_characters(branch) for branch in argument[1])  # type: ignore[index]
    if op is codes.SUBPATTERN:
        plain = argument[1] == 0 and argument[2] == 0  # type: ignore[index]
        return _characters(argument[-1]) if plain else None  # type: ignore[index]
    if op in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        return _characters(argument[2])  # type: ignore[index]
    return None


def _joined(parts: object) -> str | None:
    found = list(parts)  # type: ignore[call-overload]
    return None if None in found else "".join(found)
