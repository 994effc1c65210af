"""Parquet and Arrow files as documents, read by pyarrow batch by batch, stopped if they unfold without end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.data.align import Doc
from evalcore.shell.data.unpack import LINE_WEIGHT, limit_unpacked, refuse_unpacked
from evalcore.shell.files.remote_path import RemotePath

BATCH = 8192
VALUE_WEIGHT = 8


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


# --- batches ---------------------------------------------------------------------------------------------------------


def name_parquet(path: Path) -> Path | IO[bytes]:
    """What pyarrow takes for a Parquet file: its path or, in a store, the open file."""
    return path.open("rb") if isinstance(path, RemotePath) else path


def read_batches(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    row_groups: Sequence[int] | None = None,
    size: int = BATCH,
) -> Iterator[Any]:
    """Read a Parquet file as record batches, within the limit of packed files.

    A value that is repeated takes hardly any room in such a file: what its footer counts is checked first, and texts
    are unfolded only after they are weighed.
    """
    parquet = require("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(name_parquet(path)) as file:
        _refuse_footer(file, path)
        texts, plain = _list_texts(file.metadata), file.schema_arrow
        with parquet.ParquetFile(name_parquet(path), read_dictionary=texts) as folded:
            groups = range(folded.num_row_groups) if row_groups is None else row_groups
            # One by one: where a batch has texts of two groups inside lists, pyarrow cannot hold each text once.
            each = (folded.iter_batches(size, columns=columns, row_groups=[group]) for group in groups)
            for batch in bound_batches(chain.from_iterable(each), path):
                yield _unfold(batch, plain)


def bound_batches(batches: Iterable[Any], path: Path) -> Iterator[Any]:
    """Pass on the record batches of a file until they would unfold to more than the limit of packed files."""
    held, most = 0, limit_unpacked(path.stat().st_size)
    for batch in batches:
        held += LINE_WEIGHT * batch.num_rows + sum(map(_weigh_array, batch.columns))
        if held > most:
            raise refuse_unpacked(path, most)
        yield batch


def _refuse_footer(file: Any, path: Path) -> None:
    """Refuse what unfolds to too much by what the footer counts, before anything is unfolded."""
    footer = file.metadata
    size = sum(max(footer.row_group(at).total_byte_size, 0) for at in range(footer.num_row_groups))
    values = max(footer.num_rows * footer.num_columns, _count_listed(file))
    most = limit_unpacked(path.stat().st_size)
    if max(size, VALUE_WEIGHT * values, LINE_WEIGHT * footer.num_rows) > most:
        raise refuse_unpacked(path, most)


def _count_listed(file: Any) -> int:
    """Count the values inside lists; columns are scanned first, for pyarrow ends the process over a damaged one."""
    footer = file.metadata
    nested = [at for at in range(footer.num_columns) if footer.schema.column(at).max_repetition_level]
    if not nested:
        return 0
    file.scan_contents()
    groups = map(footer.row_group, range(footer.num_row_groups))
    return sum(max(group.column(at).num_values, 0) for group in groups for at in nested)


def _list_texts(footer: Any) -> list[str]:
    """List the columns of texts, at any depth: they are read with each distinct text held once."""
    columns = map(footer.schema.column, range(footer.num_columns))
    return [one.path for one in columns if one.physical_type == "BYTE_ARRAY"]


def _weigh_array(array: Any) -> int:
    """Weigh an array as it will be unfolded, in bytes."""
    types, compute = require("pyarrow.types", "parquet"), require("pyarrow.compute", "parquet")
    kind = array.type
    if types.is_dictionary(kind):
        if not types.is_binary(kind.value_type) and not types.is_string(kind.value_type):
            return int(array.nbytes) + VALUE_WEIGHT * len(array)
        lengths = compute.binary_length(array.dictionary).cast("int64")
        return compute.sum(lengths.take(array.indices)).as_py() or 0
    if types.is_struct(kind):
        return sum(map(_weigh_array, array.flatten()))
    if types.is_map(kind):
        return _weigh_array(array.keys) + _weigh_array(array.items)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _weigh_array(array.flatten()) + VALUE_WEIGHT * len(array)
    return int(array.nbytes)


def _unfold(batch: Any, plain: Any) -> Any:
    """Unfold the texts of a batch to what the schema says."""
    arrow, names = require("pyarrow", "parquet"), batch.schema.names
    try:
        return batch.cast(plain if names == plain.names else arrow.schema(map(plain.field, names)))
    except arrow.ArrowNotImplementedError as wrong:
        raise EvalError(f"a column that cannot be unfolded: {wrong}") from wrong
