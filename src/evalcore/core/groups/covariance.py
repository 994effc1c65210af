"""The error of a group's number from its tasks' errors, with covariance if tasks share clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import copysign, fsum, inf, isfinite, sqrt

import numpy as np
from msgspec import Struct

from evalcore.core.groups.averages import Term
from evalcore.core.records.array import Bools, Floats64, Ints64
from evalcore.core.records.estimate import Estimate
from evalcore.core.stats.influence import Leverage, find_degrees, satterthwaite, scale_of, sum_clusters, weigh_units
from evalcore.core.stats.skewness import skewness_of_sum


class TermSpread(Struct, frozen=True):
    """A standard error, the variance behind the interval, degrees of freedom; or why there are none.

    ``trials`` is what the interval rests on if the variance is 0.
    """

    stderr: float | None = None
    variance: float | None = None
    df: float | None = None
    trials: float = 0.0
    reason: str | None = None
    skewness: float = 0.0
    hidden: float = 0.0


class Stratum(Struct, frozen=True):
    """A part of the error that is independent of the others: ``variance`` is its uncorrected square."""

    error: float
    variance: float | None
    df: float | None
    trials: float
    unseen: float = 0.0
    """A plausible squared error if the documents show no spread: all right is not certain."""
    skewness: float = 0.0
    hidden: float = 0.0
    """The part of the variance that no document shows."""


class Tied(Struct, frozen=True, eq=False):
    """A task that shares clusters with others: its slope in the group's number, its clusters, and each one's part."""

    slope: float
    codes: Ints64
    parts: Floats64
    leverage: Leverage
    trials: float
    skewed: bool
    hidden: float

    @property
    def variance(self) -> float:
        """The task's part in the variance of the group's number if all documents have the same."""
        return self.slope**2 * fsum(self.leverage.variances.tolist())

    @property
    def worth(self) -> Floats64:
        """What each cluster counts for if nothing varies."""
        return (
            abs(self.slope) * self.leverage.shares * sqrt(self.leverage.trials / (self.trials or self.leverage.trials))
        )


def spread_of_terms(terms: Sequence[Term], slopes: Sequence[float]) -> TermSpread:
    """The error of a number that changes by these slopes when its tasks' numbers change by 1.

    >>> from evalcore.core.records.estimate import Spread
    >>> one = Estimate(value=0.5, stderr=0.1, spread=Spread(variance=0.01, df=8.0, trials=9.0))
    >>> made = spread_of_terms([Term("a", 0.5, 9.0, one), Term("b", 0.5, 9.0, one)], [0.5, 0.5])
    >>> round(made.stderr, 6), made.df, made.trials
    (0.070711, 16.0, 18.0)
    """
    counted = [(term, slope) for term, slope in zip(terms, slopes, strict=True) if slope != 0]
    lacking = next((term for term, _ in counted if term.estimate.stderr is None), None)
    if lacking is not None:
        return TermSpread(reason=f"{lacking.name} has no standard error: {lacking.estimate.reason or 'not given'}")
    shared = _find_shared_clusters([term.estimate for term, _ in counted])
    alone = [_build_stratum(term.estimate, slope) for term, slope in counted if not _has_cluster(term.estimate, shared)]
    among = [(term, slope) for term, slope in counted if _has_cluster(term.estimate, shared)]
    unknown = next((term.name for term, _ in among if term.estimate.spread.influence is None), None)
    if unknown is not None:
        reason = f"{unknown} shares clusters with other tasks, but the influences of its documents are unknown"
        return TermSpread(reason=reason)
    return _add_strata([*alone, *_build_tied_strata([_tie_task(term.estimate, slope) for term, slope in among])])


def all_clusters(terms: Sequence[Term]) -> Ints64 | None:
    """List every cluster of these tasks once; None if no task has any.

    >>> all_clusters([Term("a", 1.0, 9.0, Estimate(value=0.5))]) is None
    True
    """
    codes = [term.estimate.spread.clusters.ints for term in terms if term.estimate.spread.clusters is not None]
    return np.unique(np.concatenate(codes)) if codes else None


def _add_strata(strata: Sequence[Stratum]) -> TermSpread:
    """Add up independent parts of an error."""
    if len(strata) == 1:  # it keeps its variance, so that a group of one equals its task
        only = strata[0]
        return TermSpread(only.error, only.variance, only.df, only.trials, None, only.skewness, only.hidden)
    errors = [one.error for one in strata]
    largest = max(errors, default=0.0)
    stderr = largest * sqrt(fsum((error / largest) ** 2 for error in errors)) if largest else 0.0
    # In a sum of many the correction for small tasks does not vanish with their number: 57 tasks of 2 documents each
    # would seem twice as precise as they are.
    scale = scale_of(errors)
    squares = [
        (error / scale) ** 2 or (one.unseen if largest else 0.0) for error, one in zip(errors, strata, strict=True)
    ]
    hidden = fsum(one.hidden for one in strata)
    variance = scale * scale * fsum(squares) + hidden if all(one.variance is not None for one in strata) else None
    dfs = [one.df for one in strata if one.df is not None]
    df = satterthwaite(squares, dfs) if len(dfs) == len(strata) else None
    inverse = fsum(1 / one.trials for one in strata if one.trials > 0)
    # third cumulants add up
    skewness = fsum(one.skewness * (one.error / stderr) ** 3 for one in strata) if stderr else 0.0
    return TermSpread(stderr, variance, df, 1 / inverse if inverse > 0 else 0.0, None, skewness, hidden)


def _build_stratum(estimate: Estimate, slope: float) -> Stratum:
    variance = None if estimate.spread.variance is None else slope**2 * estimate.spread.variance
    error = abs(slope) * (estimate.stderr or 0.0)
    return Stratum(
        error,
        variance,
        estimate.spread.df,
        estimate.spread.trials / slope**2 if slope**2 else inf,
        slope**2 * _guess_variance(estimate),
        copysign(estimate.spread.skewness, slope * estimate.spread.skewness),
        slope**2 * estimate.spread.hidden,
    )


def _guess_variance(estimate: Estimate) -> float:
    """Guess the variance of a bounded mean without spread, as if half a document more were right and half wrong.

    >>> from evalcore.core.records.estimate import Spread
    >>> round(_guess_variance(Estimate(value=1.0, spread=Spread(trials=10.0))), 6)      # 10.5 of 11
    0.004339
    """
    low, high = estimate.scale.bounds
    if not estimate.scale.average or estimate.value is None or not isfinite(high - low) or estimate.spread.trials <= 0:
        return 0.0
    share = ((estimate.value - low) / (high - low) * estimate.spread.trials + 0.5) / (estimate.spread.trials + 1)
    return max(share * (1 - share), 0.0) * (high - low) ** 2 / estimate.spread.trials


# --- tasks that share clusters -------------------------------------------------------------------------------------


def _find_shared_clusters(estimates: Sequence[Estimate]) -> Ints64:
    """Find the clusters that occur in more than one task."""
    parts = [np.unique(one.spread.clusters.ints) for one in estimates if one.spread.clusters is not None]
    if len(parts) < 2:
        return np.array([], np.int64)
    codes, times = np.unique(np.concatenate(parts), return_counts=True)
    return np.asarray(codes[times > 1], dtype=np.int64)


def _has_cluster(estimate: Estimate, shared: Ints64) -> bool:
    return (
        len(shared) > 0
        and estimate.spread.clusters is not None
        and bool(np.isin(estimate.spread.clusters.ints, shared).any())
    )


def _tie_task(estimate: Estimate, slope: float) -> Tied:
    spread = estimate.spread
    if spread.influence is None or spread.clusters is None:
        raise AssertionError("only tasks with influences and clusters are tied")
    influence = spread.influence.floats
    names, codes = np.unique(spread.clusters.ints, return_inverse=True)
    weights = np.ones(len(influence)) if spread.weights is None else spread.weights.floats
    leverage = weigh_units(weights, codes, spread.form)
    parts = slope * sum_clusters(influence, codes) / len(influence) * np.sqrt(leverage.factors)
    hidden = abs(slope) * sqrt(spread.hidden)
    return Tied(slope, names, parts, leverage, spread.trials, spread.skewness != 0, hidden)


def _build_tied_strata(tied: Sequence[Tied]) -> list[Stratum]:
    """Sum each cluster's influence over all tasks; clusters that lie in the same tasks make a stratum.

    Each task's part of a cluster is corrected as in the task itself. So tasks on the same clusters have one
    correction, a task that shares little keeps its own error, and the error never jumps as a weight nears 0. The
    degrees of freedom are those of the tasks' mean shares of the clusters: of one task, if all have the same.

    If nothing varies, the correlation within a cluster is unknown: each cluster counts as one trial,
    as if its tasks always agreed, worth its share of the group's number.
    """
    if not tied:
        return []
    names, places = np.unique(np.concatenate([one.codes for one in tied]), return_inverse=True)
    at = places.reshape(-1)
    member = np.zeros((len(names), len(tied)), np.bool_)
    member[at, np.repeat(np.arange(len(tied)), [len(one.codes) for one in tied])] = True

    def add(values: Iterable[Floats64]) -> Floats64:
        """Add up what each cluster has in its tasks."""
        return sum_clusters(np.concatenate(list(values)), at)

    sums = add(one.parts for one in tied)
    corrected = add(one.parts * sqrt(len(one.codes) / (len(one.codes) - 1)) for one in tied)
    worth = add(one.worth for one in tied)
    whole = add(np.full(len(one.codes), one.variance) for one in tied)
    shares = add(one.variance * one.leverage.shares for one in tied) / whole
    variances = add(one.slope**2 * one.leverage.variances for one in tied) / whole
    # what no document shows may be in all tasks at once
    strata, hidden = _group_alike(member), fsum(one.hidden for one in tied) ** 2
    skewed = any(one.skewed for one in tied)
    return [
        Stratum(
            (scale := scale_of(corrected[alike])) * sqrt(_sum_squares(corrected[alike] / scale)),
            _sum_squares(sums[alike]) + hidden / len(strata),
            find_degrees(shares[alike], variances[alike]),
            1 / trials if (trials := _sum_squares(worth[alike])) else 0.0,
            skewness=skewness_of_sum(sums[alike]) if skewed else 0.0,
            hidden=hidden / len(strata),
        )
        for alike in strata
    ]


def _group_alike(member: Bools) -> list[Ints64]:
    """Group the rows that are equal."""
    _, kinds = np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)
    order = np.argsort(kinds.reshape(-1), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(kinds.reshape(-1)[order])) + 1)


def _sum_squares(values: Floats64) -> float:
    with np.errstate(over="ignore"):
        return fsum((values * values).tolist())
