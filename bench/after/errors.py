"""Standard errors: lm-eval's bootstrap, its replay and evalcore's own errors on the same scores, in one process.

lm-eval draws 100,000 resamples (100 of a corpus). F1 and MCC would take minutes each: by default they are drawn 2,000
times and the time is multiplied; ``full`` draws them all. The replay draws the same resamples as lm-eval and must
give the same number; the default is a closed form of what they estimate.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

os.environ["DISABLE_MULTIPROC"] = "1"

import numpy as np
from lm_eval.api import metrics as theirs

from bench.measure import best_seconds
from bench.rows import Row, at_least
from bench.texts import write_pairs
from evalcore import AGGREGATIONS, aggregate_metric
from evalcore.core.metrics.corpus import pair_statistics
from evalcore.core.records.row import Rows
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import Array, Floats, Inference, Labels, Resampling, Stats, build_column

ALL_DRAWS = 100_000
CORPUS_DRAWS = 100


class Work(NamedTuple):
    """A statistic in both libraries, on the same scores; ``drawn`` of its ``draws`` are measured in lm-eval.

    ``wanted``: the least ratios of the closed form and of the replay.
    """

    name: str
    theirs: Callable[..., float]
    items: Sequence[object]
    rows: Rows
    draws: int
    drawn: int
    wanted: tuple[float, float]
    count: Callable[[], object] | None = None


class Times(NamedTuple):
    """Seconds for value and error, and lm-eval's stderr beside the replayed one, both of ``drawn`` resamples.

    Both count the n-grams of every sentence of a corpus once for the value; here that is charged to us alone.
    """

    lm_eval: float
    default: float
    replayed: float
    stderrs: tuple[float, float]


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
    slow = best_seconds(lambda: found.append(lm_eval_stderr(work)))
    counting = 0.0 if work.count is None else best_seconds(work.count, rounds=3)
    default = best_seconds(lambda: aggregate_metric(AGGREGATIONS[work.name], scores), rounds=7)
    replayed = best_seconds(lambda: replay_stderr(work, work.draws), rounds=3)
    return Times(
        slow * work.draws / work.drawn,
        default + counting,
        replayed + counting,
        (found[0], replay_stderr(work, work.drawn)),
    )


def of_numbers(n: int, drawn: int) -> list[Work]:
    numbers = np.random.default_rng(0).normal(-3, 1, n)
    given = numbers.tolist(), Floats(Array(numbers)), ALL_DRAWS, drawn, (1000, 0)
    return [Work("perplexity", theirs.perplexity, *given), Work("median", theirs.median, *given)]


def of_classes(n: int, drawn: int) -> list[Work]:
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=(n, 2))
    labels[:, 1] = np.where(rng.random(n) < 0.7, labels[:, 0], labels[:, 1])
    given = [tuple(row) for row in labels.tolist()], Labels(Array(labels)), ALL_DRAWS, drawn, (1000, 300)
    return [Work("f1", theirs.f1_score, *given), Work("matthews_corrcoef", theirs.matthews_corrcoef, *given)]


def of_corpora(n: int, drawn: int = CORPUS_DRAWS) -> list[Work]:
    texts = write_pairs(n, np.random.default_rng(2))

    def work(name: str, statistic: Callable[..., float]) -> Work:
        count = partial(pair_statistics, name, texts)
        return Work(name, statistic, texts, Stats(Array(count())), CORPUS_DRAWS, drawn, (80, 80), count)

    return [
        work("bleu", theirs.bleu),
        work("chrf", theirs.chrf),
        work("chrf++", theirs.chrfpp),
        work("ter", theirs.ter),
    ]


def measure_rows(*, docs: int = 500, sentences: int = 200, full: bool = False) -> Iterator[Row]:
    few = ALL_DRAWS if full else 2_000
    for work in (*of_numbers(docs, ALL_DRAWS), *of_classes(docs, few), *of_corpora(sentences)):
        times = measure(work)
        lm_eval, replayed = times.stderrs
        assert abs(replayed / lm_eval - 1) < 1e-12, f"{work.name}: {lm_eval} replayed as {replayed}"
        note = "" if work.drawn == work.draws else f"lm-eval's time is that of {work.drawn:,} draws, multiplied"
        kinds = ("closed form", times.default, work.wanted[0]), ("replayed", times.replayed, work.wanted[1])
        for kind, ours, wanted in kinds:
            yield Row(
                what=f"{work.name}, {kind}",
                peer=times.lm_eval * 1e3,
                ours=ours * 1e3,
                unit="ms",
                targets=(at_least(wanted),) if wanted else (),
                note=note,
            )
