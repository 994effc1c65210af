"""The logged scores and filtered replies of each document, under every filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.logs.json_records import Record, read_records
from evalcore.shell.logs.lm_eval.forms import read_place
from evalcore.shell.logs.lm_eval.rows import name_filter, read_row, read_row_scores, read_value, restore_nonfinite
from evalcore.shell.logs.log import NOTHING, Problem

Plain = Mapping[str, object]
Records = Callable[[Path], Iterator[Record | Problem]]
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


def find_past(paths: Sequence[Path], doc_id: int) -> Mapping[str, Plain] | None:
    """Find ``scores`` and ``kept`` of one document; None if rows do not name their filter, which takes all rows."""
    rows: dict[Path, list[Record]] = {}
    for path in paths:
        for at in read_records(path):
            place = read_place(at.data) if isinstance(at, Record) else None
            if isinstance(at, Problem) or place is None or not isinstance(place.filter, str):
                return None
            if place.doc_id == doc_id:
                rows.setdefault(path, []).append(at)
    return read_past(paths, (), lambda path: iter(rows.get(path, ())))(doc_id)


def _number_filter(nth: int) -> str:
    """Name the filter of a row that neither its log nor its task names."""
    return f"filter {nth + 1}" if nth else "none"


def _scores(fields: Plain) -> dict[str, object]:
    own = read_value(fields, "evalcore") if "evalcore" in fields else None
    found = read_row_scores(fields)
    return restore_nonfinite(found, own) if isinstance(own, dict) else found
