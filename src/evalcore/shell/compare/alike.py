"""Runs that are held against each other: read together, and their documents recognised in spite of what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.likeness import PROMPT, Fields, find_likeness
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.pairs import match_documents
from evalcore.core.records.document import DocumentRow
from evalcore.shell.logs.lm_eval.rows import read_sample_rows, read_value
from evalcore.shell.logs.runs.identity import canonical
from evalcore.shell.logs.runs.run_record import Recorded, read_recorded

__all__ = ["Alike", "align_sides", "read_fields", "read_together"]


class Value(NamedTuple):
    """A field of a document: a hash of it, how long a text it is (a number is none), and whether it is the target."""

    code: int
    size: int
    target: bool = False


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
    runs: tuple[Recorded, Recorded], sides: tuple[ComparisonSide, ComparisonSide], read: Read | None = None
) -> tuple[ComparisonSide, ComparisonSide, Mapping[str, Alike]]:
    """Two sides whose documents are also the same where they differ only in what a model or a scorer may have written.

    A verdict among the fields would else leave just the documents paired on which both models fare alike. ``read``
    reads the fields of documents, where several pairs of runs share them.
    """
    found: dict[str, Alike] = {}
    tables = [dict(side.documents) for side in sides]
    for task in tables[0].keys() & tables[1].keys() if not runs[0].match else ():
        tables[0][task], tables[1][task], alike = _recognise(
            runs, (tables[0][task], tables[1][task]), task, read or read_fields
        )
        if alike is not None:
            found[task] = alike
    one, two = (replace(side, documents=table) for side, table in zip(sides, tables, strict=True))
    return one, two, found


Rows = tuple[DocumentRow, ...]


def _recognise(
    runs: tuple[Recorded, Recorded], rows: tuple[Rows, Rows], task: str, read: Read
) -> tuple[Rows, Rows, Alike | None]:
    """The rows, those of one group under the same content where that gives more documents a counterpart."""
    before = match_documents(*rows)
    if before.by_id or any(len(before.pairs) == len(some) for some in rows):
        return *rows, None
    docs = [read(run.files[task]) for run in runs]
    names = {name for some in docs for doc in some.values() for name in doc}
    golds = {name for name in names if all(name in doc and doc[name].target for some in docs for doc in some.values())}
    kept = [PROMPT, *sorted(names - golds)]
    found = find_likeness(*(_fields(some, known, kept) for some, known in zip(rows, docs, strict=True)))
    if found is None:
        return *rows, None
    both = set(found.a) & set(found.b)
    a = _as_one(rows[0], [group if group in both else None for group in found.a], {one for one, _ in before.pairs})
    b = _as_one(rows[1], [group if group in both else None for group in found.b], {two for _, two in before.pairs})
    after = match_documents(a, b)
    if len(after.pairs) <= len(before.pairs):
        return *rows, None
    pairs = [(docs[0][one], docs[1][two]) for one, two in set(after.pairs) - set(before.pairs)]
    every = {name for one, two in pairs for name in (*one, *two)}
    other = {name for name in every if any(one.get(name) != two.get(name) for one, two in pairs)}
    return a, b, Alike(len(pairs), found.by or ("target",), tuple(sorted(other)))


def _as_one(rows: Rows, groups: Sequence[int | None], paired: Set[int]) -> Rows:
    """The rows, those of a group under a content that only this group has.

    A prompt of others that had no counterpart does not become unique because those who share it have found theirs.
    """
    return tuple(
        replace(row, content=f"alike {group}", prompt="", occurrence=0)
        if group is not None
        else row
        if row.key in paired
        else replace(row, prompt="")
        for row, group in zip(rows, groups, strict=True)
    )


def _fields(rows: Rows, docs: Mapping[int, Document], names: Sequence[str]) -> Fields:
    """The prompt and the fields of a run's documents; what a document lacks is like nothing else."""
    known = [{PROMPT: Value(hash(row.prompt), len(row.prompt)), **docs[row.key]} for row in rows]
    shown = [name for name in names if any(name in doc for doc in known)]
    lacking = [Value(hash((id(docs), row.key)), 0) for row in rows]
    cells = {name: [doc.get(name, lack) for doc, lack in zip(known, lacking, strict=True)] for name in shown}
    return Fields(
        [row.key for row in rows],
        [hash(row.target) for row in rows],
        {name: tuple(cell.code for cell in column) for name, column in cells.items()},
        {name: sum(cell.size for cell in column) for name, column in cells.items()},
    )


def read_fields(files: tuple[Path, ...]) -> Mapping[int, Document]:
    """The documents of a log by number, each field as a hash."""
    found: dict[int, Document] = {}
    for row in read_sample_rows(*files):
        if row.key not in found:
            doc = read_value(row.fields, "doc")
            cells = doc.items() if isinstance(doc, dict) else [("document", doc)]
            target = str(read_value(row.fields, "target"))
            found[row.key] = {
                name: Value(hash(canonical(cell)), _length(cell), str(cell) == target) for name, cell in cells
            }
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
