"""From tasks to replies: each distinct question once, none that the log knows, every reply durable before it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Failure, Reply
from evalcore.shell.answerlog.line import LoggedAnswer, Withdrawn
from evalcore.shell.answerlog.writer import LogWriter, open_log
from evalcore.shell.models.model import NOT_RECORDED, Ask, Model, fit_reply
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.run.answer_spool import hold_answers
from evalcore.shell.run.questions.agenda import Agenda, mark_known, sort_items
from evalcore.shell.run.questions.budget import Bill, Budget, refuse_rest
from evalcore.shell.run.questions.replies import Group, ask_each, join_replies
from evalcore.shell.run.questions.usage import Meter, Usage, sum_usage

Record = Callable[[Group], None]
"""Makes replies durable; called before they count."""
Watch = Callable[[Mapping[str, Reply], float], Sequence[str]]
"""Makes lines about the replies so far, within so many seconds."""


def see_nothing(replies: Mapping[str, Reply], seconds: float) -> Sequence[str]:
    return ()


class AnswerSheet(NamedTuple):
    """Every reply of a run by its key, why the texts ended where the model said so, and how many were asked now.

    ``usage`` is what replies took; None of recorded ones. ``unasked`` are questions for which a budget had no room.
    """

    replies: Mapping[str, Reply]
    finishes: Mapping[str, str]
    asked_now: int
    warnings: tuple[str, ...] = ()
    usage: Usage | None = None
    unasked: int = 0

    @property
    def unrecorded(self) -> bool:
        """Whether not one question has a recorded reply."""
        return all(self.finishes.get(key) == NOT_RECORDED for key in self.replies)


class Interrupted(KeyboardInterrupt):
    """Stopped while asking; says what is kept and how to go on."""


NO_LIMITS = Budget()


def ask_agenda(
    model: Model,
    agenda: Agenda,
    path: Path,
    shown: Progress,
    budget: Budget = NO_LIMITS,
    watch: Watch = see_nothing,
) -> AnswerSheet:
    """Ask what the log at ``path`` does not know. Replies that come from a file are not logged again, and are free.

    ``watch`` makes numbers of the replies so far, for whoever looks on.
    """
    if model.recorded:
        bill = Bill(NO_LIMITS)
        return _add_hint(model.hint, _ask_rest(model, agenda, {}, lambda group: None, shown, bill, see_nothing))
    with hold_answers(path, shown) as file, open_log(file, model.identity) as log:
        answers = log.state.answers.items()
        known = {key: answer for key, answer in answers if key in agenda.items and answer.failure is None}
        bill = Bill(budget, _read_meter(log, agenda), free=model.free)
        start = monotonic()
        asked = _ask_rest(model, agenda, known, partial(_log, log), shown, bill, watch)
        usage = sum_usage(bill.before, bill.now, monotonic() - start, budget.prices)
        return asked._replace(warnings=log.state.problems, usage=usage)


def _read_meter(log: LogWriter, agenda: Agenda) -> Meter:
    """What the answers to these questions took so far, those included that were replaced or taken back."""
    meter = Meter()
    meter.add_logged(answer for key, answer in log.state.answers.items() if key in agenda.items)
    meter.add_logged(answer for answer in log.state.superseded if answer.key in agenda.items)
    return meter


def _add_hint(hint: str, sheet: AnswerSheet) -> AnswerSheet:
    if not hint or not sheet.unrecorded:
        return sheet
    told = {key: Failure(f"{one.reason}{hint}") for key, one in sheet.replies.items() if isinstance(one, Failure)}
    return sheet._replace(replies=FrozenDict(told))


def _log(log: LogWriter, group: Group) -> None:
    log.append_all(
        (item.key, item.question.digest, item.question.repeat, heard.reply, heard.finish, heard.spent)
        for item, heard in group
    )


def _ask_rest(
    model: Model,
    agenda: Agenda,
    known: Mapping[str, LoggedAnswer],
    record: Record,
    shown: Progress,
    bill: Bill,
    watch: Watch,
) -> AnswerSheet:
    replies = {key: fit_reply(agenda.items[key].question.request, answer.reply) for key, answer in known.items()}
    finishes = {key: answer.finish for key, answer in known.items() if answer.finish}
    rest = [item for key, item in agenda.items.items() if key not in known]
    # what a budget leaves room for are the first documents, not the longest
    rest = rest if model.recorded or bill.budget else sort_items(rest)
    shown.stage("asking", len(agenda.items), known=len(known), estimate=partial(watch, replies))
    if told := bill.tell_start():
        shown.warn(told)
    try:
        whole = model.whole and not bill.budget
        asked = mark_known(sort_items(agenda.items.values()), known) if whole else rest[: bill.count_room()]
        with closing(join_replies(ask_each(_limit_ask(model, bill), asked, shown.warn))) as groups:
            for group in groups:
                record(group)
                _enter_group(group, replies, finishes, shown, bill)
                if model.ask_while is None and not bill.has_room():
                    break
    except KeyboardInterrupt as stopped:
        word = str(stopped) or "interrupted"
        kept = _kept(model, replies, agenda)
        raise Interrupted(f"{word}{kept}; the same command goes on from there") from stopped
    except EvalError as wrong:
        raise type(wrong)(f"{wrong}{_kept(model, replies, agenda)}") from wrong
    unasked = [item.key for item in rest if item.key not in replies] if bill.budget else []
    replies |= dict.fromkeys(unasked, refuse_rest(bill.budget))
    return AnswerSheet(FrozenDict(replies), FrozenDict(finishes), len(rest) - len(unasked), unasked=len(unasked))


def _limit_ask(model: Model, bill: Bill) -> Ask:
    """How to ask a model whose answers cost something: what is in flight when a budget is reached is finished."""
    asker = model.ask_while
    return model.ask if asker is None else lambda questions: asker(questions, bill.has_room)


def _enter_group(
    group: Group, replies: dict[str, Reply], finishes: dict[str, str], shown: Progress, bill: Bill
) -> None:
    done, failed = 0, list[str]()
    for item, heard in group:
        finishes.pop(item.key, None)
        replies[item.key] = heard.reply
        if heard.finish:
            finishes[item.key] = heard.finish
        if isinstance(heard.reply, Withdrawn):
            done -= 1
            continue
        done += 1
        lost = [heard.reply.reason] if isinstance(heard.reply, Failure) else []
        failed += lost
        bill.add(heard.spent, failed=bool(lost))
    shown.advance(done, failed=failed)


def _kept(model: Model, replies: Mapping[str, Reply], agenda: Agenda) -> str:
    good = sum(not isinstance(reply, Failure) for reply in replies.values())
    return "" if model.recorded else f" ({good} of {len(agenda.items)} answers are in the answer log)"


def replies_of(keys: Iterable[str], replies: Mapping[str, Reply]) -> list[Reply]:
    """The replies of a task in the order of its requests; a question nobody answered is a failure.

    >>> replies_of(["a", "b"], {"a": "yes"})
    ['yes', Failure(reason='not asked')]
    """
    return [replies.get(key, NOT_ASKED) for key in keys]


NOT_ASKED = Failure("not asked")
