"""What an Inspect log says of its numbers: how epochs were reduced, what was scored, and the metrics of its results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isclose, isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.inspect.samples import LETTERS, score_value
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import Epochs

if TYPE_CHECKING:
    from evalcore.core.records.estimate import Estimate

Plain = Mapping[str, object]
NUMBERED = {"at_least": "at_least({})", "pass_at": "pass@{}", "pass_k": "pass^{}"}
SAME = ("mean", "median", "mode", "max")
ESTIMATE = "estimate"
"""The metric that evalcore's adapter gives Inspect."""
POINTED = {"accuracy": True}
"""Metrics of Inspect that say which way a score points."""
MOST = 6
"""How many numbers a warning shows."""


def find_our_reducer(name: str) -> str | None:
    """Find the equivalent of a reducer of Inspect, or one of ours that ran there; None if there is none for scores.

    >>> [find_our_reducer(one) for one in ("max", "pass_at_2", "pass_k_3", "at_least_2", "evalcore/pass@5")]
    ['max', 'pass@2', 'pass^3', 'at_least(2)', 'pass@5']
    >>> [find_our_reducer(one) for one in ("majority", "collect", "mine/max", "evalcore/maj@3")]
    [None, None, None, None]
    """
    ours = name.removeprefix("evalcore/")
    if ours != name:
        from evalcore.core.repeats.reducers import find_reducer  # only here: listing models does without numpy

        known = find_reducer(ours)
        return ours if known is not None and known.reduce is not None and not known.answers else None
    found = re.fullmatch(r"(at_least|pass_at|pass_k)_([1-9][0-9]*)", name)
    return NUMBERED[found[1]].format(found[2]) if found else name if name in SAME else None


def read_epochs(spec: Plain) -> Epochs:
    """Read how often each sample was asked, by default once, and its reducers, by default ``mean``.

    >>> read_epochs({"config": {"epochs": 4, "epochs_reducer": ["max", "majority"]}}), read_epochs({})
    (Epochs(count=4, reducers=('max',), strange=('majority',)), Epochs(count=1, reducers=('mean',), strange=()))
    """
    count, given = (find_part(spec, "config").get(key) for key in ("epochs", "epochs_reducer"))
    names = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    ours = {str(one): find_our_reducer(str(one)) for one in names}
    known = tuple(dict.fromkeys(one for one in ours.values() if one is not None))
    strange = tuple(name for name, one in ours.items() if one is None)
    return Epochs(count if isinstance(count, int) else 1, known or ("mean",), strange)


def names_all(results: Plain, names: Sequence[str]) -> bool:
    """Whether these names cover every scorer of the results; False for a run without results.

    >>> results = {"scores": [{"scorer": "match", "name": "match"}, {"scorer": "two", "name": "a"}]}
    >>> [names_all(results, names) for names in (["match", "two.a"], ["match"], ["match", "two"])]
    [True, False, False]
    """
    listed = list(_entries(results))
    return bool(listed) and all(_base(one, names) is not None for one in listed)


def read_directions(results: Plain, spelled: Plain) -> dict[str, bool]:
    """Read which way scores point: accuracy is a share of right answers, and letters say right or wrong; others do not.

    ``spelled`` are the scores of a sample as the log has them.

    >>> scores = [{"name": "match", "metrics": {"accuracy": {}}}, {"name": "toxicity", "metrics": {"mean": {}}}]
    >>> read_directions({"scores": scores}, {"toxicity": 0.25, "choice": "C"})
    {'match': True, 'choice': True}
    """
    pointed: dict[str, bool] = {}
    for one in _entries(results):
        names = (str(one.get("name")), f"{one.get('scorer')}.{one.get('name')}")
        pointed |= {name: up for label, up in POINTED.items() if label in find_part(one, "metrics") for name in names}
    known = {name: True for name, value in spelled.items() if isinstance(value, str) and value in LETTERS}
    return {name: up for name, up in (pointed | known).items() if not name.startswith("None.")}


def tell_unfinished(status: object, error: object, here: int, spec: Plain) -> tuple[str, ...]:
    """Warn that a run did not succeed, and say how many of its samples exist.

    >>> spec = {"task": "sums", "dataset": {"sample_ids": [1, 2]}, "config": {"epochs": 3}}
    >>> tell_unfinished("error", {"message": "out of memory"}, 4, spec)
    ('sums: the run did not finish (error: out of memory); 4 of its 6 samples are here',)
    """
    if status == "success":
        return ()
    ids, epochs = find_part(spec, "dataset").get("sample_ids"), find_part(spec, "config").get("epochs")
    whole = len(ids) * (epochs if isinstance(epochs, int) else 1) if isinstance(ids, list) else None
    said = error.get("message") if isinstance(error, Mapping) else None
    why = f"{status or 'no end'}{f': {str(said)[:200]}' if said else ''}"
    count = f"{here:,} of its {whole:,} samples are" if whole else f"{here:,} samples are"
    return (f"{_name(spec)}: the run did not finish ({why}); {count} here",)


def _name(spec: Plain) -> str:
    return str(spec.get("task")).rpartition("/")[2]


# --- numbers of the results -----------------------------------------------------------------------------------------


class _Number(NamedTuple):
    """A metric of the results, its recorded value, and ours: None if it is not measured here."""

    name: str
    recorded: float
    ours: float | None


def tell_numbers(results: Plain, task: str, estimates: Iterable[tuple[MetricKey, Estimate]]) -> tuple[str, ...]:
    """Warn where the numbers in an Inspect log's results differ from these estimates, or are not among them.

    >>> results = {"scores": [{"scorer": "f1", "name": "f1", "metrics": {"mean": {"value": 0.5}, "std": {"value": 1}}}]}
    >>> from evalcore.core.records.estimate import Estimate
    >>> tell_numbers(results, "t", [(MetricKey("f1"), Estimate(value=0.5, n=4))])
    ('t: Inspect recorded numbers that are not measured here: f1 std 1',)
    >>> tell_numbers(results, "t", [(MetricKey("f1"), Estimate(value=0.25, n=4))])[0]
    't: numbers here are other than what Inspect recorded: f1 mean 0.5 (here 0.25)'
    """
    known = {key.metric: one for key, one in estimates}
    found = [number for one in _entries(results) for number in _numbers(one, known)]
    lost = [f"{one.name} {one.recorded:.4g}" for one in found if one.ours is None]
    other = [f"{one.name} {one.recorded:.4g} ({_ours(one.ours)})" for one in found if _differs(one)]
    told = {
        "numbers here are other than what Inspect recorded": other,
        "Inspect recorded numbers that are not measured here": lost,
    }
    return tuple(f"{task}: {text}: {_listed(numbers)}" for text, numbers in told.items() if numbers)


def _ours(value: float | None) -> str:
    return "no value here" if value is None or isnan(value) else f"here {value:.4g}"


def _listed(numbers: Sequence[str]) -> str:
    more = f", and {len(numbers) - MOST:,} more" if len(numbers) > MOST else ""
    return ", ".join(numbers[:MOST]) + more


def _differs(one: _Number) -> bool:
    if one.ours is None or (isnan(one.ours) and isnan(one.recorded)):
        return False
    return not isclose(one.ours, one.recorded, rel_tol=1e-9, abs_tol=1e-12)


def _numbers(entry: Plain, known: Mapping[str, Estimate]) -> Iterator[_Number]:
    """The metrics of a scorer under a reducer; none if the reducer is unknown here."""
    reducer = entry.get("reducer")
    ours = find_our_reducer(reducer) if isinstance(reducer, str) else "mean"
    if ours is None:
        return
    base = _base(entry, known, f"@{ours}") or _base(entry, known)
    for label, metric in find_part(entry, "metrics").items():
        value = score_value(metric.get("value")) if isinstance(metric, Mapping) else None
        if isinstance(metric, Mapping) and isinstance(value, float):
            parts = (base or entry.get("name"), metric.get("group"), label)
            name = " ".join(str(one) for one in parts if one is not None)
            yield _Number(name, value, _measured(str(label), metric, known[base]) if base else None)


def _measured(label: str, metric: Plain, ours: Estimate) -> float | None:
    """Our number for a metric: a mean, its unclustered error, or an estimate of ours."""
    params, group = find_part(metric, "params"), metric.get("group")
    low, high = ours.ci or (None, None)
    own: dict[object, dict[str, float | None]] = {
        None: {"accuracy": ours.value, "mean": ours.value, "stderr": ours.stderr or 0.0},
        ESTIMATE: {"value": ours.value, "stderr": ours.stderr, "ci_low": low, "ci_high": high, "n": ours.n},
    }
    apart = params.get("cluster") is not None or params.get("group") is not None
    if apart or not isinstance(group, str | None) or label not in own.get(group, {}):
        return None
    found = own[group][label]
    return nan if found is None else found


def _base(entry: Plain, names: Iterable[str], end: str = "") -> str | None:
    """The name of a recorded score here: its scorer, or ``scorer.name`` if that gives several."""
    scorer, name = entry.get("scorer"), entry.get("name")
    wanted = (f"{scorer}.{name}{end}", f"{name}{end}")
    return next((one for one in wanted if one in names), None)


def _entries(results: Plain) -> Iterator[Plain]:
    listed = results.get("scores")
    yield from (one for one in listed if isinstance(one, Mapping)) if isinstance(listed, list | tuple) else ()
