"""Regular expressions: the selected match, found with as little searching as possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from evalcore.core.records.errors import EvalError


def compile_pattern(pattern: str, what: str = "a regular expression") -> re.Pattern[str]:
    """Compile a pattern, or raise an error that shows it.

    >>> compile_pattern("(")
    Traceback (most recent call last):
    evalcore.EvalError: expected a regular expression, got '(': missing ), unterminated ...
    >>> compile_pattern("a{99999999999}")
    Traceback (most recent call last):
    evalcore.EvalError: expected a regular expression, got 'a{99999999999}': the repetition number is too large
    """
    try:
        return re.compile(pattern)
    except RecursionError as wrong:
        raise EvalError(f"expected {what}, got {pattern!r:.100}...: too many groups within groups") from wrong
    except (re.error, TypeError, OverflowError, MemoryError) as wrong:
        raise EvalError(f"expected {what}, got {pattern!r:.200}: {wrong}") from wrong


def make_finder(pattern: re.Pattern[str], select: int) -> Callable[[str], str | None]:
    """Make a function that finds the ``select``-th match of ``findall``: its first non-empty group, stripped, or None.

    >>> make_finder(compile_pattern(r"([0-9]+)|(x)"), -1)("4 and 5 x")
    'x'
    """
    if not isinstance(select, int) or isinstance(select, bool):
        raise EvalError(f"expected group_select to be an integer, got {select!r}")
    if select == 0:
        return _find_first(pattern)
    inside = _find_alphabet(pattern) if select == -1 else None
    return _find_nth(pattern, select) if inside is None else _find_last(pattern, inside)


def _find_first(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    """Find the first match by ``search``, which stops where ``findall`` would go on."""
    search, groups = pattern.search, pattern.groups

    def find(text: str) -> str | None:
        match = search(text)
        if match is None:
            return None
        return _choose_group(match.groups("")) if groups > 1 else (match[groups] or "").strip()

    return find


def _find_nth(pattern: re.Pattern[str], select: int) -> Callable[[str], str | None]:
    findall = pattern.findall

    def find(text: str) -> str | None:
        matches = findall(text)
        if not -len(matches) <= select < len(matches):
            return None
        match = matches[select]
        return match.strip() if isinstance(match, str) else _choose_group(match)

    return find


def _find_last(pattern: re.Pattern[str], inside: re.Pattern[str]) -> Callable[[str], str | None]:
    """Find the last match: matches lie within runs of the pattern's alphabet, so only the last runs are searched."""
    runs, last = inside.findall, _find_nth(pattern, -1)
    search = pattern.search

    def find(text: str) -> str | None:
        for run in reversed(runs(text)):
            if search(run) is not None:
                return last(run)
        return None

    return find


def _choose_group(groups: Sequence[str]) -> str | None:
    for group in groups:
        if group:
            return group.strip()
    return None


# --- what a pattern can match -----------------------------------------------------------------------------------

PART = re.compile(
    r"(\[(?!\^)(?:\\.|[^\]\\])+\]|\\[dswntr]|\\\W|[^\\\[\](){}.^$*+?|])"  # a set of characters, or one of them
    r"|\((?!\?)|\(\?:|[)|*+?]|\{[0-9]+,?[0-9]*\}|\{,[0-9]+\}"
)
"""A pattern whose matches consist of known characters: no anchors, no look-arounds, no dot."""


@lru_cache(maxsize=256)
def _find_alphabet(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Match runs of the characters that a match consists of; None if the pattern has anything else.

    >>> _find_alphabet(compile_pattern(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")).findall("a $5 b 6.")
    ['$5', '6.']
    """
    parts = list(PART.finditer(pattern.pattern))
    understood = sum(len(part[0]) for part in parts) == len(pattern.pattern) and not pattern.flags & ~re.UNICODE
    if not understood or pattern.fullmatch(""):
        return None
    one = "|".join(dict.fromkeys(part[1] for part in parts if part[1]))
    return re.compile(f"(?:{one})(?:{one})*")  # a set first: what cannot begin a run is skipped
