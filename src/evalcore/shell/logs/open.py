"""Paths into the tasks whose answers they record; the format is detected from the content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.logs.head import LogFile
from evalcore.shell.logs.json_records import Record, locate_problem, refuse_problems
from evalcore.shell.logs.lm_eval.names import is_sample_name, name_task
from evalcore.shell.logs.lm_eval.results import find_damaged, read_folder_results
from evalcore.shell.logs.log import Logged, LogTask, Opening, Problem, Reader
from evalcore.shell.logs.paths import list_paths, name_apart
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.search import DATA, EXPECTED, Searched, find_logs, list_suffixes
from evalcore.shell.logs.tables.column_map import ColumnMap

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
    """Open the tasks whose answers these files, folders and globs record, whatever the names of the files.

    ``mapping`` declares the columns of plain tables. With ``keep_going``, records and files that cannot be read are
    yielded as problems; otherwise the first is raised. With ``scores``, documents of sample logs include their logged
    scores under every filter, which are held in memory; other logs have their scores anyway. Without ``requests``,
    documents omit what was asked and are read faster.

    >>> open_logs(["no/such/run"])
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder
    """
    results_in = lru_cache(maxsize=None)(read_folder_results)
    opening = Opening(columns=mapping, scores=scores, requests=requests, results_in=results_in)
    searched = Searched(readers, mapping)
    files: list[LogFile] = []
    tasks: list[LogTask] = []
    left: list[str] = []
    for named in list_paths(paths):
        try:
            logs, missed = find_logs(named, searched)
            files += logs
            left += [str(named.path)] if missed else []
        except EvalError as wrong:
            if not keep_going:
                raise
            tasks.append(_unreadable(named.path, wrong, mapping))
    files = _each_once(files)
    beside = [one.path for one in files if one.reader is not None and one.reader.results_beside]
    for path, fault in find_damaged(beside, results_in).items():
        if not keep_going:
            raise fault
        tasks.append(_unreadable(path, fault, mapping))
    for group in _by_reader(files):
        tasks += _opened(group, opening, keep_going)
    if not tasks:
        raise EvalError(f"{', '.join(map(str, paths))}: {EXPECTED}; found none")
    told = (_tell_left(left),) if left else ()
    tasks = [replace(task, warnings=(*told, *task.warnings)) if not at else task for at, task in enumerate(tasks)]
    return tuple(_guard(task, keep_going) for task in _apart(tasks))


def _tell_left(left: Sequence[str]) -> str:
    """Name five files, and count the others by folder."""
    more = Counter(str(Path(one).parent) for one in left[NAMED:])
    rest = "".join(f"; {count:,} more in {folder}" for folder, count in more.items())
    files = "1 file is no log, and is" if len(left) == 1 else f"{len(left):,} files are no logs, and are"
    return f"{files} not read: {', '.join(left[:NAMED])}{rest}"


def _guard(task: LogTask, keep_going: bool) -> LogTask:
    """The task; without ``keep_going`` its first problem is raised."""
    if keep_going:
        return task
    some = None if task.some is None else partial(_refuse, task.some, task.name)
    return replace(task, rows=partial(_refuse, task.rows, task.name), some=some)


def _refuse(rows: Callable[..., Iterator[Logged | Problem]], name: str, *picks: object) -> Iterator[Logged]:
    return refuse_problems(rows(*picks), name)


def _unreadable(path: Path, wrong: EvalError, mapping: ColumnMap | None) -> LogTask:
    """An unreadable file; if columns are declared, one named like a table counts as a table, so that they had a use."""
    tabular = mapping is not None and bool(list_suffixes(path) & DATA - {".eval"}) and not is_sample_name(path)
    problem = locate_problem(path, Record(1, 0, b""), wrong)
    return LogTask(
        name=name_task(path),
        path=path,
        output_type=GENERATE_UNTIL,
        rows=lambda: iter((problem,)),
        reader=Reader(tabular=tabular, results_beside=not tabular),
    )


def _each_once(files: Sequence[LogFile]) -> list[LogFile]:
    """Each log once, in order; a log may be named both directly and by the results of its run."""
    first: dict[Path, LogFile] = {}
    for one in files:
        first.setdefault(one.path.resolve(), one)
    return list(first.values())


def _by_reader(files: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Group files that may be shards of one task; every other log stands alone. The order is kept."""
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
    """Give every task a name of its own."""
    same: dict[str, list[int]] = {}
    for at, task in enumerate(tasks):
        same.setdefault(task.name, []).append(at)
    names = {at: name for one, places in same.items() for at, name in _names(one, places, tasks)}
    return [replace(task, name=names[at]) for at, task in enumerate(tasks)]


def _names(name: str, places: Sequence[int], tasks: Sequence[LogTask]) -> list[tuple[int, str]]:
    return list(zip(places, name_apart(name, [tasks[at].path for at in places]), strict=True))
