"""How the targets of a task are read: learnt from its config and first document, settled by all rows of its log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, Gold, LogLikelihood, OutputType, Request
from evalcore.shell.logs.lm_eval.golds import Doc, Read, Targets, is_list, is_within, read_both_ways, resolve_gold

Config = Mapping[str, object]

CODE = re.compile(r"\s*(def\s|@|lambda\b|<|functools\.|class\s)")
"""How functions begin whose source a log has in place of a field or a template."""

LOOP = re.compile(r"\{%[-+]?\s*(for|macro|call|include|import|from|extends)\b")
"""Statements that may keep a template from ending; the golds read here need none of them."""


def learn_targets(output_type: OutputType, config: Config, doc: Doc, requests: Sequence[Request] = ()) -> Targets:
    """Learn how to read a task's targets from its config and its first document. Code is never run.

    >>> config = {"doc_to_target": "gold", "doc_to_choice": ["no", "yes"]}
    >>> found = learn_targets(MULTIPLE_CHOICE, config, {"gold": 1}, [LogLikelihood("Q", ": no")])
    >>> found.kind, found.before
    (<class 'int'>, ': ')
    """
    target, choices = _reading(config, "doc_to_target", doc), _reading(config, "doc_to_choice", doc)
    shown = _read(choices, doc)
    listed = [one for one in shown if isinstance(one, str)] if isinstance(shown, list | tuple) else []
    kind = type(_read(target, doc)) if target is not None else None
    if output_type == GENERATE_UNTIL:
        return Targets(output_type, kind, "", choices)
    if output_type != MULTIPLE_CHOICE:
        return Targets(output_type, str)
    picked = _reading(config, "doc_to_text", doc) if _are_inputs(requests) else None
    picked = picked if isinstance(_read(picked, doc), int) else None
    return Targets(output_type, kind, _before(requests, listed, config), choices, picked)


def find_choices(
    targets: Targets, requests: Sequence[Request], replies: int, doc: Callable[[], Doc]
) -> tuple[str, ...]:
    """Find the choices of a document: the continuations of its requests, else those of its config, else none.

    >>> asked = [LogLikelihood("Q", " yes"), LogLikelihood("Q", " no")]
    >>> find_choices(Targets(MULTIPLE_CHOICE), asked, 2, dict)
    ('yes', 'no')
    """
    if targets.output_type != MULTIPLE_CHOICE:
        return _listed(targets, doc) if targets.output_type == GENERATE_UNTIL else ()
    ends = _ends(requests, targets.before)
    alike = ends and ends[0] == ends[-1]
    if len(requests) < replies or (alike and _are_inputs(requests)):  # one of several, or several inputs with one end
        return _listed(targets, doc)
    return tuple(ends)


class Told(Struct, frozen=True):
    """The target of a row as text, its choices and, on demand, the choice of the model and whether it was right.

    ``verdict`` returns None for a row without an accuracy of 0 or 1.
    """

    target: str
    choices: tuple[str, ...] = ()
    verdict: Callable[[], tuple[int, bool] | None] = lambda: None


def settle_targets(targets: Targets, rows: Iterable[Told]) -> Targets:
    """Settle how to read targets of unknown type, by all rows of their log.

    Texts of generations are lists if all are written as lists. Numbers are indices of choices or their texts, whichever
    fewer rows speak against: those that can only be the other, and those whose logged accuracy is not what would come
    of it. Where none speaks against either, they are indices if there are accuracies, else texts.

    >>> plain = Targets(MULTIPLE_CHOICE)
    >>> settle_targets(plain, [Told("2", ("2", "1", "0")), Told("1", ("2", "3", "4"))]).kind
    <class 'int'>
    >>> settle_targets(Targets("generate_until"), [Told("[1, 2]"), Told("x")]).lists
    False
    """
    if targets.output_type != MULTIPLE_CHOICE:
        return replace(targets, lists=all(is_list(one.target) for one in rows))
    index_wrong = text_wrong = judged = 0
    for one in rows:
        index, text = read_both_ways(one.target, one.choices)
        if (index is None) != (text is None):
            index_wrong, text_wrong = index_wrong + (index is None), text_wrong + (text is None)
        elif index != text and (verdict := one.verdict()) is not None:
            best, right = verdict
            index_wrong, text_wrong = index_wrong + ((best == index) != right), text_wrong + ((best == text) != right)
            judged += 1
    indices = index_wrong < text_wrong or (index_wrong == text_wrong and judged > 0)
    return replace(targets, kind=int) if indices else targets


def is_open(targets: Targets, target: object, choices: Sequence[str]) -> bool:
    """Whether a target may be read in two ways, so that the other rows of its log must decide.

    >>> [is_open(Targets(MULTIPLE_CHOICE), "1", choices) for choices in (("no", "yes"), ("0", "1"), ("1", "0"))]
    [False, False, True]
    """
    listed = isinstance(target, str) and target[:1] == "["
    if targets.kind is not None or targets.output_type != MULTIPLE_CHOICE:
        return targets.kind is None and listed
    if isinstance(target, str) and not listed and not (target.isdigit() and is_within(target, choices)):
        return False  # it is only a text, or a number that no choice has
    first, other = (resolve_gold(way, target, choices) for way in _ways(targets))
    return first != other


def _ways(targets: Targets) -> tuple[Targets, ...]:
    """The ways to read targets that all rows may settle on."""
    if targets.kind is not None:
        return (targets,)
    choosing = targets.output_type == MULTIPLE_CHOICE
    return targets, replace(targets, kind=int) if choosing else replace(targets, lists=False)


# --- what evalcore writes where a text would not tell ---------------------------------------------------------------


def reads_back(targets: Targets, text: str, choices: Sequence[str], gold: Gold, *, lists: bool = False) -> bool:
    """Whether the text of a target is read as this gold: whatever other rows are like, or if they too are ``lists``.

    >>> [reads_back(Targets(MULTIPLE_CHOICE), "1", choices, 1) for choices in (("no", "yes"), ("0", "1"), ("1", "0"))]
    [True, True, False]
    >>> [reads_back(Targets("generate_until"), "['a', 'b']", (), ("a", "b"), lists=lists) for lists in (False, True)]
    [False, True]
    """
    if targets.output_type == GENERATE_UNTIL and not choices and text[:1] != "[":
        return gold == text  # most are plain texts
    ways = _ways(targets) if not lists or targets.output_type == MULTIPLE_CHOICE else (targets,)
    return all(resolve_gold(way, text, choices) == gold for way in ways)


# --- requests and configs -------------------------------------------------------------------------------------------


def _ends(requests: Sequence[Request], before: str = "") -> list[str]:
    """The continuations of requests with a context, without what is ``before`` each.

    For acc_mutual_info each is repeated without a context.
    """
    try:  # to look at each type takes as long
        if requests[0].context and not requests[-1].context:  # type: ignore[union-attr]
            requests = requests[: len(requests) // 2]
        return [one.continuation.removeprefix(before) for one in requests]  # type: ignore[union-attr]
    except AttributeError:
        return [one.continuation.removeprefix(before) for one in requests if isinstance(one, LogLikelihood)]


def _are_inputs(requests: Sequence[Request]) -> bool:
    """Whether choices are several contexts with the same continuation, as in winogrande."""
    first, last = requests[0], requests[-1]
    if not isinstance(first, LogLikelihood) or not isinstance(last, LogLikelihood):
        return False
    return first.continuation == last.continuation and first.context != last.context and len(set(_ends(requests))) == 1


def _before(requests: Sequence[Request], listed: Sequence[str], config: Config) -> str:
    """The text before every choice: learnt if the config lists choices, else the delimiter if all have it."""
    ends = _ends(requests) if requests else []
    if listed and ends and ends[0].endswith(listed[0]):
        return ends[0].removesuffix(listed[0])
    given = config.get("target_delimiter", " ")
    return given if isinstance(given, str) and all(end.startswith(given) for end in ends) else ""


def _listed(targets: Targets, doc: Callable[[], Doc]) -> tuple[str, ...]:
    if targets.choices is None:
        return ()
    found = _read(targets.choices, doc())
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def _reading(config: Config, key: str, doc: Doc) -> Read | None:
    """The reader of a config's field; None if that is code or missing."""
    given = config.get(key)
    if given is None or (isinstance(given, str) and (not given or (given not in doc and _is_code(given)))):
        return None
    from evalcore.shell.prompts.fields import read_choices, read_target, read_text  # templates take time to import

    choosing = config.get("doc_to_choice") is not None
    try:
        if key == "doc_to_choice":
            return read_choices(given, list(doc))
        made = read_text if key == "doc_to_text" else read_target
        return made(given, list(doc), choices=choosing)
    except EvalError:
        return None


def _is_code(given: str) -> bool:
    return CODE.match(given) is not None or LOOP.search(given) is not None


def _read(read: Read | None, doc: Doc) -> object:
    """What a config's field gives for a document; None if it is of no use."""
    try:
        return None if read is None else read(doc)
    except EvalError:
        return None
