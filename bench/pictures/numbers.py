"""What evalcore says of small examples, of drawn runs, of the quickstart and of published answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct

import evalcore
from bench.measure import ROOT
from evalcore import AGGREGATIONS, Estimate, aggregate_metric
from evalcore.stats import Array, Floats, Inference, build_column

BOTH, ONLY_A, ONLY_B, NEITHER = 306, 209, 152, 652
"""GSM8K, 1,319 questions: who was right, of 6b_verification (A) and 175b_finetuning (B), as in docs/compare.md."""
TRUTH, PASSAGES, QUESTIONS, STUDIES = 0.6, 20, 5, 40


class Interval(Struct, frozen=True):
    """A value and two ends."""

    low: float
    value: float
    high: float


def read_interval(estimate: Estimate) -> Interval:
    """The interval of an estimate that has one."""
    if estimate.value is None or estimate.ci is None:
        raise ValueError(f"expected an interval, got {estimate}")
    return Interval(estimate.ci[0], estimate.value, estimate.ci[1])


def close_scores(scores: Sequence[float], clusters: Sequence[int] | None = None, *, ci: str = "wilson") -> Estimate:
    """The mean of scores."""
    column = build_column(range(len(scores)), Floats(Array(scores)))
    codes = None if clusters is None else np.asarray(clusters, np.int64)
    return aggregate_metric(AGGREGATIONS["mean"], column, inference=Inference(interval=ci), clusters=codes)


def close_hits(hits: int, n: int, *, ci: str = "wilson") -> Interval:
    """So many right answers."""
    return read_interval(close_scores([1.0] * hits + [0.0] * (n - hits), ci=ci))


def reach_around(hits: int, n: int) -> Interval:
    """The value ± 1.96 standard errors."""
    p = hits / n
    reach = 1.96 * sqrt(p * (1 - p) / (n - 1))
    return Interval(p - reach, p, p + reach)


def draw_studies() -> Iterator[tuple[Interval, Interval]]:
    """Studies of questions about passages, half of whose variance is between these: without and with clusters."""
    rng = np.random.default_rng(7)
    passage = np.repeat(np.arange(PASSAGES), QUESTIONS)
    for _ in range(STUDIES):
        easy = rng.beta(TRUTH, 1 - TRUTH, PASSAGES)  # a correlation of 1/2 between questions about one passage
        scores = [float(right) for right in rng.random(len(passage)) < easy[passage]]
        yield read_interval(close_scores(scores)), read_interval(close_scores(scores, passage.tolist()))


def compare_published() -> tuple[Interval, Interval, Interval, Interval]:
    """A and B alone; their difference as if other questions had been asked of each, and question by question."""
    kinds = [(1, 1)] * BOTH + [(1, 0)] * ONLY_A + [(0, 1)] * ONLY_B + [(0, 0)] * NEITHER
    sides = [close_scores([float(kind[side]) for kind in kinds]) for side in (0, 1)]
    a, b = (read_interval(side) for side in sides)
    reach = 1.96 * sqrt(sum((side.stderr or 0.0) ** 2 for side in sides))
    apart = a.value - b.value
    with TemporaryDirectory() as home:
        paths = [Path(home, model, "gsm8k.jsonl") for model in "AB"]
        for side, path in enumerate(paths):
            path.parent.mkdir()
            path.write_text("\n".join(json.dumps({"id": at, "right": kind[side]}) for at, kind in enumerate(kinds)))
        [line] = evalcore.compare(*paths, score="right", id="id").comparisons[0].lines
    if line.ci is None or line.difference is None:
        raise ValueError(f"expected a difference, got {line}")
    return a, b, Interval(apart - reach, apart, apart + reach), Interval(line.ci[0], line.difference, line.ci[1])


def run_quickstart() -> evalcore.Report:
    """The report of the quickstart."""
    with TemporaryDirectory() as home:
        return evalcore.run(ROOT / "examples" / "quickstart" / "config.yaml", output_path=f"{home}/run").report
