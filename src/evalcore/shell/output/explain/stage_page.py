"""Where two backends part, for people and for programs: documents by the first stage that differs."""

from __future__ import annotations

from collections.abc import Iterable

from evalcore.core.explain.stages import LIKE, STAGE_NAMES
from evalcore.shell.compare.run_names import Aliases
from evalcore.shell.explain.backends import BackendDiff, Parted, TaskStages
from evalcore.shell.output.explain.blocks import Block
from evalcore.shell.output.terminal.grid import Grid
from evalcore.shell.output.terminal.number_text import TASKS

SHOWN = 3
"""Documents of a task and a stage that are shown; JSON has all."""

TOTAL = "in total"


def build_stages(found: BackendDiff | None, aliases: Aliases) -> Iterable[Block]:
    """The blocks of two backends: how many documents part at which stage, and the first of each."""
    if found is None:
        return
    parted = sum(len(task.parted) for task in found.tasks)
    both = sum(task.both for task in found.tasks)
    silent = tuple(f"{path} has no answer log: tokens and finish reasons are not compared" for path in found.silent)
    head = f"Where the backends part: {found.before or 'before'} and {found.after or 'after'}"
    told = f"{parted:,} of {both:,} documents part; log-likelihoods within {LIKE:g} of each other count as the same"
    if not parted:
        yield Block(head, (told, *silent))
        return
    used = [name for name in STAGE_NAMES if found.counts[name]]
    rows = [(aliases.get(task.task, task.task), task.both, task.counts) for task in found.tasks] + [
        (TOTAL, both, found.counts)
    ]
    grid = Grid(
        heads=(TASKS, "documents", "the same", *used),
        numbers=(False, *(True,) * (len(used) + 2)),
        lines=tuple(
            (name, str(count), str(count - sum(counts.values())), *(str(counts[one]) for one in used))
            for name, count, counts in rows
        ),
        bold=tuple(name == TOTAL for name, _, _ in rows),
    )
    yield Block(head, (told, *silent), grid=grid, legend=("a document counts at the first stage that differs",))
    yield from (_show_task(task) for task in found.tasks if task.parted)


def _show_task(task: TaskStages) -> Block:
    """The first documents of each stage, with what either side has there."""
    some = [
        one
        for stage in STAGE_NAMES
        for one in [parted for parted in task.parted if parted.first.stage == stage][:SHOWN]
    ]
    grid = Grid(
        heads=("document", "stage", "request", "before", "after"),
        numbers=(True, False, True, False, False),
        lines=tuple(
            (_number(one), one.first.stage, str(one.first.at), one.first.before, one.first.after) for one in some
        ),
    )
    left = len(task.parted) - len(some)
    return Block(
        f"{task.task}: where documents part", grid=grid, legend=(f"{left:,} more: --json has all",) * (left > 0)
    )


def _number(one: Parted) -> str:
    return str(one.a) if one.a == one.b else f"{one.a} ({one.b} after)"


def describe_stages(found: BackendDiff | None) -> dict[str, object] | None:
    """Two backends as plain data."""
    if found is None:
        return None
    return {
        "before": found.before,
        "after": found.after,
        "tolerance": LIKE,
        "without_answer_log": list(found.silent),
        "counts": found.counts,
        "tasks": [
            {
                "task": task.task,
                "documents": task.both,
                "counts": task.counts,
                "parted": [
                    {
                        "doc": one.a,
                        "doc_b": one.b,
                        "stage": one.first.stage,
                        "request": one.first.at,
                        "before": one.first.before,
                        "after": one.first.after,
                    }
                    for one in task.parted
                ],
            }
            for task in found.tasks
        ],
    }
