"""The edits of TER: words inserted, deleted and replaced, and blocks of words shifted, as sacrebleu counts them.

sacrebleu's search is repeated, not improved: its beam, limits and ties decide the count. It fills a table of edit
distances, a row for each word said and a column for each gold word. Here a row is a pair of integers whose bits tell
where a cell is 1 more or 1 less than the cell before it (Myers 1999 in Hyyro's form, inside a moving beam).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

# sacrebleu's limits: half of the beam, how far and how long a shifted block is, how many shifts are tried.
BEAM = 25
FARTHEST = 50
LONGEST = 10
MOST_TRIED = 1000

Row = tuple[int, int, int, int, int]
"""Where cells are 1 more and 1 less than the one before; the first cell; where cells equal the one before and above,
and where they are 1 more than the one above. Bit 0 is the second cell of the beam."""

Shift = tuple[int, int, int]
"""Minus its length, its start, its target: in this order, the first of the best shifts is the one sacrebleu takes."""


class Band(NamedTuple):
    """The beam on the way into a row: from where (``low`` up to ``high``), how far it moves, and masks of its bits."""

    low: int
    high: int
    move: int
    diagonal: int
    right: int
    whole: int


class Alignment(NamedTuple):
    """The number of words said before each gold word, and for each word the distance to the next wrong one."""

    before: list[int]
    said_wrong: list[int]
    gold_wrong: list[int]


def count_edits(said: Sequence[str], gold: Sequence[str]) -> int:
    """The fewest edits found that turn ``said`` into ``gold``; shifting a block of words is one.

    >>> count_edits("c d a b".split(), "a b c d".split()), count_edits(["x"], ["a", "b"])
    (1, 2)
    """
    n, m = len(said), len(gold)
    if not n or not m:
        return max(n, m)
    places: dict[str, int] = {}
    for at, word in enumerate(gold):
        places[word] = places.get(word, 0) | 1 << at
    words = [places.get(word, 0) for word in said]  # what a word is: its places in the gold
    least = max(n, m) - (Counter(said) & Counter(gold)).total()
    bands = _list_bands(n, m)
    rows: list[Row] = [((1 << m) - 1, 0, 0, 0, 0)]
    shifts = tried = changed = 0
    while True:
        rows = [*rows[: changed + 1], *_fill(rows, changed, words[changed:], bands, n + 1)]
        cost = _last_cell(rows[n])
        if cost == least:  # in no order are these words nearer
            return shifts + cost
        # sacrebleu discards the round that reaches its limit, so that round is not even begun.
        candidates = _list_shifts(words, _align(rows, words, bands, m), MOST_TRIED - tried)
        tried += len(candidates)
        best = _find_best(candidates, rows, words, bands, cost - least) if tried < MOST_TRIED else None
        if best is None:
            return shifts + cost
        shifts += 1
        changed, words = best


def _list_bands(n: int, m: int) -> list[Band]:
    """The beam around the diagonal for each row: cells outside it are never reached."""
    ratio = m / n
    width = ceil(ratio / 2 + BEAM) if ratio / 2 > BEAM else BEAM
    if m < width:
        return [Band(0, m + 1, 0, (1 << m) - 1, 0, (1 << m) - 1)] * n
    bands = []
    low, high = 0, m + 1
    for i in range(1, n + 1):
        middle = floor(i * ratio)
        first, end = max(0, middle - width), m + 1 if i == n else min(m + 1, middle + width)
        whole = (1 << end - 1 - low) - 1
        # Matching words help where the cell before and above is inside; right of the beam, cells rise.
        diagonal = (1 << high - low) - (1 << max(first - low - 1, 0))
        bands.append(Band(low, high, first - low, diagonal, whole & -(1 << high - 1 - low), whole))
        low, high = first, end
    return bands


def _fill(rows: Sequence[Row], start: int, words: Sequence[int], bands: Sequence[Band], settled: int) -> list[Row]:
    """The rows after ``start`` for these words, up to one from ``settled`` on that rises and falls as the old one.

    From there on, the old rows are also the new ones, but for a constant.
    """
    new = []
    up, down, first, _, _ = rows[start]
    for i, word in enumerate(words, start):
        low, _, move, diagonal, right, whole = bands[i]
        up |= right
        match = word >> low & diagonal | down
        same = ((match & up) + up ^ up) | match
        above = down | ~(same | up)
        rise = above << 1 | 1
        up, down = ((same & up) << 1 | ~(same | rise)) & whole, rise & same & whole
        first += 1
        if move:
            left = (1 << move) - 1
            first += (up & left).bit_count() - (down & left).bit_count()
            up, down = up >> move, down >> move
        new.append((up, down, first, same, above))
        if i + 1 >= settled and rows[i + 1][:2] == (up, down):
            break
    return new


def _last_cell(row: Row) -> int:
    return row[2] + row[0].bit_count() - row[1].bit_count()


def _align(rows: Sequence[Row], words: Sequence[int], bands: Sequence[Band], m: int) -> Alignment:
    """The way back through the table, from its last cell to its first."""
    i, j = len(words), m
    before, said_wrong, gold_wrong = [0] * (m + 1), [0] * i + [LONGEST], [0] * m + [LONGEST]
    while i and j:
        word = words[i - 1]
        said, gold = _step_back(rows[i], word, bands[i - 1], j)
        if gold:
            before[j] = i
        if said and gold and word >> j - 1 & 1:
            said_wrong[i - 1], gold_wrong[j - 1] = said_wrong[i] + 1, gold_wrong[j] + 1
        i, j = i - said, j - gold
    return Alignment(before, said_wrong, gold_wrong)


def _step_back(row: Row, word: int, band: Band, j: int) -> tuple[int, int]:
    """Words said and gold words that the step into a cell takes; ties as sacrebleu's: both, then said, then gold."""
    if j > band.high:
        return 0, 1
    if j <= band.low:
        return 1, 0
    cell = 1 << j - 1 - band.low
    if word >> j - 1 & 1 or not row[3] & cell:
        return 1, 1
    return (1, 0) if row[4] & cell else (0, 1)


def _list_shifts(words: Sequence[int], alignment: Alignment, limit: int) -> list[Shift]:
    """Every shift that sacrebleu would try, as often as it would, until there are ``limit``."""
    shifts: list[Shift] = []
    for start, word in enumerate(words):
        for gold in _list_near(word, start):
            shortest = max(alignment.said_wrong[start], alignment.gold_wrong[gold]) + 1
            for length in range(shortest, _find_longest(words, start, gold, alignment) + 1):
                shifts += [(-length, start, at) for at in {*alignment.before[gold : gold + length + 1]}]
        if len(shifts) >= limit:
            break
    return shifts


def _list_near(word: int, start: int) -> Iterator[int]:
    """The places of a word near a place."""
    skipped = max(0, start - FARTHEST)
    near = word >> skipped & (1 << start + FARTHEST + 1 - skipped) - 1
    while near:
        yield skipped + (near & -near).bit_length() - 1
        near &= near - 1


def _find_longest(words: Sequence[int], start: int, gold: int, alignment: Alignment) -> int:
    """The most words of a block said at ``start`` that are also at ``gold``, not aligned with that place itself."""
    most = min(LONGEST, len(words) - start)
    inside = alignment.before[gold + 1] - 1 - start
    if inside >= 0:
        most = min(most, inside)
    length = 0
    while length < most and words[start + length] >> gold + length & 1:
        length += 1
    return length


def _find_best(
    shifts: Sequence[Shift], rows: Sequence[Row], words: list[int], bands: Sequence[Band], most: int
) -> tuple[int, list[int]] | None:
    """Where the shift that saves the most edits (at most ``most``) begins, and the words after it."""
    best, found = 0, None
    for length, start, target in sorted({*shifts}):
        first, last, moved = _shift(words, start, start - length, target)
        new = _fill(rows, first, moved, bands, last)
        gain = _last_cell(rows[first + len(new)]) - _last_cell(new[-1])
        if gain > best:
            best, found = gain, (first, words[:first] + moved)
        if best == most:
            break
    return found


def _shift(words: list[int], start: int, end: int, target: int) -> tuple[int, int, list[int]]:
    """The first word that a shift changes, the last, and the words from the first on."""
    if target < start:
        return target, end, words[start:end] + words[target:start] + words[end:]
    after = target if target > end else target + end - start
    return start, after, words[end:after] + words[start:end] + words[after:]
