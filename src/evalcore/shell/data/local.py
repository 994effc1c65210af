"""Splits that are local files: given in the run config, by ``data_files``, or as a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from evalcore.core.records.errors import EvalError, unknown
from evalcore.shell.data.align import Doc, align_documents
from evalcore.shell.data.csv_files import OPTIONS as CSV_OPTIONS
from evalcore.shell.data.folders import sort_into_splits
from evalcore.shell.data.hub import list_documents
from evalcore.shell.data.readers import BUILDERS, DATA_READERS, Reader, Readers, find_files, list_files_in, read_files
from evalcore.shell.files.confinement import Allow, allow_any
from evalcore.shell.files.given import parse_path

Read = Callable[[], Sequence[Doc]]
Parts = Mapping[str, Read]
"""How to read each split by name; ``*`` stands for every other name."""

BUILDER_OPTIONS: dict[str, frozenset[str]] = {
    "json": frozenset({"field"}),
    "csv": CSV_OPTIONS,
    "parquet": frozenset({"columns"}),
    "arrow": frozenset(),
    "text": frozenset(),
}


def find_override(data: Mapping[str, object] | None, task: str) -> object | None:
    """Find what ``data:`` gives for a task, by its name or the first matching glob; ``{task}`` in a path is its name.

    >>> find_override({"arc_*": "local/{task}.jsonl", "boolq": {"test": "b.csv"}}, "arc_easy")
    'local/arc_easy.jsonl'
    >>> find_override({"arc_*": "local/{task}.jsonl"}, "boolq") is None
    True
    """
    if data is None:
        return None
    if not isinstance(data, Mapping):
        raise EvalError(f"data: expected task names with files, got {data!r}; write `data: {{{task}: file.jsonl}}`")
    if task in data:
        return _name_task(data[task], task)
    return next((_name_task(value, task) for name, value in data.items() if fnmatchcase(task, str(name))), None)


def _name_task(value: object, task: str) -> object:
    """Fill in the name of a task in paths only: documents given in place stay as they are."""
    if isinstance(value, str):
        return value.replace("{task}", task)
    if isinstance(value, Mapping):
        return {name: _name_task(one, task) for name, one in value.items()}
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [_name_task(one, task) for one in value]
    return value


def read_given(given: object, roots: Sequence[Path], readers: Readers = DATA_READERS) -> Parts:
    """Read the splits of an entry of ``data:``: a path, paths or documents for every split, or any of these by split.

    >>> read_given({"test": [{"q": "?"}]}, ())["test"]()
    [{'q': '?'}]
    """
    if isinstance(given, Mapping):
        return {str(name): _read_source(source, roots, readers) for name, source in given.items()}
    if isinstance(given, str | Path) and str(given) and (folder := _find_folder(given, roots, readers)):
        return _open_folder(folder, readers)
    return {"*": _read_source(given, roots, readers)}


def _read_source(source: object, roots: Sequence[Path], readers: Readers) -> Read:
    if isinstance(source, list) and not all(isinstance(one, str | Path) for one in source):
        return lambda: align_documents(list(list_documents(source)))
    return lambda: read_files(find_files(_check_paths(source), roots, readers), {}, readers=readers)


def _check_paths(value: object) -> list[str | Path]:
    paths = value if isinstance(value, list | tuple) else [value]
    if not paths or not all(isinstance(one, str | Path) and str(one) for one in paths):
        raise EvalError(f"expected a path, paths or documents, got {value!r}")
    return list(paths)


def is_remote(data_files: object) -> bool:
    """Whether any file is given by an address instead of a path.

    >>> is_remote({"test": "hf://datasets/x/y.jsonl"}), is_remote(["a.jsonl"])
    (True, False)
    """
    if isinstance(data_files, Mapping):
        return any(map(is_remote, data_files.values()))
    if isinstance(data_files, list | tuple):
        return any(map(is_remote, data_files))
    return isinstance(data_files, str) and "://" in data_files


def open_builder(kind: str, options: Mapping[str, object], roots: Sequence[Path], allow: Allow = allow_any) -> Parts:
    """Open the splits of ``dataset_path: json|csv|parquet|arrow|text`` with its ``data_files`` or ``data_dir``."""
    rest = {name: value for name, value in options.items() if name not in ("data_files", "data_dir")}
    for name in sorted(rest.keys() - BUILDER_OPTIONS[kind], key=str):
        raise unknown(
            f"{kind} option", name, {"data_files", "data_dir", *BUILDER_OPTIONS[kind]}, " - at dataset_kwargs"
        )
    files, folder, reader = options.get("data_files"), options.get("data_dir"), BUILDERS[kind]
    if files is None:
        place = _find_folder(str(folder), roots, DATA_READERS) if folder is not None else None
        if place is None:
            raise EvalError(f"dataset_path: {kind} needs data_files, or a data_dir that exists, in dataset_kwargs")
        return _open_folder(place, DATA_READERS, rest, reader, allow)
    if folder is not None:
        roots = [root / str(folder) for root in (*roots, Path())]

    def later(source: object) -> Read:
        return lambda: read_files(map(allow, find_files(_check_paths(source), roots)), rest, reader)

    by_split = files if isinstance(files, Mapping) else {"train": files}
    return {str(name): later(source) for name, source in by_split.items()}


def open_path(
    path: str, name: object, roots: Sequence[Path], readers: Readers = DATA_READERS, allow: Allow = allow_any
) -> Parts | None:
    """Open the splits of a local folder, or of a local file, which serves every split; None if there is neither.

    A folder inside named after the configuration (``dataset_name``) takes precedence.
    """
    for place in (*roots, Path()):
        if (place / parse_path(path)).is_file():
            return {"*": lambda: read_files(map(allow, find_files(path, roots, readers)), {}, readers=readers)}
    folder = _find_folder(path, roots, readers)
    if folder is None:
        return None
    inner = folder / str(name)
    return _open_folder(inner if name and inner.is_dir() else folder, readers, allow=allow)


def _find_folder(name: str | Path, roots: Sequence[Path], readers: Readers) -> Path | None:
    """Find the first folder of that name that contains data files."""
    folders = (root / parse_path(name).expanduser() for root in (*roots, Path()))
    return next((folder for folder in folders if folder.is_dir() and list_files_in(folder, readers)), None)


def _open_folder(
    folder: Path,
    readers: Readers,
    options: Mapping[str, object] | None = None,
    reader: Reader | None = None,
    allow: Allow = allow_any,
) -> Parts:
    def later(paths: Sequence[Path]) -> Read:
        return lambda: read_files(map(allow, paths), options or {}, reader, readers=readers)

    return {name: later(paths) for name, paths in sort_into_splits(list_files_in(folder, readers), folder).items()}
