"""Datasets that are not local files: Hugging Face's, and those that task code returns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from evalcore.core.records.errors import EvalError, MissingExtra, require
from evalcore.shell.data.align import Doc
from evalcore.shell.files.confinement import Allow
from evalcore.shell.files.given import expand_glob, parse_path
from evalcore.shell.safety.credentials import note_credentials

TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def load_from_hub(path: str, name: object, options: Mapping[str, object], task: str) -> Mapping[str, object]:
    """Load the splits of a hub dataset with the datasets package."""
    shown = f"the dataset {path!r}" + (f" ({name})" if name else "") + " is no local file or folder"
    hint = f"or give local documents: `data: {{{task}: file.jsonl}}` - at {task}"
    try:
        datasets = require("datasets", "hf")
    except MissingExtra as missing:
        raise MissingExtra(f"{shown}, and for the Hugging Face hub {missing}; {hint}") from missing
    note_credentials(os.environ.get(name, "") for name in TOKENS)
    try:
        loaded: object = datasets.load_dataset(path, name=name, **options)
    except Exception as wrong:  # network, hub and broken datasets raise anything
        why = " ".join(str(wrong).split())[:300] or type(wrong).__name__
        raise EvalError(f"{shown}, and the Hugging Face hub did not give it: {why}; check the name, {hint}") from wrong
    return check_splits(loaded, task)


def refuse_local(path: str, options: Mapping[str, object], allow: Allow) -> None:
    """Refuse what the datasets package would read from this machine and ``allow`` does not let pass.

    Beside a hub dataset (``org/name``), a relative path without ``..`` is a file of its repository.
    """
    if parse_path(path).expanduser().exists():
        allow(parse_path(path).expanduser())
    for name in list_texts([options.get("data_files"), options.get("data_dir")]):
        if "::" in name:
            raise EvalError(f"expected a path or an address, got a chain of addresses: {name!r} - at dataset_kwargs")
        place = parse_path(name).expanduser()
        if "://" in name or place.is_absolute() or ".." in place.parts or "/" not in path:
            for file in expand_glob(place) or [place]:
                allow(file)


def list_texts(value: object) -> Iterator[str]:
    """List every text inside lists and mappings.

    >>> list(list_texts({"train": "a.csv", "test": ["b.csv", None]}))
    ['a.csv', 'b.csv']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from list_texts(one)


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
