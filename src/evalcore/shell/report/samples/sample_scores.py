"""The scores of a task's documents in each run, metric by metric, with the reason where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite

from msgspec import Struct

from evalcore.core.records.column import list_outcomes
from evalcore.core.records.outcome import Failed, Ok, Outcome, Unscorable
from evalcore.core.records.task import MetricKey
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.samples.document_pairs import Item

Plain = dict[str, object]
Reasons = dict[tuple[str, str], int]
"""Why documents have no score, by kind and words, each numbered."""


class TaskColumns(Struct, frozen=True):
    """A task in one run: the outcomes of its documents by metric."""

    outcomes: Mapping[MetricKey, Mapping[int, Outcome]]
    ways: Mapping[MetricKey, str | None]


def read_columns(run: GatheredRun, name: str, chosen: Callable[[MetricKey], bool]) -> TaskColumns:
    """The outcomes of a task's documents; metrics that are judged from 0 to 1 say which way is right."""
    scored = next((one for one in run.recorded.side.scored if one.task.name == name), None)
    columns = [one for one in scored.columns if chosen(one.key)] if scored is not None else []
    outcomes = {one.key: dict(list_outcomes(one.column)) for one in columns}
    known = run.recorded.renamed or name
    report = next((one for one in run.report.tasks if one.name == known), None)
    ways: dict[MetricKey, str | None] = {}
    for one in columns:
        estimate = report.get(one.key) if report is not None else None
        lower = estimate is not None and estimate.scale.higher_is_better is False
        ways[one.key] = ("down" if lower else "up") if is_judged(outcomes[one.key].values()) else None
    return TaskColumns(outcomes, ways)


def is_judged(outcomes: Iterable[Outcome]) -> bool:
    """Whether all scores are numbers from 0 to 1, so that 1 is right and 0 wrong, or the other way round.

    >>> is_judged([Ok(1.0), Failed("?")]), is_judged([Ok(3.5)]), is_judged([Ok((1.0, 2))])
    (True, False, False)
    """
    scores = [one.score for one in outcomes if isinstance(one, Ok)]
    return all(isinstance(score, int | float) and 0 <= score <= 1 for score in scores)


def write_columns(
    keys: Sequence[MetricKey], items: Sequence[Item], at: int, columns: TaskColumns, reasons: Reasons
) -> Plain:
    """The scores of one run's documents in the order of the items, metric by metric; ``lost`` numbers the reasons."""
    own = [item[at] for item in items]
    scores: list[list[object] | None] = []
    lost: list[dict[str, int]] = []
    for key in keys:
        outcomes = columns.outcomes.get(key)
        none: dict[str, int] = {}
        scores.append(None if outcomes is None else [_write_outcome(outcomes, one) for one in own])
        for place, one in enumerate(own) if outcomes is not None else ():
            why = _explain_loss(outcomes.get(one)) if one is not None and outcomes is not None else None
            if why is not None:
                none[str(place)] = reasons.setdefault(why, len(reasons))
        lost.append(none)
    return {"scores": scores, "lost": lost}


def _write_outcome(outcomes: Mapping[int, Outcome], key: int | None) -> object:
    found = None if key is None else outcomes.get(key)
    return write_score(found.score) if isinstance(found, Ok) else None


def write_score(score: object) -> object:
    """A score as JSON can have it.

    >>> write_score((1.5, 2)), write_score(float("nan")), write_score(None)
    ([1.5, 2], 'nan', 'None')
    """
    if isinstance(score, list | tuple):
        return [write_score(one) for one in score]
    if isinstance(score, bool | int | float):
        return score if isfinite(score) and abs(score) < 2**53 else str(score)
    return str(score)


def _explain_loss(outcome: Outcome | None) -> tuple[str, str] | None:
    if isinstance(outcome, Failed):
        return "failed", outcome.reason
    return ("unscorable", outcome.reason) if isinstance(outcome, Unscorable) else None
