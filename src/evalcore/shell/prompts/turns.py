"""A prompt as turns of a conversation, written as plain text or as messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

from evalcore.core.records.errors import EvalError

Message = dict[str, str]
"""``{"role": "system" | "user" | "assistant", "content": ...}``."""

ChatTemplate = Callable[[Sequence[Message], bool], str]
"""Writes the prompt for messages; a flag says whether it ends by opening the assistant's turn."""


CHAT_DATE = date(2024, 7, 26)
"""The day on which templates run that ask for one: Llama 3's, where there is no clock, writes this one, too."""


class Turn(NamedTuple):
    """What one side says, and what follows it in a plain prompt."""

    role: str
    content: str
    after: str = ""


def join_texts(first: str | None, second: str | None, between: str) -> str:
    """Join two texts by a delimiter, unless one is empty or they meet at white space.

    >>> join_texts("a", "b", " "), join_texts("a\\n", "b", " "), join_texts(None, "b", " ")
    ('a b', 'a\\nb', 'b')
    """
    if not first or not second:
        return first or second or ""
    return first + (between if _are_apart(first, second) else "") + second


def _are_apart(first: str, second: str) -> bool:
    return not (first[-1].isspace() or second[0].isspace())


def question_turns(question: object, prefix: str | None, delimiter: str) -> tuple[Turn, ...]:
    """Make the turns of a question, with the beginning of the answer if the task gives one.

    >>> question_turns("Q", "The answer is", " ")
    (Turn(role='user', content='Q', after=' '), Turn(role='assistant', content='The answer is', after=''))
    """
    text = _expect_text("a question", question)
    if not prefix:
        return (Turn("user", text),)
    between = delimiter if text and _are_apart(text, prefix) else ""
    return Turn("user", text, between), Turn("assistant", prefix)


def example_turns(question: object, answer: object, prefix: str | None, target: str, after: str) -> tuple[Turn, ...]:
    """Make the turns of a question and its answer, which may be empty; without an answer (None) only the question.

    >>> example_turns("Q", "A", None, " ", "\\n\\n")
    (Turn(role='user', content='Q', after=' '), Turn(role='assistant', content='A', after='\\n\\n'))
    """
    if answer is None:
        return question_turns(question, prefix, target)
    text = _expect_text("a question", question)
    between = target if not prefix or (text and _are_apart(text, prefix)) else ""
    return Turn("user", text, between), Turn(
        "assistant", join_texts(prefix, _expect_text("an answer", answer), " "), after
    )


def write_prompt(turns: Sequence[Turn], chat: ChatTemplate | None, *, multiturn: bool, open_turn: bool) -> str:
    """Write the prompt for a model; ``open_turn`` asks a chat template to open the answer."""
    if chat is None:
        return write_text(turns)
    return chat(write_messages(turns, multiturn=multiturn), open_turn)


def write_text(turns: Sequence[Turn]) -> str:
    """Write all turns one after another.

    >>> write_text([Turn("user", "Q", " "), Turn("assistant", "A")])
    'Q A'
    """
    return "".join([content + after for _, content, after in turns])


def write_messages(turns: Sequence[Turn], *, multiturn: bool) -> list[Message]:
    """Write a message for each turn, or one for all that precedes the answer.

    >>> shot = Turn("user", "Q", " "), Turn("assistant", "A", "\\n"), Turn("user", "Q2")
    >>> write_messages(shot, multiturn=False)
    [{'role': 'user', 'content': 'Q A\\nQ2'}]
    """
    if multiturn:
        return [{"role": turn.role, "content": turn.content} for turn in turns]
    system, rest = (turns[:1], turns[1:]) if turns[0].role == "system" else ((), turns)
    begun = rest[-1:] if rest[-1].role == "assistant" else ()
    asked = rest[: len(rest) - len(begun)]
    joined = Turn("user", write_text(asked[:-1]) + asked[-1].content)
    return [{"role": turn.role, "content": turn.content} for turn in (*system, joined, *begun)]


def _expect_text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise EvalError(f"expected {what} as text, got {value!r}")
    return value
