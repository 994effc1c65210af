"""Whether repeats of a question agree, and how the mean over its repeats is distributed."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from evalcore.core.records.array import Floats64
from evalcore.shell.report.one_run.score_shape import ScoreShape, shape_scores


class RepeatStability(Struct, frozen=True):
    """Of documents that have several scores: how many there are, how many have equal ones, and their means."""

    documents: int
    agree: int
    repeats: tuple[int, int]
    means: ScoreShape | None


def measure_stability(scores: Floats64) -> RepeatStability | None:
    """Measure how stable scores are, given a row per document and a column per repeat (NaN: none).

    None where no document has two.

    >>> stable = measure_stability(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, np.nan]]))
    >>> stable.documents, stable.agree, stable.repeats, stable.means.values, stable.means.counts
    (2, 1, (2, 2), (0.5, 1.0), (1, 1))
    """
    counts = np.isfinite(scores).sum(axis=1)
    several = scores[counts > 1]
    if not len(several):
        return None
    known = counts[counts > 1]
    spans = np.nanmax(several, axis=1) - np.nanmin(several, axis=1)
    return RepeatStability(
        documents=len(several),
        agree=int(np.count_nonzero(spans == 0)),
        repeats=(int(known.min()), int(known.max())),
        means=shape_scores(np.nanmean(several, axis=1)),
    )
