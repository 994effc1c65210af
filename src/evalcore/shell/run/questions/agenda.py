"""What a run asks: each distinct question once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from evalcore.core.records.document import answer_key, digest_requests
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Generate, LogLikelihood, Request
from evalcore.shell.models.model import Question
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.collector import without_collector


class Item(NamedTuple):
    """A question under the key of its answer."""

    key: str
    question: Question


class Agenda(NamedTuple):
    """All that a run asks: each distinct question once, and for every task the keys of its replies in order."""

    items: Mapping[str, Item]
    keys: Mapping[str, tuple[str, ...]]


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


def mark_known(items: Iterable[Item], known: Collection[str]) -> list[Item]:
    """Mark the questions that were answered before.

    >>> ask = lambda text: Item(text, Question(Generate(text)))
    >>> [item.question.known for item in mark_known(map(ask, ["a", "b"]), {"b"})]
    [False, True]
    """
    return [item._replace(question=item.question._replace(known=item.key in known)) for item in items]
