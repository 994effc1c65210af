"""A file as documents whose columns have names that templates can use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.csv_files import read_csv
from evalcore.shell.data.readers import DATA_READERS, choose_reader, read_files
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.files.given import parse_path

Doc = Mapping[str, object]
SEPARATORS = (",", ";", "\t", "|")
SHEETS = frozenset({".xlsx", ".xls", ".xlsm", ".ods", ".numbers"})
LONGEST_HEAD = 1 << 20
MOST_FIELDS, MOST_LEVELS = 50, 5
"""Keys of an object that are columns (one with more is data, such as a score for each word), and how deep."""
CUTS = ("|", ";", "\n")
RESERVED = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "elif", "for", "true", "false", "none", "True", "False", "None"}
    | {"self", "loop", "super", "caller", "varargs", "kwargs"}
)
"""Words that mean something else in a template."""


def read_table(path: Path) -> tuple[dict[str, object], ...]:
    """Read the rows of a file, a CSV by whatever separates its header.

    What spreadsheets add is left out: empty rows, empty columns without a name, carriage returns at ends of lines.
    The fields of objects become columns of their own: ``input.question``.
    """
    if parse_path(path).is_dir():
        raise EvalError(f"{path}: expected a file of questions (JSONL, JSON, CSV, TSV, Parquet), got a folder")
    if path.suffix.lower() in SHEETS:
        raise EvalError(f"{path}: a spreadsheet cannot be read; save its sheet as CSV (UTF-8), and take that file")
    if choose_reader(path) is DATA_READERS[".csv"]:
        docs: Sequence[Doc] = read_csv(path, find_dialect(_read_head(path)))
    else:
        docs = flatten_objects(read_files([parse_path(path)], {}))
    rows = [{key: _mend_lines(cell) for key, cell in doc.items()} for doc in docs if any(map(_is_filled, doc.values()))]
    if not rows or not rows[0]:
        raise EvalError(f"{path}: expected rows under a header, or one JSON object a line, found none")
    unnamed = [name for name in rows[0] if re.fullmatch(r"Unnamed: [0-9]+", name)]
    empty = {name for name in unnamed if not any(_is_filled(row.get(name)) for row in rows)}
    return tuple({key: cell for key, cell in row.items() if key not in empty} for row in rows)


def count_header(path: Path) -> int:
    """The rows above the data: a CSV has one."""
    return int(choose_reader(path) is DATA_READERS[".csv"])


def flatten_objects(docs: Sequence[Doc]) -> Sequence[Doc]:
    """Objects as columns of their fields, however deep; choices with their labels, and objects of many keys, stay.

    >>> flatten_objects([{"in": {"q": "Why?"}, "id": 1}, {"in": None, "id": 2}])
    ({'in.q': 'Why?', 'id': 1}, {'in.q': None, 'id': 2})
    """
    for _ in range(MOST_LEVELS):
        parted = _find_fields(docs)
        docs = tuple(_part_objects(doc, parted) for doc in docs) if parted else docs
    return docs


def _find_fields(docs: Sequence[Doc]) -> dict[str, tuple[str, ...]]:
    """The columns that hold nothing but objects, with the fields of all of them."""
    fields: dict[str, dict[str, None]] = {}
    others: set[str] = set()
    for doc in docs:
        for key, cell in doc.items():
            if isinstance(cell, Mapping) and not isinstance(cell.get("text"), list | tuple):
                fields.setdefault(key, {}).update(dict.fromkeys(cell))
            elif cell is not None:
                others.add(key)
    few = {key: tuple(found) for key, found in fields.items() if 0 < len(found) <= MOST_FIELDS and key not in others}
    return {key: found for key, found in few.items() if others.isdisjoint(f"{key}.{name}" for name in found)}


def _part_objects(doc: Doc, parted: Mapping[str, Sequence[str]]) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, cell in doc.items():
        inner = cell if isinstance(cell, Mapping) else {}
        out |= {f"{key}.{name}": inner.get(name) for name in parted[key]} if key in parted else {key: cell}
    return out


def _read_head(path: Path) -> str:
    with open_bytes(path) as file:
        return file.readline(LONGEST_HEAD).decode("utf-8-sig", "replace")


def find_dialect(head: str) -> dict[str, object]:
    r"""How a CSV is to be read, by its first line: what separates most of its names, or what Excel says there.

    >>> find_dialect("question;answer (yes, no);id"), find_dialect("sep=|\n"), find_dialect('"question, or text"')
    ({'sep': ';'}, {'sep': '|', 'skiprows': 1}, {'sep': ','})
    """
    if (said := re.fullmatch(r'"?sep=(.)"?\s*', head)) is not None:
        return {"sep": said[1], "skiprows": 1}
    bare = re.sub(r'"[^"]*"', "", head)
    return {"sep": max(SEPARATORS, key=bare.count)}


def _is_filled(cell: object) -> bool:
    return cell is not None and cell != ""


def _mend_lines(cell: object) -> object:
    return cell.replace("\r\n", "\n") if isinstance(cell, str) else cell


def name_safely(columns: Iterable[str]) -> dict[str, str]:
    """Give each column a name that a template can use: its own, if that is one.

    >>> name_safely(["question", "Right answer?", "Right answer!", "2nd", "for", "a.b", "вопрос"])
    {'question': 'question', 'Right answer?': 'Right_answer', 'Right answer!': 'Right_answer_2', '2nd': 'c_2nd',
     'for': 'c_for', 'a.b': 'a_b', 'вопрос': 'вопрос'}
    """
    given = list(columns)
    out = {name: name for name in given if _is_name(name)}
    for name in given:
        if name in out:
            continue
        base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:60] or "column"
        base = base if _is_name(base) else f"c_{base}"
        number, unique = 1, base
        while unique in out.values():
            number += 1
            unique = f"{base}_{number}"
        out[name] = unique
    return {name: out[name] for name in given}


def _is_name(name: str) -> bool:
    return name.isidentifier() and name not in RESERVED and not name.startswith("__") and len(name) <= 100


def split_choices(cell: object) -> tuple[str, ...] | None:
    """The choices in a cell: a list, a list written as JSON, or texts between bars, semicolons or line ends.

    >>> split_choices(["a", 2]), split_choices('["a", "b"]'), split_choices("a | b"), split_choices("a")
    (('a', '2'), ('a', 'b'), ('a', 'b'), None)
    """
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = msgspec.json.decode(cell)
        except (ValueError, RecursionError):
            return None
    if isinstance(cell, Mapping):
        cell = cell.get("text")
    if isinstance(cell, str):
        cut = next((one for one in CUTS if one in cell.strip()), None)
        cell = None if cut is None else [part.strip() for part in cell.strip().split(cut)]
    if not isinstance(cell, list | tuple) or not all(isinstance(one, str | int | float) for one in cell):
        return None
    return tuple(map(str, cell)) if len(cell) > 1 else None


def clean_documents(docs: Iterable[Doc], names: Mapping[str, str], choices: Sequence[str]) -> list[dict[str, object]]:
    """The documents that a task reads: columns under safe names, choices as texts in a list or in columns.

    >>> clean_documents([{"my q": "?", "opts": "a|b"}], {"my q": "my_q", "opts": "opts"}, ["opts"])
    [{'my_q': '?', 'opts': ['a', 'b']}]
    """
    return [{names[key]: _clean_cell(cell, key, choices) for key, cell in doc.items()} for doc in docs]


def _clean_cell(cell: object, key: str, choices: Sequence[str]) -> object:
    if key not in choices:
        return cell
    if len(choices) > 1:
        return "" if cell is None or not str(cell).strip() else str(cell)
    return cell if isinstance(cell, Mapping) else list(split_choices(cell) or ())
