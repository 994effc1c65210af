"""What a run goes without: tasks that cannot be built (an error or, with ``keep_going``, a note), ends of replies."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Tree, leaves
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.models.model import OTHER_OPTIONS
from evalcore.shell.output.terminal.notes import group_warnings
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.run.ask import AnswerSheet
from evalcore.shell.run.questions.agenda import Agenda
from evalcore.shell.safety.credentials import hide_credentials


class Unbuildable(EvalError):
    """An error of one task; others could run without it."""


@contextmanager
def note_failure(failed: dict[str, str], task: str, *, keep_going: bool, others: int = 0) -> Iterator[None]:
    """Note why a task cannot be built, if the run is to keep going with the others.

    >>> failed = {}
    >>> with note_failure(failed, "t", keep_going=True):
    ...     raise EvalError("expected a file - at t")
    >>> failed
    {'t': 'expected a file - at t'}
    """
    try:
        yield
    except SystemExit as left:
        if not keep_going:
            raise
        failed[task] = f"its code ended the run (exit {left.code}) - at {task}"
    except EvalError as wrong:
        if not keep_going and not others:
            raise
        if not keep_going:
            raise Unbuildable(str(wrong)) from wrong
        failed[task] = str(wrong)


@contextmanager
def refuse_exit() -> Iterator[None]:
    """Make an error of code that would end the program."""
    try:
        yield
    except SystemExit as left:
        raise EvalError(f"the code of a task ended the run (exit {left.code})") from left


@contextmanager
def offer_others() -> Iterator[None]:
    """Add to the error of one task how to run the others.

    >>> with offer_others():
    ...     raise Unbuildable("expected a file - at t")
    Traceback (most recent call last):
    evalcore.EvalError: expected a file - at t (to run the other tasks without it: --keep_going)
    """
    try:
        yield
    except Unbuildable as wrong:
        told = str(wrong)
        between = "\n" if "\n" in told else " "
        raise EvalError(f"{told}{between}(to run the other tasks without it: --keep_going)") from wrong


def refuse_failures(trees: Iterable[Tree[object]], failed: Mapping[str, str], built: Iterable[str]) -> None:
    """Refuse to keep going if no task is left, or a group declares that it may miss none (``missing: fail``).

    >>> refuse_failures((), {"a": "expected a file - at a", "b": "expected data - at b"}, [])
    Traceback (most recent call last):
    evalcore.EvalError: none of 2 tasks can be built; the first: expected a file - at a
    """
    if failed and not list(built):
        raise EvalError(f"none of {len(failed)} tasks can be built; the first: {next(iter(failed.values()))}")
    for group in list_groups(trees):
        lost = next((leaf.name for leaf in leaves(group) if leaf.name in failed), None)
        if lost is not None and any(metric.missing == "fail" for metric in group.metrics):
            raise EvalError(
                f"group {group.name!r} may miss no task (missing: fail), and {lost} cannot be built: {failed[lost]}"
            )


def tell_failures(failed: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each task that was left out.

    >>> tell_failures({"t": "expected a file - at t"})
    ('t was left out, as it cannot be built: expected a file - at t',)
    """
    return tuple(f"{task} was left out, as it cannot be built: {reason}" for task, reason in failed.items())


def tell_early(
    prompts: Iterable[str], failed: Mapping[str, str], warnings: Sequence[str], tasks: Iterable[str], shown: Progress
) -> None:
    """Tell what there is to say of tasks once they are built."""
    sys.stderr.write(hide_credentials("".join(prompts)))
    for text in (*tell_failures(failed), *group_warnings(warnings, set(tasks))):
        shown.warn(text)


ENDINGS = {
    "length": ("were cut off by max_gen_toks", "was cut off by max_gen_toks"),
    "content_filter": ("were stopped by the server's content filter", "was stopped by the server's content filter"),
    OTHER_OPTIONS: ("were recorded under other generation options", "was recorded under other generation options"),
}


def count_endings(agenda: Agenda, asked: AnswerSheet) -> FrozenDict[str, FrozenDict[str, int]]:
    """By task: how many replies there are, did not end by themselves (by the reason), and are empty."""
    out: dict[str, FrozenDict[str, int]] = {}
    for task, keys in agenda.keys.items():
        ends = Counter(asked.finishes.get(key, "") for key in keys)
        odd = {name: ends[name] for name in ENDINGS if ends[name]}
        empty = sum(asked.replies.get(key) == "" for key in keys)
        out[task] = FrozenDict({"replies": len(keys), **odd, **({"empty": empty} if empty else {})})
    return FrozenDict(out)


def tell_endings(agenda: Agenda, asked: AnswerSheet) -> tuple[str, ...]:
    """A warning for each task with replies that did not end by themselves, or are empty."""
    out: list[str] = []
    words = {**ENDINGS, "empty": ("are empty", "is empty")}
    for task, ends in count_endings(agenda, asked).items():
        told = [(ends[name], what) for name, what in words.items() if name in ends]
        out += [f"{task}: {count} of {ends['replies']} replies {what[count == 1]}" for count, what in told]
    if asked.unasked:
        out.append(
            f"{asked.unasked:,} of {len(agenda.items):,} questions were not asked, as the budget was reached; the same "
            "command with a higher one goes on from there"
        )
    return tuple(out)
