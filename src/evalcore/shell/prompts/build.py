"""A task's config and documents to what is asked and what it is scored by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

from msgspec.structs import replace

from evalcore.core.answers.table import request_table
from evalcore.core.lm_eval.target import choose_golds
from evalcore.core.lm_eval.task_config import repeats_of, task_from_config
from evalcore.core.records.document import select_docs
from evalcore.core.records.errors import EvalError, locate, located, place
from evalcore.core.records.frozen_dict import freeze_dict
from evalcore.core.records.request import GENERATE_UNTIL, LOGLIKELIHOOD_ROLLING, Request, Sample
from evalcore.core.records.task import Task
from evalcore.core.tables import known_metrics
from evalcore.shell.prompts.asker import Asker, ask_document, make_asker, write_example
from evalcore.shell.prompts.clusters import read_cluster
from evalcore.shell.prompts.documents import (
    DocTable,
    encode_doc,
    may_leak,
    read_eval_table,
    read_shot_docs,
    share_documents,
)
from evalcore.shell.prompts.fewshot import choose_examples, draw_shots
from evalcore.shell.prompts.fields import hold_plain_text
from evalcore.shell.prompts.letters import ask_by_letter, warn_of_letters
from evalcore.shell.prompts.mistakes import find_mistakes
from evalcore.shell.prompts.overrides import fill_config, override_settings, select_scoring
from evalcore.shell.prompts.ready_task import Asking, Built
from evalcore.shell.prompts.settings import TaskSettings, decode_settings
from evalcore.shell.prompts.templates.compile import Doc
from evalcore.shell.prompts.turns import Turn, write_text

CALLED = ("doc_to_text", "doc_to_target", "doc_to_choice")


def build_task(config: Mapping[str, object], splits: Mapping[str, Sequence[Doc]], asking: Asking) -> Built:
    """Build all that a run asks for a task: the same requests, character by character, as lm-eval 0.4.13.

    >>> config = {"task": "sums", "test_split": "test", "doc_to_text": "{{a}} + 1 =", "doc_to_target": "sum"}
    >>> built = build_task(config, {"test": [{"a": 1, "sum": "2"}]}, Asking())
    >>> built.requests[0].prompt, built.samples[0].gold
    ('1 + 1 =', '2')
    """
    settings, task = settle_task(config, asking)
    with located(place(settings.task)):
        table = read_eval_table(settings, splits)
        asker = _make_asker(settings, table, asking, _asks_alone(task))
        built = _assemble_task(settings, task, table, asker, splits, asking)
        return replace(built, warnings=(*warn_of_letters(config, settings), *built.warnings))


def settle_task(config: Mapping[str, object], asking: Asking) -> tuple[TaskSettings, Task]:
    """Settle all of a task that needs no document: its settings in a run, and what it is scored by."""
    asked = ask_by_letter(decode_settings(config), asking.multiple_choice_by)
    settings = override_settings(asked, asking)
    settings = replace(settings, cluster=asking.cluster or settings.cluster)
    _refuse_unsupported(settings)
    with located(place(settings.task)):
        return settings, _default_version(task_from_config(select_scoring(settings)))


def _assemble_task(
    settings: TaskSettings,
    task: Task,
    table: DocTable,
    asker: Asker,
    splits: Mapping[str, Sequence[Doc]],
    asking: Asking,
) -> Built:
    chosen = _choose_docs(len(table.docs), asking)
    if not chosen:
        raise EvalError("expected at least one document to ask about, got none")
    shots = _make_shots(settings, asker, splits, asking)
    cluster = None if settings.cluster is None else read_cluster(settings.cluster, table.columns)
    own_code = any(callable(getattr(settings, key)) for key in CALLED)
    requests: list[Request] = []
    docs: list[int] = []
    idxs: list[int] = []
    samples: list[Sample] = []
    questions: list[object] = []
    targets: list[object] = []
    leaks: list[int] = []
    for doc_id in chosen:
        doc = table.docs[doc_id]
        try:
            encoded = encode_doc(doc)
            unit = cluster(doc) if cluster is not None else None
            examples, leaked = shots(doc, encoded)
            asked = ask_document(asker, deepcopy(doc) if own_code else doc, examples)
        except Exception as raised:
            raise locate(raised, place(settings.task, doc_id)) from raised
        requests += asked.requests
        docs += [doc_id] * len(asked.requests)
        idxs += range(len(asked.requests))
        samples.append(Sample(doc_id, asked.gold, asked.choices, encoded, None, unit))
        questions.append(asked.question)
        targets.append(asked.target)
        if leaked:
            leaks.append(doc_id)
    gold_of = None if own_code else lambda doc: ask_document(asker, doc, ()).gold
    mistakes = find_mistakes(settings, samples, questions, targets, table.docs, gold_of, leaks)
    return Built(
        task,
        request_table(settings.task, docs, idxs, repeats_of(select_scoring(settings))),
        requests,
        tuple(samples),
        freeze_dict(fill_config(settings)),
        (*_warn_of_settings(settings, asking), *_warn_of_targets(settings, samples, targets, asking), *mistakes),
        tuple(targets),
        len(table.docs),
    )


def _default_version(task: Task) -> Task:
    """Give a task without a version lm-eval's word for that."""
    return task if task.version is not None else replace(task, version="Yaml")


def _refuse_unsupported(settings: TaskSettings) -> None:
    where = place(settings.task)
    if settings.use_prompt is not None:
        raise EvalError(f"use_prompt needs promptsource, which evalcore does not run; write doc_to_text instead{where}")
    for key in ("doc_to_image", "doc_to_audio"):
        if getattr(settings, key) is not None:
            raise EvalError(f"this task has {key}; evalcore asks with text only{where}")


def _asks_alone(task: Task) -> bool:
    """Whether a metric needs every choice without its context as well."""
    known = known_metrics(task.output_type)
    lists = (task.metrics, *(pipeline.metrics or () for pipeline in task.filters))
    return any(spec.name in known and known[spec.name].unconditional for metrics in lists for spec in metrics)


def _make_asker(settings: TaskSettings, table: DocTable, asking: Asking, mutual: bool) -> Asker:
    """Make the asker of these documents: the first says whether there are several inputs, as in lm-eval, and all say
    whether targets are lists.
    """
    generates = settings.output_type == GENERATE_UNTIL and not asking.as_host
    texts = generates and hold_plain_text(settings.doc_to_target, table.columns, table.docs)
    asker = make_asker(settings, table.columns, asking, mutual, texts=texts)
    if not table.docs or settings.output_type == LOGLIKELIHOOD_ROLLING:
        return asker
    doc = deepcopy(table.docs[0])
    try:
        text, target = asker.ours.text(doc), asker.ours.target(doc)
    except EvalError as wrong:
        raise locate(wrong, place(settings.task, 0)) from wrong
    chosen = asker.ours.choices is not None
    golds = choose_golds(target, choices=chosen, as_host=asking.as_host)
    return replace(asker, several_inputs=isinstance(text, int) and chosen, golds=golds)


def _choose_docs(count: int, asking: Asking) -> Sequence[int]:
    """Choose documents by number: those that are named, or the first ones under a limit."""
    if not asking.samples:
        return select_docs(count, asking.limit)
    if asking.limit is not None:
        raise EvalError("expected a limit or samples, got both")
    wrong = next((i for i in asking.samples if not 0 <= i < count), None)
    if wrong is not None:
        raise EvalError(f"expected samples between 0 and {count - 1}, got {wrong}")
    return sorted(set(asking.samples))


def _make_shots(
    settings: TaskSettings, asker: Asker, splits: Mapping[str, Sequence[Doc]], asking: Asking
) -> Callable[[Doc, bytes], tuple[Sequence[Turn], bool]]:
    """Make the function that gives a document, also encoded, its examples, and whether it is among them. Each example
    is written once however often it is drawn.
    """
    if not settings.num_fewshot or settings.output_type == LOGLIKELIHOOD_ROLLING:
        return lambda doc, encoded: ((), False)
    whole = read_shot_docs(settings, splits)
    pool = whole if asking.as_host else choose_examples(settings, whole)
    draw = draw_shots(settings, pool, asking.seed, shared=share_documents(settings, splits))
    watched = may_leak(settings)
    written: dict[int, tuple[tuple[Turn, ...], bytes | None]] = {}
    kept: list[Doc] = list(pool)  # an object keeps its id while it is alive

    def write(example: Doc) -> tuple[tuple[Turn, ...], bytes | None]:
        known = written.get(id(example))
        if known is None:
            kept.append(example)
            turns = _write_shot(asker, example, whole)
            if asker.chat is None:  # one text
                turns = (Turn("user", write_text(turns)),)
            known = written[id(example)] = turns, encode_doc(example) if watched else None
        return known

    def shots(doc: Doc, encoded: bytes) -> tuple[Sequence[Turn], bool]:
        given = [write(example) for example in draw(doc)]
        return [turn for turns, _ in given for turn in turns], watched and any(own == encoded for _, own in given)

    return shots


def _write_shot(asker: Asker, example: Doc, pool: Sequence[Doc]) -> tuple[Turn, ...]:
    try:
        return write_example(asker, deepcopy(example))  # a copy: the document may be asked about later
    except EvalError as wrong:
        number = next((i for i, one in enumerate(pool) if one is example), "")
        raise EvalError(f"few-shot example {number}: {wrong}") from wrong


def _warn_of_settings(settings: TaskSettings, asking: Asking) -> tuple[str, ...]:
    out: list[str] = []
    if settings.num_fewshot and settings.fewshot_config.fewshot_indices is not None:
        used = "is not used, as in" if asking.as_host else "chooses the examples; it has no effect in"
        out.append(f"fewshot_indices {used} lm-eval 0.4.13 (E51){place(settings.task)}")
    if (
        settings.num_fewshot
        and settings.fewshot_config.split is not None
        and settings.fewshot_config.samples is not None
    ):
        out.append(f"fewshot_config has a split and samples: the split counts{place(settings.task)}")
    return tuple(out)


def _warn_of_targets(
    settings: TaskSettings, samples: Sequence[Sample], targets: Sequence[object], asking: Asking
) -> tuple[str, ...]:
    """Warn of targets that are lists in some documents and texts in others."""
    kinds = {isinstance(target, list | tuple) for target in targets}
    if len(kinds) < 2 or settings.output_type != GENERATE_UNTIL:
        return ()
    read = "the first decides for all" if asking.as_host else "each counts as it is"
    first = samples[[isinstance(target, list | tuple) for target in targets].index(True)].doc_id
    return (
        f"doc_to_target gives a list for some documents (the first: {first}) and a text for others: {read}; lm-eval "
        f"0.4.13 splits such texts into characters, or takes the list as a text (E53){place(settings.task)}",
    )
