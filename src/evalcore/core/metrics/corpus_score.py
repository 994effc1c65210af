"""BLEU, chrF and TER from summed counts.

Sums may be real or complex, so that a score can be differentiated with the complex step: every decision
uses the real part, and everything else is analytic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pyrsistent import PMap, pmap

from evalcore.core.records.array import Bools, Floats64
from evalcore.core.records.errors import unknown

Sums = Floats64 | NDArray[np.complex128]

BLEU_ORDER = 4
EPS = 1e-16
SMOOTHING: PMap[str, float] = pmap({"exp": 0.0, "floor": 0.1, "add-k": 1.0, "none": 0.0})
"""sacrebleu's smoothing methods and their default values."""


def bleu_score(
    sums: Sums,
    *,
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    effective_order: bool = False,
) -> Sums:
    """Corpus BLEU of (..., 10) sums: lengths of system and reference, four matches, four totals.

    >>> float(bleu_score(np.array([4.0, 4, 4, 3, 2, 1, 4, 3, 2, 1])).round(9))
    100.0
    """
    if smooth_method not in SMOOTHING:
        raise unknown("smooth_method", smooth_method, SMOOTHING)
    value = SMOOTHING[smooth_method] if smooth_value is None else smooth_value
    counts = _as_inexact(sums)
    any_match = (counts[..., 2:6].real != 0).any(axis=-1)
    going, scored = np.ones_like(any_match), any_match
    halvings, orders = np.zeros(any_match.shape), np.zeros(any_match.shape)
    logs = np.zeros_like(counts[..., 0])
    for n in range(BLEU_ORDER):
        added = value if smooth_method == "add-k" and n else 0.0
        match, total = counts[..., 2 + n] + added, counts[..., 6 + n] + added
        going = going & (total.real != 0)
        empty = match.real == 0
        halvings = halvings + (going & empty)
        stand_in = {"exp": 0.5**halvings, "floor": value}.get(smooth_method, 0.0)
        precision = 100 * np.where(empty, stand_in, match) / np.where(going, total, 1.0)
        usable = going & (precision.real > 0)
        logs = logs + np.where(usable, np.log(np.where(usable, precision, 1.0)), 0.0)
        scored = scored & (usable | (~going if effective_order else False))
        orders = orders + (going if effective_order else 1)
    geometric_mean = np.exp(logs / np.where(orders > 0, orders, 1.0))
    return _choose(scored, _penalise_brevity(counts[..., 0], counts[..., 1]) * geometric_mean, 0.0)


def _penalise_brevity(system: Sums, reference: Sums) -> Sums:
    some = system.real > 0
    penalty = np.exp(1 - reference / np.where(some, system, 1.0))
    return _choose(system.real < reference.real, np.where(some, penalty, 0.0), 1.0)


def chrf_score(sums: Sums, *, beta: float = 2, eps_smoothing: bool = False) -> Sums:
    """Corpus chrF of (..., 3 × orders) sums: n-grams of the system, of the reference, and matches, per order.

    >>> float(chrf_score(np.array([2.0, 4, 2, 1, 3, 1]), beta=1).round(6))
    58.823529
    """
    counts = _as_inexact(sums)
    factor = beta**2
    zero = np.zeros_like(counts[..., 0])
    precision, recall, each, orders = zero, zero, zero, zero.real
    for n in range(0, counts.shape[-1], 3):
        system, reference, match = counts[..., n], counts[..., n + 1], counts[..., n + 2]
        p, r = _divide(match, system, EPS), _divide(match, reference, EPS)
        both = (system.real > 0) & (reference.real > 0)
        precision, recall = precision + np.where(both, p, 0.0), recall + np.where(both, r, 0.0)
        each, orders = each + _divide((1 + factor) * p * r, factor * p + r, EPS), orders + both
    if eps_smoothing:
        return np.asarray(100 * each / (counts.shape[-1] // 3))
    precision, recall = (total / np.where(orders > 0, orders, 1.0) for total in (precision, recall))
    return 100 * _divide((1 + factor) * precision * recall, factor * precision + recall, 0.0)


def ter_score(sums: Sums) -> Sums:
    """Corpus TER of (..., 2) sums: edits and average reference length.

    >>> ter_score(np.array([[1.0, 4.0], [2.0, 0.0], [0.0, 0.0]])).tolist()
    [25.0, 100.0, 0.0]
    """
    counts = _as_inexact(sums)
    edits, length = counts[..., 0], counts[..., 1]
    return 100 * _divide(edits, length, np.where(edits.real > 0, 1.0, 0.0))


def _divide(above: Sums, below: Sums, otherwise: float | Floats64) -> Sums:
    some = below.real > 0
    return _choose(some, above / np.where(some, below, 1.0), otherwise)


def _choose(condition: Bools, then: Sums, otherwise: float | Sums) -> Sums:
    chosen: Sums = np.where(condition, then, otherwise)
    return chosen


def _as_inexact(sums: Sums) -> Sums:
    if np.iscomplexobj(sums):
        return np.asarray(sums, dtype=np.complex128)
    return np.asarray(sums, dtype=np.float64)
