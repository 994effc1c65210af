"""The golds of a table whose choices are numbers: indices or texts of choices, the same in all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import MULTIPLE_CHOICE, Gold
from evalcore.shell.logs.lm_eval.golds import Targets, read_both_ways, resolve_gold
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.tables.cells import read_choices, read_gold
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.logs.tables.table_rows import TableRow

OPEN = "golds and choices are numbers, and no row settles whether golds are indices (from 0) or texts of choices: "
AS_INDICES = 'they are taken as indices; write them as texts ("1") if they are texts'
AS_TEXTS = "they are taken as texts; write JSON lines with golds as numbers if they are indices"


def settle_golds(
    rows: Iterable[TableRow | Problem], mapping: ColumnMap, *, text: bool = False
) -> tuple[Targets | None, str]:
    """Settle how numeric golds are read in all rows, None if that is plain; and return a warning if it is a guess.

    The reading that more rows require wins. In a tie numbers are indices, but in a ``text`` (CSV), where all cells are
    texts, they are texts; the warning is given if this makes a difference.

    >>> from evalcore.shell.logs.json_records import Record
    >>> rows = [TableRow(Record(1, 0, b""), {"c": c, "g": g}) for c, g in (([1, 0], 0), ([2, 5], 5))]
    >>> mapping = ColumnMap(gold="g", choices="c")
    >>> settle_golds(rows, mapping) == (Targets(MULTIPLE_CHOICE), ""), settle_golds(rows[:1], mapping)[0].kind
    (True, <class 'int'>)
    """
    indices = texts = 0
    differ = False
    for at, (gold, choices) in enumerate(_given(rows, mapping)):
        if not at and not ((text or is_number(gold)) and any(one.strip().lstrip("-").isdecimal() for one in choices)):
            return None, ""  # a text is what it says, and of choices that are words, a number is the index
        for one in gold if isinstance(gold, tuple) else (gold,):
            index, place = read_both_ways(str(one), choices)
            indices += place is None and index is not None
            texts += index is None and place is not None
            differ = differ or (None not in (index, place) and index != place)
    as_indices = indices > texts or (indices == texts and not text)
    told = OPEN + (AS_INDICES if as_indices else AS_TEXTS) if differ and indices == texts else ""
    return Targets(MULTIPLE_CHOICE, int if as_indices else None), told


def _given(rows: Iterable[TableRow | Problem], mapping: ColumnMap) -> Iterator[tuple[Gold, tuple[str, ...]]]:
    """The golds and choices of the rows that have both."""
    for one in rows:
        with suppress(EvalError):
            cells = one.cells if isinstance(one, TableRow) else {}
            gold, choices = read_gold(cells.get(str(mapping.gold))), cells.get(str(mapping.choices))
            if gold is not None and choices is not None:
                yield gold, read_choices(choices)


def is_number(gold: Gold) -> bool:
    """Whether a gold is a number, or several.

    >>> is_number(4), is_number((4, 5)), is_number("4")
    (True, True, False)
    """
    return type(gold[0] if isinstance(gold, tuple) else gold) is int


def choose_gold(gold: Gold, choices: tuple[str, ...], settled: Targets | None) -> Gold:
    """Find the index of the choice that a gold names, or those of several.

    >>> choose_gold(5, ("2", "5"), Targets(MULTIPLE_CHOICE)), choose_gold((1, 0), ("1", "0"), None)
    (1, (1, 0))
    """
    if settled is None or gold is None:
        return resolve_gold(Targets(MULTIPLE_CHOICE), gold, choices)
    return resolve_gold(settled, tuple(map(str, gold)) if isinstance(gold, tuple) else str(gold), choices)
