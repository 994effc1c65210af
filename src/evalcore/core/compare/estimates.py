"""Two estimates of the same documents: their difference, without the columns behind them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from evalcore.core.compare.differences import Move, Pair, measure_line
from evalcore.core.compare.flips import DRAWS, flip_lines
from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.compare.pairs import match_documents
from evalcore.core.records.array import frozen
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Part
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.pair_tests import Difference, match_keys


def compare_estimates(
    a: Estimate,
    b: Estimate,
    *,
    documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]] | None = None,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Difference:
    """Compare two estimates, first minus second, paired by document.

    0/1 scores get Bonett and Price's interval and McNemar's test. Documents are matched by key, or by
    ``match_documents`` if both document tables are given. ``compare_sides`` compares whole runs.

    >>> from evalcore.core.aggregate.value import aggregate_metric
    >>> from evalcore.core.aggregate.aggregations import AGGREGATIONS
    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import Floats, build_column
    >>> runs = [[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
    >>> one, two = (aggregate_metric(AGGREGATIONS["mean"], build_column(range(4), Floats(Array(run)))) for run in runs)
    >>> compare_estimates(one, two).difference
    0.25
    """
    if a.value is None or b.value is None:
        raise EvalError(f"expected two values, got {a.value} and {b.value}")
    if a.spread.influence is None or b.spread.influence is None or a.spread.keys is None or b.spread.keys is None:
        raise EvalError(f"{a.scale.aggregation} has no influences by document; compare the documents' scores instead")
    order = match_keys(a.spread.keys.ints.tolist(), _rename_keys(documents, b.spread.keys.ints.tolist()))
    clusters = a.spread.clusters or (None if b.spread.clusters is None else frozen(b.spread.clusters.ints[order]))
    spread = replace(
        b.spread, influence=frozen(b.spread.influence.floats[order]), keys=a.spread.keys, clusters=clusters
    )
    aligned = replace(b, spread=spread)
    pair = Pair("", MetricKey(a.scale.aggregation), replace(a, spread=replace(a.spread, clusters=clusters)), aligned)
    whole = Part("", 1.0)
    moves = (Move(pair, whole, whole),)
    draft = measure_line(
        ComparisonLine(name="", key=pair.key, a=a.value, b=b.value, n=a.count), moves, (a, b), confidence
    )
    line = flip_lines([(draft, moves)], draws, seed)[0]
    return Difference(line.difference or 0.0, line.stderr, line.ci, line.p_value, len(a.spread.influence), line.method)


def _rename_keys(
    documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]] | None, keys: list[int]
) -> list[object]:
    """Name the second run's documents by the first run's keys, and its own documents by names of their own."""
    if documents is None or not any(documents):
        return list(keys)
    known = {two: one for one, two in match_documents(*documents).pairs}
    return [known.get(key, f"{key} of the second") for key in keys]
