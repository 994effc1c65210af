"""Sentences out of a small vocabulary: the same for the same seed, with the characters that break things."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

Doc = dict[str, object]
Family = Callable[["Pen", int, str], Doc]

NOUNS = [
    "lantern",
    "heron",
    "millstone",
    "quince",
    "ferry",
    "copper",
    "attic",
    "harbour",
    "sparrow",
    "orchard",
    "café",
    "Größe",
    "naïveté",
    "灯台",
    "мельница",
]
VERBS = ["lifts", "follows", "repairs", "forgets", "paints", "borrows", "weighs", "hides", "answers", "überquert"]
NAMES = ["Odile", "Bram", "Ngozi", "Yusuf", "Ximena", "Pål", "Søren", "O'Dara"]
PLACES = [
    "on the quay",
    "behind the kiln",
    "at dusk",
    "under 3 arches",
    "for $4.50",
    "after 1,200 steps",
    "“as planned”",
    "without a word",
]
SPLITS = ("training_split", "validation_split", "test_split", "fewshot_split")
SIZE = 10


class Pen(Random):
    """A random generator that writes."""

    def noun(self) -> str:
        return self.choice(NOUNS)

    def name(self) -> str:
        return self.choice(NAMES)

    def phrase(self) -> str:
        return f"the {self.noun()} {self.choice(VERBS)} the {self.noun()}"

    def sentence(self) -> str:
        return f"{self.name()} says {self.phrase()} {self.choice(PLACES)}{self.choice(['.', '!', '.', ' …'])}"

    def question(self) -> str:
        return f"Why does {self.name()} think that {self.phrase()} {self.choice(PLACES)}?"

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.randint(2, 4)))

    def texts(self, n: int) -> list[str]:
        """Different short texts of different lengths."""
        return [f"{self.phrase()} {k}" if self.random() < 0.5 else f"{self.noun()} {k}" for k in range(n)]


def splits_of(config: Mapping[str, object], family: Family) -> dict[str, list[Doc]]:
    """Documents for every split that a task's config names; in each, one document is there twice."""
    shots = config.get("fewshot_config")
    named = [config.get(key) for key in SPLITS]
    named.append(shots.get("split") if isinstance(shots, Mapping) else None)
    return {str(split): _documents(str(split), family) for split in dict.fromkeys(named) if split is not None}


def _documents(split: str, family: Family) -> list[Doc]:
    docs = [family(Pen(f"{split} {i}"), i, split) for i in range(SIZE)]
    return [*docs[:-1], docs[2]]
