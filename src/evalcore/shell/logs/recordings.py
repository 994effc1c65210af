"""The files of recorded answers that a path, a folder or a glob names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from hashlib import file_digest, sha256
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.unpack import open_bytes, strip_packing
from evalcore.shell.data.wire import number_lines
from evalcore.shell.logs.head import read_head
from evalcore.shell.logs.lm_eval.names import is_sample_name
from evalcore.shell.logs.lm_eval.rows import read_near_row, recognise_samples

__all__ = ["choose_recordings", "find_recordings", "hash_files", "tell_mistaken"]


def choose_recordings(names: Iterable[str]) -> tuple[list[Path], tuple[str, ...]]:
    """The files that these paths, folders and globs name, and a line for each that a glob caught by accident."""
    files: list[Path] = []
    skipped: list[str] = []
    for name in names:
        found = {path: tell_mistaken(path) for path in find_recordings(name)}
        wrong = [why for why in found.values() if why]
        if wrong and (len(wrong) == len(found) or not has_magic(name)):
            more = f"; nor are the other {len(found) - 1} files of {name}" if len(found) == len(wrong) > 1 else ""
            raise EvalError(wrong[0] + more)
        files += [path for path, why in found.items() if not why]
        skipped += [f"{why}; not used" for why in wrong]
    return files, tuple(skipped)


def tell_mistaken(path: Path) -> str:
    """Why a file is neither an answer log nor a sample log, by its content; empty if it is one."""
    head = read_head(path)
    first = head.first or (read_near_row(path) if recognise_samples(head) else {})
    if head.form in ("answers", "empty") or {"arguments", "resps"} <= first.keys():
        return ""
    with open_bytes(path) as file:
        number, line = next(number_lines(file), (0, b""))
    return f"{path}:{number}: expected a row of a sample log (arguments, resps) or an answer log, got {line[:60]!r}"


def find_recordings(name: str) -> list[Path]:
    """The files that a path, folder or glob names; in a folder its answer log, or else its sample logs.

    >>> find_recordings("no/such/run")
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no recorded answers there
    """

    def is_recording(one: Path) -> bool:
        return is_sample_name(one) or (strip_packing(one.name).endswith(".json") and not tell_mistaken(one))

    path = Path(name).expanduser()
    if path.is_dir():
        found = [one for one in sorted(path.glob("answers.jsonl*")) if one.suffix in (".jsonl", ".gz", ".zst")]
        found = found[:1] or sorted(filter(is_recording, path.rglob("samples_*")))
    else:
        found = [path] if path.is_file() else sorted(map(Path, glob(name, recursive=True))) if has_magic(name) else []
        found = [file for one in found for file in (find_recordings(str(one)) if one.is_dir() else [one])]
    if not found:
        raise EvalError(f"{name}: no recorded answers there")
    return found


def hash_files(files: Sequence[Path]) -> str:
    """A name for what the files say, wherever they are."""
    out = sha256()
    for path in files:
        with open(path, "rb") as file:
            out.update(file_digest(file, "sha256").digest())
    return out.hexdigest()[:16]
