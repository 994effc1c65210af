"""Two estimates of the same documents: their difference, without the columns behind them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from evalcore.core.compare.differences import measure_line
from evalcore.core.compare.flips.significance import DRAWS, flip_lines
from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.compare.moves import Move, Pair
from evalcore.core.compare.pairs import match_documents
from evalcore.core.records.array import Ints64, frozen
from evalcore.core.records.document import DocumentRow
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Part
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.pair_tests import Difference

Keys = Sequence[Hashable] | NDArray[np.generic]


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


def match_keys(keys_a: Keys, keys_b: Keys) -> Ints64:
    """Find each document of the first run in the second; an error if the documents differ.

    >>> match_keys(["x", "y"], ["y", "x"]).tolist()
    [1, 0]
    >>> match_keys([1, 2], [2])
    Traceback (most recent call last):
    evalcore.EvalError: expected the same documents in both runs; only in the first: 1 (1)...
    """
    a, b = _list_keys(keys_a), _list_keys(keys_b)
    place_a, place_b = _find_places(a, "first"), _find_places(b, "second")
    only_a = [key for key in a if key not in place_b]
    only_b = [key for key in b if key not in place_a]
    if only_a or only_b:
        raise EvalError(
            "expected the same documents in both runs; only in the first: "
            f"{_format_some(only_a)}; only in the second: {_format_some(only_b)}"
        )
    return np.array([place_b[key] for key in a], dtype=np.int64)


def _rename_keys(
    documents: tuple[Sequence[DocumentRow], Sequence[DocumentRow]] | None, keys: list[int]
) -> list[object]:
    """Name the second run's documents by the first run's keys, and its own documents by names of their own."""
    if documents is None or not any(documents):
        return list(keys)
    known = {two: one for one, two in match_documents(*documents).pairs}
    return [known.get(key, f"{key} of the second") for key in keys]


def _list_keys(keys: Keys) -> list[Hashable]:
    return keys.tolist() if isinstance(keys, np.ndarray) else list(keys)


def _find_places(keys: list[Hashable], which: str) -> dict[Hashable, int]:
    places = {key: at for at, key in enumerate(keys)}
    if len(places) < len(keys):
        twice = next(key for at, key in enumerate(keys) if places[key] != at)
        raise EvalError(f"expected each document once in the {which} run, got {twice!r} twice")
    return places


def _format_some(keys: list[Hashable]) -> str:
    if not keys:
        return "none"
    shown = ", ".join(repr(key) for key in keys[:3])
    return f"{len(keys)} ({shown}{', ...' if len(keys) > 3 else ''})"
