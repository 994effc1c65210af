"""Documents of two runs recognised in spite of what a model or a scorer wrote into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.compare.likeness import PROMPT, Fields, find_likeness
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.pairs import match_documents
from evalcore.core.records.document import DocumentRow
from evalcore.shell.compare.runs import RecordedDoc, read_docs
from evalcore.shell.logs.runs.identity import encode_sorted
from evalcore.shell.logs.runs.run_record import Recorded


class Value(NamedTuple):
    """A field of a document: a hash of it, how long a text it is (a number is none), and whether it is the target."""

    code: int
    size: int
    target: bool = False


Document = Mapping[str, Value]
Read = Callable[[int, str], Mapping[int, Document]]
"""The documents of a task of the run at a place."""


class Alike(Struct, frozen=True):
    """Documents that two runs have in common by some fields, and the fields in which these documents differ."""

    count: int
    same: tuple[str, ...]
    other: tuple[str, ...]


def rename_alone(runs: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Runs of one task each are about the same task, whatever their files are called."""
    names = [one.task.name for run in runs for one in run.side.scored]
    if not all(len(run.side.scored) == 1 for run in runs):
        return tuple(runs)
    return tuple(_rename(run, names[0]) for run in runs)


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
        sources={name: run.side.sources[old]} if old in run.side.sources else {},
    )
    told = f"{old} is compared as {name}: it is the only task of its run"
    parts = {key: {name: getattr(run, key)[old]} for key in ("texts", "fields", "files", "options")}
    return replace(run, side=side, warnings=(*run.warnings, told), renamed=old, **parts)


# --- documents that differ in what was written ------------------------------------------------------------------------


def align_pairs(
    runs: Sequence[Recorded], sides: Sequence[ComparisonSide], pairs: Sequence[tuple[int, int]]
) -> list[tuple[ComparisonSide, ComparisonSide, Mapping[str, Alike]]]:
    """Pairs of sides whose documents are also the same where they differ only in what a model or a scorer may have
    written.

    A verdict among the fields would else leave just the documents paired on which both models fare alike.
    """

    @cache
    def read(at: int, task: str) -> Mapping[int, Document]:
        return hash_fields(read_docs(runs[at], task))

    return [_align(runs, sides, pair, read) for pair in pairs]


def align_sides(
    runs: Sequence[Recorded], sides: Sequence[ComparisonSide]
) -> tuple[ComparisonSide, ComparisonSide, Mapping[str, Alike]]:
    """Two sides, see ``align_pairs``."""
    return align_pairs(runs, sides, [(0, 1)])[0]


def _align(
    runs: Sequence[Recorded], sides: Sequence[ComparisonSide], pair: tuple[int, int], read: Read
) -> tuple[ComparisonSide, ComparisonSide, Mapping[str, Alike]]:
    found: dict[str, Alike] = {}
    tables = [dict(sides[at].documents) for at in pair]
    for task in tables[0].keys() & tables[1].keys() if not runs[pair[0]].match else ():
        docs = [partial(read, at, task) for at in pair]
        tables[0][task], tables[1][task], alike = _recognise((tables[0][task], tables[1][task]), docs)
        if alike is not None:
            found[task] = alike
    one, two = (replace(sides[at], documents=table) for at, table in zip(pair, tables, strict=True))
    return one, two, found


Rows = tuple[DocumentRow, ...]


def _recognise(
    rows: tuple[Rows, Rows], read: Sequence[Callable[[], Mapping[int, Document]]]
) -> tuple[Rows, Rows, Alike | None]:
    """The rows, those of one group under the same content where that gives more documents a counterpart."""
    before = match_documents(*rows)
    if before.by_id or any(len(before.pairs) == len(some) for some in rows):
        return *rows, None
    docs = [documents() for documents in read]
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


def hash_fields(docs: Iterable[RecordedDoc]) -> Mapping[int, Document]:
    """The documents of a run by number, each field as a hash."""
    found: dict[int, Document] = {}
    for key, doc, target in docs:
        cells = doc.items() if isinstance(doc, dict) else [("document", doc)]
        text = str(target)
        found[key] = {name: Value(hash(encode_sorted(cell)), _length(cell), str(cell) == text) for name, cell in cells}
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
