"""What a log leaves open about its targets: settled once by its first rows, or told by rows that evalcore wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.errors import EvalError
from evalcore.core.records import MULTIPLE_CHOICE, Gold
from evalcore.shell.answers.golds import Targets, is_index_of, is_list, resolve_gold

__all__ = ["Told", "own_choices", "own_gold", "reads_back", "settle_targets"]


class Told(Struct, frozen=True):
    """What a row tells of its target: its text, the choices, their log-likelihoods, and the accuracy if asked for."""

    target: str
    choices: tuple[str, ...] = ()
    values: Sequence[float] = ()
    acc: Callable[[], object] = lambda: None


def settle_targets(targets: Targets, rows: Iterable[Told]) -> Targets:
    """How targets of an unknown type are read, by the first rows of their log; as few are taken as tell.

    Texts are lists if all are written as lists. Numbers are indices of choices or their texts, whichever one of them
    can only be, else whichever the logged accuracies speak against less often (indices, if neither); without these
    they are texts.

    >>> plain = Targets(MULTIPLE_CHOICE)
    >>> settle_targets(plain, [Told("2", ("2", "1", "0")), Told("1", ("2", "3", "4"))]).kind
    <class 'int'>
    >>> settle_targets(plain, [Told("[1, 2]"), Told("x")]).lists
    False
    """
    lists, against, judged = True, (0, 0), False
    for one in rows:
        if is_list(one.target) and one.target not in one.choices:
            continue
        lists = False
        if targets.output_type != MULTIPLE_CHOICE:
            break
        index = int(one.target) if is_index_of(one.target, one.choices) else None
        text = one.choices.index(one.target) if one.target in one.choices else None
        if (index is None) != (text is None):
            against, judged = (int(index is None), int(text is None)), True
            break
        acc = one.acc() if index != text else None
        if acc in (0, 1) and len(one.values) == len(one.choices):
            best = max(range(len(one.values)), key=one.values.__getitem__)  # in a tie the first wins, as in lm-eval
            against = (against[0] + ((best == index) != acc), against[1] + ((best == text) != acc))
            judged = True
    indices = judged and against[0] <= against[1]
    return replace(targets, lists=lists, kind=int if indices else targets.kind)


# --- what evalcore writes where a text would not tell ---------------------------------------------------------------


def reads_back(targets: Targets, text: str, choices: Sequence[str], gold: Gold, *, lists: bool = False) -> bool:
    """Whether the text of a target is read as this gold: whatever other rows are like, or if they too are ``lists``.

    >>> [reads_back(Targets(MULTIPLE_CHOICE), "1", choices, 1) for choices in (("no", "yes"), ("0", "1"), ("1", "0"))]
    [True, True, False]
    """
    open_still = targets.kind is None and not lists
    ways = [targets, replace(targets, kind=int)] if open_still else [targets]
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
