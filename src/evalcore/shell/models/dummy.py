"""A model without knowledge: its answers come from a hash of the request, the same on every run and machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from math import log

from evalcore.core.records.document import digest_request
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.request import Generate, Likelihood, LogLikelihood, Reply
from evalcore.shell.models.model import Backend, Heard, Model, Question
from evalcore.shell.prompts.turns import Message

ARGUMENTS = (
    ("seed", "another number gives other answers (0)"),
    ("text", "what every generation says; without it, words drawn from the prompt or a number"),
)

AT_ONCE = 64
"""Replies that are at hand together."""


def open_dummy(arguments: Mapping[str, object]) -> Model:
    """Open the dummy model for these arguments.

    >>> model = open_dummy({"text": "lol"})
    >>> [heard.reply for heard in model.ask([Question(Generate("?"))])]
    ['lol']
    """
    for name in sorted(arguments.keys() - {"seed", "text"}):
        raise unknown("dummy argument", name, ("seed", "text"))
    seed, text = arguments.get("seed", 0), arguments.get("text")
    if not isinstance(seed, int):
        raise EvalError(f"model dummy: expected an integer as seed, got {seed!r}")

    def ask(questions: Sequence[Question]) -> Iterator[Heard]:
        for at, question in enumerate(questions):
            fixed = text is not None and isinstance(question.request, Generate)
            reply = str(text) if fixed else guess_reply(question, seed)
            yield Heard(at, reply, more=(at + 1) % AT_ONCE != 0)

    return Model("dummy", f"dummy:{seed}" + (f":{text}" if text is not None else ""), ask, chat=_write_chat, free=True)


def guess_reply(question: Question, seed: int = 0) -> Reply:
    """Guess a reply of the right kind: different for different requests, always the same for one.

    >>> guess_reply(Question(LogLikelihood("2 + 2 =", " 4"))).tokens
    2
    """
    request = question.request
    share, other = _draw_numbers(f"{seed}:{question.digest or digest_request(request)}:{question.repeat}")
    if isinstance(request, LogLikelihood):
        return Likelihood(log(share) * len(request.continuation), other < 0.1, max(1, len(request.continuation)))
    if isinstance(request, Generate):
        words = request.prompt.split()[-20:]
        return words[int(share * len(words))] if words and other < 0.5 else str(int(share * 100))
    return log(share) * len(request.text)


def _draw_numbers(name: str) -> tuple[float, float]:
    """Draw two numbers between 0 and 1, both excluded."""
    raw = blake2b(name.encode(), digest_size=16).digest()
    return ((int.from_bytes(raw[:6]) + 1) / (2**48 + 1), int.from_bytes(raw[8:14]) / 2**48)


def _write_chat(messages: Sequence[Message], opening: bool) -> str:
    """Write a line for each turn: the plainest of templates."""
    turns = [f"{message['role']}: {message['content']}" for message in messages]
    return "\n".join([*turns, "assistant:"] if opening else turns)


BACKEND = Backend(open_dummy, "answers out of thin air, the same every time: to try out a config", ARGUMENTS)
