"""Results and samples as flat records with a fixed schema, and those records as Arrow tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.task import MetricKey
from evalcore.shell.output.files.sample_frames import (
    SAMPLES,
    Plain,
    escape_surrogates,
    find_metric_kinds,
    flatten_sample,
    name_metric_columns,
    to_finite,
)

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

RESULTS: Mapping[str, str] = {
    "task": "text",
    "alias": "text",
    "is_group": "flag",
    "depth": "count",
    "version": "text",
    "num_fewshot": "count",
    "filter": "text",
    "metric": "text",
    "higher_is_better": "flag",
    "value": "number",
    "stderr": "number",
    "ci_low": "number",
    "ci_high": "number",
    "n": "count",
    "n_scored": "count",
    "n_unscorable": "count",
    "n_failed": "count",
    "lowest": "number",
    "highest": "number",
    "reason": "text",
    "signature": "text",
}
"""The columns of results: those of ``--csv``, and what lm-eval's files have no place for."""

TYPES: Mapping[str, str] = {
    "text": "string",
    "count": "int64",
    "number": "float64",
    "flag": "bool_",
    "texts": "string",
    "numbers": "float64",
}
LISTS = ("texts", "numbers")
INDENT = re.compile(r"^ *- ")
"""Older files of lm-eval have the indentation of its table in the alias."""

BATCH = 1000
EXTRA = "parquet"


def list_results(results: Plain) -> list[dict[str, object]]:
    """One record per task or group, metric and filter, parents before children; null for what a file does not say.

    >>> [row] = list_results({"results": {"a": {"acc,none": 0.5, "acc_stderr,none": "N/A", "alias": " - A"}}})
    >>> row["task"], row["alias"], row["metric"], row["filter"], row["value"], row["stderr"]
    ('a', 'A', 'acc', 'none', 0.5, None)
    """
    rows = {**_find_part(results, "groups"), **_find_part(results, "results")}
    return [
        record
        for name, depth in _list_places(results, rows)
        for record in _list_numbers(results, name, depth, rows.get(name))
    ]


def _list_numbers(results: Plain, name: str, depth: int, given: object) -> list[dict[str, object]]:
    """The numbers of one task or group. A task without any has one record without a metric, a heading none."""
    row, version = _find_part(given), _find_part(results, "versions").get(name)
    head = dict.fromkeys(RESULTS) | {
        "task": name,
        "alias": INDENT.sub("", str(row.get("alias") or name)),
        "is_group": name in _find_part(results, "groups") or bool(_find_part(results, "group_subtasks").get(name)),
        "depth": depth,
        "version": None if version in (None, "N/A") else str(version),
        "num_fewshot": _read_count(_find_part(results, "n-shot").get(name)),
        "reason": "not run" if given is None else None,
    }
    keys = [key for text in row if (key := MetricKey.parse(text)) is not None]
    if not keys:
        return [] if head["is_group"] else [head]
    return [head | _read_number(results, name, row, key) for key in keys]


def _read_number(results: Plain, name: str, row: Plain, key: MetricKey) -> dict[str, object]:
    known = _find_part(results, "evalcore", "estimates", name, str(key))
    documents = _find_part(results, "n-samples", name).get("effective")
    counts = (_find_part(row, "sample_count").get(str(key)), row.get("sample_len"), row.get("samples"), documents)
    ci = known.get("ci")
    low, high = ci if isinstance(ci, list | tuple) and len(ci) == 2 else (None, None)
    higher = _find_part(results, "higher_is_better", name).get(key.metric)
    return {
        "filter": key.filter,
        "metric": key.metric,
        "higher_is_better": higher if isinstance(higher, bool) else None,
        "value": to_finite(row[str(key)]),
        "stderr": to_finite(row.get(key.stderr)),
        "ci_low": to_finite(low),
        "ci_high": to_finite(high),
        "n": _read_count(known["n"] if "n" in known else next((one for one in counts if one is not None), None)),
        **{count: _read_count(known.get(count)) for count in ("n_scored", "n_unscorable", "n_failed")},
        **{bound: to_finite(known.get(bound)) for bound in ("lowest", "highest")},
        **{text: str(known[text]) if known.get(text) else None for text in ("reason", "signature")},
    }


def _list_places(results: Plain, rows: Plain) -> Iterator[tuple[str, int]]:
    """Every name with its depth in the tree, each once; names in no tree, or in a circle, come last."""
    groups = _find_part(results, "group_subtasks")
    below = {name: [str(one) for one in kids] for name, kids in groups.items() if isinstance(kids, list) and kids}
    children = {child for kids in below.values() for child in kids}
    stack = [(name, 0) for name in reversed(below) if name not in children]
    seen: set[str] = set()
    while stack:
        name, depth = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        stack.extend((child, depth + 1) for child in reversed(below.get(name, [])))
        yield name, depth
    yield from ((name, 0) for name in rows if name not in seen)


def _find_part(value: object, *keys: str) -> Plain:
    """A mapping inside another, empty if it is not there."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _read_count(value: object) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


# --- Arrow ----------------------------------------------------------------------------------------------------------


def build_schema(columns: Mapping[str, str]) -> pyarrow.Schema:
    """The Arrow schema of these columns; it says which evalcore made it."""
    from evalcore.core.aggregate.signature import VERSION

    arrow = require("pyarrow", EXTRA)
    kinds = {kind: getattr(arrow, name)() for kind, name in TYPES.items()}
    kinds |= {kind: arrow.list_(kinds[kind]) for kind in LISTS}
    return arrow.schema([(name, kinds[kind]) for name, kind in columns.items()], metadata={"evalcore": VERSION})


def build_results_table(results: Plain) -> pyarrow.Table:
    """Results as a table, of the same columns and types whatever is in it."""
    records = (
        {name: escape_surrogates(one) if isinstance(one, str) else one for name, one in row.items()}
        for row in list_results(results)
    )
    return _build_table(list(records), RESULTS)


def build_samples_table(rows: Iterable[Plain]) -> pyarrow.Table:
    """Sample rows as a table: the fixed columns, then one per metric, of numbers or, where some are none, of JSON."""
    known = list(rows)
    tables = list(build_batches(known, find_metric_kinds(known)))
    return require("pyarrow", EXTRA).concat_tables(tables)


def build_batches(rows: Iterable[Plain], kinds: Mapping[str, str]) -> Iterator[pyarrow.Table]:
    """Tables of some rows each, all of one schema; a table of none where there are no rows."""
    named = name_metric_columns(kinds)
    columns = {**SAMPLES, **{named[metric]: kind for metric, kind in kinds.items()}}
    left, some = iter(rows), False
    while batch := list(islice(left, BATCH)):
        some = True
        yield _build_table([flatten_sample(row, kinds, named) for row in batch], columns)
    if not some:
        yield build_schema(columns).empty_table()


def _build_table(records: Sequence[Mapping[str, object]], columns: Mapping[str, str]) -> pyarrow.Table:
    arrow, schema = require("pyarrow", EXTRA), build_schema(columns)
    try:
        return arrow.Table.from_pylist(list(records), schema=schema)
    except (arrow.ArrowException, OverflowError) as wrong:
        raise EvalError(f"expected data that an Arrow table can hold, got {str(wrong).splitlines()[0]}") from wrong
