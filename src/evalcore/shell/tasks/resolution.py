"""What a run asks for to trees of tasks and the merged config of each task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalcore.core.groups.build import build_trees
from evalcore.core.groups.rules import GROUP_TABLES, GroupTables
from evalcore.core.groups.tree import SEPARATOR, Group, Leaf, Tree, all_groups, all_tasks, fold_group
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.request import Options, freeze_options
from evalcore.shell.tasks.code import find_code
from evalcore.shell.tasks.library.includes import list_files_behind
from evalcore.shell.tasks.library.index import TaskIndex
from evalcore.shell.tasks.selection import Selection, select_specs
from evalcore.shell.tasks.shape import NOT_OF_A_TASK, Config, list_configs

NOT_MEASURED = ("task", "task_alias")
INLINE = "inline"
"""The source of a task that no file defines."""


class Resolved(FrozenRecord, frozen=True):
    """The trees that a run asks for, the config of every task in them, and the file of each config."""

    trees: tuple[Tree[Options], ...]
    tasks: Mapping[str, Mapping[str, object]]
    warnings: tuple[str, ...] = ()
    sources: Mapping[str, str] = FrozenDict()


class Drawn(NamedTuple):
    """Trees as core draws them, the names of their nodes, and the names that they were drawn from."""

    trees: tuple[Tree[Options], ...]
    renames: FrozenDict[str, str]
    selection: Selection
    drawn: tuple[str, ...]


def draw_trees(index: TaskIndex, specs: object, known: GroupTables = GROUP_TABLES) -> Drawn:
    """Draw the trees that these specs mean (see ``select_specs``)."""
    selection = select_specs(index, specs)
    configs = list(list_configs(selection))
    raw = build_trees(configs, selection.names, known=known)
    names = tuple(str(one.get("group") or one["task"]) for one in configs)
    return Drawn(raw, FrozenDict(_shorten_names(raw, selection)), selection, names)


def resolve_specs(
    index: TaskIndex,
    specs: object,
    *,
    metadata: Mapping[str, object] | None = None,
    known: GroupTables = GROUP_TABLES,
) -> Resolved:
    """Resolve specs to trees and task configs (see ``select_specs``); ``metadata`` is added to every task's own."""
    raw, renames, selection, drawn = draw_trees(index, specs, known)
    tasks: dict[str, Config] = {}
    sources: dict[str, str] = {}

    def leaf(node: Leaf[Options]) -> Tree[Options]:
        name = renames.get(node.name, node.name)
        if name not in tasks:
            entry = selection.entry(name) or selection.entry(node.name.rpartition(SEPARATOR)[2])
            sources[name] = (entry.path if entry else None) or INLINE
            tasks[name] = _finish_config(node.value, name, metadata or {})
        return Leaf(name, freeze_options(tasks[name]))

    def group(node: Group[Options], parts: tuple[Tree[Options], ...]) -> Tree[Options]:
        own = node.metadata.update(freeze_options(metadata))
        return Group(renames.get(node.name, node.name), parts, node.metrics, node.alias, own)

    trees, warnings = _drop_nested([fold_group(tree, leaf, group) for tree in raw])
    return Resolved(trees, tasks, (*_warn_of_files(selection, drawn), *warnings), sources)


# --- what core gives back ----------------------------------------------------------------------------------


def _finish_config(value: Options, name: str, metadata: Mapping[str, object]) -> Config:
    """Finish a task's config: plain data under its name, with the run's metadata over its own."""
    kept = {key: one for key, one in value.items() if key not in NOT_OF_A_TASK}
    own = kept.get("metadata", {})
    named = own if isinstance(own, Mapping) else {"_metadata": own}
    config = kept | {"task": name, "metadata": {**named, **metadata}}
    return find_code(dict(sorted(config.items())))


def _shorten_names(trees: Sequence[Tree[Options]], selection: Selection) -> dict[str, str]:
    """Give variants (``group::task``) the plain name, if the selection has only one version of the task.

    What is defined inside a group goes by the group's plain name, too (``mmlu_continuation::stem``).
    """
    versions: dict[str, list[tuple[object, set[str]]]] = {}
    plain: dict[str, str] = {}
    for tree in trees:
        for parent in (tree, *all_groups(tree)) if isinstance(tree, Group) else ():
            for child in parent.children:
                base = plain[child.name] = _find_base(parent.name, plain.get(parent.name), child, selection)
                _add_version(versions.setdefault(base, []), _describe_version(child), child.name)
        _add_version(versions.setdefault(tree.name, []), _describe_version(tree), tree.name)
    return {name: base for base, found in versions.items() if len(found) == 1 for name in found[0][1] if name != base}


def _add_version(versions: list[tuple[object, set[str]]], measured: object, name: str) -> None:
    for known, names in versions:
        if known == measured:
            names.add(name)
            return
    versions.append((measured, {name}))


def _find_base(parent: str, plain: str | None, child: Tree[Options], selection: Selection) -> str:
    base = child.name.removeprefix(parent + SEPARATOR)
    entry = selection.entry(base)
    if entry is not None and (entry.kind == "group") == isinstance(child, Group):
        return base
    return child.name if plain is None or base == child.name else f"{plain}{SEPARATOR}{base}"


def _describe_version(node: Tree[Options]) -> object:
    """Describe what tells versions apart: of a task its config, of a group its name (core names every version)."""
    return node.name if isinstance(node, Group) else {k: v for k, v in node.value.items() if k not in NOT_MEASURED}


def _drop_nested(trees: Sequence[Tree[Options]]) -> tuple[tuple[Tree[Options], ...], list[str]]:
    """Drop trees that are inside another one: what is asked for twice counts once."""
    inside: dict[str, str] = {}
    for tree in trees:
        if isinstance(tree, Group):
            below: list[Tree[Options]] = [*all_tasks(tree), *all_groups(tree)]
            inside |= {node.name: tree.name for node in below if node.name not in inside}
    warnings = [
        f"{tree.name!r} is asked for alone and in {inside[tree.name]!r}: it counts once"
        for tree in trees
        if tree.name in inside
    ]
    return tuple(tree for tree in trees if tree.name not in inside), warnings


def _warn_of_files(selection: Selection, names: Iterable[str]) -> Iterator[str]:
    """List the problems of the files that were used."""
    entries = (selection.entry(name) for name in names)
    paths = [one.path for one in entries if one is not None and one.path is not None]
    used = list_files_behind(selection.index.documents, paths)
    yield from (str(problem) for problem in selection.index.problems if problem.file in used)
