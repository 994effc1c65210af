"""A model is a function from questions to replies, with a unique name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.request import Reply, Request, Rolling
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.prompts.turns import ChatTemplate


class Question(NamedTuple):
    """One request, asked for the ``repeat``-th time; ``digest`` names the request, where that is known already.

    ``known``: it was answered before; a model that plans with all questions gets it, too.
    """

    request: Request
    repeat: int = 0
    digest: str = ""
    known: bool = False


class Heard(NamedTuple):
    """The reply to the question at this place; ``finish`` is why it ended, if the model says so.

    ``more`` says that the next reply is at hand as well, so that both may become durable together. ``spent`` is what
    the question took, where the model knows.
    """

    at: int
    reply: Reply
    finish: str = ""
    more: bool = False
    spent: Spent | None = None


class Notice(NamedTuple):
    """Something that should be said now: a server that does not answer, say."""

    text: str


def fit_reply(request: Request, reply: Reply) -> Reply:
    """Bring a reply into the form of its request: the likelihood of a whole text is a plain number, as in lm-eval.

    >>> fit_reply(Rolling("a text"), (-7.5, False))
    -7.5
    """
    return float(reply[0]) if isinstance(request, Rolling) and isinstance(reply, tuple) else reply


NOT_RECORDED = "not recorded"
"""The ``finish`` of a failure that stands for a reply which is not there."""

OTHER_OPTIONS = "other options"
"""The ``finish`` of a recorded reply to the same prompt under other generation options."""

Ask = Callable[[Sequence[Question]], Iterator[Heard | Notice]]
"""Every question gets exactly one reply, a ``Failure`` if need be, in any order.

A reply that proves to be another question's is taken back by one that is ``Withdrawn``; the right one follows.
Nothing more is asked until the replies that were yielded have been taken: what was not yet yielded counts as in
flight. An ``EvalError`` means that going on is pointless (a wrong key, no such model).
"""


AskWhile = Callable[[Sequence[Question], Callable[[], bool]], Iterator[Heard | Notice]]
"""As ``Ask``, but once the second argument returns False no further question is sent; those in flight are answered."""


def accept_options(options: Mapping[str, object]) -> None:
    """Accept any generation options."""


class Model(FrozenRecord, frozen=True):
    """What a run needs of a model.

    ``identity`` names all that answers depend on (model, revision, defaults), not where the model is, and contains no
    secret. ``recorded`` marks replies from a file, which are not logged again; its ``hint`` goes to every failure if
    not one question of a run has a recorded reply. ``warnings`` are for the user. ``template`` is the text of the chat
    template, if known. ``check`` refuses generation options that the model cannot honour, before anything is asked.
    ``ask_while`` is there if questions may be in flight when a budget is reached: they are finished, not cancelled.
    ``free`` replies cost nothing.
    ``whole``: what is asked together depends on all questions of a run, so it gets those that are known as well.
    ``batches`` is what else decides that: under others, the last digits of likelihoods may differ.
    """

    name: str
    identity: str
    ask: Ask
    chat: ChatTemplate | None = None
    recorded: bool = False
    warnings: tuple[str, ...] = ()
    template: str | None = None
    check: Callable[[Mapping[str, object]], object] = accept_options
    hint: str = ""
    ask_while: AskWhile | None = None
    free: bool = False
    whole: bool = False
    batches: Mapping[str, object] = FrozenDict()


def compare_identities(before: str, now: str) -> str:
    """Say in what two identities differ: in which values, if they are names with values in JSON.

    >>> compare_identities('server {"model":"m","seed":1}', 'server {"model":"m","seed":2}')
    'seed 1 before, 2 now'
    >>> compare_identities("a@1", "a@2")
    'a@1 before, a@2 now'
    """
    one, other = map(_split_identity, (before, now))
    differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    told = (f"{key} {one.get(key, 'none')} before, {other.get(key, 'none')} now" for key in differing)
    return "; ".join(text.removeprefix(f"{KIND} ") for text in told)


KIND = "kind"


def _split_identity(identity: str) -> dict[str, object]:
    kind, brace, rest = identity.partition(" {")
    try:
        return {KIND: kind, **msgspec.json.decode(brace.strip() + rest, type=dict[str, object])}
    except (ValueError, RecursionError):
        return {KIND: identity}


def bring_no_code(arguments: Mapping[str, object]) -> tuple[str, ...]:
    """A model without code of its own."""
    return ()


class Backend(Struct, frozen=True):
    """An entry of the table of models: how to open one, what it is, and what its arguments mean.

    ``identify`` opens one that cannot be asked, where workers read recorded replies. ``list_code`` names the models
    whose own code these arguments would run, which needs trust.
    """

    open: Callable[[Mapping[str, object]], Model]
    summary: str
    arguments: tuple[tuple[str, str], ...] = ()
    identify: Callable[[Mapping[str, object]], Model] | None = None
    list_code: Callable[[Mapping[str, object]], tuple[str, ...]] = bring_no_code
