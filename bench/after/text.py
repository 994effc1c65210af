"""TER and ROUGE: sacrebleu, rouge-score and evalcore on the same texts, in one process, to the same bits.

Texts of 20, 200 and 1,000 words, 20 a line; a prediction is its gold with a third of the words changed or moved. CPU
time of one pass, from texts to scores. sacrebleu takes half a minute for 1,000 words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import TER

from bench.measure import best_seconds
from bench.rows import Row, at_least
from bench.texts import WORDS
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
    peer: str
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
        "sacrebleu",
        lambda: TER()._extract_corpus_statistics(said, [golds]),
        lambda: pair_statistics("ter", pairs).tolist(),
    )


def of_rouge(kind: str, pairs: Pairs, stem: bool) -> Work:
    scorer = RougeScorer([kind], use_stemmer=stem)
    golds, said = ([pair[side] for pair in pairs] for side in (0, 1))
    score = partial(TEXT_METRICS[kind].score, make_texts(said, golds), {"use_stemmer": stem})
    return Work(
        f"{kind}{', stems' if stem else ''}",
        "rouge-score",
        lambda: [scorer.score(gold, text)[kind].fmeasure for gold, text in pairs],
        lambda: score().values.data.tolist(),
    )


def compare(work: Work, words: int, texts: int) -> Row:
    """Milliseconds a text of both, whose scores must be equal."""
    found: list[list[object]] = []
    ours, theirs = (best_seconds(lambda run=run: found.append(run())) / texts * 1e3 for run in (work.ours, work.theirs))
    assert found[0] == found[1], f"{work.name}: other scores"
    return Row(
        what=f"{work.name}, {words:,} words",
        peer=theirs,
        of=work.peer,
        ours=ours,
        unit="ms a text",
        targets=(at_least(3),),
    )


def measure_rows(*, longest: int = 1000) -> Iterator[Row]:
    for words, texts in SIZES.items():
        if words > longest:
            break
        pairs = text_pairs(texts, words, np.random.default_rng(words))
        few = pairs[: max(1, texts // 10)]
        yield compare(of_ter(few), words, len(few))
        for stem in (False, True):
            for kind in ROUGES:
                yield compare(of_rouge(kind, pairs, stem), words, texts)
