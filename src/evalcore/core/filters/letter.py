"""The letter of a choice in a free reply, and the ways to ask for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.filters.reply import FELL_BACK, FilterFn, Replies, keep_fallbacks
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import CHOOSE, Sample

MARKS = r"[\s*_`\"'(\[{$]*"
"""What may stand between a word such as "answer" and its letter: blanks, emphasis, brackets."""

NAMED = rf"{MARKS}(?:(?i:option|choice|letter)\b{MARKS})?"
SAYS = r"(?i:is|:|=|would be|must be)"
DECLARED = re.compile(
    rf"\b(?i:answers?|choice|option)\b(?:\s+(?i:choice|option|letter))?{MARKS}{SAYS}(?:\s*{SAYS})?{NAMED}"
    r"([A-Z])(?![\w'’])"
)
BOXED = re.compile(r"\\boxed\{\s*(?:\\text\{)?\(?([A-Z])\)?\}?\s*\}")
ALONE = re.compile(r"[\s*_`\"'(\[{$]*([A-Za-z])[\s*_`\"')\]}.:,$]*")
FIRST = re.compile(r"[\s*_`\"'(\[{]*([A-Z])(?:[*_`\"']*[).:\],}]|[*_`]+|[ \t]*\n|[ \t]+[-–—])")
STANDING = re.compile(r"(?<![\w'’.-])([B-HJ-Z])(?![\w'’-])|\(([A-Z])\)")
"""A capital letter by itself; ``A`` and ``I`` are also words, so they count in brackets only."""

AFTER = r"[\s*_`\"')\]}$]*"
OTHER = rf"{NAMED}[A-Z](?![\w'’])"
ALSO = re.compile(
    rf"{AFTER}(?:(?:[/&]|\b(?i:and/or|or)\b){OTHER}|(?:,|\b(?i:and)\b){OTHER}{AFTER}(?:[.,;]|\b(?i:or|and)\b|\Z))"
)
"""What follows a letter that is one of several; after "and" and commas, what is said of another begins likewise."""
SEVERAL = re.compile(rf"(?<![\w'’])[A-Z](?={ALSO.pattern})")

LETTER_RULES = (
    "the whole reply is a letter",
    "the last letter that is said to be the answer",
    "the letter in \\boxed{}",
    "the letter with which the reply begins",
    "the only letter of the reply",
)


KEY = "multiple_choice_by"
LIKELIHOOD = "likelihood"
GREEDY: FrozenDict[str, object] = FrozenDict({"temperature": 0.0, "do_sample": False, "max_gen_toks": 256})


class LetterForm(Struct, frozen=True):
    """How a letter is asked for: by which options, and through which filters its reply goes."""

    generation: FrozenDict[str, object]
    filters: tuple[str, ...]


LETTER_FORMS: PMap[str, LetterForm] = pmap(
    {
        "letter": LetterForm(GREEDY, ("strip_thinking", "letter")),
        "letter_logprobs": LetterForm(FrozenDict({**GREEDY, "max_gen_toks": 1, CHOOSE: ascii_uppercase}), ("letter",)),
    }
)
"""By what a letter is read: the text of the reply, or the log-probabilities of its first token."""

WAYS = (LIKELIHOOD, *sorted(LETTER_FORMS))


def letter(*, fallback: str = "[no letter]") -> FilterFn:
    """The letter of a choice: the reply itself, the one said to be the answer, the first, or the only one.

    >>> from evalcore.core.filters.reply import replies
    >>> given = replies([["b", "**Answer: C**", "A) red", "It is D.", "A dog", "B or C"]])
    >>> list(letter()(given, ()).values)
    ['B', 'C', 'A', 'D', '[no letter]', '[no letter]']
    """

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        offered = zip(given.values, _list_offered(given, docs), strict=True)
        found = [find_letter(value, letters) if isinstance(value, str) else None for value, letters in offered]
        values = [fallback if one is None else one[0] for one in found]
        rules = [FELL_BACK if one is None else one[1] for one in found]
        return Replies(values, given.offsets, keep_fallbacks(given, rules))

    return apply


def name_letters(choices: int) -> str:
    """Name the letters of so many choices; all of them where there are none or more.

    >>> name_letters(4), len(name_letters(0))
    ('ABCD', 26)
    """
    return ascii_uppercase[:choices] or ascii_uppercase


def _list_offered(given: Replies, docs: Sequence[Sample]) -> Iterator[str]:
    """List for each reply the letters of its document's choices."""
    for unit, count in enumerate(given.counts.tolist()):
        letters = name_letters(len(docs[unit].choices) if unit < len(docs) else 0)
        yield from (letters for _ in range(count))


def find_letter(text: str, letters: str = ascii_uppercase) -> tuple[str, int] | None:
    """Find which of some letters a reply chooses, and the number of the rule that finds it.

    >>> find_letter("The answer is not A. The answer is (B)."), find_letter("Answers vary."), find_letter("A or B")
    (('B', 1), None, None)
    >>> find_letter("Answer: I think B", "ABCD"), find_letter("E", "ABCD")
    (('B', 4), None)
    """
    if whole := ALONE.fullmatch(text):
        return (whole[1].upper(), 0) if whole[1].upper() in letters else None
    for rule, pattern in ((1, DECLARED), (2, BOXED)):
        if declared := [one for one in pattern.finditer(text) if one[1] in letters]:
            return _take_only(declared[-1], rule)
    if (first := FIRST.match(text)) and first[1] in letters:
        return _take_only(first, 3)
    standing = {one or other for one, other in STANDING.findall(text)} & set(letters)
    return (standing.pop(), 4) if len(standing) == 1 and not SEVERAL.search(text) else None


def _take_only(found: re.Match[str], rule: int) -> tuple[str, int] | None:
    """The letter that was found, unless it is one of several."""
    return None if ALSO.match(found.string, found.end(1)) else (found[1], rule)
