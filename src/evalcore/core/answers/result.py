"""Results: what one document came to under one filter, as metrics and scorers of a host's own receive it."""

from __future__ import annotations

from evalcore.core.records.document import decode_doc
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.request import Instance, Sample


class DocumentResult(FrozenRecord, frozen=True, kw_only=True):
    """What every result holds: its document, the requests that were made for it, and the filter it went through.

    ``instances`` is empty where the requests are not known, as in most logs.
    """

    sample: Sample | None = None
    instances: tuple[Instance, ...] = ()
    filter: str = "none"

    @property
    def doc(self) -> object:
        """The document, decoded afresh; None if unknown."""
        return None if self.sample is None else decode_doc(self.sample)


class LLResult(DocumentResult, frozen=True):
    """One log-likelihood."""

    value: float
    greedy: bool = False
    tokens: int = 0
    target: str = ""


class RollingResult(DocumentResult, frozen=True):
    """The log-likelihood of a whole text."""

    value: float
    text: str


class MCResult(DocumentResult, frozen=True):
    """The log-likelihood of every choice, and which choices are right.

    >>> MCResult((-1.0, -2.0), (False, False), (0,), ("a", "bc"), unconditional=(-1.5, -1.0)).mutual_information
    (0.5, -1.0)
    """

    lls: tuple[float, ...]
    greedy: tuple[bool, ...]
    gold: tuple[int, ...]
    choices: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    unconditional: tuple[float, ...] = ()

    @property
    def chars(self) -> tuple[int, ...]:
        """Lengths of the choices in characters."""
        return tuple(map(len, self.choices))

    @property
    def bytes(self) -> tuple[int, ...]:
        """Lengths of the choices in UTF-8 bytes."""
        return tuple(map(count_bytes, self.choices))

    @property
    def mutual_information(self) -> tuple[float, ...]:
        """How much likelier each choice is in context than without it; empty if that was not asked."""
        return tuple(ll - alone for ll, alone in zip(self.lls, self.unconditional, strict=False))

    @property
    def best(self) -> int:
        """The index of the likeliest choice, the first of several."""
        return max(range(len(self.lls)), key=self.lls.__getitem__)


class GenResult(DocumentResult, frozen=True):
    """All generations of a document under a filter, and all its golds."""

    generations: tuple[object, ...]
    golds: tuple[str, ...]
    fell_back: tuple[bool, ...] = ()

    @property
    def repeats(self) -> int:
        return len(self.generations)


Result = LLResult | RollingResult | MCResult | GenResult


def metric_inputs(result: Result) -> object:
    """What a metric receives of a result: predictions and references of generated texts, else the result itself.

    >>> metric_inputs(GenResult(("4", "5"), ("4",)))
    {'predictions': ['4', '5'], 'references': ['4']}
    """
    if isinstance(result, GenResult):
        return {"predictions": list(result.generations), "references": list(result.golds)}
    return result


def count_bytes(text: str) -> int:
    """Count the bytes of a text in UTF-8; a lone surrogate counts as three.

    >>> count_bytes("é"), count_bytes("\\ud83d")
    (2, 3)
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
