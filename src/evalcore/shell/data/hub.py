"""Datasets that are not local files: Hugging Face's, and those that task code returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from evalcore.core.records.errors import EvalError, MissingExtra, require
from evalcore.shell.data.align import Doc


def load_from_hub(path: str, name: object, options: Mapping[str, object], task: str) -> Mapping[str, object]:
    """Load the splits of a hub dataset with the datasets package."""
    shown = f"the dataset {path!r}" + (f" ({name})" if name else "") + " is no local file or folder"
    hint = f"or give local documents: `data: {{{task}: file.jsonl}}` - at {task}"
    try:
        datasets = require("datasets", "hf")
    except MissingExtra as missing:
        raise MissingExtra(f"{shown}, and for the Hugging Face hub {missing}; {hint}") from missing
    try:
        loaded: object = datasets.load_dataset(path, name=name, **options)
    except Exception as wrong:  # network, hub and broken datasets raise anything
        why = " ".join(str(wrong).split())[:300] or type(wrong).__name__
        raise EvalError(f"{shown}, and the Hugging Face hub did not give it: {why}; check the name, {hint}") from wrong
    return check_splits(loaded, task)


def check_splits(loaded: object, task: str) -> Mapping[str, object]:
    """Check that task code returned a mapping of splits."""
    if isinstance(loaded, Mapping):
        return loaded
    raise EvalError(f"expected a dataset with splits, got {type(loaded).__name__} - at {task}")


def list_documents(rows: object, where: str = "") -> Sequence[Doc]:
    """List rows as documents. A ``datasets.Dataset`` stays one: ``process_docs`` functions are written for it.

    >>> list_documents(({"a": n} for n in range(2)))
    [{'a': 0}, {'a': 1}]
    """
    if hasattr(rows, "features") and hasattr(rows, "__len__"):
        return cast(Sequence[Doc], rows)
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes | Mapping):
        raise EvalError(f"expected documents, got {type(rows).__name__}{where}")
    docs: list[Doc] = []
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EvalError(f"expected documents, got {str(row)[:60]!r} in place {at}{where}")
        docs.append(dict(row))
    return docs
