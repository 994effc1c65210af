"""Words and sentences of our own, so that no benchmark's text is needed."""

from __future__ import annotations

import numpy as np

LINE = "the river runs past an old mill where two friends count apples and trade coins for bread each market day"
WORDS = tuple(LINE.split())


def write_sentence(rng: np.random.Generator, words: int) -> str:
    return " ".join(WORDS[at] for at in rng.integers(len(WORDS), size=words).tolist())


def write_pairs(n: int, rng: np.random.Generator, words: int = 18, changed: float = 0.3) -> list[tuple[str, str]]:
    """Sentences, each beside a copy of which some words are changed."""
    pairs = []
    for _ in range(n):
        gold = write_sentence(rng, words).split()
        said = [WORDS[rng.integers(len(WORDS))] if rng.random() < changed else word for word in gold]
        pairs.append((" ".join(gold), " ".join(said)))
    return pairs
