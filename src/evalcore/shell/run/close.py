"""Scores into numbers as a plan says, for runs and for recorded answers alike."""

from __future__ import annotations

from evalcore.core.aggregate.value import Inference
from evalcore.core.pipeline import report_task
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Counts, Estimate, Resampling
from evalcore.core.records.report import TaskReport
from evalcore.core.records.score import Scored
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import Plan

__all__ = ["close_task", "inference_of"]


def inference_of(plan: Plan) -> Inference:
    """How a plan closes numbers.

    >>> inference_of(Plan(model="dummy", tasks=(), confidence=0.9)).confidence
    0.9
    """
    return Inference(
        confidence=plan.confidence,
        interval=plan.ci,
        on_unscorable=plan.on_unscorable,
        resampling=Resampling(plan.bootstrap_iters),
    )


def close_task(scored: Scored, inference: Inference, tables: Tables, n_original: int | None) -> TaskReport:
    """A task's numbers. One that cannot be closed says why, and costs the others nothing but under a stricter rule."""
    try:
        return report_task(scored, inference=inference, tables=tables, n_original=n_original)
    except EvalError as wrong:
        if inference.on_unscorable != "exclude":
            raise
        task, n = scored.task, max((len(one.column) for one in scored.columns), default=0)
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
