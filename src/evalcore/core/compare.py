"""Two runs on the same documents: the difference of their estimates, document by document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalcore.core.arrays import Floats64
from evalcore.core.documents import DocumentRow
from evalcore.core.errors import EvalError
from evalcore.core.estimate import Estimate
from evalcore.core.stats.compare import Difference, match_keys, paired, paired_binary

__all__ = ["compare_estimates"]


def compare_estimates(
    a: Estimate,
    b: Estimate,
    *,
    documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]] | None = None,
    confidence: float = 0.95,
) -> Difference:
    """First minus second, paired by document: Bonett and Price's interval and McNemar's test for 0/1 scores.

    Documents are the same if their keys are; with the document tables of both runs, if their content is.

    >>> from evalcore.core.aggregate import aggregate_metric
    >>> from evalcore.core.aggregations import AGGREGATIONS
    >>> from evalcore.core.arrays import Array
    >>> from evalcore.core.columns import Floats, column
    >>> runs = [[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
    >>> one, two = (aggregate_metric(AGGREGATIONS["mean"], column(range(4), Floats(Array(run)))) for run in runs)
    >>> compare_estimates(one, two).difference
    0.25
    """
    if a.value is None or b.value is None:
        raise EvalError(f"expected two values, got {a.value} and {b.value}")
    if a.influence is None or b.influence is None or a.keys is None or b.keys is None:
        raise EvalError(f"{a.aggregation} has no influence of each document; compare the documents' own scores")
    order = match_keys(*(_names(*pair) for pair in zip((a, b), documents or ((), ()), strict=True)))
    first, second = a.influence.floats, b.influence.floats[order]
    scores = _binary(a, first), _binary(b, second)
    if scores[0] is not None and scores[1] is not None and a.clusters is None:
        return paired_binary(scores[0], scores[1], confidence=confidence)
    clusters = None if a.clusters is None else a.clusters.ints
    return paired(first, second, a.value, b.value, confidence=confidence, clusters=clusters)


def _names(estimate: Estimate, documents: Sequence[DocumentRow]) -> list[object]:
    keys = [] if estimate.keys is None else estimate.keys.ints.tolist()
    known = {row.key: (row.content, row.occurrence) for row in documents}
    return [known.get(key, key) for key in keys] if known else list(keys)


def _binary(estimate: Estimate, influence: Floats64) -> Floats64 | None:
    """The 0/1 scores behind a mean, None if they are something else."""
    if estimate.aggregation != "mean" or estimate.value is None:
        return None
    given = influence + estimate.value
    scores = np.rint(given)
    whole = bool(np.all(np.abs(given - scores) < 1e-9)) and bool(np.isin(scores, (0, 1)).all())
    return scores if whole else None
