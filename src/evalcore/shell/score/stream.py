"""A log scored a piece at a time: what is kept of each piece is its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from evalcore.core.answers.table import AnswerTable, request_table
from evalcore.core.guard import Guard, run_freely
from evalcore.core.pipeline import score_task
from evalcore.core.records.document import select_docs
from evalcore.core.records.request import Failure, Generate, OutputType, Sample
from evalcore.core.records.row import Stats
from evalcore.core.records.score import Provenance, Scored, ScoredColumn, merge_scored
from evalcore.core.tables import Tables
from evalcore.shell.engines.deadline import Deadline
from evalcore.shell.logs.log import Logged, LogTask, Problem
from evalcore.shell.score.carryover import Kept, add_kept, drop_metrics
from evalcore.shell.score.recipes import Recipe, looks_wide
from evalcore.shell.score.verdicts import count_lost_epochs, list_beyond_share, list_verdicts, refuse_several

DOC_ID, REPLIES = attrgetter("doc_id"), attrgetter("replies")
PIECE, PIECE_BYTES = 2048, 1 << 24
"""Documents scored at a time, and about how many bytes of them: memory does not grow with the log."""

UNHEARD: Sequence[Sequence[object]] = ((Failure("no answer was recorded"),),)
"""The replies of a document that has only scores, where it is written."""


class Piece(Struct, frozen=True):
    """Some documents of a task, as they were asked and answered, and their scores; ``logged`` if they were kept."""

    samples: tuple[Sample, ...]
    logged: tuple[Logged, ...]
    answers: AnswerTable
    scored: Scored
    kept: Kept | None = None


class LogPass:
    """The rows of a log on their way to scoring, and what was noticed as they went by.

    ``problems`` are records that could not be read, ``beyond`` recorded scores that are not 0 or 1 throughout; ``lost``
    says of a document how many repeats have no score (of an Inspect log: ended in an error) while others have.
    ``guard`` stops what takes too long, and counts it.
    """

    def __init__(self, log: LogTask, recipe: Recipe, limit: float | None) -> None:
        self.log, self.recipe, self.limit = log, recipe, limit
        self.problems: dict[Problem, None] = {}
        self.beyond: set[str] = set()
        self.lost: dict[int, int] = {}
        self.guard = Deadline()

    def rows(self) -> Iterator[Logged]:
        """The documents that can be read, up to the limit."""
        limit = self.limit
        if limit is not None and limit < 1:
            limit = len(select_docs(sum(isinstance(one, Logged) for one in self.log.rows()), limit))
        return islice(self._good_rows(), None if limit is None else int(limit))

    def _good_rows(self) -> Iterator[Logged]:
        scores, unanswered = self.recipe.scores, bool(self.log.reader.harness)
        for row in self.log.rows():
            if isinstance(row, Logged):
                if scores:
                    self.beyond.update(list_beyond_share(row, scores))
                    if lost := count_lost_epochs(row, scores, unanswered=unanswered):
                        self.lost[row.doc_id] = lost
                yield row
            else:
                self.problems[row] = None


def score_rows(
    rows: Iterable[Logged], recipe: Recipe, tables: Tables, *, keep: bool = False, guard: Guard = run_freely
) -> Iterator[Piece]:
    """Score the documents of a task piece by piece; in a single piece if a filter looks at all of them."""
    for logged in [list(rows)] if looks_wide(recipe.task, tables) else cut_pieces(rows):
        if logged:
            yield score_piece(recipe, logged, tables, keep=keep, guard=guard)


def cut_pieces(rows: Iterable[Logged]) -> Iterator[list[Logged]]:
    """Cut documents into pieces of a bounded number and size."""
    piece: list[Logged] = []
    size = 0
    for row in rows:
        piece.append(row)
        size += weigh(row)
        if len(piece) >= PIECE or size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    yield piece


def weigh(row: Logged) -> int:
    """Estimate the bytes of a document: its own, and those of its replies and prompts as if all were like the first.

    >>> weigh(Logged(doc_id=0, doc=b"{}", gold=None, replies=(("four", "more"),), requests=(Generate("ask"),)))
    13
    """
    size, replies = len(row.doc), row.replies
    if replies and (said := replies[0]) and type(said[0]) is str:
        size += len(said[0]) * len(said)
    if row.requests:
        asked = row.requests[0]
        text = asked.prompt if isinstance(asked, Generate) else getattr(asked, "context", "")
        size += len(text) * len(row.requests)
    return size


def score_split(
    rows: Iterable[Logged],
    recipe: Recipe,
    name_of: Callable[[Logged], str],
    tables: Tables,
    *,
    guard: Guard = run_freely,
) -> Iterator[Piece]:
    """Score the documents of several tasks by the same recipe, each task under its own name."""
    waiting: dict[str, list[Logged]] = {}
    size, whole = 0, looks_wide(recipe.task, tables)
    for row in rows:
        name = name_of(row)
        logged = waiting.setdefault(name, [])
        logged.append(row)
        size += weigh(row)
        if whole or (len(logged) < PIECE and size < PIECE_BYTES):
            continue
        full = waiting if size >= PIECE_BYTES else {name: logged}
        yield from _score_each(full, recipe, tables, guard)
        waiting = {other: rest for other, rest in waiting.items() if other not in full}
        size -= sum(map(weigh, chain.from_iterable(full.values())))
    yield from _score_each(waiting, recipe, tables, guard)


def _score_each(
    waiting: Mapping[str, Sequence[Logged]], recipe: Recipe, tables: Tables, guard: Guard
) -> Iterator[Piece]:
    return (score_piece(rename_recipe(recipe, name), logged, tables, guard=guard) for name, logged in waiting.items())


def rename_recipe(recipe: Recipe, name: str) -> Recipe:
    """The recipe for a task of another name."""
    return replace(recipe, task=replace(recipe.task, name=name))


def score_piece(
    recipe: Recipe, logged: Sequence[Logged], tables: Tables, *, keep: bool = False, guard: Guard = run_freely
) -> Piece:
    """Score some documents."""
    logged = sorted(logged, key=DOC_ID)
    samples = list(map(recipe.read, logged))
    heard = [one.replies or UNHEARD for one in logged] if keep else list(map(REPLIES, logged))
    answers = tabulate_replies(recipe.task.name, samples, heard)
    if recipe.scores:
        verdicts = [list_verdicts(one, recipe.scores) for one in logged]
        if tables.unreduced is None:
            for one, found in zip(logged, verdicts, strict=True):
                refuse_several(recipe.task, one, found)
        scored = score_verdicts(recipe, samples, verdicts, answers, tables, keep=keep, guard=guard)
    else:
        scored = score_task(recipe.task, samples, answers, tables=tables, keep_replies=keep, guard=guard)
    scored = add_kept(scored, recipe.kept, tables)
    return Piece(tuple(samples), tuple(logged) if keep else (), answers, scored, recipe.kept)


def score_verdicts(
    recipe: Recipe,
    samples: Sequence[Sample],
    verdicts: Sequence[Mapping[str, tuple[object, ...]]],
    answers: AnswerTable,
    tables: Tables,
    *,
    keep: bool,
    guard: Guard,
) -> Scored:
    """Recorded scores as scores: what each filter has is heard by that filter only. ``answers`` are what is kept."""
    task, parts = recipe.task, []
    measured = frozenset(key.metric for key in recipe.scores)
    for name in dict.fromkeys(key.filter for key in recipe.scores):
        own = replace(task, filters=tuple(one for one in task.filters if one.name == name))
        heard = tabulate_replies(task.name, samples, [(one[name],) for one in verdicts])
        parts.append(score_task(own, samples, heard, tables=tables, guard=guard))
    columns = tuple(describe_recorded(one) for part in parts for one in part.columns)
    said: tuple[Provenance, ...] = ()
    if keep:
        kind = OutputType(str(task.config.get("output_type", task.output_type)))  # answers are of the log's own kind
        asked = drop_metrics(replace(task, output_type=kind), measured)
        said = score_task(asked, samples, answers, tables=tables, keep_replies=True, guard=guard).provenance
    return replace(parts[0], task=task, columns=columns, provenance=said)


def describe_recorded(column: ScoredColumn) -> ScoredColumn:
    """Describe a column of recorded scores: no gold had a part in it, and how many scores each document has."""
    traits = tuple(trait for trait in column.traits if "gold" not in trait)
    counts = (
        column.noise.rows.values.floats[:, 1]
        if column.noise is not None and isinstance(column.noise.rows, Stats)
        else ()
    )
    known = [int(count) for count in counts if count == count]  # not a number of a document that has no score
    return replace(column, traits=traits, repeats=(min(known), max(known)) if known else column.repeats)


def tabulate_replies(
    task: str, samples: Sequence[Sample], replies: Sequence[Sequence[Sequence[object]]]
) -> AnswerTable:
    """The replies to each request of documents in order of their number, as a table.

    >>> tabulate_replies("t", [Sample(0), Sample(1)], [(("a", "b"),), (("c", "d"),)]).offsets
    Array([0, 2, 4])
    """
    heard = list(chain.from_iterable(replies))
    keys: NDArray[np.int64] = np.fromiter(map(DOC_ID, samples), np.int64, len(samples))
    counts: NDArray[np.int64] = np.fromiter(map(len, replies), np.int64, len(replies))
    places = np.arange(len(heard)) - np.repeat(np.cumsum(counts) - counts, counts)
    flat = list(chain.from_iterable(heard))
    if len(flat) == len(heard) and all(heard):  # one to each, which is known faster than counted
        repeats: NDArray[np.int64] = np.ones(len(heard), np.int64)
    else:
        repeats = np.fromiter(map(len, heard), np.int64, len(heard))
    asked = request_table(task, np.repeat(keys, counts), places, repeats)  # type: ignore[arg-type]  # arrays as columns
    return asked.answered(flat)


def merge_pieces(
    pieces: Iterable[Scored], shrink: Callable[[Sequence[Scored]], list[Scored]] | None = None
) -> dict[str, Scored]:
    """Merge the scores of each task; ``shrink`` makes less of those that came so far."""
    by_task: dict[str, list[Scored]] = {}
    for scored in pieces:
        parts = by_task.setdefault(scored.task.name, [])
        parts.append(replace(scored, provenance=()))
        if shrink is not None:
            by_task[scored.task.name] = shrink(parts)
    return {name: merge_scored(parts) for name, parts in by_task.items()}
