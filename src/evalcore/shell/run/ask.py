"""From tasks to replies: each distinct question once, none that the log knows, every reply durable before it counts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from evalcore.core.records.document import answer_key, digest_requests
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Failure, Generate, LogLikelihood, Reply, Request
from evalcore.shell.answerlog.line import LoggedAnswer, Withdrawn
from evalcore.shell.answerlog.writer import LogWriter, open_log
from evalcore.shell.models.model import (
    NOT_RECORDED,
    Ask,
    Heard,
    Model,
    Notice,
    Question,
    fit_reply,
)
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.answer_spool import hold_answers
from evalcore.shell.run.collector import without_collector


class Item(NamedTuple):
    """A question under the key of its answer."""

    key: str
    question: Question


class Agenda(NamedTuple):
    """All that a run asks: each distinct question once, and for every task the keys of its replies in order."""

    items: Mapping[str, Item]
    keys: Mapping[str, tuple[str, ...]]


Group = Sequence[tuple[Item, Heard]]
Record = Callable[[Group], None]
"""Makes replies durable; called before they count."""


@without_collector()
def list_questions(identity: str, tasks: Iterable[Built]) -> Agenda:
    """What these tasks ask of a model. Equal requests of several documents or tasks are one question.

    Without an identity, as of recorded answers, which are not logged again, most keys are the digests of requests.

    >>> list_questions("m", [])
    Agenda(items={}, keys={})
    """
    items: dict[str, Item] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for built in tasks:
        mine: list[str] = []
        counts = built.asked.repeats.ints.tolist()
        for request, digest, repeats in zip(built.requests, digest_requests(built.requests), counts, strict=True):
            for repeat in range(repeats):
                key = answer_key(identity, digest, repeat) if identity or repeat else digest
                items.setdefault(key, Item(key, Question(request, repeat, digest)))
                mine.append(key)
        keys[built.task.name] = tuple(mine)
    return Agenda(FrozenDict(items), FrozenDict(keys))


def sort_items(items: Iterable[Item]) -> list[Item]:
    """Kind by kind, longest first, equal contexts together: the largest request meets its limits first.

    >>> ask = lambda text: Item(text, Question(Generate(text)))
    >>> [item.key for item in sort_items(map(ask, ["a", "ccc", "bb"]))]
    ['ccc', 'bb', 'a']
    """
    return sorted(items, key=_order)


def _order(item: Item) -> tuple[str, int, str, int]:
    request = item.question.request
    opening = _opening(request)
    return type(request).__name__, -len(opening), opening, item.question.repeat


def _opening(request: Request) -> str:
    if isinstance(request, LogLikelihood):
        return request.context
    return request.prompt if isinstance(request, Generate) else request.text


class AnswerSheet(NamedTuple):
    """Every reply of a run by its key, why the texts ended where the model said so, and how many were asked now."""

    replies: Mapping[str, Reply]
    finishes: Mapping[str, str]
    asked_now: int
    warnings: tuple[str, ...] = ()

    @property
    def unrecorded(self) -> bool:
        """Whether not one question has a recorded reply."""
        return all(self.finishes.get(key) == NOT_RECORDED for key in self.replies)


class Interrupted(KeyboardInterrupt):
    """Stopped while asking; says what is kept and how to go on."""


def ask_agenda(model: Model, agenda: Agenda, path: Path, shown: Progress) -> AnswerSheet:
    """Ask what the log at ``path`` does not know. Replies that come from a file are not logged again."""
    if model.recorded:
        return _add_hint(model.hint, _ask_rest(model, agenda, {}, lambda group: None, shown))
    with hold_answers(path, shown) as file, open_log(file, model.identity) as log:
        answers = log.state.answers.items()
        known = {key: answer for key, answer in answers if key in agenda.items and answer.failure is None}
        asked = _ask_rest(model, agenda, known, partial(_log, log), shown)
        return asked._replace(warnings=log.state.problems)


def _add_hint(hint: str, sheet: AnswerSheet) -> AnswerSheet:
    if not hint or not sheet.unrecorded:
        return sheet
    told = {key: Failure(f"{one.reason}{hint}") for key, one in sheet.replies.items() if isinstance(one, Failure)}
    return sheet._replace(replies=FrozenDict(told))


def _log(log: LogWriter, group: Group) -> None:
    log.append_all(
        (item.key, item.question.digest, item.question.repeat, heard.reply, heard.finish) for item, heard in group
    )


def _ask_rest(
    model: Model, agenda: Agenda, known: Mapping[str, LoggedAnswer], record: Record, shown: Progress
) -> AnswerSheet:
    replies = {key: fit_reply(agenda.items[key].question.request, answer.reply) for key, answer in known.items()}
    finishes = {key: answer.finish for key, answer in known.items() if answer.finish}
    rest = [item for key, item in agenda.items.items() if key not in known]
    rest = rest if model.recorded else sort_items(rest)
    shown.stage("asking", len(agenda.items), known=len(known))
    try:
        with closing(join_replies(ask_each(model.ask, rest, shown.warn))) as groups:
            for group in groups:
                record(group)
                _enter_group(group, replies, finishes, shown)
    except KeyboardInterrupt as stopped:
        word = str(stopped) or "interrupted"
        kept = _kept(model, replies, agenda)
        raise Interrupted(f"{word}{kept}; the same command goes on from there") from stopped
    except EvalError as wrong:
        raise type(wrong)(f"{wrong}{_kept(model, replies, agenda)}") from wrong
    return AnswerSheet(FrozenDict(replies), FrozenDict(finishes), len(rest))


def _enter_group(group: Group, replies: dict[str, Reply], finishes: dict[str, str], shown: Progress) -> None:
    done = failed = 0
    for item, heard in group:
        finishes.pop(item.key, None)
        replies[item.key] = heard.reply
        if heard.finish:
            finishes[item.key] = heard.finish
        done += -1 if isinstance(heard.reply, Withdrawn) else 1
        failed += isinstance(heard.reply, Failure) and not isinstance(heard.reply, Withdrawn)
    shown.advance(done, failed=failed)


def _kept(model: Model, replies: Mapping[str, Reply], agenda: Agenda) -> str:
    good = sum(not isinstance(reply, Failure) for reply in replies.values())
    return "" if model.recorded else f" ({good} of {len(agenda.items)} answers are in the answer log)"


def ask_each(
    ask: Ask, items: Sequence[Item], tell: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[Item, Heard]]:
    """The reply to each item as it comes; a model that answers twice, or what was not asked, is refused.

    >>> one = Item("k", Question(Generate("?")))
    >>> next(ask_each(lambda questions: (Heard(at, "x") for at in (1,)), [one]))
    Traceback (most recent call last):
    evalcore.EvalError: expected a reply to one of 1 questions, got one to number 1
    """
    if not items:
        return
    replies = ask([item.question for item in items])
    try:
        yield from _checked(replies, items, tell)
    finally:  # what is in flight is cancelled now, not when the garbage is collected
        if isinstance(replies, Generator):
            replies.close()


def _checked(
    replies: Iterable[Heard | Notice], items: Sequence[Item], tell: Callable[[str], None]
) -> Iterator[tuple[Item, Heard]]:
    heard_of: set[int] = set()
    for heard in replies:
        if isinstance(heard, Notice):
            tell(heard.text)
            continue
        if not 0 <= heard.at < len(items):
            raise EvalError(f"expected a reply to one of {len(items)} questions, got one to number {heard.at}")
        if (heard.at in heard_of) != isinstance(heard.reply, Withdrawn):
            what = "one to withdraw" if isinstance(heard.reply, Withdrawn) else "a second one"
            raise EvalError(f"expected one reply to each question, got {what} to number {heard.at}")
        heard_of ^= {heard.at}
        yield items[heard.at], heard


def join_replies(replies: Iterable[tuple[Item, Heard]]) -> Generator[Group, None, None]:
    """Join the replies that came together. Those that came before an error, or before a stop, come before it.

    >>> item = Item("k", Question(Generate("?")))
    >>> [len(group) for group in join_replies((item, Heard(0, "x", more=more)) for more in (True, False, False))]
    [2, 1]
    """
    group: list[tuple[Item, Heard]] = []
    try:
        for one in replies:
            group.append(one)
            if not one[1].more:
                yield group
                group = []
    except (EvalError, KeyboardInterrupt):
        if group:
            yield group
        raise
    if group:
        yield group


def replies_of(keys: Iterable[str], replies: Mapping[str, Reply]) -> list[Reply]:
    """The replies of a task in the order of its requests; a question nobody answered is a failure.

    >>> replies_of(["a", "b"], {"a": "yes"})
    ['yes', Failure(reason='not asked')]
    """
    return [replies.get(key, NOT_ASKED) for key in keys]


NOT_ASKED = Failure("not asked")
