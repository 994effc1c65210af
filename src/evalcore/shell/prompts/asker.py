"""One document to its requests, gold and choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from evalcore.core.lm_eval.target import ReadGolds, keep_target
from evalcore.core.records.document import convert_gold
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import freeze_value
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Generate,
    Gold,
    LogLikelihood,
    Options,
    Request,
    Rolling,
    freeze_options,
)
from evalcore.shell.prompts.fields import Read, read_choices, read_field, read_target, read_text
from evalcore.shell.prompts.letters import check_choices, letter_document, offer_letters, pick_choice, read_index
from evalcore.shell.prompts.mistakes import refuse_typos
from evalcore.shell.prompts.ready_task import Asking
from evalcore.shell.prompts.settings import TaskSettings
from evalcore.shell.prompts.templates.compile import Doc
from evalcore.shell.prompts.turns import ChatTemplate, Turn, example_turns, join_texts, question_turns, write_prompt


class AskedDocument(NamedTuple):
    """The requests of a document with its gold and choices. ``target`` is what ``doc_to_target`` gives,
    whatever the gold is, ``question`` what ``doc_to_text`` gives, without what precedes it.
    """

    requests: tuple[Request, ...]
    gold: Gold
    choices: tuple[str, ...]
    target: object
    question: object = ""


class Readers(Struct, frozen=True):
    """How the fields of a document are read."""

    text: Read
    target: Read
    choices: Read | None
    prefix: Read


class Asker(Struct, frozen=True):
    """What turning documents into requests needs to know of a task."""

    output_type: str
    ours: Readers
    shots: Readers
    description: Read
    system: str | None
    delimiters: tuple[str, str]
    shot_delimiters: tuple[str, str]
    continuation: str
    generation: Options
    chat: ChatTemplate | None
    multiturn: bool
    mutual: bool
    several_inputs: bool = False
    golds: ReadGolds = keep_target
    letters: bool = False


def make_asker(
    settings: TaskSettings, columns: Sequence[str], asking: Asking, mutual: bool, *, texts: bool = False
) -> Asker:
    """Compile every reader of a task, for documents with these columns; with ``texts``, no text is a list."""
    refuse_typos(settings, columns)
    shots, chosen = settings.fewshot_config, settings.doc_to_choice is not None
    names = frozenset(columns)
    shot_text = settings.doc_to_text if shots.doc_to_text is None else shots.doc_to_text
    shot_target = settings.doc_to_target if shots.doc_to_target is None else shots.doc_to_target
    rolling = settings.output_type == LOGLIKELIHOOD_ROLLING
    return Asker(
        settings.output_type,
        Readers(
            read_text("" if rolling else settings.doc_to_text, names, choices=chosen),
            read_target(settings.doc_to_target, names, choices=chosen, texts=texts),
            read_choices(settings.doc_to_choice, names) if chosen else None,
            read_field(settings.gen_prefix, names, key="gen_prefix"),
        ),
        Readers(
            read_text("" if rolling else shot_text, names, choices=chosen, key="fewshot_config.doc_to_text"),
            read_target(shot_target, names, choices=chosen, key="fewshot_config.doc_to_target"),
            read_choices(shots.doc_to_choice, names, key="fewshot_config.doc_to_choice")
            if shots.doc_to_choice
            else None,
            read_field(shots.gen_prefix, None, key="fewshot_config.gen_prefix"),
        ),
        read_field(settings.description, None, key="description"),
        asking.system_instruction,
        (settings.target_delimiter, settings.fewshot_delimiter),
        (shots.target_delimiter or "", shots.fewshot_delimiter or ""),
        _choose_continuation(settings, asking),
        freeze_options(settings.generation_kwargs),
        asking.chat,
        asking.multiturn,
        mutual,
        letters=settings.multiple_choice_by is not None,
    )


def _choose_continuation(settings: TaskSettings, asking: Asking) -> str:
    """Choose what precedes a choice. A chat template ends the question itself, unless the answer has begun."""
    prefix = settings.gen_prefix
    if asking.chat is None or (prefix and not prefix[-1].isspace()):
        return settings.target_delimiter
    return ""


def write_example(asker: Asker, doc: Doc) -> tuple[Turn, ...]:
    """Write a document as a few-shot example."""
    read = asker.shots
    question = read.text(doc)
    choices = check_choices(read.choices(doc)) if read.choices is not None else ()
    target = read.target(doc)
    prefix = _check_prefix(read.prefix(doc))
    if asker.letters:
        shown = letter_document(question, choices, target, asker.shot_delimiters[0], several=asker.several_inputs)
        return example_turns(shown.question, shown.answer, prefix, *asker.shot_delimiters)
    if asker.several_inputs:
        question, choices = pick_choice(choices, question), ()
    # As in lm-eval, an empty text is no answer, but an empty choice or an empty first of several answers is one.
    answer = None if target == "" else _choose_answer(target, choices)
    return example_turns(question, answer, prefix, *asker.shot_delimiters)


def _choose_answer(target: object, choices: Sequence[str]) -> object:
    if choices and isinstance(target, int):
        return pick_choice(choices, target)
    return pick_choice(target, 0) if isinstance(target, list) else target


def ask_document(asker: Asker, doc: Doc, shots: Sequence[Turn]) -> AskedDocument:
    """Ask about a document, with its examples before it."""
    return FORMS[asker.output_type](asker, doc, shots)


# --- by output type ------------------------------------------------------------------------------------------


def _ask_rolling(asker: Asker, doc: Doc, shots: Sequence[Turn]) -> AskedDocument:
    target = _check_text(asker.ours.target(doc))
    return AskedDocument((Rolling(target),), target, (), target)


def _ask_likelihood(asker: Asker, doc: Doc, shots: Sequence[Turn]) -> AskedDocument:
    if asker.ours.choices is not None:
        return _ask_choices(asker, doc, shots)
    question = asker.ours.text(doc)
    target = _check_text(asker.ours.target(doc))
    prompt = _write_prompt(asker, doc, shots, question)
    return AskedDocument((LogLikelihood(prompt, target),), target, (), target, question)


def _ask_letter(asker: Asker, doc: Doc, shots: Sequence[Turn]) -> AskedDocument:
    read = asker.ours
    choices = check_choices(read.choices(doc)) if read.choices is not None else ()
    given = read.text(doc), choices, read.target(doc), asker.delimiters[0]
    shown = letter_document(*given, several=asker.several_inputs)
    asked = Generate(_write_prompt(asker, doc, shots, shown.question), offer_letters(asker.generation, shown.choices))
    return AskedDocument((asked,), shown.gold, shown.choices, freeze_value(shown.gold), shown.question)


def _ask_generation(asker: Asker, doc: Doc, shots: Sequence[Turn]) -> AskedDocument:
    if asker.letters:
        return _ask_letter(asker, doc, shots)
    question = asker.ours.text(doc)
    prompt = _write_prompt(asker, doc, shots, question)
    choices = check_choices(asker.ours.choices(doc)) if asker.ours.choices is not None else ()
    target = asker.ours.target(doc)
    return AskedDocument(
        (Generate(prompt, asker.generation),),
        convert_gold(asker.golds(target)),
        choices,
        freeze_value(target),
        question,
    )


def _ask_choices(asker: Asker, doc: Doc, shots: Sequence[Turn]) -> AskedDocument:
    read, before = asker.ours, asker.continuation
    question = read.text(doc)
    if read.choices is None:
        raise EvalError("expected doc_to_choice for output_type multiple_choice, got none")
    choices = check_choices(read.choices(doc))
    target = read.target(doc)
    target = int(target) if isinstance(target, bool) else target  # an index, as for Python and so for lm-eval
    ends = [before + choice for choice in choices]
    if asker.several_inputs:
        prompts = [_write_prompt(asker, doc, shots, one, "") for one in choices]
        asked = [LogLikelihood(prompt, f"{before}{target}") for prompt in prompts]
    else:
        prompt = _write_prompt(asker, doc, shots, question)
        asked = [LogLikelihood(prompt, end) for end in ends]
    if asker.mutual:
        asked += [LogLikelihood("", end) for end in ends]
    gold = read_index(question if asker.several_inputs else target, choices)
    return AskedDocument(tuple(asked), gold, choices, freeze_value(target), question)


FORMS: dict[str, Callable[[Asker, Doc, Sequence[Turn]], AskedDocument]] = {
    LOGLIKELIHOOD: _ask_likelihood,
    LOGLIKELIHOOD_ROLLING: _ask_rolling,
    MULTIPLE_CHOICE: _ask_choices,
    GENERATE_UNTIL: _ask_generation,
}


# --- parts -----------------------------------------------------------------------------------------------------


def _write_prompt(asker: Asker, doc: Doc, shots: Sequence[Turn], question: object, delimiter: str | None = None) -> str:
    target, between = asker.delimiters
    system = join_texts(asker.system, _check_prefix(asker.description(doc)), between)
    prefix = _check_prefix(asker.ours.prefix(doc))
    asked = question_turns(question, prefix, target if delimiter is None else delimiter)
    turns = (Turn("system", system), *shots, *asked) if system else (*shots, *asked)
    return write_prompt(turns, asker.chat, multiturn=asker.multiturn, open_turn=not prefix)


def _check_prefix(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise EvalError(f"expected a description or gen_prefix as text, got {value!r}")
    return value


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise EvalError(f"doc_to_target: expected a text, got {value!r}")
    return value
