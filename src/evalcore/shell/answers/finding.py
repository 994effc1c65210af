"""The files that paths, folders and globs name, and the results that stand beside a sample log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from glob import glob, has_magic
from os.path import commonpath
from pathlib import Path

from msgspec import Struct, field

from evalcore.core.errors import EvalError
from evalcore.shell.output.text import slug
from evalcore.shell.recorded.finding import list_tasks, read_results, stamp_of, task_of_log

__all__ = ["Named", "Placed", "list_paths", "name_apart", "place_log", "read_folder_results"]

Plain = Mapping[str, object]
Results = Sequence[tuple[str, Plain]]


class Named(Struct, frozen=True):
    """A file, and whether it was named itself or only caught by a folder or a glob."""

    path: Path
    directly: bool


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
    evalcore.core.errors.EvalError: no/such/log: no such file or folder
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

    >>> place_log(Path("samples_gsm8k.jsonl"), lambda folder: [("results.json", {"results": {"gsm8k": {}}})]).task
    'gsm8k'
    """
    stem, stamp = task_of_log(path), stamp_of(path.name)
    for results in [found for name, found in results_in(path.resolve().parent) if stamp_of(name) == stamp]:
        named = [task for task in list_tasks(results) if _is_named(task, stem)]
        if named:
            return Placed(max(named, key=len), results)
    return Placed(stem)


def _is_named(task: str, stem: str) -> bool:
    """Whether a file of this stem may be the task's; logs of 2023 have the model before it."""
    return stem in (task, slug(task)) or stem.endswith(f"_{task}")


def read_folder_results(folder: Path) -> Results:
    """The results files of a folder by name.

    >>> read_folder_results(Path("no/such/folder"))
    ()
    """
    out: list[tuple[str, Plain]] = []
    for path in sorted(folder.glob("*.json")):
        if "results" in path.name or stamp_of(path.name):
            try:
                found = read_results(path)
            except EvalError:
                continue
            if found is not None:
                out.append((path.name, found))
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
