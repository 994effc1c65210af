"""A task from a row of lm-eval's results, which names its metrics and nothing else about them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real

from evalcore.core.groups.tree import Leaf
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.estimate import Estimate, Scale, Spread
from evalcore.core.records.outcome import Counts
from evalcore.core.records.report import TaskReport
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.links import IDENTITY, LOG

LOG_METRICS = frozenset({"perplexity", "word_perplexity", "byte_perplexity"})
"""lm-eval's metrics that groups average on the log scale."""


def leaf_from_flat(name: str, row: Mapping[str, object]) -> Leaf[TaskReport]:
    """Read a task from lm-eval's flat results: ``{"acc,none": v, "acc_stderr,none": se, "sample_len": n}``.

    The number of documents may also be under ``samples``; without one, the task weighs 1 in a group and has no n.

    >>> leaf_from_flat("a", {"acc,none": 0.8, "acc_stderr,none": 0.1, "sample_len": 10}).value.estimates[0][1]
    Estimate(0.8 ± 0.1, n=10)
    >>> leaf_from_flat("a", {"acc,none": 0.8, "acc_stderr,none": 0.1}).value["acc,none"]
    Estimate(0.8 ± 0.1)
    """
    size = _read_number(name, row, "sample_len" if "sample_len" in row else "samples")
    if size is not None and size < 0:
        raise EvalError(f"expected a number of documents of at least 0, got {size:g}{place(name)}")
    n = int(size) if size is not None and isfinite(size) else None
    estimates = tuple(
        (key, _build_estimate(key, value, _read_number(name, row, key.stderr), n))
        for text in row
        if (key := MetricKey.parse(text)) is not None and (value := _read_number(name, row, text)) is not None
    )
    alias = row.get("alias")
    return Leaf(
        name,
        TaskReport(name=name, estimates=estimates, n_docs=n or 0, alias=alias if isinstance(alias, str) else None),
    )


def _read_number(task: str, row: Mapping[str, object], key: str) -> float | None:
    value = row.get(key)
    try:
        return float(value) if isinstance(value, Real) else None
    except OverflowError:
        problem = f"expected {key} in the results to be a number, got one with more than 308 digits"
        raise EvalError(f"{problem}{place(task)}") from None


def _build_estimate(key: MetricKey, value: float, stderr: float | None, n: int | None) -> Estimate:
    logs = key.metric in LOG_METRICS and value > 0
    return Estimate(
        value=value,
        stderr=stderr,
        n=n,
        counts=Counts(scored=n or 0),
        scale=Scale(
            size=1.0 if n is None else float(n),
            link=LOG if logs else IDENTITY,
            aggregation="perplexity" if logs else "mean",
            even=not logs,
            bounds=(0.0, 1.0) if 0.0 <= value <= 1.0 and not logs else (float("-inf"), float("inf")),
        ),
        spread=Spread(
            trials=float(n or 0),
            df=float(n - 1) if n is not None and n > 1 else None,
            variance=None if stderr is None or n is None or n < 1 else stderr * stderr * (n - 1) / n,
        ),
        reason=None if stderr is not None else "no standard error was given",
    )
