"""The numbers of runs side by side in the order of the group tree, and what their documents are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.groups.tree import Tree, fold_group
from evalcore.shell.compare.compare import Compared
from evalcore.shell.logs.runs.run_record import Recorded

Place = tuple[int, str]
"""How deep in a tree, and the name of a task or a group."""


def collect_trees(compared: Compared) -> tuple[Tree[object], ...]:
    """The groups of all runs, each once, by the first run that has it."""
    return tuple({tree.name: tree for run in reversed(compared.runs) for tree in reversed(run.side.trees)}.values())[
        ::-1
    ]


def place_lines(
    lines: Iterable[ComparisonLine], trees: Iterable[Tree[object]]
) -> tuple[tuple[int, ComparisonLine], ...]:
    """Lines with their depth, in the order of the trees; a task in two groups stands in both, others at the end.

    Groups without a line of their own are no level.

    >>> from evalcore.core.groups.tree import Group, Leaf
    >>> from evalcore.core.records.task import MetricKey
    >>> a, g, z = (ComparisonLine(name=name, key=MetricKey("acc")) for name in "agz")
    >>> tree = Group("top", (Group("g", (Leaf("a", None),)),))
    >>> [(depth, line.name) for depth, line in place_lines([z, a, g], [tree])]
    [(0, 'g'), (1, 'a'), (0, 'z')]
    """
    by_name: dict[str, list[ComparisonLine]] = {}
    for line in lines:
        by_name.setdefault(line.name, []).append(line)
    placed = [place for tree in trees for place in _list_places(tree, by_name.keys())]
    known = {name for _, name in placed}
    everywhere = [*placed, *((0, name) for name in by_name if name not in known)]
    return tuple((depth, line) for depth, name in everywhere for line in by_name[name])


def _list_places(tree: Tree[object], shown: Collection[str]) -> tuple[Place, ...]:
    places: tuple[Place, ...] = fold_group(
        tree,
        lambda leaf: ((0, leaf.name),) if leaf.name in shown else (),
        lambda group, parts: (
            *(((0, group.name),) if group.name in shown else ()),
            *((depth + (group.name in shown), name) for part in parts for depth, name in part),
        ),
    )
    return places


def list_ids(run: Recorded, task: str) -> Mapping[int, int | str]:
    """The documents of a task by key, as their data names them; the key where it does not."""
    return {row.key: row.key if row.id is None else row.id for row in run.side.documents.get(task, ())}
