"""A sample log as a table: its documents, and what was logged for each under each metric and filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Raw

from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.array import ColumnRecord
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict
from evalcore.core.records.request import GENERATE_UNTIL, Generate, OutputType
from evalcore.core.records.task import MetricKey
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.lm_eval.requests import guess_output_type
from evalcore.shell.logs.lm_eval.rows import (
    Row,
    keep_in_range,
    name_filter,
    read_row_scores,
    read_sample_rows,
    read_value,
    restore_nonfinite,
)
from evalcore.shell.logs.log import NOTHING, Logged
from evalcore.shell.logs.runs.identity import (
    Look,
    Matching,
    Noticed,
    encode_sorted,
    hash_arguments,
    hash_requests,
    list_options,
    make_look,
    refuse_lone_clusters,
    tabulate_documents,
)

WHO_THEY_ARE = Matching()
RECORDED_HASH = "prompt_hash "
"""Begins what stands for a prompt that only its logged hash tells; other hashes are not made as it is."""
Noise = tuple[float | None, int]
_Notes = tuple[dict[int, object], dict[int, str], dict[int, Noise]]
"""The cells of a log that is being read."""

MOST_REPLIES, MOST_NOISE = 2**53, 1e150
"""Beyond any run's replies and any score's variance; sums and squares of less stay finite."""


class Cells(ColumnRecord, frozen=True, eq=True):
    """The log under one metric and filter: scores, reasons for missing ones, and the noise of scores."""

    scores: Mapping[int, object]
    unscored: Mapping[int, str]
    noise: Mapping[int, Noise]


class LogTable(ColumnRecord, frozen=True, eq=True):
    """A log without its prompts and replies; ``filters`` has the documents with a row under each filter.

    ``options`` are all that its requests were made with, each once.
    """

    documents: tuple[DocumentRow, ...]
    texts: Mapping[int, str]
    filters: Mapping[str, Mapping[int, int]]
    cells: Mapping[MetricKey, Cells]
    output_type: OutputType
    fields: frozenset[str] = frozenset()
    options: tuple[Mapping[str, object], ...] = ()


def read_log_table(
    files: Sequence[Path], filters: Sequence[str] = ("none",), matching: Matching = WHO_THEY_ARE
) -> LogTable:
    """Read a log, or its shards, once, line by line.

    ``filters`` name the rows of a document in logs that do not name them.
    """
    seen: dict[int, Noticed] = {}
    lines: dict[str, dict[int, int]] = {}
    cells: dict[str, dict[str, _Notes]] = {}
    fields: set[str] = set()
    options: dict[bytes, Mapping[str, object]] = {}
    kind: OutputType = GENERATE_UNTIL
    look = make_look(matching)
    for path in files:
        for row in read_sample_rows(path):
            if not seen:
                kind = guess_output_type(row.fields)
            try:
                name = _filter_of(row, filters, lines)
                own = _mapping(read_value(row.fields, "evalcore")) if "evalcore" in row.fields else NOTHING
                seen[row.key] = _document(row, seen.get(row.key), own, look, (fields, options))
                lines.setdefault(name, {})[row.key] = row.line
                _note(row, own, cells.setdefault(name, {}))
            except EvalError as wrong:
                raise EvalError(f"{path}:{row.line}: {wrong} - at doc {row.key}") from wrong
    if not seen:
        raise EvalError(f"{files[0]}: expected rows of a sample log, got an empty file")
    first_line = partial(_first_line, lines)
    refuse_lone_clusters(seen, first_line, files[0], several=len(files) > 1)
    by_key = {MetricKey(metric, name): Cells(*one) for name, below in cells.items() for metric, one in below.items()}
    rows = {name: FrozenDict(found) for name, found in lines.items()}
    shown = {key: one.text for key, one in seen.items()} if matching.texts else {}
    asked = tuple(map(freeze_dict, options.values()))
    return LogTable(tabulate_documents(seen.items()), shown, rows, by_key, kind, frozenset(fields), asked)


def tabulate_log(rows: Iterable[Logged], written: frozenset[str], path: Path, matching: Matching) -> LogTable:
    """Tabulate the documents of any log, without scores and without the fields that the model or a scorer wrote.

    Documents are identified as if the log had been written as a sample log.
    """
    seen: dict[int, Noticed] = {}
    lines: dict[int, int] = {}
    fields: set[str] = set()
    options: dict[bytes, Mapping[str, object]] = {}
    look = make_look(matching)
    for one in rows:
        options |= {encode_sorted(dict(ask.options)): ask.options for ask in one.requests if isinstance(ask, Generate)}
        doc = drop_written(one, written)
        fields.update(doc if isinstance(doc, dict) else ())
        prompt = partial(hash_requests, one.requests)
        seen[one.doc_id] = look.see(doc, write_target(one.gold), id=one.id, cluster=one.cluster, prompt=prompt)
        lines[one.doc_id] = one.line
    refuse_lone_clusters(seen, lines.__getitem__, path)
    shown = {key: one.text for key, one in seen.items()} if matching.texts else {}
    asked = tuple(map(freeze_dict, options.values()))
    return LogTable(tabulate_documents(seen.items()), shown, {}, {}, GENERATE_UNTIL, frozenset(fields), asked)


def drop_written(one: Logged, written: frozenset[str]) -> object:
    """Drop the fields of a document that the model or a scorer wrote.

    >>> drop_written(Logged(doc_id=0, doc=b'{"q": "?", "reply": "!"}', gold=None), frozenset(["reply"]))
    {'q': '?'}
    """
    doc = decode_line(one.doc, f"doc {one.doc_id}")
    return {name: cell for name, cell in doc.items() if name not in written} if isinstance(doc, dict) else doc


def write_target(gold: object) -> str:
    """Write a gold as the target of a sample log.

    >>> write_target(("a", "b")), write_target(None)
    ("['a', 'b']", 'None')
    """
    return str(thaw(gold))


def _first_line(lines: Mapping[str, Mapping[int, int]], key: int) -> int:
    return next(rows[key] for rows in lines.values() if key in rows)


def _filter_of(row: Row, filters: Sequence[str], lines: Mapping[str, Mapping[int, int]]) -> str:
    """The filter of a row; a second row of its document under it is an error."""
    named = read_value(row.fields, "filter")
    nth = 0 if isinstance(named, str) else sum(row.key in lines.get(name, ()) for name in filters)
    found = name_filter(named, nth, filters)
    if found is None or row.key in lines.get(found, ()):
        last = found or filters[-1]
        raise EvalError(
            f"expected one row per document and filter, got a second one under {last!r} (line {lines[last][row.key]})"
        )
    return found


Gathered = tuple[set[str], dict[bytes, Mapping[str, object]]]
"""The fields of documents and the options of requests, as they are read."""


def _document(row: Row, known: Noticed | None, own: Mapping[str, object], look: Look, gathered: Gathered) -> Noticed:
    """The document of a row, which must be the same under every filter."""
    given = row.fields.get("doc")
    raw = hash(bytes(given)) if isinstance(given, Raw) else 0
    if known is not None and raw and known.raw == raw:
        return known
    doc, target = read_value(row.fields, "doc"), read_value(row.fields, "target")
    gathered[0].update(doc if isinstance(doc, dict) else ())
    if known is None:
        return look.see(
            doc,
            target,
            id=_recorded_name(own, "id") if look.named else None,
            cluster=_recorded_name(own, "cluster") if look.unit is None else None,
            prompt=partial(_read_prompt, row, gathered[1]),
            raw=raw,
        )
    if known.content != look.content(doc, target):
        raise EvalError("expected the same document in all rows of this number, got another one")
    return known


def _read_prompt(row: Row, options: dict[bytes, Mapping[str, object]]) -> str:
    """Hash what was asked, and note by which options; the hash that the log has if it does not say what was asked."""
    asked = read_value(row.fields, "arguments")
    options |= {encode_sorted(one): one for one in list_options(asked)}
    if asked is not None:
        return hash_arguments(asked)
    recorded = read_value(row.fields, "prompt_hash")
    return f"{RECORDED_HASH}{recorded}" if isinstance(recorded, str) and recorded else ""


def _recorded_name(own: Mapping[str, object], key: str) -> int | str | None:
    given = own.get(key)
    if given is None or (isinstance(given, int | str) and not isinstance(given, bool) and given != ""):
        return given
    raise EvalError(f"expected a number or a text under {key}, got {str(given)[:60]!r}")


def _note(row: Row, own: Mapping[str, object], cells: dict[str, _Notes]) -> None:
    """Note what a row says about each metric."""
    scores = read_row_scores(row.fields)
    for metric, score in (restore_nonfinite(scores, own) if "nonfinite" in own else scores).items():
        _notes(cells, metric)[0][row.key] = keep_in_range(score)
    if not own:
        return
    for metric, why in _mapping(own.get("unscored")).items():
        _notes(cells, metric)[1][row.key] = str(why)
    for metric, pair in _mapping(own.get("noise")).items():
        _notes(cells, metric)[2][row.key] = _noise(pair)


def _notes(cells: dict[str, _Notes], metric: str) -> _Notes:
    found = cells.get(metric)
    return found if found is not None else cells.setdefault(metric, ({}, {}, {}))


def _noise(pair: object) -> Noise:
    match pair:
        case [float() | int() | None as variance, int(replies)] if 0 <= replies <= MOST_REPLIES:
            if variance is None or 0 <= variance <= MOST_NOISE:
                return variance, replies
    raise EvalError(f"expected the variance of a score and its replies under noise, got {str(pair)[:60]}")


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else NOTHING
