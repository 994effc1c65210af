"""What a run asks for: names, globs, files, folders and inline mappings, made into names with their configs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import filter as matching
from glob import glob

from evalcore.core.groups.build import DEFINES_TASK
from evalcore.core.groups.index import items, reference
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenRecord, thaw_dict
from evalcore.shell.tasks.library.index import NO_NAME, Entry, TaskIndex, read_entry, read_file


class Own(FrozenRecord, frozen=True):
    """A task or group that the run brings itself: from a file, or written inline."""

    entry: Entry
    config: Mapping[str, object]


class Selection(FrozenRecord, frozen=True):
    """The names asked for, in order, and the configs that the run brings itself, which override the index."""

    index: TaskIndex
    names: tuple[str, ...]
    own: Mapping[str, Own]

    def entry(self, name: str) -> Entry | None:
        return self.own[name].entry if name in self.own else self.index.entries.get(name)

    def config(self, name: str) -> dict[str, object]:
        return thaw_dict(self.own[name].config) if name in self.own else read_entry(self.index, name)


def select_specs(index: TaskIndex, specs: object) -> Selection:
    """Select what these specs mean; a tag stands for its tasks, and a name given twice counts once."""
    names: list[str] = []
    own: dict[str, Own] = {}
    plain: set[str] = set()
    for spec in _list_specs(specs):
        for found in _find_spec(index, spec):
            name = found if isinstance(found, str) else found.entry.name
            if isinstance(found, Own):
                _refuse_second(own, name, found)
                own[name] = found
            names.append(name)
            plain |= {name} if isinstance(found, str) else set()
    for name in plain & own.keys():
        _refuse_second(own, name, Own(index.entries[name], read_entry(index, name)))
    selection = Selection(index, (), own)
    kinds = ((name, selection.entry(name)) for name in names)
    flat = [one for name, entry in kinds for one in (entry.tags if entry and entry.kind == "tag" else (name,))]
    return Selection(index, tuple(dict.fromkeys(flat)), own)


def _list_specs(specs: object) -> Iterator[str | Mapping[str, object]]:
    several = [specs] if isinstance(specs, str | Mapping) else specs
    if not isinstance(several, Iterable):
        raise EvalError(f"expected tasks: names, files or mappings, got {specs!r}")
    for spec in several:
        if isinstance(spec, str):
            yield from (part.strip() for part in spec.split(",") if part.strip())
        elif isinstance(spec, Mapping):
            yield {str(key): value for key, value in spec.items()}
        else:
            raise EvalError(f"expected the name of a task, a file or a mapping, got {spec!r} - at tasks")


def _find_spec(index: TaskIndex, spec: str | Mapping[str, object]) -> Iterator[str | Own]:
    if isinstance(spec, Mapping):
        yield from (_read_inline(index, one) for one in _name_kind(index, spec))
    elif spec in index.entries:
        yield spec
    elif names := matching(index.entries, spec):
        yield from sorted(names)
    elif os.path.isdir(os.path.expanduser(spec)):
        yield from _list_folder(index, os.path.expanduser(spec))
    elif files := sorted(glob(os.path.expanduser(spec))):
        yield from (_read_own(index, file) for file in files)
    else:
        raise refuse_name(index, spec)


def _list_folder(index: TaskIndex, folder: str) -> Iterator[str | Own]:
    """List every task and group directly in a folder, as lm-eval does; templates are skipped."""
    count = 0
    for file in sorted(glob(os.path.join(folder, "*.yaml"))):
        try:
            made = _read_own(index, file)
        except EvalError as wrong:
            if NO_NAME in str(wrong):
                continue
            raise
        count += 1
        yield made
    if not count:
        raise EvalError(
            f"found no task files directly in the folder {folder}; to search below it: --include-path {folder}"
        )


def _read_own(index: TaskIndex, file: str) -> str | Own:
    entry, config = read_file(index, file)
    known = index.entries.get(entry.name)
    return entry.name if known is not None and known.path == entry.path else Own(entry, config)


def _name_kind(index: TaskIndex, spec: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Name what a mapping changes by its kind: ``{task: mmlu, ...}`` changes the group, or each task of a tag."""
    known = index.entries.get(str(spec.get("task")))
    if known is None or "group" in spec or not DEFINES_TASK.isdisjoint(spec):
        yield spec
    elif known.kind == "tag":
        yield from ({**spec, "task": name} for name in known.tags)
    elif known.kind == "group":
        yield {"group": known.name, **{key: value for key, value in spec.items() if key != "task"}}
    else:
        yield spec


def _read_inline(index: TaskIndex, spec: Mapping[str, object]) -> Own:
    """Read a mapping: a task or group of its own, or changes to a known one that it does not define anew."""
    name, _ = reference(spec)
    if name is None:
        raise EvalError(f"expected a mapping with task: or group: and a name, got keys {sorted(spec)} - at tasks")
    if "include" in spec:
        raise EvalError(f"include: works in task files, not in a mapping - at tasks {name}")
    kind = "group" if "group" in spec else "py_task" if "class" in spec else "task"
    known = index.entries.get(name)
    changes = known is not None and known.kind == kind and DEFINES_TASK.isdisjoint(spec)
    if kind == "group" and items(spec):
        changes = False
    if not changes and kind == "task" and DEFINES_TASK.isdisjoint(spec):
        raise refuse_name(index, name)
    base = read_entry(index, name) if changes else {}
    path, line = (known.path, known.line) if changes and known is not None else (None, 0)  # its data lies beside it
    return Own(Entry(name, "group" if kind == "group" else "task", path, line), {**base, **spec})


def _refuse_second(own: Mapping[str, Own], name: str, second: Own) -> None:
    if name in own and own[name] != second:
        places = [one.entry.path or "tasks" for one in (own[name], second)]
        raise EvalError(
            f"{name!r} is asked for twice, and differently ({places[0]}, {places[1]}); give one of them another name, "
            f"or put it in a group of its own: {{group: other, task: [{{task: {name}, ...}}]}}"
        )


def refuse_name(index: TaskIndex, name: str) -> EvalError:
    """Make an error with the nearest names and the files that might define the name but cannot be used."""
    near = get_close_matches(name, [one for one in index.entries if one[:1] == name[:1]], n=3, cutoff=0.7)
    near = (
        near
        or [one for one in index.entries if name and name in one][:3]
        or get_close_matches(name, index.entries, n=3)
    )
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    bad = [str(one) for one in index.problems if one.level == "error"]
    bad.sort(key=lambda told: f"/{name}." not in told)  # the most likely first
    also = f" {len(bad)} files cannot be used, the first: {bad[0]}" if bad else ""
    if not index.roots:
        return EvalError(
            f"unknown task {name!r}: no task files are known; name their folder with include_path, or install lm_eval"
        )
    where = ", ".join(index.roots)
    return EvalError(f"unknown task, group, tag or file {name!r}{hint} {len(index.entries)} names in {where}.{also}")
