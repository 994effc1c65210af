"""Parquet and Arrow files, read by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.align import Doc


def read_parquet(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of a Parquet file; ``columns`` selects some columns."""
    parquet, columns = require("pyarrow.parquet", "parquet"), options.get("columns")
    if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise EvalError(f"{path}: expected columns to be a list of names, got {str(columns)[:60]}")
    return _read_rows(path, lambda: parquet.read_table(path, columns=columns))


def read_arrow(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of an Arrow file (Feather) or stream (which datasets writes)."""
    arrow = require("pyarrow", "parquet")
    ipc = require("pyarrow.ipc", "parquet")

    def read() -> object:
        with arrow.memory_map(str(path)) as source:
            try:
                return ipc.open_file(source).read_all()
            except arrow.ArrowInvalid:
                source.seek(0)
                return ipc.open_stream(source).read_all()

    return _read_rows(path, read)


def _read_rows(path: Path, read: Callable[[], object]) -> list[Doc]:
    arrow = require("pyarrow", "parquet")
    if not path.is_file():
        raise EvalError(f"{path}: no such file")
    try:
        rows: list[Doc] = read().to_pylist()  # type: ignore[attr-defined]  # a pyarrow.Table
    except (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError) as wrong:
        raise EvalError(f"{path}: cannot be read: {(str(wrong).splitlines() or [type(wrong).__name__])[0]}") from wrong
    return rows
