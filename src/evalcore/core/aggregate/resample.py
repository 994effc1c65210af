"""What a number would be on resamples of its documents, of a task's or of all tasks' behind a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite

import numpy as np

from evalcore.core.aggregate.spread import in_order, whole_clusters
from evalcore.core.records.array import Floats64, Ints64
from evalcore.core.records.estimate import Estimate, Resampling, Summary
from evalcore.core.stats.bootstrap import resample
from evalcore.core.stats.influence import sum_clusters
from evalcore.core.stats.links import Link
from evalcore.core.stats.percentile import Resamples, jackknife

__all__ = ["draws_of", "resample_group", "resample_task"]

DRAWS = 2000


def draws_of(resampling: Resampling) -> int:
    """How many resamples an interval takes.

    >>> draws_of(Resampling()), draws_of(Resampling(500))
    (2000, 500)
    """
    return resampling.draws or DRAWS


def resample_task(summary: Summary, clusters: Ints64 | None, estimate: Estimate, resampling: Resampling) -> Resamples:
    """A task's number on resamples of its units, or of whole clusters of them; nothing is scored again."""
    units = summary if clusters is None else whole_clusters(summary, clusters)
    count = len(units.stats)
    with np.errstate(all="ignore"):
        values = resample(units.resampled, count, draws=draws_of(resampling), generator=_generator(resampling))
        own = estimate.spread.influence
        shares = jackknife(units.resampled, count) if own is None else _totals(own.floats, clusters)
    return Resamples(estimate.value or 0.0, values, shares)


def resample_group(estimate: Estimate, leaves: Mapping[str, Estimate], resampling: Resampling) -> Resamples | None:
    """A group's number on resamples within each task, or of clusters across tasks that share some.

    A resample moves it by what the influences of its documents say: for means, exactly. None where a task has none.

    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.estimate import Makeup, Part, Spread
    >>> task = Estimate(value=0.5, spread=Spread(influence=Array([-0.5, 0.5])))
    >>> made = resample_group(Estimate(value=0.5, group=Makeup((Part("a", 1.0),))), {"a": task}, Resampling(50))
    >>> sorted(set(made.values.tolist()))
    [0.0, 0.5, 1.0]
    """
    link, value = estimate.scale.link, estimate.value
    strata = _strata(estimate, leaves)
    if not strata or value is None or not isfinite(link.slope(value)):
        return None
    draws, generator = draws_of(resampling), _generator(resampling)
    moves = sum((_moves(shares, draws, generator) for shares in strata), np.zeros(draws))
    return Resamples(value, _moved(value, moves, link, estimate.scale.bounds), np.concatenate(strata))


def _moves(shares: Floats64, draws: int, generator: np.random.Generator) -> Floats64:
    return resample(lambda index: shares[index].sum(axis=1), len(shares), draws=draws, generator=generator)


def _moved(value: float, moves: Floats64, link: Link, bounds: tuple[float, float]) -> Floats64:
    """On the scale of the link, where a perplexity is a mean."""
    scaled = link.forward(value) + link.slope(value) * moves
    values = np.array([link.inverse(one) for one in scaled.tolist()])
    low, high = bounds if bounds[0] <= value <= bounds[1] else (-inf, inf)
    inside: Floats64 = np.clip(values, low, high)
    return inside


def _strata(estimate: Estimate, leaves: Mapping[str, Estimate]) -> list[Floats64]:
    """The shares of the units that are drawn together: those of a task, or of all tasks that share clusters."""
    found: list[tuple[Floats64, Ints64 | None]] = []
    for part in estimate.group.parts:
        leaf = leaves.get(part.name)
        if part.slope == 0:
            continue
        influence = part.influence if part.influence is not None or leaf is None else leaf.spread.influence
        if leaf is None or influence is None:
            return []
        codes = None if leaf.spread.clusters is None else leaf.spread.clusters.ints
        found.append((part.slope * influence.floats / len(influence), codes))
    shared = _shared([codes for _, codes in found if codes is not None])
    tied = [(shares, codes) for shares, codes in found if codes is not None and np.isin(codes, shared).any()]
    alone = [_totals(shares, codes) for shares, codes in found if codes is None or not np.isin(codes, shared).any()]
    if not tied:
        return alone
    joint, names = (np.concatenate(column) for column in zip(*tied, strict=True))
    return [_totals(joint, names), *alone]


def _shared(codes: Sequence[Ints64]) -> Ints64:
    """The clusters that occur in more than one task."""
    every, times = np.unique(np.concatenate([np.zeros(0, np.int64), *map(np.unique, codes)]), return_counts=True)
    return every[times > 1]


def _totals(shares: Floats64, clusters: Ints64 | None) -> Floats64:
    return shares if clusters is None else sum_clusters(shares, in_order(clusters)[0])


def _generator(resampling: Resampling) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(resampling.seed))
