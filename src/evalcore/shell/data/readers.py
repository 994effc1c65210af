"""Files of documents, read by their suffix or, if they have none, by their first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pyrsistent import PMap, pmap

from evalcore.core.records.errors import EvalError, unknown
from evalcore.shell.data.align import Doc, align_documents
from evalcore.shell.data.arrow_files import read_arrow, read_parquet
from evalcore.shell.data.csv_files import read_csv, read_tsv
from evalcore.shell.data.json_files import read_json, read_json_lines
from evalcore.shell.data.unpack import open_bytes, strip_packing
from evalcore.shell.files.given import expand_glob, parse_path

Reader = Callable[[Path, Mapping[str, object]], list[Doc]]
Readers = Mapping[str, Reader]


def read_text(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read every line of a text file as a document with the column ``text``."""
    with open_bytes(path) as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        lines = data.decode().replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    except UnicodeDecodeError as wrong:
        line = data[: wrong.start].count(b"\n") + 1
        raise EvalError(f"{path}:{line}: not UTF-8: {wrong.reason} at byte {wrong.start}") from wrong
    return [{"text": line} for line in lines] if data else []


DATA_READERS: PMap[str, Reader] = pmap(
    {
        ".jsonl": read_json_lines,
        ".ndjson": read_json_lines,
        ".json": read_json,
        ".csv": read_csv,
        ".tsv": read_tsv,
        ".parquet": read_parquet,
        ".arrow": read_arrow,
        ".feather": read_arrow,
        ".txt": read_text,
    }
)
"""Readers by the suffix of a file. A host adds its own with ``.set(...)`` and passes the table on."""

BUILDERS: dict[str, Reader] = {
    "json": read_json,
    "csv": read_csv,
    "parquet": read_parquet,
    "arrow": read_arrow,
    "text": read_text,
}
"""Values of ``dataset_path`` that name a format of files rather than a dataset."""


def read_files(
    paths: Iterable[Path],
    options: Mapping[str, object],
    reader: Reader | None = None,
    *,
    readers: Readers = DATA_READERS,
) -> list[Doc]:
    """Read the documents of these files one after another, with the columns of all; by one reader, or by suffix."""
    files = list(paths)
    parts = [(reader or choose_reader(path, readers))(path, options) for path in files]
    docs = [doc for part in parts for doc in part]
    return parts[0] if len(parts) == 1 else align_documents(docs, ", ".join(map(str, files[:3])))


def choose_reader(path: Path, readers: Readers = DATA_READERS) -> Reader:
    """Choose the reader of a file by its suffix or, if it has none, by its content."""
    suffix = Path(strip_packing(path.name)).suffix.lower()
    if suffix in readers:
        return readers[suffix]
    with open_bytes(path) as file:
        start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"PAR1"):
        return read_parquet
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return read_arrow
    if start.startswith((b"{", b"[")):
        return read_json
    raise unknown("kind of data file", suffix or path.name, readers, f" - at {path}")


def find_files(
    source: str | Path | Sequence[str | Path], roots: Sequence[Path] = (), readers: Readers = DATA_READERS
) -> list[Path]:
    """Find the files that paths and globs name: under the first root that has any, else in the working directory.

    >>> find_files("no/such.jsonl")
    Traceback (most recent call last):
    evalcore.EvalError: no/such.jsonl: no such file; looked in .
    """
    if not isinstance(source, str | Path):
        return [path for one in source for path in find_files(one, roots, readers)]
    named = parse_path(source).expanduser()
    places = list(dict.fromkeys([*roots, Path()]))
    for place in places:
        path = place / named
        if path.is_file():
            return [path]
        if path.is_dir() and (held := list_files_in(path, readers)):
            return held
        if files := [match for match in sorted(expand_glob(path)) if match.is_file()]:
            return files
    raise EvalError(f"{named}: no such file; looked in {', '.join(map(str, places))}")


def list_files_in(folder: Path, readers: Readers = DATA_READERS) -> list[Path]:
    """List the data files of a folder and its subfolders, without hidden ones."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if Path(strip_packing(path.name)).suffix.lower() in readers
        and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
