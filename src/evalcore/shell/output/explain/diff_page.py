"""Changed verdicts for people: the numbers before and after, how many changed and how, and each change by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct

from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.outcome import Ok, Outcome
from evalcore.core.records.request import LogLikelihood, Options
from evalcore.shell.compare.run_names import Aliases
from evalcore.shell.explain.agreement import Traced
from evalcore.shell.explain.changes import KINDS, TaskDiff
from evalcore.shell.explain.diff import Detail, Diffed, NumberChange
from evalcore.shell.explain.lookup import pair_replies
from evalcore.shell.logs.log import Logged
from evalcore.shell.output.explain.blocks import Block, show_cell, show_reply
from evalcore.shell.output.explain.score_page import tell_how, tell_score
from evalcore.shell.output.explain.stage_page import build_stages
from evalcore.shell.output.terminal.grid import Grid, GridColumn, lay_grid
from evalcore.shell.output.terminal.number_table import NumberName, build_name_columns
from evalcore.shell.output.terminal.number_text import show_difference, show_number

LISTED = 10
SAME_NAME = "verdicts are compared under one filter name: to see what an edited filter changed, keep its old name"
SILENT = ("unchanged", "reply 1 of 1")


def build_diff(diffed: Diffed) -> tuple[Block, ...]:
    """The page of two scorings."""
    paths = (f"before: {diffed.a.path}", f"after: {diffed.b.path}")
    warnings = dict.fromkeys(f"warning: {one}" for one in (*diffed.a.warnings, *diffed.b.warnings))
    head = Block(summarise_diff(diffed), (*paths, *warnings))
    return (
        head,
        *_show_numbers(diffed),
        *build_stages(diffed.stages, diffed.aliases),
        *_tell_other_answers(diffed),
        *_tell_one_sided(diffed),
        *_tell_options(diffed),
        *(_show_change(one) for one in diffed.details),
        *_tell_rest(diffed),
    )


def summarise_diff(diffed: Diffed) -> str:
    """What changed, in a sentence."""
    count = sum(len(one.changes) for one in diffed.tasks)
    tasks = sum(bool(one.changes) for one in diffed.tasks)
    both = sum(one.both - len(one.answered) for one in diffed.tasks)
    if not count and diffed.tasks and not any(one.keys for one in diffed.tasks):
        return "No verdict was compared: no metric stands under the same filter name on both sides"
    if not count:
        return f"No verdict changed on the {both:,} documents with the same answers"
    verdicts = f"{count:,} verdict{'s' * (count != 1)} changed"
    return f"{verdicts} in {tasks} of {len(diffed.tasks)} tasks, on {both:,} documents with the same answers"


class MovedNumber(Struct, frozen=True):
    """A number before and after, with how often each kind of change is behind it; no counts of a group."""

    number: NumberChange
    counts: tuple[int, ...] = ()


OTHER_TEXT = "other text only"
COUNTED = (*KINDS, OTHER_TEXT)
MEANINGS = {OTHER_TEXT: "another text was extracted, with the same score"}
ENDS: tuple[GridColumn[MovedNumber], ...] = (
    GridColumn("before", lambda one: show_number(one.number.before, none="none")),
    GridColumn("after", lambda one: show_number(one.number.after, none="none")),
    GridColumn("after − before", lambda one: show_difference(one.number.moved)),
)
SHAPES = ((3, COUNTED, False), (3, COUNTED, True), (3, KINDS, True), (2, KINDS, True))
"""On a narrow screen all names of a number are in one, and what the others tell is left out."""


def _show_numbers(diffed: Diffed) -> Iterable[Block]:
    every = [MovedNumber(number, _count_changes(number, diffed.tasks)) for number in diffed.numbers]
    moved = [one for one in every if one.number.before != one.number.after or any(one.counts)]
    count = len(every) - len(moved)
    still = f"{count} number{'s are as they were' if count != 1 else ' is as it was'}, on the same verdicts"
    if not every:
        return
    if not moved:
        yield Block("Numbers", (still,))
        return
    grid, *narrower = (_build_grid(moved, diffed.aliases, *shape) for shape in SHAPES)
    yield Block("Numbers", (still,) if count else (), grid=grid, narrower=tuple(narrower))


def _build_grid(moved: Sequence[MovedNumber], aliases: Aliases, ends: int, told: Sequence[str], joined: bool) -> Grid:
    """The numbers that moved, with so many of their ends and the changes that are ``told`` where there are any."""

    def name(one: MovedNumber) -> NumberName:
        return NumberName(aliases.get(one.number.name, one.number.name), one.number.key)

    used = [at for at in range(len(told)) if any(one.counts[at] for one in moved if one.counts)]
    columns = [
        *build_name_columns(name, moved, joined=joined),
        *ENDS[:ends],
        *(GridColumn(told[at], partial(_show_count, at), MEANINGS.get(told[at], "")) for at in used),
    ]
    gap, readable = (1, 20) if joined else (2, 14)
    return lay_grid(columns, moved, bold=lambda one: one.number.group, gap=gap, readable=readable)


def _show_count(at: int, one: MovedNumber) -> str:
    return f"{one.counts[at]}" if one.counts else ""


def _count_changes(number: NumberChange, tasks: Sequence[TaskDiff]) -> tuple[int, ...]:
    """How many documents of a task changed in each way; none of a group, whose tasks stand for themselves."""
    diff = None if number.group else next((task for task in tasks if task.task == number.name), None)
    if diff is None:
        return ()
    counts = Counter(change.kind for change in diff.changes if change.key == number.key)
    return (*(counts[kind] for kind in KINDS), dict(diff.other_texts).get(number.key.filter, 0))


def _tell_other_answers(diffed: Diffed) -> Iterable[Block]:
    notes = [
        f"{one.task}: {len(one.answered):,} of {one.both:,} documents ({_join_names(str(a) for a, _ in one.answered)})"
        for one in diffed.tasks
        if one.answered
    ]
    if notes:
        yield Block(
            "The answers differ: use compare",
            (
                "this is no change of scoring, and is not counted as one; `evalcore compare` is for different answers",
                *notes,
            ),
        )


def _tell_one_sided(diffed: Diffed) -> Iterable[Block]:
    sides = (
        ("before", diffed.tasks_a, [(one.task, one.keys_a, one.only_a) for one in diffed.tasks]),
        ("after", diffed.tasks_b, [(one.task, one.keys_b, one.only_b) for one in diffed.tasks]),
    )
    for side, tasks, parts in sides:
        notes = [f"tasks: {_join_names(tasks)}"] if tasks else []
        notes += [f"{task}: {_join_names(map(str, keys))}" for task, keys, _ in parts if keys]
        notes += [f"{task}: {len(docs):,} documents ({_join_names(map(str, docs))})" for task, _, docs in parts if docs]
        if notes:
            yield Block(f"Only {side}", tuple(notes))
    lone = [line for one in diffed.tasks if (line := _tell_lone_filters(one))]
    if lone:
        yield Block("Filters of one side", (*lone, SAME_NAME))


def _tell_options(diffed: Diffed) -> Iterable[Block]:
    """Options of metrics that differ between the sides, and in which tasks."""
    changed: dict[str, dict[str, None]] = {}
    for diff in diffed.tasks:
        for key, before, after in diff.options:
            for name in sorted({*before, *after}):
                was, now = _show_option(before, name), _show_option(after, name)
                if was != now:
                    metric = key.metric.partition("@")[0]
                    changed.setdefault(f"{metric}: {name} was {was}, is {now}", {})[diff.task] = None
    if changed:
        yield Block(
            "Options of metrics that changed", tuple(f"{text} ({_join_names(t)})" for text, t in changed.items())
        )


def _show_option(options: Options, name: str) -> str:
    return show_cell(thaw(options[name]), full=True) if name in options else "not given"


def _tell_lone_filters(diff: TaskDiff) -> str:
    """The filters of one side only, where each side has some: perhaps the same filter under a new name."""
    before, after = diff.filters_a, diff.filters_b
    return f"{diff.task}: before {_join_names(before)}; after {_join_names(after)}" if before and after else ""


def _join_names(names: Iterable[str]) -> str:
    given = list(names)
    return ", ".join(given[:LISTED]) + (f" and {len(given) - LISTED:,} more" if len(given) > LISTED else "")


def _show_change(detail: Detail) -> Block:
    """One change: the answer, the gold, and what either scoring made of it."""
    change = detail.change
    (before, lost_before), (after, lost_after) = (tell_score(None, one) for one in (change.before, change.after))
    number = f"document {change.a}" + (f" ({change.b} after)" if change.b != change.a else "")
    lines = (
        *(("answer", show_cell(text), "") for text in _list_answers(detail.logged)),
        ("gold", show_cell(detail.logged.gold), ""),
        ("before", _show_kept(detail.before), _tell_cause(detail, detail.before, change.before) or lost_before),
        ("after", _show_kept(detail.after), _tell_cause(detail, detail.after, change.after) or lost_after),
    )
    grid = Grid(heads=("", "text", "by"), numbers=(False, False, False), lines=lines)
    reasons = ((side, why) for side, why in (("before", lost_before), ("after", lost_after)) if why)
    head = f"{detail.task}, {change.key}, {number}: {change.kind} ({before} -> {after})"
    return Block(head, tuple(f"{side}: {why}" for side, why in reasons), grid=grid)


def _tell_cause(detail: Detail, traced: Traced | None, outcome: Outcome) -> str:
    """What tells the sides apart: the rule that extracted the text, or where both have the same, how it was judged."""
    sides = [one.kept for one in (detail.before, detail.after) if one is not None and one.agrees is not False]
    same = len(sides) == 2 and sides[0] == sides[1]
    how = tell_how(traced, detail.change.key) if same else ""
    again = None if traced is None or traced.trace is None else dict(traced.trace.outcomes).get(detail.change.key)
    other = tell_score(outcome.score if isinstance(outcome, Ok) else None, again)[1]
    return "; ".join(filter(None, (how, other))) if how else tell_rule(traced)


def _list_answers(logged: Logged) -> list[str]:
    """The texts that were replied; of likelihoods each choice with its value."""
    if any(isinstance(one, LogLikelihood) for one in logged.requests):
        pairs = pair_replies(logged)
        return [f"{one.continuation if isinstance(one, LogLikelihood) else ''}: {replies}" for one, replies in pairs]
    return [show_reply(reply) for replies in logged.replies for reply in replies]


def _show_kept(traced: Traced | None) -> str:
    return "" if traced is None else ", ".join(map(show_cell, traced.kept))


def tell_rule(traced: Traced | None) -> str:
    """The rule that made the extracted text: the last step that says more than that it passed it on."""
    if traced is None:
        return ""
    if traced.trace is None or not traced.trace.steps:
        return traced.reason or (traced.trace.problem or "" if traced.trace is not None else "")
    notes = ((step.name, note) for step in traced.trace.steps[0] for note in step.notes[:1] if note not in SILENT)
    steps = "; ".join(f"{name}: {note}" for name, note in notes)
    return f"{steps} (the log kept another text)" if traced.agrees is False else steps


def _tell_rest(diffed: Diffed) -> Iterable[Block]:
    shown = Counter(one.task for one in diffed.details)
    notes = [
        f"{one.task}: {len(one.changes) - shown[one.task]:,} more changes; --limit {len(one.changes)} shows all"
        for one in diffed.tasks
        if len(one.changes) > shown[one.task]
    ]
    if notes:
        yield Block("Not shown", tuple(notes))
