"""A small task for each output type, to begin a task file with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE
from evalcore.shell.starter.answer_view import View
from evalcore.shell.starter.shapes import SHAPES

Docs = tuple[Mapping[str, object], ...]


class Template(NamedTuple):
    """An example of an output type: two documents, what their columns hold, and the shape of their answers."""

    shape: str
    documents: Docs
    question: str
    answer: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def config(self) -> dict[str, object]:
        """The task that measures the documents."""
        lists = [tuple(map(str, doc[name])) for doc in self.documents for name in self.choices]  # type: ignore[call-overload]
        view = View(self.documents, self.question, self.answer, self.choices, lists)
        return SHAPES[self.shape].config(view)


TEMPLATES: Mapping[str, Template] = {
    GENERATE_UNTIL: Template(
        "texts",
        (
            {"question": "What is the capital of France?", "answer": "Paris"},
            {"question": "What colour is the sky on a clear day?", "answer": "blue"},
        ),
        "question",
        "answer",
    ),
    MULTIPLE_CHOICE: Template(
        "choice texts",
        (
            {"question": "Which of these is a fruit?", "choices": ["a plum", "a spoon", "a cloud"], "answer": "a plum"},
            {"question": "Which of these can fly?", "choices": ["a stone", "a swan", "a table"], "answer": "a swan"},
        ),
        "question",
        "answer",
        ("choices",),
    ),
    LOGLIKELIHOOD: Template(
        "continuations",
        (
            {"question": "Two and two make", "answer": "four"},
            {"question": "The opposite of hot is", "answer": "cold"},
        ),
        "question",
        "answer",
    ),
    LOGLIKELIHOOD_ROLLING: Template(
        "prose",
        (
            {"text": "The river was low that summer, and the boys crossed it on the stones."},
            {"text": "She put the letter back into its envelope and did not speak of it again."},
        ),
        "text",
    ),
}
"""By output type."""
