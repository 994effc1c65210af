"""Plans for the next run as a page for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from operator import attrgetter

from evalcore.core.compare.power import PowerGoal, PowerPlan
from evalcore.core.stats.noise import question_stderr
from evalcore.shell.compare.power import Planned
from evalcore.shell.compare.run_names import Aliases
from evalcore.shell.output.terminal.grid import Grid, GridColumn, Page, Section, lay_grid
from evalcore.shell.output.terminal.number_table import NumberName, build_name_columns
from evalcore.shell.output.terminal.number_text import N, show_number, show_share

MOST = 20
LEVELS = range(1, 6)

PlanColumn = GridColumn[PowerPlan]


def build_page(planned: Planned) -> Page:
    """The table, what its columns mean, and of what nothing can be said.

    >>> build_page(Planned(plans=(), asked=PowerGoal(half_width=0.01), read=("out/results.json",))).title
    ('Read out/results.json', 'a number to ± 0.01, with 95 % confidence')
    """
    shown = [plan for plan in planned.plans if plan.half_width is not None]
    columns = _build_columns(shown, planned.asked)
    silent = [plan for plan in planned.plans if plan.half_width is None]
    empty = [f"{plan.known.name} {plan.known.key}: {plan.known.reason}" for plan in silent]
    left = (f"and {len(empty) - MOST} more",) if len(empty) > MOST else ()
    kept = [[column for column in columns if not column.spare or column.spare >= level] for level in LEVELS]
    name = partial(_name_plan, planned.aliases)
    names = build_name_columns(name, shown)
    joined = build_name_columns(name, joined=True)
    sections = (
        Section("Nothing to plan from:", (*empty[:MOST], *left), "red"),
        Section("Warnings:", planned.notes, "yellow"),
    )
    return Page(
        grids=(
            *(_build_grid(shown, [*names, *some]) for some in kept),
            *(_build_grid(shown, [*joined, *some], gap=1, readable=24) for some in kept[2:]),
        ),
        lead=planned.lead,
        title=(f"Read {' and '.join(planned.read)}", _write_title(planned.plans, planned.asked)),
        sections=tuple(section for section in sections if section.lines),
    )


def _write_title(plans: Sequence[PowerPlan], asked: PowerGoal) -> str:
    paired = any(plan.known.paired for plan in plans)
    if asked.half_width is not None:
        what = "the difference between the two runs" if paired else "a number"
        return f"{what} to ± {asked.half_width:g}, with {show_share(1 - asked.alpha)} confidence"
    what = "a difference" if asked.difference is None else f"a true difference of {asked.difference:g}"
    how = f"{what} found in {show_share(asked.power)} of runs, at a level of {show_share(asked.alpha)}"
    if paired:
        return f"{how}; spread of the difference as between these two runs"
    return (
        f"{how}, to a model that varies accordingly and agrees with this one by a correlation of "
        f"{asked.correlation:g} (assumed; a second run replaces it)"
    )


def _build_columns(plans: Sequence[PowerPlan], asked: PowerGoal) -> list[PlanColumn]:
    split = any(plan.known.sampling is not None for plan in plans)
    goal = asked.difference if asked.half_width is None else asked.half_width
    return [
        PlanColumn(
            N,
            lambda plan: f"{plan.known.n:,}",
            "documents (or questions) now; for a group, those of all its tasks that have the metric",
        ),
        *(
            _build_split_columns()
            if split
            else [_build_sd_column("sd", lambda plan: plan.known.stderr, "how much the score varies")]
        ),
        *_build_reach_columns(asked, split),
        *(_build_need_columns(plans, goal, split) if goal is not None else []),
    ]


def _build_split_columns() -> list[PlanColumn]:
    return [
        PlanColumn(
            "K", lambda plan: "" if plan.known.repeats is None else f"{plan.known.repeats:.3g}", "replies to each now"
        ),
        _build_sd_column(
            "question sd",
            find_question_part,
            "how much the score varies from question to question, whatever K is (K unknown: its whole spread)",
        ),
        _build_sd_column(
            "sampling sd",
            lambda plan: plan.known.sampling,
            "how much a question's score varies from one set of K replies to the next",
        ),
    ]


def find_question_part(plan: PowerPlan) -> float | None:
    """What is left of an error with endless replies; all of it where replies are not known apart."""
    stderr, sampling = plan.known.stderr, plan.known.sampling
    return stderr if stderr is None or sampling is None else question_stderr(stderr, sampling**2)


def _build_sd_column(head: str, part: Callable[[PowerPlan], float | None], meaning: str) -> PlanColumn:
    return PlanColumn(head, lambda plan: _show_digits(spread_of_document(plan, part(plan))), meaning, spare=1)


def spread_of_document(plan: PowerPlan, stderr: float | None) -> float | None:
    """The standard deviation of one document's score behind a standard error."""
    return None if stderr is None else stderr * sqrt(plan.known.n)


def _build_reach_columns(asked: PowerGoal, split: bool) -> list[PlanColumn]:
    half = asked.half_width is not None
    now = (
        PlanColumn("± now", lambda plan: _show_digits(plan.half_width), "half the width of the interval now")
        if half
        else PlanColumn(
            "finds now", lambda plan: _show_digits(plan.finds), "the smallest true difference found that often now"
        )
    )
    best = PlanColumn(
        "at best",
        lambda plan: _show_digits(plan.best),
        "the same with unlimited replies to the same questions",
        spare=2,
    )
    return [now, best] if split else [now]


def _build_need_columns(plans: Sequence[PowerPlan], goal: float, split: bool) -> list[PlanColumn]:
    tried = list(dict.fromkeys(k for plan in plans for k, _ in plan.documents if k is not None))
    own = f"documents that {goal:g} takes, of the same kind and mix, with as many replies to each as now"
    enough = f"replies to each that reach {goal:g} on the same documents; none: too few documents for any K"
    return [
        PlanColumn("n needed", partial(_show_needed, repeats=None), own),
        *(
            PlanColumn(
                f"K={k}", partial(_show_needed, repeats=k), "so many with K replies to each" * (k == tried[0]), spare=3
            )
            for k in tried
        ),
        *([PlanColumn("K needed", _show_repeats, enough, spare=4)] if split else []),
    ]


def _show_needed(plan: PowerPlan, repeats: int | None) -> str:
    return _show_count(dict(plan.documents).get(repeats), "")


def _show_repeats(plan: PowerPlan) -> str:
    return "" if plan.known.sampling is None else _show_count(plan.more_repeats, "none")


def _build_grid(plans: Sequence[PowerPlan], columns: Sequence[PlanColumn], gap: int = 2, readable: int = 14) -> Grid:
    group, name = attrgetter("known.group"), attrgetter("known.name")
    return lay_grid(columns, plans, bold=group, place=name, gap=gap, readable=readable)


def _name_plan(aliases: Aliases, plan: PowerPlan) -> NumberName:
    known = plan.known
    return NumberName(aliases.get(known.name, known.name), known.key, known.depth)


def _show_digits(value: float | None) -> str:
    return show_number(value, 3)


def _show_count(count: int | None, none: str) -> str:
    return none if count is None else f"{count:,}"
