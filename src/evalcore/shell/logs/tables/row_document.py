"""The rows of a document in a plain table as what was asked, answered and scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, Gold, LogLikelihood, OutputType, Reply, Request
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.logs.log import Logged
from evalcore.shell.logs.tables.cells import (
    read_answers,
    read_choices,
    read_gold,
    read_numbers,
    read_score,
    read_unit,
)
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.logs.tables.table_golds import choose_gold, is_number
from evalcore.shell.logs.tables.table_kinds import expect_likelihoods, find_failure
from evalcore.shell.logs.tables.table_rows import TableRow, encode_cells

T = TypeVar("T")


def read_id(row: TableRow, column: str) -> int | str:
    """Read the id of a row, which must have one."""
    found = read_unit(row.cells.get(column), "id")
    if found is None or found == "":
        raise EvalError(f"expected an id under {column!r}, got nothing")
    return found


def make_document(
    number: int, rows: Sequence[TableRow], mapping: ColumnMap, settled: Targets | None, kind: OutputType
) -> Logged:
    """Make a document of its rows: one, or one per repeat."""
    ordered = _in_order(rows, mapping)
    first = ordered[0].cells
    columns = list_columns(mapping)
    if not all(columns <= one.cells.keys() for one in ordered):
        missing = next(name for name in mapping.columns for one in ordered if name not in one.cells)
        raise EvalError(f"expected a column {missing!r}, got {', '.join(map(str, first))}")
    if mapping.task is not None and read_unit(first[mapping.task], "task") is None:
        raise EvalError(f"expected the name of a task under {mapping.task!r}, got nothing")
    choices = _read(read_choices, first, mapping.choices) if mapping.choices is not None else ()
    replies = _replies(ordered, mapping, len(choices))
    made = Logged(
        doc_id=number,
        doc=encode_cells(first),
        gold=_gold(ordered, mapping, choices, settled),
        choices=choices,
        requests=_requests(ordered[0], mapping, choices, len(replies)),
        replies=replies,
        id=read_id(ordered[0], mapping.id) if mapping.id is not None else None,
        cluster=read_unit(first[mapping.cluster], "cluster") if mapping.cluster is not None else None,
        scores=_scores(ordered, mapping, replies),
        line=ordered[0].at.line,
    )
    if mapping.loglikelihoods is not None and not has_failed(made):
        expect_likelihoods(kind, len(replies), mapping)
    return made


@lru_cache(maxsize=16)
def list_columns(mapping: ColumnMap) -> frozenset[str]:
    """List the declared columns: once, not for every row."""
    return frozenset(mapping.columns)


def has_failed(made: Logged) -> bool:
    """Whether a document has no answer at all."""
    return bool(made.replies) and all(isinstance(one, Failure) for replies in made.replies for one in replies)


def _in_order(rows: Sequence[TableRow], mapping: ColumnMap) -> Sequence[TableRow]:
    """The repeats in the order of their numbers, each of which must occur once."""
    if mapping.repeat is None:
        return rows
    numbers = [str(one.cells.get(mapping.repeat)) for one in rows]
    if len(set(numbers)) < len(numbers):
        raise EvalError(f"expected each repeat once under {mapping.repeat!r}, got {', '.join(numbers)[:60]}")
    return sorted(rows, key=lambda one: _rank(str(one.cells.get(str(mapping.repeat)))))


def _rank(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isascii() and text.isdigit() and len(text) < 19 else (-1, text)


def _gold(rows: Sequence[TableRow], mapping: ColumnMap, choices: tuple[str, ...], settled: Targets | None) -> Gold:
    """The gold, which all repeats must share."""
    if mapping.gold is None:
        return None
    found = [_read(read_gold, one.cells, mapping.gold) for one in rows]
    if any(one != found[0] for one in found):
        raise EvalError(f"expected one gold for all repeats, got {found[0]!r} and others")
    gold = found[0]
    if mapping.loglikelihoods is None and (settled is None or not is_number(gold)):
        # A number is the text of an answer, unless there are choices that it may be the index of.
        return str(gold) if type(gold) is int and not choices else gold
    golds = choose_gold(gold, choices, settled)
    return int(golds) if not choices and isinstance(golds, str) and golds.isdecimal() else golds


def _replies(rows: Sequence[TableRow], mapping: ColumnMap, choices: int) -> tuple[tuple[Reply, ...], ...]:
    """One request with a reply per repeat, or one request per choice with a log-likelihood per repeat."""
    if mapping.loglikelihoods is not None:
        given = [find_failure(one, mapping) or _read_numbers(one, mapping) for one in rows]
        width = max((len(one) for one in given if isinstance(one, tuple)), default=choices or 1)
        numbers = [one if isinstance(one, tuple) else (one,) * width for one in given]
        if len({len(one) for one in numbers}) > 1:
            raise EvalError("expected as many log-likelihoods in each repeat")
        return tuple(zip(*numbers, strict=True))
    if mapping.answer is None:
        return ()
    if mapping.error is None and len(rows) == 1:
        return (_read(read_answers, rows[0].cells, mapping.answer),)
    return (tuple(reply for one in rows for reply in _read_replies(one, mapping, mapping.answer)),)


def _read_replies(row: TableRow, mapping: ColumnMap, column: str) -> tuple[Reply, ...]:
    failure = find_failure(row, mapping)
    return (failure,) if failure else _read(read_answers, row.cells, column)


def _read_numbers(row: TableRow, mapping: ColumnMap) -> tuple[Reply, ...]:
    column = mapping.loglikelihoods or ""
    return _read(lambda cell: read_numbers(cell, alone=mapping.alone), row.cells, column)


def _requests(row: TableRow, mapping: ColumnMap, choices: Sequence[str], count: int) -> tuple[Request, ...]:
    prompt = str(row.cells[mapping.prompt]) if mapping.prompt is not None else ""
    if mapping.loglikelihoods is not None:
        if choices and len(choices) != count:
            raise EvalError(f"expected a log-likelihood for each of {len(choices)} choices, got {count}")
        return tuple(LogLikelihood(prompt, one) for one in choices or [""] * count)
    return (Generate(prompt),) if count else ()


def _scores(rows: Sequence[TableRow], mapping: ColumnMap, replies: Sequence[Sequence[Reply]]) -> Mapping[str, object]:
    return {f"{name},none": _score(rows, name, replies) for name in mapping.scores}


def _score(rows: Sequence[TableRow], column: str, replies: Sequence[Sequence[Reply]]) -> object:
    found: list[float | None] = []
    listed = len(rows) > 1
    for one in rows:
        score = _read(read_score, one.cells, column)
        listed = listed or isinstance(score, list)
        found += score if isinstance(score, list) else [score]
    if listed and found and replies and len(found) != len(replies[0]):
        raise EvalError(f"expected a score for each of {len(replies[0])} repeats, got {len(found)}")
    return tuple(found) if len(found) > 1 else found[0] if found else None


def _read(read: Callable[[object], T], cells: Mapping[str, object], column: str) -> T:
    """Read a cell; an error names its column."""
    try:
        return read(cells[column])
    except EvalError as wrong:
        raise EvalError(f"{wrong} under {column!r}") from wrong
