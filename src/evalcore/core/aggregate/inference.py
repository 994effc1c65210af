"""Settings of errors and intervals, and the interval of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap
from toolz import unique

from evalcore.core.aggregate.resample import draws_of, resample_group
from evalcore.core.aggregate.signature import INTERVAL, interval_of
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.estimate import Aggregation, Bracket, Estimate, Resampling
from evalcore.core.records.outcome import Rule
from evalcore.core.stats.bootstrap import Resamples
from evalcore.core.stats.influence import CR2, ERROR_FORMS, ErrorForm
from evalcore.core.stats.intervals import INTERVALS, WILSON, Interval, choose_interval, interval
from evalcore.core.stats.skewness import FEW

RULES = ("exclude", "zero", "fail")


class Inference(Struct, frozen=True, kw_only=True):
    """How errors and intervals are computed, and how documents without a score count.

    ``interval``: ``wilson`` (default; ``z``: with normal quantiles), ``exact`` (Clopper and Pearson), ``t`` (value and
    t standard errors either way), or a bootstrap: ``percentile`` or ``bca``. A host sets others in ``intervals``.
    ``stderr``: ``cr2`` (default) corrects for clusters of unequal size and documents of unequal weight, ``cr1`` takes
    them for equal, as Inspect does.
    """

    confidence: float = 0.95
    interval: str = "wilson"
    stderr: str = CR2.name
    resampling: Resampling = Resampling()
    on_unscorable: Rule = "exclude"
    intervals: PMap[str, Interval] = INTERVALS

    def __post_init__(self) -> None:
        require_known("rule for unscorable documents", [self.on_unscorable], RULES)
        require_known("interval", [self.interval], self.intervals)
        require_known("form of standard errors", [self.stderr], ERROR_FORMS)
        if not 0 < self.confidence < 1:
            raise EvalError(f"expected a confidence between 0 and 1, got {self.confidence!r}")

    @property
    def method(self) -> Interval:
        return self.intervals[self.interval]

    @property
    def form(self) -> ErrorForm:
        return ERROR_FORMS[self.stderr]


DEFAULT = Inference()
NO_SPREAD = "the documents show no spread"
NEARLY_ALL = 0.8
"""Beyond this skewness, one unit makes up most of the squared error."""
OWN_UNUSED = "the interval is made of the tasks' standard errors, which know less than the tasks' own intervals"
Resampler = Callable[[Estimate, Resampling], Resamples | None]
OwnInterval = Callable[[float], Bracket | None]


def add_interval(
    estimate: Estimate, inference: Inference, resample: Resampler | None = None, own: OwnInterval | None = None
) -> Estimate:
    """Add the interval asked for or, if that would claim certainty, the default one and the reason.

    ``own`` is an aggregation's own interval at a confidence, which stands for every closed form.

    >>> from evalcore.core.records.estimate import Spread
    >>> sure = Estimate(value=1.0, stderr=0.0, spread=Spread(variance=0.0, df=19.0, trials=20.0), n=20)
    >>> made = add_interval(sure, Inference(interval="t"))
    >>> round(made.ci[0], 2), made.reason
    (0.82, 't: the documents show no spread; wilson-t instead')
    """
    if estimate.value is None or estimate.spread.df is None or estimate.spread.variance is None:
        return estimate
    method, spread, scale = inference.method, estimate.spread.variance, estimate.scale
    bracket = own(inference.confidence) if own is not None and estimate.spread.df > 0 else None
    if bracket is not None:  # what is known beside the value goes with every interval
        told = tuple(unique((*estimate.warnings, *bracket.warnings)))
        estimate = replace(estimate, warnings=told, reference=bracket.reference)
        if method.resampled is None:
            return _take_bracket(estimate, bracket)
    if method.resampled is None:
        settled = choose_interval(method, estimate.value or 0.0, variance=spread, bounds=scale.bounds, link=scale.link)
        flat = method.between is None and settled.between is not None
        return _add_default(estimate, inference, NO_SPREAD) if flat else _add_closed_form(estimate, inference)
    drawn = None if resample is None else resample(estimate, inference.resampling)
    if drawn is None or drawn.all_equal or estimate.stderr is None:
        return _add_default(estimate, inference, "nothing to resample" if drawn is None else NO_SPREAD, bracket)
    name = f"{method.name}(draws={draws_of(inference.resampling)},seed={inference.resampling.seed})"
    ci = method.resampled(drawn, inference.confidence)
    return replace(estimate, ci=ci, signature=f"{estimate.signature}{INTERVAL}{name}")


def add_group_interval(estimate: Estimate, inference: Inference, leaves: Mapping[str, Estimate]) -> Estimate:
    """Add its interval to a group's number, from the estimates of its tasks by name.

    A group of one task has the interval of its task. Where tasks have an interval of their own kind, that of a larger
    group knows less.
    """
    parts = [part for part in estimate.group.parts if part.slope]
    own = [found for part in parts if (found := _find_bracket(leaves.get(part.name), inference)) is not None]
    alone = own[0] if own and len(parts) == 1 and parts[0].slope == 1 else None
    made = add_interval(
        estimate,
        inference,
        lambda mean, resampling: resample_group(mean, leaves, resampling),
        None if alone is None else lambda confidence: alone,
    )
    told = (OWN_UNUSED,) if own and alone is None and made.ci is not None else ()
    return replace(made, warnings=(*made.warnings, *told))


def _find_bracket(task: Estimate | None, inference: Inference) -> Bracket | None:
    """Find the interval of a task if it is of its own kind; the task's recipe names it."""
    if task is None or task.ci is None or not task.spread.own or inference.method.resampled is not None:
        return None
    name = task.signature.partition(INTERVAL)[2].partition("|")[0]
    return Bracket(ci=task.ci, method=name, warnings=task.warnings, reference=task.reference)


def _take_bracket(estimate: Estimate, bracket: Bracket) -> Estimate:
    signature = f"{estimate.signature}{INTERVAL}{bracket.method}"
    return replace(estimate, ci=bracket.ci, signature=signature, spread=replace(estimate.spread, own=True))


def _add_default(estimate: Estimate, inference: Inference, why: str, bracket: Bracket | None = None) -> Estimate:
    asked, name = inference.interval, interval_of(estimate, DEFAULT.interval) if bracket is None else bracket.method
    closed = replace(DEFAULT, confidence=inference.confidence)
    made = _add_closed_form(estimate, closed) if bracket is None else _take_bracket(estimate, bracket)
    reason = f"{asked}: {why}; {name} instead" if made.ci is not None else made.reason
    return replace(made, reason=estimate.reason or reason, signature=f"{estimate.signature}{INTERVAL}{name}")


def _add_closed_form(estimate: Estimate, inference: Inference) -> Estimate:
    """Add the interval that follows from the variance, unit counts, bounds and scale of an estimate."""
    if estimate.value is None or estimate.spread.df is None:
        return estimate
    ci = interval(
        estimate.value,
        variance=estimate.spread.variance,
        stderr=estimate.stderr,
        n=estimate.spread.trials,
        df=estimate.spread.df,
        bounds=estimate.scale.bounds,
        link=estimate.scale.link,
        confidence=inference.confidence,
        method=inference.method,
        documents=None if estimate.n is None else float(estimate.n),
        skewness=estimate.spread.skewness,
    )
    if ci is not None:
        return replace(estimate, ci=ci, warnings=tuple(unique((*estimate.warnings, *_doubt_interval(estimate)))))
    return replace(estimate, reason=estimate.reason or _explain_missing(estimate))


def _doubt_interval(estimate: Estimate) -> Iterator[str]:
    """Say why an interval may be too short; one between bounds never is, unless its aggregation says so."""
    scale, spread, value = estimate.scale, estimate.spread, estimate.value or 0.0
    settled = choose_interval(WILSON, value, variance=spread.variance or 0.0, bounds=scale.bounds, link=scale.link)
    least = max(scale.least, FEW if settled.between is None else 0)
    together = spread.clusters is not None and len(np.unique(spread.clusters.ints)) < estimate.count
    what = "clusters" if together else "documents"
    # few degrees of freedom for unequal lengths are no few documents: Student's quantile allows for them
    units = float(estimate.count) if spread.weights is not None and not together else (spread.df or 0.0) + 1
    if units < least:
        yield f"the interval rests on {units:.3g} {what}: below {least} it may be too short if scores are very skewed"
    elif least and abs(spread.skewness) > NEARLY_ALL:
        yield f"one of the {what} makes up most of the error, so the interval may be too short"


def _explain_missing(estimate: Estimate) -> str | None:
    """Say why a value with a standard error has no interval."""
    if estimate.stderr is None:
        return None
    if not isfinite(estimate.stderr):
        return "the scores are too large for a standard error"
    return f"{NO_SPREAD}, and the value has no bounds"


def refuse_documents(aggregation: Aggregation, inference: Inference, clustered: bool) -> None:
    """Refuse what needs to know which documents have a score, for a tally does not."""
    resampled = inference.method.resampled is not None
    needing = (
        f"the aggregation {aggregation.name}"
        if aggregation.rests_on == "documents"
        else f"the interval {inference.interval}"
        if resampled
        else "clusters"
        if clustered
        else None
    )
    if needing is not None:
        raise EvalError(
            f"a tally only knows how often each score occurs, but {needing} must know which documents have it; score "
            "without tally"
        )
