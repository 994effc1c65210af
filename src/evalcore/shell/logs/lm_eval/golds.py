"""The gold answers and choices of logged documents, from what the log and the task's config say of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, Gold, LogLikelihood, OutputType, Request

Config = Mapping[str, object]
Doc = dict[str, object]
Read = Callable[[Doc], object]

CODE = re.compile(r"\s*(def\s|@|lambda\b|<|functools\.|class\s)")
"""How functions begin where a log has their source in place of a field or a template."""

LOOP = re.compile(r"\{%[-+]?\s*(for|macro|call|include|import|from|extends)\b")
"""What may make a template of a log take for ever; the golds that are read here need none of it."""


class Targets(Struct, frozen=True):
    """What is to be known of a task to read its targets, which logs hold as text.

    ``kind`` is the type of its targets (None if unknown), ``before`` what stands between a prompt and a choice.
    ``lists`` is whether, if the type is unknown, the text of a generation that is written as a list is several targets.
    ``choices`` and ``picked`` read the choices and, of several inputs, the number of the right one from a document.
    """

    output_type: OutputType
    kind: type | None = None
    before: str = " "
    choices: Read | None = None
    picked: Read | None = None
    lists: bool = True


def learn_targets(output_type: OutputType, config: Config, doc: Doc, requests: Sequence[Request] = ()) -> Targets:
    """How a task's targets are to be read, from its config and its first document. Code is never run.

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


def choices_of(targets: Targets, requests: Sequence[Request], replies: int, doc: Callable[[], Doc]) -> tuple[str, ...]:
    """The choices of a document: the ends of its requests, or what its config says, or none if the log does not tell.

    >>> asked = [LogLikelihood("Q", " yes"), LogLikelihood("Q", " no")]
    >>> choices_of(Targets(MULTIPLE_CHOICE), asked, 2, dict)
    ('yes', 'no')
    """
    if targets.output_type == GENERATE_UNTIL:
        return _listed(targets, doc) if targets.choices is not None else ()
    if targets.output_type != MULTIPLE_CHOICE:
        return ()
    if len(requests) < replies or _are_inputs(requests):  # one request of several, or several inputs with one end
        return _listed(targets, doc)
    before = targets.before
    return tuple([one.continuation.removeprefix(before) for one in _once(requests) if isinstance(one, LogLikelihood)])


def resolve_gold(targets: Targets, target: object, choices: Sequence[str]) -> Gold:
    """A logged target as scoring takes it: the index of a choice, a text, or several of either.

    A text is the choice that it equals, else an index if it is a number below their count, unless targets are known to
    be indices. One that is written as a list, and equals no choice, is several choices. A text of a generation that
    looks like a list of numbers may be meant as it is written.

    >>> plain = Targets(MULTIPLE_CHOICE)
    >>> [resolve_gold(plain, one, ("no", "yes")) for one in (1, "1", "yes", " yes", "[0, 1]", "maybe")]
    [1, 1, 1, 1, (0, 1), 'maybe']
    >>> [resolve_gold(plain, one, ("10", "2", "1")) for one in ("2", "10", "1", 2)]
    [1, 0, 2, 2]
    >>> resolve_gold(Targets(GENERATE_UNTIL), "[1, 2]", ()), resolve_gold(Targets(GENERATE_UNTIL), 4, ())
    (('1', '2', '[1, 2]'), '4')
    """
    choosing = targets.output_type == MULTIPLE_CHOICE
    if choosing and isinstance(target, str) and target[:1] != "[":
        return _chosen(target, choices, texts_first=targets.kind in (None, str))
    several = _several(target) if _may_split(targets, target, choices) else None
    if several is not None:
        golds = [resolve_gold(targets, one, choices) for one in several]
        whole = [one for one in golds if type(one) is int]
        if golds and len(whole) == len(golds):
            return tuple(whole)
        plain = targets.kind is None and targets.output_type == GENERATE_UNTIL
        literal = plain and isinstance(target, str) and type(several[0]) is int
        return (*map(str, golds), str(target)) if literal else tuple(map(str, golds))
    if not isinstance(target, (str, int)) or target is True or target is False:
        return None if target is None else int(target) if isinstance(target, bool) else str(target)
    if targets.output_type == GENERATE_UNTIL:
        return int(target) if choices and _is_index(target) and targets.kind is not str else str(target)
    if not choosing or isinstance(target, int):
        return target if choosing else str(target)
    return _chosen(target, choices, texts_first=targets.kind in (None, str))


def gold_by_score(values: Sequence[float], acc: object) -> int | None:
    """The gold of two choices, which a logged accuracy leaves no doubt about.

    Of more than two it would only tell where the answer was right, and so flatter the rest of the log.

    >>> gold_by_score([-2.0, -1.0], 1.0), gold_by_score([-2.0, -1.0], 0.0), gold_by_score([-2.0, -1.0, -3.0], 1)
    (1, 0, None)
    """
    if len(values) != 2 or acc not in (0, 1):
        return None
    best = 0 if values[0] >= values[1] else 1  # in a tie the first wins, as in lm-eval
    return best if acc == 1 else 1 - best


def readings(target: str, choices: Sequence[str]) -> tuple[int | None, int | None]:
    """The choice that a text is as the number of one, and as the text of one; None where it is not.

    >>> [readings(one, ("no", "yes", "1")) for one in ("0", "no", "1", "maybe")]
    [(0, None), (None, 0), (1, 2), (None, None)]
    """
    return _index(target, choices), _place(target, choices)


def is_list(target: str) -> bool:
    """Whether a text is what Python makes of a list of texts or of integers.

    >>> is_list("['a', 'b']"), is_list("[1, 'a']"), is_list("a")
    (True, False, False)
    """
    return _several(target) is not None


def is_within(target: str, choices: Sequence[str]) -> bool:
    """Whether a text may be that of a choice: most targets are not, which one look at all of them together tells.

    >>> is_within("2", ("12", "x")), is_within(" 2 ", ("2", "x")), is_within("3", ("2", "x"))
    (True, True, False)
    """
    return target.strip() in "".join(choices)


# --- targets --------------------------------------------------------------------------------------------------------


def _may_split(targets: Targets, target: object, choices: Sequence[str]) -> bool:
    """Whether a target that is written as a list is several ones."""
    if targets.output_type != MULTIPLE_CHOICE or targets.kind in (list, str):
        return targets.kind is list or (targets.kind is None and (targets.lists or not isinstance(target, str)))
    return not isinstance(target, str) or (target[:1] == "[" and _place(target, choices) is None)


def _several(target: object) -> Sequence[object] | None:
    """Several targets: a list, or the text that Python makes of one."""
    if isinstance(target, list | tuple):
        return target
    if not isinstance(target, str) or target[:1] != "[" or target[-1:] != "]" or len(target) > 1 << 20:
        return None
    try:
        found = ast.literal_eval(target)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
        return None
    plain = isinstance(found, list) and found and {type(one) for one in found} in ({str}, {int})
    return found if plain else None


def _is_index(target: object) -> bool:
    return isinstance(target, int) or (
        isinstance(target, str) and target.isascii() and target.isdigit() and len(target) < 10
    )


def _chosen(target: str, choices: Sequence[str], *, texts_first: bool) -> int | str:
    """The choice that a text is by its own text or by its number; itself where it is neither."""
    index = _index(target, choices)
    if index is not None and not texts_first:
        return index
    place = _place(target, choices)
    return place if place is not None else target if index is None else index


def _index(target: str, choices: Sequence[str]) -> int | None:
    if not target.isdigit() or not target.isascii() or len(target) > 9:
        return None
    found = int(target)
    return found if found < len(choices) else None


def _place(target: str, choices: Sequence[str]) -> int | None:
    if target in choices:
        return choices.index(target)
    if not is_within(target, choices):
        return None
    stripped = [one.strip() for one in choices]
    return stripped.index(target.strip()) if stripped.count(target.strip()) == 1 else None


# --- choices --------------------------------------------------------------------------------------------------------


def _once(requests: Sequence[Request]) -> Sequence[Request]:
    """The requests with a question: for acc_mutual_info they are asked again without."""
    first, last = requests[0], requests[-1]
    again = isinstance(first, LogLikelihood) and first.context and isinstance(last, LogLikelihood) and not last.context
    return requests[: len(requests) // 2] if again else requests


def _ends(requests: Sequence[Request]) -> list[str]:
    return [one.continuation for one in _once(requests) if isinstance(one, LogLikelihood)]


def _are_inputs(requests: Sequence[Request]) -> bool:
    """Whether choices are asked as several inputs with one and the same end, as in winogrande."""
    first, last = requests[0], requests[-1]
    if not isinstance(first, LogLikelihood) or not isinstance(last, LogLikelihood):
        return False
    return first.continuation == last.continuation and first.context != last.context and len(set(_ends(requests))) == 1


def _before(requests: Sequence[Request], listed: Sequence[str], config: Config) -> str:
    """What stands before every choice: learnt where the config lists them, else its delimiter, if they all have it."""
    ends = _ends(requests) if requests else []
    if listed and ends and ends[0].endswith(listed[0]):
        return ends[0].removesuffix(listed[0])
    given = config.get("target_delimiter", " ")
    return given if isinstance(given, str) and all(end.startswith(given) for end in ends) else ""


def _listed(targets: Targets, doc: Callable[[], Doc]) -> tuple[str, ...]:
    found = _read(targets.choices, doc()) if targets.choices is not None else None
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def _reading(config: Config, key: str, doc: Doc) -> Read | None:
    """A reading of the config, None where it is code or nothing."""
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
    """What a config says of a document, None if it says nothing that can be used."""
    try:
        return None if read is None else read(doc)
    except EvalError:
        return None
