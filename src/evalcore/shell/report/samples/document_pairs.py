"""The documents of several runs, those that are the same together: matched as in a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.pairs import match_documents
from evalcore.shell.compare.alike import align_pairs
from evalcore.shell.logs.runs.run_record import Recorded, make_comparable

Item = tuple[int | None, ...]
"""A document by its key in each run, None where the run has not got it."""

Partners = Mapping[int, int]


def match_runs(runs: Sequence[Recorded]) -> dict[str, tuple[Item, ...]]:
    """The documents of each task of any run, in the order of the first run that has them.

    Runs of one task each must have it under one name (``rename_alone``).
    """
    sides = [make_comparable(run) for run in runs]
    pairs = list(combinations(range(len(runs)), 2))
    aligned = dict(zip(pairs, align_pairs(runs, sides, pairs), strict=True))
    tasks = dict.fromkeys(name for side in sides for name in list_tasks(side))
    return {
        task: unite_pairs(
            [list_keys(side, task) for side in sides],
            {pair: _match_task(one, two, task) for pair, (one, two, _) in aligned.items()},
        )
        for task in tasks
    }


def list_tasks(side: ComparisonSide) -> tuple[str, ...]:
    """The tasks of a run."""
    return tuple(one.task.name for one in side.scored)


def list_keys(side: ComparisonSide, task: str) -> tuple[int, ...]:
    """The keys of a task's documents."""
    known = side.documents.get(task, ())
    if known:
        return tuple(sorted(row.key for row in known))
    scored = (one for one in side.scored if one.task.name == task)
    return tuple(sorted({key for one in scored for own in one.columns for key in own.column.keys.ints.tolist()}))


def _match_task(a: ComparisonSide, b: ComparisonSide, task: str) -> Partners:
    """The key in the first of two runs of each document of the second; runs without document tables match by key."""
    rows = a.documents.get(task, ()), b.documents.get(task, ())
    if all(rows):
        return {two: one for one, two in match_documents(*rows).pairs}
    both = set(list_keys(a, task)) & set(list_keys(b, task))
    return {key: key for key in both}


def unite_pairs(keys: Sequence[Iterable[int]], partners: Mapping[tuple[int, int], Partners]) -> tuple[Item, ...]:
    """Unite documents: each joins its counterpart in the earliest run that has one.

    >>> unite_pairs([[0, 1], [7, 8]], {(0, 1): {8: 0}})
    ((0, 8), (1, None), (None, 7))
    """
    items: list[list[int | None]] = []
    places: dict[tuple[int, int], int] = {}
    for run, own in enumerate(keys):
        for key in own:
            at = _find_place(run, key, partners, places, items)
            if at is None:
                at = len(items)
                items.append([None] * len(keys))
            items[at][run] = key
            places[run, key] = at
    return tuple(map(tuple, items))


def _find_place(
    run: int,
    key: int,
    partners: Mapping[tuple[int, int], Partners],
    places: Mapping[tuple[int, int], int],
    items: Sequence[Sequence[int | None]],
) -> int | None:
    for before in range(run):
        partner = partners.get((before, run), {}).get(key)
        at = None if partner is None else places.get((before, partner))
        if at is not None and items[at][run] is None:
            return at
    return None
