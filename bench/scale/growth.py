"""Growth: time and memory from a thousand documents to ten million, scored as they stream by, then closed.

Each size is a process of its own. Documents are made a chunk at a time and forgotten, as those of a log are; to make
them is not timed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from time import process_time

import msgspec
import numpy as np

from bench.measure import fit_exponent, list_sizes, run_python
from bench.rows import Row, at_most
from evalcore import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Task,
    freeze_options,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.logs import AnswerTable, request_table

NUMBER = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"
CHUNK = 2000
Made = tuple[Task, list[Sample], AnswerTable]
CHILD = "import sys; from bench.scale.growth import score_streamed; score_streamed(sys.argv[1], int(sys.argv[2]))"


def make_choices(start: int, n: int) -> Made:
    """Four choices, three metrics."""
    rng = np.random.default_rng(0)
    golds = rng.integers(4, size=n).tolist()
    samples = [
        Sample(start + i, gold=one, choices=("one", "three", "two hundred", "six")) for i, one in enumerate(golds)
    ]
    asked = request_table("choices", np.repeat(np.arange(start, start + n), 4), np.tile(np.arange(4), n))
    table = asked.answered([(ll, False) for ll in rng.normal(-12, 4, 4 * n).tolist()])
    return Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score")))), samples, table


def make_generations(start: int, n: int) -> Made:
    """Two regex pipelines, one metric with options."""
    rng = np.random.default_rng(0)
    golds = rng.integers(1, 5000, n).tolist()
    samples = [Sample(start + i, gold=str(gold)) for i, gold in enumerate(golds)]
    texts = [f"so it is {gold + int(rng.random() < 0.4)} in all.\n#### {gold}" for gold in golds]
    pipelines = (
        Pipeline("strict", (Step.of("regex"), Step.of("take_first"))),
        Pipeline("last", (Step.of("regex", regex_pattern=NUMBER, group_select=-1), Step.of("take_first"))),
    )
    metric = MetricSpec("exact_match", options=freeze_options(ignore_case=True, regexes_to_ignore=[",", "\\$"]))
    return (
        Task("generation", GENERATE_UNTIL, (metric,), pipelines),
        samples,
        request_table("generation", range(start, start + n), [0] * n).answered(texts),
    )


CASES: dict[str, Callable[[int, int], Made]] = {"choices": make_choices, "generation": make_generations}


def score_streamed(case: str, n: int) -> None:
    """Score so many documents chunk by chunk, close them, and print the seconds of both."""
    gc.disable()  # as `evalcore score` does: records have no cycles
    parts, scoring = [], 0.0
    for start in range(0, n, CHUNK):
        made = CASES[case](start, min(CHUNK, n - start))
        begun = process_time()
        parts.append(score_task(*made))
        scoring += process_time() - begun
    begun = process_time()
    report_task(merge_scored(parts))
    print(msgspec.json.encode([scoring, process_time() - begun]).decode())


def measure_rows(*, least: int = 1_000, most: int = 10_000_000) -> Iterator[Row]:
    for case in CASES:
        taken: dict[int, tuple[float, float]] = {}
        for n in list_sizes(least, most):
            used = run_python(CHILD, case, n)
            scoring, closing = msgspec.json.decode(used.output)
            taken[n] = scoring, closing
            note = f"scoring {scoring / n * 1e6:.2f}, merging and closing {closing / n * 1e6:.2f}"
            cost = (scoring + closing) / n * 1e6
            yield Row(what=f"{case}, {n:,}", ours=cost, unit="µs a document", memory=used.memory, note=note)
        if len(taken) > 1:
            yield _fit(case, taken)


def _fit(case: str, taken: dict[int, tuple[float, float]]) -> Row:
    sizes, costs = list(taken), list(taken.values())
    both, scoring, closing = (fit_exponent(sizes, part) for part in (list(map(sum, costs)), *zip(*costs, strict=True)))
    largest = sizes[-1]
    return Row(
        what=f"{case}, growth to {largest:,}",
        ours=sum(taken[largest]) / largest * 1e6,
        unit="µs a document",
        exponent=both,
        targets=(at_most(1.05, "exponent"),),
        note=f"exponents of scoring {scoring:.2f}, of merging and closing {closing:.2f}",
    )
