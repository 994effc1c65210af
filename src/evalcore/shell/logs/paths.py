"""The files that paths, folders and globs name, and the results that stand beside a sample log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from glob import glob, has_magic
from os.path import commonpath
from pathlib import Path

from msgspec import Struct, field

from evalcore.core.records.errors import EvalError
from evalcore.shell.logs.runs.source import list_tasks, read_results, stamp_of, task_of_log
from evalcore.shell.output.terminal.safe_text import slug

__all__ = [
    "NO_MODEL",
    "Named",
    "Placed",
    "Told",
    "damaged_beside",
    "list_paths",
    "name_apart",
    "place_log",
    "read_folder_results",
]

Plain = Mapping[str, object]
NO_MODEL = "recorded"
"""The model of results of answers that nothing tells the model of."""


class Named(Struct, frozen=True):
    """A file, and whether it was named itself or only caught by a folder or a glob."""

    path: Path
    directly: bool


class Told(Struct, frozen=True):
    """A results file beside logs: what it says and the tasks by what their logs may be called, or why it is unreadable.

    >>> Told(Path("results.json"), {"results": {"a": {}}}).tasks
    {'a': 'a'}
    """

    path: Path
    results: Plain
    fault: EvalError | None = None
    tasks: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for task in list_tasks(self.results):
            self.tasks[task] = task
            self.tasks.setdefault(slug(task), task)

    @property
    def stamp(self) -> str:
        return stamp_of(self.path.name)


Results = Sequence[Told]


class Placed(Struct, frozen=True):
    """What a sample log is called, and the results and the config beside it, if there are any."""

    task: str
    results: Plain = field(default_factory=dict)

    @property
    def config(self) -> Plain:
        return _mapping(_mapping(self.results.get("configs")).get(self.task))

    @property
    def row(self) -> Plain:
        return _mapping(_mapping(self.results.get("results")).get(self.task))


def list_paths(given: Sequence[str | Path]) -> list[Named]:
    """Every file once, in the order given; those of folders and globs by name, without hidden ones.

    >>> list_paths(["no/such/log"])
    Traceback (most recent call last):
    evalcore.EvalError: no/such/log: no such file or folder
    """
    out: dict[Path, Named] = {}
    for one in given:
        path = Path(one).expanduser()
        if path.is_file():
            found = [Named(path, True)]
        elif path.is_dir():
            found = _below(path)
        elif has_magic(str(path)):
            caught = [Path(name) for name in sorted(glob(str(path), recursive=True))]
            found = [each for name in caught for each in (_below(name) if name.is_dir() else [Named(name, False)])]
        else:
            raise EvalError(f"{one}: no such file or folder")
        if not found:
            raise EvalError(f"{one}: expected recorded answers, found no file there")
        for each in found:
            known = out.setdefault(each.path.resolve(), each)
            if each.directly and not known.directly:
                out[each.path.resolve()] = each
    return list(out.values())


def _below(folder: Path) -> list[Named]:
    return [
        Named(path, False)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def place_log(path: Path, results_in: Callable[[Path], Results]) -> Placed:
    """The name of a log's task and the results of its run: those of the same time in the same folder.

    >>> told = Told(Path("results.json"), {"results": {"gsm8k": {}}})
    >>> place_log(Path("pretrained_gsm8k.jsonl"), lambda folder: [told]).task
    'gsm8k'
    """
    stem, stamp = task_of_log(path), stamp_of(path.name)
    for told in results_in(path.resolve().parent):
        named = _named(told, stem) if told.stamp == stamp else None
        if named is not None:
            return Placed(named, told.results)
    return Placed(stem)


def _named(told: Told, stem: str) -> str | None:
    """The task whose file may have this stem, the longest of several; logs of 2023 have the model before it."""
    ends = (stem[at + 1 :] for at, mark in enumerate(stem) if mark == "_")
    after = (end for end in ends if told.tasks.get(end) == end)
    return told.tasks.get(stem) or next(after, None)


def damaged_beside(paths: Sequence[Path], results_in: Callable[[Path], Results]) -> dict[Path, EvalError]:
    """The results files of the runs of these logs that cannot be read."""
    runs = dict.fromkeys((path.resolve().parent, stamp_of(path.name)) for path in paths)
    told = [one for folder, stamp in runs for one in results_in(folder) if one.stamp == stamp]
    return {one.path: one.fault for one in told if one.fault is not None}


def read_folder_results(folder: Path) -> Results:
    """The results files of a folder by name.

    >>> read_folder_results(Path("no/such/folder"))
    ()
    """
    out: list[Told] = []
    for path in sorted(folder.glob("*.json")):
        if "results" in path.name or stamp_of(path.name):
            try:
                found = read_results(path)
            except EvalError as wrong:
                out.append(Told(path, {}, wrong))
                continue
            if found is not None:
                out.append(Told(path, found))
    return tuple(out)


def name_apart(name: str, paths: Sequence[Path]) -> list[str]:
    """A name for each of several logs of one task that are not its parts: with where it is, as far as they differ.

    >>> name_apart("gsm8k", [Path("a/x/s.jsonl"), Path("a/y/s.jsonl")])
    ['gsm8k (x/s.jsonl)', 'gsm8k (y/s.jsonl)']
    """
    if len(paths) < 2:
        return [name] * len(paths)
    shared = Path(commonpath([path.resolve().parent for path in paths]))
    return [f"{name} ({path.resolve().relative_to(shared).as_posix()})" for path in paths]


def _mapping(value: object) -> Plain:
    return value if isinstance(value, Mapping) else {}
