"""What a log leaves open about its targets: settled once by all its rows, or told by rows that evalcore wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import MULTIPLE_CHOICE, Gold
from evalcore.shell.logs.lm_eval.golds import Targets, is_list, is_within, readings, resolve_gold


class Told(Struct, frozen=True):
    """What a row tells of its target: its text, the choices and, if asked for, the one that the model took and the acc.

    ``verdict`` is None where a row has no accuracy of 0 or 1.
    """

    target: str
    choices: tuple[str, ...] = ()
    verdict: Callable[[], tuple[int, bool] | None] = lambda: None


def settle_targets(targets: Targets, rows: Iterable[Told]) -> Targets:
    """How targets of an unknown type are read, by all rows of their log.

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
        index, text = readings(one.target, one.choices)
        if (index is None) != (text is None):
            index_wrong, text_wrong = index_wrong + (index is None), text_wrong + (text is None)
        elif index != text and (verdict := one.verdict()) is not None:
            best, right = verdict
            index_wrong, text_wrong = index_wrong + ((best == index) != right), text_wrong + ((best == text) != right)
            judged += 1
    indices = index_wrong < text_wrong or (index_wrong == text_wrong and judged > 0)
    return replace(targets, kind=int) if indices else targets


def is_open(targets: Targets, target: object, choices: Sequence[str]) -> bool:
    """Whether a target may be read in two ways, so that the other rows of its log must tell which one is meant.

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
    """How targets may be read once they are settled."""
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
    ways = _ways(targets) if not lists or targets.output_type == MULTIPLE_CHOICE else (targets,)
    return all(resolve_gold(way, text, choices) == gold for way in ways)


def own_gold(given: object) -> Gold:
    """A gold as evalcore writes it beside a target that does not tell it.

    >>> own_gold([1, 2]), own_gold("[1, 2]"), own_gold(None)
    ((1, 2), '[1, 2]', None)
    """
    if given is None or (isinstance(given, int | str | float) and not isinstance(given, bool)):
        return given
    if isinstance(given, list):
        whole, texts = [one for one in given if type(one) is int], [one for one in given if isinstance(one, str)]
        if len(given) in (len(whole), len(texts)):
            return tuple(whole) if whole else tuple(texts)
    raise EvalError(f"expected a gold under evalcore.gold (a text, a number or a list), got {str(given)[:60]!r}")


def own_choices(given: object) -> tuple[str, ...]:
    """Choices as evalcore writes them beside requests that do not tell them.

    >>> own_choices([" yes", " no"])
    (' yes', ' no')
    """
    found = [one for one in given if isinstance(one, str)] if isinstance(given, list) else None
    if found is None or not isinstance(given, list) or len(found) != len(given):
        raise EvalError(f"expected a list of texts under evalcore.choices, got {str(given)[:60]!r}")
    return tuple(found)
