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
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.past import RawLog, read_raw
from evalcore.shell.logs.lm_eval.requests import guess_output_type
from evalcore.shell.logs.lm_eval.rows import (
    Row,
    name_filter,
    read_row,
    read_sample_rows,
    read_value,
)
from evalcore.shell.logs.log import NOTHING, AnswerHashes, Logged
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
from evalcore.shell.logs.runs.scores import Cells, Notes, as_mapping, keep_scores, note_own, note_scores

WHO_THEY_ARE = Matching()
RECORDED_HASH = "prompt_hash "
"""Begins what stands for a prompt that only its logged hash tells; other hashes are not made as it is."""


class LogTable(ColumnRecord, frozen=True, eq=True):
    """A log without its prompts and replies; ``filters`` has the documents with a row under each filter.

    ``options`` are all that its requests were made with, each once. ``hashes`` are those of the bytes of answers, where
    documents are known by theirs.
    """

    documents: tuple[DocumentRow, ...]
    texts: Mapping[int, str]
    filters: Mapping[str, Mapping[int, int]]
    cells: Mapping[MetricKey, Cells]
    output_type: OutputType
    fields: frozenset[str] = frozenset()
    options: tuple[Mapping[str, object], ...] = ()
    hashes: AnswerHashes | None = None


def read_log_table(
    files: Sequence[Path], filters: Sequence[str] = ("none",), matching: Matching = WHO_THEY_ARE
) -> LogTable:
    """Read a log, or its shards, once, line by line.

    ``filters`` name the rows of a document in logs that do not name them.
    """
    raw = read_raw(files, answers=matching.known_by == "bytes") if matching.known_by != "content" else None
    table = _tabulate_raw(raw, files) if raw is not None else None
    return table or _read_table(files, filters, matching)


def _tabulate_raw(log: RawLog, files: Sequence[Path]) -> LogTable | None:
    """The table of a log whose documents are known by their bytes; None if something is wrong, to be found by row."""
    row = next((read_row(one.data, 1, "") for one in read_records(files[0]) if isinstance(one, Record)), None)
    cells = {name: {metric: keep_scores(one) for metric, one in below.items()} for name, below in log.scores.items()}
    ids: dict[int, int | str | None] = {}
    clusters: dict[int, int | str | None] = {}
    try:
        for (name, key), own in log.own.items():
            note_own(key, own, cells[name])
            ids.setdefault(key, _recorded_name(own, "id"))
            clusters.setdefault(key, _recorded_name(own, "cluster"))
    except EvalError:
        return None
    lone = {clusters.get(key) is None for key in log.documents}
    if row is None or len(lone) > 1 or any(len(one) < len(log.documents) for one in log.lines.values()):
        return None
    said = {key: f"{one} {log.asked[key]}" for key, one in log.documents.items()} if log.asked else {}
    documents = (
        DocumentRow(key, ids.get(key), clusters.get(key), said.get(key, ""), 0) for key in sorted(log.documents)
    )
    by_key = {MetricKey(metric, name): Cells(*one) for name, below in cells.items() for metric, one in below.items()}
    lines = {name: FrozenDict(found) for name, found in log.lines.items()}
    kept = FrozenDict({name: FrozenDict(one) for name, one in log.kept.items()})
    hashes = AnswerHashes(FrozenDict(log.replies), kept, FrozenDict(log.last))
    return LogTable(tuple(documents), {}, lines, by_key, guess_output_type(row.fields), hashes=hashes)


def _read_table(files: Sequence[Path], filters: Sequence[str], matching: Matching) -> LogTable:
    seen: dict[int, Noticed] = {}
    lines: dict[str, dict[int, int]] = {}
    cells: dict[str, dict[str, Notes]] = {}
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
                own = as_mapping(read_value(row.fields, "evalcore")) if "evalcore" in row.fields else NOTHING
                seen[row.key] = _document(row, seen.get(row.key), own, look, (fields, options))
                lines.setdefault(name, {})[row.key] = row.line
                note_scores(row, own, cells.setdefault(name, {}))
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
