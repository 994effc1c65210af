"""Paths into the tasks whose answers they record, told apart by content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.data.unpack import PACKED
from evalcore.shell.logs.json_records import Record, problem_at, refuse_problems
from evalcore.shell.logs.kind import Found, is_sample_name, is_torn, read_torn, tell_kind
from evalcore.shell.logs.lm_eval.pools import open_lmms_json, open_samples
from evalcore.shell.logs.log import Logged, LogTask, Problem
from evalcore.shell.logs.paths import Named, Results, damaged_beside, list_paths, name_apart, read_folder_results
from evalcore.shell.logs.runs.source import NO_SAMPLES, STAMP, stamp_of, task_of_log
from evalcore.shell.logs.tables.column_map import ColumnMap

__all__ = ["open_logs"]

EXPECTED = (
    "expected a sample log (lm-eval, lmms-eval, evalcore), an Inspect log (.eval, .json), or a table (JSONL, CSV, "
    "Parquet) with its columns declared (--answer, --gold, ...)"
)
TOLD = {
    "answers": "an answer log has no documents or golds; name the folder of its run",
    "binary": "found bytes that are no text",
    "empty": "it is empty",
    "json": "found JSON of another kind, and no columns are declared",
    "text": "found text, and no columns are declared",
    "parquet": "found Parquet, and no columns are declared",
    "arrow": "found Arrow, and no columns are declared",
}
TABLES = frozenset({"json", "text", "parquet", "arrow"})
DATA = frozenset({".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".eval"})
"""Suffixes of files that are told of where a folder or glob caught them and they are no logs."""
NAMED = 5


class Settings(Struct, frozen=True):
    """How to read: what :func:`open_logs` was asked for, and the results beside each log, read once."""

    mapping: ColumnMap | None
    scores: bool
    requests: bool
    results_in: Callable[[Path], Results]


def open_logs(
    paths: Sequence[str | Path],
    *,
    mapping: ColumnMap | None = None,
    keep_going: bool = False,
    scores: bool = False,
    requests: bool = True,
) -> tuple[LogTask, ...]:
    """The tasks whose answers these files, folders and globs record; what a file is, its content tells.

    ``mapping`` declares the columns of plain tables. With ``keep_going``, records and files that cannot be read are
    yielded as problems, else the first is raised. With ``scores``, documents of sample logs come with what was logged
    for them under every filter, which is held in memory; other logs have their scores anyway. Without ``requests``,
    they come without what was asked, and faster.

    >>> open_logs(["no/such/run"])
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder
    """
    settings = Settings(mapping, scores, requests, lru_cache(maxsize=None)(read_folder_results))
    found: list[Found] = []
    tasks: list[LogTask] = []
    left: list[str] = []
    for named in list_paths(paths):
        try:
            found += _logs_of(named, mapping, left)
        except EvalError as wrong:
            if not keep_going:
                raise
            tasks.append(_unreadable(named.path, wrong, mapping))
    found = _each_once(found)
    logs = [one.path for one in found if one.kind == "samples"]
    for path, fault in damaged_beside(logs, settings.results_in).items():
        if not keep_going:
            raise fault
        tasks.append(_unreadable(path, fault, mapping))
    for group in _by_kind(found):
        tasks += _opened(group, settings, keep_going)
    if not tasks:
        raise EvalError(f"{', '.join(map(str, paths))}: {EXPECTED}; found none")
    told = (_tell_left(left),) if left else ()
    tasks = [replace(task, warnings=(*told, *task.warnings)) if not at else task for at, task in enumerate(tasks)]
    return tuple(replace(task, rows=partial(_rows, task.rows, task.name, keep_going)) for task in _apart(tasks))


def _tell_left(left: Sequence[str]) -> str:
    """Five by name, the others by how many are in which folder."""
    more = Counter(str(Path(one).parent) for one in left[NAMED:])
    rest = "".join(f"; {count:,} more in {folder}" for folder, count in more.items())
    files = "1 file is no log, and is" if len(left) == 1 else f"{len(left):,} files are no logs, and are"
    return f"{files} not read: {', '.join(left[:NAMED])}{rest}"


def _rows(rows: Callable[[], Iterator[Logged | Problem]], name: str, keep_going: bool) -> Iterator[Logged | Problem]:
    return rows() if keep_going else refuse_problems(rows(), name)


def _unreadable(path: Path, wrong: EvalError, mapping: ColumnMap | None) -> LogTask:
    """With declared columns, what is called a table is one, so that these are not said to be for nothing."""
    tabular = mapping is not None and _suffixes(path) & DATA - {".eval"} and not is_sample_name(path)
    name, source = task_of_log(path), "table" if tabular else "lm-eval"
    problem = problem_at(path, Record(1, 0, b""), wrong)
    return LogTask(name=name, path=path, output_type=GENERATE_UNTIL, rows=lambda: iter((problem,)), source=source)


# --- which files are logs -------------------------------------------------------------------------------------------


def _logs_of(named: Named, mapping: ColumnMap | None, left: list[str]) -> list[Found]:
    """The log that a file is, or those of the results that it holds; others are refused only if named themselves."""
    found = tell_kind(named.path)
    if found.kind == "results":
        return _beside(found) if named.directly else []
    if not named.directly and _is_copy(found):
        return []
    declared = found.kind in TABLES and mapping is not None
    if found.kind not in TOLD or (declared and (named.directly or _has_columns(found, mapping))):
        return [found]
    if found.kind in ("text", "binary") and is_sample_name(named.path):
        return [read_torn(named.path)]
    if named.directly or _is_damaged(found, mapping is not None):
        raise EvalError(f"{named.path}: {EXPECTED}; {TOLD[found.kind]}")
    if found.kind != "answers" and (_suffixes(named.path) & DATA or is_torn(found)):
        left.append(str(named.path))
    return []


def _is_copy(found: Found) -> bool:
    """Whether a file is what ``run --parquet`` writes beside results or a sample log: the same once more."""
    path = found.path
    if found.kind != "parquet" or path.suffix != ".parquet":
        return False
    if is_sample_name(path.with_suffix(".jsonl")):
        names = (f"{ending}{packed}" for ending in (".jsonl", ".json") for packed in ("", *PACKED))
        return any(path.with_suffix(name).is_file() for name in names)
    results = path.with_suffix(".json")
    return results.is_file() and tell_kind(results).kind == "results"


def _is_damaged(found: Found, declared: bool) -> bool:
    """Whether a file is called what a log is called, or a table where columns are declared, and is none."""
    path = found.path
    if found.kind == "binary" and declared and _suffixes(path) & DATA:
        return True
    if found.kind == "empty":
        return is_sample_name(path) or path.suffix == ".eval"
    return path.suffix == ".eval" or (path.suffix == ".json" and STAMP.search(path.name) is not None and is_torn(found))


def _has_columns(found: Found, mapping: ColumnMap | None) -> bool:
    from evalcore.shell.logs.tables.table import has_columns

    return mapping is not None and has_columns(found, mapping)


def _suffixes(path: Path) -> set[str]:
    return {one.lower() for one in path.suffixes[-2:]} - set(PACKED)


def _beside(results: Found) -> list[Found]:
    """The sample logs of the same run."""
    stamp = stamp_of(results.path.name)
    near = (one for one in sorted(results.path.parent.iterdir()) if one.is_file() and stamp_of(one.name) == stamp)
    logs = [one for one in map(tell_kind, near) if one.kind == "samples"]
    if not logs:
        raise EvalError(f"{results.path}: {NO_SAMPLES}")
    return logs


def _each_once(found: Sequence[Found]) -> list[Found]:
    """Every log once, in order: one may be named itself, and by the results of its run."""
    first: dict[Path, Found] = {}
    for one in found:
        first.setdefault(one.path.resolve(), one)
    return list(first.values())


def _by_kind(found: Sequence[Found]) -> Iterator[list[Found]]:
    """Sample logs together, as some may be shards of one task; every other log by itself; in their order."""
    samples = [one for one in found if one.kind == "samples"]
    for one in found:
        if one.kind != "samples":
            yield [one]
        elif one is samples[0]:
            yield samples


# --- tasks of logs --------------------------------------------------------------------------------------------------


def _opened(group: Sequence[Found], settings: Settings, keep_going: bool) -> list[LogTask]:
    first = group[0]
    try:
        if first.kind == "samples":
            return open_samples(group, settings.results_in, scores=settings.scores, requests=settings.requests)
        if first.kind == "lmms-json":
            return [open_lmms_json(first.path, scores=settings.scores)]
        if first.kind.startswith("inspect"):
            from evalcore.shell.logs.inspect.log import open_inspect

            return [open_inspect(first.path, zipped=first.kind == "inspect", requests=settings.requests)]
        from evalcore.shell.logs.tables.table import open_table

        return open_table(first, settings.mapping or ColumnMap())
    except EvalError as wrong:
        if not keep_going:
            raise
        return [_unreadable(one.path, wrong, settings.mapping) for one in group]


def _apart(tasks: Sequence[LogTask]) -> list[LogTask]:
    """Every task under a name of its own."""
    same: dict[str, list[int]] = {}
    for at, task in enumerate(tasks):
        same.setdefault(task.name, []).append(at)
    names = {at: name for one, places in same.items() for at, name in _names(one, places, tasks)}
    return [replace(task, name=names[at]) for at, task in enumerate(tasks)]


def _names(name: str, places: Sequence[int], tasks: Sequence[LogTask]) -> list[tuple[int, str]]:
    return list(zip(places, name_apart(name, [tasks[at].path for at in places]), strict=True))
