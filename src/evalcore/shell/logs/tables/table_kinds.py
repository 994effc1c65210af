"""What log-likelihoods of a plain table are of: of choices, or of one text in each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD, MULTIPLE_CHOICE, Failure, OutputType
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.tables.cells import read_failure, read_numbers
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.logs.tables.table_rows import TableRow

USUAL: Mapping[OutputType, tuple[str, ...]] = {LOGLIKELIHOOD: ("perplexity",), MULTIPLE_CHOICE: ("acc",)}
"""The usual metrics that need no more than log-likelihoods: no lengths of choices, no greedy decoding."""


def find_kind(rows: Iterable[TableRow | Problem], mapping: ColumnMap) -> OutputType:
    """Find what kind of answers a table has: texts, or log-likelihoods as in its first row with an answer."""
    if mapping.loglikelihoods is None:
        return GENERATE_UNTIL
    answered = (one for one in rows if isinstance(one, TableRow) and not find_failure(one, mapping))
    return find_likelihoods(next(answered, None), mapping)


def find_failure(row: TableRow, mapping: ColumnMap) -> Failure | None:
    """Find why a row has no answer, if its column of errors says so."""
    return None if mapping.error is None else read_failure(row.cells.get(mapping.error))


def find_likelihoods(first: TableRow | None, mapping: ColumnMap) -> OutputType:
    """Find what log-likelihoods are of, from the first row: one without choices is that of a text.

    >>> from evalcore.shell.logs.json_records import Record
    >>> row = TableRow(Record(1, 0, b""), {"one": [-1.5], "all": [-1.5, -2.0], "c": ["a"]})
    >>> [find_likelihoods(row, ColumnMap(loglikelihoods=name)) for name in ("one", "all")]
    ['loglikelihood', 'multiple_choice']
    >>> find_likelihoods(row, ColumnMap(loglikelihoods="one", choices="c"))
    'multiple_choice'
    """
    if first is None or mapping.choices is not None:
        return MULTIPLE_CHOICE
    try:
        found = read_numbers(first.cells.get(mapping.loglikelihoods or ""), alone=mapping.alone)
        return LOGLIKELIHOOD if len(found) == 1 else MULTIPLE_CHOICE
    except EvalError:  # reported where the row is read
        return MULTIPLE_CHOICE


def expect_likelihoods(kind: OutputType, count: int, mapping: ColumnMap) -> None:
    """Refuse a row with one log-likelihood among rows with several, or the other way round.

    >>> expect_likelihoods(MULTIPLE_CHOICE, 1, ColumnMap(loglikelihoods="lls"))
    Traceback (most recent call last):
    evalcore.EvalError: expected several log-likelihoods under 'lls', as in the first row, got 1; name the choices ...
    """
    if mapping.loglikelihoods is None or mapping.choices is not None or (kind == LOGLIKELIHOOD) is (count == 1):
        return
    many = "one log-likelihood" if kind == LOGLIKELIHOOD else "several log-likelihoods"
    raise EvalError(
        f"expected {many} under {mapping.loglikelihoods!r}, as in the first row, got {count}; name the choices "
        "(--choices) if rows have different numbers of them"
    )
