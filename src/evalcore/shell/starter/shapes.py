"""What the answers of a file look like, and the task that measures them: SHAPES, tried in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE
from evalcore.shell.starter.answer_view import Config, View
from evalcore.shell.starter.choice_shapes import (
    ask_choices,
    ask_classes,
    ask_index,
    ask_letters,
    ask_lone_letters,
    fit_choice_texts,
    fit_classes,
    fit_index,
    fit_labels,
    fit_letters,
    fit_lone_letters,
)
from evalcore.shell.starter.text_shapes import (
    MARK,
    ask_continuation,
    ask_long,
    ask_number,
    ask_prose,
    ask_short,
    fit_continuation,
    fit_long,
    fit_marked_numbers,
    fit_numbers,
    fit_prose,
    fit_short,
)
from evalcore.shell.starter.uneven_choices import (
    ask_most_letters,
    ask_most_texts,
    fit_most_letters,
    fit_most_texts,
    note_letters,
    note_texts,
)


class Shape(NamedTuple):
    """A kind of answers: the output type that measures it, whether answers are such (why), the task, and a remark.

    ``guessed`` is false if it is only taken where its output type was asked for. ``needs`` are packages of its metrics.
    ``notes`` name the rows that do not fit.
    """

    output_type: str
    fits: Callable[[View], str]
    config: Callable[[View], Config]
    remark: str = ""
    guessed: bool = True
    needs: tuple[str, str] = ("", "")
    notes: Callable[[View], list[str]] = lambda view: []


SHAPES: Mapping[str, Shape] = {
    "choice letters": Shape(MULTIPLE_CHOICE, fit_letters, ask_letters, "the model chooses a letter by likelihood"),
    "choice labels": Shape(
        MULTIPLE_CHOICE,
        fit_labels,
        lambda view: ask_choices(view, f"{{{{ {view.choices[0]}.label.index({view.answer}) }}}}"),
        "the model chooses a text by likelihood",
    ),
    "choice texts": Shape(
        MULTIPLE_CHOICE,
        fit_choice_texts,
        lambda view: ask_choices(view, f"{{{{ ({view.listed}).index({view.answer}|string) }}}}"),
        "the model chooses a text by likelihood",
    ),
    "choice numbers": Shape(MULTIPLE_CHOICE, fit_index, ask_index, "the model chooses a text by likelihood"),
    "most letters": Shape(
        MULTIPLE_CHOICE,
        fit_most_letters,
        ask_most_letters,
        "the model chooses a letter by likelihood; answers that are no choice have no score",
        notes=note_letters,
    ),
    "letters": Shape(MULTIPLE_CHOICE, fit_lone_letters, ask_lone_letters, "the model chooses a letter by likelihood"),
    "labels": Shape(MULTIPLE_CHOICE, fit_classes, ask_classes, "the model chooses a label by likelihood"),
    "most texts": Shape(
        MULTIPLE_CHOICE,
        fit_most_texts,
        ask_most_texts,
        "the model chooses a text by likelihood; answers that are no choice have no score",
        notes=note_texts,
    ),
    "marked numbers": Shape(
        GENERATE_UNTIL,
        fit_marked_numbers,
        lambda view: ask_number(view, f"{{{{ {view.answer}.split('{MARK}')[-1]|trim }}}}"),
        "the last number of the reply is compared with it",
    ),
    "numbers": Shape(
        GENERATE_UNTIL,
        fit_numbers,
        lambda view: ask_number(view, f"{{{{{view.answer}}}}}"),
        "the last number of the reply is compared with it",
    ),
    "long texts": Shape(
        GENERATE_UNTIL,
        fit_long,
        ask_long,
        "replies are compared by the letters they share (chrF)",
        needs=("sacrebleu", "text"),
    ),
    "texts": Shape(GENERATE_UNTIL, fit_short, ask_short, "replies must say the same, but for case and punctuation"),
    "prose": Shape(LOGLIKELIHOOD_ROLLING, fit_prose, ask_prose, "how well the model predicts the texts"),
    "continuations": Shape(
        LOGLIKELIHOOD, fit_continuation, ask_continuation, "how likely the model finds the answer", guessed=False
    ),
}
"""By name, in the order in which they are tried."""
