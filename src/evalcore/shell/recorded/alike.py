"""Runs that are held against each other: read together, and their documents recognised in spite of what was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.documents import DocumentRow
from evalcore.core.pairing import match_documents
from evalcore.core.sides import Side
from evalcore.shell.recorded.documents import canonical
from evalcore.shell.recorded.reading import Recorded, read_recorded
from evalcore.shell.recorded.rows import read_rows, read_value

__all__ = ["Alike", "align_sides", "read_fields", "read_together"]

TELLING = 0.9
"""The share of a run's documents that some fields must tell apart to identify one."""


class Value(NamedTuple):
    """A field of a document: a hash of it, and how long a text it is; a number is none."""

    code: int
    size: int


Document = Mapping[str, Value]
Read = Callable[[tuple[Path, ...]], Mapping[int, Document]]


class Alike(Struct, frozen=True):
    """Documents that two runs have in common by some fields, and the fields in which these documents differ."""

    count: int
    same: tuple[str, ...]
    other: tuple[str, ...]


def read_together(
    paths: Sequence[Path], *, cluster: str | None = None, match: Sequence[str] = ()
) -> tuple[Recorded, ...]:
    """Each run, read once. Runs of one task each are about the same task, whatever their files are called."""
    read = {path: read_recorded(path, cluster=cluster, match=match) for path in dict.fromkeys(paths)}
    names = [one.task.name for run in read.values() for one in run.side.scored]
    if all(len(run.side.scored) == 1 for run in read.values()):
        read = {path: _rename(run, names[0]) for path, run in read.items()}
    return tuple(read[path] for path in paths)


def _rename(run: Recorded, name: str) -> Recorded:
    """The run with its one task under another name."""
    (scored,) = run.side.scored
    old = scored.task.name
    if old == name:
        return run
    side = replace(
        run.side,
        scored=(replace(scored, task=replace(scored.task, name=name)),),
        documents={name: run.side.documents[old]},
        trees=(),
    )
    told = f"{old} is compared as {name}: it is the only task of its run"
    parts = {key: {name: getattr(run, key)[old]} for key in ("texts", "fields", "files")}
    return replace(run, side=side, warnings=(*run.warnings, told), renamed=old, **parts)


# --- documents that differ in what was written ------------------------------------------------------------------------


def align_sides(
    runs: tuple[Recorded, Recorded], sides: tuple[Side, Side], read: Read | None = None
) -> tuple[Side, Side, Mapping[str, Alike]]:
    """Two sides whose documents are also the same where they differ only in what a model or a scorer may have written.

    A verdict among the fields would else leave just the documents paired on which both models fare alike. ``read``
    reads the fields of documents, where several pairs of runs share them.
    """
    found: dict[str, Alike] = {}
    tables = [dict(side.documents) for side in sides]
    for task in tables[0].keys() & tables[1].keys() if not runs[0].match else ():
        pairs, alike = _recognise(runs, (tables[0][task], tables[1][task]), task, read or read_fields)
        if alike is not None:
            found[task] = alike
            for at, table in enumerate(tables):
                table[task] = _as_one(table[task], {pair[at]: number for number, pair in enumerate(pairs)})
    one, two = (replace(side, documents=table) for side, table in zip(sides, tables, strict=True))
    return one, two, found


def _as_one(rows: Iterable[DocumentRow], numbers: Mapping[int, int]) -> tuple[DocumentRow, ...]:
    """The rows, those of a number under a content that only this number has."""
    return tuple(
        replace(row, content=f"alike {numbers[row.key]}", prompt="", occurrence=0) if row.key in numbers else row
        for row in rows
    )


def _recognise(
    runs: tuple[Recorded, Recorded], rows: tuple[Sequence[DocumentRow], Sequence[DocumentRow]], task: str, read: Read
) -> tuple[list[tuple[int, int]], Alike | None]:
    """The documents that only one run has, paired by the longest fields that tell documents apart."""
    matched = match_documents(*rows)
    rest = [{row.key for row in some} - {pair[at] for pair in matched.pairs} for at, some in enumerate(rows)]
    if matched.by_id or not all(rest):
        return [], None
    docs = [read(run.files[task]) for run in runs]
    names = _telling_fields(docs)
    known = [_by_values(some, names) for some in docs]
    pairs = [
        (known[0][values], known[1][values])
        for values in known[0].keys() & known[1].keys()
        if known[0][values] in rest[0] and known[1][values] in rest[1]
    ]
    if not names or not pairs:
        return [], None
    seen = [[docs[at][pair[at]] for pair in pairs] for at in (0, 1)]
    every = runs[0].fields.get(task, frozenset()) | runs[1].fields.get(task, frozenset())
    other = {name for name in every for one, two in zip(*seen, strict=True) if one.get(name) != two.get(name)}
    return sorted(pairs), Alike(len(pairs), names, tuple(sorted(other)))


def _telling_fields(docs: Sequence[Mapping[int, Document]]) -> tuple[str, ...]:
    """The longest texts of all documents, as many as tell most documents of each run apart; none if all do not.

    What is asked is longer than a number or a verdict. A longer text that a model wrote pairs nothing.
    """
    both = [list(some.values()) for some in docs]
    sizes: Counter[str] = Counter()
    for doc in (doc for some in both for doc in some):
        for name, value in doc.items():
            sizes[name] += value.size
    shared = [name for name in sizes if all(name in doc for some in both for doc in some)]
    ordered = sorted(shared, key=lambda name: (-sizes[name], name))
    for count in range(1, len(ordered) + 1):
        told = [Counter(tuple(doc[name].code for name in ordered[:count]) for doc in some) for some in both]
        if all(sum(n == 1 for n in one.values()) >= TELLING * one.total() for one in told):
            return tuple(ordered[:count])
    return ()


def _by_values(docs: Mapping[int, Document], names: Sequence[str]) -> dict[tuple[int, ...], int]:
    """The values of these fields that one document alone has -> its number."""
    keys: dict[tuple[int, ...], list[int]] = {}
    for key, doc in docs.items():
        keys.setdefault(tuple(doc[name].code for name in names), []).append(key)
    return {values: some[0] for values, some in keys.items() if len(some) == 1}


def read_fields(files: tuple[Path, ...]) -> Mapping[int, Document]:
    """The documents of a log by number, each field as a hash."""
    found: dict[int, Document] = {}
    for row in (row for path in files for row in read_rows(path)):
        if row.key not in found:
            doc = read_value(row.fields, "doc")
            cells = doc.items() if isinstance(doc, dict) else ()
            found[row.key] = {name: Value(hash(canonical(cell)), _length(cell)) for name, cell in cells}
    return found


def _length(cell: object) -> int:
    """How long a text is.

    >>> _length("what?"), _length(0.8474337), _length("0.8474337"), _length(["a", "bc"])
    (5, 0, 0, 3)
    """
    if isinstance(cell, Mapping | list):
        return sum(map(_length, cell.values() if isinstance(cell, Mapping) else cell))
    if not isinstance(cell, str):
        return 0
    try:
        float(cell)
    except ValueError:
        return len(cell)
    return 0
