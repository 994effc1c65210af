"""Scores closed into numbers as a plan says: the one place where runs and recorded answers get theirs."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.numbers import SHARE
from evalcore.core.groups.tree import Tree
from evalcore.core.ledger import check_report, check_task
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Resampling
from evalcore.core.records.outcome import Counts
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.config.plan import Plan


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
    """Close a task. One that cannot be closed says why, and costs the others nothing but under a stricter rule.

    ``documents`` is how many there are to score, if that is known; every number accounts for each of them.
    ``shares`` are metrics whose recorded scores are 0 or 1.
    """
    closed = _close_task(mark_shares(scored, shares), inference_of(plan, tables), tables, n_original)
    check_task(closed, documents)
    return closed


def _close_task(scored: Scored, inference: Inference, tables: Tables, n_original: int | None) -> TaskReport:
    try:
        return report_task(scored, inference=inference, tables=tables, n_original=n_original)
    except EvalError as wrong:
        if inference.on_unscorable != "exclude":
            raise
        task, n = scored.task, max((one.column.documents for one in scored.columns), default=0)
        lost = Estimate(value=None, counts=Counts(scored=0, failed=n), reason=str(wrong))
        return TaskReport(
            name=task.name,
            estimates=tuple((one.key, lost) for one in scored.columns),
            n_docs=n,
            n_original=n_original,
            alias=task.alias,
            version=task.version,
            num_fewshot=task.num_fewshot,
            config=task.config,
        )


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
