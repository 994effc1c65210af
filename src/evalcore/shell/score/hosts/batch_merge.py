"""The partials of batches merged and closed, wherever their rows are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from msgspec.structs import replace

from evalcore.core.partials.partial import Partial, decode_partial, unite_partials
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.score import Scored
from evalcore.core.records.task import Task
from evalcore.shell.config.values import Names
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.score.units.merge import merge_parts
from evalcore.shell.score.units.score_keys import OutputKeys, TableKeys

BY_FIRST = ("told", "hints")
"""What is said of a log because of its first document."""


class ClosingKeys(TableKeys, OutputKeys, total=False):
    """The keys of ``merge``, besides who does the work."""


def merge_partials(rows: object, *, task: Task | Names | None = None, **keys: Unpack[ClosingKeys]) -> RunResult:
    """Merge what ``ScorePartial`` made of batches, in any order, into the numbers of all their documents.

    ``rows`` are a Ray ``Dataset``, a frame of Daft, Spark or polars, an Arrow table, or any iterable of tables, rows or
    bytes. The keys are those of ``merge``; a ``task`` is needed only if it has functions that close numbers.

    >>> merge_partials([b"junk"])
    Traceback (most recent call last):
    evalcore.EvalError: partial 1: expected a partial of evalcore, got b'junk'
    """
    start = time.time()
    parts = [decode_partial(data, f"partial {at}") for at, data in enumerate(list_bytes(rows), 1)]
    names: dict[object, list[Partial]] = {}
    for part in parts:
        if part.scored:
            names.setdefault(part.head.get("name"), []).append(part)
    if not names:
        raise EvalError(f"expected partials of some documents, got {len(parts)} without any")
    settled = [one for own in names.values() for one in order_tasks(settle_parts(own))]
    source = {"merged": [str(name) for name in names]}
    given: dict[str, Any] = {**keys}
    own: Mapping[str, Task] = {}
    if isinstance(task, Task):
        own = dict.fromkeys(map(str, names), task)
    elif task:
        given["task"] = task
    return merge_parts(settled, source=source, start=start, own=own, **given)


def list_bytes(given: object) -> Iterator[bytes]:
    """List the partials that tables, frames and rows of any program hold."""
    if isinstance(given, bytes | bytearray | memoryview):
        yield bytes(given)
    elif isinstance(given, Mapping):
        if "partial" not in given:
            raise EvalError(f"expected a column of partials, got {', '.join(map(str, given))}")
        yield from list_bytes(given["partial"])
    else:
        yield from (one for row in _open_rows(given) for one in list_bytes(row))


OPENERS: Mapping[str, Callable[[Any], Iterable[object]]] = {
    "to_pylist": lambda table: table.to_pylist(),  # Arrow
    "to_arrow": lambda frame: frame.to_arrow().to_pylist(),  # Daft, polars
    "iter_rows": lambda dataset: dataset.iter_rows(),  # Ray Data
    "collect": lambda frame: [frame.collect()],  # Spark, lazy frames of polars
    "asDict": lambda row: [row.asDict()],  # a row of Spark
    "to_dict": lambda frame: frame.to_dict("records"),  # pandas
}
"""How the rows of a program's tables are read, by the method that it has for it."""


def _open_rows(given: object) -> Iterable[object]:
    for name, rows in OPENERS.items():
        if hasattr(given, name):
            return rows(given)
    if isinstance(given, Iterable) and not isinstance(given, str):
        return given
    raise EvalError(f"expected rows with partials, got {type(given).__name__}")


def settle_parts(parts: Sequence[Partial]) -> list[Partial]:
    """Give all parts of a log what its first document says of it; refuse two documents with one key."""
    placed = [one for one in parts if one.places is not None]
    if not placed:
        return list(parts)
    refuse_shared_keys(placed)
    kinds = sorted({str(one.head["output_type"]) for one in parts})
    if len(kinds) > 1:
        told = f"expected one kind of answers in all batches, got {' and '.join(kinds)}"
        raise EvalError(f"{told}; name the column of choices, or give a Task{place(str(parts[0].head['name']))}")
    first = min(placed, key=_find_start)
    shown = {key: first.head[key] for key in BY_FIRST}
    most = max(_count_repeats(scored) for one in parts for scored in one.scored)
    return [
        replace(
            one,
            ids=None,
            head=FrozenDict({**one.head, **shown}),
            scored=tuple(_set_repeats(scored, most) for scored in one.scored),
        )
        for one in parts
    ]


def _find_start(part: Partial) -> int:
    return int(part.places.ints.min()) if part.places is not None else 0


def order_tasks(parts: Sequence[Partial]) -> list[Partial]:
    """Order the tasks of a log by their first documents, however its rows were split; one task needs no order."""
    if len({scored.task.name for one in parts for scored in one.scored}) == 1:
        return list(parts)
    merged = unite_partials(parts)
    return [replace(merged, scored=tuple(sorted(merged.scored, key=_find_first)))]


def _find_first(scored: Scored) -> int:
    return min((int(one.column.keys.ints[0]) for one in scored.columns if len(one.column)), default=0)


def refuse_shared_keys(parts: Iterable[Partial]) -> None:
    """Refuse documents of different ids that have one key.

    >>> from evalcore.core.records.array import Array
    >>> both = Partial(places=Array([1, 2]), ids=Array([5, 6])), Partial(places=Array([2]), ids=Array([7]))
    >>> refuse_shared_keys(both)
    Traceback (most recent call last):
    evalcore.EvalError: expected ids with hashes of their own, got two with the hash 2; add a letter to all ids
    """
    both = [(one.places.ints, one.ids.ints) for one in parts if one.places is not None and one.ids is not None]
    keys, marks = (np.concatenate(arrays) for arrays in zip(*both, strict=True))
    order = np.lexsort((marks, keys))
    keys, marks = keys[order], marks[order]
    shared = np.flatnonzero((keys[1:] == keys[:-1]) & (marks[1:] != marks[:-1]))
    if len(shared):
        told = f"got two with the hash {keys[shared[0]]}; add a letter to all ids"
        raise EvalError(f"expected ids with hashes of their own, {told}")


def _count_repeats(scored: Scored) -> int:
    found = scored.task.config.get("repeats")
    return found if isinstance(found, int) else 0


def _set_repeats(scored: Scored, most: int) -> Scored:
    """Set how many replies documents have; a batch whose rows all failed cannot know."""
    if _count_repeats(scored) in (0, most):
        return scored
    return replace(scored, task=replace(scored.task, config=scored.task.config.set("repeats", most)))
