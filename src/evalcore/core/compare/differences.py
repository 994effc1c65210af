"""The difference of two estimates on the same documents: its error, its interval, what it could have shown."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf

import numpy as np
from msgspec.structs import replace

from evalcore.core.aggregate.clusters import find_skewness
from evalcore.core.aggregate.resample import resample_pair
from evalcore.core.compare.lines import ComparisonLine, explain_few, find_detectable
from evalcore.core.compare.moves import (
    Move,
    Pair,
    count_clusters,
    find_binary_scores,
    find_reach,
    has_mainly_extremes,
    influence_of,
)
from evalcore.core.groups.averages import Term
from evalcore.core.groups.covariance import TermSpread, spread_of_terms
from evalcore.core.records.array import Floats64, frozen
from evalcore.core.records.estimate import Estimate, Scale
from evalcore.core.stats.influence import UnitError, independent, measure_error
from evalcore.core.stats.pair_tests import (
    PairInterval,
    RunEnds,
    bound_binary,
    bound_difference,
    drop_rounding,
    paired_binary,
    t_test,
)


def measure_line(
    line: ComparisonLine, moves: Sequence[Move], ends: tuple[Estimate, Estimate], confidence: float
) -> ComparisonLine:
    """Add to a line its difference and, where defined, the error, interval and detectable difference."""
    if line.a is None or line.b is None or not moves:
        return line
    plain = find_binary_scores(moves)
    if plain is not None:
        return _measure_binary(line, plain, confidence)
    value, line = line.a - line.b, replace(line, clusters=count_clusters(moves))
    terms = [_build_term(move) for move in moves]
    weights = [move.weight for move in moves]
    whole = spread_of_terms(terms, weights)
    known = replace(line, difference=value, stderr=whole.stderr, df=whole.df, reason=line.reason or whole.reason)
    if whole.stderr is None or not whole.df:
        return known
    opaque = any(move.pair.a.spread.influence is None for move in moves)
    tested = t_test(value, whole.stderr, whole.df) if opaque else None
    known, reach = replace(known, p_value=tested), find_reach(moves)
    if reach is not None and whole.variance is not None:
        n, far = _count_effective(terms, weights, whole), 0.0 if has_mainly_extremes(moves) else _find_farthest(terms)
        made, how = bound_difference(value, variance=whole.variance, n=n, df=whole.df, reach=reach, far=far)
    elif whole.stderr > 0:
        most = _find_most(ends)
        student = PairInterval(value, value, whole.stderr, whole.df, most, whole.skewness), "t interval"
        made, how = _combine_intervals(ends, student[0], confidence) or student
    else:
        return replace(known, reason=_explain_zero_spread(value))
    return _add_interval(replace(known, method=f"{how}, t test" if opaque else how), made, confidence)


def _add_interval(line: ComparisonLine, made: PairInterval, confidence: float) -> ComparisonLine:
    line = replace(line, interval=made, ci=made.at(confidence))
    return replace(line, detectable=find_detectable(line, 1 - confidence))


def _find_farthest(terms: Sequence[Term]) -> float:
    """Find how far the difference on a document lies from the mean of its task, at most."""
    influences = [term.estimate.spread.influence for term in terms]
    return max((float(np.max(np.abs(one.floats), initial=0.0)) for one in influences if one is not None), default=0.0)


def _find_most(ends: tuple[Estimate, Estimate]) -> float:
    """Find the most that two numbers can differ by, if they keep to bounds."""
    low, high = (choose(one.scale.bounds[i] for one in ends) for i, choose in ((0, min), (1, max)))
    return high - low if all(one.value is not None and low <= one.value <= high for one in ends) else inf


def _explain_zero_spread(value: float) -> str:
    if value == 0:
        return "the runs agree on every document, and nothing bounds how much they could differ on others"
    return "every document differs by the same amount, which says nothing about others"


def _measure_binary(line: ComparisonLine, scores: tuple[Floats64, Floats64], confidence: float) -> ComparisonLine:
    tested, n = paired_binary(*scores), len(scores[0])
    known = replace(
        line,
        difference=tested.difference,
        stderr=tested.stderr,
        df=float(n - 1),
        p_value=tested.p_value,
        method=tested.method,
        least_p=0.5**n,
        reason=line.reason or explain_few(n, "document", 0.5**n, 1 - confidence),
    )
    wins, losses = (int(np.count_nonzero(scores[i] > scores[1 - i])) for i in (0, 1))
    return _add_interval(known, bound_binary(wins, losses, n), confidence)


def _combine_intervals(
    ends: tuple[Estimate, Estimate], student: PairInterval, confidence: float
) -> tuple[PairInterval, str] | None:
    """Combine both runs' intervals on a log scale, given the error of the difference."""
    link = next((estimate.scale.link for estimate in ends if estimate.scale.link.apart), None)
    runs = [
        RunEnds(one.value, one.stderr, *one.ci, one.spread.df or inf, one.spread.skewness)
        for one in ends
        if one.value is not None and one.ci and one.stderr
    ]
    if link is None or len(runs) < len(ends):
        return None
    made = replace(student, runs=(runs[0], runs[1]), link=link, confidence=confidence)
    return made, f"interval from both runs' on the {link.name} scale (MOVER)"


def _build_term(move: Move) -> Term:
    """Turn the difference in one task into an estimate, which groups combine like any other."""
    pair, n = move.pair, move.pair.a.count
    first, second = influence_of(move.a, pair.a), influence_of(move.b, pair.b)
    if first is None or second is None:
        stderr, count = _bootstrap_pair(pair), n if pair.clusters is None else len(np.unique(pair.clusters))
        variance, influence = (stderr or 0.0) * (stderr or 0.0), None
        made = UnitError(stderr, variance, count - 1.0, float(count), count)
    else:
        influence, weights = drop_rounding(first - second, (first, second)) / move.weight, _weigh_documents(pair)
        made = measure_error(influence, pair.clusters, weights=weights, form=pair.a.spread.form)
    estimate = Estimate(
        value=0.0,
        stderr=made.stderr,
        n=n,
        spread=replace(
            pair.a.spread,
            variance=made.variance,
            df=made.df,
            trials=made.trials,
            skewness=0.0 if influence is None else find_skewness(influence, pair.clusters),
            hidden=0.0,
            influence=None if influence is None else frozen(influence),
        ),
        scale=Scale(average=False),
        reason=None if made.stderr is not None else f"needs two documents or clusters, got {made.units}",
    )
    return Term(pair.task, move.weight, float(n), estimate)


def _weigh_documents(pair: Pair) -> Floats64 | None:
    """Weigh each document by the mean of what it weighs in either run: their lengths, nearly always the same."""
    first, second = pair.a.spread.weights, pair.b.spread.weights
    return None if first is None or second is None else first.floats / 2 + second.floats / 2


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


def _bootstrap_pair(pair: Pair) -> float | None:
    """Bootstrap the error of a pair without influences."""
    if pair.a.count < 2 or pair.aggregation is None or pair.columns is None:
        return None
    first, second = (pair.aggregation.summarise(column.rows, pair.a.scale.options) for column in pair.columns)
    return resample_pair(first, second, pair.clusters)
