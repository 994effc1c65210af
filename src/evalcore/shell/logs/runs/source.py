"""What a path holds, told by its content: a run folder, a results file with its samples, or bare sample logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import force_setattr

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.unpack import PACKED, strip_packing
from evalcore.shell.logs.lm_eval.names import ENDINGS, STAMP, stamp_of, task_of_log
from evalcore.shell.logs.lm_eval.results import EXPECTED, list_tasks, read_results
from evalcore.shell.safety.safe_text import slug

__all__ = ["NO_SAMPLES", "Log", "Source", "find_results", "find_source"]

NO_SAMPLES = (
    "holds totals only, and scores by document are needed: run with log_samples: true (--log_samples), and keep the "
    "samples_* beside it"
)


class Log(Struct, frozen=True):
    """The sample log of a task: ``path``, or several ``files`` that it is one of.

    ``whole`` is whether the results count all of its documents, and not those of ``path`` alone.

    >>> Log("t", Path("samples_t.jsonl")).files
    (PosixPath('samples_t.jsonl'),)
    """

    task: str
    path: Path
    files: tuple[Path, ...] = ()
    whole: bool = True

    def __post_init__(self) -> None:
        if not self.files:
            force_setattr(self, "files", (self.path,))


class Source(Struct, frozen=True):
    """A run as files: its results, if any, and its sample logs; ``chosen`` are warnings of which of several is read."""

    name: str
    logs: tuple[Log, ...]
    results: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()


TABLES = {"parquet": "a Parquet file", "arrow": "an Arrow file", "text": "a table of answers"}
OTHERS = {"inspect": "an Inspect log", "lmms": "lmms-eval's samples", **TABLES}
FLAGS = ("-o DIR", "--answer COLUMN --gold COLUMN -o DIR")

Found = tuple[Path, Mapping[str, object], tuple[str, ...]]
"""A results file, what it says, and what there is to say about choosing it."""


def find_source(path: Path) -> Source:
    """The files of the run that a path names.

    >>> find_source(Path("no/such/run"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder; expected an evalcore run folder, ...
    """
    path = path.expanduser()
    if path.is_dir():
        return _folder_source(path)
    if not path.is_file():
        raise EvalError(f"{path}: no such file or folder; {EXPECTED}")
    kind = _kind(path)
    if kind == "samples":
        task = task_of_log(path)
        return Source(task, (Log(task, path),))
    if kind == "answers":
        raise EvalError(f"{path}: an answer log holds answers, not scores; name the folder of its run")
    if kind == "empty":
        raise EvalError(f"{path}: {EXPECTED}; it is empty")
    if kind in OTHERS:
        raise EvalError(
            f"{path}: {EXPECTED}; of {OTHERS[kind]}, `evalcore score {path} {FLAGS[kind in TABLES]}` makes one"
        )
    return _results_source(path.resolve().parent.name, *find_results(path))


def find_results(path: Path) -> Found:
    """The results that a file or folder holds, whether or not there are samples; of several in a folder the newest.

    >>> find_results(Path("no/such/run"))
    Traceback (most recent call last):
    evalcore.EvalError: no/such/run: no such file or folder; expected an evalcore run folder, ...
    """
    path = path.expanduser()
    if path.is_dir():
        found = _newest_results(path)
    elif path.is_file():
        results = read_results(path)
        found = None if results is None else (path, results, ())
    else:
        raise EvalError(f"{path}: no such file or folder; {EXPECTED}")
    if found is None:
        raise EvalError(f"{path}: {EXPECTED}; found no results in it")
    return found


# --- folders ----------------------------------------------------------------------------------------------------


def _folder_source(folder: Path) -> Source:
    """The newest results in a folder, else its sample logs, else those just below it."""
    name, found = folder.resolve().name, _newest_results(folder)
    if found is not None:
        return _results_source(name, *found)
    logs = _sample_logs(folder.glob("*")) or _sample_logs(folder.glob("*/*"))
    if not logs:
        raise EvalError(f"{folder}: {EXPECTED}; found neither results*.json nor a sample log in it")
    newest = {task_of_log(path): path for path in sorted(logs, key=_age)}
    each = tuple(Log(task, path) for task, path in sorted(newest.items()))
    told = f"{folder} has several logs of some tasks; read the newest of each"
    chosen = (told,) if len(logs) > len(newest) else ()
    return Source(name, each, {}, chosen, chosen)


def _sample_logs(paths: Iterable[Path]) -> list[Path]:
    """Those that hold rows of a sample log. Beside files that are called JSON, others are copies or something else."""
    shown = [path for path in sorted(paths) if path.is_file() and not {path.name[0], path.parent.name[:1]} & {"."}]
    named = [path for path in shown if strip_packing(path.name).endswith(ENDINGS)]
    logs = [path for path in named if _kind(path) == "samples"]
    return logs or [path for path in shown if path not in named and _holds_samples(path)]


def _holds_samples(path: Path) -> bool:
    try:
        return _kind(path) == "samples"
    except EvalError:  # what nobody named need not be readable
        return False


def _newest_results(folder: Path) -> Found | None:
    """Those in the folder itself, else those just below it, where lm-eval has a folder for each model."""
    below = (one for one in sorted(folder.iterdir()) if one.is_dir())
    files = _results_files(folder) or [file for one in below for file in _results_files(one)]
    told = f"{folder} has {len(files)} results files; read"
    for path in sorted(files, key=_age, reverse=True):
        results = read_results(path)
        if results is not None:
            return path, results, (f"{told} {path.relative_to(folder)}, the newest",) if len(files) > 1 else ()
    return None


def _results_files(folder: Path) -> list[Path]:
    """Ours, or whatever lm-eval may have named: ``results_<time>.json``, ``<own name>_<time>.json``."""
    own = folder / "results.json"
    if own.is_file():
        return [own]
    named = (path for path in folder.glob("*.json") if path.name.startswith("results") or STAMP.search(path.name))
    return [path for path in named if _kind(path) not in ("samples", "empty")]


def _age(path: Path) -> tuple[str, float]:
    return stamp_of(path.name), path.stat().st_mtime


# --- results, and the samples beside them -------------------------------------------------------------------------


def _results_source(name: str, path: Path, results: Mapping[str, object], warnings: tuple[str, ...]) -> Source:
    beside = {one.name: one for one in path.parent.iterdir() if one.is_file()}
    stamp = stamp_of(path.name)
    tasks = list_tasks(results)
    found = {task: _log_of(task, stamp, beside) for task in tasks}
    logs = tuple(Log(task, one) for task, one in found.items() if one is not None)
    if not logs:
        raise EvalError(f"{path}: {NO_SAMPLES}")
    lost = [task for task in tasks if found[task] is None]
    told = f"no samples of {len(lost)} of {len(tasks)} tasks beside {path.name}: {', '.join(lost[:5])}"
    missing = (told + (", ..." if len(lost) > 5 else ""),) if lost else ()
    return Source(name, logs, results, (*warnings, *missing), warnings)


def _log_of(task: str, stamp: str, beside: Mapping[str, Path]) -> Path | None:
    """The samples of the same time; only names that are there are looked at, whatever a task is called."""
    stems = [f"samples_{task}_{stamp}"] if stamp else [f"samples_{slug(task)}", f"samples_{task}"]
    names = (f"{stem}{ending}{packed}" for stem in stems for ending in ENDINGS for packed in ("", *PACKED))
    exact = next((beside[name] for name in names if name in beside), None)
    if exact is not None or stamp:
        return exact
    timed = [one for one in beside.values() if STAMP.search(one.name) and task_of_log(one) == task]
    return max((one for one in timed if one.name.startswith("samples_")), key=_age, default=None)


# --- content ----------------------------------------------------------------------------------------------------


def _kind(path: Path) -> str:
    from evalcore.shell.logs.head import tell_file
    from evalcore.shell.logs.readers import READERS  # only here: that table reads with this module

    file = tell_file(path, READERS)
    names = (name for name, reader in READERS.items() if reader is file.reader and not reader.tabular)
    return next(names, file.form)
