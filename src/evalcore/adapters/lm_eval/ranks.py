"""Scores of several processes, packed to travel and gathered on one of them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.core.records.score import Scored, ScoredColumn, merge_scored
from evalcore.core.records.task import MetricSpec, Pipeline, Task


def pack_scores(scored: Scored) -> Scored:
    """Pack scores without the task's functions, which need not be picklable, for another process to gather.

    >>> from evalcore.core.records.request import GENERATE_UNTIL
    >>> task = Task("t", GENERATE_UNTIL, (MetricSpec("own", max),), process_results=lambda doc, results: {"own": 1})
    >>> pack_scores(Scored(task)).task
    Task(name='t', output_type='generate_until', metrics=(), filters=(), process_results=None, ...)
    """
    task = scored.task
    filters = tuple(Pipeline(one.name) for one in task.filters)
    return replace(
        scored,
        task=Task(task.name, task.output_type, (), filters),
        columns=tuple(
            replace(one, spec=None if one.spec is None else MetricSpec(one.spec.name)) for one in scored.columns
        ),
    )


def gather_ranks(parts: Iterable[Scored]) -> Scored:
    """Gather the scores of every rank as if one process had scored all documents, to the last bit.

    Ranks may come in any order, and a document that two of them have (padding) counts once. The first part describes
    the task; the others may be packed. One document with two different scores is an error that names it.
    """
    given = list(parts)
    if not given:
        raise EvalError("expected the scores of at least one rank, got none")
    first = given[0]
    return merge_scored([first, *(_align_task(first, one) for one in given[1:])])


def _align_task(first: Scored, part: Scored) -> Scored:
    if part.task.name != first.task.name:
        raise EvalError(f"expected scores of {first.task.name!r} from every rank, got some of {part.task.name!r}")
    specs = {spec.name: spec for spec in first.task.metrics}
    return replace(part, task=first.task, columns=tuple(_declare_column(one, specs) for one in part.columns))


def _declare_column(one: ScoredColumn, specs: dict[str, MetricSpec]) -> ScoredColumn:
    return replace(one, spec=None if one.spec is None else specs.get(one.spec.name, one.spec))
