"""TER and ROUGE: sacrebleu, rouge-score and evalcore on the same texts, in one process, to the same bits.

Texts of 20, 200 and 1,000 words, 20 a line; a prediction is its gold with a third of the words changed or moved. CPU
time of one pass, from texts to scores. sacrebleu takes half a minute for 1,000 words.

    python bench/text.py [--longest 200]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import TER
from words import WORDS

from evalcore.core.answers.text import make_texts
from evalcore.core.metrics.corpus import pair_statistics
from evalcore.core.metrics.text import TEXT_METRICS

LINE = 20
SIZES = {20: 300, 200: 20, 1000: 6}
"""Words of a text, and how many such texts; TER takes a tenth of them."""

ROUGES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
VOCABULARY = [
    *WORDS,
    *(one + end for one in WORDS for end in ("s", "ing", "ed", "ation", "ally")),
    *map("".join, pairwise(WORDS)),
]
Pairs = Sequence[tuple[str, str]]


class Work(NamedTuple):
    """The same scores by a peer and by evalcore."""

    name: str
    theirs: Callable[[], list[object]]
    ours: Callable[[], list[object]]


def text_pairs(n: int, words: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Golds and predictions; words are about as common as in a language (Zipf)."""
    weights = 1 / np.arange(2, len(VOCABULARY) + 2)
    pairs = []
    for _ in range(n):
        gold = rng.choice(VOCABULARY, size=words, p=weights / weights.sum())
        said = np.where(rng.random(words) < 0.2, rng.choice(VOCABULARY, size=words), gold)
        for _ in range(words // LINE):
            start, target = rng.integers(words - 5, size=2)
            said = np.insert(np.delete(said, np.s_[start : start + 3]), target, said[start : start + 3])
        pairs.append((join_lines(gold), join_lines(said)))
    return pairs


def join_lines(words: np.ndarray) -> str:
    return "\n".join(" ".join(words[at : at + LINE]) for at in range(0, len(words), LINE))


def of_ter(pairs: Pairs) -> Work:
    golds, said = ([pair[side] for pair in pairs] for side in (0, 1))
    return Work(
        "ter",
        lambda: TER()._extract_corpus_statistics(said, [golds]),
        lambda: pair_statistics("ter", pairs).tolist(),
    )


def of_rouge(kind: str, pairs: Pairs, stem: bool) -> Work:
    scorer = RougeScorer([kind], use_stemmer=stem)
    golds, said = ([pair[side] for pair in pairs] for side in (0, 1))
    score = partial(TEXT_METRICS[kind].score, make_texts(said, golds), {"use_stemmer": stem})
    return Work(
        f"{kind}{', stems' if stem else ''}",
        lambda: [scorer.score(gold, text)[kind].fmeasure for gold, text in pairs],
        lambda: score().values.data.tolist(),
    )


def seconds(work: Callable[[], list[object]]) -> tuple[float, list[object]]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def line(work: Work, words: int, texts: int) -> str:
    (ours, found), (theirs, expected) = seconds(work.ours), seconds(work.theirs)
    return (
        f"{work.name:17s} {words:5,} words | peer {theirs / texts * 1e3:10,.3f} ms a text | evalcore"
        f" {ours / texts * 1e3:8,.3f} ms, ratio {theirs / ours:6,.1f} | {'equal' if found == expected else 'UNEQUAL'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=1000)
    given = parser.parse_args()
    print("wanted: at least 3, equal")
    for words, texts in SIZES.items():
        if words > given.longest:
            break
        pairs = text_pairs(texts, words, np.random.default_rng(words))
        few = pairs[: max(1, texts // 10)]
        print(line(of_ter(few), words, len(few)), flush=True)
        for stem in (False, True):
            for kind in ROUGES:
                print(line(of_rouge(kind, pairs, stem), words, texts), flush=True)


if __name__ == "__main__":
    main()
