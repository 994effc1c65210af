"""Parquet and Arrow files, read by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.align import Doc
from evalcore.shell.files.remote_path import RemotePath


def read_parquet(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of a Parquet file; ``columns`` selects some columns."""
    parquet, columns = require("pyarrow.parquet", "parquet"), options.get("columns")
    if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise EvalError(f"{path}: expected columns to be a list of names, got {str(columns)[:60]}")
    return _read_rows(path, lambda: parquet.read_table(name_parquet(path), columns=columns))


def read_arrow(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of an Arrow file (Feather) or stream (which datasets writes)."""
    arrow = require("pyarrow", "parquet")
    ipc = require("pyarrow.ipc", "parquet")

    def read() -> object:
        with map_arrow(path) as source:
            try:
                return ipc.open_file(source).read_all()
            except arrow.ArrowInvalid:
                source.seek(0)
                return ipc.open_stream(source).read_all()

    return _read_rows(path, read)


def name_parquet(path: Path) -> Path | IO[bytes]:
    """What pyarrow takes for a Parquet file: its path or, in a store, the open file."""
    return path.open("rb") if isinstance(path, RemotePath) else path


@contextmanager
def map_arrow(path: Path) -> Iterator[Any]:
    """Open an Arrow file for pyarrow: mapped into memory or, in a store, read block by block."""
    arrow = require("pyarrow", "parquet")
    source = arrow.PythonFile(path.open("rb")) if isinstance(path, RemotePath) else arrow.memory_map(str(path))
    with source:
        yield source


def _read_rows(path: Path, read: Callable[[], object]) -> list[Doc]:
    arrow = require("pyarrow", "parquet")
    if not path.is_file():
        raise EvalError(f"{path}: no such file")
    try:
        rows: list[Doc] = read().to_pylist()  # type: ignore[attr-defined]  # a pyarrow.Table
    except (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError) as wrong:
        raise EvalError(f"{path}: cannot be read: {(str(wrong).splitlines() or [type(wrong).__name__])[0]}") from wrong
    return rows
