"""Settings of errors and intervals, and the interval of an estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.aggregate.resample import draws_of, resample_group
from evalcore.core.aggregate.signature import INTERVAL, interval_of
from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.estimate import Estimate, Resampling
from evalcore.core.records.outcome import Rule
from evalcore.core.stats.influence import CR2, ERROR_FORMS, ErrorForm
from evalcore.core.stats.intervals import INTERVALS, Interval, choose_interval, interval
from evalcore.core.stats.percentile import Resamples

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
Resampler = Callable[[Estimate, Resampling], Resamples | None]


def add_interval(estimate: Estimate, inference: Inference, resample: Resampler | None = None) -> Estimate:
    """Add the interval asked for or, if that would claim certainty, the default one and the reason.

    >>> from evalcore.core.records.estimate import Spread
    >>> sure = Estimate(value=1.0, stderr=0.0, spread=Spread(variance=0.0, df=19.0, trials=20.0), n=20)
    >>> made = add_interval(sure, Inference(interval="t"))
    >>> round(made.ci[0], 2), made.reason
    (0.82, 't: the documents show no spread; wilson-t instead')
    """
    if estimate.value is None or estimate.spread.df is None or estimate.spread.variance is None:
        return estimate
    method, spread, scale = inference.method, estimate.spread.variance, estimate.scale
    if method.resampled is None:
        settled = choose_interval(method, estimate.value, variance=spread, bounds=scale.bounds, link=scale.link)
        flat = method.between is None and settled.between is not None
        return _add_default(estimate, inference, NO_SPREAD) if flat else _add_closed_form(estimate, inference)
    drawn = None if resample is None else resample(estimate, inference.resampling)
    if drawn is None or drawn.all_equal or estimate.stderr is None:
        return _add_default(estimate, inference, "nothing to resample" if drawn is None else NO_SPREAD)
    name = f"{method.name}(draws={draws_of(inference.resampling)},seed={inference.resampling.seed})"
    ci = method.resampled(drawn, inference.confidence)
    return replace(estimate, ci=ci, signature=f"{estimate.signature}{INTERVAL}{name}")


def add_group_interval(estimate: Estimate, inference: Inference, leaves: Mapping[str, Estimate]) -> Estimate:
    """Add its interval to a group's number, from the estimates of its tasks by name."""
    return add_interval(estimate, inference, lambda made, resampling: resample_group(made, leaves, resampling))


def _add_default(estimate: Estimate, inference: Inference, why: str) -> Estimate:
    asked, name = inference.interval, interval_of(estimate, DEFAULT.interval)
    made = _add_closed_form(estimate, replace(DEFAULT, confidence=inference.confidence))
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
    )
    missing = f"{NO_SPREAD}, and the value has no bounds" if ci is None and estimate.stderr is not None else None
    return replace(estimate, ci=ci, reason=estimate.reason or missing)
