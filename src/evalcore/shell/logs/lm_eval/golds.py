"""Logged targets, which are mostly text, as the golds that scoring takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE, Gold, OutputType

Doc = dict[str, object]
Read = Callable[[Doc], object]


class Targets(Struct, frozen=True):
    """What one must know of a task to read its targets, which logs hold as text.

    ``kind`` is the type of its targets (None if unknown), ``before`` the text between a prompt and a choice. ``lists``
    is whether a generation's target of unknown type that is written as a list stands for several targets. ``choices``
    and ``picked`` read the choices and, among several inputs, the index of the right one from a document.
    """

    output_type: OutputType
    kind: type | None = None
    before: str = " "
    choices: Read | None = None
    picked: Read | None = None
    lists: bool = True


def resolve_gold(targets: Targets, target: object, choices: Sequence[str]) -> Gold:
    """Resolve a logged target to the index of a choice, a text, or several of either.

    A text is the choice that it equals, else an index if it is a number below their count, unless targets are known to
    be indices. One that is written as a list, and equals no choice, is several choices. A text of a generation that
    looks like a list of numbers may be meant as it is written.

    >>> plain = Targets(MULTIPLE_CHOICE)
    >>> [resolve_gold(plain, one, ("no", "yes")) for one in (1, "1", "yes", " yes", "[0, 1]", "maybe")]
    [1, 1, 1, 1, (0, 1), 'maybe']
    >>> [resolve_gold(plain, one, ("no", "yes")) for one in ("1.0", "1.5")]
    [1, '1.5']
    >>> [resolve_gold(plain, one, ("10", "2", "1")) for one in ("2", "10", "1", 2)]
    [1, 0, 2, 2]
    >>> resolve_gold(Targets(GENERATE_UNTIL), "[1, 2]", ()), resolve_gold(Targets(GENERATE_UNTIL), 4, ())
    (('1', '2', '[1, 2]'), '4')
    """
    kind, choosing = targets.kind, targets.output_type == MULTIPLE_CHOICE
    if choosing and isinstance(target, str) and target[:1] != "[":
        return _chosen(target, choices, texts_first=kind is None or kind is str)
    several = _several(target) if _may_split(targets, target, choices) else None
    if several is not None:
        golds = [resolve_gold(targets, one, choices) for one in several]
        whole = [one for one in golds if type(one) is int]
        if golds and len(whole) == len(golds):
            return tuple(whole)
        plain = kind is None and targets.output_type == GENERATE_UNTIL
        literal = plain and isinstance(target, str) and type(several[0]) is int
        return (*map(str, golds), str(target)) if literal else tuple(map(str, golds))
    if not isinstance(target, (str, int)) or target is True or target is False:
        return None if target is None else int(target) if isinstance(target, bool) else str(target)
    if targets.output_type == GENERATE_UNTIL:
        return int(target) if choices and _is_index(target) and kind is not str else str(target)
    if not choosing or isinstance(target, int):
        return target if choosing else str(target)
    return _chosen(target, choices, texts_first=kind is None or kind is str)


def infer_gold(values: Sequence[float], acc: object) -> int | None:
    """Infer the gold of two choices from the logged accuracy.

    Among more than two, only right answers would reveal their gold, which would flatter the log.

    >>> infer_gold([-2.0, -1.0], 1.0), infer_gold([-2.0, -1.0], 0.0), infer_gold([-2.0, -1.0, -3.0], 1)
    (1, 0, None)
    """
    if len(values) != 2 or acc not in (0, 1):
        return None
    best = 0 if values[0] >= values[1] else 1  # in a tie the first wins, as in lm-eval
    return best if acc == 1 else 1 - best


def read_both_ways(target: str, choices: Sequence[str]) -> tuple[int | None, int | None]:
    """Read a text as the index of a choice and as the text of one; None where it is not.

    >>> [read_both_ways(one, ("no", "yes", "1")) for one in ("0", "no", "1", "maybe")]
    [(0, None), (None, 0), (1, 2), (None, None)]
    """
    return _index(target, len(choices)), _place(target, choices)


def is_list(target: str) -> bool:
    """Whether a text is the repr of a list of strings or of integers.

    >>> is_list("['a', 'b']"), is_list("[1, 'a']"), is_list("a")
    (True, False, False)
    """
    return _several(target) is not None


def is_within(target: str, choices: Sequence[str]) -> bool:
    """Whether a text may be that of a choice; a single search in all of them rules out most targets.

    >>> is_within("2", ("12", "x")), is_within(" 2 ", ("2", "x")), is_within("3", ("2", "x"))
    (True, True, False)
    """
    return target.strip() in "".join(choices)


def read_own_gold(given: object) -> Gold:
    """Read a gold that evalcore writes beside a target that leaves it open.

    >>> read_own_gold([1, 2]), read_own_gold("[1, 2]"), read_own_gold(None)
    ((1, 2), '[1, 2]', None)
    """
    if given is None or (isinstance(given, int | str | float) and not isinstance(given, bool)):
        return given
    if isinstance(given, list):
        whole, texts = [one for one in given if type(one) is int], [one for one in given if isinstance(one, str)]
        if len(given) in (len(whole), len(texts)):
            return tuple(whole) if whole else tuple(texts)
    raise EvalError(f"expected a gold under evalcore.gold (a text, a number or a list), got {str(given)[:60]!r}")


def read_own_choices(given: object) -> tuple[str, ...]:
    """Read choices that evalcore writes beside requests that lack them.

    >>> read_own_choices([" yes", " no"])
    (' yes', ' no')
    """
    found = [one for one in given if isinstance(one, str)] if isinstance(given, list) else None
    if found is None or not isinstance(given, list) or len(found) != len(given):
        raise EvalError(f"expected a list of texts under evalcore.choices, got {str(given)[:60]!r}")
    return tuple(found)


# --- targets --------------------------------------------------------------------------------------------------------


def _may_split(targets: Targets, target: object, choices: Sequence[str]) -> bool:
    """Whether a target that is written as a list stands for several."""
    if targets.output_type != MULTIPLE_CHOICE or targets.kind in (list, str):
        return targets.kind is list or (targets.kind is None and (targets.lists or not isinstance(target, str)))
    return not isinstance(target, str) or (target[:1] == "[" and _place(target, choices) is None)


def _several(target: object) -> Sequence[object] | None:
    """Several targets: a list, or the repr of one."""
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
    """The choice that a text names by its text or its index; the text itself if it is neither."""
    index = _index(target, len(choices))
    if index is not None and not texts_first:
        return index
    place = _place(target, choices)
    if index is None and target.endswith(".0"):  # a column of floats: one of its targets is no index
        index = _index(target.removesuffix(".0"), len(choices))
    return place if place is not None else target if index is None else index


@lru_cache(maxsize=256)
def _index(target: str, count: int) -> int | None:
    if not target.isdigit() or not target.isascii() or len(target) > 9:
        return None
    found = int(target)
    return found if found < count else None


def _place(target: str, choices: Sequence[str]) -> int | None:
    if target in choices:
        return choices.index(target)
    if not is_within(target, choices):
        return None
    stripped = [one.strip() for one in choices]
    return stripped.index(target.strip()) if stripped.count(target.strip()) == 1 else None
