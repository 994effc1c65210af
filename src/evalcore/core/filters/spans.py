"""Where in a reply the text is that a filter left of it."""

from __future__ import annotations

import re

from evalcore.core.filters.letter import ALONE, BOXED, DECLARED, FIRST, STANDING
from evalcore.core.filters.reply import Fired, Span

LETTERED = ((ALONE, 0), (DECLARED, -1), (BOXED, -1), (FIRST, 0), (STANDING, 0))
"""By the rules of ``letter``: the pattern that finds a letter, and which of those it finds counts."""


def locate_text(fired: Fired) -> tuple[Span | None, ...]:
    """Locate each text that a step left by its first occurrence; None where it is no part of the reply.

    >>> locate_text(Fired({}, ("So: 4 is it", "?"), (0, 0), ("4", "5"), (0, 0)))
    ((0, 4, 5), None)
    >>> locate_text(Fired({}, ("4", "5", "5"), (0, 0, 0), ("5",), (0,)))
    ((1, 0, 1),)
    """
    return tuple(_locate(fired, at, value, last=False) for at, value in enumerate(fired.after))


def locate_end(fired: Fired) -> tuple[Span | None, ...]:
    """Locate each text that a step left by its last occurrence.

    >>> locate_end(Fired({}, ("4</think>4",), (0,), ("4",), (0,)))
    ((0, 9, 10),)
    """
    return tuple(_locate(fired, at, value, last=True) for at, value in enumerate(fired.after))


def locate_match(fired: Fired) -> tuple[Span | None, ...]:
    """Locate the match of a pattern that was selected, its group without the space around it.

    >>> fired = Fired({"regex_pattern": "([0-9])", "group_select": -1}, ("4 or 4",), (0,), ("4",), (0,))
    >>> locate_match(fired)
    ((0, 5, 6),)
    """
    pattern, select = fired.options.get("regex_pattern"), fired.options.get("group_select", 0)
    if not isinstance(pattern, str) or not isinstance(select, int):
        return locate_text(fired)
    return tuple(_locate_match(fired, at, value, pattern, select) for at, value in enumerate(fired.after))


def locate_letter(fired: Fired) -> tuple[Span | None, ...]:
    """Locate the letter of a choice where the rule that fired found it; a word may begin with the same letter.

    >>> locate_letter(Fired({}, ("Because of that, the answer is (B).",), (0,), ("B",), (1,)))
    ((0, 32, 33),)
    """
    return tuple(_locate_letter(fired, at, value) for at, value in enumerate(fired.after))


def _locate_letter(fired: Fired, at: int, value: object) -> Span | None:
    before, rule = fired.before[at], fired.rules[at]
    if not isinstance(before, str) or not 0 <= rule < len(LETTERED):
        return None
    pattern, which = LETTERED[rule]
    groups = range(1, pattern.groups + 1)
    found = [
        one.span(group) for one in pattern.finditer(before) for group in groups if (one[group] or "").upper() == value
    ]
    return (at, *found[which]) if found else None


def _locate_match(fired: Fired, at: int, value: object, pattern: str, select: int) -> Span | None:
    before = fired.before[at] if at < len(fired.before) else None
    if not isinstance(before, str) or not isinstance(value, str) or fired.rules[at] < 0:
        return None
    matches = list(re.finditer(pattern, before))
    if not -len(matches) <= select < len(matches):
        return None
    match = matches[select]
    for group in range(1, match.re.groups + 1) if match.re.groups else (0,):
        if (match[group] or "").strip() == value and value:
            start = match.start(group) + before[match.start(group) : match.end(group)].index(value)
            return at, start, start + len(value)
    return None


def _locate(fired: Fired, at: int, value: object, *, last: bool) -> Span | None:
    """A step that keeps the number of replies makes each of its own; another selects among them."""
    source = at if len(fired.after) == len(fired.before) else _find_source(fired, value)
    before = fired.before[source] if source is not None else None
    if source is None or not isinstance(before, str) or not isinstance(value, str) or not value:
        return None
    if value.lower() == before.lower():
        return source, 0, len(before)
    start = before.rfind(value) if last else before.find(value)
    return (source, start, start + len(value)) if start >= 0 else None


def _find_source(fired: Fired, value: object) -> int | None:
    return next((at for at, one in enumerate(fired.before) if one == value), None)
