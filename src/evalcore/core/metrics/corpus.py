"""BLEU, chrF and TER: counts per sentence, from sacrebleu, that add up to a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import nan
from typing import Protocol

import numpy as np
from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.answers.text import GenBatch
from evalcore.core.metrics.corpus_score import BLEU_ORDER
from evalcore.core.metrics.metric import Marks
from evalcore.core.metrics.normalise import NO_GOLD, find_excess, refuse_unknown
from evalcore.core.metrics.overlap.ter import count_edits
from evalcore.core.records.array import Floats64, frozen
from evalcore.core.records.errors import EvalError, require, unknown
from evalcore.core.records.outcome import UNSCORABLE
from evalcore.core.records.request import NO_OPTIONS, Options, freeze_options
from evalcore.core.records.row import Stats


class Extractor(Protocol):
    """The part of a sacrebleu metric used here."""

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[float]]: ...

    def _preprocess_segment(self, sent: str) -> str: ...

    def _cache_references(
        self, references: Sequence[Sequence[str]]
    ) -> Sequence[Mapping[str, Sequence[Sequence[str]]]]: ...


def _count_as_sacrebleu(extractor: Extractor, prediction: str, golds: Sequence[str]) -> Sequence[float]:
    # One call per sentence: documents may have different numbers of references.
    return extractor._extract_corpus_statistics([prediction], [[gold] for gold in golds])[0]


def _count_ter(extractor: Extractor, prediction: str, golds: Sequence[str]) -> Sequence[float]:
    """sacrebleu's words, which it makes of a reference twice over; only the search for edits is our own."""
    if excess := find_excess(prediction, golds):
        raise EvalError(excess)
    said = extractor._preprocess_segment(prediction).split()
    references = extractor._cache_references([[gold] for gold in golds])[0]["ref_words"]
    lengths = sum(map(len, references)) / len(references)
    return min(count_edits(said, words) for words in references), lengths


class Kind(Struct, frozen=True):
    """A sacrebleu metric: its class, options and number of counts, what keeps it from logging, and who counts."""

    metric: str
    defaults: Options
    width: Callable[[Mapping[str, object]], int]
    quiet: Options = NO_OPTIONS
    count: Callable[[Extractor, str, Sequence[str]], Sequence[float]] = _count_as_sacrebleu


def _count_chrf(given: Mapping[str, object]) -> int:
    return 3 * sum(int(str(given[order])) for order in ("char_order", "word_order"))


CHRF_DEFAULTS = freeze_options(
    char_order=6, word_order=0, beta=2, lowercase=False, whitespace=False, eps_smoothing=False
)

CORPUS_KINDS: PMap[str, Kind] = pmap(
    {
        "bleu": Kind(
            "BLEU",
            freeze_options(
                tokenize=None, lowercase=False, smooth_method="exp", smooth_value=None, effective_order=False
            ),
            lambda given: 2 + 2 * BLEU_ORDER,
            freeze_options(force=True),
        ),
        "chrf": Kind("CHRF", CHRF_DEFAULTS, _count_chrf),
        "chrf++": Kind("CHRF", CHRF_DEFAULTS.set("word_order", 2), _count_chrf),
        "ter": Kind(
            "TER",
            freeze_options(normalized=False, no_punct=False, asian_support=False, case_sensitive=False),
            lambda given: 2,
            count=_count_ter,
        ),
    }
)
CORPUS_DEFAULTS: PMap[str, Options] = pmap({name: kind.defaults for name, kind in CORPUS_KINDS.items()})


def pair_statistics(kind: str, items: Iterable[Sequence[object]], given: Options = NO_OPTIONS) -> Floats64:
    """Counts (n × k) of (reference or references, prediction) pairs, as lm-eval's tasks emit them.

    >>> pair_statistics("ter", [("a b c d", "a b c e"), (["x", "x y"], "x")]).tolist()
    [[1.0, 4.0], [0.0, 1.5]]
    """
    rows = []
    for i, (references, prediction) in enumerate(items):
        row = _count_sentence(kind, given, _read_text(prediction, i), _read_texts(references, i))
        if isinstance(row, str):
            raise EvalError(f"{row} (item {i} of {kind})")
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), _find_width(kind, given))


def _read_texts(value: object, at: int) -> tuple[str, ...]:
    many = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(text, str) for text in many):
        raise EvalError(f"expected a text or texts, got {value!r} (item {at})")
    return many


def _read_text(value: object, at: int) -> str:
    many = _read_texts(value, at)
    if len(many) != 1:
        raise EvalError(f"expected one prediction, got {value!r} (item {at})")
    return many[0]


def _fill_options(kind: str, given: Options) -> Options:
    if kind not in CORPUS_KINDS:
        raise unknown("corpus metric", kind, CORPUS_KINDS)
    refuse_unknown(kind, given, CORPUS_KINDS[kind].defaults)
    return freeze_options({**CORPUS_KINDS[kind].defaults, **given})


def _find_width(kind: str, given: Options) -> int:
    return CORPUS_KINDS[kind].width(_fill_options(kind, given))


@lru_cache(maxsize=64)
def _make_extractor(kind: str, given: Options) -> Extractor:
    chosen = dict(_fill_options(kind, given))
    make = getattr(require("sacrebleu.metrics", "text"), CORPUS_KINDS[kind].metric)
    try:
        made: Extractor = make(**chosen, **CORPUS_KINDS[kind].quiet)
    except Exception as problem:
        raise EvalError(f"sacrebleu cannot make {kind} with {chosen}: {problem!r}") from problem
    return made


def _count_sentence(kind: str, given: Options, prediction: str, golds: Sequence[str]) -> Sequence[float] | str:
    """Count one sentence against all its references, or say why it cannot be counted."""
    if not golds:
        return NO_GOLD
    extractor = _make_extractor(kind, given)
    try:
        return CORPUS_KINDS[kind].count(extractor, prediction, golds)
    except EvalError as problem:
        return str(problem)
    except Exception as problem:
        return f"sacrebleu cannot count this text: {type(problem).__name__}: {problem}"


def _count_rows(kind: str, batch: GenBatch, given: Options) -> Stats | Marks:
    counted = [_count_sentence(kind, given, *pair) for pair in zip(batch.predictions, batch.golds, strict=True)]
    nothing = (nan,) * _find_width(kind, given)
    counts = np.array([nothing if isinstance(row, str) else row for row in counted], dtype=np.float64)
    rows = Stats(frozen(counts.reshape(len(counted), len(nothing))))
    missing = {i: (UNSCORABLE, row) for i, row in enumerate(counted) if isinstance(row, str)}
    return Marks(rows, missing) if missing else rows


def bleu(batch: GenBatch, given: Options) -> Stats | Marks:
    """Lengths, n-gram matches and totals per sentence (10 counts).

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["cat"], ["the cat"])
    >>> bleu(batch, freeze_options()).values.data[0].tolist()
    [1.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    return _count_rows("bleu", batch, given)


def chrf(batch: GenBatch, given: Options) -> Stats | Marks:
    """Character n-grams of prediction, best reference and both, per sentence (18 counts).

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["cat"], ["the cat"])
    >>> chrf(batch, freeze_options()).values.data.shape
    (1, 18)
    """
    return _count_rows("chrf", batch, given)


def chrf_plus_plus(batch: GenBatch, given: Options) -> Stats | Marks:
    """``chrf`` with word n-grams (24 counts).

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["cat"], ["the cat"])
    >>> chrf_plus_plus(batch, freeze_options()).values.data.shape
    (1, 24)
    """
    return _count_rows("chrf++", batch, given)


def ter(batch: GenBatch, given: Options) -> Stats | Marks:
    """Edits and average reference length per sentence (2 counts).

    >>> from evalcore.core.answers.text import make_texts
    >>> batch = make_texts(["cat"], ["the cat"])
    >>> ter(batch, freeze_options()).values.data[0].tolist()
    [1.0, 2.0]
    """
    return _count_rows("ter", batch, given)
