"""The error of a group's mean if its tasks are a random sample of all tasks of their kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite, sqrt

from evalcore.core.aggregate.value import DEFAULT, Inference, add_interval
from evalcore.core.records.estimate import AcrossTasks, Estimate, Scale, Spread

__all__ = ["across_tasks", "sample_of_tasks"]

MEANS = ("mean", "macro", "pool")


def across_tasks(made: Estimate, values: Mapping[str, float], inference: Inference = DEFAULT) -> AcrossTasks | None:
    """The error of a group's mean over other tasks of their kind; None unless it is a mean of two tasks or more.

    It answers a different question from the group's error, which is about other documents of the same tasks. Between
    finite bounds the interval is Wilson's on an effective count, as everywhere: Student's misses a mean near a bound.

    >>> from evalcore.core.records.estimate import Makeup, Part
    >>> made = Estimate(value=0.6, group=Makeup((Part("a", 0.5), Part("b", 0.5))))
    >>> found = across_tasks(made, {"a": 0.5, "b": 0.7})
    >>> found.tasks, round(found.stderr, 12)      # the standard deviation of 0.5 and 0.7 by sqrt(2)
    (2, 0.1)
    """
    parts = [part for part in made.group.parts if part.slope != 0]
    pooled = any(part.influence is not None for part in parts)
    if made.value is None or len(parts) < 2 or pooled or made.scale.aggregation not in MEANS:
        return None
    link = made.scale.link
    at = [link.forward(values[part.name]) for part in parts]
    slope = link.slope(made.value)
    if not all(map(isfinite, (*at, slope))):
        return None
    weights = [part.slope * slope / link.slope(values[part.name]) for part in parts]
    error, df = sample_of_tasks(weights, at)
    stderr = error / slope
    closed = Estimate(
        value=made.value,
        stderr=stderr,
        spread=Spread(variance=stderr**2, df=df, trials=1 / fsum(weight**2 for weight in weights)),
        scale=Scale(bounds=made.scale.bounds, link=made.scale.link),
    )
    return AcrossTasks(len(parts), stderr, add_interval(closed, Inference(confidence=inference.confidence)).ci)


def sample_of_tasks(weights: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The standard error of Σ w·value over draws of values, and its degrees of freedom.

    Σ (w·(value - mean))² is made unbiased, and the degrees are those of a chi-square with its mean and variance, both
    for independent normal values. With equal weights: the standard deviation by sqrt(k), and k - 1.

    >>> error, df = sample_of_tasks([0.25] * 4, [0.0, 1.0, 2.0, 3.0])
    >>> round(error, 6), round(df, 12)
    (0.645497, 3.0)
    """
    mean = fsum(weight * value for weight, value in zip(weights, values, strict=True))
    squares = fsum((weight * (value - mean)) ** 2 for weight, value in zip(weights, values, strict=True))
    w2, w3, w4, w5 = (fsum(weight**power for weight in weights) for power in (2, 3, 4, 5))
    # the quadratic form is x' A x with A = (I - 1w')' diag(w²) (I - 1w'): its trace, and that of its square
    trace = w2 - 2 * w3 + w2**2
    square = w4 - 4 * w5 + 4 * w2 * w4 + 2 * w3**2 - 4 * w2**2 * w3 + w2**4
    return sqrt(squares * w2 / trace), trace**2 / square
