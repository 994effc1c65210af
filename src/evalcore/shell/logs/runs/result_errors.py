"""What a results file, evalcore's or lm-eval's, says of the error of each number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf

from evalcore.core.compare.power import Known
from evalcore.core.records.task import MetricKey
from evalcore.core.repeats.reducers import find_reducer
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.logs.json_records import find_part

Fields = Mapping[str, object]

ALIKE = "all documents have the same score, which does not say how much others would vary"
MOST, MOST_DOCUMENTS = 1e150, 2**53
"""Beyond any number of a run; squares and sums of less stay finite."""

NO_ERROR = "the file has no standard error of it"
NO_COUNT = "the file does not say on how many documents it rests"
ONE = "it rests on one document"


def list_known(results: Fields, tables: Tables = EVALCORE) -> tuple[Known, ...]:
    """List every number of a results file in the order of its groups, parents before children.

    >>> row = {"acc,none": 0.5, "acc_stderr,none": 0.05, "alias": "t", "sample_len": 101}
    >>> [(one.name, str(one.key), one.n, one.stderr) for one in list_known({"results": {"t": row}})]
    [('t', 'acc,none', 101, 0.05)]
    """
    rows = find_part(results, "results")
    below = {name: _names(names) for name, names in find_part(results, "group_subtasks").items()}
    told = find_part(results, "evalcore", "estimates")
    places = list(_places(rows, {name: names for name, names in below.items() if names}))
    return tuple(
        _known(name, depth, key, find_part(rows, name), find_part(told, name, str(key)), results, tables)
        for name, depth in places
        for key in map(MetricKey.parse, find_part(rows, name))
        if key is not None
    )


def _places(rows: Fields, below: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, int]]:
    """Each task and group once, at its first place."""
    children = {name for names in below.values() for name in names}
    seen: set[str] = set()
    stack = [(name, 0) for name in reversed([*below, *rows]) if name not in children]
    while stack:
        name, depth = stack.pop()
        if name not in seen:
            seen.add(name)
            stack.extend((child, depth + 1) for child in reversed(below.get(name, ())))
            if name in rows:
                yield name, depth
    yield from ((name, 0) for name in rows if name not in seen)


def _known(name: str, depth: int, key: MetricKey, row: Fields, told: Fields, results: Fields, tables: Tables) -> Known:
    # A group's count of documents is that of each of its metrics, which not all of its tasks may have.
    own = _count(find_part(row, "sample_count").get(str(key)))
    n = _count(told.get("n")) or own or _size(name, results)
    clusters = _count(told.get("clusters"))
    stderr = _number(told.get("stderr", row.get(key.stderr)))
    value = row.get(str(key))
    share = _is_share(key.metric.partition("@")[0], value, stderr, clusters or n, tables, told.get("bounds"))
    return Known(
        name=name,
        key=key,
        depth=depth,
        group=bool(_names(find_part(results, "group_subtasks").get(name))),
        n=n,
        units=clusters or n,
        stderr=stderr,
        sampling=_number(told.get("sampling_stderr")),
        repeats=_number(told.get("repeats")),
        fewest=_fewest(told.get("signature"), _number(told.get("repeats")), tables),
        df=_number(told.get("df")),
        share=share,
        value=_number(value) if share else None,
        coarseness=_compare_spread(value, stderr, clusters or n) if share else 0.0,
        reason=_reason(told, n, stderr),
    )


def _is_share(
    metric: str, value: object, stderr: float | None, units: int, tables: Tables, declared: object = None
) -> bool:
    """Whether a number averages scores between 0 and 1, as far as declared bounds, its value and its error tell."""
    if isinstance(declared, list | tuple) and list(declared) != [0, 1]:
        return False
    table = next((tables.metrics[kind] for kind in sorted(tables.metrics) if metric in tables.metrics[kind]), None)
    bounded = table is None or tables.aggregations[table[metric].aggregation].bounds == (0.0, 1.0)
    if not bounded or not isinstance(value, int | float) or not 0 <= value <= 1 or stderr is None:
        return False
    # No such scores vary more than 0s and 1s do; twice that leaves room for groups of very uneven tasks.
    return stderr == 0 or _compare_spread(value, stderr, units) <= 4


def _compare_spread(value: object, stderr: float | None, units: int) -> float:
    """The variance of a number's units, relative to that of 0s and 1s with this mean; infinite where these have none.

    >>> _compare_spread(0.5, 0.5 / 3, 10), _compare_spread(1.0, 0.0, 10)
    (1.0, 0.0)
    """
    if not stderr or not isinstance(value, int | float):
        return 0.0
    return stderr**2 * (units - 1) / (value * (1 - value)) if 0 < value < 1 else inf


def _reason(told: Fields, n: int, stderr: float | None) -> str:
    if stderr is None:
        given = told.get("reason")
        return given if isinstance(given, str) and given else ONE if n == 1 else NO_ERROR
    return NO_COUNT if not n else ONE if n == 1 else "" if stderr else ALIKE


def _fewest(signature: object, repeats: float | None, tables: Tables) -> float:
    """The fewest replies to plan for; pass@k with fewer than recorded is noisier than 1/K says."""
    found = re.search(r"\|reducer:([^|]+)", signature) if isinstance(signature, str) else None
    reducer = find_reducer(found[1], tables.reducers) if found else None
    return repeats if reducer is not None and reducer.least > 1 and repeats is not None else 1


def _size(name: str, results: Fields) -> int:
    """Count the documents of a task, or of all tasks below a group, each task once."""
    rows, counts, below = (find_part(results, part) for part in ("results", "n-samples", "group_subtasks"))
    total, seen, stack = 0, {name}, [name]
    while stack:
        one = stack.pop()
        row, count = find_part(rows, one), find_part(counts, one).get("effective")
        own = _count(row.get("sample_len")) or _count(row.get("samples")) or _count(count)
        total += own
        children = () if own else dict.fromkeys(child for child in _names(below.get(one)) if child not in seen)
        seen.update(children)
        stack.extend(children)
    return total


# --- what a file may hold instead ------------------------------------------------------------------------------------


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _number(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST
    return float(value) if usable and isinstance(value, int | float) else None


def _count(value: object) -> int:
    found = _number(value) or 0.0
    return int(found) if found <= MOST_DOCUMENTS else 0
