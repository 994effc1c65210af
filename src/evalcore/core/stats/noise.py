"""The error of a number, split into the choice of questions and the drawing of answers.

With n questions and K replies to each, Var = Var_q(θ)/n + E[variance of a question's score]/n: more replies shrink
the second part only (Miller 2024, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

import numpy as np

from evalcore.core.records.array import Floats64

Noise = tuple[float | None, float | None]
"""The sampling part of a squared standard error, and the replies behind each question's score."""


def variance_of_reply(scores: Floats64) -> Floats64:
    """The variance of one reply's score to each question (a row; NaN: no reply), unbiased; NaN below two replies.

    >>> variance_of_reply(np.array([[0.0, 1.0, np.nan], [1.0, 1.0, 1.0], [1.0, np.nan, np.nan]])).tolist()
    [0.5, 0.0, nan]
    """
    here = ~np.isnan(scores)
    counts = np.count_nonzero(here, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = _sum_rows(np.where(here, scores, 0.0)) / counts
        squares = _sum_rows(np.where(here, scores - middle[:, None], 0.0) ** 2)
        return np.where(counts > 1, squares / (counts - 1), np.nan)


def _sum_rows(matrix: Floats64) -> Floats64:
    """Sum rows column by column, so that empty columns, which another split may add, change no bit."""
    total = np.zeros(len(matrix))
    for values in matrix.T:
        total = total + values
    return total


def mean_noise(variances: Floats64, replies: Floats64) -> Noise:
    """The sampling part of the variance of a mean of questions, and the harmonic mean of their replies.

    A question with one reply is assumed to vary as the others do; if most have only one, the noise is unknown.

    >>> mean_noise(np.array([0.25, 0.05]), np.array([2.0, 2.0]))
    (0.075, 2.0)
    >>> mean_noise(np.array([0.25, np.nan]), np.array([2.0, 1.0]))      # 0.5 per reply: 0.25 and 0.5
    (0.1875, 1.3333333333333333)
    """
    n = len(variances)
    if not n:
        return None, None
    average = float(replies[0]) if np.all(replies == replies[0]) else n / fsum((1 / replies).tolist())
    known = ~np.isnan(variances)
    count = int(np.count_nonzero(known))
    if 2 * count < n:
        return None, average
    per_reply = fsum((variances[known] * replies[known]).tolist()) / count
    return fsum(np.where(known, variances, per_reply / replies).tolist()) / n**2, average


def combine_noise(slopes: Sequence[float], parts: Sequence[Noise]) -> Noise:
    """The noise of a group's number from that of its tasks and its slopes in them.

    Its replies are such that noise · replies adds up like the tasks' own, so that it can be scaled to other repeats.

    >>> combine_noise([0.5, 0.5], [(0.25, 4.0), (0.5, 4.0)])
    (0.1875, 4.0)
    >>> combine_noise([0.5, 0.5, 0.0], [(0.25, 4.0), (0.25, 2.0), (None, None)])
    (0.125, 3.0)
    >>> combine_noise([0.5, 0.5], [(0.25, 4.0), (None, None)])
    (None, None)
    """
    counted = [(slope * slope, *part) for slope, part in zip(slopes, parts, strict=True) if slope != 0]
    known = [(s, noise, k) for s, noise, k in counted if noise is not None and k is not None]
    if not known or len(known) < len(counted):
        return None, None
    total, counts = fsum(s * noise for s, noise, _ in known), {k for *_, k in known}
    if len(counts) == 1 or not total:
        return total, min(counts)
    return total, fsum(s * noise * k for s, noise, k in known) / total


def question_stderr(stderr: float, noise: float) -> float:
    """The standard error in the limit of many replies to every question; 0 if the estimated noise exceeds it.

    >>> round(question_stderr(0.05, 0.0009), 12), question_stderr(0.01, 0.0002)
    (0.04, 0.0)
    """
    return sqrt(max(0.0, stderr * stderr - noise))
