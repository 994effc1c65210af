"""The numbers of runs side by side in the order of the group tree, and what their documents are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.groups.tree import Tree
from evalcore.shell.compare.compare import Compared
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.terminal.number_rows import list_places


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
    placed = list_places(trees, by_name.keys())
    known = {name for _, name in placed}
    everywhere = [*placed, *((0, name) for name in by_name if name not in known)]
    return tuple((depth, line) for depth, name in everywhere for line in by_name[name])


def list_ids(run: Recorded, task: str) -> Mapping[int, int | str]:
    """The documents of a task by key, as their data names them; the key where it does not."""
    return {row.key: row.key if row.id is None else row.id for row in run.side.documents.get(task, ())}
