"""Documents as rows of a table: every document has every column, and a column has numbers of one type."""

from __future__ import annotations

from itertools import chain, islice
from types import NoneType

from evalcore.core.records.errors import EvalError

Doc = dict[str, object]


def align_documents(docs: list[Doc], where: str = "the data") -> list[Doc]:
    """Fill missing columns with None, and make integers floats in columns that have both, as datasets does.

    >>> align_documents([{"a": 1}, {"a": 2.5, "b": [1, {"c": 1}]}])
    [{'a': 1.0, 'b': None}, {'a': 2.5, 'b': [1, {'c': 1}]}]
    """
    names = tuple(dict.fromkeys(chain.from_iterable(docs)))
    try:
        return _rebuild_rows(names, docs)
    except RecursionError as deep:
        raise EvalError(f"{where}: documents nested too deep") from deep
    except OverflowError as large:
        raise EvalError(f"{where}: an integer too large for the floats in its column") from large


def _rebuild_rows(names: tuple[str, ...], docs: list[Doc]) -> list[Doc]:
    columns = [_align_column([doc.get(name) for doc in docs]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] if names else docs


def _align_column(values: list[object]) -> list[object]:
    """Align a column; objects whose keys differ stay as they were written."""
    kinds = set(map(type, values)) - {NoneType}
    if kinds == {int, float}:
        return [float(value) if isinstance(value, int) else value for value in values]
    if kinds == {list}:
        return _align_lists(values)
    if kinds == {dict}:
        return _align_objects(values)
    return values


def _align_lists(values: list[object]) -> list[object]:
    items = [item for value in values if isinstance(value, list) for item in value]
    aligned = _align_column(items)
    if aligned is items:
        return values
    rest = iter(aligned)
    return [list(islice(rest, len(value))) if isinstance(value, list) else None for value in values]


def _align_objects(values: list[object]) -> list[object]:
    objects = [value for value in values if isinstance(value, dict)]
    if any(one.keys() != objects[0].keys() for one in objects):
        return values
    rest = iter(_rebuild_rows(tuple(objects[0]), objects))
    return [None if value is None else next(rest) for value in values]
