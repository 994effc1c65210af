"""evalcore's estimates as Inspect metrics: the value, its error and interval, and the number of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING

from msgspec.structs import replace

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.aggregate.clusters import cluster_codes
from evalcore.core.aggregate.inference import DEFAULT, Inference
from evalcore.core.aggregate.value import aggregate_metric
from evalcore.core.groups.report import report_group
from evalcore.core.groups.tree import Group, GroupMetric, Leaf
from evalcore.core.records.array import Array
from evalcore.core.records.column import build_column
from evalcore.core.records.errors import EvalError, require, unknown
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.report import TaskReport
from evalcore.core.records.row import Floats
from evalcore.core.records.task import MetricKey

if TYPE_CHECKING:
    from inspect_ai.scorer import Metric, SampleScore, Value

FIELDS: Mapping[str, Callable[[Estimate], float | None]] = {
    "value": lambda made: made.value,
    "stderr": lambda made: made.stderr,
    "ci_low": lambda made: made.ci[0] if made.ci is not None else None,
    "ci_high": lambda made: made.ci[1] if made.ci is not None else None,
    "n": lambda made: float(made.count),
}

Name = int | str | None


def close_values(
    values: Sequence[float],
    clusters: Sequence[Name] | None = None,
    groups: Sequence[Name] | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    inference: Inference = DEFAULT,
) -> Estimate:
    """Average scores, with error and interval, over clusters that count together or groups that count equally.

    Scores between 0 and 1 are taken to be bounded by these, unless ``bounds`` says otherwise.

    >>> close_values([1.0, 1.0, 0.0, 1.0]), close_values([1.0, 0.0, 1.0], groups=["a", "a", "b"]).value
    (Estimate(0.75 ± 0.25, n=4), 0.75)
    >>> close_values([1.0]).stderr is None, round(close_values([1.0] * 20).ci[0], 2)
    (True, 0.82)
    """
    inside = all(0.0 <= value <= 1.0 for value in values)
    known = bounds if bounds is not None else (0.0, 1.0) if inside else (-inf, inf)
    mean = replace(AGGREGATIONS["mean"], bounds=known)
    codes = None if clusters is None else cluster_codes(clusters)

    def close(here: Sequence[int]) -> Estimate:
        rows = Floats(Array([values[i] for i in here]))
        return aggregate_metric(
            mean,
            build_column(here, rows),
            inference=inference,
            clusters=None if codes is None else codes[here],
            score_bounds=known,
        )

    if groups is None:
        return close(range(len(values)))
    key, names = MetricKey("value"), list(dict.fromkeys(groups))
    parts = [(str(name), close([i for i, one in enumerate(groups) if one == name])) for name in names]
    leaves = tuple(
        Leaf(name, TaskReport(name=name, estimates=((key, made),), n_docs=made.count)) for name, made in parts
    )
    whole = Group("all", leaves, (GroupMetric("value", weight_by_size=False),))
    return report_group(whole, inference=inference)[key]


def evalcore_metrics(
    *,
    cluster: str | None = None,
    group: str | None = None,
    only: str | None = None,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
    interval: str = "wilson",
    stderr: str = "cr2",
) -> list[Metric]:
    """Make an Inspect metric of evalcore's estimate: value, stderr, ci_low, ci_high and n; NaN if undefined.

    ``cluster`` names a field of the sample metadata whose equal values count together, ``group`` one whose groups are
    averaged first and then count equally. ``only`` gives one of the five numbers alone, for Inspect's ``grouped``.
    ``stderr="cr1"`` gives the errors of clusters that Inspect gives, as if all were of equal size.
    """
    require("inspect_ai", "inspect")
    from inspect_ai.scorer import SampleScore, Value, metric, value_to_float

    if only is not None and only not in FIELDS:
        raise unknown("part of an estimate", only, FIELDS)
    inference = Inference(confidence=confidence, interval=interval, stderr=stderr)
    to_float = value_to_float()

    @metric(name="estimate" if only is None else f"estimate_{only}")
    def estimate(cluster: str | None, group: str | None, confidence: float, interval: str, stderr: str) -> Metric:
        def close(scores: list[SampleScore]) -> Value:
            values = [to_float(one.score.value) for one in scores]
            made = close_values(
                values,
                _list_fields(scores, cluster) if cluster is not None else _cluster_repeats(scores),
                None if group is None else _list_fields(scores, group),
                bounds=bounds,
                inference=inference,
            )
            numbers = {name: nan if (number := part(made)) is None else number for name, part in FIELDS.items()}
            return numbers if only is None else numbers[only]

        # Inspect reads annotations to see what a metric takes; these are texts that its globals cannot resolve.
        close.__annotations__ = {"scores": list[SampleScore], "return": Value}
        return close

    return [estimate(cluster, group, confidence, interval, stderr)]


def _list_fields(scores: Sequence[SampleScore], field: str) -> list[Name]:
    """List a field of the metadata of every sample."""
    values = [(one.sample_metadata or {}).get(field) for one in scores]
    if None in values:
        lost = scores[values.index(None)].sample_id
        raise EvalError(f"expected {field!r} in the metadata of every sample, got none - at sample {lost}")
    return [one if isinstance(one, int) else str(one) for one in values]


def _cluster_repeats(scores: Sequence[SampleScore]) -> list[Name] | None:
    """Count epochs that no reducer combined together: they are no new questions."""
    ids = [one.sample_id for one in scores]
    return list(ids) if None not in ids and len(set(ids)) < len(ids) else None
