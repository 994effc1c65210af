"""Mistakes in a task that show before a model is asked: typos, and documents that cannot be scored."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import chain

from msgspec.structs import replace

from evalcore.core.answers.choice import find_gold_indices
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.request import CHOOSE, GENERATE_UNTIL, LOGLIKELIHOOD_ROLLING, Gold, Sample
from evalcore.shell.prompts.documents import name_asked_split
from evalcore.shell.prompts.fields import is_null
from evalcore.shell.prompts.letters import list_letters
from evalcore.shell.prompts.settings import TaskSettings
from evalcore.shell.prompts.templates.compile import Doc

READ = ("doc_to_text", "doc_to_target", "doc_to_choice")
BARE = re.compile(r"\w[\w .-]{0,60}")
"""What may be meant as a column: words without the marks of a text."""
INDEX = re.compile(r"\s*(\{\{)?\s*-?\d+\s*(\}\})?\s*")
METHOD = re.compile(r"<(built-in |bound )?(method|function) ")
"""The text that a template writes for ``{{answer.strip}}``, where ``{{answer.strip()}}`` is meant."""
CLOSE = 0.75
LOOKED_AT = 100
SHOWN = 60

GENERATION = frozenset(
    {
        CHOOSE,
        # lm-eval's
        *("until", "max_gen_toks", "do_sample", "temperature", "top_p", "top_k", "min_p", "seed"),
        # OpenAI's
        *("max_tokens", "max_completion_tokens", "stop", "n", "best_of", "logit_bias", "logprobs", "top_logprobs"),
        *("presence_penalty", "frequency_penalty", "response_format", "reasoning_effort", "verbosity", "user"),
        *("service_tier", "tools", "tool_choice", "parallel_tool_calls", "extra_body", "store"),
        # transformers'
        *("max_new_tokens", "min_new_tokens", "max_length", "min_length", "num_beams", "num_beam_groups"),
        *("early_stopping", "length_penalty", "repetition_penalty", "encoder_repetition_penalty"),
        *("diversity_penalty", "no_repeat_ngram_size", "typical_p", "penalty_alpha", "num_return_sequences"),
        *("pad_token_id", "bos_token_id", "eos_token_id", "use_cache", "epsilon_cutoff", "eta_cutoff"),
        *("stop_strings", "stop_sequences", "guidance_scale", "suppress_tokens", "bad_words_ids"),
        # vLLM's, SGLang's and llama.cpp's
        *("min_tokens", "ignore_eos", "skip_special_tokens", "spaces_between_special_tokens", "stop_token_ids"),
        *("include_stop_str_in_output", "truncate_prompt_tokens", "prompt_logprobs", "guided_json", "guided_regex"),
        *("guided_choice", "guided_grammar", "structured_outputs", "chat_template_kwargs", "add_generation_prompt"),
        *("continue_final_message", "bad_words", "allowed_token_ids", "regex", "ebnf", "json_schema", "grammar"),
        *("separate_reasoning", "cache_prompt", "mirostat", "mirostat_tau", "mirostat_eta", "tfs_z"),
        *("repeat_penalty", "repeat_last_n", "n_predict", "enable_thinking", "thinking", "think_end_token"),
    }
)
"""Generation arguments that some model or server knows. Others are passed on as well."""


def refuse_typos(settings: TaskSettings, columns: Collection[str]) -> None:
    """Refuse a bare word that nearly names a column: it would be the same text for every document.

    >>> refuse_typos(TaskSettings(task="t", doc_to_target="anser"), ["question", "answer"])
    Traceback (most recent call last):
    evalcore.EvalError: doc_to_target: no column 'anser'; did you mean 'answer'? Columns: ... - at t
    """
    shots = settings.fewshot_config
    rolling = settings.output_type == LOGLIKELIHOOD_ROLLING  # which asks about the target alone
    given = [(key, getattr(settings, key)) for key in (READ if not rolling else ("doc_to_target",))]
    given += [(f"fewshot_config.{key}", getattr(shots, key)) for key in READ] if settings.num_fewshot else []
    examples = {str(name) for doc in shots.samples for name in doc} if isinstance(shots.samples, tuple) else set()
    for key, text in given:
        if not isinstance(text, str) or text in columns or _is_text(text.strip(), settings):
            continue
        word = text.strip()
        if key.startswith("fewshot") and word in examples:
            message = f"{key}: {word!r} is a column of the examples alone; write {{{{{word}}}}}"
            raise EvalError(message + place(settings.task))
        if word in columns:
            raise EvalError(f"{key}: no column {text!r}; remove the blanks around {word!r}{place(settings.task)}")
        near = _find_nearest(word, columns)
        if near is not None:
            known = ", ".join(map(str, columns))
            raise EvalError(
                f"{key}: no column {word!r}; did you mean {near!r}? Columns: {known}; "
                f"for this very text, write {{{{{word!r}}}}}{place(settings.task)}"
            )


def _is_text(word: str, settings: TaskSettings) -> bool:
    """Whether a word cannot be meant as a column: it has marks, or is the number or the text of a choice."""
    choices = settings.doc_to_choice
    listed = (
        word in choices if isinstance(choices, tuple) else re.search(f"""['"]{re.escape(word)}['"]""", str(choices))
    )
    return BARE.fullmatch(word) is None or INDEX.fullmatch(word) is not None or bool(listed)


def _find_nearest(word: str, columns: Collection[str]) -> str | None:
    """Find the column that a word may misspell; several words never misspell a single one.

    >>> _find_nearest("anser", ["question", "answer"]), _find_nearest("the answer", ["answer"])
    ('answer', None)
    """
    folded = {str(name).casefold(): str(name) for name in columns if " " in str(name) or " " not in word}
    near = get_close_matches(word.casefold(), folded, n=1, cutoff=CLOSE)
    return folded[near[0]] if near else None


def find_mistakes(
    settings: TaskSettings,
    samples: Sequence[Sample],
    questions: Sequence[object],
    targets: Sequence[object],
    docs: Sequence[Doc],
    gold_of: Callable[[Doc], Gold] | None,
    leaks: Sequence[int] = (),
) -> tuple[str, ...]:
    """Warn of documents without a gold, with a gold that is no choice, given twice, among their own examples, or all
    with the same question or gold; of choices that are names of columns, methods that are not called, and unknown
    generation arguments.

    ``docs`` are all documents of the task, by number; ``gold_of`` reads those that are not asked about; None if that
    would run the user's code. ``leaks`` numbers the documents that are among their own examples.
    """
    lost = list(_find_no_gold(settings, samples, targets, docs))
    mistakes = chain(
        _find_same_question(settings, samples, questions),
        lost or _find_same_gold(settings, samples, docs, gold_of),
        _find_no_choice(settings, samples),
        _find_column_choices(settings, docs),
        _find_uncalled(questions[0], targets[0]),
        _find_copies(samples),
        _find_leaks(settings, samples, leaks),
        _find_unknown_arguments(settings),
    )
    return tuple(text + place(settings.task) for text in mistakes)


Mistakes = Iterable[str]


def _find_same_question(settings: TaskSettings, samples: Sequence[Sample], questions: Sequence[object]) -> Mistakes:
    """Warn of one question for all. An empty question before different choices or targets is meant: whole texts
    are compared.
    """
    first = questions[0]
    if len(questions) < 2 or not isinstance(first, str) or any(one != first for one in questions):
        return
    likely = settings.output_type != GENERATE_UNTIL and settings.doc_to_text == ""
    whole = likely and len({one.choices or one.gold for one in samples}) > 1
    if settings.output_type != LOGLIKELIHOOD_ROLLING and not whole:
        yield f"all {len(questions):,} documents ask the same, {_shorten(first)}: is doc_to_text right?"


def _find_same_gold(
    settings: TaskSettings, samples: Sequence[Sample], docs: Sequence[Doc], gold_of: Callable[[Doc], Gold] | None
) -> Mistakes:
    """Warn of one gold for all. A constant number or list may well be that, and ``process_results`` may ignore golds.

    Under a limit, documents that are not asked about count, too: two golds may be the same by chance.
    """
    first, given = samples[0].gold, settings.doc_to_target
    if settings.process_results is not None or settings.output_type == LOGLIKELIHOOD_ROLLING or first is None:
        return
    declared = INDEX.fullmatch(given) is not None if isinstance(given, str) else not callable(given)
    if declared or any(one.gold != first for one in samples):
        return
    asked = {one.doc_id for one in samples}
    others = [doc for at, doc in enumerate(docs) if at not in asked]
    others = others[:: -(-len(others) // LOOKED_AT) or 1]  # spread over all documents: data may be sorted by gold
    try:
        differs = bool(others) and (gold_of is None or any(gold_of(doc) != first for doc in others))
    except Exception:  # documents that are not asked about may be wrong
        differs = True
    if len(docs) > 1 and not differs:
        yield f"all {len(samples):,} documents have the same gold, {_shorten(first)}: is doc_to_target right?"


def _find_no_choice(settings: TaskSettings, samples: Sequence[Sample]) -> Mistakes:
    lettered = settings.multiple_choice_by is not None
    used = lettered or (settings.output_type != GENERATE_UNTIL and settings.process_results is None)
    asked = [one for one in samples if one.choices] if used else []
    shown = [replace(one, choices=list_letters(one.choices)) if lettered else one for one in asked]
    wrong = {one.doc_id: one.gold for one in shown if isinstance(find_gold_indices(one, len(one.choices)), str)}
    found = f", {_shorten(next(iter(wrong.values())))}" if wrong else ""
    return _count_docs([*wrong], len(samples), "have a gold that is none of their choices", found)


def _find_column_choices(settings: TaskSettings, docs: Sequence[Doc]) -> Mistakes:
    """Warn of names of columns listed as texts; single letters are often both, and meant as texts."""
    given = settings.doc_to_choice
    if isinstance(given, tuple) and any(len(str(one)) > 1 for one in given) and all(one in docs[0] for one in given):
        meant = f"{{{{[{', '.join(map(str, given))}]}}}}"
        yield f"doc_to_choice lists names of columns as texts; for what the columns hold, write {meant}"


def _find_uncalled(question: object, target: object) -> Mistakes:
    """Warn of methods that are not called. The first document suffices: a template has the same mistake for all."""
    for key, text in (("doc_to_text", question), ("doc_to_target", target)):
        if isinstance(text, str) and METHOD.search(text):
            yield f"{key} writes out a method instead of calling it, {_shorten(text)}: are brackets missing?"


def _find_no_gold(
    settings: TaskSettings, samples: Sequence[Sample], targets: Sequence[object], docs: Sequence[Doc]
) -> Mistakes:
    """Warn of documents without a gold: replies are scored against the text "None", as in lm-eval."""
    if settings.output_type != GENERATE_UNTIL or settings.process_results is not None:
        return ()
    numbers = [one.doc_id for one in samples]
    pairs = zip(numbers, targets, strict=True)
    lost = [doc_id for doc_id, target in pairs if is_null(settings.doc_to_target, target, docs[doc_id])]
    return _count_docs(lost, len(numbers), "have no gold (null)")


def _find_copies(samples: Sequence[Sample]) -> Mistakes:
    first = {one.doc: one.doc_id for one in reversed(samples)}
    again = [one.doc_id for one in samples if first[one.doc] != one.doc_id]
    return _count_docs(again, len(samples), "are copies of an earlier one")


def _find_leaks(settings: TaskSettings, samples: Sequence[Sample], leaks: Sequence[int]) -> Mistakes:
    """Warn of prompts that hold their own answer. Where ``fewshot_split`` is ``test_split``, a document is left out of
    its examples: the one that is missing is named.
    """
    key = "test_split" if settings.test_split is None else "fewshot_split"
    advice = f"; to leave them out, write {key}: {name_asked_split(settings)}"
    return _count_docs(leaks, len(samples), "are among their own examples, answer included", advice)


def _find_unknown_arguments(settings: TaskSettings) -> Mistakes:
    if settings.output_type != GENERATE_UNTIL:
        return
    for name in settings.generation_kwargs or ():
        if name not in GENERATION:
            near = get_close_matches(name, sorted(GENERATION), n=1, cutoff=CLOSE)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            yield f"unknown generation argument {name!r}{hint} It is passed on as it is"


def _count_docs(numbers: Sequence[int], of: int, what: str, then: str = "") -> Mistakes:
    return [f"{len(numbers):,} of {of:,} documents {what}; the first: doc {numbers[0]}{then}"] if numbers else []


def _shorten(value: object) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)  # as the task has it
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
