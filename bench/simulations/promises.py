"""What gates and plans promise, and what they keep: false alarms of a limit, summed exactly, and the power of plans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import sqrt

import numpy as np
from scipy import stats

from bench.rows import Section, write_table
from bench.simulations.pair_cells import PairCell, right_or_wrong
from evalcore import AGGREGATIONS, Estimate, MetricKey, aggregate_metric
from evalcore.core.compare.gates import Limit, judge_limit, level_of_limits
from evalcore.core.compare.power import Known, PowerGoal, plan_next
from evalcore.stats import Array, Floats, Inference, build_column

ALPHA, SIZES = 0.05, (10, 30, 100, 300)
LIMITS = (0.5, 0.62, 0.7, 0.8, 0.9, 0.95)
CEILINGS = tuple((p, drop) for p in (0.7, 0.9, 0.95, 0.97) for drop in (0.02, 0.05))


@cache
def close(hits: int, n: int, method: str) -> Estimate:
    column = build_column(range(n), Floats(Array([1.0] * hits + [0.0] * (n - hits))))
    inference = Inference(interval=method, confidence=level_of_limits(ALPHA, 1))
    return aggregate_metric(AGGREGATIONS["mean"], column, inference=inference)


def sum_alarms(n: int, limit: float, method: str) -> float:
    """The chance that a model exactly at its limit fails ``--min``."""
    chances = stats.binom.pmf(np.arange(n + 1), n, limit).tolist()
    gate = Limit("min", "acc", limit)
    return sum(
        chance
        for hits, chance in enumerate(chances)
        if judge_limit(gate, ("t", MetricKey("acc")), close(hits, n, method)).passed is False
    )


def tabulate_alarms() -> str:
    rows = [
        (name, str(n), *(f"{100 * sum_alarms(n, limit, method):.1f}" for limit in LIMITS))
        for name, method in (("exact (what `check` does)", "exact"), ("Wilson's interval", "wilson"))
        for n in SIZES
    ]
    return write_table(("judged by", "n", *(f"limit {limit:g}" for limit in LIMITS)), rows)


def measure_plan(p: float, drop: float, repetitions: int) -> tuple[int, float]:
    """The documents that ``power`` plans for a drop, and how often ``compare`` then finds it."""
    rng = np.random.default_rng([int(1000 * p), int(1000 * drop)])
    a, b = right_or_wrong(400_000, p, p - drop, rng)
    correlation = float(np.corrcoef(a, b)[0, 1])
    error = sqrt(p * (1 - p) / 400)
    known = Known(name="t", key=MetricKey("acc"), n=400, units=400, stderr=error, share=True, value=p, coarseness=1.0)
    plan = plan_next(known, PowerGoal(difference=drop, correlation=correlation))
    n = plan.documents[0][1] or 0
    cell = PairCell("plan", n, f"{p} to {p - drop:.2f}", lambda rng: right_or_wrong(n, p, p - drop, rng), drop, "acc")
    lines = (cell.compare(cell.draw(rng)) for _ in range(repetitions))
    return n, float(np.mean([line.p_value is not None and line.p_value <= ALPHA for line in lines]))


def tabulate_plans(repetitions: int) -> str:
    rows = []
    for p, drop in CEILINGS:
        n, power = measure_plan(p, drop, repetitions)
        rows.append((f"{p:g}", f"{drop:g}", f"{n:,}", f"{100 * power:.0f}"))
    return write_table(("run", "drop", "documents planned", "found, of 80 % promised"), rows)


def measure_rows(*, repetitions: int = 500) -> Iterator[Section]:
    yield Section("compare.md", "limits", tabulate_alarms())
    yield Section("power.md", "plans", tabulate_plans(repetitions))
