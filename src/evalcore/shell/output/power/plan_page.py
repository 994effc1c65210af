"""Plans for the next run as a page for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt

from msgspec import Struct

from evalcore.core.compare.power import Asked, Plan
from evalcore.core.stats.noise import question_stderr
from evalcore.shell.output.terminal.flat import shown_number, shown_percent
from evalcore.shell.output.terminal.grid import Grid, Page, Section

__all__ = ["page_of", "per_document", "question_part"]

MOST = 20
LEVELS = 4


class Head(Struct, frozen=True):
    """A column: its head, its cell, what it means, whether it is a number, and how soon it gives way (0: never)."""

    head: str
    cell: Callable[[Plan], str]
    meaning: str = ""
    number: bool = True
    spare: int = 0


def page_of(plans: Sequence[Plan], asked: Asked, read: Sequence[str], notes: Sequence[str] = ()) -> Page:
    """The table, what its columns mean, and of what nothing can be said.

    >>> page_of([], Asked(half_width=0.01), ["out/results.json"]).title
    ('Read out/results.json', 'a number to ± 0.01, with 95 % confidence')
    """
    shown = [plan for plan in plans if plan.half_width is not None]
    heads = _heads(shown, asked)
    empty = tuple(f"{plan.known.name} {plan.known.key}: {plan.known.reason}" for plan in plans if plan not in shown)
    left = (f"and {len(empty) - MOST} more",) if len(empty) > MOST else ()
    kept = [[one for one in heads if not one.spare or one.spare >= level] for level in range(1, LEVELS + 2)]
    return Page(
        grids=(*(_grid(shown, some) for some in kept), *(_grid(shown, some, joined=True) for some in kept[2:])),
        title=(f"Read {' and '.join(read)}", _title(plans, asked)),
        sections=tuple(
            section
            for section in (
                Section("Nothing to plan from:", (*empty[:MOST], *left), "red"),
                Section("Warnings:", tuple(notes), "yellow"),
            )
            if section.lines
        ),
    )


def _title(plans: Sequence[Plan], asked: Asked) -> str:
    paired = any(plan.known.paired for plan in plans)
    if asked.half_width is not None:
        what = "the difference between the two runs" if paired else "a number"
        return f"{what} to ± {asked.half_width:g}, with {shown_percent(1 - asked.alpha)} confidence"
    what = "a difference" if asked.difference is None else f"a true difference of {asked.difference:g}"
    how = f"{what} found in {shown_percent(asked.power)} of runs, at a level of {shown_percent(asked.alpha)}"
    if paired:
        return f"{how}; spread of the difference as between these two runs"
    return (
        f"{how}, to a model that varies as much and agrees with this one by a correlation of "
        f"{asked.correlation:g} (assumed; a second run replaces it)"
    )


def _heads(plans: Sequence[Plan], asked: Asked) -> list[Head]:
    split = any(plan.known.sampling is not None for plan in plans)
    goal = asked.difference if asked.half_width is None else asked.half_width
    return [
        Head("Tasks", _indented, number=False),
        Head("Metric", _metric, number=False),
        Head(
            "n",
            lambda plan: f"{plan.known.n:,}",
            "documents (or questions) there are now; a group's are those of all its tasks that have the metric",
        ),
        *(_split_heads() if split else [_sd("sd", lambda plan: plan.known.stderr, "how much the score varies")]),
        *_reached(asked, split),
        *(_needed_heads(plans, goal, split) if goal is not None else []),
    ]


def _split_heads() -> list[Head]:
    return [
        Head(
            "K", lambda plan: "" if plan.known.repeats is None else f"{plan.known.repeats:.3g}", "replies to each now"
        ),
        _sd(
            "question sd",
            question_part,
            "how much the score varies from question to question, whatever K is (K not known: all of its spread)",
        ),
        _sd(
            "sampling sd",
            lambda plan: plan.known.sampling,
            "how much a question's score varies from one set of K replies to the next",
        ),
    ]


def question_part(plan: Plan) -> float | None:
    """What is left of an error with endless replies; all of it where replies are not known apart."""
    stderr, sampling = plan.known.stderr, plan.known.sampling
    return stderr if stderr is None or sampling is None else question_stderr(stderr, sampling**2)


def _sd(head: str, part: Callable[[Plan], float | None], meaning: str) -> Head:
    return Head(head, lambda plan: _number(per_document(plan, part(plan))), meaning, spare=1)


def per_document(plan: Plan, stderr: float | None) -> float | None:
    """The standard deviation of one document's score behind a standard error."""
    return None if stderr is None else stderr * sqrt(plan.known.n)


def _reached(asked: Asked, split: bool) -> list[Head]:
    half = asked.half_width is not None
    now = (
        Head("± now", lambda plan: _number(plan.half_width), "half the width of the interval now")
        if half
        else Head("finds now", lambda plan: _number(plan.finds), "the smallest true difference found that often now")
    )
    best = Head(
        "at best", lambda plan: _number(plan.best), "the same with endless replies to the same questions", spare=2
    )
    return [now, best] if split else [now]


def _needed_heads(plans: Sequence[Plan], goal: float, split: bool) -> list[Head]:
    tried = list(dict.fromkeys(k for plan in plans for k, _ in plan.documents if k is not None))
    own = f"documents that {goal:g} takes, of the same kind and mix, with as many replies to each as now"
    enough = f"replies to each with which the documents there are do for {goal:g}; none: too few documents for any K"
    return [
        Head("n needed", partial(_needed, repeats=None), own),
        *(
            Head(f"K={k}", partial(_needed, repeats=k), "so many with K replies to each" * (k == tried[0]), spare=3)
            for k in tried
        ),
        *([Head("K needed", _repeats_needed, enough, spare=4)] if split else []),
    ]


def _needed(plan: Plan, repeats: int | None) -> str:
    return _whole(dict(plan.documents).get(repeats), "")


def _repeats_needed(plan: Plan) -> str:
    return "" if plan.known.sampling is None else _whole(plan.more_repeats, "none")


def _grid(plans: Sequence[Plan], heads: Sequence[Head], joined: bool = False) -> Grid:
    """A grid of some columns; ``joined``: with task, metric and filter in one."""
    shown = [WHOLE, *heads[2:]] if joined else heads
    again = [False] * len(plans) if joined else _again(plans)
    return Grid(
        heads=tuple(one.head for one in shown),
        numbers=tuple(one.number for one in shown),
        lines=tuple(
            tuple("" if same and one.head == "Tasks" else one.cell(plan) for one in shown)
            for plan, same in zip(plans, again, strict=True)
        ),
        bold=tuple(plan.known.group for plan in plans),
        gap=1 if joined else 2,
        legend=tuple(f"{one.head}: {one.meaning}" for one in shown if one.meaning),
        readable=24 if joined else 14,
    )


def _again(plans: Sequence[Plan]) -> list[bool]:
    """Whether a row is of the same task as the one above."""
    names = [plan.known.name for plan in plans]
    return [at > 0 and name == names[at - 1] for at, name in enumerate(names)]


def _indented(plan: Plan) -> str:
    return " " * min(plan.known.depth, MOST) + "- " * bool(plan.known.depth) + plan.known.name


def _metric(plan: Plan) -> str:
    key = plan.known.key
    return key.metric if key.filter == "none" else str(key)


WHOLE = Head("Tasks", lambda plan: f"{_indented(plan)}/{_metric(plan)}", number=False)


def _whole(count: int | None, none: str) -> str:
    return none if count is None else f"{count:,}"


def _number(value: float | None) -> str:
    return "" if value is None else shown_number(value, 3)
