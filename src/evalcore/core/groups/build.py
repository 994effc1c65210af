"""From task and group configs to trees: which tasks join which groups, and what is wrong.

A task joins a group in three ways: the group's ``task:`` list names it; the list holds it inline (a dict
with ``task`` or ``group``); or the task's own ``tag:`` (or legacy ``group:``) names the group. A tag that no
config declares is a group without metrics; listed in another group it stands for its tasks, as in lm-eval.

A child that changes what is measured is a task of its own, named ``group::task``, whether the change is
in the list or in the group (``num_fewshot: 5`` beside ``task:``); so are inline groups. ``task_alias`` alone
changes nothing measured and keeps the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from evalcore.core.groups.config import GROUP_KEYS, group_from_config
from evalcore.core.groups.index import Config, Finding, Index, find_cycles, index_configs, items, reference
from evalcore.core.groups.index import subgroups as subgroups_of
from evalcore.core.groups.index import tops as tops_of
from evalcore.core.groups.rules import GROUP_TABLES, GroupTables
from evalcore.core.groups.tree import SEPARATOR, Group, Leaf, Tree
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, thaw_dict, thaw_value
from evalcore.core.records.request import Options, freeze_options

STRUCTURE = frozenset({*GROUP_KEYS, "tag", "task_list", "path", "include"})
DEFINES_TASK = frozenset({"dataset_path", "output_type", "class", "custom_dataset"})
DISPLAY = frozenset({"task_alias"})

Edges = frozenset[tuple[str, str]]


class Job(NamedTuple):
    """A group still to be expanded: its config (``declared``), and what it passes down."""

    name: str
    config: FrozenDict[str, object]
    declared: str
    changes: FrozenDict[str, object]


class Expanded(NamedTuple):
    """A group whose members are known: leaves, and groups by name."""

    shell: Group[Options]
    members: tuple[Leaf[Options] | str, ...]


class TreePlan(NamedTuple):
    """Every group of the configs as a tree, and every problem."""

    known: Index
    groups: FrozenDict[str, Group[Options]]
    problems: tuple[Finding, ...]


def build_trees(
    configs: Sequence[Config], roots: Sequence[str] | None = None, *, known: GroupTables = GROUP_TABLES
) -> tuple[Tree[Options], ...]:
    """Build the trees of these roots: by default every group that no other contains, then every task in no group.

    ``known`` are the rules that groups may name: a host's are ``tables.group_tables``.

    >>> a, b = {"task": "a"}, {"task": "b", "tag": "t"}
    >>> build_trees([a, b, {"group": "g", "task": ["a", "t", {"task": "a", "num_fewshot": 5}]}])
    (Group('g', 3 children: [a, b, g::a], version=N/A),)
    >>> build_trees([{"group": "g", "task": ["h"]}, {"group": "h", "task": ["g"]}])
    Traceback (most recent call last):
    evalcore.EvalError: groups contain each other: g -> h -> g - at g
    """
    plan = plan_trees(configs, roots, known)
    if plan.problems:
        more = f" (and {len(plan.problems) - 1} more)" if len(plan.problems) > 1 else ""
        raise EvalError(f"{plan.problems[0].message} - at {plan.problems[0].where}{more}")
    chosen = tops_of(plan.known) if roots is None else roots
    tasks, groups = plan.known.tasks, plan.groups
    return tuple(groups[name] if name in groups else Leaf(name, freeze_options(tasks[name])) for name in chosen)


def plan_trees(
    configs: Sequence[Config], roots: Sequence[str] | None = None, known: GroupTables = GROUP_TABLES
) -> TreePlan:
    """Build every group reached from the roots (all, if None), with all problems instead of the first.

    >>> [problem.kind for problem in plan_trees([{"group": "g", "task": ["b"]}]).problems]
    ['unknown_child']
    """
    index, problems = index_configs(configs)
    names = set(index.names())
    starts = list(dict.fromkeys(index.names() if roots is None else roots))
    problems += [index.unknown(name, "the roots", "the roots") for name in starts if name not in names]
    cycles = find_cycles({name: subgroups_of(index, name) for name in index.groups}, starts)
    problems += map(index.cycle, cycles)
    cut = frozenset((chain[-2], chain[-1]) for chain in cycles)
    expanded, more = _expand(index, [name for name in starts if name in names], cut, known)
    return TreePlan(index, FrozenDict(_assemble(expanded)), (*problems, *more))


# --- expanding: from lists of names to leaves and groups ---------------------------------------------------


def _expand(
    index: Index, starts: Sequence[str], cut: Edges, known: GroupTables
) -> tuple[dict[str, Expanded], list[Finding]]:
    expanded: dict[str, Expanded] = {}
    jobs: dict[str, Job] = {}
    problems: list[Finding] = []
    shared: dict[str, Leaf[Options]] = {}
    todo = [_find_declared(index, name) for name in starts[::-1] if name not in index.tasks]
    while todo:
        job = todo.pop()
        if job.name in jobs:
            if job != jobs[job.name]:
                problems.append(_report_twice(index, job.name, job.declared))
            continue
        jobs[job.name] = job
        met = list(_list_members(index, job, cut, shared))
        todo.extend(one for one in reversed(met) if isinstance(one, Job))
        problems += [one for one in met if isinstance(one, Finding)]
        nodes = [one.name if isinstance(one, Job) else one for one in met if not isinstance(one, Finding)]
        members, clashes = _keep_first(nodes)
        problems += [_report_twice(index, name, job.declared) for name in clashes]
        shell = _build_empty(job, known)
        problems += [index.finding("bad_config", shell, job.declared)] if isinstance(shell, str) else []
        expanded[job.name] = Expanded(Group(job.name) if isinstance(shell, str) else shell, members)
    return expanded, problems


def _list_members(
    index: Index, job: Job, cut: Edges, shared: dict[str, Leaf[Options]]
) -> Iterator[Leaf[Options] | Job | Finding]:
    own = {key: value for key, value in job.config.items() if key not in STRUCTURE}
    passed = FrozenDict({**own, **job.changes})
    for item in items(job.config):
        name, sets = reference(item)
        changes = {**passed, **sets}
        if name is None:
            message = f"expected a name, or a dict with task or group, got {thaw_value(item)!r}"
            yield index.finding("bad_config", message, job.declared)
        elif name not in index.groups and isinstance(item, Mapping) and {"group", "task"} <= item.keys():
            yield Job(f"{job.name}{SEPARATOR}{name}", FrozenDict(sets), job.declared, passed)
        elif name in index.tasks:
            yield _build_variant(index, job, name, changes, shared)
        elif name in index.tags:
            yield from (_build_variant(index, job, task, changes, shared) for task in index.tags[name])
        elif name in index.groups:
            yield from () if (job.declared, name) in cut else (_find_subgroup(index, job, name, sets, passed),)
        elif isinstance(item, Mapping) and "group" in item:
            yield Job(f"{job.name}{SEPARATOR}{name}", FrozenDict(sets), job.declared, passed)
        elif not DEFINES_TASK.isdisjoint(changes):
            yield _build_leaf(f"{job.name}{SEPARATOR}{name}", changes)
        else:
            yield index.unknown(name, f"group {job.name!r}", job.declared)


def _build_variant(
    index: Index, job: Job, name: str, changes: Config, shared: dict[str, Leaf[Options]]
) -> Leaf[Options]:
    config = index.tasks[name]
    real = {key: value for key, value in changes.items() if key not in config or config[key] != value}
    if not real:
        return shared[name] if name in shared else shared.setdefault(name, Leaf(name, freeze_options(config)))
    if real.keys() <= DISPLAY:
        return Leaf(name, freeze_options(config, **real))
    return _build_leaf(f"{job.name}{SEPARATOR}{name}", {**config, **real})


def _build_leaf(name: str, config: Config) -> Leaf[Options]:
    return Leaf(name, freeze_options(config, task=name))


def _find_subgroup(index: Index, job: Job, name: str, sets: Config, passed: Config) -> Job | Finding:
    own = {key: value for key, value in sets.items() if key in GROUP_KEYS}
    changes = {**passed, **{key: value for key, value in sets.items() if key not in STRUCTURE}}
    if "task" in own:
        return _report_twice(index, name, job.declared)
    if not own and not changes:
        return _find_declared(index, name)
    return Job(f"{job.name}{SEPARATOR}{name}", FrozenDict({**index.groups[name], **own}), name, FrozenDict(changes))


def _find_declared(index: Index, name: str) -> Job:
    config = FrozenDict(index.groups[name] if name in index.groups else {"task": index.tags[name]})
    return Job(name, config, name, FrozenDict())


def _build_empty(job: Job, known: GroupTables) -> Group[Options] | str:
    own = {key: value for key, value in job.config.items() if key in GROUP_KEYS and key != "task"}
    try:
        return group_from_config({**thaw_dict(own), "group": job.name}, known)
    except EvalError as wrong:
        return str(wrong)


def _keep_first(nodes: Sequence[Leaf[Options] | str]) -> tuple[tuple[Leaf[Options] | str, ...], list[str]]:
    """Keep the first member of each name; and list the names that stand for different things."""
    kept: dict[str, Leaf[Options] | str] = {}
    for node in nodes:
        kept.setdefault(_name(node), node)
    clashes = [_name(node) for node in nodes if kept[_name(node)] != node]
    return tuple(kept.values()), clashes


def _report_twice(index: Index, name: str, group: str) -> Finding:
    return index.finding("duplicate_name", f"{name!r} is defined twice, and differently", group)


def _name(node: Leaf[Options] | str) -> str:
    return node if isinstance(node, str) else node.name


def _assemble(expanded: Mapping[str, Expanded]) -> dict[str, Group[Options]]:
    """Assemble groups from their members, children first, on an explicit stack."""
    done: dict[str, Group[Options]] = {}
    todo = list(expanded)[::-1]
    while todo:
        shell, members = expanded[todo[-1]]
        waiting = [name for name in members if isinstance(name, str) and name not in done]
        if waiting:
            todo.extend(waiting[::-1])
        else:
            children = tuple(done[node] if isinstance(node, str) else node for node in members)
            done[todo.pop()] = replace(shell, children=children)
    return done
