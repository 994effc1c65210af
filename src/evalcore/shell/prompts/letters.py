"""The choices of a document: checked, and shown with letters where the model is asked for one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

from msgspec.structs import replace

from evalcore.core.answers.choice import find_gold_indices
from evalcore.core.filters.letter import KEY, LETTER_FORMS, WAYS
from evalcore.core.records.document import convert_gold
from evalcore.core.records.errors import EvalError, place, require_known
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import CHOOSE, GENERATE_UNTIL, MULTIPLE_CHOICE, Gold, Options, Sample
from evalcore.shell.prompts.settings import TaskSettings

CUE = re.compile(r"(.*\S)\s*\n\s*((?:[^\s:]{1,20} ?){1,3}:)\s*", re.DOTALL)
"""A question whose last line is a few words and a colon, such as "Answer:": these stay last."""

USUAL_CUE = "Answer:"
LISTED = re.compile(r"[\s().:\]\[]")
MEASURED = ("acc", "extraction_rate")
WHOLE = re.compile(r"[0-9]{1,9}\.0")


def ask_by_letter(settings: TaskSettings, by: str | None) -> TaskSettings:
    """Turn a multiple-choice task into one that generates a letter, if the run or else the task says so.

    Its metrics are ``acc,letter`` and the share of replies with a letter; likelihoods are not asked, so nothing that
    needs them (``acc_norm``) is measured.

    >>> task = TaskSettings(task="t", output_type=MULTIPLE_CHOICE)
    >>> asked = ask_by_letter(task, "letter")
    >>> str(asked.output_type), [one["metric"] for one in asked.metric_list], asked.filter_list[0]["name"]
    ('generate_until', ['acc', 'extraction_rate'], 'letter')
    """
    way = by or settings.multiple_choice_by
    if way is None or (by and settings.output_type != MULTIPLE_CHOICE):
        return settings
    where = place(settings.task)
    require_known(KEY, [way], WAYS, where)
    if settings.output_type != MULTIPLE_CHOICE:
        raise EvalError(f"expected output_type multiple_choice with {KEY}, got {settings.output_type}{where}")
    if way not in LETTER_FORMS:
        return replace(settings, multiple_choice_by=None)
    if settings.process_results is not None:
        raise EvalError(f"{KEY}: {way} gives no likelihoods, which process_results of this task reads{where}")
    form = LETTER_FORMS[way]
    reduced = settings.repeat_cfg is not None or settings.repeats > 1
    steps = tuple(FrozenDict({"function": name}) for name in (*form.filters, *(() if reduced else ("take_first",))))
    own = {key: value for key, value in (settings.generation_kwargs or {}).items() if key != "until"}
    return replace(
        settings,
        output_type=GENERATE_UNTIL,
        metric_list=tuple(FrozenDict({"metric": name}) for name in MEASURED),
        filter_list=(FrozenDict({"name": way, "filter": steps}),),
        generation_kwargs=FrozenDict({**form.generation, **own}),
        multiple_choice_by=way,
    )


def warn_of_letters(config: Mapping[str, object], settings: TaskSettings) -> tuple[str, ...]:
    """Warn of metrics of a task that letters cannot give.

    >>> asked = ask_by_letter(TaskSettings(task="t", output_type=MULTIPLE_CHOICE), "letter")
    >>> warn_of_letters({"metric_list": [{"metric": "acc"}, {"metric": "brier_score"}]}, asked)
    ('multiple_choice_by: letter does not measure brier_score, which needs likelihoods - at t',)
    """
    listed = config.get("metric_list")
    names = (
        [one.get("metric") for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []
    )
    measured = {one["metric"] for one in settings.metric_list or ()}
    lost = [str(getattr(name, "__name__", name)) for name in names if name not in measured]
    if not lost or settings.multiple_choice_by is None:
        return ()
    told = f"{KEY}: {settings.multiple_choice_by} does not measure {', '.join(lost)}, which needs likelihoods"
    return (told + place(settings.task),)


def write_lettered(question: object, choices: Sequence[str]) -> str:
    """Write a question with its choices by letter and the demand for one; choices that are letters already stand in it.

    >>> print(write_lettered("Which is red?\\nAnswer:", ("sky", "blood")))
    Which is red?
    <BLANKLINE>
    A. sky
    B. blood
    <BLANKLINE>
    Answer with the letter of one choice alone: A or B.
    Answer:
    """
    if not isinstance(question, str):
        raise EvalError(f"expected a question as text, got {question!r}")
    letters = list_letters(choices)
    found = CUE.fullmatch(question)
    body, cue = (found[1], found[2].strip()) if found else (question.rstrip(), USUAL_CUE)
    shown = [LISTED.sub("", choice) for choice in choices] == list(letters)
    lines = "" if shown else "\n".join(f"{one}. {choice.strip()}" for one, choice in zip(letters, choices, strict=True))
    offered = f"{', '.join(letters[:-1])} or {letters[-1]}" if len(letters) > 1 else letters[0]
    demand = f"Answer with the letter of one choice alone: {offered}.\n{cue}"
    return "\n\n".join(part for part in (body, lines, demand) if part)


def list_letters(choices: Sequence[str]) -> tuple[str, ...]:
    """List the letters of the choices."""
    if len(choices) > len(ascii_uppercase):
        raise EvalError(f"expected at most {len(ascii_uppercase)} choices to be asked by letter, got {len(choices)}")
    return tuple(ascii_uppercase[: len(choices)])


def offer_letters(options: Options, choices: Sequence[str]) -> Options:
    """Name the letters of a document's choices where log-probabilities choose one of them.

    >>> from evalcore.core.records.request import freeze_options
    >>> offer_letters(freeze_options({CHOOSE: "ABCDEF"}), ("a", "b"))[CHOOSE]
    'AB'
    """
    return options.set(CHOOSE, "".join(list_letters(choices))) if CHOOSE in options else options


def find_letters(gold: Gold, choices: Sequence[str]) -> Gold:
    """Find the letter of the right choice, or the letters of all; a gold that is no choice stays as it is.

    >>> find_letters(1, ("a", "b")), find_letters(("b", "a"), ("a", "b")), find_letters(7, ("a", "b"))
    ('B', ('B', 'A'), 7)
    """
    found = find_gold_indices(Sample(0, gold, tuple(choices)), len(choices))
    if isinstance(found, str):
        return gold
    letters = tuple(ascii_uppercase[at] for at in found)
    return letters if len(letters) > 1 else letters[0]


class Lettered(NamedTuple):
    """A question that shows its choices by letter, and the letter of the right one, or of each."""

    question: str
    gold: Gold
    choices: tuple[str, ...]

    @property
    def answer(self) -> object:
        """The answer of an example."""
        first = self.gold[0] if isinstance(self.gold, tuple) else self.gold
        if isinstance(first, str) and first in list_letters(self.choices):
            return first
        raise EvalError(f"expected an index below {len(self.choices)} or a choice in a few-shot example, got {first!r}")


def letter_document(
    question: object, choices: Sequence[str], target: object, delimiter: str, *, several: bool
) -> Lettered:
    """Letter the choices of a document; where ``several`` beginnings have the same end, whole texts are the choices.

    >>> letter_document(1, ("Ann", "Bob"), "sings.", " ", several=True)[1:]
    ('B', ('Ann sings.', 'Bob sings.'))
    """
    if not choices:
        raise EvalError("expected doc_to_choice for output_type multiple_choice, got none")
    whole = tuple(f"{one}{delimiter}{target}" for one in choices) if several else tuple(choices)
    gold = read_index(question if several else target, whole)
    return Lettered(write_lettered("" if several else question, whole), find_letters(gold, whole), whole)


def read_index(target: object, choices: Sequence[str]) -> Gold:
    """The gold of a document with choices; a truth value is an index, as for Python and so for lm-eval.

    >>> read_index("2.0", ("a", "b", "c")), read_index(True, ("a", "b")), read_index("b", ("a", "b"))
    (2, 1, 'b')
    """
    gold = convert_gold(int(target) if isinstance(target, bool) else target)
    if isinstance(gold, str) and gold not in choices and WHOLE.fullmatch(gold):  # an index in a column of floats
        return int(gold.removesuffix(".0"))
    return gold


def check_choices(value: object) -> tuple[str, ...]:
    """The choices that ``doc_to_choice`` gives, which are texts."""
    if not isinstance(value, list | tuple) or not value:
        raise EvalError(f"doc_to_choice: expected a list of at least one choice, got {value!r}")
    wrong = next((one for one in value if not isinstance(one, str)), None)
    if wrong is not None:
        raise EvalError(f"doc_to_choice: expected choices as text, got {wrong!r}")
    return tuple(value)


def pick_choice(choices: Sequence[object], index: object) -> object:
    """The choice at an index that a few-shot example gives."""
    if not isinstance(index, int) or not -len(choices) <= index < len(choices):
        raise EvalError(f"expected an index below {len(choices)} in a few-shot example, got {index!r}")
    return choices[index]
