"""The direction of a recorded metric: from its config, its results or our own tables; otherwise unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.metrics.dispatch import METRICS, Metrics
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricSpec
from evalcore.shell.logs.declarations import Declarations, declare_column, refuse_undeclared

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
    spec = one.spec or MetricSpec(one.key.metric)
    return replace(one, spec=replace(spec, higher_is_better=higher), traits=_without_unknown(one))


def _without_unknown(one: ScoredColumn) -> tuple[str, ...]:
    return tuple(trait for trait in one.traits if trait != UNKNOWN_DIRECTION)


def declare_sides(sides: Sequence[ComparisonSide], declared: Declarations) -> tuple[ComparisonSide, ...]:
    """Declare the direction and bounds of metrics (``acc`` or ``acc,none``) in runs, against all other sources."""
    if not declared.names:
        return tuple(sides)
    refuse_undeclared(declared, (one for side in sides for scored in side.scored for one in scored.columns))

    def told(one: ScoredColumn, task: str) -> ScoredColumn:
        made = declare_column(one, declared, task)
        known = made.spec is not None and made.spec.higher_is_better is not None
        return replace(made, traits=_without_unknown(made)) if known else made

    def turned(scored: Scored) -> Scored:
        return replace(scored, columns=tuple(told(one, scored.task.name) for one in scored.columns))

    return tuple(replace(side, scored=tuple(map(turned, side.scored))) for side in sides)
