"""CSV and TSV, with the column types that datasets (through pandas) infers."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO

from evalcore.core.records.errors import EvalError, unknown
from evalcore.shell.data.align import Doc
from evalcore.shell.data.unpack import LineFault, open_bytes

Row = tuple[int, list[str]]
MOST_CELL = 1 << 30
NO_VALUE = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
BOOLS = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
INT = re.compile(r"[ \t]*[+-]?[0-9]+[ \t]*")
FLOAT = re.compile(r"[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity)[ \t]*", re.IGNORECASE)
OPTIONS = frozenset(
    {"sep", "delimiter", "column_names", "names", "header", "quotechar", "quoting", "escapechar", "doublequote"}
    | {"skipinitialspace", "encoding", "keep_default_na", "na_filter", "skiprows"}
)


def read_tsv(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of a table separated by tabs."""
    return read_csv(path, {"sep": "\t", **options})


def read_csv(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of a table; a row may lack its last cells but must not have more cells than there are columns."""
    for name in sorted(options.keys() - OPTIONS, key=str):
        raise unknown("csv option", name, OPTIONS, f" - at {path}")
    if options.get("header", "infer") not in ("infer", 0, None):
        raise EvalError(f"{path}: expected header: 0, infer or null, got {options['header']!r}")
    with open_bytes(path) as file:
        rows = list(map(_raise_fault, read_rows(file, path, options)))
    given = options.get("column_names") or options.get("names")
    if isinstance(given, list):
        names = [str(name) for name in given]
        rows = rows[1:] if options.get("header") == 0 else rows
    elif options.get("header", "infer") is None:
        names = [str(at) for at in range(len(rows[0][1]))] if rows else []
    else:
        names, rows = (name_columns(rows[0][1]), rows[1:]) if rows else ([], [])
    mark = options.get("delimiter") or options.get("sep") or ","
    for line, row in rows:
        if len(row) > len(names):
            raise EvalError(
                f"{path}:{line}: expected {len(names)} cells, got {len(row)}; a cell with {mark!r} in it needs quotes"
            )
    blank = NO_VALUE if options.get("keep_default_na", True) and options.get("na_filter", True) else frozenset()
    cells = [[row[at] if at < len(row) else None for _, row in rows] for at in range(len(names))]
    columns = [type_column(column, blank) for column in cells]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _raise_fault(row: Row | LineFault) -> Row:
    """Raise a row that is a fault, which only undecodable bytes make it."""
    if isinstance(row, LineFault):
        raise EvalError(
            f"{row}; save the file as UTF-8 (a task may name another encoding: dataset_kwargs: encoding)"
        ) from row
    return row


def read_rows(file: IO[bytes], path: Path, options: Mapping[str, object]) -> Iterator[Row | LineFault]:
    """Read the rows that are not empty, each with the line it ends on; a row with undecodable bytes is a fault."""
    words = {"quotechar": '"', "quoting": csv.QUOTE_MINIMAL, "escapechar": None, "doublequote": True}
    words |= {name: options[name] for name in (*words, "skipinitialspace") if name in options}
    words["delimiter"] = options.get("delimiter") or options.get("sep") or ","
    ended: list[bool] = []
    given = str(options.get("encoding") or "utf-8")
    encoding = "utf-8-sig" if given.lower() in ("utf-8", "utf8") else given
    before = csv.field_size_limit(MOST_CELL)  # the standard library has one limit for all readers
    try:
        with io.TextIOWrapper(file, encoding, "surrogateescape", newline="") as text:
            reader = csv.reader(chain(text, _note_end(ended)), **words)  # type: ignore[arg-type]  # its errors are caught below
            skip, last, faults = options.get("skiprows"), 0, _find_faults(path, given)
            for at, row in enumerate(row for row in reader if row):
                if ended and words["quoting"] != csv.QUOTE_NONE:
                    raise LineFault(str(path), last + 1, "expected a closing quote, found the end of the file")
                before_it, last = last, reader.line_num
                if isinstance(skip, int) and at < skip:
                    continue
                try:
                    "".join(row).encode()  # a cheap test: it fails on undecodable bytes
                except UnicodeEncodeError:
                    unknown_place = LineFault(str(path), last, f"not {given}")
                    yield next((one for one in faults if one.line > before_it), unknown_place)
                else:
                    yield last, row
    except EvalError:
        raise
    except UnicodeDecodeError as wrong:  # in encodings whose newline is not one byte
        raise EvalError(
            f"{path}: not {wrong.encoding}: {wrong.reason} at byte {wrong.start} of a part of it"
        ) from wrong
    except LookupError as wrong:
        raise EvalError(f"{path}: {wrong}") from wrong
    except (csv.Error, TypeError, ValueError) as wrong:
        raise EvalError(f"{path}: not read as a table: {wrong}") from wrong
    finally:
        csv.field_size_limit(before)


def _note_end(ended: list[bool]) -> Iterator[str]:
    """Yield nothing, and note that the lines have ended: a row that comes later was still open then."""
    ended.append(True)
    yield from ()


def _find_faults(path: Path, encoding: str) -> Iterator[LineFault]:
    """Read the file again for the lines with undecodable bytes, and the first such byte of each."""
    byte = 0
    with suppress(EvalError), open_bytes(path) as file:
        lines = chain.from_iterable(part.splitlines(keepends=True) for part in file)
        for number, line in enumerate(lines, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as wrong:
                near = line[max(0, wrong.start - 20) : wrong.start + 20].rstrip()
                message = f"not {wrong.encoding}: {wrong.reason} in {near!r}"
                yield LineFault(str(path), number, message, byte + wrong.start)
            byte += len(line)


def name_columns(header: Sequence[str]) -> list[str]:
    """Make column names unique, as pandas does.

    >>> name_columns(["a", "a", ""])
    ['a', 'a.1', 'Unnamed: 2']
    """
    seen: Counter[str] = Counter()
    out = []
    for at, name in enumerate(header):
        base = name or f"Unnamed: {at}"
        unique = base
        while unique in out:
            seen[base] += 1
            unique = f"{base}.{seen[base]}"
        out.append(unique)
    return out


def type_column(cells: Sequence[str | None], blank: frozenset[str] = NO_VALUE) -> list[object]:
    """Convert a column to integers, floats or booleans if all its cells are such, else to text; gaps make integers
    floats.

    >>> type_column(["1", "2"]), type_column(["1", ""]), type_column(["true", "NA"]), type_column(["1", "x"])
    ([1, 2], [1.0, None], [True, None], ['1', 'x'])
    """
    values = [None if cell is None or cell in blank else cell for cell in cells]
    given = [value for value in values if value is not None]
    if given and all(map(INT.fullmatch, given)):
        if len(given) < len(values):
            return [None if value is None else float(value) for value in values]
        with suppress(ValueError):  # more digits than Python reads: text, as in pandas
            return [int(value) for value in given]
        return list(values)
    if given and all(map(FLOAT.fullmatch, given)):
        return [None if value is None else float(value) for value in values]
    if given and all(value in BOOLS for value in given):
        return [None if value is None else BOOLS[value] for value in values]
    return list(values)
