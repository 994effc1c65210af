"""A number on resamples of its documents: of a task, or of all tasks behind a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite

import numpy as np

from evalcore.core.aggregate.clusters import renumber_codes, whole_clusters
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.estimate import Estimate, Resampling, Summary
from evalcore.core.stats.bootstrap import Resamples, bootstrap_rows, jackknife, resample
from evalcore.core.stats.influence import sum_clusters
from evalcore.core.stats.links import Link

DRAWS = 2000
PAIRED_DRAWS = 1000


def draws_of(resampling: Resampling) -> int:
    """The number of resamples for an interval.

    >>> draws_of(Resampling()), draws_of(Resampling(500))
    (2000, 500)
    """
    return resampling.draws or DRAWS


def resample_pair(first: Summary, second: Summary, clusters: Ints64 | None) -> float | None:
    """The standard error of two runs' difference, drawing the same units or whole clusters from both.

    >>> from evalcore.core.aggregate.ratios import mean
    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.row import Floats
    >>> one, two = (mean(Floats(Array(scores)), {}) for scores in ([1.0, 0.0, 1.0], [0.0, 0.0, 1.0]))
    >>> round(resample_pair(one, two, None), 1), resample_pair(one, one, None)
    (0.3, 0.0)
    """
    runs = [one if clusters is None else whole_clusters(one, clusters) for one in (first, second)]
    return bootstrap_rows(
        lambda at: runs[0].resampled(at) - runs[1].resampled(at), len(runs[0].stats), draws=PAIRED_DRAWS, seed=0
    )


def resample_task(summary: Summary, clusters: Ints64 | None, estimate: Estimate, resampling: Resampling) -> Resamples:
    """Resample a task's number by units or whole clusters; nothing is scored again."""
    units = summary if clusters is None else whole_clusters(summary, clusters)
    count = len(units.stats)
    with np.errstate(all="ignore"):
        values = resample(units.resampled, count, draws=draws_of(resampling), generator=_make_generator(resampling))
        own = estimate.spread.influence
        shares = jackknife(units.resampled, count) if own is None else _sum_shares(own.floats, clusters)
    return Resamples(estimate.value or 0.0, values, shares)


def resample_group(estimate: Estimate, leaves: Mapping[str, Estimate], resampling: Resampling) -> Resamples | None:
    """Resample a group's number within each task, or by clusters across tasks that share some.

    A resample moves it by its documents' influences, which is exact for means. None if a task has no influences.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.estimate import Makeup, Part, Spread
    >>> task = Estimate(value=0.5, spread=Spread(influence=Array([-0.5, 0.5])))
    >>> made = resample_group(Estimate(value=0.5, group=Makeup((Part("a", 1.0),))), {"a": task}, Resampling(50))
    >>> sorted(set(made.values.tolist()))
    [0.0, 0.5, 1.0]
    """
    link, value = estimate.scale.link, estimate.value
    strata = _list_strata(estimate, leaves)
    if not strata or value is None or not isfinite(link.slope(value)):
        return None
    draws, generator = draws_of(resampling), _make_generator(resampling)
    moves = sum((_draw_moves(shares, draws, generator) for shares in strata), np.zeros(draws))
    return Resamples(value, _move_value(value, moves, link, estimate.scale.bounds), np.concatenate(strata))


def _draw_moves(shares: Floats64, draws: int, generator: np.random.Generator) -> Floats64:
    return resample(lambda index: shares[index].sum(axis=1), len(shares), draws=draws, generator=generator)


def _move_value(value: float, moves: Floats64, link: Link, bounds: tuple[float, float]) -> Floats64:
    """Move a value on the scale of the link, where a perplexity is a mean."""
    scaled = link.forward(value) + link.slope(value) * moves
    values = np.array([link.inverse(one) for one in scaled.tolist()])
    low, high = bounds if bounds[0] <= value <= bounds[1] else (-inf, inf)
    inside: Floats64 = np.clip(values, low, high)
    return inside


def _list_strata(estimate: Estimate, leaves: Mapping[str, Estimate]) -> list[Floats64]:
    """List the shares of units that are drawn together: those of a task, or of all tasks that share clusters."""
    parts: list[tuple[Floats64, Ints64 | None]] = []
    for part in estimate.group.parts:
        leaf = leaves.get(part.name)
        if part.slope == 0:
            continue
        influence = part.influence if part.influence is not None or leaf is None else leaf.spread.influence
        if leaf is None or influence is None:
            return []
        codes = None if leaf.spread.clusters is None else leaf.spread.clusters.ints
        parts.append((part.slope * influence.floats / len(influence), codes))
    shared = _find_shared([codes for _, codes in parts if codes is not None])
    tied = [(shares, codes) for shares, codes in parts if codes is not None and np.isin(codes, shared).any()]
    alone = [_sum_shares(shares, codes) for shares, codes in parts if codes is None or not np.isin(codes, shared).any()]
    if not tied:
        return alone
    joint, names = (np.concatenate(column) for column in zip(*tied, strict=True))
    return [_sum_shares(joint, names), *alone]


def _find_shared(codes: Sequence[Ints64]) -> Ints64:
    """Find the clusters that occur in more than one task."""
    every, times = np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, codes)]), return_counts=True)
    return every[times > 1]


def _sum_shares(shares: Floats64, clusters: Ints64 | None) -> Floats64:
    return shares if clusters is None else sum_clusters(shares, renumber_codes(clusters)[0])


def _make_generator(resampling: Resampling) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(resampling.seed))
