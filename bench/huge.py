"""Bigger than memory: documents scored and tallied as they stream by, ten thousand to a hundred million of them.

python bench/huge.py [--most 100000000] [--columns 10000000]

Each line is a process of its own: processor time of scoring, tallying and closing, and its peak memory. The exponent is
that of time in the number of documents, from ten thousand to ten million. ``--columns`` keeps a score of each document
instead, as ``score`` does without ``--tally``. At the end: what is exact in a tally, and what is refused.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from evalcore import (
    GENERATE_UNTIL,
    MULTIPLE_CHOICE,
    MetricSpec,
    Pipeline,
    Sample,
    Scored,
    Step,
    Task,
    merge_scored,
    report_task,
    score_task,
)
from evalcore.logs import AnswerTable, request_table
from evalcore.stats import list_support, tally_parts

STEP, DIFFERENT = 50_000, 4
"""Documents at a time; after so many times, the same golds and answers come again under other numbers."""
NUMBER = r"(-?[$0-9.,]{2,})|(-?[0-9]+)"
CHOICES = ("one", "three", "two hundred", "six")
Piece = tuple[list[Sample], AnswerTable]


def make_choices() -> tuple[Task, Callable[[int, int], Piece]]:
    """Four choices: right or wrong by two metrics, and a Brier score that is different almost everywhere."""
    rng = np.random.default_rng(0)
    golds = rng.integers(4, size=(DIFFERENT, STEP)).tolist()
    said = [[(one, False) for one in row] for row in rng.normal(-12, 4, (DIFFERENT, 4 * STEP)).tolist()]

    def make(start: int, count: int) -> Piece:
        at = start // STEP % DIFFERENT
        keys = np.repeat(np.arange(start, start + count), 4)
        samples = [Sample(start + i, gold=gold, choices=CHOICES) for i, gold in enumerate(golds[at][:count])]
        return samples, request_table("choices", keys, np.tile(np.arange(4), count)).answered(said[at][: 4 * count])

    return Task("choices", MULTIPLE_CHOICE, tuple(map(MetricSpec, ("acc", "acc_norm", "brier_score")))), make


def make_generation() -> tuple[Task, Callable[[int, int], Piece]]:
    """Replies with a number, under two filters."""
    rng = np.random.default_rng(0)
    golds = rng.integers(1, 5000, (DIFFERENT, STEP))
    texts = [
        [f"so it is {a} in all.\n#### {b}" for a, b in zip(own.tolist(), (own + wrong).tolist(), strict=True)]
        for own, wrong in zip(golds, rng.integers(0, 2, golds.shape), strict=True)
    ]
    said = [[str(gold) for gold in own] for own in golds.tolist()]
    pipelines = (
        Pipeline("strict", (Step.of("regex"), Step.of("take_first"))),
        Pipeline("last", (Step.of("regex", regex_pattern=NUMBER, group_select=-1), Step.of("take_first"))),
    )

    def make(start: int, count: int) -> Piece:
        at = start // STEP % DIFFERENT
        samples = [Sample(start + i, gold=gold) for i, gold in enumerate(said[at][:count])]
        asked = request_table("generation", np.arange(start, start + count), np.zeros(count, np.int64))
        return samples, asked.answered(texts[at][:count])

    return Task("generation", GENERATE_UNTIL, (MetricSpec("exact_match"),), pipelines), make


TASKS = {"choices": make_choices, "generation": make_generation}


def measure(kind: str, n: int, keep: bool) -> dict[str, object]:
    """Stream so many documents; return processor seconds, megabytes, and the numbers."""
    task, make = TASKS[kind]()
    score_task(task, *make(0, 1000))  # imports, patterns
    parts: list[Scored] = []
    spent = 0.0
    for start in range(0, n, STEP):
        piece = make(start, min(STEP, n - start))
        begun = time.process_time()
        parts.append(score_task(task, *piece))
        parts = parts if keep else tally_parts(parts, least=0)
        spent += time.process_time() - begun
    begun = time.process_time()
    whole = merge_scored(parts)
    del parts
    report = report_task(whole)
    spent += time.process_time() - begun
    return {
        "seconds": spent,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "numbers": str(report).splitlines()[1:],
    }


def run(kind: str, n: int, *, keep: bool = False) -> dict[str, object]:
    """Measure in a process of its own, and print a line."""
    call = [sys.executable, __file__, "--one", kind, str(n), str(int(keep))]
    found: dict[str, object] = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    seconds, megabytes = float(str(found["seconds"])), float(str(found["megabytes"]))
    form = "columns" if keep else "tally"
    print(f"{kind:11s} {form:8s}{n:>12,} | {seconds / n * 1e6:5.2f} µs a document | {megabytes:6.0f} MB", flush=True)
    return found


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of time in size on the scale of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def sizes_up_to(most: int) -> Iterator[int]:
    n = 10_000
    while n <= most:
        yield n
        n *= 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=100_000_000)
    parser.add_argument("--columns", type=int, default=0, help="also keep a score of each of so many documents")
    parser.add_argument("--only", choices=TASKS, help="one of the two tasks")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]), given.one[2] == "1")))
        return
    for kind in [given.only] if given.only else TASKS:
        found = {n: run(kind, n) for n in sizes_up_to(given.most)}
        small = [n for n in found if n <= 10_000_000]
        seconds = [float(str(found[n]["seconds"])) for n in small]
        if len(small) > 1:
            print(f"{kind:11s} exponent {exponent(small, seconds):.3f}, {small[0]:,} to {small[-1]:,}")
        if given.columns:
            run(kind, given.columns, keep=True)
        print("\n".join(found[max(found)]["numbers"]))  # type: ignore[arg-type]
    print()
    for what, name, how in list_support():
        print(f"{what:12s} {name:20s} {how}")
    print("refused too: clusters, paired comparison, bootstrap; left out: the noise of repeats, replies")


if __name__ == "__main__":
    main()
