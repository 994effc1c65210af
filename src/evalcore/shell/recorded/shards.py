"""The files of a folder that are one task of one run, by the rule that scoring reads logs by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from evalcore.shell.recorded.finding import Log, Source, task_of_log

__all__ = ["pool_source"]


def pool_source(source: Source, path: Path) -> Source:
    """A run of a folder, each log with the other files of its task where no document is in two of them.

    >>> pool_source(Source("t", (Log("t", Path("samples_t.jsonl")),)), Path("samples_t.jsonl")).logs[0].files
    (PosixPath('samples_t.jsonl'),)
    """
    folder = path.expanduser()
    if not folder.is_dir():
        return source
    near = _logs_below(folder, {task_of_log(log.path) for log in source.logs})
    if all(len(paths) < 2 for paths in near.values()):
        return source
    pooled = [_pooled(log, near.get(task_of_log(log.path), ())) for log in source.logs]
    told = (one for _, some in pooled for one in some)
    return replace(source, logs=tuple(log for log, _ in pooled), warnings=(*source.warnings, *told))


def _logs_below(folder: Path, names: set[str]) -> dict[str, list[Path]]:
    from evalcore.shell.answers.finding import list_paths  # only here: it imports from this package

    out: dict[str, list[Path]] = {}
    for one in list_paths([folder]):
        name = task_of_log(one.path)
        if name in names and ".jsonl" in one.path.suffixes[-2:]:
            out.setdefault(name, []).append(one.path)
    return out


def _pooled(log: Log, near: Sequence[Path]) -> tuple[Log, tuple[str, ...]]:
    """A log with the files that go with it, and what there is to say of them."""
    if len(near) < 2:
        return log, ()
    from evalcore.shell.answers.finding import read_folder_results
    from evalcore.shell.answers.kinds import tell_kind
    from evalcore.shell.answers.sample_tasks import pool_samples

    samples = [one for one in map(tell_kind, near) if one.kind == "samples"]
    own = log.path.resolve()
    for pool in pool_samples(samples, lru_cache(maxsize=None)(read_folder_results)):
        files = tuple(one.path for one in pool.files)
        if len(files) > 1 and own in {one.resolve() for one in files}:
            return Log(log.task, log.path, files, pool.same), pool.told
    return log, ()
