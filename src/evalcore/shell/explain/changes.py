"""Two scorings of the same answers: which verdicts changed, and which documents were not answered the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isclose

import numpy as np
from msgspec import Struct

from evalcore.core.compare.pairs import match_documents
from evalcore.core.records.array import Bools
from evalcore.core.records.column import Column, list_outcomes, take_part
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.outcome import NotEmitted, Ok, Outcome
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.log import AnswerHashes

KINDS = ("right -> wrong", "wrong -> right", "other", "newly unscorable", "newly scored")


class Change(Struct, frozen=True):
    """A verdict that changed, with the document's number in either scoring."""

    key: MetricKey
    a: int
    b: int
    kind: str
    before: Outcome
    after: Outcome


class TaskDiff(Struct, frozen=True):
    """A task in two scorings. Pairs of document numbers are (in the first, in the second).

    ``other_texts`` counts, by filter, the documents of which another text was left though no verdict changed.
    ``options`` are those of metrics, before and after, where they are not the same.
    """

    task: str
    both: int
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    answered: tuple[tuple[int, int], ...]
    changes: tuple[Change, ...]
    keys: tuple[MetricKey, ...]
    keys_a: tuple[MetricKey, ...]
    keys_b: tuple[MetricKey, ...]
    other_texts: tuple[tuple[str, int], ...]
    options: tuple[tuple[MetricKey, Options, Options], ...] = ()

    @property
    def filters_a(self) -> tuple[str, ...]:
        """The filters that only the first scoring has."""
        return _list_filters_besides(self.keys_a, (*self.keys, *self.keys_b))

    @property
    def filters_b(self) -> tuple[str, ...]:
        """The filters that only the second scoring has."""
        return _list_filters_besides(self.keys_b, (*self.keys, *self.keys_a))


def _list_filters_besides(keys: Iterable[MetricKey], others: Iterable[MetricKey]) -> tuple[str, ...]:
    known = {key.filter for key in others}
    return tuple(dict.fromkeys(key.filter for key in keys if key.filter not in known))


def pair_documents(a: Sequence[DocumentRow], b: Sequence[DocumentRow]) -> tuple[tuple[int, int], ...]:
    """The numbers of the documents that both sides have; those of the same log are matched each with itself."""
    return tuple((row.key, row.key) for row in a) if a == b else match_documents(a, b).pairs


def diff_task(
    a: Scored,
    b: Scored,
    documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]],
    hashes: tuple[AnswerHashes, AnswerHashes],
    wanted: Sequence[str] = (),
) -> TaskDiff:
    """The verdicts of a task that changed, its documents matched as in a comparison; ``wanted`` names metrics."""
    both = pair_documents(*documents)
    rest_a, rest_b = (
        tuple(row.key for row in rows if row.key not in known)
        for rows, known in zip(documents, ({one for one, _ in both}, {two for _, two in both}), strict=True)
    )
    answered = tuple((one, two) for one, two in both if hashes[0].answers.get(one) != hashes[1].answers.get(two))
    apart = set(answered)
    same = [pair for pair in both if pair not in apart] if apart else both
    columns_a, columns_b = (_choose_columns(side, wanted) for side in (a, b))
    keys = tuple(key for key in columns_a if key in columns_b)
    better = {one.key: one.spec.higher_is_better if one.spec is not None else None for one in a.columns}
    changes = tuple(
        change
        for key in keys
        for change in _find_changes(key, same, columns_a[key], columns_b[key], better.get(key) is False)
    )
    return TaskDiff(
        a.task.name,
        len(both),
        rest_a,
        rest_b,
        answered,
        changes,
        keys,
        tuple(key for key in columns_a if key not in columns_b),
        tuple(key for key in columns_b if key not in columns_a),
        _count_other_texts(same, hashes, changes, keys),
        tuple(_find_other_options(keys, a, b)),
    )


def _find_other_options(
    keys: Sequence[MetricKey], a: Scored, b: Scored
) -> Iterable[tuple[MetricKey, Options, Options]]:
    before, after = ({c.key: c.spec.options for c in side.columns if c.spec is not None} for side in (a, b))
    shared = (key for key in keys if key in before and key in after)
    return ((key, before[key], after[key]) for key in shared if before[key] != after[key])


def _choose_columns(scored: Scored, wanted: Sequence[str]) -> dict[MetricKey, Column]:
    return {
        one.key: one.column
        for one in scored.columns
        if not wanted or not {one.key.metric, str(one.key), one.key.metric.partition("@")[0]}.isdisjoint(wanted)
    }


def _find_changes(
    key: MetricKey, pairs: Sequence[tuple[int, int]], a: Column, b: Column, lower: bool
) -> Iterable[Change]:
    if all(one == two for one, two in pairs) and np.array_equal(a.keys.ints, b.keys.ints):
        apart = _find_other_scores(a, b)
        a, b = take_part(a, apart), take_part(b, apart)
        left = set(a.keys.ints.tolist())
        pairs = [pair for pair in pairs if pair[0] in left]
    outcomes_a, outcomes_b, none = dict(list_outcomes(a)), dict(list_outcomes(b)), NotEmitted()
    for pair in pairs:
        before, after = outcomes_a.get(pair[0], none), outcomes_b.get(pair[1], none)
        kind = name_change(before, after, lower=lower)
        if kind is not None:
            yield Change(key, *pair, kind, before, after)


def _find_other_scores(a: Column, b: Column) -> Bools:
    """The documents of two columns whose numbers are not equal, or that have none."""
    if not isinstance(a.rows, Floats) or not isinstance(b.rows, Floats):
        return np.ones(len(a), np.bool_)
    return np.asarray(~(a.scored & b.scored & (a.rows.values.floats == b.rows.values.floats)))


def name_change(before: Outcome, after: Outcome, *, lower: bool = False) -> str | None:
    """How a verdict changed, None if it did not; ``lower``: a low score is a good one.

    >>> pairs = [(Ok(1.0), Ok(0.0)), (Ok(0.5), Ok(0.75)), (Ok(1.0), NotEmitted()), (Ok(1), Ok(1.0))]
    >>> [name_change(before, after) for before, after in pairs]
    ['right -> wrong', 'other', 'newly unscorable', None]
    """
    match before, after:
        case Ok(was), Ok(now):
            if is_same_score(was, now):
                return None
            return _name_move(now, was) if lower else _name_move(was, now)
        case Ok(), _:
            return KINDS[3]
        case _, Ok():
            return KINDS[4]
    return None


def _name_move(was: object, now: object) -> str:
    """Right and wrong are 1 and 0 alone; any other change is another score."""
    known = isinstance(was, int | float) and isinstance(now, int | float)
    if known and {was, now} == {0.0, 1.0}:
        return KINDS[0] if was else KINDS[1]
    return KINDS[2]


def is_same_score(a: object, b: object) -> bool:
    """Whether two scores are equal but for rounding, also if each is several numbers.

    >>> is_same_score(0.1 + 0.2, 0.3), is_same_score((1.0, 2), [1, 2.0]), is_same_score("a", "b")
    (True, True, False)
    """
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_same_score, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b


def _count_other_texts(
    same: Sequence[tuple[int, int]],
    hashes: tuple[AnswerHashes, AnswerHashes],
    changes: Sequence[Change],
    keys: Sequence[MetricKey],
) -> tuple[tuple[str, int], ...]:
    moved = {(change.key.filter, change.a) for change in changes}
    out: list[tuple[str, int]] = []
    for name in dict.fromkeys(key.filter for key in keys):
        before, after = (side.kept.get(name, {}) for side in hashes)
        apart = sum(before.get(one) != after.get(two) and (name, one) not in moved for one, two in same)
        out += [(name, apart)] if apart else []
    return tuple(out)
