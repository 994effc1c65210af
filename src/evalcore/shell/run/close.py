"""Scores closed into numbers as a plan says: the one place where runs and recorded answers get theirs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from msgspec.structs import replace

from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.numbers import SHARE
from evalcore.core.groups.tree import Tree
from evalcore.core.ledger import check_report, check_task
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.estimate import Estimate, Resampling
from evalcore.core.records.outcome import Counts
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.engines.deadline import WHOLE
from evalcore.shell.safety.timer import TimeUp, reaches_timer, run_within


def inference_of(plan: Plan, tables: Tables = EVALCORE) -> Inference:
    """How a plan closes numbers.

    >>> inference_of(Plan(model="dummy", tasks=(), confidence=0.9)).confidence
    0.9
    """
    return Inference(
        confidence=plan.confidence,
        interval=plan.ci,
        stderr=plan.stderr,
        intervals=tables.intervals,
        on_unscorable=plan.on_unscorable,
        resampling=Resampling(plan.bootstrap_iters),
    )


def close_task(
    scored: Scored,
    plan: Plan,
    tables: Tables,
    *,
    n_original: int | None = None,
    documents: int | None = None,
    shares: Iterable[str] = (),
) -> TaskReport:
    """Close a task. A metric that cannot be closed says why, and costs the others nothing but under a stricter rule.

    ``documents`` is how many there are to score, if that is known; every number accounts for each of them.
    ``shares`` are metrics whose recorded scores are 0 or 1.
    """
    closed = _close_task(mark_shares(scored, shares), plan, tables, n_original)
    check_task(closed, documents)
    return closed


def _close_task(scored: Scored, plan: Plan, tables: Tables, n_original: int | None) -> TaskReport:
    inference = inference_of(plan, tables)
    close = partial(_close_in_time, plan.doc_timeout, inference=inference, tables=tables, n_original=n_original)
    report = close(scored)
    if isinstance(report, TaskReport):
        return report
    if inference.on_unscorable != "exclude":
        raise EvalError(report)
    each = {one.key: close(replace(scored, columns=(one,))) for one in scored.columns}
    reasons = {key: made for key, made in each.items() if not isinstance(made, TaskReport)}
    report = close(replace(scored, columns=tuple(one for one in scored.columns if one.key not in reasons)))
    if not isinstance(report, TaskReport) or not reasons:
        raise EvalError(str(report))
    sizes = {one.key: one.column.documents for one in scored.columns}
    lost = tuple(
        (key, Estimate(value=None, counts=Counts(scored=0, failed=sizes[key]), reason=reason))
        for key, reason in reasons.items()
    )
    n_docs = max((report.n_docs, *sizes.values()))
    return replace(report, estimates=(*report.estimates, *lost), n_docs=n_docs)


def _close_in_time(seconds: float, scored: Scored, **how: Any) -> TaskReport | str:
    """Close a task, or say why that cannot be done; an aggregation has the time of many documents."""
    close, most = partial(report_task, scored, **how), seconds * WHOLE
    try:
        return run_within(most, close) if most and reaches_timer() else close()
    except EvalError as wrong:
        return str(wrong)
    except TimeUp:
        return f"the aggregation took longer than {most:g} s ({WHOLE} x doc_timeout){place(scored.task.name)}"


def close_groups(tasks: Iterable[TaskReport], trees: Iterable[Tree[object]], plan: Plan, tables: Tables) -> Report:
    """Close the groups above tasks that are closed: the report of all."""
    report = build_report(tasks, trees, inference=inference_of(plan, tables), tables=tables)
    check_report(report)
    return report


def mark_shares(scored: Scored, shares: Iterable[str]) -> Scored:
    """Mark the columns of metrics whose scores were 0 or 1 throughout, whatever a reducer made of them."""
    names = frozenset(shares)

    def marked(one: ScoredColumn) -> ScoredColumn:
        named = (one.spec.name if one.spec is not None else one.key.metric) in names
        return replace(one, traits=(*one.traits, SHARE)) if named and SHARE not in one.traits else one

    return replace(scored, columns=tuple(map(marked, scored.columns))) if names else scored
