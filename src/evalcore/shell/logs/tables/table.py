"""Plain tables with declared columns as tasks: every row a document, or rows of one id its repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    Generate,
    Gold,
    LogLikelihood,
    OutputType,
    Reply,
    Request,
)
from evalcore.shell.data.unpack import strip_packing
from evalcore.shell.logs.head import FileHead, LogFile
from evalcore.shell.logs.json_records import locate_problem
from evalcore.shell.logs.lm_eval.golds import Targets
from evalcore.shell.logs.log import Logged, LogTask, Opening, Problem, Reader
from evalcore.shell.logs.tables.cells import (
    read_answers,
    read_choices,
    read_gold,
    read_numbers,
    read_score,
    read_unit,
)
from evalcore.shell.logs.tables.column_map import ColumnMap, check_columns
from evalcore.shell.logs.tables.table_golds import choose_gold, is_number, settle_golds
from evalcore.shell.logs.tables.table_kinds import USUAL, expect_likelihoods, find_likelihoods
from evalcore.shell.logs.tables.table_rows import FORMS, TableRow, encode_cells, may_be_table, read_table
from evalcore.shell.logs.tables.table_tasks import split_tasks, weigh_row
from evalcore.shell.logs.units.table_unit import cut_table

GATHERED = 64 << 20
"""Up to this size, unpacked, the repeats of a document may stand anywhere; beyond it they must be adjacent."""

Rows = Iterator[TableRow | Problem]


def recognise_table(head: FileHead) -> bool:
    """Whether a file has the form of a table."""
    return head.form in FORMS


def open_table(files: Sequence[LogFile], opening: Opening) -> list[LogTask]:
    """Open the task of a table, or one task for each value of its task column, which takes a pass over the table."""
    file, mapping = files[0], opening.columns or ColumnMap()
    path = file.path
    read = partial(read_table, path, file.form, mapping)
    first = next((one for one in read() if isinstance(one, TableRow)), None)
    if first is not None:
        check_columns(mapping, first.cells.keys(), f"{path}:{first.at.line}")
    whole = Path(strip_packing(path.name)).stem
    parts = {whole: read} if mapping.task is None or first is None else split_tasks(read, mapping.task)
    kind = GENERATE_UNTIL if mapping.loglikelihoods is None else find_likelihoods(first, mapping)
    return [_task(name, file, kind, mapping, rows) for name, rows in parts.items()]


def _task(name: str, file: LogFile, kind: OutputType, mapping: ColumnMap, rows: Callable[[], Rows]) -> LogTask:
    settled, told = None, ""
    if mapping.gold is not None and mapping.choices is not None:
        settled, told = settle_golds(rows(), mapping, text=file.form == "text" and mapping.loglikelihoods is not None)
    documents = partial(_documents, file.path, mapping, rows, settled, kind)
    warnings = (f"{name}: {told}",) if told else ()
    return LogTask(
        name=name,
        path=file.path,
        output_type=kind,
        rows=documents,
        usual=USUAL[kind] if mapping.choices is None and mapping.loglikelihoods is not None else (),
        warnings=warnings,
        written=mapping.written,
        cut=cut_table(file, mapping, partial(_documents, file.path, mapping, settled=settled, kind=kind)),
    )


def has_columns(file: LogFile, mapping: ColumnMap) -> bool:
    """Whether the first row of a table has all declared columns; a damaged table without readable rows may."""
    one: TableRow | Problem | None = None
    for one in read_table(file.path, file.form, mapping):
        if isinstance(one, TableRow):
            return one.cells.keys() >= set(mapping.columns)
    return one is not None and may_be_table(file, mapping)


TABLE = Reader(
    recognises=recognise_table, opens=open_table, order=100, title="a table", tabular=True, has_columns=has_columns
)


def _documents(
    path: Path, mapping: ColumnMap, rows: Callable[[], Rows], settled: Targets | None, kind: OutputType
) -> Iterator[Logged | Problem]:
    """The documents of one task, numbered in their order."""
    seen: set[int | str] = set()
    number = 0
    for group in _grouped(path, mapping, rows()):
        if isinstance(group, Problem):
            yield group
            continue
        try:
            made = _logged(number, group, mapping, settled)
            expect_likelihoods(kind, len(made.replies), mapping)
            if made.id is not None and made.id in seen:
                raise EvalError(_twice(made.id, mapping))
        except EvalError as wrong:
            yield locate_problem(path, group[0].at, wrong)
            continue
        if made.id is not None:
            seen.add(made.id)
        number += 1
        yield made


def _twice(name: object, mapping: ColumnMap) -> str:
    if mapping.repeat is None:
        return f"expected each id once, got {name!r} again; if rows are repeats, name the column that counts (--repeat)"
    return f"expected the repeats of {name!r} one after another in a file of this size, got more; sort it by id"


# --- repeats --------------------------------------------------------------------------------------------------------


def _grouped(path: Path, mapping: ColumnMap, rows: Rows) -> Iterator[list[TableRow] | Problem]:
    """The rows of each document: one, or all that share an id."""
    if mapping.repeat is None:
        yield from (one if isinstance(one, Problem) else [one] for one in rows)
        return
    size = 0
    groups: dict[int | str, list[TableRow]] = {}
    for one in rows:
        if isinstance(one, Problem):
            yield one
            continue
        try:
            name = _id(one, mapping.id or "")
        except EvalError as wrong:
            yield locate_problem(path, one.at, wrong)
            continue
        size += weigh_row(one)
        if size > GATHERED and name not in groups:
            yield from groups.values()
            groups = {}
        groups.setdefault(name, []).append(one)
    yield from groups.values()


def _id(row: TableRow, column: str) -> int | str:
    found = read_unit(row.cells.get(column), "id")
    if found is None or found == "":
        raise EvalError(f"expected an id under {column!r}, got nothing")
    return found


# --- documents ------------------------------------------------------------------------------------------------------


def _logged(number: int, rows: Sequence[TableRow], mapping: ColumnMap, settled: Targets | None) -> Logged:
    ordered = _in_order(rows, mapping)
    first = ordered[0].cells
    missing = [name for name in mapping.columns for one in ordered if name not in one.cells]
    if missing:
        raise EvalError(f"expected a column {missing[0]!r}, got {', '.join(map(str, first))}")
    if mapping.task is not None and read_unit(first[mapping.task], "task") is None:
        raise EvalError(f"expected the name of a task under {mapping.task!r}, got nothing")
    choices = read_choices(first[mapping.choices]) if mapping.choices is not None else ()
    replies = _replies(ordered, mapping)
    return Logged(
        doc_id=number,
        doc=encode_cells(first),
        gold=_gold(ordered, mapping, choices, settled),
        choices=choices,
        requests=_requests(ordered[0], mapping, choices, len(replies)),
        replies=replies,
        id=_id(ordered[0], mapping.id) if mapping.id is not None else None,
        cluster=read_unit(first[mapping.cluster], "cluster") if mapping.cluster is not None else None,
        scores=_scores(ordered, mapping, replies),
        line=ordered[0].at.line,
    )


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
    found = [read_gold(one.cells[mapping.gold]) for one in rows]
    if any(one != found[0] for one in found):
        raise EvalError(f"expected one gold for all repeats, got {found[0]!r} and others")
    gold = found[0]
    if mapping.loglikelihoods is None and (settled is None or not is_number(gold)):
        # A number is the text of an answer, unless there are choices that it may be the index of.
        return str(gold) if type(gold) is int and not choices else gold
    golds = choose_gold(gold, choices, settled)
    return int(golds) if not choices and isinstance(golds, str) and golds.isdecimal() else golds


def _replies(rows: Sequence[TableRow], mapping: ColumnMap) -> tuple[tuple[Reply, ...], ...]:
    """One request with a reply per repeat, or one request per choice with a log-likelihood per repeat."""
    if mapping.loglikelihoods is not None:
        numbers = [read_numbers(one.cells[mapping.loglikelihoods], alone=mapping.alone) for one in rows]
        if len({len(one) for one in numbers}) > 1:
            raise EvalError("expected as many log-likelihoods in each repeat")
        return tuple(zip(*numbers, strict=True))
    if mapping.answer is None:
        return ()
    return (tuple(reply for one in rows for reply in read_answers(one.cells[mapping.answer])),)


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
        score = read_score(one.cells.get(column))
        listed = listed or isinstance(score, list)
        found += score if isinstance(score, list) else [score]
    if listed and found and replies and len(found) != len(replies[0]):
        raise EvalError(f"expected a score for each of {len(replies[0])} repeats, got {len(found)}")
    return tuple(found) if len(found) > 1 else found[0] if found else None
