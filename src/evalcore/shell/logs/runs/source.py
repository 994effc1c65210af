"""The files of the run that a path names: a run folder, results with their samples, or logs of any format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import force_setattr

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.shell.data.unpack import PACKED, strip_packing
from evalcore.shell.logs.lm_eval.names import ENDINGS, STAMP, find_stamp, name_task
from evalcore.shell.logs.lm_eval.results import EXPECTED, list_tasks, read_results, tell_misfit
from evalcore.shell.logs.log import NOTHING, Reader
from evalcore.shell.logs.paths import show_names
from evalcore.shell.logs.search import ALL, FLAGS, NO_SAMPLES, Searched, refuse_other_rows
from evalcore.shell.safety.safe_text import slug


class RunLog(Struct, frozen=True):
    """The sample log of a task: ``path``, or several ``files`` that include it.

    ``whole`` is whether the results count all its documents, not only those of ``path``.

    >>> RunLog("t", Path("samples_t.jsonl")).files
    (PosixPath('samples_t.jsonl'),)
    """

    task: str
    path: Path
    files: tuple[Path, ...] = ()
    whole: bool = True

    def __post_init__(self) -> None:
        if not self.files:
            force_setattr(self, "files", (self.path,))


class RunFiles(FrozenRecord, frozen=True):
    """A run as files: its results, if any, and its sample logs; or ``others``, logs of other formats.

    ``chosen`` are the warnings that say which of several files is read.
    """

    name: str
    logs: tuple[RunLog, ...] = ()
    results: Mapping[str, object] = NOTHING
    warnings: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()


FORMS = {"parquet": "a Parquet file", "arrow": "an Arrow file", "text": "a table of answers"}

NewestResults = tuple[Path, Mapping[str, object], tuple[str, ...]]
"""A results file, its content, and warnings about its choice."""


def find_run(path: Path, searched: Searched = ALL) -> RunFiles:
    """Find the files of the run that a path names.

    >>> find_run(Path("no/such/run"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder; expected an evalcore run folder, ...
    """
    path = _require_path(path)
    if path.is_dir():
        return _folder_run(path, searched)
    file = searched.tell(path)
    if file.has_rows:
        task = name_task(path)
        return RunFiles(task, (RunLog(task, path),))
    if searched.is_log(file, directly=True):
        return RunFiles(Path(strip_packing(path.name)).stem, others=(path,))
    return _results_run(path.resolve().parent.name, *find_results(path, searched))


def find_sample_logs(path: Path) -> RunFiles:
    """Find the files of a run, which must be sample logs."""
    found = find_run(path)
    if found.others:
        reader = ALL.tell(found.others[0]).reader or Reader()
        raise EvalError(f"{path}: {EXPECTED}; of {reader.title}, `evalcore score {path} -o DIR` makes one")
    return found


def find_results(path: Path, searched: Searched = ALL) -> NewestResults:
    """Find the results in a file or folder, with or without samples; the newest of several in a folder.

    >>> find_results(Path("no/such/run"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder; expected an evalcore run folder, ...
    """
    path = _require_path(path)
    found = _newest_results(path, searched) if path.is_dir() else None
    if not path.is_dir() and not _is_other(path, searched):
        _refuse_form(path, searched.tell(path).form)
        results = read_results(path)
        found = None if results is None else (path, results, ())
    if found is None:
        raise _lack(path, "no results")
    return found


def _refuse_form(path: Path, form: str | None) -> None:
    """Say what a file is, where it is neither results nor a sample log."""
    if form == "answers":
        raise EvalError(f"{path}: an answer log holds answers, not scores; name the folder of its run")
    if form == "empty":
        raise EvalError(f"{path}: {EXPECTED}; it is empty")
    if form in ("json", "results"):
        refuse_other_rows(path)
    if form in FORMS:
        raise EvalError(f"{path}: {EXPECTED}; of {FORMS[form]}, `evalcore score {path} {FLAGS}` makes one")


def _lack(path: Path, what: str) -> EvalError:
    lacked = "written its results" if any(path.glob("samples_*.jsonl")) else "scored a task"
    hint = f"; its run has not {lacked} yet: the same `evalcore run` goes on" * (path / "answers.jsonl").is_file()
    named = sorted(path.glob("results*.json"))
    return EvalError(f"{path}: {EXPECTED}; {tell_misfit(named[0]) if named else f'found {what} in it'}{hint}")


def _require_path(given: Path) -> Path:
    path = given.expanduser()
    if not path.is_dir() and not path.is_file():
        raise EvalError(f"{path}: no such file or folder; {EXPECTED}")
    return path


# --- folders ----------------------------------------------------------------------------------------------------


def _folder_run(folder: Path, searched: Searched) -> RunFiles:
    """The newest results in a folder, else its sample logs or those just below it, else its other logs."""
    name, found = folder.resolve().name, _newest_results(folder, searched)
    if found is not None:
        return _results_run(name, *found)
    logs = _sample_logs(folder.glob("*"), searched) or _sample_logs(folder.glob("*/*"), searched)
    if not logs:
        others = _other_logs(folder.glob("*"), searched) or _other_logs(folder.glob("*/*"), searched)
        if not others:
            raise _lack(folder, "neither results*.json nor a sample log")
        return RunFiles(name, others=tuple(sorted(others, key=lambda path: (_stamp_within(path.name), find_age(path)))))
    newest = {name_task(path): path for path in sorted(logs, key=find_age)}
    each = tuple(RunLog(task, path) for task, path in sorted(newest.items()))
    chosen = (tell_newest(folder),) if len(logs) > len(newest) else ()
    return RunFiles(name, each, NOTHING, chosen, chosen)


def _stamp_within(name: str) -> str:
    """The time anywhere in a name; Inspect writes it first."""
    found = STAMP.search(name)
    return found[0] if found else ""


def tell_newest(folder: Path) -> str:
    """Warn that only the newest of several logs of a task is read."""
    return f"{folder} has several logs of some tasks; read the newest of each"


def _shown(paths: Iterable[Path]) -> list[Path]:
    return [path for path in sorted(paths) if path.is_file() and not {path.name[0], path.parent.name[:1]} & {"."}]


def _sample_logs(paths: Iterable[Path], searched: Searched) -> list[Path]:
    """The files with lm-eval's rows. Beside files with a JSON suffix, others are copies or something else."""
    shown = _shown(paths)
    named = [path for path in shown if strip_packing(path.name).endswith(ENDINGS)]

    def has_rows(path: Path) -> bool:
        return searched.tell(path).has_rows

    return list(filter(has_rows, named)) or [
        path for path in shown if path not in named and _if_readable(has_rows, path)
    ]


def _other_logs(paths: Iterable[Path], searched: Searched) -> list[Path]:
    return [path for path in _shown(paths) if _if_readable(partial(_is_other, searched=searched), path)]


def _is_other(path: Path, searched: Searched) -> bool:
    """Whether a file is a log of another format than lm-eval's."""
    file = searched.tell(path)
    return not file.has_rows and searched.is_log(file)


def _if_readable(holds: Callable[[Path], bool], path: Path) -> bool:
    try:
        return holds(path)
    except EvalError:  # what nobody named need not be readable
        return False


def _newest_results(folder: Path, searched: Searched) -> NewestResults | None:
    """The newest in the folder itself, else just below it, where lm-eval has a folder for each model."""
    below = (one for one in sorted(folder.iterdir()) if one.is_dir() and not one.name.startswith("."))
    files = _results_files(folder, searched) or [file for one in below for file in _results_files(one, searched)]
    told = f"{folder} has {len(files)} results files; read"
    for path in sorted(files, key=find_age, reverse=True):
        results = read_results(path)
        if results is not None:
            return path, results, (f"{told} {path.relative_to(folder)}, the newest",) if len(files) > 1 else ()
    return None


def _results_files(folder: Path, searched: Searched) -> list[Path]:
    """Ours, or lm-eval's: ``results_<time>.json`` or ``<own name>_<time>.json``."""
    own = folder / "results.json"
    if own.is_file():
        return [own]
    named = (path for path in folder.glob("*.json") if path.name.startswith("results") or STAMP.search(path.name))
    files = (file for file in map(searched.tell, named) if file.form != "empty")
    return [file.path for file in files if file.reader is None or file.reader.tabular]


def find_age(path: Path) -> tuple[str, float]:
    """Find the time in a file's name and that of its last change, which sort the newest last."""
    return find_stamp(path.name), path.stat().st_mtime


# --- results, and the samples beside them -------------------------------------------------------------------------


def _results_run(name: str, path: Path, results: Mapping[str, object], warnings: tuple[str, ...]) -> RunFiles:
    beside = {one.name: one for one in path.parent.iterdir() if one.is_file()}
    stamp = find_stamp(path.name)
    tasks = list_tasks(results)
    found = {task: _log_of(task, stamp, beside) for task in tasks}
    logs = tuple(RunLog(task, one) for task, one in found.items() if one is not None)
    if not logs:
        raise EvalError(f"{path}: {NO_SAMPLES}")
    lost = [task for task in tasks if found[task] is None]
    missing = f"no samples of {len(lost)} of {len(tasks)} tasks beside {path.name}: {show_names(lost)}"
    return RunFiles(name, logs, results, (*warnings, missing) if lost else warnings, warnings)


def _log_of(task: str, stamp: str, beside: Mapping[str, Path]) -> Path | None:
    """The samples of the same time, looked up among existing names only, whatever the name of the task."""
    stems = [f"samples_{task}_{stamp}"] if stamp else [f"samples_{slug(task)}", f"samples_{task}"]
    names = (f"{stem}{ending}{packed}" for stem in stems for ending in ENDINGS for packed in ("", *PACKED))
    exact = next((beside[name] for name in names if name in beside), None)
    if exact is not None or stamp:
        return exact
    timed = [one for one in beside.values() if STAMP.search(one.name) and name_task(one) == task]
    return max((one for one in timed if one.name.startswith("samples_")), key=find_age, default=None)
