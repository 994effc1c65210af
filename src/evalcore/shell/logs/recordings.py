"""The files of recorded answers that a path, folder or glob names, which stand in for a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import has_magic
from hashlib import file_digest, sha256
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.unpack import open_bytes, strip_packing
from evalcore.shell.data.wire import number_lines
from evalcore.shell.logs.lm_eval.names import is_sample_name
from evalcore.shell.logs.lm_eval.rows import read_near_row
from evalcore.shell.logs.paths import expand_path, is_aside, list_paths
from evalcore.shell.logs.search import ALL, Searched


def choose_recordings(names: Iterable[str | Path], searched: Searched = ALL) -> tuple[list[Path], tuple[str, ...]]:
    """Choose the files that paths, folders and globs name, with a warning for each that a glob matched by accident."""
    files: list[Path] = []
    skipped: list[str] = []
    for name in names:
        found = {path: tell_mistaken(path, searched) for path in find_recordings(name, searched)}
        wrong = [why for why in found.values() if why]
        if wrong and (len(wrong) == len(found) or not has_magic(str(name))):
            more = f"; nor are the other {len(found) - 1} files of {name}" if len(found) == len(wrong) > 1 else ""
            raise EvalError(wrong[0] + more)
        files += [path for path, why in found.items() if not why]
        skipped += [f"{why}; not used" for why in wrong]
    return files, tuple(skipped)


def tell_mistaken(path: Path, searched: Searched = ALL) -> str:
    """Say why the content of a file is no recorded answers; empty if it is."""
    file = searched.tell(path)
    first = file.first or (read_near_row(path) if file.has_rows else {})
    if file.form in ("answers", "empty") or {"arguments", "resps"} <= first.keys():
        return ""
    if not file.has_rows and searched.is_log(file):
        return ""
    with open_bytes(path) as opened:
        number, line = next(number_lines(opened), (0, b""))
    return f"{path}:{number}: expected a row of a sample log (arguments, resps) or an answer log, got {line[:60]!r}"


def find_recordings(name: str | Path, searched: Searched = ALL) -> list[Path]:
    """Find the files that a path, folder or glob names; in a folder its answer log, else sample logs, else other logs.

    >>> find_recordings("no/such/run")
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no recorded answers there
    """
    paths, _ = expand_path(name)
    found = [file for path in paths for file in (_find_within(path, searched) if path.is_dir() else [path])]
    if not found:
        raise EvalError(f"{name}: no recorded answers there")
    return found


def _find_within(folder: Path, searched: Searched) -> list[Path]:
    def is_recording(path: Path) -> bool:
        named_json = strip_packing(path.name).endswith(".json")
        is_named = is_sample_name(path) or (named_json and not tell_mistaken(path, searched))
        return is_named and not is_aside(path, folder)

    answers = [path for path in sorted(folder.glob("answers.jsonl*")) if path.suffix in (".jsonl", ".gz", ".zst")]
    samples = [] if answers else sorted(filter(is_recording, folder.rglob("samples_*")))
    if answers or samples:
        return answers[:1] or samples
    files = [searched.tell(named.path) for named in list_paths([folder])] if any(folder.iterdir()) else []
    return [file.path for file in files if searched.is_log(file)]


def hash_files(files: Sequence[Path]) -> str:
    """Hash the content of files, whatever their paths."""
    out = sha256()
    for path in files:
        with path.open("rb") as file:
            out.update(file_digest(file, "sha256").digest())
    return out.hexdigest()[:16]
