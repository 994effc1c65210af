"""Replies as a model gives them: one to each question, those at hand together in a group."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog.line import Withdrawn
from evalcore.shell.models.model import Ask, Heard, Notice
from evalcore.shell.run.questions.agenda import Item

Group = Sequence[tuple[Item, Heard]]


def ask_each(
    ask: Ask, items: Sequence[Item], tell: Callable[[str], None] = lambda text: None
) -> Iterator[tuple[Item, Heard]]:
    """The reply to each item as it comes; a model that answers twice, or what was not asked, is refused.

    >>> from evalcore.core.records.request import Generate
    >>> from evalcore.shell.models.model import Question
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
        if (heard.at in heard_of or items[heard.at].question.known) != isinstance(heard.reply, Withdrawn):
            what = "one to withdraw" if isinstance(heard.reply, Withdrawn) else "a second one"
            raise EvalError(f"expected one reply to each question, got {what} to number {heard.at}")
        heard_of ^= {heard.at}
        yield items[heard.at], heard


def join_replies(replies: Iterable[tuple[Item, Heard]]) -> Generator[Group, None, None]:
    """Join the replies that came together. Those that came before an error, or before a stop, come before it.

    >>> from evalcore.core.records.request import Generate
    >>> from evalcore.shell.models.model import Question
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
