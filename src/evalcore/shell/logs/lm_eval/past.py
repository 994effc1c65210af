"""The logged scores and filtered replies of each document, under every filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from math import inf
from pathlib import Path
from typing import Annotated, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Raw, Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.forms import read_place
from evalcore.shell.logs.lm_eval.rows import (
    GREATEST,
    LEAST,
    SCHEMA,
    name_filter,
    read_row,
    read_row_scores,
    read_value,
    restore_nonfinite,
)
from evalcore.shell.logs.log import NOTHING, Picks, Problem

Plain = Mapping[str, object]
T = TypeVar("T")
Records = Callable[[Path], Iterator[Record | Problem]]
SCORES = tuple(f"score_{at}" for at in range(256))
READ = frozenset({"gold", "choices", "nonfinite"})
"""What the reader of documents may find wrong, or changes their bytes."""
MORE = frozenset({"input", "token_counts", "submission"})
"""What lmms-eval writes besides scores."""


def read_past(
    paths: Sequence[Path], filters: Sequence[str], records: Records = read_records
) -> Callable[[int], Mapping[str, Plain]]:
    """Read ``scores`` (by ``metric,filter``) and ``kept`` (by filter), and return a look-up by document.

    Unreadable rows are left to the reader of documents, which reports them.
    """
    scores: dict[int, dict[str, object]] = {}
    kept: dict[int, dict[str, object]] = {}
    for path in paths:
        for at in records(path):
            if isinstance(at, Problem):
                break
            try:
                row = read_row(at.data, at.line, str(path))
                mine = kept.setdefault(row.key, {})
                name = name_filter(read_value(row.fields, "filter"), len(mine), filters) or _number_filter(len(mine))
                mine[name] = read_value(row.fields, "filtered_resps")
                found = _scores(row.fields)
            except (EvalError, ValueError):
                continue
            into = scores.setdefault(row.key, {})
            into.update({f"{metric},{name}": value for metric, value in found.items() if metric not in MORE})
    return lambda key: {"scores": scores.get(key, NOTHING), "kept": kept.get(key, NOTHING)}


def pick_records(records: Iterator[Record | Problem], picks: Picks | None) -> Iterator[Record | Problem]:
    """The records of some documents: besides them the first, which tells how to read the others, and unreadable ones.

    >>> rows = [Record(line, 0, b'{"doc_id": %d}' % line) for line in range(5)]
    >>> [one.line for one in pick_records(iter(rows), Picks(lambda number, name: number > 2, last=3))]
    [0, 3]
    """
    if picks is None:
        return records
    last = inf if picks.last is None else picks.last
    near = takewhile(lambda at: at.line <= last, records)
    return (at for nth, at in enumerate(near) if not nth or _fits(at, picks))


def _fits(at: Record | Problem, picks: Picks) -> bool:
    if isinstance(at, Record) and picks.sought not in at.data:
        return False
    place = read_place(at.data) if isinstance(at, Record) else None
    if place is None:
        return True
    return picks.fits(place.doc_id, place.evalcore.get("id") if isinstance(place.evalcore, dict) else None)


def find_past(paths: Sequence[Path], doc_id: int) -> Mapping[str, Plain] | None:
    """Find ``scores`` and ``kept`` of one document; None if rows do not name their filter, which takes all rows."""
    rows: dict[Path, list[Record]] = {}
    sought = b"%d" % doc_id
    for path in paths:
        for at in read_records(path):
            if isinstance(at, Record) and sought not in at.data:
                continue
            place = read_place(at.data) if isinstance(at, Record) else None
            if isinstance(at, Problem) or place is None or not isinstance(place.filter, str):
                return None
            if place.doc_id == doc_id:
                rows.setdefault(path, []).append(at)
    return read_past(paths, (), lambda path: iter(rows.get(path, ())))(doc_id)


# --- rows as bytes --------------------------------------------------------------------------------------------------


class _Texts(Struct, gc=False, forbid_unknown_fields=True):
    arg_0: Raw
    arg_1: Raw = Raw(b"{}")


class _ScoreRow(Struct, gc=False, kw_only=True):
    """A row whose document stays as bytes; a subclass has its scores."""

    doc_id: int
    filter: str
    metrics: tuple[str, ...]
    doc: Raw
    arguments: Raw
    resps: Raw
    evalcore: dict[str, object] | None = None


class _AnswerRow(_ScoreRow, gc=False, kw_only=True):
    """A row whose requests and replies are to be hashed as well."""

    arguments: dict[str, _Texts]  # type: ignore[assignment]
    target: Raw = Raw(b"null")
    filtered_resps: Raw = Raw(b"null")


Some = Annotated[list[T], Meta(min_length=1)]
REPLIES = msgspec.json.Decoder(Some[Some[str | list[str | float | bool]]])
"""The replies of a row, at least one to each of its requests; the reader of documents takes others, or refuses them."""


class RawLog(Struct):
    """A log of which only scores are decoded, as dicts that are filled row by row.

    ``documents`` hashes the bytes of each document, ``asked`` those of its target and of what was asked, ``replies``
    those of its replies, ``kept`` those of what each filter left of them. ``last`` is the last line of each, ``lines``
    has that under each filter; ``own`` is what only evalcore writes, by filter and document.
    """

    documents: dict[int, int] = {}
    asked: dict[int, int] = {}
    replies: dict[int, int] = {}
    last: dict[int, int] = {}
    kept: dict[str, dict[int, int]] = {}
    lines: dict[str, dict[int, int]] = {}
    scores: dict[str, dict[str, dict[int, object]]] = {}
    own: dict[tuple[str, int], Mapping[str, object]] = {}


def read_raw(paths: Sequence[Path], *, answers: bool) -> RawLog | None:
    """Read the scores of a log, with ``answers`` also hashes of what was asked and answered.

    None if not every row can be read so, or rows of a document say different things.
    """
    log, form = RawLog(), _AnswerRow if answers else _ScoreRow
    metrics: tuple[str, ...] = ()
    decode = _make_decoder(form, metrics)
    try:
        for at in (at for path in paths for at in read_records(path)):
            if not isinstance(at, Record):
                return None
            row = decode(at.data)
            if row.metrics != metrics:
                metrics, decode = row.metrics, _make_decoder(form, row.metrics)
                row = decode(at.data)
            if not _add_row(log, row, at.line) or (isinstance(row, _AnswerRow) and not _add_answers(log, row)):
                return None
    except (ValueError, RecursionError):
        return None
    return log


@lru_cache(maxsize=64)
def _make_decoder(form: type[_ScoreRow], metrics: tuple[str, ...]) -> Callable[[bytes], _ScoreRow]:
    """Make the decoder of rows that list these metrics."""
    if not SCHEMA.isdisjoint(metrics) or len(set(metrics)) < len(metrics):
        raise ValueError("metrics that are called as other fields are")
    if len(metrics) > len(SCORES):
        raise ValueError("more metrics than there are names for")
    fields = [(name, object, UNSET) for name in SCORES[: len(metrics)]]
    names = dict(zip(SCORES, metrics, strict=False))
    made = msgspec.defstruct("_", fields, bases=(form,), rename=names, gc=False)
    return cast("Callable[[bytes], _ScoreRow]", msgspec.json.Decoder(made).decode)


def _add_row(log: RawLog, row: _ScoreRow, line: int) -> bool:
    """Add a row, if it is not the second of its document and filter, and has the document of the first."""
    key, name, own, doc = row.doc_id, row.filter, row.evalcore, hash(bytes(row.doc))
    lines = log.lines.get(name)
    if lines is None:
        lines = log.lines[name] = {}
        log.kept[name], log.scores[name] = {}, {}
    if log.documents.setdefault(key, doc) != doc or key in lines or not LEAST <= key <= GREATEST:
        return False
    REPLIES.decode(row.resps)
    lines[key] = log.last[key] = line
    scores = log.scores[name]
    for field, metric in zip(SCORES, row.metrics, strict=False):
        score = getattr(row, field)
        if score is not UNSET:
            scores.setdefault(metric, {})[key] = score
    if own:
        log.own[name, key] = own
        for part in filter(None, map(own.get, ("unscored", "noise"))):
            for metric in part if isinstance(part, dict) else ():
                scores.setdefault(metric, {})
    return not own or READ.isdisjoint(own)


def _add_answers(log: RawLog, row: _AnswerRow) -> bool:
    """Add what a row says was asked and answered, if it repeats what the first of its document says.

    Options of generations do not count.
    """
    key = row.doc_id
    texts = [bytes(part) for one in row.arguments.values() for part in (one.arg_0, one.arg_1)]
    asked = hash((bytes(row.target), *[text for text in texts if text[:1] != b"{"]))
    said = hash(bytes(row.resps))
    log.kept[row.filter][key] = hash(bytes(row.filtered_resps))
    return log.asked.setdefault(key, asked) == asked and log.replies.setdefault(key, said) == said


def _number_filter(nth: int) -> str:
    """Name the filter of a row that neither its log nor its task names."""
    return f"filter {nth + 1}" if nth else "none"


def _scores(fields: Plain) -> dict[str, object]:
    own = read_value(fields, "evalcore") if "evalcore" in fields else None
    found = read_row_scores(fields)
    return restore_nonfinite(found, own) if isinstance(own, dict) else found
