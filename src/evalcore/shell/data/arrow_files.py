"""Parquet and Arrow files as documents, read by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.align import Doc
from evalcore.shell.data.parquet_files import bound_batches, read_batches
from evalcore.shell.files.remote_path import RemotePath


def read_parquet(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of a Parquet file; ``columns`` selects some columns."""
    columns = options.get("columns")
    if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise EvalError(f"{path}: expected columns to be a list of names, got {str(columns)[:60]}")
    return _read_rows(path, lambda: read_batches(path, columns))


def read_arrow(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read the rows of an Arrow file (Feather) or stream (which datasets writes)."""
    arrow = require("pyarrow", "parquet")
    ipc = require("pyarrow.ipc", "parquet")

    def read() -> Iterator[Any]:
        with map_arrow(path) as source:
            try:
                file = ipc.open_file(source)
            except arrow.ArrowInvalid:
                source.seek(0)
                yield from ipc.open_stream(source)
            else:
                yield from map(file.get_batch, range(file.num_record_batches))

    return _read_rows(path, lambda: bound_batches(read(), path))


@contextmanager
def map_arrow(path: Path) -> Iterator[Any]:
    """Open an Arrow file for pyarrow: mapped into memory or, in a store, read block by block."""
    arrow = require("pyarrow", "parquet")
    source = arrow.PythonFile(path.open("rb")) if isinstance(path, RemotePath) else arrow.memory_map(str(path))
    with source:
        yield source


def _read_rows(path: Path, read: Callable[[], Iterator[Any]]) -> list[Doc]:
    arrow = require("pyarrow", "parquet")
    if not path.is_file():
        raise EvalError(f"{path}: no such file")
    try:
        rows: list[Doc] = [row for batch in read() for row in batch.to_pylist()]
    except EvalError:
        raise
    except (arrow.ArrowException, OSError, ValueError, TypeError, OverflowError) as wrong:
        raise EvalError(f"{path}: cannot be read: {(str(wrong).splitlines() or [type(wrong).__name__])[0]}") from wrong
    return rows
