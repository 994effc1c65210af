"""A sample log as a table: its documents, and what was logged for each of them under each metric and filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Raw, Struct

from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, OutputType
from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.lm_eval.requests import asked_as
from evalcore.shell.logs.lm_eval.rows import (
    Row,
    keep_in_range,
    name_filter,
    read_sample_rows,
    read_value,
    restore_nonfinite,
    scores_of,
)
from evalcore.shell.logs.runs.identity import (
    Seen,
    cluster_reader,
    content_of,
    content_reader,
    excerpt_of,
    prompt_of,
    tabulate_documents,
)

__all__ = ["Cells", "LogTable", "read_log_table"]

Noise = tuple[float | None, int]
NOTHING: Mapping[str, object] = {}
MOST_REPLIES, MOST_NOISE = 2**53, 1e150
"""More than any run draws or any score varies; sums and squares of less stay finite."""


class Cells(Struct, frozen=True):
    """What a log says under one metric and filter: scores, why there is none, and the noise of scores."""

    scores: dict[int, object]
    unscored: dict[int, str]
    noise: dict[int, Noise]


class LogTable(Struct, frozen=True):
    """A log without its prompts and replies; ``filters`` are the documents that each filter has a row for."""

    documents: tuple[DocumentRow, ...]
    texts: Mapping[int, str]
    filters: Mapping[str, Mapping[int, int]]
    cells: Mapping[MetricKey, Cells]
    output_type: OutputType
    fields: frozenset[str] = frozenset()


class Reading(Struct, frozen=True):
    """What tells documents apart, what they belong to (None: what the log says), and the fields met on the way.

    ``named`` is whether ids and prompts count, too; ``texts`` whether a line of each document is kept for people.
    """

    content: Callable[[object, object], str]
    unit: Callable[[object], str] | None
    fields: set[str]
    named: bool = True
    texts: bool = True


def read_log_table(
    path: Path,
    filters: Sequence[str] = ("none",),
    cluster: str | None = None,
    match: Sequence[str] = (),
    *,
    files: Sequence[Path] = (),
    texts: bool = True,
) -> LogTable:
    """Read a log once, line by line. ``filters`` name the rows of a document in logs that do not name them.

    Documents with the same ``match`` fields are the same; without any, their ids, prompts and content count. ``files``
    are all of the log's where ``path`` is one of several. Without ``texts`` no line of a document is kept.
    """
    seen: dict[int, Seen] = {}
    lines: dict[str, dict[int, int]] = {}
    cells: dict[str, dict[str, Cells]] = {}
    kind: OutputType = GENERATE_UNTIL
    unit = cluster_reader(cluster) if cluster is not None else None
    reading = Reading(content_reader(match), unit, set(), not match, texts)
    for one in files or (path,):
        for row in read_sample_rows(one):
            if not seen:
                kind = asked_as(row.fields)
            try:
                name = _filter_of(row, filters, lines)
                own = _mapping(read_value(row.fields, "evalcore")) if "evalcore" in row.fields else NOTHING
                seen[row.key] = _document(row, seen.get(row.key), own, reading)
                lines.setdefault(name, {})[row.key] = row.line
                _note(row, own, cells.setdefault(name, {}))
            except EvalError as wrong:
                raise EvalError(f"{one}:{row.line}: {wrong} - at doc {row.key}") from wrong
    if not seen:
        raise EvalError(f"{path}: expected rows of a sample log, got an empty file")
    _refuse_lone_clusters(seen, lines, path, len(files) > 1)
    by_key = {MetricKey(metric, name): one for name, below in cells.items() for metric, one in below.items()}
    shown = {key: one.text for key, one in seen.items()} if texts else {}
    return LogTable(tabulate_documents(seen.items()), shown, lines, by_key, kind, frozenset(reading.fields))


def _filter_of(row: Row, filters: Sequence[str], lines: Mapping[str, Mapping[int, int]]) -> str:
    """The filter that a row is of, under which its document has no other."""
    named = read_value(row.fields, "filter")
    nth = 0 if isinstance(named, str) else sum(row.key in lines.get(name, ()) for name in filters)
    found = name_filter(named, nth, filters)
    if found is None or row.key in lines.get(found, ()):
        last = found or filters[-1]
        raise EvalError(
            f"expected one row per document and filter, got a second one under {last!r} (line {lines[last][row.key]})"
        )
    return found


def _document(row: Row, known: Seen | None, own: Mapping[str, object], reading: Reading) -> Seen:
    """The document of a row; under every filter it must be the same one."""
    given = row.fields.get("doc")
    raw = hash(bytes(given)) if isinstance(given, Raw) else 0
    if known is not None and raw and known.raw == raw:
        return known
    doc = read_value(row.fields, "doc")
    reading.fields.update(doc if isinstance(doc, dict) else ())
    target = read_value(row.fields, "target")
    content = reading.content(doc, target)
    if known is None:
        unit = _recorded_name(own, "cluster") if reading.unit is None else reading.unit(doc)
        text = excerpt_of(doc) if reading.texts else ""
        if not reading.named:
            return Seen(raw, content, text, unit)
        named, prompt = _recorded_name(own, "id"), prompt_of(read_value(row.fields, "arguments"))
        return Seen(raw, content, text, unit, named, prompt, content_of(None, target))
    if known.content != content:
        raise EvalError("expected the same document in all rows of this number, got another one")
    return known


def _recorded_name(own: Mapping[str, object], key: str) -> int | str | None:
    given = own.get(key)
    if given is None or (isinstance(given, int | str) and not isinstance(given, bool) and given != ""):
        return given
    raise EvalError(f"expected a number or a text under {key}, got {str(given)[:60]!r}")


def _note(row: Row, own: Mapping[str, object], cells: dict[str, Cells]) -> None:
    """Put what a row says about each metric where it belongs."""
    scores = scores_of(row.fields)
    for metric, score in (restore_nonfinite(scores, own) if "nonfinite" in own else scores).items():
        _cells(cells, metric).scores[row.key] = keep_in_range(score)
    if not own:
        return
    for metric, why in _mapping(own.get("unscored")).items():
        _cells(cells, metric).unscored[row.key] = str(why)
    for metric, pair in _mapping(own.get("noise")).items():
        _cells(cells, metric).noise[row.key] = _noise(pair)


def _cells(cells: dict[str, Cells], metric: str) -> Cells:
    found = cells.get(metric)
    return found if found is not None else cells.setdefault(metric, Cells({}, {}, {}))


def _noise(pair: object) -> Noise:
    match pair:
        case [float() | int() | None as variance, int(replies)] if 0 <= replies <= MOST_REPLIES:
            if variance is None or 0 <= variance <= MOST_NOISE:
                return variance, replies
    raise EvalError(f"expected the variance of a score and its replies under noise, got {str(pair)[:60]}")


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else NOTHING


def _refuse_lone_clusters(
    seen: Mapping[int, Seen], lines: Mapping[str, Mapping[int, int]], path: Path, several: bool
) -> None:
    """Clusters are those of all documents or of none; where there are several files, its number tells a document."""
    lone = [key for key, one in seen.items() if one.cluster is None]
    if lone and len(lone) < len(seen):
        line = next(rows[lone[0]] for rows in lines.values() if lone[0] in rows)
        where = f"{path.parent}" if several else f"{path}:{line}"
        many = f"{len(lone)} of {len(seen)}"
        raise EvalError(f"{where}: expected a cluster for every document, {many} have none - at doc {lone[0]}")
