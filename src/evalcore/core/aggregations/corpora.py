"""Corpus scores, and questions made of several documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evalcore.core.aggregations.ratios import ratio
from evalcore.core.aggregations.rows import two_of
from evalcore.core.columns import Rows, Stats
from evalcore.core.estimate import Summary, Sums, smooth
from evalcore.core.metrics.corpus import bleu_score, chrf_score, pair_statistics
from evalcore.core.records import Options

__all__ = ["acc_all", "answered", "bleu", "chrf", "corpus"]


def corpus(kind: str, finalise: Callable[[Sums, Options], Sums]) -> Callable[[Rows, Options], Summary]:
    def summarise(rows: Rows, options: Options) -> Summary:
        stats = (
            rows.values.floats
            if isinstance(rows, Stats)
            else pair_statistics(kind, list(two_of(rows, "(reference, prediction)")))
        )
        return smooth(stats, lambda sums: finalise(sums, options))

    return summarise


def bleu(sums: Sums, options: Options) -> Sums:
    known = ("smooth_method", "smooth_value", "effective_order")
    return bleu_score(sums, **{key: options[key] for key in known if key in options})  # type: ignore[arg-type]


def chrf(sums: Sums, options: Options) -> Sums:
    return chrf_score(sums, **{key: options[key] for key in ("beta", "eps_smoothing") if key in options})  # type: ignore[arg-type]


def acc_all(rows: Rows, options: Options) -> Summary:
    """The unit is the question: right if every one of its answers is."""
    firsts: dict[object, int] = {}
    right: dict[object, bool] = {}
    for i, (hit, key) in enumerate(map(answered, two_of(rows, "(correct, question)"))):
        firsts.setdefault(key, i)
        right[key] = right.get(key, True) and hit
    values = np.array([float(right[key]) for key in firsts])
    return smooth(np.column_stack([values, np.ones(len(values))]), ratio, np.array(list(firsts.values()), np.int64))


def answered(row: Sequence[object]) -> tuple[bool, object]:
    """Our (correct, question), or lm-eval's (prediction, document with idx and label)."""
    said, other = row
    if isinstance(other, Mapping):
        idx = other["idx"]
        return bool((other["label"] == 1) == said), (idx["paragraph"], idx["question"])
    return bool(said), tuple(other) if isinstance(other, list) else other
