"""Filters that extract the answer from a reply."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from evalcore.core.filters.pattern import compile_pattern, make_finder
from evalcore.core.filters.reply import (
    FELL_BACK,
    FilterFn,
    Replies,
    apply_matches,
    each_text,
    keep_fallbacks,
    nested,
)
from evalcore.core.records.document import decode_doc
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Sample


def regex(
    *, regex_pattern: str = r"#### (\-?[0-9\.\,]+)", group_select: int = 0, fallback: object = "[invalid]"
) -> FilterFn:
    r"""The ``group_select``-th match, of its groups the first that is not empty, stripped; else the fallback.

    >>> from evalcore.core.filters.reply import replies
    >>> f = regex(regex_pattern=r"The answer is (\-?[0-9\.\,]+).")
    >>> list(f(replies([["The answer is 42.", "The answer is 42", "The answer is 4"]]), ()).values)
    ['42', '4', '[invalid]']
    """
    find = make_finder(compile_pattern(regex_pattern), group_select)

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        matches = [find(value) if isinstance(value, str) else None for value in given.values]
        return apply_matches(given, matches, fallback)

    return apply


def multi_choice_regex(
    *,
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
    group_select: int = 0,
    fallback: str = "[invalid]",
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    regexes_to_ignore: Sequence[str] | None = None,
) -> FilterFn:
    """The letter of a choice: by the pattern, else by the choice's text, else by a letter after a colon.

    >>> from evalcore.core.filters.reply import replies
    >>> doc = Sample(0, choices=("red", "blue"))
    >>> f = multi_choice_regex(regex_pattern=r"(\\([A-Z]\\))")
    >>> list(f(replies([["(A)", "it is blue", "Answer: B", "none"]]), [doc]).values)
    ['(A)', '(B)', '(B)', '[invalid]']
    """
    pattern = compile_pattern(regex_pattern)
    ignore = _make_ignore(ignore_case, ignore_punctuation, tuple(regexes_to_ignore or ()))

    def find(rule: re.Pattern[str], text: str, names: Mapping[str, str]) -> str | None:
        match = make_finder(rule, group_select)(text)
        return names.get(match, match) if match else None

    def letter(text: object, rules: Sequence[tuple[re.Pattern[str], Mapping[str, str], bool]]) -> tuple[object, int]:
        if isinstance(text, str):
            for at, (rule, names, ignoring) in enumerate(rules):
                match = find(rule, ignore(text) if ignoring else text, names)
                if match:
                    return match, at
        return fallback, FELL_BACK

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        out: list[tuple[object, int]] = []
        for values, doc in zip(nested(given), docs, strict=True):
            rules = [(pattern, {}, False), *_build_rules(_read_choices(doc), ignore)]
            out += [letter(value, rules) for value in values]
        return Replies([v for v, _ in out], given.offsets, keep_fallbacks(given, [r for _, r in out]))

    return apply


def _build_rules(
    choices: Sequence[str], ignore: Callable[[str], str]
) -> list[tuple[re.Pattern[str], Mapping[str, str], bool]]:
    letters = [chr(ord("A") + i) for i in range(len(choices))]
    names = {ignore(choice.strip()): f"({letter})" for choice, letter in zip(choices, letters, strict=True)}
    # Longest first: a choice that is a prefix of another must not shadow it.
    texts = "|".join(sorted((re.escape(ignore(choice.strip())) for choice in choices), key=len, reverse=True))
    return [
        (re.compile(texts), names, True),
        (re.compile(rf":[\s]*({'|'.join(letters)})"), {letter: f"({letter})" for letter in letters}, False),
    ]


def _read_choices(doc: Sample) -> Sequence[str]:
    if doc.choices:
        return doc.choices
    given = decode_doc(doc)
    listed = given.get("choices") if isinstance(given, dict) else None
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise EvalError(f"expected a document with a list of choices, got none - at doc {doc.doc_id}")
    return listed


def regex_pos(
    *, regex_pattern: str = r"\['(.*?)'\]", group_select: int = 0, fallback: Sequence[str] = ("invalid",)
) -> FilterFn:
    """The tags of ``[('word', 'TAG'), ...]``; the pattern is fixed, as in lm-eval.

    >>> from evalcore.core.filters.reply import replies
    >>> regex_pos()(replies([["[('dog', 'NOUN'), ('runs', 'VERB')]"]]), ()).values[0]
    ('NOUN', 'VERB')
    """
    tagged = re.compile(r"\('([^']*)', '([^']*)'\)")

    def tags(value: object) -> tuple[str, ...] | None:
        names = tuple(tag for _, tag in tagged.findall(value)) if isinstance(value, str) else ()
        return names or None

    def apply(given: Replies, docs: Sequence[Sample]) -> Replies:
        return apply_matches(given, [tags(value) for value in given.values], tuple(fallback))

    return apply


def strip_thinking(*, start: str = "<think>", end: str = "</think>") -> FilterFn:
    """The text after the reasoning block; nothing after a block that never ends.

    >>> from evalcore.core.filters.reply import replies
    >>> given = replies([["<think>hm</think> 4", "4", "<think>still", "hm</think>5"]])
    >>> list(strip_thinking()(given, ()).values)
    ['4', '4', '', '5']
    """

    for mark in (start, end):
        if not isinstance(mark, str) or not mark:
            raise EvalError(f"strip_thinking: expected start and end to be texts, got {mark!r}")

    def strip(text: str) -> str:
        if end in text:
            return text.rpartition(end)[2].strip()
        return text.partition(start)[0].strip() if start in text else text

    return each_text(strip)


def _make_ignore(ignore_case: bool, ignore_punctuation: bool, patterns: Sequence[str]) -> Callable[[str], str]:
    removed = [compile_pattern(pattern) for pattern in patterns]

    def ignore(text: str) -> str:
        for pattern in removed:
            text = pattern.sub("", text)
        text = text.lower() if ignore_case else text
        if ignore_punctuation:
            text = "".join(char for char in text if not unicodedata.category(char).startswith("P"))
        return text

    return ignore
