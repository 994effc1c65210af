"""What a sample log says came of each document: its scores and the filtered replies, under every filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.rows import read_row, read_value, scores_of
from evalcore.shell.logs.log import Problem
from evalcore.shell.logs.nonfinite import restore_nonfinite

__all__ = ["find_past", "read_past"]

Plain = Mapping[str, object]
Records = Callable[[Path], Iterator[Record | Problem]]
NOTHING: Plain = {}
MORE = frozenset({"input", "token_counts", "submission"})
"""What lmms-eval writes besides scores."""


def read_past(
    paths: Sequence[Path], filters: Sequence[str], records: Records = read_records
) -> Callable[[int], Mapping[str, Plain]]:
    """A look-up of ``scores`` (by ``metric,filter``) and ``kept`` (by filter) for each document.

    Rows that cannot be read are left to the reader of documents, which tells of them.
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
                name = _filter(read_value(row.fields, "filter"), len(mine), filters)
                mine[name] = read_value(row.fields, "filtered_resps")
                found = _scores(row.fields)
            except (EvalError, ValueError):
                continue
            into = scores.setdefault(row.key, {})
            into.update({f"{metric},{name}": value for metric, value in found.items() if metric not in MORE})
    return lambda key: {"scores": scores.get(key, NOTHING), "kept": kept.get(key, NOTHING)}


class _Place(Struct, gc=False):
    """What tells the place of a row: its document and its filter."""

    doc_id: int
    filter: str | None = None


PLACE = msgspec.json.Decoder(_Place)


def find_past(paths: Sequence[Path], doc_id: int) -> Mapping[str, Plain] | None:
    """``scores`` and ``kept`` of one document; None if rows do not name their filter, which takes the log."""
    rows: dict[Path, list[Record]] = {}
    for path in paths:
        for at in read_records(path):
            try:
                place = None if isinstance(at, Problem) else PLACE.decode(at.data)
            except (ValueError, RecursionError):
                place = None
            if isinstance(at, Problem) or place is None or place.filter is None:
                return None
            if place.doc_id == doc_id:
                rows.setdefault(path, []).append(at)
    return read_past(paths, (), lambda path: iter(rows.get(path, ())))(doc_id)


def _filter(named: object, at: int, filters: Sequence[str]) -> str:
    """The filter of a row; a row that does not name its own has the next one."""
    if isinstance(named, str):
        return named
    return filters[at] if at < len(filters) else "none" if not at else f"filter {at + 1}"


def _scores(fields: Plain) -> dict[str, object]:
    own = read_value(fields, "evalcore") if "evalcore" in fields else None
    found = scores_of(fields)
    return restore_nonfinite(found, own) if isinstance(own, dict) else found
