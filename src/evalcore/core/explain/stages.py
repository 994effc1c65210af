"""Where two runs part on a document: the first stage that differs, from the prompt to the extracted text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from math import isclose

from msgspec import Struct

from evalcore.core.records.document import write_request
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Failure, Generate, Likelihood, Reply, Request

LIKE = 1e-4
"""How far log-likelihoods may be apart, relative to the larger, and still count as the same."""

Sides = tuple[str, str]


class Exchange(Struct, frozen=True):
    """A request and its reply; where these are known, ``finish`` is why a text ended, ``read`` the prompt's tokens."""

    request: Request
    reply: Reply | None
    finish: str = ""
    read: int | None = None


class AnsweredDocument(Struct, frozen=True):
    """The exchanges of a document, request by request with their repeats, and what each filter left of the texts."""

    exchanges: tuple[Exchange, ...]
    kept: Mapping[str, tuple[str, ...]] = FrozenDict()


class FirstDifference(Struct, frozen=True):
    """The first stage at which two runs part on a document, what either has there, and in which exchange."""

    stage: str
    at: int
    before: str
    after: str


def compare_prompts(a: Exchange, b: Exchange) -> Sides | None:
    """The texts that were asked, around where they part."""
    return next(filter(None, map(show_parting, _list_texts(a.request), _list_texts(b.request))), None)


def compare_options(a: Exchange, b: Exchange) -> Sides | None:
    """The options of generation, if they differ."""
    one, two = write_request(a.request)[-1], write_request(b.request)[-1]
    return (one, two) if isinstance(a.request, Generate) and one != two else None


def compare_tokens(a: Exchange, b: Exchange) -> Sides | None:
    """The numbers of tokens, where both runs counted them: of a prompt, or of what continues a context."""
    one, two = _count_tokens(a), _count_tokens(b)
    return (f"{one} tokens", f"{two} tokens") if one and two and one != two else None


def compare_failures(a: Exchange, b: Exchange) -> Sides | None:
    """Whether there is a reply at all."""
    lost = [isinstance(one.reply, Failure) for one in (a, b)]
    return (_show_reply(a.reply), _show_reply(b.reply)) if lost[0] != lost[1] else None


def compare_likelihoods(a: Exchange, b: Exchange) -> Sides | None:
    """The log-likelihoods, if they are further apart than rounding, or if one alone is greedy.

    >>> one, two, three = (Exchange(Generate("?"), Likelihood(v, True, 1)) for v in (-2.0, -2.0001, -2.01))
    >>> compare_likelihoods(one, two), compare_likelihoods(one, three)
    (None, ('-2.000000 (greedy)', '-2.010000 (greedy)'))
    """
    one, two = _read_likelihood(a.reply), _read_likelihood(b.reply)
    if one is None or two is None:
        return None
    near = one[0] == two[0] or isclose(one[0], two[0], rel_tol=LIKE, abs_tol=LIKE)
    return None if near and one[1] == two[1] else (_show_reply(a.reply), _show_reply(b.reply))


def compare_finishes(a: Exchange, b: Exchange) -> Sides | None:
    """Why the texts ended, where both runs say so."""
    return (a.finish, b.finish) if a.finish and b.finish and a.finish != b.finish else None


def compare_texts(a: Exchange, b: Exchange) -> Sides | None:
    """The generated texts, around where they part."""
    return show_parting(a.reply, b.reply) if isinstance(a.reply, str) and isinstance(b.reply, str) else None


EXTRACTION = "extraction"
STAGES: tuple[tuple[str, Callable[[Exchange, Exchange], Sides | None]], ...] = (
    ("prompt", compare_prompts),
    ("options", compare_options),
    ("tokens", compare_tokens),
    ("failure", compare_failures),
    ("log-likelihood", compare_likelihoods),
    ("finish reason", compare_finishes),
    ("text", compare_texts),
)
"""The stages of an exchange in the order in which one causes the next; extraction follows."""

STAGE_NAMES = (*(name for name, _ in STAGES), EXTRACTION)


def find_first_difference(a: AnsweredDocument, b: AnsweredDocument) -> FirstDifference | None:
    """Find the first stage at which any exchange of a document differs; None if none does.

    >>> one, two = (AnsweredDocument((Exchange(Generate("?"), text, "stop"),)) for text in ("4", "4 or 5"))
    >>> find_first_difference(one, two)
    FirstDifference(stage='text', at=0, before="'4'", after="'4 or 5'")
    """
    if len(a.exchanges) != len(b.exchanges):
        one, two = (f"{len(side.exchanges)} requests" for side in (a, b))
        return FirstDifference(STAGE_NAMES[0], 0, one, two)
    for stage, compare in STAGES:
        for at, (one_side, other) in enumerate(zip(a.exchanges, b.exchanges, strict=True)):
            if (sides := compare(one_side, other)) is not None:
                return FirstDifference(stage, at, *sides)
    if not all(isinstance(one.request, Generate) for one in a.exchanges):
        return None  # what filters leave of likelihoods are the likelihoods
    both = [name for name in a.kept if name in b.kept and a.kept[name] != b.kept[name]]
    return next((FirstDifference(EXTRACTION, 0, *_show_kept(a, b, name)) for name in both), None)


def count_stages(found: Iterable[FirstDifference | None]) -> dict[str, int]:
    """Count documents by the stage at which they part, in the order of stages; those of no stage have none."""
    stages = [one.stage for one in found if one is not None]
    return {name: stages.count(name) for name in STAGE_NAMES}


def show_parting(a: str, b: str, around: int = 30) -> Sides | None:
    """Show two texts around where they part; None if they are the same.

    >>> show_parting("Question: 2 + 2?", "Question: 2 + 3?", 3)
    ("...+ 2?' from 14", "...+ 3?' from 14")
    """
    if a == b:
        return None
    at = next(i for i, (one, two) in enumerate(zip_longest(a, b)) if one != two)
    if at <= around:
        return repr(a[: at + around]), repr(b[: at + around])
    one, two = (f"...{repr(text[at - around + 1 : at + around])[1:]} from {at}" for text in (a, b))
    return one, two


def _show_kept(a: AnsweredDocument, b: AnsweredDocument, name: str) -> Sides:
    one, two = (f"{name}: {', '.join(map(repr, side.kept[name]))}" for side in (a, b))
    return one, two


def _list_texts(request: Request) -> Sequence[str]:
    return write_request(request)[:-1] if isinstance(request, Generate) else write_request(request)


def _count_tokens(one: Exchange) -> int | None:
    """Of a prompt, or of what continues a context: backends count the contexts of likelihoods in different ways."""
    if isinstance(one.request, Generate):
        return one.read
    return one.reply.tokens if isinstance(one.reply, Likelihood) else None


def _read_likelihood(reply: Reply | None) -> tuple[float, bool] | None:
    if isinstance(reply, tuple):
        return float(reply[0]), bool(reply[1])
    return (float(reply), False) if isinstance(reply, int | float) else None


def _show_reply(reply: Reply | None) -> str:
    if isinstance(reply, Failure):
        return f"no answer: {reply.reason}"
    known = _read_likelihood(reply)
    if known is None:
        return repr(reply)
    return f"{known[0]:.6f}" + (" (greedy)" if known[1] else "")
