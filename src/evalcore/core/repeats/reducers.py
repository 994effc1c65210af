"""REDUCERS: several scores of a question become one. Each is a function over a batch of questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite, nan
from typing import SupportsFloat

import numpy as np
from pyrsistent import PMap, pmap

from evalcore.core.filters.select import ballot
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.task import MetricSpec, name_function
from evalcore.core.repeats.at_k import at_least, majority_at, pass_all, pass_at
from evalcore.core.repeats.repeat import (
    Reduce,
    Reducer,
    ReducerAt,
    Repeats,
    as_reducer,
    collect_scores,
    pick_first,
    pick_last,
)
from evalcore.core.stats.noise import variance_of_reply

Reducers = PMap[str, Reducer | ReducerAt | Reduce]


def first(repeats: Repeats) -> Floats64:
    """The first score.

    >>> first(Repeats(np.array([[0.2, 1.0]]))).tolist()
    [0.2]
    """
    at = np.argmax(~np.isnan(repeats.scores), axis=1)
    return np.asarray(repeats.scores[np.arange(len(at)), at], np.float64)


def last(repeats: Repeats) -> Floats64:
    """The last score.

    >>> last(Repeats(np.array([[0.2, 1.0]]))).tolist()
    [1.0]
    """
    return first(Repeats(repeats.scores[:, ::-1]))


def mean(repeats: Repeats) -> Floats64:
    """The average score: expected accuracy.

    >>> mean(Repeats(np.array([[0.0, 1.0]]))).tolist()
    [0.5]
    """
    total = np.zeros(len(repeats.scores))
    for scores in np.nan_to_num(repeats.scores, nan=0.0).T:
        total = total + scores
    return total / np.where(repeats.counts > 0, repeats.counts, nan)


def median(repeats: Repeats) -> Floats64:
    """The middle score, or the mean of the two middle ones.

    >>> median(Repeats(np.array([[0.0, 1.0, 1.0]]))).tolist()
    [1.0]
    """
    return _map_rows(repeats, np.median)


def lowest(repeats: Repeats) -> Floats64:
    """The worst score.

    >>> lowest(Repeats(np.array([[0.0, 1.0]]))).tolist()
    [0.0]
    """
    return _map_rows(repeats, np.min)


def highest(repeats: Repeats) -> Floats64:
    """The best score.

    >>> highest(Repeats(np.array([[0.8, 0.75, 0.78], [0.9, 0.85, 0.92], [0.7, 0.72, 0.69]]))).tolist()
    [0.8, 0.92, 0.72]
    """
    return _map_rows(repeats, np.max)


def mode(repeats: Repeats) -> Floats64:
    """The most frequent score; of several, the first.

    >>> mode(Repeats(np.array([[0.0, 1.0, 1.0]]))).tolist()
    [1.0]
    """
    return _map_rows(repeats, lambda row: Counter(row.tolist()).most_common(1)[0][0])


def variance(repeats: Repeats) -> Floats64:
    """Internal variance: how much the scores of one question differ (population form).

    >>> variance(Repeats(np.array([[0.0, 1.0], [1.0, 1.0]]))).tolist()
    [0.25, 0.0]
    """
    return _map_rows(repeats, np.var)


def consensus(repeats: Repeats) -> Floats64:
    """Consensus accuracy: 1 if more than half of the replies score at least one half.

    >>> consensus(Repeats(np.array([[1.0, 0.0], [1.0, 1.0]]))).tolist()
    [0.0, 1.0]
    """
    return _map_rows(repeats, lambda row: float(2 * np.count_nonzero(row >= 0.5) > len(row)))


def consistency(repeats: Repeats) -> Floats64:
    """Consistency rate: the share of replies that give the most frequent answer (score, if no answers are known).

    >>> consistency(Repeats(np.array([[1.0, 0.0, 0.0]]), [["4", "5", "5"]])).tolist()
    [0.6666666666666666]
    """
    if not repeats.answers:
        return _map_rows(repeats, lambda row: _find_top_share(row.tolist()))
    return np.array([_find_top_share(answers) if len(answers) else nan for answers in repeats.answers])


def _map_rows(repeats: Repeats, function: Callable[[Floats64], SupportsFloat]) -> Floats64:
    present = ~np.isnan(repeats.scores)
    rows = zip(repeats.scores, present, strict=True)
    return np.array([float(function(row[here])) if here.any() else nan for row, here in rows])


def _find_top_share(values: Sequence[object]) -> float:
    return Counter(map(ballot, values)).most_common(1)[0][1] / len(values)


def _vary_mean(repeats: Repeats) -> tuple[Floats64, Ints64]:
    return variance_of_reply(repeats.scores) / np.maximum(repeats.counts, 1), repeats.counts


def _vary_one(repeats: Repeats) -> tuple[Floats64, Ints64]:
    return variance_of_reply(repeats.scores), np.minimum(repeats.counts, 1)


ENTRIES: Mapping[str, Reducer | ReducerAt | Reduce] = {
    "first": Reducer(first, answers=False, rows=pick_first, noise=_vary_one),
    "last": Reducer(last, answers=False, rows=pick_last, noise=_vary_one),
    "mean": Reducer(mean, answers=False, noise=_vary_mean),
    "median": Reducer(median, answers=False),
    "min": Reducer(lowest, answers=False),
    "max": Reducer(highest, answers=False),
    "mode": Reducer(mode, answers=False),
    "variance": Reducer(variance, answers=False),
    "consensus": Reducer(consensus, answers=False),
    "consistency": Reducer(consistency),
    "collect": Reducer(None, answers=False, rows=collect_scores),
    "pass@": ReducerAt(pass_at),
    "pass^": ReducerAt(pass_all),
    "at_least": ReducerAt(at_least),
    "maj@": ReducerAt(majority_at),
}
REDUCERS: Reducers = pmap(ENTRIES)
"""Where noise is not given it is unknown: of a reducer that jumps with one reply, the jackknife is off by factors of
0.4 to 3.4."""


def reducer(name: str, reducers: Reducers = REDUCERS) -> Reducer:
    """A reducer by name: ``mean``, ``pass@5``, ``pass^3``, ``at_least(2)``, ``maj@8``.

    >>> reducer("pass@1")(Repeats(np.array([[1.0, 0.0]]))).tolist()
    [0.5]
    """
    found = find_reducer(name, reducers)
    if found is not None:
        return found
    families = {key for key, entry in reducers.items() if isinstance(entry, ReducerAt)}
    stem = re.sub(r"\(?k?\)?$", "", name)
    if stem in families:
        raise EvalError(f"expected a number in place of k in the reducer {name!r}, such as {stem}2")
    raise unknown("reducer", name, (f"{key}k" if key in families else key for key in reducers))


def own_reducers(spec: MetricSpec | None, reducers: Reducers) -> Reducers:
    """The table with a metric's own functions under their names. Each takes the list of one document's scores.

    >>> found = own_reducers(MetricSpec("acc", reducers=(max,)), REDUCERS)
    >>> reducer("max", found)(Repeats(np.array([[0.5, nan, 0.75]]))).tolist()
    [0.75]
    """
    own = [one for one in (spec.reducers if spec is not None else ()) if not isinstance(one, str)]
    return reducers.update({name_function(one): _from_scores(one) for one in own}) if own else reducers


def _from_scores(function: Callable[..., object]) -> Reducer:
    return function if isinstance(function, Reducer) else Reducer(partial(_reduce_scores, function), answers=False)


def _reduce_scores(function: Callable[..., object], repeats: Repeats) -> Floats64:
    return _map_rows(repeats, lambda row: _reduce_row(function, row.tolist()))


def _reduce_row(function: Callable[..., object], scores: list[float]) -> float:
    try:
        made = float(function(scores))  # type: ignore[arg-type]  # what is no number is an error as any other
        return made if isfinite(made) else nan
    except Exception as raised:
        what = f"reducer {name_function(function)!r} failed on {scores}: {type(raised).__name__}: {raised}"
        raise EvalError(what) from raised


def find_reducer(name: str, reducers: Reducers = REDUCERS) -> Reducer | None:
    """A reducer by name; None if there is none.

    >>> find_reducer("at_least(2, 0.5)").least, find_reducer("at_least")
    (2, None)
    """
    entry = reducers.get(name)
    if entry is not None and not isinstance(entry, ReducerAt):
        return as_reducer(entry)
    parts = re.fullmatch(r"(.*?)\(?([1-9][0-9]*)(?:,\s*([0-9]+(?:\.[0-9]+)?))?\)?", name)
    family = None if parts is None else reducers.get(parts[1])
    if parts is None or not isinstance(family, ReducerAt):
        return None
    return as_reducer(family.make(int(parts[2]), *([float(parts[3])] if parts[3] else [])))
