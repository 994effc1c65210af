"""The documents of a task by split, found and read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from evalcore.core.records.errors import EvalError, locate, place
from evalcore.shell.data.align import Doc
from evalcore.shell.data.hub import check_splits, list_documents, load_from_hub, refuse_local
from evalcore.shell.data.local import Parts, Read, is_remote, open_builder, open_path, read_given
from evalcore.shell.data.readers import BUILDERS, DATA_READERS, Readers
from evalcore.shell.files.confinement import Allow, allow_any
from evalcore.shell.files.given import parse_path

Result = TypeVar("Result")
SPLIT_KEYS = ("training_split", "validation_split", "test_split", "fewshot_split")


class Splits(Mapping[str, Sequence[Doc]]):
    """Documents by split, each split read once, at first use. A part named ``*`` serves every other name."""

    def __init__(
        self, task: str, find: Callable[[], Parts], named: Sequence[str], warnings: Sequence[str] = ()
    ) -> None:
        self.warnings = tuple(warnings)
        self._task, self._find, self._named = task, find, tuple(named)
        self._found: Parts | None = None
        self._read: dict[str, Sequence[Doc]] = {}

    def __getitem__(self, name: str) -> Sequence[Doc]:
        parts = self._parts
        key = name if name in parts else "*"
        if key not in parts:
            raise KeyError(name)
        if key not in self._read:
            self._read[key] = self._locate_errors(parts[key])
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        names = {**dict.fromkeys(self._named), **self._parts} if "*" in self._parts else self._parts
        return (name for name in names if name != "*")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._parts or "*" in self._parts

    @property
    def _parts(self) -> Parts:
        if self._found is None:
            self._found = self._locate_errors(self._find)
        return self._found

    def _locate_errors(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except EvalError as wrong:
            raise locate(wrong, place(self._task)) from wrong


def load_splits(
    config: Mapping[str, object],
    override: object = None,
    *,
    root: str | Path | Sequence[str | Path] = ".",
    readers: Readers = DATA_READERS,
    allow: Allow = allow_any,
) -> Splits:
    """Load the documents of a task: from the override, its own files, its ``custom_dataset`` or the hub, in that order.

    Relative paths are searched under each ``root`` in turn (the task file's folder), then in the working directory.
    ``allow`` decides which files a task may name itself; those of the override are the user's own choice.

    >>> load_splits({"task": "t", "test_split": "test"}, [{"q": "2 + 2 ="}])["test"]
    [{'q': '2 + 2 ='}]
    """
    task = str(config.get("task", "task"))
    roots = tuple(map(parse_path, (root,) if isinstance(root, str | Path) else root))
    options = dict(_read_mapping(config, "dataset_kwargs", task))
    warnings = []
    if options.pop("trust_remote_code", None):
        warnings.append(f"trust_remote_code is not honoured: no dataset script is run - at {task}")
    shots = config.get("fewshot_config")
    split = shots.get("split") if isinstance(shots, Mapping) else None
    named = [str(name) for name in (*(config.get(key) for key in SPLIT_KEYS), split) if name]

    def find() -> Parts:
        if override is not None:
            return read_given(override, roots, readers)
        return _find_own(config, options, task, roots, readers, allow)

    return Splits(task, find, named, warnings)


def _find_own(
    config: Mapping[str, object],
    options: dict[str, object],
    task: str,
    roots: Sequence[Path],
    readers: Readers,
    allow: Allow,
) -> Parts:
    custom = config.get("custom_dataset")
    if callable(custom):
        return _defer_reading(_call_custom(custom, {**_read_mapping(config, "metadata", task)}, options, task), task)
    path, name = config.get("dataset_path"), config.get("dataset_name")
    if not isinstance(path, str) or not path:
        raise EvalError(f"no dataset_path; name one, or give local documents: `data: {{{task}: file.jsonl}}`")
    if path in BUILDERS and not is_remote(options.get("data_files")):
        return open_builder(path, options, roots, allow)
    local = open_path(path, name, roots, readers, allow) if not options.get("data_files") else None
    if local is not None:
        return local
    refuse_local(path, options, allow)
    return _defer_reading(load_from_hub(path, name, options, task), task)


def _call_custom(
    custom: Callable[..., object], metadata: dict[str, object], options: dict[str, object], task: str
) -> Mapping[str, object]:
    """Call ``custom_dataset`` as lm-eval does: a key in both mappings is an error there and here."""
    try:
        return check_splits(custom(**metadata, **options), task)
    except EvalError:
        raise
    except Exception as wrong:
        raise EvalError(f"custom_dataset: {type(wrong).__name__}: {wrong}") from wrong


def _defer_reading(splits: Mapping[str, object], task: str) -> Parts:
    def later(name: str) -> Read:
        return lambda: list_documents(splits[name], place(task, key=name))

    return {str(name): later(name) for name in splits}


def _read_mapping(config: Mapping[str, object], key: str, task: str) -> Mapping[str, object]:
    value = config.get(key) or {}
    if not isinstance(value, Mapping):
        raise EvalError(f"{key}: expected names with values, got {value!r}{place(task)}")
    return value
