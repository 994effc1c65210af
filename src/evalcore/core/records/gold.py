"""What documents have for a target, as the gold that scoring takes."""

from __future__ import annotations

from evalcore.core.records.request import Gold

__all__ = ["as_gold"]


def as_gold(target: object) -> Gold:
    """A target as scoring takes it: a number, a text, or several of one kind; anything else by its text.

    >>> as_gold(["a", 1]), as_gold([0, 2]), as_gold({"a": 1})
    (('a', '1'), (0, 2), "{'a': 1}")
    """
    if target is None or isinstance(target, int | str | float):
        return target
    if isinstance(target, list | tuple):
        golds = [as_gold(one) for one in target]
        whole = [one for one in golds if type(one) is int]
        return tuple(whole) if len(whole) == len(golds) else tuple(map(str, golds))
    item = getattr(target, "item", None)  # a scalar of numpy
    return as_gold(item()) if callable(item) and getattr(target, "ndim", None) == 0 else str(target)
