"""A prompt as turns of a conversation, which become plain text or messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from evalcore.core.records.errors import EvalError

__all__ = [
    "ChatTemplate",
    "Message",
    "Turn",
    "as_messages",
    "as_text",
    "example_turns",
    "join_texts",
    "question_turns",
    "write_prompt",
]

Message = dict[str, str]
"""``{"role": "system" | "user" | "assistant", "content": ...}``."""

ChatTemplate = Callable[[Sequence[Message], bool], str]
"""Messages, and whether to end with the opening of the assistant's turn, to the prompt the model is given."""


class Turn(NamedTuple):
    """What one side says, and what follows it where the prompt is plain text."""

    role: str
    content: str
    after: str = ""


def join_texts(first: str | None, second: str | None, between: str) -> str:
    """Two texts, with a delimiter unless one is empty or there is whitespace where they meet.

    >>> join_texts("a", "b", " "), join_texts("a\\n", "b", " "), join_texts(None, "b", " ")
    ('a b', 'a\\nb', 'b')
    """
    if not first or not second:
        return first or second or ""
    return first + (between if _apart(first, second) else "") + second


def _apart(first: str, second: str) -> bool:
    return not (first[-1].isspace() or second[0].isspace())


def question_turns(question: object, prefix: str | None, delimiter: str) -> tuple[Turn, ...]:
    """The question that is asked, and the beginning of the answer if the task gives one.

    >>> question_turns("Q", "The answer is", " ")
    (Turn(role='user', content='Q', after=' '), Turn(role='assistant', content='The answer is', after=''))
    """
    text = _expect_text("a question", question)
    if not prefix:
        return (Turn("user", text),)
    between = delimiter if text and _apart(text, prefix) else ""
    return Turn("user", text, between), Turn("assistant", prefix)


def example_turns(question: object, answer: object, prefix: str | None, target: str, after: str) -> tuple[Turn, ...]:
    """A question with its answer, which may be an empty text; without an answer (None) only the question.

    >>> example_turns("Q", "A", None, " ", "\\n\\n")
    (Turn(role='user', content='Q', after=' '), Turn(role='assistant', content='A', after='\\n\\n'))
    """
    if answer is None:
        return question_turns(question, prefix, target)
    text = _expect_text("a question", question)
    between = target if not prefix or (text and _apart(text, prefix)) else ""
    return Turn("user", text, between), Turn(
        "assistant", join_texts(prefix, _expect_text("an answer", answer), " "), after
    )


def write_prompt(turns: Sequence[Turn], chat: ChatTemplate | None, *, multiturn: bool, open_turn: bool) -> str:
    """The prompt that a model is given; ``open_turn`` asks a chat template for the head of the answer."""
    if chat is None:
        return as_text(turns)
    return chat(as_messages(turns, multiturn=multiturn), open_turn)


def as_text(turns: Sequence[Turn]) -> str:
    """All turns, one after another.

    >>> as_text([Turn("user", "Q", " "), Turn("assistant", "A")])
    'Q A'
    """
    return "".join([content + after for _, content, after in turns])


def as_messages(turns: Sequence[Turn], *, multiturn: bool) -> list[Message]:
    """A message for each turn, or one for all that the user is told before the answer begins.

    >>> shot = Turn("user", "Q", " "), Turn("assistant", "A", "\\n"), Turn("user", "Q2")
    >>> as_messages(shot, multiturn=False)
    [{'role': 'user', 'content': 'Q A\\nQ2'}]
    """
    if multiturn:
        return [{"role": turn.role, "content": turn.content} for turn in turns]
    system, rest = (turns[:1], turns[1:]) if turns[0].role == "system" else ((), turns)
    begun = rest[-1:] if rest[-1].role == "assistant" else ()
    told = rest[: len(rest) - len(begun)]
    joined = Turn("user", as_text(told[:-1]) + told[-1].content)
    return [{"role": turn.role, "content": turn.content} for turn in (*system, joined, *begun)]


def _expect_text(what: str, found: object) -> str:
    if not isinstance(found, str):
        raise EvalError(f"expected {what} as text, got {found!r}")
    return found
