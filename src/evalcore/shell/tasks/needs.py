"""What a name needs before it may run: trust in code, or leave to read files of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.hub import list_texts, refuse_local
from evalcore.shell.data.local import is_remote
from evalcore.shell.data.readers import BUILDERS
from evalcore.shell.files.confinement import Allow, confine_paths
from evalcore.shell.files.given import parse_path
from evalcore.shell.tasks.code import list_code
from evalcore.shell.tasks.description import locate_functions
from evalcore.shell.tasks.library.index import TaskIndex, read_entry

NeedKind = Literal["class", "function", "dataset", "unsafe_code", "data"]
REASONS: Mapping[NeedKind, str] = {
    "class": "are Python classes, which evalcore does not run",
    "function": "run functions of files (--trust FILE)",
    "dataset": "ask for a dataset's own script (--trust dataset:NAME)",
    "unsafe_code": "run what the model writes (--confirm_run_unsafe_code)",
    "data": "read files outside their folder (--trust FILE, or --data)",
}


class Need(Struct, frozen=True):
    """Something that a name needs: its kind, and the file, dataset or class in question."""

    name: str
    kind: NeedKind
    what: str


def list_needs(index: TaskIndex, names: Iterable[str] | None = None) -> tuple[Need, ...]:
    """List all that these names (by default all of the index) need; nothing is run or read but task files."""
    wanted = index.entries if names is None else names
    return tuple(dict.fromkeys(need for name in wanted for need in _find_needs(index, name)))


def _find_needs(index: TaskIndex, name: str) -> Iterator[Need]:
    entry, config = index.entries[name], locate_functions(read_entry(index, name))
    if entry.kind == "py_task":
        yield Need(name, "class", str(getattr(config.get("class"), "name", config.get("class"))))
    for code in list_code(config):
        yield Need(name, code.kind, code.path or code.name)
    options = config.get("dataset_kwargs")
    if entry.path and isinstance(config.get("dataset_path"), str) and isinstance(options, Mapping):
        folder = os.path.dirname(entry.path)
        allow = confine_paths([folder, *(one for one in index.roots if folder.startswith(f"{one}/"))], "")
        what = _find_outside(str(config["dataset_path"]), options, folder, allow)
        yield from [Need(name, "data", what)] if what else []


def _find_outside(path: str, options: Mapping[str, object], folder: str, allow: Allow) -> str:
    """Find the first file that a task may not name; empty if there is none."""
    try:
        if path not in BUILDERS or is_remote(options.get("data_files")):
            refuse_local(path, options, allow)
            return ""
        for name in list_texts([options.get("data_files"), options.get("data_dir")]):
            allow(parse_path(folder) / parse_path(name).expanduser())
    except EvalError as wrong:
        return str(wrong).partition(": ")[2].partition(";")[0]
    return ""
