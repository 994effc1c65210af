"""The linter: everything wrong with task files before anything runs, with file and line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from evalcore.core.groups.config import GROUP_KEYS
from evalcore.core.groups.lint import lint_configs
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.config.yaml_file import FunctionTag, Loaded, read_yaml
from evalcore.shell.prompts.templates.compile import compile_template
from evalcore.shell.tasks.code import find_function, map_values
from evalcore.shell.tasks.library.files import TaskProblem
from evalcore.shell.tasks.library.includes import is_shipped, list_files_behind
from evalcore.shell.tasks.library.index import TaskIndex
from evalcore.shell.tasks.selection import Selection, select_specs
from evalcore.shell.tasks.shape import list_configs
from evalcore.shell.tasks.task_keys import TASK_KEYS

TEMPLATES = (
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
    "description",
    "gen_prefix",
    "doc_to_decontamination_query",
    "cluster",
)
ERRORS = frozenset({"cycle", "unknown_child", "duplicate_name", "bad_config"})


def check_tasks(index: TaskIndex, names: Sequence[str] | None = None) -> tuple[TaskProblem, ...]:
    """Find every problem of these names (by default the whole index) and of the files behind them; none is raised.

    Kinds: those of the index (``unreadable``, ``include``, ``duplicate_key``, ``duplicate_name``, ``overridden``), of
    ``evalcore.core.groups.lint``, and ``unknown_key``, ``template``, ``function``, ``task`` (see ``rehearse_task``).
    """
    selection = (
        Selection(index, tuple(index.entries), FrozenDict()) if names is None else select_specs(index, list(names))
    )
    reached = list(list_configs(selection, _name_functions))
    grouped = [_locate_finding(index, one.kind, one.message, one.where) for one in lint_configs(reached)]
    used = (index.entries.get(str(one.get("group") or one["task"])) for one in reached)
    files = list_files_behind(index.documents, [one.path for one in used if one is not None and one.path is not None])
    files = files if names is not None else dict.fromkeys(index.documents)
    known = [one for one in index.problems if names is None or one.file in files]
    classes = {entry.path for entry in index.entries.values() if entry.kind == "py_task"}  # they read keys of their own
    wrong = [one for path in files for one in _check_file(path) if one.kind != "unknown_key" or path not in classes]
    ready = list(_find_unready(selection, [str(one["task"]) for one in reached if "group" not in one], wrong))
    return tuple(dict.fromkeys([*known, *wrong, *grouped, *ready]))


def _find_unready(selection: Selection, names: Iterable[str], reported: Iterable[TaskProblem]) -> Iterator[TaskProblem]:
    """Find tasks that would not start; unknown keys are reported already, with their line."""
    from evalcore.shell.tasks.rehearsal import rehearse_task  # here, because listing needs no scoring

    known = {one.file for one in reported if one.kind == "unknown_key"}
    for name in names:
        entry = selection.entry(name)
        if entry is None or entry.kind != "task" or entry.path in known:
            continue
        wrong = rehearse_task({**selection.config(name), "task": name}, os.path.dirname(entry.path or ""))
        if wrong is not None:
            yield TaskProblem(
                "task", f"{name}: {wrong}", entry.where, "warning" if is_shipped(entry.path or "") else "error"
            )


def _locate_finding(index: TaskIndex, kind: str, message: str, where: str) -> TaskProblem:
    """Locate a finding about a group at its file (an inline group's is its parent's); shipped files only get
    warnings.
    """
    entry = index.entries.get(where.partition("::")[0])
    place = entry.where if entry is not None else where
    shipped = is_shipped(place)
    return TaskProblem(kind, message, place, "error" if kind in ERRORS and not shipped else "warning")


def _name_functions(value: object) -> object:
    """Replace functions by their names, as metrics are reported."""
    return map_values(lambda one: one.name.rpartition(".")[2] if isinstance(one, FunctionTag) else one, value)


def _check_file(path: str) -> Iterator[TaskProblem]:
    try:
        loaded = read_yaml(Path(path).read_bytes(), path, duplicates="warn")
    except (EvalError, OSError) as wrong:
        yield TaskProblem("unreadable", str(wrong), path)
        return
    if isinstance(loaded.value, dict):
        yield from _find_unknown_keys(loaded.value, loaded, path)
        yield from _find_bad_templates(loaded.value, loaded, path)
        yield from _find_lost_functions(loaded.value, path)


def _find_unknown_keys(config: Mapping[object, object], loaded: Loaded, path: str) -> Iterator[TaskProblem]:
    known = TASK_KEYS.keys() | set(GROUP_KEYS)
    level: Literal["error", "warning"] = "warning" if is_shipped(path) else "error"
    for key in config:
        if key not in known:
            near = get_close_matches(str(key), sorted(known), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield TaskProblem("unknown_key", f"unknown key {key!r}{hint}", f"{path}:{loaded.line_of(str(key))}", level)


def _find_bad_templates(config: Mapping[object, object], loaded: Loaded, path: str) -> Iterator[TaskProblem]:
    shots = config.get("fewshot_config")
    for outer, part in ((None, config), ("fewshot_config", shots if isinstance(shots, Mapping) else {})):
        for key in TEMPLATES:
            text = part.get(key)
            try:
                if isinstance(text, str):
                    compile_template(text)
            except EvalError as wrong:
                yield TaskProblem("template", f"{key}: {wrong}", f"{path}:{loaded.line_of(outer or key)}")


def _find_lost_functions(value: object, path: str) -> Iterator[TaskProblem]:
    if isinstance(value, FunctionTag):
        try:
            find_function(value)
        except EvalError as wrong:
            yield TaskProblem("function", str(wrong).partition(" - at ")[0], f"{path}:{value.line}")
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _find_lost_functions(one, path)
