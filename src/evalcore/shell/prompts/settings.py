"""A task's config as a typed record: lm-eval's fields with its defaults, and three of evalcore's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict

from evalcore.core.records.errors import EvalError, place, require_known, unknown
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD, LOGLIKELIHOOD_ROLLING, MULTIPLE_CHOICE

Function = Callable[..., object]
Plain = Mapping[str, object]


class Shots(FrozenRecord, frozen=True, kw_only=True):
    """How few-shot examples are chosen and written; the task's own settings fill in what is missing."""

    sampler: object = "default"
    split: str | None = None
    process_docs: Function | None = None
    fewshot_indices: tuple[int, ...] | None = None
    samples: tuple[Plain, ...] | Function | None = None
    doc_to_text: str | int | Function | None = None
    doc_to_choice: str | Plain | tuple[object, ...] | Function | None = None
    doc_to_target: str | int | tuple[object, ...] | Function | None = None
    gen_prefix: str | None = None
    fewshot_delimiter: str | None = None
    target_delimiter: str | None = None


class TaskSettings(FrozenRecord, frozen=True, kw_only=True):
    """lm-eval's fields of a task in its order, then ``repeat_cfg``, ``cluster`` and ``multiple_choice_by``."""

    task: str
    task_alias: str | None = None
    custom_dataset: Function | None = None
    dataset_path: str | None = None
    dataset_name: str | None = None
    dataset_kwargs: Plain | None = None
    training_split: str | None = None
    validation_split: str | None = None
    test_split: str | None = None
    fewshot_split: str | None = None
    process_docs: Function | None = None
    doc_to_text: str | int | Function | None = None
    doc_to_target: str | int | tuple[object, ...] | Function | None = None
    doc_to_image: object = None
    doc_to_audio: object = None
    unsafe_code: bool = False
    doc_to_choice: str | Plain | tuple[object, ...] | Function | None = None
    process_results: Function | str | None = None
    use_prompt: str | None = None
    description: str | None = ""
    target_delimiter: str = " "
    fewshot_delimiter: str = "\n\n"
    fewshot_config: Shots = Shots()
    num_fewshot: int | None = None
    metric_list: tuple[Plain, ...] | None = None
    output_type: str = GENERATE_UNTIL
    generation_kwargs: Plain | None = None
    repeats: int = 1
    filter_list: str | tuple[Plain, ...] | None = None
    should_decontaminate: bool = False
    doc_to_decontamination_query: str | Function | None = None
    gen_prefix: str | None = None
    metadata: Plain | None = None
    repeat_cfg: Plain | None = None
    cluster: str | None = None
    multiple_choice_by: str | None = None


class ValueKind(NamedTuple):
    """The types that a value may have, and how messages call them."""

    types: tuple[type, ...]
    words: str
    function: bool = False


TEXT = ValueKind((str,), "a text")
NAME = ValueKind((str, int, float), "a name")
FUNCTION = ValueKind((), "a function", function=True)
MAPPING = ValueKind((dict,), "a mapping")
LIST = ValueKind((list,), "a list")
WHOLE = ValueKind((int,), "an integer")
FLAG = ValueKind((bool,), "true or false")
QUESTION = ValueKind((str, int), "a column, a template, an integer or a function", function=True)
TARGET = ValueKind((str, int, list), "a column, a template, an integer, a list or a function", function=True)
CHOICES = ValueKind((str, list, dict), "a column, a template, a list, a mapping or a function", function=True)

_KEYS = (
    (TEXT, "task task_alias dataset_path training_split validation_split test_split fewshot_split split use_prompt"),
    (TEXT, "description target_delimiter fewshot_delimiter output_type gen_prefix cluster multiple_choice_by"),
    (NAME, "dataset_name"),
    (FUNCTION, "custom_dataset process_docs process_results"),
    (MAPPING, "dataset_kwargs fewshot_config generation_kwargs metadata repeat_cfg"),
    (LIST, "metric_list fewshot_indices"),
    (WHOLE, "num_fewshot repeats"),
    (FLAG, "unsafe_code should_decontaminate"),
    (QUESTION, "doc_to_text"),
    (TARGET, "doc_to_target"),
    (CHOICES, "doc_to_choice"),
    (ValueKind((str, list), "a list"), "filter_list"),
    (ValueKind((list,), "a list of documents or a function", function=True), "samples"),
)
KINDS: Mapping[str, ValueKind] = {key: kind for kind, keys in _KEYS for key in keys.split()}
OUTPUT_TYPES = (LOGLIKELIHOOD, MULTIPLE_CHOICE, LOGLIKELIHOOD_ROLLING, GENERATE_UNTIL)
STRUCTURE = ("tag", "group", "task_list", "include")
INHERITED = (
    "process_docs",
    "fewshot_delimiter",
    "target_delimiter",
    "gen_prefix",
    "doc_to_text",
    "doc_to_choice",
    "doc_to_target",
)


def decode_settings(config: Mapping[str, object]) -> TaskSettings:
    """Decode a merged config, with generation options and few-shot settings filled in as lm-eval does.

    >>> decode_settings({"task": "t", "doc_to_text": "question"}).fewshot_config.doc_to_text
    'question'
    >>> decode_settings({"task": "t", "doc_to_txt": "question"})
    Traceback (most recent call last):
    evalcore.EvalError: unknown key of a task 'doc_to_txt'; did you mean 'doc_to_text'? Known: ... - at t
    """
    name = config.get("task")
    if not isinstance(name, str) or not name:
        raise EvalError(f"expected a task with a name under the key 'task', got {name!r}")
    if "class" in config:
        raise EvalError(f"this task is a Python class, which evalcore does not run; write it as YAML{place(name)}")
    given = {key: value for key, value in config.items() if key not in STRUCTURE and not _is_default(key, value)}
    _check_keys(given, TaskSettings.__struct_fields__, "key of a task", name)
    shots = given.pop("fewshot_config", None) or {}
    if not isinstance(shots, dict):
        raise EvalError(f"expected fewshot_config to be a mapping, got {shots!r}{place(name)}")
    settings = TaskSettings(**given)  # type: ignore[arg-type]  # _check_keys has checked every value
    require_known("output_type", [settings.output_type], OUTPUT_TYPES, place(name))
    return msgspec.structs.replace(
        settings,
        generation_kwargs=_fill_generation(settings),
        fewshot_config=_fill_shots(settings, shots),
        dataset_kwargs=_drop_trust(settings.dataset_kwargs),
    )


def _is_default(key: str, value: object) -> bool:
    """Whether a value is null where null is the default, which means "not given" in lm-eval."""
    return value is None and key not in ("description",)


def _check_keys(given: Mapping[str, object], known: tuple[str, ...], what: str, task: str) -> None:
    for key, value in given.items():
        if key not in known:
            raise unknown(what, str(key), known, place(task))
        kind = KINDS.get(key)
        if kind is None or value is None or isinstance(value, kind.types) or (kind.function and callable(value)):
            continue
        raise EvalError(f"expected {key} to be {kind.words}, got {value!r}{place(task)}")


def _fill_shots(settings: TaskSettings, given: Plain) -> Shots:
    inherited = {key: value for key, value in asdict(settings).items() if key in INHERITED}
    _check_keys(given, Shots.__struct_fields__, "key of fewshot_config", settings.task)
    return Shots(**{"split": settings.fewshot_split, **inherited, **given})


def _fill_generation(settings: TaskSettings) -> Plain | None:
    """Fill in lm-eval's defaults: greedy, 256 tokens, until the delimiter of examples."""
    until = [settings.fewshot_delimiter]
    given = settings.generation_kwargs
    if given is None:
        greedy: Plain = {"temperature": 0.0, "do_sample": False, "max_gen_toks": 256, "until": until}
        return greedy if settings.output_type == GENERATE_UNTIL else None
    refuse_length(given, settings.task)
    try:
        warm = {"temperature": float(given["temperature"])} if "temperature" in given else {}  # type: ignore[arg-type]
    except (TypeError, ValueError) as wrong:
        value = given["temperature"]
        raise EvalError(f"expected temperature to be a number, got {value!r}{place(settings.task)}") from wrong
    return {**given, **warm, **({} if "until" in given else {"until": until})}


def refuse_length(generation: Plain, task: str) -> None:
    """Refuse a ``max_gen_toks`` that is no positive integer; it may be written as text, as lm-eval reads it.

    >>> refuse_length({"max_gen_toks": "32"}, "t")
    >>> refuse_length({"max_gen_toks": -5}, "t")
    Traceback (most recent call last):
    evalcore.EvalError: expected max_gen_toks to be a positive integer, got -5 - at t
    """
    value = generation.get("max_gen_toks")
    try:
        fits = value is None or (type(value) is not bool and int(value) == float(value) >= 1)  # type: ignore[call-overload, arg-type]
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise EvalError(f"expected max_gen_toks to be a positive integer, got {value!r}{place(task)}")


def _drop_trust(given: Plain | None) -> Plain | None:
    """Drop the trust in a dataset's code, which is never run; so does lm-eval with datasets 4 and later."""
    return None if given is None else {key: value for key, value in given.items() if key != "trust_remote_code"}
