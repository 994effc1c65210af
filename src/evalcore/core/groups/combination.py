"""How a group combines its tasks' values and errors into one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, inf, isclose, isfinite, nan

from msgspec.structs import replace

from evalcore.core.groups.averages import Term, merge_terms, value_of_term
from evalcore.core.groups.covariance import all_clusters, spread_of_terms
from evalcore.core.groups.tree import GroupMetric
from evalcore.core.records.array import frozen
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Estimate, Makeup, Part, Scale, Spread
from evalcore.core.records.outcome import Counts
from evalcore.core.stats.links import IDENTITY, Link
from evalcore.core.stats.noise import combine_noise


def mean_of_means(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """Σ w·value with error sqrt(Σ (w·stderr)²), on the log scale for perplexities; refuses anything but means.

    >>> from evalcore.core.stats.links import LOG
    >>> a = Term("a", 0.5, 9.0, Estimate(value=2.0, stderr=1.0, scale=Scale(link=LOG)))
    >>> b = Term("b", 0.5, 9.0, Estimate(value=8.0, stderr=1.0, scale=Scale(link=LOG)))
    >>> round(mean_of_means(GroupMetric("perplexity"), [a, b]).value, 12)
    4.0
    """
    refused = next((term for term in terms if not term.estimate.scale.average), None)
    if refused is not None:
        return Estimate(
            value=None,
            reason=f"{spec.metric} ({refused.estimate.scale.aggregation}) is not a mean; declare aggregation: macro "
            "(average the task scores) or pool (all documents as one task)",
        )
    return macro(spec, terms)


def macro(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """The weighted average of task scores, whatever they are; exact for any weights and shared leaves.

    >>> task = Estimate(value=0.6, stderr=0.1, scale=Scale(average=False))
    >>> shared = [Term("a", weight, 9.0, task) for weight in (0.75, 0.25)]
    >>> macro(GroupMetric("f1"), shared)      # one task by two paths: the same error
    Estimate(0.6 ± 0.1, n=0)
    """
    merged = merge_terms(terms)
    if len(merged) == 1 and merged[0].weight == 1.0:
        return combine_terms(spec, merged, value_of_term(merged[0]), [1.0])
    links = {(term.estimate.scale.link if term.estimate.scale.average else IDENTITY) for term in merged}
    link = links.pop() if len(links) == 1 else IDENTITY
    values = [value_of_term(term) for term in merged]
    value = link.inverse(_average(merged, link))
    if not (isfinite(value) and 0 < link.slope(value) < inf):
        return Estimate(value=None, reason=f"the tasks' numbers have no finite average on the {link.name} scale")
    slopes = [term.weight * link.slope(v) / link.slope(value) for term, v in zip(merged, values, strict=True)]
    return combine_terms(spec, merged, value, slopes)


def _average(terms: Sequence[Term], link: Link) -> float:
    """Σ w·value on the link's scale; by size from the tasks' own sums, so that 10 right of 50 are exactly 0.2.

    >>> tasks = [Term("a", 0.6, 30.0, Estimate(value=7 / 30)), Term("b", 0.4, 20.0, Estimate(value=3 / 20))]
    >>> _average(tasks, IDENTITY), 0.6 * (7 / 30) + 0.4 * (3 / 20)
    (0.2, 0.19999999999999998)
    """
    sizes = [term.size for term in terms]
    if _is_proportional(terms, sizes):
        return fsum(_find_sum(term, link) for term in terms) / fsum(sizes)
    values = [link.forward(value_of_term(term)) for term in terms]
    if _is_proportional(terms, [1.0] * len(terms)):
        return fsum(values) / len(terms)
    return fsum(term.weight * value for term, value in zip(terms, values, strict=True))


def _is_proportional(terms: Sequence[Term], sizes: Sequence[float]) -> bool:
    """Whether weights are proportional to these sizes, but for rounding."""
    total = fsum(sizes)
    return total > 0 and all(
        isclose(term.weight, size / total, rel_tol=1e-14) for term, size in zip(terms, sizes, strict=True)
    )


def _find_sum(term: Term, link: Link) -> float:
    """Return the sum behind a task's mean: as counted, or computed back from the mean."""
    value, sums = value_of_term(term), term.estimate.spread.sums
    if link.plain and sums is not None and len(sums) == 2:
        total, count = sums.floats.tolist()
        if count == term.size and total / count == value:
            return float(total)
    return term.size * link.forward(value)


def by_callable(spec: GroupMetric, terms: Sequence[Term]) -> Estimate:
    """A callable of (values, sizes); its error by the derivative in each task's value.

    >>> two = [Term(name, 0.5, 9.0, Estimate(value=v, stderr=0.1)) for name, v in (("a", 0.4), ("b", 0.8))]
    >>> by_callable(GroupMetric("acc", aggregation=lambda values, sizes: min(values)), two)
    Estimate(0.4 ± 0.1, n=0)
    """
    function = spec.aggregation
    if not callable(function):
        raise EvalError(f"expected a callable of (values, sizes), got {function!r}")
    sizes = [term.size for term in terms]
    values = [value_of_term(term) for term in terms]

    def at(i: int, shift: float) -> float:
        moved = [v + (shift if j == i else 0.0) for j, v in enumerate(values)]
        try:
            return float(function(moved, list(sizes)))  # type: ignore[arg-type]
        except Exception as wrong:
            if shift:
                return nan
            raise EvalError(f"the group's aggregation raised {type(wrong).__name__}: {wrong}") from wrong

    value = at(-1, 0.0)
    if not isfinite(value):
        return Estimate(value=None, reason=f"the group's aggregation gave {value}")
    slopes: dict[str, float] = {}
    for i, term in enumerate(terms):
        slopes[term.name] = slopes.get(term.name, 0.0) + _differentiate(at, i, value, values[i])
    merged = merge_terms(terms)
    if not all(map(isfinite, slopes.values())):
        made = combine_terms(spec, merged, value, [0.0] * len(merged))
        open_ended = replace(made.counts, lowest=None, highest=None)
        return replace(drop_error(made), reason="the group's aggregation has no derivative here", counts=open_ended)
    return combine_terms(spec, merged, value, [slopes[term.name] for term in merged])


def _differentiate(at: Callable[[int, float], float], i: int, value: float, around: float) -> float:
    """Differentiate by one task's value; one-sided if a step would leave the function's domain."""
    step = 1e-6 * max(abs(around), 1.0)
    up, down = at(i, step), at(i, -step)
    if isfinite(up) and isfinite(down):
        return (up - down) / (2 * step)
    return (up - value) / step if isfinite(up) else (value - down) / step


def drop_error(estimate: Estimate) -> Estimate:
    """Drop the standard error and the variance behind it."""
    return replace(estimate, stderr=None, spread=replace(estimate.spread, variance=None, df=None))


def combine_terms(spec: GroupMetric, terms: Sequence[Term], value: float, slopes: Sequence[float]) -> Estimate:
    """Combine independent (or commonly clustered) estimates into a value with these derivatives."""
    estimates = [term.estimate for term in terms]
    spread, clusters = spread_of_terms(terms, slopes), all_clusters(terms)
    noise, repeats = combine_noise(slopes, [(estimate.spread.noise, estimate.spread.repeats) for estimate in estimates])
    links = {estimate.scale.link for estimate in estimates}
    bounds = _find_bounds([estimate.scale.bounds for estimate in estimates])
    return Estimate(
        value=value,
        stderr=spread.stderr,
        n=sum_known([estimate.n for estimate in estimates]),
        counts=Counts(
            scored=sum(estimate.counts.scored for estimate in estimates),
            unscorable=sum(estimate.counts.unscorable for estimate in estimates),
            failed=sum(estimate.counts.failed for estimate in estimates),
            not_emitted=sum(estimate.counts.not_emitted for estimate in estimates),
            lowest=_find_end(spec, slopes, [estimate.counts.lowest for estimate in estimates], value, estimates),
            highest=_find_end(spec, slopes, [estimate.counts.highest for estimate in estimates], value, estimates),
        ),
        reason=spread.reason,
        signature=name_method(estimates),
        scale=Scale(
            size=fsum(estimate.scale.size for estimate in estimates),
            aggregation=spec.aggregation if isinstance(spec.aggregation, str) else "callable",
            bounds=bounds,
            link=links.pop() if len(links) == 1 and estimates[0].scale.average else IDENTITY,
            even=False,
        ),
        spread=Spread(
            variance=spread.variance,
            hidden=spread.hidden,
            skewness=spread.skewness,
            df=spread.df,
            trials=spread.trials,
            clusters=None if clusters is None else frozen(clusters),
            noise=noise,
            repeats=repeats,
        ),
        group=Makeup(parts=tuple(Part(term.name, slope) for term, slope in zip(terms, slopes, strict=True))),
    )


def name_method(estimates: Sequence[Estimate]) -> str:
    """Name how the errors of tasks are combined."""
    clustered = next((estimate.spread for estimate in estimates if estimate.spread.clusters is not None), None)
    return "stratified" if clustered is None else f"clustered({clustered.form.name})"


def sum_known(counts: Sequence[int | None]) -> int | None:
    """Sum the counts of tasks; None if one of them is not known.

    >>> sum_known([2, 3]), sum_known([2, None])
    (5, None)
    """
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _find_bounds(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return bounds[0] if len(set(bounds)) == 1 else (float("-inf"), float("inf"))


def _find_end(
    spec: GroupMetric,
    slopes: Sequence[float],
    ends: Sequence[float | None],
    value: float,
    estimates: Sequence[Estimate],
) -> float | None:
    """Find how far documents without a score could move the group's number."""
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    if _weighs_by_size(spec, slopes, estimates):  # with a score, they would also add to their tasks' weights
        sizes = [
            one.scale.size * (one.counts.scored + one.counts.unscorable + one.counts.failed) / one.counts.scored
            for one in estimates
        ]
        return fsum(size * end for size, end in zip(sizes, known, strict=True)) / fsum(sizes)
    moves = [slope * (end - (one.value or 0.0)) for slope, end, one in zip(slopes, known, estimates, strict=True)]
    return value + fsum(moves)


def _weighs_by_size(spec: GroupMetric, slopes: Sequence[float], estimates: Sequence[Estimate]) -> bool:
    """Whether a plain mean weighs its tasks by how many of their documents have a score."""
    total = fsum(one.scale.size for one in estimates)
    plain = (
        spec.weight_by_size
        and not spec.weights
        and all(one.counts.scored and one.scale.link.plain for one in estimates)
    )
    return plain and all(isclose(slope * total, one.scale.size) for slope, one in zip(slopes, estimates, strict=True))
