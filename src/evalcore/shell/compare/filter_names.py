"""Filters of two runs that go by other names: those of the second under the names of the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.runs.run_record import Recorded


def parse_filters(given: Iterable[str]) -> Mapping[str, str]:
    """Parse ``first=second``: the filters of the second of two runs, each with its name in the first.

    >>> parse_filters(["strict-match=strict"]), rename_filter(MetricKey("acc", "strict"), {"strict": "strict-match"})
    ({'strict': 'strict-match'}, MetricKey(metric='acc', filter='strict-match'))
    >>> parse_filters(["strict"])
    Traceback (most recent call last):
    evalcore.EvalError: expected --match-filter FIRST=SECOND, each name once, such as strict-match=strict, got 'strict'
    """
    names: dict[str, str] = {}
    for text in given:
        first, _, second = (part.strip() for part in text.partition("="))
        if not (first and second) or first in names.values() or second in names:
            told = "expected --match-filter FIRST=SECOND, each name once, such as strict-match=strict"
            raise EvalError(f"{told}, got {text!r}")
        names[second] = first
    return names


def rename_filter(key: MetricKey, names: Mapping[str, str]) -> MetricKey | None:
    """A number of the second run under its name in the first; None if another takes its name."""
    if key.filter in names.values() and key.filter not in names:
        return None
    return key._replace(filter=names.get(key.filter, key.filter))


def match_filters(runs: Sequence[Recorded], given: Sequence[str]) -> tuple[Recorded, ...]:
    """Two runs, filters of the second under the names that they have in the first."""
    names = parse_filters(given)
    if not names:
        return tuple(runs)
    if len(runs) != 2:
        raise EvalError(f"--match-filter maps filters of the first run to those of the second; got {len(runs)} runs")
    for run, wanted in zip(runs, (names.values(), names), strict=True):
        known = {column.key.filter for one in run.side.scored for column in one.columns}
        require_known("filter", wanted, known, f" - at {run.path}")
    return runs[0], _rename_filters(runs[1], names)


def _rename_filters(run: Recorded, names: Mapping[str, str]) -> Recorded:
    sources = {
        task: replace(one, unnamed=frozenset(names.get(name, name) for name in one.unnamed))
        for task, one in run.side.sources.items()
    }
    scored = tuple(_rename_columns(one, names) for one in run.side.scored)
    own = {column.key.filter for one in run.side.scored for column in one.columns}
    told = (
        *(f"its filter {old} is compared as {new}" for old, new in names.items()),
        *(f"its own filter {one} is not compared" for one in names.values() if one in own and one not in names),
    )
    side = replace(run.side, scored=scored, sources=sources)
    return replace(run, side=side, filters=FrozenDict(names), warnings=(*run.warnings, *told))


def _rename_columns(scored: Scored, names: Mapping[str, str]) -> Scored:
    keys = [(one, rename_filter(one.key, names)) for one in scored.columns]
    pipelines = [(one, rename_filter(MetricKey("", one.name), names)) for one in scored.task.filters]
    filters = tuple(replace(one, name=key.filter) for one, key in pipelines if key is not None)
    columns = tuple(replace(one, key=key) for one, key in keys if key is not None)
    return replace(scored, task=replace(scored.task, filters=filters), columns=columns)
