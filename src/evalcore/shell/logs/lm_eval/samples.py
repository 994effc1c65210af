"""Sample logs of lm-eval, lmms-eval and evalcore: each document once, whatever the number of its filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec
from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    Gold,
    LogLikelihood,
    OutputType,
    Reply,
    Request,
)
from evalcore.shell.data.doubled_keys import check_row
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.json_records import Record, locate_problem, read_records
from evalcore.shell.logs.lm_eval.forms import read_asked, read_target
from evalcore.shell.logs.lm_eval.golds import Targets, infer_gold, read_own_choices, read_own_gold, resolve_gold
from evalcore.shell.logs.lm_eval.past import pick_records
from evalcore.shell.logs.lm_eval.pools import Pages
from evalcore.shell.logs.lm_eval.requests import drop_padding, read_replies
from evalcore.shell.logs.lm_eval.rows import AskedRow
from evalcore.shell.logs.lm_eval.targets import Told, find_choices, is_open, learn_targets, settle_targets
from evalcore.shell.logs.log import NOTHING, Logged, Picks, Problem

MOST_FILTERS = 60
LARGEST = 1 << 62


class SampleLog(Struct, frozen=True, kw_only=True):
    """What is known of a task's sample log, or its shards, before it is read.

    ``filters`` are the filters of its task, () if unknown; ``past`` looks up what is logged for a document, if wanted;
    ``requests`` is whether documents include what was asked; ``picks`` are those that are read, if not all.
    """

    paths: tuple[Path, ...]
    output_type: OutputType
    config: Mapping[str, object] = NOTHING
    filters: tuple[str, ...] = ()
    past: Callable[[], Callable[[int], Mapping[str, Mapping[str, object]]]] | None = None
    records: Callable[[Path], Iterator[Record | Problem]] = read_records
    requests: bool = True
    picks: Picks | None = None


def read_samples(log: SampleLog) -> Iterator[Logged | Problem]:
    """Read the documents of a log in its order. Rows of further filters must repeat the replies of the first.

    Memory holds 16 bytes per document and the current line.
    """
    notes = _Notes(Pages(), Pages(), {name: at for at, name in enumerate(dict.fromkeys(log.filters))})
    past = log.past() if log.past is not None else None
    reading: Reading | None = None
    for path in log.paths:
        for at in pick_records(log.records(path), log.picks):
            if not isinstance(at, Record):
                yield at
                continue
            try:
                check_row(at.data, at.byte)
                row = read_asked(at.data, log.output_type, prompts=log.requests)
                if not _is_first(row, notes):
                    continue
                reading = learn_reading(log, row) if reading is None else reading
                made = build_logged(row, reading, log, at, path)
            except EvalError as wrong:
                yield locate_problem(path, at, wrong)
                continue
            yield made if past is None else msgspec.structs.replace(made, **past(row.key))
    yield from _uneven(notes, log) if log.picks is None else ()


# --- each document once ---------------------------------------------------------------------------------------------


class _Notes(Struct):
    """For each document a hash of its replies, and its filters so far as bits."""

    replies: Pages
    rows: Pages
    filters: dict[str, int]


def _is_first(row: AskedRow, notes: _Notes) -> bool:
    """Whether this is the first row of its document. Before 2025 rows did not name their filter."""
    key, before = row.key, notes.rows.get(row.key)
    if not -LARGEST < key < LARGEST:
        raise EvalError(f"expected the number of a document under doc_id, got {key}")
    bit = before.bit_length() if row.filter is None else notes.filters.setdefault(row.filter, len(notes.filters))
    if bit >= MOST_FILTERS:
        raise EvalError(f"expected at most {MOST_FILTERS} rows of a document, got more - at doc {key}")
    if before >> bit & 1 or (row.filter is None and bit and bit == len(notes.filters)):
        named = f" under {row.filter!r}" if row.filter is not None else ""
        raise EvalError(f"expected one row per document and filter, got a second one{named} - at doc {key}")
    mark = hash(row.raw)
    if before and notes.replies.get(key) != mark:
        raise EvalError(f"expected the replies that the first row of this document has, got others - at doc {key}")
    notes.rows.put(key, before | 1 << bit)
    if not before:
        notes.replies.put(key, mark)
    return not before


def _uneven(notes: _Notes, log: SampleLog) -> Iterator[Problem]:
    """Report a document with fewer rows than another: the log is truncated, or has a document twice."""
    rows = notes.rows.items()
    key, most = next(rows, (0, 0))
    other = next(((two, bits) for two, bits in rows if bits != most), None)
    if other is not None:
        counts = f"{most.bit_count()} rows of document {key} and {other[1].bit_count()} of document {other[0]}"
        told = f"expected as many rows of each document (one per filter), got {counts}"
        yield locate_problem(*_last_row(log, other[0]), EvalError(told))


def _last_row(log: SampleLog, key: int) -> tuple[Path, Record]:
    """Where the last row of a document is; the faulty log is read once more."""
    last = (log.paths[0], Record(1, 0, b""))
    for path in log.paths:
        for at in log.records(path):
            try:
                if isinstance(at, Record) and read_asked(at.data, log.output_type, prompts=False).key == key:
                    last = (path, at)
            except EvalError:
                continue
    return last


# --- documents ------------------------------------------------------------------------------------------------------


class Reading(Struct, frozen=True):
    """How to read targets: what is known of them and, if that leaves one open, what all rows settle."""

    known: Targets
    settled: Callable[[], Targets]


def learn_reading(log: SampleLog, row: AskedRow) -> Reading:
    """Learn from the first row of a log how its targets are written."""
    known = learn_targets(log.output_type, log.config, _doc(row.doc), row.requests)
    return Reading(known, cache(lambda: settle_targets(known, _told(log, known))))


def build_logged(row: AskedRow, reading: Reading, log: SampleLog, at: Record, path: Path) -> Logged:
    """Build the document of a row."""
    replies = drop_padding(read_replies(row), log.config)
    choices = _choices(row, reading.known, len(replies))
    plain = row.own is NOTHING
    return Logged(
        doc_id=row.key,
        doc=row.doc,
        gold=_gold(row, reading, choices, replies, at),
        choices=choices,
        requests=_each_request(row.requests, choices, len(replies)) if log.requests else (),
        replies=replies,
        id=None if plain or not isinstance(one := row.own.get("id"), int | str) else one,
        cluster=None if plain or not isinstance(one := row.own.get("cluster"), int | str) else one,
        line=at.line,
        path=path,
    )


def _each_request(requests: tuple[Request, ...], choices: Sequence[str], count: int) -> tuple[Request, ...]:
    """A request for each reply. Logs of 2023 have only the first; the others end in a choice, or are unknown."""
    if len(requests) == count or not requests:
        return requests
    first = requests[0]
    if not isinstance(first, LogLikelihood):
        return (*requests, *[first] * (count - len(requests)))
    known = len(choices) == count and first.continuation.endswith(choices[0])
    before = first.continuation.removesuffix(choices[0]) if known else ""
    ends = [before + one for one in choices] if known else [""] * count
    return (first, *(LogLikelihood(first.context, end) for end in ends[1:]))


def _gold(
    row: AskedRow, reading: Reading, choices: Sequence[str], replies: Sequence[Sequence[Reply]], at: Record
) -> Gold:
    """The gold: by the target, else by the document, else by the logged accuracy."""
    if row.own is not NOTHING and "gold" in row.own:
        return read_own_gold(row.own["gold"])
    targets = reading.known
    if targets.picked is not None:
        picked = targets.picked(_doc(row.doc))
        return picked if isinstance(picked, int) else None
    if targets.kind is None and is_open(targets, row.target, choices):
        targets = reading.settled()
    found = resolve_gold(targets, row.target, choices)
    one_end = not choices or len(replies) > len(row.requests) == 1
    if targets.output_type != MULTIPLE_CHOICE or (not one_end and (type(found) is int or type(found) is tuple)):
        return found
    scored = infer_gold(_values(replies), _accuracy(at))
    return found if scored is None else scored


def _choices(row: AskedRow, targets: Targets, replies: int) -> tuple[str, ...]:
    own = row.own.get("choices") if row.own is not NOTHING else None
    return find_choices(targets, row.requests, replies, lambda: _doc(row.doc)) if own is None else read_own_choices(own)


def _told(log: SampleLog, targets: Targets) -> Iterator[Told]:
    """The targets of all rows as they are written; unreadable rows are reported elsewhere."""
    for at in (at for path in log.paths for at in log.records(path)):
        if isinstance(at, Problem):
            continue
        try:
            if log.output_type == GENERATE_UNTIL:
                target = read_target(at.data)
                if target is not None:
                    yield Told(target)
                continue
            row = read_asked(at.data, log.output_type, prompts=False)
            if isinstance(row.target, str) and "gold" not in row.own:
                count = len(row.requests) if len(row.requests) > 1 else len(read_replies(row))
                yield Told(row.target, _choices(row, targets, count), partial(_verdict, row, at))
        except EvalError:
            continue


def _verdict(row: AskedRow, at: Record) -> tuple[int, bool] | None:
    """The choice of the model (in a tie the first, as in lm-eval), and whether the log calls it right."""
    try:
        replies, acc = read_replies(row), _accuracy(at)
    except EvalError:
        return None
    values = _values(replies)
    if len(values) != len(replies) or acc not in (0, 1):
        return None
    return max(range(len(values)), key=values.__getitem__), acc == 1


def _values(replies: Sequence[Sequence[Reply]]) -> list[float]:
    return [one[0][0] for one in replies if one and isinstance(one[0], tuple)]


def _accuracy(at: Record) -> object:
    return line.get("acc") if isinstance(line := decode_line(at.data, ""), dict) else None


def _doc(doc: bytes) -> dict[str, object]:
    return found if isinstance(found := decode_line(doc, "doc"), dict) else {}
