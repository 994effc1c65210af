"""The direction of a recorded metric: from its config, its results or our own tables; otherwise unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.metrics.dispatch import METRICS, Metrics
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricSpec

UNKNOWN_DIRECTION = "unknown direction"
"""The trait of a column of unknown direction: a comparison then says which is higher, not which is better."""


def point_column(one: ScoredColumn, told: Mapping[str, object], metrics: Metrics = METRICS) -> ScoredColumn:
    """Give a column its direction, if known; ``told`` is ``higher_is_better`` of its task in the results.

    >>> from evalcore.core.records.column import EMPTY
    >>> from evalcore.core.records.task import MetricKey
    >>> bare = ScoredColumn(MetricKey("surprise"), EMPTY, MetricSpec("surprise"))
    >>> point_column(bare, {}).traits, point_column(bare, {"surprise": False}).spec.higher_is_better
    (('unknown direction',), False)
    """
    higher = _known(one, told, metrics)
    return replace(one, traits=(*one.traits, UNKNOWN_DIRECTION)) if higher is None else _pointed(one, higher)


def _known(one: ScoredColumn, told: Mapping[str, object], metrics: Metrics) -> bool | None:
    if one.spec is not None and one.spec.higher_is_better is not None:
        return one.spec.higher_is_better
    given = told.get(one.key.metric)
    if isinstance(given, bool):
        return given
    name = (one.spec.name if one.spec is not None else one.key.metric).partition("@")[0]
    return next((metrics[kind][name].higher_is_better for kind in sorted(metrics) if name in metrics[kind]), None)


def _pointed(one: ScoredColumn, higher: bool) -> ScoredColumn:
    traits = tuple(trait for trait in one.traits if trait != UNKNOWN_DIRECTION)
    spec = one.spec or MetricSpec(one.key.metric)
    return replace(one, spec=replace(spec, higher_is_better=higher), traits=traits)


def point_sides(
    sides: Sequence[ComparisonSide], higher: Collection[str], lower: Collection[str]
) -> tuple[ComparisonSide, ...]:
    """Set the direction of metrics (``acc`` or ``acc,none``) in runs, against all other sources."""
    both = sorted(set(higher) & set(lower))
    if both:
        raise EvalError(f"expected either --higher_is_better or --lower_is_better for {both[0]}, got both")
    columns = [one for side in sides for scored in side.scored for one in scored.columns]
    known = {spelling for one in columns for spelling in (one.key.metric, str(one.key))}
    for name in (*higher, *lower):
        if name not in known:
            raise unknown("metric", name, known)

    def pointed(one: ScoredColumn) -> ScoredColumn:
        names = {one.key.metric, str(one.key)}
        chosen = [way for way, given in ((True, higher), (False, lower)) if not names.isdisjoint(given)]
        return _pointed(one, chosen[0]) if chosen else one

    def turned(scored: Scored) -> Scored:
        return replace(scored, columns=tuple(map(pointed, scored.columns)))

    return tuple(replace(side, scored=tuple(map(turned, side.scored))) for side in sides)
