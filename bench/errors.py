"""Standard errors: lm-eval's bootstrap, its replay and evalcore's own errors on the same scores, in one process.

lm-eval draws 100,000 resamples (100 of a corpus). F1 and MCC would take minutes each: by default they are drawn 2,000
times and the time is multiplied; ``--full`` draws them all. The replay draws the same resamples as lm-eval and must
give the same number; the default is a closed form of what they estimate.

    python bench/errors.py [--docs 500] [--full]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

os.environ["DISABLE_MULTIPROC"] = "1"

import numpy as np
from lm_eval.api import metrics as theirs
from words import WORDS

from evalcore import AGGREGATIONS, aggregate_metric
from evalcore.core.metrics.corpus import pair_statistics
from evalcore.core.records.row import Rows
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import Array, Floats, Inference, Labels, Resampling, Stats, build_column

ALL_DRAWS = 100_000
CORPUS_DRAWS = 100


class Work(NamedTuple):
    """A statistic in both libraries, on the same scores; ``drawn`` of its ``draws`` are measured in lm-eval."""

    name: str
    theirs: Callable[..., float]
    items: Sequence[object]
    rows: Rows
    draws: int
    drawn: int
    count: Callable[[], object] | None = None


class Times(NamedTuple):
    """Seconds for value and error, and lm-eval's stderr beside the replayed one, both of ``drawn`` resamples.

    Both count the n-grams of every sentence of a corpus once for the value; here that is charged to us alone.
    """

    lm_eval: float
    default: float
    replayed: float
    stderrs: tuple[float, float]


def seconds(work: Callable[[], object], rounds: int = 1) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def lm_eval_stderr(work: Work) -> float:
    """lm-eval's own, of as many draws as are measured."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return theirs.bootstrap_stderr(work.theirs, work.items, work.drawn)


def replay_stderr(work: Work, draws: int) -> float | None:
    """The same resamples drawn by evalcore."""
    scores, inference = build_column(range(len(work.items)), work.rows), Inference(resampling=Resampling(draws))
    return aggregate_metric(LM_EVAL_0_4_13.aggregations[work.name], scores, inference=inference).stderr


def measure(work: Work) -> Times:
    scores = build_column(range(len(work.items)), work.rows)
    found: list[float] = []
    slow = seconds(lambda: found.append(lm_eval_stderr(work)))
    counting = 0.0 if work.count is None else seconds(work.count, rounds=3)
    default = seconds(lambda: aggregate_metric(AGGREGATIONS[work.name], scores), rounds=7)
    replayed = seconds(lambda: replay_stderr(work, work.draws), rounds=3)
    return Times(
        slow * work.draws / work.drawn,
        default + counting,
        replayed + counting,
        (found[0], replay_stderr(work, work.drawn)),
    )


def line(work: Work, times: Times) -> str:
    note = "" if work.drawn == work.draws else f" (from {work.drawn:,})"
    theirs, ours = times.stderrs
    return (
        f"{work.name:18s} lm-eval {times.lm_eval:7.2f} s of {work.draws:,} draws{note}"
        f" | replay {times.replayed * 1e3:7.1f} ms, ratio {times.lm_eval / times.replayed:5,.0f}"
        f" | default {times.default * 1e3:7.3f} ms, ratio {times.lm_eval / times.default:9,.0f}"
        f" | stderr {theirs:.15g} replayed {abs(ours / theirs - 1):.0e} off"
    )


def sentence_pairs(n: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    pairs = []
    for _ in range(n):
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=18)]
        changed = [WORDS[rng.integers(len(WORDS))] if rng.random() < 0.3 else word for word in words]
        pairs.append((" ".join(words), " ".join(changed)))
    return pairs


def of_numbers(n: int, drawn: int) -> list[Work]:
    numbers = np.random.default_rng(0).normal(-3, 1, n)
    given = numbers.tolist(), Floats(Array(numbers)), ALL_DRAWS, drawn
    return [Work("perplexity", theirs.perplexity, *given), Work("median", theirs.median, *given)]


def of_classes(n: int, drawn: int) -> list[Work]:
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=(n, 2))
    labels[:, 1] = np.where(rng.random(n) < 0.7, labels[:, 0], labels[:, 1])
    given = [tuple(row) for row in labels.tolist()], Labels(Array(labels)), ALL_DRAWS, drawn
    return [Work("f1", theirs.f1_score, *given), Work("matthews_corrcoef", theirs.matthews_corrcoef, *given)]


def of_corpora(n: int, drawn: int = CORPUS_DRAWS) -> list[Work]:
    texts = sentence_pairs(n, np.random.default_rng(2))

    def work(name: str, statistic: Callable[..., float]) -> Work:
        count = partial(pair_statistics, name, texts)
        return Work(name, statistic, texts, Stats(Array(count())), CORPUS_DRAWS, drawn, count)

    return [
        work("bleu", theirs.bleu),
        work("chrf", theirs.chrf),
        work("chrf++", theirs.chrfpp),
        work("ter", theirs.ter),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=500)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    few = ALL_DRAWS if given.full else 2_000
    print("wanted: replay at least 300 (f1, matthews_corrcoef) and 80 (corpora, with counting); default 1,000 and 80")
    for work in (*of_numbers(given.docs, ALL_DRAWS), *of_classes(given.docs, few), *of_corpora(200)):
        print(line(work, measure(work)), flush=True)


if __name__ == "__main__":
    main()
