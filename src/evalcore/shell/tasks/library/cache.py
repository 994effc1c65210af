"""An index kept on disk until a file changes, appears or disappears. A damaged or foreign file counts as none."""

from __future__ import annotations

import gc
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from msgspec import DecodeError, Raw, Struct, msgpack

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.files.given import find_cache
from evalcore.shell.safety.replacement import replace_with
from evalcore.shell.tasks.library.files import Document, Stamp, TaskProblem, scan_folder, take_stamp
from evalcore.shell.tasks.library.includes import is_shipped
from evalcore.shell.tasks.library.index import Entry, TaskIndex, find_library, find_root, index_folder, join_indexes

FORMAT = b"evalcore tasks 3\n"  # raised whenever the index of the same files would change
SETTLED_NS = 2_000_000_000  # times of some file systems are two seconds apart: a younger file may change unnoticed


class StoredIndex(Struct, frozen=True, array_like=True):
    """An index on disk, with a hash of all stamps and the files that a scan does not see."""

    root: str
    fingerprint: bytes
    others: tuple[str, ...]
    entries: tuple[Entry, ...]
    problems: tuple[TaskProblem, ...]
    documents: Raw


class Later(Mapping[str, Document]):
    """Documents that are decoded when the first of them is needed."""

    def __init__(self, packed: Raw) -> None:
        self._packed = packed

    @cached_property
    def _all(self) -> dict[str, Document]:
        return msgpack.decode(self._packed, type=dict[str, Document])

    def __getitem__(self, path: str) -> Document:
        return self._all[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def open_library(folders: Iterable[str | Path] = ()) -> TaskIndex:
    """Open the tasks of an installed lm-eval and of these folders, in an index that is kept between runs."""
    library = find_library()
    return build_index([*([library] if library else []), *folders], cache=find_cache())


def build_index(paths: Sequence[str | Path], *, cache: str | Path | None = None) -> TaskIndex:
    """Build the index of these folders; a later folder overrides an earlier one. Bad files are listed, never fatal.

    ``cache`` is a folder that keeps the index of each until a file changes, appears or disappears.
    """
    roots = tuple(dict.fromkeys(find_root(path) for path in paths))
    return join_indexes([_open_folder(root, cache, roots) for root in roots])


def _open_folder(root: str, cache: str | Path | None, roots: Iterable[str]) -> TaskIndex:
    """Open the index of a folder, whose files may include those of the other roots unless it is a shipped library."""
    beside = () if is_shipped(root) else tuple(sorted({*roots} - {root}))
    kept = load_index(cache, root, beside) if cache is not None else None
    if kept is not None:
        return kept
    with _pause_collection():
        index, scanned, others = index_folder(root, beside)
    if cache is not None:
        save_index(cache, index, scanned, others, beside)
    return index


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Pause garbage collection: reading makes many objects and no cycles, and searching takes a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def load_index(folder: str | Path, root: str, beside: Sequence[str] = ()) -> TaskIndex | None:
    """Load the index kept for this folder beside these, if no file has changed."""
    try:
        data = memoryview(_place_index(folder, root, beside).read_bytes())
        start = len(FORMAT) + 4
        if data[: len(FORMAT)] != FORMAT or zlib.crc32(data[start:]) != int.from_bytes(data[start - 4 : start], "big"):
            return None
        kept = msgpack.decode(data[start:], type=StoredIndex)
        stamps = scan_folder(root)
    except (OSError, DecodeError, ValueError):
        return None
    stamps |= {path: take_stamp(path) for path in kept.others}
    if kept.root != root or kept.fingerprint != _hash_stamps(stamps):
        return None
    return TaskIndex((root,), FrozenDict({one.name: one for one in kept.entries}), Later(kept.documents), kept.problems)


def save_index(
    folder: str | Path,
    index: TaskIndex,
    scanned: Mapping[str, Stamp],
    others: Mapping[str, Stamp],
    beside: Sequence[str] = (),
) -> None:
    """Keep the index, unless a file is so young that a change of it might go unnoticed; a full disk is no error."""
    stamps = {**scanned, **others}
    if max((max(stamp[1:3]) for stamp in stamps.values()), default=0) > time.time_ns() - SETTLED_NS:
        return
    documents = Raw(msgpack.encode(dict(index.documents)))
    entries = tuple(index.entries.values())
    data = msgpack.encode(
        StoredIndex(index.roots[0], _hash_stamps(stamps), tuple(others), entries, index.problems, documents)
    )
    place = _place_index(folder, index.roots[0], beside)
    whole = FORMAT + zlib.crc32(data).to_bytes(4, "big") + data
    with suppress(EvalError):
        replace_with(place, lambda draft: draft.write_bytes(whole), shared=True)


def _hash_stamps(stamps: Mapping[str, Stamp]) -> bytes:
    return sha256(msgpack.encode(list(stamps.items()))).digest()  # a scan is sorted


def _place_index(folder: str | Path, root: str, beside: Sequence[str]) -> Path:
    named = msgpack.encode([root, *beside] if beside else root)
    return Path(folder) / f"tasks-{sha256(named).hexdigest()[:16]}.msgpack"
