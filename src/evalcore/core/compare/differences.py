"""The difference of two estimates on the same documents: its error, its interval, what it could have shown."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf, isfinite, sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.aggregate.clusters import whole_clusters
from evalcore.core.compare.lines import ComparisonLine, explain_few
from evalcore.core.groups.averages import Term
from evalcore.core.groups.covariance import TermSpread, spread_of_terms
from evalcore.core.records.array import Floats64, Ints64, frozen
from evalcore.core.records.column import Column
from evalcore.core.records.estimate import Aggregation, Estimate, Part, Scale
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.bootstrap import resample
from evalcore.core.stats.influence import UnitError, independent, measure_error
from evalcore.core.stats.pair_tests import clip_around, drop_rounding, effective_difference, paired_binary
from evalcore.core.stats.quantiles import t_cdf, t_quantile
from evalcore.core.stats.sample_size import reach_of_test

PAIRED_DRAWS = 1000


class Pair(Struct, frozen=True, eq=False):
    """One metric of a task in both runs, on the documents with a score in both, in the same order.

    Without columns, the influences of the estimates approximate the runs' values after a swap.
    """

    task: str
    key: MetricKey
    a: Estimate
    b: Estimate
    columns: tuple[Column, Column] | None = None
    aggregation: Aggregation | None = None
    unscored: int = 0

    @property
    def clusters(self) -> Ints64 | None:
        """Cluster codes of the units, which other tasks may share; None if none are declared."""
        return None if self.a.spread.clusters is None else self.a.spread.clusters.ints

    @property
    def alone(self) -> bool:
        """Whether every unit is a cluster of its own, declared or not."""
        return self.clusters is None or len(np.unique(self.clusters)) == len(self.clusters)


class Move(Struct, frozen=True, eq=False):
    """How far a pair moves a line's number in either run."""

    pair: Pair
    a: Part
    b: Part

    @property
    def weight(self) -> float:
        """Its slope in the line: the mean of both runs', which differ only for values on a scale of their own."""
        return (self.a.slope + self.b.slope) / 2 or 1.0


def measure_line(
    line: ComparisonLine, moves: Sequence[Move], ends: tuple[Estimate, Estimate], confidence: float
) -> ComparisonLine:
    """Add to a line its difference and, where defined, the error, interval and detectable difference."""
    if line.a is None or line.b is None or not moves:
        return line
    plain = _find_binary_scores(moves)
    if plain is not None:
        return _measure_binary(line, plain, confidence)
    value, line = line.a - line.b, replace(line, clusters=_count_clusters(moves))
    terms = [_build_term(move) for move in moves]
    weights = [move.weight for move in moves]
    whole = spread_of_terms(terms, weights)
    known = replace(line, difference=value, stderr=whole.stderr, reason=line.reason or whole.reason)
    if whole.stderr is None or not whole.df:
        return known
    opaque = any(move.pair.a.spread.influence is None for move in moves)
    tested = _t_test(value, whole.stderr, whole.df) if opaque else None
    quantile, reach = t_quantile((1 + confidence) / 2, whole.df), _find_reach(moves)
    if reach is not None and whole.variance is not None:
        n = _count_effective(terms, weights, whole)
        centre = effective_difference(value, variance=whole.variance, n=n, reach=reach)
        ci, how = clip_around(value, centre, quantile, reach), "Bonett-Price interval on the effective count"
    elif whole.stderr > 0:
        centre = value, whole.stderr
        student = clip_around(value, centre, quantile, inf), "t interval"
        ci, how = _combine_intervals(ends, value, whole.stderr) or student
    else:
        return replace(known, p_value=tested, reason=_explain_zero_spread(value))
    return replace(
        known,
        ci=ci,
        p_value=tested,
        detectable=reach_of_test(1 - confidence)(whole.df) * (whole.stderr or centre[1]),
        method=f"{how}, t test" if tested is not None else how,
    )


def _explain_zero_spread(value: float) -> str:
    if value == 0:
        return "the runs agree on every document, and nothing bounds how much they could differ on others"
    return "every document differs by the same amount, which says nothing about others"


def _measure_binary(line: ComparisonLine, scores: tuple[Floats64, Floats64], confidence: float) -> ComparisonLine:
    tested = paired_binary(*scores, confidence=confidence)
    n, moved = len(scores[0]), np.count_nonzero(scores[0] - scores[1])
    error = effective_difference(tested.difference, variance=moved / n**2 - tested.difference**2 / n, n=n)[1]
    return replace(
        line,
        difference=tested.difference,
        stderr=tested.stderr,
        ci=tested.ci,
        p_value=tested.p_value,
        detectable=reach_of_test(1 - confidence)(n - 1) * (tested.stderr or error) if n > 1 else None,
        method=tested.method,
        least_p=0.5**n,
        reason=line.reason or explain_few(n, "document", 0.5**n, 1 - confidence),
    )


def _combine_intervals(
    ends: tuple[Estimate, Estimate], value: float, stderr: float
) -> tuple[tuple[float, float], str] | None:
    """Combine both runs' intervals on a log scale, given the error of the difference.

    The distances of their ends from the values replace standard errors (Zou and Donner 2008, "MOVER").
    """
    first, second = ends
    link = next((estimate.scale.link for estimate in ends if estimate.scale.link.apart), None)
    if link is None or first.ci is None or second.ci is None or not first.stderr or not second.stderr:
        return None
    together = (first.stderr**2 + second.stderr**2 - stderr**2) / (2 * first.stderr * second.stderr)
    a, b = value + (second.value or 0.0), second.value or 0.0

    def reach(left: float, right: float) -> float:
        return sqrt(max(left**2 + right**2 - 2 * together * left * right, 0.0))

    low, high = reach(a - first.ci[0], second.ci[1] - b), reach(first.ci[1] - a, b - second.ci[0])
    return (value - low, value + high), f"interval from both runs' on the {link.name} scale (MOVER)"


def _count_clusters(moves: Sequence[Move]) -> int | None:
    """Count the distinct clusters of a line; None if every document is a cluster of its own."""
    codes = [move.pair.clusters for move in moves if move.pair.clusters is not None]
    if not codes:
        return None
    count = len(np.unique(np.concatenate(codes)))
    return count if count < sum(map(len, codes)) else None


def _find_binary_scores(moves: Sequence[Move]) -> tuple[Floats64, Floats64] | None:
    """Find the 0/1 scores behind a line, if it is one task's mean of independent documents."""
    if len(moves) != 1 or any(part.slope != 1 or part.influence is not None for part in (moves[0].a, moves[0].b)):
        return None
    pair = moves[0].pair
    first, second = _find_bits(pair.a), _find_bits(pair.b)
    return (first, second) if pair.alone and first is not None and second is not None else None


def _find_bits(estimate: Estimate) -> Floats64 | None:
    """Find the 0/1 scores behind a mean; None if the scores are something else."""
    if not estimate.scale.even or estimate.value is None or estimate.spread.influence is None:
        return None
    given = estimate.spread.influence.floats + estimate.value
    scores = np.rint(given)
    return scores if ((np.abs(given - scores) < 1e-9) & np.isin(scores, (0, 1))).all() else None


def _build_term(move: Move) -> Term:
    """Turn the difference in one task into an estimate, which groups combine like any other."""
    pair, n = move.pair, move.pair.a.count
    first, second = influence_of(move.a, pair.a), influence_of(move.b, pair.b)
    if first is None or second is None:
        stderr, count = _bootstrap_pair(pair), n if pair.clusters is None else len(np.unique(pair.clusters))
        made, influence = UnitError(stderr, (stderr or 0.0) ** 2, count - 1.0, float(count), count), None
    else:
        influence, weights = drop_rounding(first - second, (first, second)) / move.weight, pair.a.spread.weights
        weighed = None if weights is None else weights.floats  # the first run's: lengths are those of the documents
        made = measure_error(influence, pair.clusters, weights=weighed, form=pair.a.spread.form)
    estimate = Estimate(
        value=0.0,
        stderr=made.stderr,
        n=n,
        spread=replace(
            pair.a.spread,
            variance=made.variance,
            df=made.df,
            trials=made.trials,
            influence=None if influence is None else frozen(influence),
        ),
        scale=Scale(average=False),
        reason=None if made.stderr is not None else f"needs two documents or clusters, got {made.units}",
    )
    return Term(pair.task, move.weight, float(n), estimate)


def _count_effective(terms: Sequence[Term], weights: Sequence[float], whole: TermSpread) -> float:
    """Count the independent documents that would give the same error; without an error, the clusters."""
    if not whole.stderr:
        return whole.trials
    error = fsum(
        (weight * (independent(influence.floats)[1] or 0.0)) ** 2
        for term, weight in zip(terms, weights, strict=True)
        if (influence := term.estimate.spread.influence) is not None
    )
    count = 1 / fsum(weight**2 / term.estimate.count for term, weight in zip(terms, weights, strict=True))
    return count * min(1.0, error / whole.stderr**2) if error else count


def influence_of(part: Part, estimate: Estimate) -> Floats64 | None:
    """The influence of a task's documents on a number that the task is part of."""
    if part.influence is not None:
        return part.influence.floats
    return None if estimate.spread.influence is None else part.slope * estimate.spread.influence.floats


def _bootstrap_pair(pair: Pair) -> float | None:
    """Bootstrap the error of a pair without influences, drawing the same documents from both runs."""
    aggregation, n = pair.aggregation, pair.a.count
    if n < 2 or aggregation is None or pair.columns is None:
        return None
    first, second = (aggregation.summarise(column.rows, pair.a.scale.options) for column in pair.columns)
    if pair.clusters is not None:
        first, second = (whole_clusters(summary, pair.clusters) for summary in (first, second))
        n = len(first.stats)
    generator = np.random.Generator(np.random.PCG64(0))
    apart = resample(lambda at: first.resampled(at) - second.resampled(at), n, draws=PAIRED_DRAWS, generator=generator)
    fine = apart[np.isfinite(apart)]
    return float(np.std(fine, ddof=1)) * sqrt(n / (n - 1)) if len(fine) > 1 else None


def _find_reach(moves: Sequence[Move]) -> float | None:
    """Find the most that one document can differ by; None unless the numbers are means within bounds."""
    bounds = {move.pair.a.scale.bounds for move in moves} | {move.pair.b.scale.bounds for move in moves}
    means = all(move.pair.a.scale.average and move.pair.a.scale.link.plain for move in moves)
    low, high = next(iter(bounds))
    return high - low if means and len(bounds) == 1 and isfinite(high - low) else None


def _t_test(value: float, stderr: float, df: float) -> float | None:
    if not stderr:
        return 1.0 if value == 0 else None
    return 2 * t_cdf(-abs(value) / stderr, df)
