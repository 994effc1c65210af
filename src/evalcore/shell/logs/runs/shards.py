"""The files of a folder that are one task of one run, by the same rule as in scoring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from evalcore.shell.logs.lm_eval.names import is_sample_name, name_task
from evalcore.shell.logs.lm_eval.pools import pool_samples
from evalcore.shell.logs.lm_eval.results import read_folder_results
from evalcore.shell.logs.paths import list_paths, show_names
from evalcore.shell.logs.runs.source import RunFiles, RunLog, find_run
from evalcore.shell.logs.search import ALL


def pool_source(source: RunFiles, path: Path) -> RunFiles:
    """Add to each log of a folder's run the other files of its task, if no two share a document.

    >>> pool_source(RunFiles("t", (RunLog("t", Path("samples_t.jsonl")),)), Path("samples_t.jsonl")).logs[0].files
    (PosixPath('samples_t.jsonl'),)
    """
    folder = path.expanduser()
    if not folder.is_dir():
        return source
    names, below = {name_task(log.path) for log in source.logs}, _logs_below(folder)
    near = {name: paths for name, paths in below.items() if name in names}
    if all(len(paths) < 2 for paths in near.values()):
        return source
    pooled = [_pooled(log, near.get(name_task(log.path), ())) for log in source.logs]
    logs = tuple(log for log, _ in pooled)
    told = tuple(one for _, some in pooled for one in some)
    if source.chosen and not told:  # which says it already
        return source
    kept = (one for one in source.warnings if one not in source.chosen)
    left = _left_out(below if source.chosen else near, logs, folder)
    return replace(source, logs=logs, warnings=(*kept, *told, *left))


def pool_beside(results: Path, folder: Path) -> tuple[RunLog, ...]:
    """Pool the logs beside a results file of a folder with the other files of their tasks.

    >>> pool_beside(Path("no/such/results.json"), Path("no/such"))
    ()
    """
    logged = any(results.parent.glob("samples_*.json*"))
    return pool_source(find_run(results), folder).logs if logged else ()


def tell_parts(logs: Iterable[RunLog], folder: Path) -> tuple[str, ...]:
    """Warn of each task whose recorded numbers are those of one file among several.

    >>> tell_parts([RunLog("t", Path("a"), (Path("a"), Path("b")), whole=False)], Path("run"))[0][:54]
    't: these are the numbers of a alone, one of 2 files of'
    """
    return tuple(
        f"{log.task}: these are the numbers of {log.path} alone, one of {len(log.files)} files of one run; "
        f"`evalcore score {folder} -o OUT` makes one run of them"
        for log in logs
        if not log.whole
    )


def _logs_below(folder: Path) -> dict[str, list[Path]]:
    out: dict[str, list[Path]] = {}
    for one in list_paths([folder]):
        if not {".jsonl", ".json"}.isdisjoint(one.path.suffixes[-2:]):
            out.setdefault(name_task(one.path), []).append(one.path)
    return out


def _left_out(below: Mapping[str, Sequence[Path]], logs: Iterable[RunLog], folder: Path) -> tuple[str, ...]:
    """Warn of the sample logs that are not read."""
    read = {path.resolve() for log in logs for path in log.files}
    left = [path for paths in below.values() for path in paths if path.resolve() not in read and is_sample_name(path)]
    names = show_names([one.relative_to(folder) for one in left])
    why = f"other sample logs in {folder} are not of the run that was read and are left out"
    return (f"{why} ({len(left):,}): {names}",) if left else ()


def _pooled(log: RunLog, near: Sequence[Path]) -> tuple[RunLog, tuple[str, ...]]:
    """A log with the other files of its task, and a warning that names them."""
    if len(near) < 2:
        return log, ()
    samples = [file for file in map(ALL.tell, near) if file.has_rows]
    own = log.path.resolve()
    for pool in pool_samples(samples, lru_cache(maxsize=None)(read_folder_results)):
        files = tuple(one.path for one in pool.files)
        if len(files) > 1 and own in {one.resolve() for one in files}:
            return RunLog(log.task, log.path, files, pool.same), pool.told
    return log, ()
