"""ROUGE: the F-measure of what two texts have in common, to the bit as rouge-score gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise

from evalcore.core.answers.text import GenBatch
from evalcore.core.metrics.metric import Marks
from evalcore.core.metrics.normalise import best_over_golds, best_within_limit, each_pair, refuse_unknown
from evalcore.core.records.errors import require
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats

Words = Sequence[str]
Read = Callable[[str], Words]

BREAKS = bytes(code if code < 128 and chr(code).isalnum() else ord(" ") for code in range(256))
"""Every byte that is no letter or digit to a space."""

STRIP = 4096
"""Words whose places are bits of one integer: strip by strip, memory grows with the length of a text."""

MOST = 100_000_000_000
"""The most pairs of characters for longest common subsequences, which take words, thousands at a time."""

STORED = 256
"""Columns kept at once on the way back through a table; the others are computed again from every such column."""


def rouge1(batch: GenBatch, options: Options) -> Floats | Marks:
    """The F-measure of common words.

    >>> from evalcore.core.answers.text import make_texts
    >>> rouge1(make_texts(["sat the cat"], ["the cat sat"]), {}).values      # in any order
    Array([1.])
    """
    return best_over_golds(batch, partial(each_pair, _choose("rouge1", _count_words, options)))


def rouge2(batch: GenBatch, options: Options) -> Floats | Marks:
    """The F-measure of common pairs of words.

    >>> from evalcore.core.answers.text import make_texts
    >>> rouge2(make_texts(["sat the cat"], ["the cat sat"]), {}).values      # one pair of two
    Array([0.5])
    """
    return best_over_golds(batch, partial(each_pair, _choose("rouge2", _count_pairs, options)))


def rougeL(batch: GenBatch, options: Options) -> Floats | Marks:
    """The F-measure of the longest common subsequence of words.

    >>> from evalcore.core.answers.text import make_texts
    >>> rougeL(make_texts(["the cat sat"], [("the cat",)]), {})
    Floats(values=Array([0.8]))
    """
    return best_within_limit(batch, _choose("rougeL", _count_subsequence, options), MOST)


def rougeLsum(batch: GenBatch, options: Options) -> Floats | Marks:
    """The F-measure of the words of each gold line that are in its longest common subsequence with any line said.

    >>> from evalcore.core.answers.text import make_texts
    >>> rougeLsum(make_texts(["he slept\\nthe cat sat"], ["the cat sat\\nhe slept"]), {}).values      # in any order
    Array([1.])
    """
    return best_within_limit(batch, _choose("rougeLsum", _count_lines, options), MOST)


Count = Callable[[Read, str, str], tuple[int, int, int]]
"""How many items a prediction and a gold have in common, how many each has."""


def _choose(name: str, count: Count, options: Options) -> Callable[[str, str], float]:
    """Choose how a text is measured against a gold."""
    refuse_unknown(name, options, ("use_stemmer",))
    return partial(_measure, count, _read_stems if options.get("use_stemmer") else _read_words)


def _measure(count: Count, read: Read, prediction: str, gold: str) -> float:
    common, said, wanted = count(read, prediction, gold)
    if not common:
        return 0.0
    precision, recall = common / said, common / wanted
    return 2 * precision * recall / (precision + recall)


def _read_words(text: str) -> list[str]:
    # The words of the regular expression [a-z0-9]+ in half its time.
    return text.lower().encode("ascii", "replace").translate(BREAKS).decode("ascii").split()


def _read_stems(text: str) -> list[str]:
    stem = _find_stemmer()
    return [stem(word) if len(word) > 3 else word for word in _read_words(text)]


@lru_cache(maxsize=1)
def _find_stemmer() -> Callable[[str], str]:
    return lru_cache(maxsize=1 << 16)(require("nltk.stem.porter", "text").PorterStemmer().stem)


def _count_words(read: Read, prediction: str, gold: str) -> tuple[int, int, int]:
    said, wanted = read(prediction), read(gold)
    return count_common(said, wanted), len(said), len(wanted)


def _count_pairs(read: Read, prediction: str, gold: str) -> tuple[int, int, int]:
    said, wanted = read(prediction), read(gold)
    return count_common(pairwise(said), pairwise(wanted)), len(said) - 1, len(wanted) - 1


def count_common(said: Iterable[Hashable], wanted: Iterable[Hashable]) -> int:
    """How many items two bags share.

    >>> count_common("abca", "aacx")
    3
    """
    left, common = dict(Counter(wanted)), 0  # what a Counter lacks takes it long to find out
    for item in said:
        if number := left.get(item):
            left[item] = number - 1
            common += 1
    return common


def _count_subsequence(read: Read, prediction: str, gold: str) -> tuple[int, int, int]:
    said, wanted = read(prediction), read(gold)
    return find_lcs_length(said, wanted), len(said), len(wanted)


def _count_lines(read: Read, prediction: str, gold: str) -> tuple[int, int, int]:
    said, wanted = ([read(line) for line in text.split("\n")] for text in (prediction, gold))
    left = Counter(chain.from_iterable(said))
    common, number = 0, left.total()
    for line in wanted:
        places = _find_places(line)
        union = 0
        for other in said:
            union |= _read_back(places, len(line), other)
        for word, at in places.items():
            if taken := union & at:
                found = min(taken.bit_count(), left[word])
                left[word] -= found
                common += found
    return common, number, sum(map(len, wanted))


# --- longest common subsequences ----------------------------------------------------------------------------------


def _find_places(words: Words) -> dict[str, int]:
    places: dict[str, int] = {}
    for at, word in enumerate(words):
        places[word] = places.get(word, 0) | 1 << at
    return places


def find_lcs_length(a: Words, b: Words) -> int:
    """The length of the longest common subsequence; all rows of a column at once as bits of an integer.

    >>> find_lcs_length("a b c d".split(), "b x d a".split())
    2
    """
    # Crochemore et al. 2001 in Hyyro's form: a 0 where a cell is 1 more than the cell above it.
    length, carried = 0, [0] * len(a)
    for start in range(0, len(b), STRIP):
        strip = b[start : start + STRIP]
        places, size = _find_places(strip), len(strip)
        column = everywhere = (1 << size) - 1
        for i, word in enumerate(a):
            match = column & places.get(word, 0)
            total = column + match + carried[i]
            carried[i] = total >> size
            column = (total | column - match) & everywhere
        length += size - column.bit_count()
    return length


def _read_back(places: Mapping[str, int], size: int, line: Words) -> int:
    """The places of a longest common subsequence with ``line``, as bits; of several, the one rouge-score reads out."""
    marks = [places.get(word, 0) for word in line]
    columns = [(1 << size) - 1]
    for start in range(0, len(marks) - STORED, STORED):
        columns.append(_list_columns(columns[-1], marks[start : start + STORED])[-1])
    found, left = 0, columns[0]
    for block in reversed(range(len(columns))):
        part = marks[block * STORED : (block + 1) * STORED]
        for mark, column in zip(reversed(part), reversed(_list_columns(columns[block], part)), strict=True):
            # Up to the first place that matches or that is the last of a longer subsequence, then to the column before.
            row = ((mark | ~column) & left).bit_length()
            if not row:
                return found
            left = (1 << row) - 1
            if mark >> row - 1 & 1:
                left >>= 1
                found |= left + 1
    return found


def _list_columns(column: int, marks: Sequence[int]) -> list[int]:
    columns = []
    for mark in marks:
        match = column & mark
        column = column + match | column - match
        columns.append(column)
    return columns
