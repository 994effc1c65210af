"""What the text metrics share: normal forms of texts and options, and the best score over several golds."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial, reduce
from itertools import chain
from math import isfinite, nan

import numpy as np
from msgspec.structs import replace

from evalcore.core.answers.text import GenBatch
from evalcore.core.filters.pattern import compile_pattern
from evalcore.core.metrics.metric import Marks, only_where
from evalcore.core.records.array import frozen
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats

Texts = Sequence[str]
Normaliser = Callable[[Texts], Texts]

NO_GOLD = "expected a gold answer, got none"
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
PATTERN_TOKEN = re.compile(r"(?s)\\.|.")


def refuse_unknown(metric: str, options: Options, known: Iterable[str]) -> None:
    """Refuse an unknown option of a metric.

    >>> from evalcore.core.records.request import freeze_options
    >>> refuse_unknown("exact_match", freeze_options(ignore_cas=True), ["ignore_case"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown option of exact_match 'ignore_cas'; did you mean ...
    """
    names = tuple(known)
    for name in sorted(set(options) - set(names)):
        raise unknown(f"option of {metric}", name, names or ("(it takes no options)",))


def number_option(options: Options, name: str, default: float) -> float:
    """Read a finite number from the options.

    >>> from evalcore.core.records.request import freeze_options
    >>> [number_option(given, "threshold", 0.5) for given in (freeze_options(threshold=0.25), freeze_options())]
    [0.25, 0.5]
    """
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise EvalError(f"expected a number for {name}, got {value!r}")
    return float(value)


def normalise_distinct(normalise: Normaliser, texts: Iterable[str]) -> dict[str, str]:
    """Map every distinct text to its normal form, each computed once.

    >>> normalise_distinct(normaliser((",",), case=True), ["1,000", "A", "1,000"])
    {'1,000': '1000', 'A': 'a'}
    """
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, normalise(distinct), strict=True))


@lru_cache(maxsize=256)
def normaliser(
    regexes: tuple[str, ...] = (), *, case: bool = False, punctuation: bool = False, numbers: bool = False
) -> Normaliser:
    """lm-eval's normalisation: delete each regex, then lower, then delete punctuation and digits.

    >>> normaliser(("(?s).*#### ", r"\\.$"), numbers=True)(["so #### 4 apples.", "4 pears"])
    [' apples', ' pears']
    """
    deleted = (string.punctuation if punctuation else "") + (string.digits if numbers else "")
    steps = [_make_remover(regex) for regex in regexes]
    steps += [_lower] if case else []
    steps += [_make_deleter(deleted)] if deleted else []
    return lambda texts: reduce(lambda done, step: step(done), steps, texts)


def _lower(texts: Texts) -> Texts:
    return [text.lower() for text in texts]


def _make_deleter(characters: str) -> Normaliser:
    table = str.maketrans("", "", characters)
    return lambda texts: [text.translate(table) for text in texts]


def _make_remover(pattern: str) -> Normaliser:
    """``re.sub(pattern, "", text)``, applied only to texts that contain what every match must contain."""
    sub = compile_pattern(pattern, "a regex in regexes_to_ignore").sub
    needed, whole = required_text(pattern)
    if whole:
        return lambda texts: [text.replace(needed, "") for text in texts]
    if needed:
        return lambda texts: [sub("", text) if needed in text else text for text in texts]
    return lambda texts: [sub("", text) for text in texts]


def required_text(pattern: str) -> tuple[str, bool]:
    """A text that is in every match of a regex ("" if in doubt), and whether the regex is just that text.

    >>> required_text(r"\\$"), required_text("(?s).*#### "), required_text("yes|no")
    (('$', True), ('#### ', False), ('', False))
    """
    marks = [_read_token(token) for token in PATTERN_TOKEN.findall(pattern.removeprefix("(?s)"))]
    if None in marks:
        return "", False
    runs = [""]
    for mark in marks:
        if mark in ("*", "?"):
            runs[-1] = runs[-1][:-1]
        if mark in GAPS:
            runs.append("")
        else:
            runs[-1] += str(mark)[-1]
    return max(runs, key=len), len(runs) == 1


GAPS = frozenset(["*", "?", "+", ".", "^", "$", *(f"\\{letter}" for letter in "dDwWsSbBAZ")])


def _read_token(token: str) -> str | None:
    """Read one token of a regex; None if only a real parser would understand it."""
    if token in GAPS:
        return token
    if token in set("|[](){}\\") or (token[0] == "\\" and token[1].isalnum()):
        return None
    return token


def answer_words(text: str, *, articles: bool = False) -> list[str]:
    """SQuAD's normal form as words: lower case, no punctuation, no articles (unless ``articles``).

    >>> answer_words("The  Eiffel Tower!"), answer_words("A.", articles=True)
    (['eiffel', 'tower'], ['a'])
    """
    bare = text.lower().translate(PUNCTUATION)
    return (bare if articles else ARTICLES.sub(" ", bare)).split()


def edit_distance(a: str, b: str) -> int:
    """Levenshtein distance; one column per character of ``b``, all rows at once as bits of an integer.

    >>> edit_distance("kitten", "sitting"), edit_distance("", "abc")
    (3, 3)
    """
    # Myers 1999 in Hyyro's form: `up` and `down` hold where a cell is 1 more or less than the one above it.
    rows = len(a)
    everywhere = (1 << rows) - 1
    places: dict[str, int] = {}
    for i, letter in enumerate(a):
        places[letter] = places.get(letter, 0) | 1 << i
    up, down, distance = everywhere, 0, rows
    for letter in b:
        here = places.get(letter, 0) | down
        same = (((here & up) + up) ^ up) | here
        right, left = down | ~(same | up) & everywhere, same & up
        distance += (right >> rows - 1 & 1) - (left >> rows - 1 & 1) if rows else 1
        right, left = right << 1 | 1, left << 1
        up, down = (left | ~(same | right)) & everywhere, right & same & everywhere
    return distance


# --- golds ----------------------------------------------------------------------------------------------------------

ScorePairs = Callable[[Texts, Texts], Sequence[float]]
"""Scores of many (prediction, gold) pairs at once."""


def best_over_golds(batch: GenBatch, score: ScorePairs) -> Floats | Marks:
    """The best score of each document over its golds; a document without a gold is unscorable.

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["a", "b"], [("b", "a"), ()])
    >>> best_over_golds(batch, lambda predictions, golds: [p == g for p, g in zip(predictions, golds)])
    Marks(rows=Floats(values=Array([ 1., nan])), missing={1: (1, 'expected a gold answer, got none')})
    """
    counts = list(map(len, batch.golds))
    if counts.count(1) == len(counts):
        only = [gold for (gold,) in batch.golds]
        return Floats(frozen(np.array(score(batch.predictions, only), dtype=np.float64)))
    sizes = np.array(counts, dtype=np.int64)
    known = sizes > 0
    values = np.full(len(sizes), nan)
    if known.any():
        repeated = [text for text, n in zip(batch.predictions, counts, strict=True) for _ in range(n)]
        flat = np.array(score(repeated, list(chain.from_iterable(batch.golds))), dtype=np.float64)
        values[known] = np.maximum.reduceat(flat, (np.cumsum(sizes) - sizes)[known])
    return only_where(known, Floats(frozen(values)), NO_GOLD)


def each_pair(score: Callable[[str, str], float], predictions: Texts, golds: Texts) -> list[float]:
    """Score pairs one by one, for scores that gain nothing from seeing many at once.

    >>> each_pair(lambda prediction, gold: float(gold in prediction), ["it is 4", "5"], ["4", "4"])
    [1.0, 0.0]
    """
    return list(map(score, predictions, golds))


MOST_PAIRS = 1_000_000_000
"""The most pairs of characters, one said and one of a gold, that a metric looks at which compares all with all."""


def best_within_limit(batch: GenBatch, score: Callable[[str, str], float], most: int = MOST_PAIRS) -> Floats | Marks:
    """The best score over golds, for scores that compare all with all: texts of too many pairs are unscorable."""
    far = {
        i: (UNSCORABLE, reason)
        for i, (text, golds) in enumerate(zip(batch.predictions, batch.golds, strict=True))
        if (reason := find_excess(text, golds, most))
    }
    if not far:
        return best_over_golds(batch, partial(each_pair, score))
    texts = ["" if i in far else text for i, text in enumerate(batch.predictions)]
    made = best_over_golds(replace(batch, predictions=texts), partial(each_pair, score))
    marks = made if isinstance(made, Marks) else Marks(made, {})
    return Marks(marks.rows, {**marks.missing, **far})


def find_excess(text: str, golds: Texts, most: int = MOST_PAIRS) -> str:
    """Say by how much texts are too long to compare all with all; nothing if they are not.

    >>> find_excess("a" * 10**6, ["b" * 2000]), find_excess("a", ["b"])
    ('expected at most 1,000,000,000 pairs of characters (said × gold), got 1,000,000 × 2,000', '')
    """
    said, wanted = len(text), sum(map(len, golds))
    if said * wanted <= most:
        return ""
    return f"expected at most {most:,} pairs of characters (said × gold), got {said:,} × {wanted:,}"
