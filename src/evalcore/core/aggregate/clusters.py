"""The error of an estimate: by its aggregation's own rule, or by clusters if documents belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.records.array import Array, Floats64, Ints64
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, Error, Resampling, Summary, smooth
from evalcore.core.records.request import Sample
from evalcore.core.records.row import Rows
from evalcore.core.stats.bootstrap import bootstrap
from evalcore.core.stats.influence import CR2, ErrorForm, UnitError, measure_error, sum_clusters
from evalcore.core.stats.skewness import skewness_of_sum

CLUSTER_DRAWS = 200
NO_ERRORS = "bootstrap_iters is 0, so no errors are computed"
FEW_DEGREES = 3.0
"""Below this, simulated intervals of weighted numbers cover too rarely if long documents are also harder."""


class UnitSpread(Struct, frozen=True):
    """An error, its uncorrected variance, the number of equal units it rests on, and its degrees of freedom.

    ``warnings`` say what makes the error doubtful.
    """

    error: Error
    variance: float | None
    trials: float
    df: float
    warnings: tuple[str, ...] = ()


def spread_of(
    aggregation: Aggregation,
    rows: Rows,
    summary: Summary,
    influence: Floats64 | None,
    clusters: Ints64 | None,
    resampling: Resampling,
    *,
    keys: Array,
    form: ErrorForm = CR2,
) -> UnitSpread:
    """The standard error by the aggregation's own rule, or by clusters if documents belong together."""
    n = summary.count
    if resampling.draws == 0:
        return UnitSpread(Error(None, NO_ERRORS), None, float(n), n - 1.0)
    if clusters is not None and influence is None and aggregation.resamples and len(np.unique(clusters)) < n:
        return _bootstrap_clusters(summary, clusters, resampling)
    if clusters is not None and influence is not None:
        made = measure_error(influence, clusters, weights=summary.weights, form=form)
        error = Error(made.stderr, _name_method(made, form))
        warnings = (*_warn_of_cluster(made, clusters, keys.ints), *_warn_of_weights(made, summary, form))
        return UnitSpread(error, made.variance, made.trials, made.df, warnings)
    known = summary if summary.weights is None else replace(summary, weights=form.weigh(summary.weights))
    error = aggregation.error(rows, known, influence, resampling)
    if influence is None:
        return UnitSpread(error, None if error.stderr is None else error.stderr * error.stderr, float(n), n - 1.0)
    if error.units is not None:
        made = error.units
        return UnitSpread(error, made.variance, made.trials, made.df, tuple(_warn_of_weights(made, summary, form)))
    made = measure_error(influence, times=summary.times)
    return UnitSpread(error, made.variance, made.trials, made.df)


def pick_units(summary: Summary, each: Ints64) -> Ints64:
    """Of what each document has, that of the first of each unit."""
    return each if summary.units is None else each[summary.units]


def _name_method(made: UnitError, form: ErrorForm) -> str:
    if made.stderr is not None:
        return f"clustered({form.name})"
    return f"needs two clusters, got {made.units}" if made.units < 2 else "one cluster has all of the weight"


def _warn_of_cluster(made: UnitError, clusters: Ints64, keys: Ints64) -> Iterator[str]:
    """Warn of a cluster that holds more than a third of the documents; it goes by its first document."""
    order = np.argsort(keys)
    _, first, sizes = np.unique(clusters[order], return_index=True, return_counts=True)
    at = int(np.lexsort((first, -sizes))[0])
    if made.stderr is not None and 3 * sizes[at] > len(clusters) and sizes[at] > 1:
        name, held = keys[order][first[at]], f"{sizes[at]:,} of {len(clusters):,} documents"
        yield f"the cluster of document {name} holds {held}: {made.df:.1f} degrees of freedom"


def _warn_of_weights(made: UnitError, summary: Summary, form: ErrorForm) -> Iterator[str]:
    uneven = summary.weights is not None and np.ptp(form.weigh(summary.weights)) > 0
    if made.stderr is not None and uneven and made.df < FEW_DEGREES:
        yield f"a few long documents decide it: {made.df:.1f} degrees of freedom"


def find_skewness(influence: Floats64, clusters: Ints64 | None, times: Ints64 | None = None) -> float:
    """Find the skewness of a value from its documents' influences, or from those of its clusters if they are equal.

    Among unequal clusters the largest alone would decide it: the degrees of freedom allow for these.

    >>> one_large = np.array([-1.0, -1.0, 2.0])
    >>> find_skewness(one_large, None) > 0, find_skewness(one_large, np.array([1, 1, 2]))
    (True, 0.0)
    """
    if clusters is None:
        return skewness_of_sum(influence, times)
    codes, _ = renumber_codes(clusters)
    return skewness_of_sum(sum_clusters(influence, codes)) if np.ptp(np.bincount(codes)) == 0 else 0.0


def _bootstrap_clusters(summary: Summary, clusters: Ints64, resampling: Resampling) -> UnitSpread:
    """Bootstrap whole clusters, for a statistic without influences."""
    draws, units = resampling.draws or CLUSTER_DRAWS, whole_clusters(summary, clusters)
    count = len(units.stats)
    stderr = bootstrap(
        lambda index: float(units.resampled(index[None, :])[0]), count, draws=draws, seed=resampling.seed
    )
    method = f"cluster-bootstrap(draws={draws},seed={resampling.seed})" if count > 1 else "needs two clusters, got 1"
    return UnitSpread(Error(stderr, method), None if stderr is None else stderr * stderr, float(count), count - 1.0)


def whole_clusters(summary: Summary, clusters: Ints64) -> Summary:
    """Turn the units of a statistic into clusters, in order of appearance.

    >>> two = smooth(np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]), lambda sums: sums[..., 0] / sums[..., 1])
    >>> whole_clusters(two, np.array([7, 7, 5])).resampled(np.array([[0, 1], [0, 0]])).round(3).tolist()
    [0.667, 0.5]
    """
    places, first = renumber_codes(clusters)
    if summary.finalise is not None:
        sums = np.column_stack([sum_clusters(column, places) for column in np.asarray(summary.stats).T])
        return smooth(sums, summary.finalise, first)
    members = np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places))[:-1])

    def resampled(index: Ints64) -> Floats64:
        joined = (np.concatenate([members[i] for i in row]) for row in index.tolist())
        return np.array([float(summary.resampled(units[None, :])[0]) for units in joined])

    return Summary(np.zeros((len(members), 1)), resampled, first)


def renumber_codes(codes: Ints64) -> tuple[Ints64, Ints64]:
    """Renumber codes by first appearance, so that cluster names do not affect what is drawn.

    >>> [part.tolist() for part in renumber_codes(np.array([9, 4, 9]))]      # and where each first appears
    [[0, 1, 0], [0, 1]]
    """
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[inverse], first[order]


def cluster_codes(
    ids: Sequence[int | str | None], *, keys: Sequence[int] | None = None, singletons: bool = False, task: str = ""
) -> Ints64:
    """Encode cluster names by codes that agree between tasks and processes.

    A document without a cluster is an error, or with ``singletons`` a cluster of its own; never one giant cluster.

    >>> codes = cluster_codes(["a", "b", "a"])
    >>> bool(codes[0] == codes[2]), bool(codes[0] == codes[1])
    (True, False)
    """
    missing = [i for i, one in enumerate(ids) if one is None]
    if missing and not singletons:
        raise EvalError(
            f"expected a cluster id for every document, {len(missing)} have none, first at {task} row {missing[0]}"
        )
    alone = range(len(ids)) if keys is None else keys
    named = [f"alone {task} {alone[i]}" if one is None else f"{type(one).__name__} {one}" for i, one in enumerate(ids)]
    return np.array(
        [
            int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)
            for name in named
        ],
        np.int64,
    )


def clusters_of(task: str, samples: Iterable[Sample], *, singletons: bool = False) -> Mapping[int, int]:
    """Map document keys to cluster codes, from the samples' own clusters.

    >>> codes = clusters_of("t", [Sample(0, cluster="p"), Sample(1, cluster="p")])
    >>> codes[0] == codes[1]
    True
    """
    docs = list(samples)
    keys = [doc.doc_id for doc in docs]
    codes = cluster_codes([doc.cluster for doc in docs], keys=keys, singletons=singletons, task=task)
    return dict(zip(keys, codes.tolist(), strict=True))
