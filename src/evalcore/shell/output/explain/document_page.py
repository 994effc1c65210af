"""One document for people: prompt, answer, each filter, gold, scores, and its part in every number above."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalcore.core.answers.result import count_bytes
from evalcore.core.answers.table import as_number
from evalcore.core.records.request import GENERATE_UNTIL, Generate, LogLikelihood, Request
from evalcore.shell.explain.agreement import Traced
from evalcore.shell.explain.explain import Explained
from evalcore.shell.explain.lookup import list_own_ids, pair_replies
from evalcore.shell.output.explain.blocks import Block, show_cell, show_reply, split_lines
from evalcore.shell.output.explain.score_page import build_contributions, build_scores
from evalcore.shell.output.terminal.grid import Grid


def build_document(explained: Explained) -> tuple[Block, ...]:
    """The page of a document."""
    logged, full = explained.logged, explained.full
    names = [name for name in list_own_ids(logged) if name != str(logged.doc_id)]
    called = f" (its own name: {', '.join(names[:3])})" if names else ""
    place = f"{explained.file}:{logged.line}" if logged.line else str(explained.file)
    head = Block(
        f"{explained.log.name}, document {logged.doc_id}{called}",
        (
            f"in {place}",
            f"content: hash:{explained.content[:12]}",
            *_tell_lookup(explained),
            *(f"warning: {one}" for one in explained.warnings),
        ),
    )
    return (
        head,
        *_show_prompts(logged.requests, full),
        *_show_answers(explained, full),
        *(_show_filter(one, explained, full) for one in explained.traces),
        Block("Gold", text=_show_gold(explained, full)),
        *build_scores(explained),
        *build_contributions(explained),
    )


def _tell_lookup(explained: Explained) -> Iterable[str]:
    """Whether an id or a number was taken, where documents have both."""
    logged = explained.logged
    if explained.found_by == "id":
        yield f"found by its id; by its number it is --doc '#{logged.doc_id}'"
    elif explained.found_by == "number" and logged.id is not None:
        yield f"found by its number; by its id it is --doc '{logged.id}'"


# --- what was asked and answered -----------------------------------------------------------------------------------


def _show_prompts(requests: Sequence[Request], full: bool) -> Iterable[Block]:
    """Every prompt once: the choices of a question share theirs."""
    texts = list(dict.fromkeys(_read_prompt(one) for one in requests))
    texts = texts if any(texts) else []  # a table may not say what was asked
    for at, text in enumerate(texts):
        many = f" {at + 1} of {len(texts)}" if len(texts) > 1 else ""
        shared = f" (of {len(requests)} requests)" if len(texts) == 1 and len(requests) > 1 else ""
        yield Block(f"Prompt{many}{shared}", text=split_lines(text, full=full))


def _read_prompt(request: Request) -> str:
    if isinstance(request, Generate):
        return request.prompt
    return request.context if isinstance(request, LogLikelihood) else request.text


def _show_answers(explained: Explained, full: bool) -> Iterable[Block]:
    logged = explained.logged
    if any(isinstance(one, LogLikelihood) for one in logged.requests):
        yield _show_likelihoods(explained)
        return
    for request, replies in enumerate(logged.replies):
        which = f" to request {request + 1}" if len(logged.replies) > 1 else ""
        for at, reply in enumerate(replies):
            many = f" {at + 1} of {len(replies)}" if len(replies) > 1 else ""
            yield Block(f"Answer{many}{which}", text=split_lines(show_reply(reply), full=full))


def _show_likelihoods(explained: Explained) -> Block:
    logged = explained.logged
    golds = logged.gold if isinstance(logged.gold, tuple | list) else (logged.gold,)
    lines = []
    for at, (request, replies) in enumerate(pair_replies(logged)):
        text = request.continuation if isinstance(request, LogLikelihood) else ""
        choice = logged.choices[at] if at < len(logged.choices) else text
        first = replies[0] if replies else None
        value = first[0] if isinstance(first, tuple) else first
        number = as_number(value)
        known = isinstance(first, tuple) and len(first) > 1
        right = at in golds or len(logged.replies) == 1
        lines.append(
            (
                str(at),
                show_cell(text),
                _show_decimals(number),
                _show_decimals(number / len(choice)) if choice else "",
                _show_decimals(number / count_bytes(choice)) if choice else "",
                ("yes" if first[1] else "no") if known and isinstance(first, tuple) else "",
                "right" if right else "",
            )
        )
    heads = ("choice", "text", "log-likelihood", "by character", "by byte", "greedy", "")
    grid = Grid(heads=heads, numbers=(True, False, True, True, True, False, False), lines=tuple(lines))
    return Block("Answer", grid=grid)


def _show_decimals(value: float) -> str:
    return f"{value:.4f}"


def _show_gold(explained: Explained, full: bool) -> tuple[str, ...]:
    gold, choices = explained.logged.gold, explained.logged.choices
    if gold is None:
        return ("(none)",)
    if isinstance(gold, int) and 0 <= gold < len(choices):
        return (f"{gold}: {show_cell(choices[gold], full=full)}",)
    if isinstance(gold, tuple | list):
        return tuple(show_cell(one, full=full) for one in gold)
    return split_lines(gold, full=full) if isinstance(gold, str) else (show_cell(gold),)


# --- filters -------------------------------------------------------------------------------------------------------


def _show_filter(traced: Traced, explained: Explained, full: bool) -> Block:
    """A filter step by step; of likelihoods only the names, for there is nothing to see."""
    head, trace = f"Filter {traced.filter}", traced.trace
    if trace is None:
        said = "" if traced.said is None else f"the log kept {', '.join(map(show_cell, traced.said))}"
        return Block(head, tuple(filter(None, (traced.reason, said))))
    if trace.problem is not None:
        return Block(head, (f"no filter saw it: {trace.problem}",))
    if len(trace.steps) != 1 or explained.log.output_type != GENERATE_UNTIL:
        names = [step.name for step in trace.steps[0]] if trace.steps else []
        return Block(head, (f"{', '.join(names) or 'no steps'}, for each request ({len(trace.steps)} in all)",))
    if not trace.steps[0]:
        return Block(head, ("no steps: every answer is scored as it is",))
    grid = Grid(
        heads=("step", "reply", "leaves", "how"), numbers=(False, True, False, False), lines=_list_steps(traced)
    )
    return Block(head, tuple(_tell_agreement(traced)), grid=grid)


def _list_steps(traced: Traced) -> tuple[tuple[str, ...], ...]:
    """A line for every value that a step of the only unit left."""
    steps = traced.trace.steps[0] if traced.trace is not None and traced.trace.steps else ()
    return tuple(
        (step.name if at == 0 else "", str(at + 1), show_cell(value), note)
        for step in steps
        for at, (value, note) in enumerate(zip(step.after, step.notes, strict=True))
    )


def _tell_agreement(traced: Traced) -> Iterable[str]:
    if traced.agrees is False:
        said = ", ".join(map(show_cell, traced.said or ()))
        yield f"the log kept {said} instead: it was scored by other filters than these"
    elif traced.rules not in ("", "evalcore"):
        yield f"by the rules of {traced.rules}, which give what the log says"
