"""Growth: time and memory from a thousand documents to ten million, scored as they stream by, then closed.

Each size is a process of its own. Documents are made some at a time and forgotten, as those of a log are; to make them
is not timed. Of each a score is kept in columns, or its score is counted in a tally, as ``score --tally`` does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from time import process_time

import msgspec
import numpy as np
from msgspec import Struct

from bench.measure import fit_exponent, list_sizes, run_python
from bench.rows import Row, at_most
from evalcore import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    MetricSpec,
    Pipeline,
    Sample,
    Scored,
    Step,
    Task,
    freeze_options,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.logs import AnswerTable, request_table
from evalcore.stats import tally_parts

STEP, DIFFERENT = 50_000, 4
"""Documents at a time; after so many times, the same golds and answers come again under other numbers."""
NUMBER = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"
CHOICES = ("one", "three", "two hundred", "six")
Piece = tuple[Task, list[Sample], AnswerTable]
Make = Callable[[int, int], Piece]
"""The documents from a number on, so many of them, at most STEP."""

CHILD = """
import sys
from bench.scale.growth import score_streamed
print(score_streamed(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def make_choices(step: int = STEP) -> Make:
    """Four choices: right or wrong by two metrics, and a Brier score that is different almost everywhere."""
    rng = np.random.default_rng(0)
    golds = rng.integers(4, size=(DIFFERENT, step)).tolist()
    said = [[(one, False) for one in row] for row in rng.normal(-12, 4, (DIFFERENT, 4 * step)).tolist()]
    task = Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score"))))

    def make(start: int, count: int) -> Piece:
        at = start // step % DIFFERENT
        keys = np.repeat(np.arange(start, start + count), 4)
        samples = [Sample(start + i, gold=gold, choices=CHOICES) for i, gold in enumerate(golds[at][:count])]
        asked = request_table("choices", keys, np.tile(np.arange(4), count))
        return task, samples, asked.answered(said[at][: 4 * count])

    return make


def make_generation(step: int = STEP) -> Make:
    """Replies with a number, under two filters."""
    rng = np.random.default_rng(0)
    golds = rng.integers(1, 5000, (DIFFERENT, step))
    wrong = rng.integers(0, 2, golds.shape)
    texts = [
        [f"so it is {a} in all.\n#### {b}" for a, b in zip(*pair, strict=True)]
        for pair in zip(golds.tolist(), (golds + wrong).tolist(), strict=True)
    ]
    said = [[str(gold) for gold in own] for own in golds.tolist()]
    pipelines = (
        Pipeline("strict", (Step.of("regex"), Step.of("take_first"))),
        Pipeline("last", (Step.of("regex", regex_pattern=NUMBER, group_select=-1), Step.of("take_first"))),
    )
    metric = MetricSpec("exact_match", options=freeze_options(ignore_case=True, regexes_to_ignore=[",", "\\$"]))
    task = Task("generation", GENERATE_UNTIL, (metric,), pipelines)

    def make(start: int, count: int) -> Piece:
        at = start // step % DIFFERENT
        samples = [Sample(start + i, gold=gold) for i, gold in enumerate(said[at][:count])]
        asked = request_table("generation", np.arange(start, start + count), np.zeros(count, np.int64))
        return task, samples, asked.answered(texts[at][:count])

    return make


CASES: dict[str, Callable[..., Make]] = {"choices": make_choices, "generation": make_generation}
FORMS: dict[str, Callable[[list[Scored]], list[Scored]]] = {
    "columns": lambda parts: parts,
    "tally": lambda parts: tally_parts(parts, least=0),
}
"""What is kept of the documents so far."""


class Spent(Struct, frozen=True):
    """Seconds of scoring and of merging and closing, megabytes at the peak, and the numbers."""

    scoring: float
    closing: float
    numbers: str
    memory: float = 0.0


def score_streamed(case: str, form: str, n: int) -> str:
    """Score so many documents some at a time, and close them."""
    gc.disable()  # as `evalcore score` does: records have no cycles
    make, keep = CASES[case](min(n, STEP)), FORMS[form]
    score_task(*make(0, min(n, 1000)))  # imports, patterns
    parts: list[Scored] = []
    scoring = 0.0
    for start in range(0, n, STEP):
        piece = make(start, min(STEP, n - start))
        begun = process_time()
        parts = keep([*parts, score_task(*piece)])
        scoring += process_time() - begun
        del piece  # a log's are forgotten, too, before the next are read
    begun = process_time()
    whole = merge_scored(parts)
    del parts
    report = report_task(whole)
    return msgspec.json.encode(Spent(scoring, process_time() - begun, str(report))).decode()


def measure_growth(case: str, form: str, sizes: Sequence[int], most_memory: dict[int, float]) -> Iterator[Row]:
    """Each size in a process of its own, then how costs grow; ``most_memory`` has the megabytes promised at a size."""
    taken: dict[int, Spent] = {}
    for n in sizes:
        used = run_python(CHILD, case, form, n)
        spent = taken[n] = msgspec.json.decode(used.output, type=Spent)
        yield Row(
            what=f"{case}, {form}, {n:,}",
            ours=(spent.scoring + spent.closing) / n * 1e6,
            unit="µs a document",
            memory=used.memory,
            targets=(at_most(most_memory[n], "memory"),) if n in most_memory else (),
            note=f"scoring {spent.scoring / n * 1e6:.2f}, merging and closing {spent.closing / n * 1e6:.2f}",
        )
    if len(taken) > 1:
        yield _fit(f"{case}, {form}", taken)


def _fit(what: str, taken: dict[int, Spent]) -> Row:
    scoring, closing = [one.scoring for one in taken.values()], [one.closing for one in taken.values()]
    both = [one.scoring + one.closing for one in taken.values()]
    exponents = [fit_exponent(list(taken), part) for part in (both, scoring, closing)]
    return Row(
        what=f"{what}, growth",
        ours=both[-1] / max(taken) * 1e6,
        unit="µs a document",
        exponent=exponents[0],
        targets=(at_most(1.05, "exponent"),),
        note=f"exponents of scoring {exponents[1]:.2f}, of merging and closing {exponents[2]:.2f}",
    )


PROMISED = {10_000_000: 500.0}
"""Megabytes at the peak."""


def measure_rows(*, least: int = 1_000, most: int = 10_000_000) -> Iterator[Row]:
    for case in CASES:
        yield from measure_growth(case, "columns", list_sizes(least, most), PROMISED)
