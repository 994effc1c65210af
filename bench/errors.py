"""Standard errors: lm-eval's bootstrap and evalcore's influences on the same scores, in one process.

lm-eval draws 100,000 resamples (100 of a corpus). F1 and MCC would take minutes each: by default they are drawn 2,000
times and the time is multiplied; ``--full`` draws them all.

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

from evalcore import AGGREGATIONS, Array, Floats, Labels, Stats, aggregate_metric, column
from evalcore.core.columns import Rows
from evalcore.core.metrics.corpus import pair_statistics


def sentence_pairs(n: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    pairs = []
    for _ in range(n):
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=18)]
        changed = [WORDS[rng.integers(len(WORDS))] if rng.random() < 0.3 else word for word in words]
        pairs.append((" ".join(words), " ".join(changed)))
    return pairs


def seconds(work: Callable[[], object], rounds: int = 1) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            work()
        best = min(best, time.perf_counter() - start)
    return best


class Work(NamedTuple):
    """A statistic in both libraries, on the same scores."""

    name: str
    theirs: Callable[..., float]
    items: Sequence[object]
    rows: Rows
    draws: int
    drawn: int
    wanted: int
    count: Callable[[], object] | None = None


def compare(work: Work) -> str:
    """One line: their time for ``draws`` resamples (measured on ``drawn``), ours for value, error and interval.

    Of a corpus, both count the n-grams of every sentence once for the value; the last ratio charges that to us.
    """
    found: list[float] = []
    slow = seconds(lambda: found.append(theirs.bootstrap_stderr(work.theirs, work.items, work.drawn)))
    slow *= work.draws / work.drawn
    scores = column(range(len(work.items)), work.rows)
    quick = seconds(lambda: aggregate_metric(AGGREGATIONS[work.name], scores), rounds=7)
    ours = aggregate_metric(AGGREGATIONS[work.name], scores).stderr
    note = "" if work.drawn == work.draws else f" (from {work.drawn:,} draws)"
    more = "" if work.count is None else f" | with counting {slow / (quick + seconds(work.count, rounds=3)):,.0f}"
    return (
        f"{work.name:18s} lm-eval {slow:9.2f} s{note} | evalcore {quick * 1e3:7.3f} ms | ratio {slow / quick:10,.0f}"
        f" (wanted {work.wanted:,}){more} | stderr {found[0]:.5g} and {ours:.5g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=int, default=500)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    n = given.docs
    numbers = rng.normal(-3, 1, n)
    labels = np.column_stack([rng.integers(2, size=n), rng.integers(2, size=n)])
    labels[:, 1] = np.where(rng.random(n) < 0.7, labels[:, 0], labels[:, 1])
    pairs = [tuple(row) for row in labels.tolist()]
    all_draws = 100_000
    few = all_draws if given.full else 2_000
    floats, classes = Floats(Array(numbers)), Labels(Array(labels))
    print(compare(Work("perplexity", theirs.perplexity, numbers.tolist(), floats, all_draws, all_draws, 1000)))
    print(compare(Work("median", theirs.median, numbers.tolist(), floats, all_draws, all_draws, 1000)))
    print(compare(Work("f1", theirs.f1_score, pairs, classes, all_draws, few, 1000)))
    print(compare(Work("matthews_corrcoef", theirs.matthews_corrcoef, pairs, classes, all_draws, few, 1000)))
    texts = sentence_pairs(200, rng)
    for name, statistic in CORPUS:
        counts = pair_statistics(name, texts)
        again = partial(pair_statistics, name, texts)
        print(compare(Work(name, statistic, texts, Stats(Array(counts)), 100, 100, 80, again)))


CORPUS = (("bleu", theirs.bleu), ("chrf", theirs.chrf), ("chrf++", theirs.chrfpp), ("ter", theirs.ter))

if __name__ == "__main__":
    main()
