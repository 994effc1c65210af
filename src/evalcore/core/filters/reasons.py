"""Explanations of filters: which rule fired, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from evalcore.core.filters.letter import LETTER_RULES
from evalcore.core.filters.reply import FELL_BACK, Explain, Fired
from evalcore.core.filters.select import ballot

SHOWN = 60


def quote(value: object, most: int = SHOWN) -> str:
    """Quote a text, shortened in its middle; write anything else as Python does.

    >>> quote("abc"), quote(None), quote("a" * 9, 4)
    ("'abc'", 'None', "'aa…aa'")
    """
    text, half = value if isinstance(value, str) else repr(value), most // 2
    short = text if len(text) <= most else f"{text[:half]}…{text[-half:]}"
    return f"'{short}'" if isinstance(value, str) else short


def each_reply(tell: Callable[[Fired, object, object, int], str]) -> Explain:
    """Make notes for each reply of a step that keeps their number.

    >>> fired = Fired({"regex_pattern": "([0-9])", "group_select": -1}, ("4, 5",), (0,), ("5",), (0,))
    >>> each_reply(tell_match)(fired)
    ("match 2 of 2 of '([0-9])'",)
    """
    return partial(_tell_each, tell)


def _tell_each(tell: Callable[[Fired, object, object, int], str], fired: Fired) -> tuple[str, ...]:
    rows = zip(fired.before, fired.given, fired.after, fired.rules, strict=True)
    return tuple(tell(fired, before, after, rule) + _note_earlier(given, rule) for before, given, after, rule in rows)


def _note_earlier(given: int, rule: int) -> str:
    return "; an earlier step had already found nothing" if given == rule == FELL_BACK else ""


def _tell_fallback(fired: Fired, after: object) -> str:
    return f"the fallback {quote(fired.options.get('fallback', after))}"


def tell_match(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell which match of a pattern was taken, or why none was."""
    pattern, select = fired.options.get("regex_pattern"), fired.options.get("group_select", 0)
    if not isinstance(before, str) or not isinstance(pattern, str) or not isinstance(select, int):
        return "no text: " + _tell_fallback(fired, after)
    matches = list(re.finditer(pattern, before))
    shown = quote(pattern, 2 * SHOWN)
    if not -len(matches) <= select < len(matches):
        wanted = f", and number {select} was asked for" if matches else ""
        count = f"{len(matches) or 'no'} match{'es' * (len(matches) > 1)}"
        return f"{count} of {shown}{wanted}: {_tell_fallback(fired, after)}"
    at = select % len(matches)
    group, text = _find_group(matches[at])
    if text != after:  # an empty group, or another rule than ours: say only what is certain
        return f"by {shown}" if rule != FELL_BACK else f"{shown} matched nothing usable: {_tell_fallback(fired, after)}"
    of = f", its group {group}" if matches[at].re.groups > 1 else ""
    return f"match {at + 1} of {len(matches)} of {shown}{of}"


def _find_group(match: re.Match[str]) -> tuple[int, str]:
    """Find the first non-empty group and its number; without groups, the whole match."""
    if match.re.groups < 2:
        return match.re.groups, (match[match.re.groups] or "").strip()
    return next(((i, text.strip()) for i, text in enumerate(match.groups(""), 1) if text), (0, ""))


CHOICE_RULES = ("by the pattern {}", "by the text of a choice", "by a letter after a colon")


def tell_choice(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell which of the three rules found a choice."""
    pattern = quote(fired.options.get("regex_pattern"), 2 * SHOWN)
    if 0 <= rule < len(CHOICE_RULES):
        return f"rule {rule + 1} of {len(CHOICE_RULES)}: " + CHOICE_RULES[rule].format(pattern)
    return f"neither {pattern} nor a choice nor a letter after a colon was found: {_tell_fallback(fired, after)}"


def tell_letter(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell which rule found a letter."""
    if 0 <= rule < len(LETTER_RULES):
        return f"rule {rule + 1} of {len(LETTER_RULES)}: {LETTER_RULES[rule]}"
    return f"no letter was found, or several: {_tell_fallback(fired, after)}"


def tell_tags(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell how many tags were found."""
    if rule == FELL_BACK:
        return f"no ('word', 'TAG') was found: {_tell_fallback(fired, after)}"
    return f"{len(after) if isinstance(after, tuple) else 1} tags"


def tell_thinking(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell what was dropped as reasoning."""
    start, end = fired.options.get("start"), fired.options.get("end")
    if not isinstance(before, str) or before == after:
        return "no reasoning block: unchanged"
    if isinstance(end, str) and end in before:
        return f"what follows the last {quote(end)}, {_note_removed(before, after)}"
    return f"{quote(start)} never ends: what follows it is dropped, {_note_removed(before, after)}"


def tell_change(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell whether a reply changed."""
    return "unchanged" if before == after else _note_removed(before, after)


def _note_removed(before: object, after: object) -> str:
    lost = len(before) - len(after) if isinstance(before, str) and isinstance(after, str) else 0
    return f"{lost:,} character{'s' * (lost != 1)} removed" if lost > 0 else "changed"


def tell_lookup(fired: Fired, before: object, after: object, rule: int) -> str:
    """Tell whether a reply is in the table."""
    table = fired.options.get("mapping_dict")
    known = isinstance(table, Mapping) and ballot(before) in table
    return "in the table" if known else f"not in the table: the default {quote(after)}"


def tell_votes(fired: Fired) -> tuple[str, ...]:
    """Tell the votes for each answer, and how a tie was resolved."""
    standing = [value for value, rule in zip(fired.before, fired.given, strict=True) if rule != FELL_BACK]
    counted = standing or fired.before
    votes = Counter(map(ballot, counted)).most_common()
    tally = ", ".join(f"{quote(value)} {count}" for value, count in votes[:10])
    more = f" and {len(votes) - 10} others" if len(votes) > 10 else ""
    ties = len([1 for _, count in votes if count == votes[0][1]]) if votes else 0
    tie = f"; a tie, settled by {fired.options.get('ties', 'first')}" if ties > 1 else ""
    lost = len(fired.before) - len(counted)
    out = f"; {lost} fallback{'s' * (lost > 1)} did not count" if lost else ""
    return (f"votes: {tally}{more}{tie}{out}",) * len(fired.after)


def tell_places(fired: Fired) -> tuple[str, ...]:
    """Tell which of the replies was kept."""
    return tuple(f"reply {i + 1} of {len(fired.before)}" for i in range(len(fired.after)))


def tell_own_code(fired: Fired) -> tuple[str, ...]:
    """Tell that only the task's own code knows."""
    return ("by the task's own code",) * len(fired.after)
