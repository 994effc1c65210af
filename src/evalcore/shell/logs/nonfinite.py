"""Numbers that JSON has no words for, put back where evalcore's logs say they were."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["restore_nonfinite"]

WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def restore_nonfinite(row: dict[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """A row with its NaN and infinities again.

    >>> restore_nonfinite({"doc": {"x": [1, None]}}, {"nonfinite": {"doc.x.1": "-inf"}})
    {'doc': {'x': [1, -inf]}}
    """
    words = own.get("nonfinite")
    if not isinstance(words, Mapping):
        return row
    return {key: _restored(value, key, words) for key, value in row.items()}


def _restored(value: object, path: str, words: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _restored(one, f"{path}.{key}", words) for key, one in value.items()}
    if isinstance(value, list):
        return [_restored(one, f"{path}.{at}", words) for at, one in enumerate(value)]
    return WORDS.get(str(words.get(path)), value) if value is None else value
