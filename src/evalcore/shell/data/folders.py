"""The split of a file by its name or its folder, as datasets assigns them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
SHARD = re.compile(r"(\w+(?:\.\w+)*)-\d{5}-of-\d{5}")


def sort_into_splits(files: Iterable[Path], folder: Path) -> dict[str, list[Path]]:
    """Sort files into splits; if no name says one, all belong to the training split.

    >>> sort_into_splits([Path("d/test.jsonl"), Path("d/en/dev-1.jsonl"), Path("d/README.json")], Path("d"))
    {'test': [...Path('d/test.jsonl')], 'validation': [...Path('d/en/dev-1.jsonl')]}
    """
    out: dict[str, list[Path]] = {}
    paths = list(files)
    for path in paths:
        split = find_split(path.relative_to(folder))
        if split:
            out.setdefault(split, []).append(path)
    return out or {"train": paths}


def find_split(path: Path) -> str:
    """Find the split that a path names; an empty text if it names none.

    >>> [find_split(Path(name)) for name in ("val/a.csv", "abstract-00000-of-00002.parquet", "latest.csv")]
    ['validation', 'abstract', '']
    """
    for part in (path.name, *reversed(path.parts[:-1])):
        words = re.split(r"[-._ 0-9]+", part.lower())
        for split, names in SPLITS.items():
            if any(word in names for word in words):
                return split
    shard = SHARD.match(path.name)
    return shard[1] if shard else ""
