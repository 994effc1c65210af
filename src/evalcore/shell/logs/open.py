"""Paths into the tasks whose answers they record; the format of a file is told by its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.data.unpack import PACKED
from evalcore.shell.logs.head import LogFile, is_torn, tell_file
from evalcore.shell.logs.json_records import Record, problem_at, refuse_problems
from evalcore.shell.logs.lm_eval.log import SAMPLES
from evalcore.shell.logs.lm_eval.names import STAMP, is_sample_name, stamp_of, task_of_log
from evalcore.shell.logs.lm_eval.results import damaged_beside, read_folder_results
from evalcore.shell.logs.log import Logged, LogTask, Opening, Problem, Reader
from evalcore.shell.logs.paths import Named, list_paths, name_apart
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.runs.source import NO_SAMPLES
from evalcore.shell.logs.tables.column_map import ColumnMap

__all__ = ["open_logs"]

EXPECTED = (
    "expected a sample log (lm-eval, lmms-eval, evalcore), an Inspect log (.eval, .json), or a table (JSONL, CSV, "
    "Parquet) with its columns declared (--answer, --gold, ...)"
)
REFUSALS = {
    "answers": "an answer log has no documents or golds; name the folder of its run",
    "binary": "found bytes that are no text",
    "empty": "it is empty",
    "json": "found JSON of another kind, and no columns are declared",
    "text": "found text, and no columns are declared",
    "parquet": "found Parquet, and no columns are declared",
    "arrow": "found Arrow, and no columns are declared",
}
UNKNOWN = "no reader takes what is in it"
DATA = frozenset({".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".eval"})
"""Suffixes of files that are told of where a folder or glob caught them and they are no logs."""
NAMED = 5


def open_logs(
    paths: Sequence[str | Path],
    *,
    mapping: ColumnMap | None = None,
    keep_going: bool = False,
    scores: bool = False,
    requests: bool = True,
    readers: PMap[str, Reader] = READERS,
) -> tuple[LogTask, ...]:
    """The tasks whose answers these files, folders and globs record, whatever the files are called.

    ``mapping`` declares the columns of plain tables. With ``keep_going``, records and files that cannot be read are
    yielded as problems, else the first is raised. With ``scores``, documents of sample logs come with what was logged
    for them under every filter, which is held in memory; other logs have their scores anyway. Without ``requests``,
    they come without what was asked, and faster.

    >>> open_logs(["no/such/run"])
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder
    """
    results_in = lru_cache(maxsize=None)(read_folder_results)
    opening = Opening(columns=mapping, scores=scores, requests=requests, results_in=results_in)
    files: list[LogFile] = []
    tasks: list[LogTask] = []
    left: list[str] = []
    for named in list_paths(paths):
        try:
            files += _logs_of(named, mapping, readers, left)
        except EvalError as wrong:
            if not keep_going:
                raise
            tasks.append(_unreadable(named.path, wrong, mapping))
    files = _each_once(files)
    beside = [one.path for one in files if one.reader is not None and one.reader.results_beside]
    for path, fault in damaged_beside(beside, results_in).items():
        if not keep_going:
            raise fault
        tasks.append(_unreadable(path, fault, mapping))
    for group in _by_reader(files):
        tasks += _opened(group, opening, keep_going)
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
    tabular = mapping is not None and bool(_suffixes(path) & DATA - {".eval"}) and not is_sample_name(path)
    problem = problem_at(path, Record(1, 0, b""), wrong)
    return LogTask(
        name=task_of_log(path),
        path=path,
        output_type=GENERATE_UNTIL,
        rows=lambda: iter((problem,)),
        reader=Reader(tabular=tabular, results_beside=not tabular),
    )


# --- which files are logs -------------------------------------------------------------------------------------------


def _logs_of(named: Named, mapping: ColumnMap | None, readers: PMap[str, Reader], left: list[str]) -> list[LogFile]:
    """The log that a file is, or those of the results that it holds; others are refused only if named themselves."""
    file = tell_file(named.path, readers)
    if _is_results(file):
        return _beside(file, readers) if named.directly else []
    if not named.directly and _is_copy(file, readers):
        return []
    if file.reader is not None and _may_open(file, file.reader, named, mapping):
        return [file]
    if file.form in ("text", "binary") and is_sample_name(named.path):
        return [replace(file, reader=SAMPLES)]
    if named.directly or _is_damaged(file, mapping is not None):
        raise EvalError(f"{named.path}: {EXPECTED}; {REFUSALS.get(file.form, UNKNOWN)}")
    if file.form != "answers" and (_suffixes(named.path) & DATA or is_torn(file)):
        left.append(str(named.path))
    return []


def _may_open(file: LogFile, reader: Reader, named: Named, mapping: ColumnMap | None) -> bool:
    """Whether a file is a log as it is; a table is one with the declared columns."""
    if not reader.tabular:
        return True
    return mapping is not None and (named.directly or reader.has_columns(file, mapping))


def _is_copy(file: LogFile, readers: PMap[str, Reader]) -> bool:
    """Whether a file is what ``run --parquet`` writes beside results or a sample log: the same once more."""
    path = file.path
    if file.form != "parquet" or path.suffix != ".parquet":
        return False
    if is_sample_name(path.with_suffix(".jsonl")):
        names = (f"{ending}{packed}" for ending in (".jsonl", ".json") for packed in ("", *PACKED))
        return any(path.with_suffix(name).is_file() for name in names)
    results = path.with_suffix(".json")
    return results.is_file() and _is_results(tell_file(results, readers))


def _is_results(file: LogFile) -> bool:
    return file.reader is None and file.form == "results"


def _is_damaged(file: LogFile, declared: bool) -> bool:
    """Whether a file is called what a log is called, or a table where columns are declared, and is none."""
    path = file.path
    if file.form == "binary" and declared and _suffixes(path) & DATA:
        return True
    if file.form == "empty":
        return is_sample_name(path) or path.suffix == ".eval"
    return path.suffix == ".eval" or (path.suffix == ".json" and STAMP.search(path.name) is not None and is_torn(file))


def _suffixes(path: Path) -> set[str]:
    return {one.lower() for one in path.suffixes[-2:]} - set(PACKED)


def _beside(results: LogFile, readers: PMap[str, Reader]) -> list[LogFile]:
    """The logs of the run that results are of."""
    stamp = stamp_of(results.path.name)
    near = (one for one in sorted(results.path.parent.iterdir()) if one.is_file() and stamp_of(one.name) == stamp)
    logs = [one for one in (tell_file(path, readers) for path in near) if one.reader is not None and one.reader.shards]
    if not logs:
        raise EvalError(f"{results.path}: {NO_SAMPLES}")
    return logs


def _each_once(files: Sequence[LogFile]) -> list[LogFile]:
    """Every log once, in order: one may be named itself, and by the results of its run."""
    first: dict[Path, LogFile] = {}
    for one in files:
        first.setdefault(one.path.resolve(), one)
    return list(first.values())


def _by_reader(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Files that may be shards of one task together; every other log by itself; in their order."""
    done: list[Reader] = []
    for one in files:
        if one.reader is None or not one.reader.shards:
            yield [one]
        elif one.reader not in done:
            done.append(one.reader)
            yield [other for other in files if other.reader == one.reader]


# --- tasks of logs --------------------------------------------------------------------------------------------------


def _opened(group: Sequence[LogFile], opening: Opening, keep_going: bool) -> list[LogTask]:
    reader = group[0].reader or Reader()
    try:
        return [replace(task, reader=reader) for task in reader.opens(group, opening)]
    except EvalError as wrong:
        if not keep_going:
            raise
        return [_unreadable(one.path, wrong, opening.columns) for one in group]


def _apart(tasks: Sequence[LogTask]) -> list[LogTask]:
    """Every task under a name of its own."""
    same: dict[str, list[int]] = {}
    for at, task in enumerate(tasks):
        same.setdefault(task.name, []).append(at)
    names = {at: name for one, places in same.items() for at, name in _names(one, places, tasks)}
    return [replace(task, name=names[at]) for at, task in enumerate(tasks)]


def _names(name: str, places: Sequence[int], tasks: Sequence[LogTask]) -> list[tuple[int, str]]:
    return list(zip(places, name_apart(name, [tasks[at].path for at in places]), strict=True))
