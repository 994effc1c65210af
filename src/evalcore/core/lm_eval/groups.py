"""lm-eval's groups (E04, E05, E08, E09, E23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evalcore.core.groups.averages import Share, Term, own_size, weight_of
from evalcore.core.groups.rules import GroupRule
from evalcore.core.groups.tree import Group, GroupMetric
from evalcore.core.records.estimate import Estimate, Scale
from evalcore.core.records.outcome import Counts
from evalcore.core.records.report import TaskReport
from evalcore.core.records.task import MetricKey

NO_INTERVAL = "lm-eval gives group numbers no interval; the default tables do"


def over_paths(group: Group[Share], spec: GroupMetric, parts: Sequence[Share], sizes: Mapping[str, float]) -> Share:
    """E05: a task counts once for every path that leads to it."""
    names = [name for part in parts for name, _ in part.terms]
    weights = [weight_of(spec, name, sizes[name]) for name in names]
    total = sum(weights)
    missing = tuple(name for part in parts for name in part.missing)
    return Share(
        tuple((name, w / total if total else 0.0) for name, w in zip(names, weights, strict=True)),
        total,
        missing,
    )


def pooled_mean(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """E04, E08, E23: an arithmetic mean whatever was asked, with a pooled error under size weights."""
    values = [term.estimate.value or 0.0 for term in terms]
    sizes = [term.size if spec.weight_by_size else 1.0 for term in terms]
    counts = [term.size for term in terms]
    errors = [term.estimate.stderr for term in terms]
    value = sum(v * size for v, size in zip(values, sizes, strict=True)) / sum(sizes)
    known = [error for error in errors if error is not None]
    stderr = (
        None
        if len(known) < len(terms)
        else _pool_errors(known, counts)
        if spec.weight_by_size
        else _average_errors(known)
    )
    n = None if any(term.estimate.n is None for term in terms) else int(sum(counts))
    return Estimate(
        value=value,
        stderr=stderr,
        n=n,
        counts=Counts(scored=n or 0),
        scale=Scale(size=sum(counts)),
        signature="pooled" if spec.weight_by_size else "unweighted",
        reason=NO_INTERVAL if stderr is not None else _explain_no_error(terms),
    )


def _explain_no_error(terms: Sequence[Term]) -> str:
    """Explain why there is no error: a task has none, or every task has one document."""
    lacking = next((term for term in terms if term.estimate.stderr is None), None)
    return f"{lacking.name} has no standard error" if lacking is not None else "every task has only one document"


def _pool_errors(errors: Sequence[float], sizes: Sequence[float]) -> float | None:
    if sum(sizes) == len(sizes):
        return None
    squares = sum((n - 1) * (error * error) * n for n, error in zip(sizes, errors, strict=True))
    variance = squares / (sum(sizes) - len(sizes))
    return float(np.sqrt(variance / sum(sizes)))


def _average_errors(errors: Sequence[float]) -> float:
    return float(np.sqrt(sum(error * error for error in errors)) / len(errors))


POOLED_MEAN = GroupRule(pooled_mean, mean=True)


def task_size(task: TaskReport, key: MetricKey) -> float:
    """E09: one count for every metric of a task; that of the metric if the task has none."""
    return float(task.sample_len or own_size(task, key))
