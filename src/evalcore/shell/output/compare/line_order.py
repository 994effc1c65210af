"""A comparison of runs as a flat table: one row for every number, in the order of the group tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.gates import Number, choose_numbers
from evalcore.core.compare.lines import Comparison, Line
from evalcore.core.groups.tree import Tree, fold_group
from evalcore.core.records.errors import EvalError
from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.runs.run_record import Recorded

__all__ = ["Compared", "id_of", "label_runs", "name_runs", "place_lines", "select_lines", "trees_of"]

MOST = 5

Place = tuple[int, str]
"""How deep in a tree, and the name of a task or a group."""


class Compared(Struct, frozen=True, kw_only=True):
    """All that can be shown of runs side by side: every pair of them, corrected together.

    ``flips`` and ``unmatched`` say how many documents of each kind to list (None: all). ``lead`` is what a reader must
    know before any number.
    """

    runs: tuple[Recorded, ...]
    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    comparisons: tuple[Comparison, ...]
    flips: int | None = 0
    unmatched: int | None = 3
    warnings: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    width: int | None = None
    colour: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        return label_runs(len(self.runs))

    @property
    def alpha(self) -> float:
        return 1 - self.comparisons[0].confidence


def label_runs(count: int) -> tuple[str, ...]:
    """A letter for each run.

    >>> label_runs(3), label_runs(28)[-2:]
    (('A', 'B', 'C'), ('A2', 'B2'))
    """
    return tuple(chr(ord("A") + at % 26) + (str(at // 26 + 1) if at > 25 else "") for at in range(count))


def name_runs(paths: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A name for each run: the last parts of its path, as many as tell the runs apart; a number where none do.

    >>> name_runs([("runs", "big"), ("runs", "small")]), name_runs([("big", "out"), ("small", "out")])
    (('big', 'small'), ('big/out', 'small/out'))
    >>> name_runs([("out",), ("out",)])
    ('out', 'out (2)')
    """
    different = len({tuple(path) for path in paths})
    for depth in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-depth:]) for path in paths]
        if len(set(names)) == different:
            break
    counts = [names[:at].count(name) for at, name in enumerate(names)]
    return tuple(f"{name} ({seen + 1})" if seen else name for name, seen in zip(names, counts, strict=True))


def trees_of(compared: Compared) -> tuple[Tree[object], ...]:
    """The groups of all runs, each once, by the first run that has it."""
    return tuple({tree.name: tree for run in reversed(compared.runs) for tree in reversed(run.side.trees)}.values())[
        ::-1
    ]


def place_lines(lines: Iterable[Line], trees: Iterable[Tree[object]]) -> tuple[tuple[int, Line], ...]:
    """Lines with their depth, in the order of the trees; a task in two groups stands in both, others at the end.

    Groups without a line of their own are no level.

    >>> from evalcore.core.groups.tree import Group, Leaf
    >>> a, g, z = (Line(name=name, key=MetricKey("acc")) for name in "agz")
    >>> tree = Group("top", (Group("g", (Leaf("a", None),)),))
    >>> [(depth, line.name) for depth, line in place_lines([z, a, g], [tree])]
    [(0, 'g'), (1, 'a'), (0, 'z')]
    """
    by_name: dict[str, list[Line]] = {}
    for line in lines:
        by_name.setdefault(line.name, []).append(line)
    placed = [place for tree in trees for place in _places(tree, by_name.keys())]
    known = {name for _, name in placed}
    everywhere = [*placed, *((0, name) for name in by_name if name not in known)]
    return tuple((depth, line) for depth, name in everywhere for line in by_name[name])


def _places(tree: Tree[object], shown: Collection[str]) -> tuple[Place, ...]:
    found: tuple[Place, ...] = fold_group(
        tree,
        lambda leaf: ((0, leaf.name),) if leaf.name in shown else (),
        lambda group, parts: (
            *(((0, group.name),) if group.name in shown else ()),
            *((depth + (group.name in shown), name) for part in parts for depth, name in part),
        ),
    )
    return found


def select_lines(
    comparisons: Sequence[Comparison], tasks: Sequence[str] = (), metrics: Sequence[str] = (), told: Iterable[str] = ()
) -> tuple[Comparison, ...]:
    """Only the tasks and groups that match a glob, only these metrics (``acc`` or ``acc,none``), if any are named.

    What is said of documents is kept for the tasks that match; for all of them where a group does. ``told`` are the
    warnings of the runs, which say why a number is in none.

    >>> one = Comparison(names=("a", "b"), lines=(Line(name="t", key=MetricKey("acc")),))
    >>> select_lines([one], metrics=["ac"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown metric 'ac'; did you mean 'acc'? Known: acc, acc,none
    """
    lines = [line for one in comparisons for line in one.lines]
    reasons = dict.fromkeys([*told, *(warning for one in comparisons for warning in one.warnings)])
    alone = [name for one in comparisons for name in (*one.tasks_only_a, *one.tasks_only_b)]
    names, keys = {*(line.name for line in lines), *alone}, {line.key for line in lines}
    if not lines and not alone and reasons:  # no name that was asked for is unknown: there are no numbers at all
        raise EvalError(f"nothing to compare: no number is in two runs; {_shortened(reasons)}")
    chosen, named = choose_numbers(tasks, metrics, names, keys), choose_numbers(tasks, (), names, ())
    found = tuple(_selected(one, chosen, lambda name: named((name, ANY))) for one in comparisons)
    if not any(one.lines for one in found):
        sides = "; ".join(f"{' and '.join(one.names)}: {_alone(one)}" for one in found)
        why = f"; {_shortened(reasons)}" if reasons else ""
        raise EvalError(f"nothing to compare: no number that was asked for is in two runs ({sides}){why}")
    return found


def _shortened(reasons: Collection[str]) -> str:
    left = len(reasons) - MOST
    return "; ".join(list(reasons)[:MOST]) + (f"; and {left:,} more" if left > 0 else "")


def _alone(comparison: Comparison) -> str:
    """Which tasks each of two runs has alone."""
    sides = zip(("first", "second"), (comparison.tasks_only_a, comparison.tasks_only_b), strict=True)
    told = [f"only the {which} has {', '.join(names)}" for which, names in sides if names]
    return ", ".join(told) or "they have the same tasks"


ANY = MetricKey("")


def _selected(comparison: Comparison, chosen: Callable[[Number], bool], named: Callable[[str], bool]) -> Comparison:
    lines = tuple(line for line in comparison.lines if chosen((line.name, line.key)))
    every = any(line.group for line in lines)
    return replace(
        comparison,
        lines=lines,
        documents=tuple(one for one in comparison.documents if every or named(one.task)),
        tasks_only_a=tuple(filter(named, comparison.tasks_only_a)),
        tasks_only_b=tuple(filter(named, comparison.tasks_only_b)),
    )


def id_of(run: Recorded, task: str) -> Mapping[int, int | str]:
    """The documents of a task by key, as their data names them; the key where it does not."""
    return {row.key: row.key if row.id is None else row.id for row in run.side.documents.get(task, ())}
