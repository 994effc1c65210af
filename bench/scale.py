"""Growth: time and peak memory per document from ten thousand to a million documents.

python bench/scale.py [--most 1000000]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np

from evalcore import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Task,
    freeze_options,
    report_task,
    score_task,
)
from evalcore.logs import AnswerTable, request_table

NUMBER = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"


def choices(n: int) -> tuple[Task, list[Sample], AnswerTable]:
    rng = np.random.default_rng(0)
    golds = rng.integers(4, size=n).tolist()
    samples = [Sample(i, gold=gold, choices=("one", "three", "two hundred", "six")) for i, gold in enumerate(golds)]
    asked = request_table("choices", np.repeat(np.arange(n), 4), np.tile(np.arange(4), n))
    table = asked.answered([(ll, False) for ll in rng.normal(-12, 4, 4 * n).tolist()])
    return Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score")))), samples, table


def generation(n: int) -> tuple[Task, list[Sample], AnswerTable]:
    rng = np.random.default_rng(0)
    golds = rng.integers(1, 5000, n).tolist()
    samples = [Sample(i, gold=str(gold)) for i, gold in enumerate(golds)]
    texts = [f"so it is {gold + int(rng.random() < 0.4)} in all.\n#### {gold}" for gold in golds]
    pipelines = (
        Pipeline("strict", (Step.of("regex"), Step.of("take_first"))),
        Pipeline("last", (Step.of("regex", regex_pattern=NUMBER, group_select=-1), Step.of("take_first"))),
    )
    metric = MetricSpec("exact_match", options=freeze_options(ignore_case=True, regexes_to_ignore=[",", "\\$"]))
    return (
        Task("generation", GENERATE_UNTIL, (metric,), pipelines),
        samples,
        request_table("generation", range(n), [0] * n).answered(texts),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000)
    given = parser.parse_args()
    for name, build in (("choices", choices), ("generation", generation)):
        n = 10_000
        while n <= given.most:
            task, samples, table = build(n)
            start = time.perf_counter()
            report_task(score_task(task, samples, table))
            spent = time.perf_counter() - start
            tracemalloc.start()
            report_task(score_task(task, samples, table))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            print(
                f"{name:12s} {n:>9,} documents | {spent / n * 1e6:6.2f} us each | "
                f"peak {peak / n:6.1f} bytes each beyond the inputs"
            )
            n *= 10


if __name__ == "__main__":
    main()
