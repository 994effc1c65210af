"""Every problem in groups, found before anything runs and never raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from toolz import unique

from evalcore.core.aggregate.aggregations import AGGREGATIONS
from evalcore.core.groups.build import TreePlan, plan_trees
from evalcore.core.groups.index import Config, Finding
from evalcore.core.groups.rules import BY_CALLABLE, GROUP_RULES
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, all_tasks
from evalcore.core.metrics.dispatch import METRICS
from evalcore.core.records.request import Options
from evalcore.core.tables import DEFAULT_METRICS, known_metrics

Direction = bool | None
"""Whether more is better; None if neither is."""

MetricsOf = Callable[[str], Mapping[str, Direction]]
"""From an output type to the direction of each of its metrics."""

Known = tuple[str, Direction, tuple[float, float]]
"""Aggregation, direction and bounds of a metric."""

UNASKED: Mapping[str, tuple[str, ...]] = {str(kind): names for kind, names in DEFAULT_METRICS.items()}
KNOWN: Mapping[str, Mapping[str, Known]] = {
    str(kind): {name: (metric.aggregation, metric.higher_is_better, metric.bounds) for name, metric in table.items()}
    for kind in METRICS
    for table in [known_metrics(kind)]
}


class Emission(NamedTuple):
    """A metric that a task will report."""

    task: str
    metric: str
    filter: str
    aggregation: str
    direction: Direction
    bounds: tuple[float, float] | None


def higher_is_better_of(output_type: str) -> Mapping[str, Direction]:
    """The direction of each metric of an output type, from the metric tables.

    >>> higher_is_better_of("loglikelihood")["perplexity"]
    False
    """
    return {name: facts[1] for name, facts in KNOWN.get(output_type, {}).items()}


def lint_configs(configs: Sequence[Config], metrics_of: MetricsOf | None = None) -> tuple[Finding, ...]:
    """Find everything wrong with these task and group configs at once; never raise.

    Kinds: ``cycle``, ``unknown_child``, ``duplicate_name``, ``bad_config``, ``leaf_reached_twice``,
    ``metric_not_emitted``, ``mixed_direction``, ``mixed_scale``, ``not_averageable``.

    >>> task = {"task": "a", "metric_list": [{"metric": "f1", "aggregation": "f1"}]}
    >>> [found] = lint_configs([task, {"group": "g", "task": ["a"], "aggregate_metric_list": {"metric": "f1"}}])
    >>> found.kind, found.message
    ('not_averageable', "group 'g' takes the mean of f1, which is not a mean (f1 in a): declare macro or pool")
    """
    plan = plan_trees(configs)
    directions = metrics_of or higher_is_better_of
    emitted: dict[str, tuple[Emission, ...] | None] = {}
    findings = [*plan.problems, *_find_reached_twice(plan)]
    for group in plan.groups.values():
        tasks = all_tasks(group) if group.metrics else ()
        for leaf in tasks:
            if leaf.name not in emitted:
                emitted[leaf.name] = _list_emissions(leaf, directions)
        for metric in group.metrics:
            known = {leaf.name: some for leaf in tasks if (some := emitted[leaf.name]) is not None}
            judged = _judge(group, metric, known)
            findings += [plan.known.finding(kind, text, group.name) for kind, text in judged]
    return tuple(unique(findings))


# --- what each task reports -------------------------------------------------------------------------------


def _list_emissions(leaf: Leaf[Options], directions: MetricsOf) -> tuple[Emission, ...] | None:
    """List what a task's config says it reports; None if only its code decides."""
    config = leaf.value
    if "class" in config or not isinstance(config.get("output_type", ""), str):
        return None
    kind = str(config.get("output_type", "generate_until"))
    unasked = tuple({"metric": name} for name in UNASKED.get(kind, ()))
    asked = config.get("metric_list") or unasked
    filters = [one for one in _list_several(config.get("filter_list")) if isinstance(one, Mapping)]
    pipelines = [(str(one.get("name", "none")), one.get("metric_list") or asked) for one in filters]
    return tuple(
        _build_emission(leaf.name, kind, name, spec, directions)
        for name, specs in pipelines or [("none", asked)]
        for spec in _list_several(specs)
        if isinstance(spec, Mapping)
    )


def _build_emission(task: str, kind: str, filter_name: str, spec: Config, directions: MetricsOf) -> Emission:
    metric = _read_text(spec.get("metric"))
    usual, _, bounds = KNOWN.get(kind, {}).get(metric, ("mean", None, None))
    aggregation = _read_text(spec.get("aggregation")) if spec.get("aggregation") is not None else usual
    declared = spec.get("higher_is_better")
    direction = declared if isinstance(declared, bool) else directions(kind).get(metric)
    known = AGGREGATIONS.get(aggregation)
    plain = known is not None and known.average and known.link.plain
    if aggregation != usual or bounds is None or not plain:
        bounds = None if known is None else known.bounds
    return Emission(task, metric, filter_name, aggregation, direction, bounds)


def _list_several(given: object) -> Sequence[object]:
    return given if isinstance(given, list | tuple) else [] if given is None else [given]


def _read_text(given: object) -> str:
    return str(getattr(given, "__name__", given)).rsplit("/", 1)[-1]


def _mean_or_name(aggregation: str) -> str:
    return "mean" if aggregation in AGGREGATIONS and AGGREGATIONS[aggregation].even else aggregation


def _is_averageable(aggregation: str) -> bool:
    return aggregation in AGGREGATIONS and AGGREGATIONS[aggregation].average


# --- what a group makes of it -----------------------------------------------------------------------------


def _judge(
    group: Group[Options], metric: GroupMetric, known: Mapping[str, tuple[Emission, ...]]
) -> Iterator[tuple[str, str]]:
    of_metric = [one for some in known.values() for one in some if one.metric == metric.metric]
    used = [one for one in of_metric if metric.filters is None or one.filter in metric.filters]
    yield from _find_not_emitted(group.name, metric, known, used)
    if {one.direction for one in used} >= {True, False}:
        sure = [one for one in used if one.direction is not None]
        labels = _list_labels(sure, lambda one: f"{'higher' if one.direction else 'lower'} is better")
        yield "mixed_direction", f"group {group.name!r} mixes directions of {metric.metric}: {labels}"
    rule = BY_CALLABLE if callable(metric.aggregation) else GROUP_RULES.get(metric.aggregation, BY_CALLABLE)
    scales = {(_mean_or_name(one.aggregation), one.bounds) if rule.alike else one.bounds for one in used}
    if len(scales - {None}) > 1:
        labels = _list_labels(used, _format_scale)
        yield "mixed_scale", f"group {group.name!r} mixes different scales of {metric.metric}: {labels}"
    bent = [one for one in used if not _is_averageable(one.aggregation)]
    if bent and rule.averages:
        labels = _list_labels(bent, lambda one: one.aggregation)
        text = f"takes the mean of {metric.metric}, which is not a mean ({labels}): declare macro or pool"
        yield "not_averageable", f"group {group.name!r} {text}"


def _find_not_emitted(
    group: str, metric: GroupMetric, known: Mapping[str, tuple[Emission, ...]], used: Sequence[Emission]
) -> Iterator[tuple[str, str]]:
    if not known:
        return
    wanted = sorted({one.filter for one in used}) if metric.filters is None else metric.filters
    for key in [f"{metric.metric},{name}" for name in wanted] or [metric.metric]:
        having = {one.task for one in used if key in (f"{one.metric},{one.filter}", one.metric)}
        lacking = [task for task in known if task not in having]
        if not having:
            keys = {f"{one.metric},{one.filter}" for some in known.values() for one in some}
            near = get_close_matches(key, sorted(keys), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield "metric_not_emitted", f"no task of group {group!r} reports {key!r}{hint}"
        elif lacking:
            text = f"{key!r} is missing in {len(lacking)} of {len(known)} tasks: {_format_names(lacking)}"
            yield "metric_not_emitted", f"group {group!r}: metric {text}"


def _format_scale(emission: Emission) -> str:
    return emission.aggregation + (f" from {emission.bounds[0]:g} to {emission.bounds[1]:g}" if emission.bounds else "")


def _list_labels(used: Sequence[Emission], label: Callable[[Emission], str]) -> str:
    parts: dict[str, dict[str, None]] = {}
    for emission in used:
        parts.setdefault(label(emission), {})[emission.task] = None
    return "; ".join(f"{name} in {_format_names(list(tasks))}" for name, tasks in parts.items())


def _format_names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _find_reached_twice(plan: TreePlan) -> Iterator[Finding]:
    """Find leaves that two children of one group lead to, reported where the paths part and not above."""
    paths: dict[str, dict[str, str]] = {}
    for group in plan.groups.values():
        mine: dict[str, str] = paths.setdefault(group.name, {})
        for child in group.children:
            below = {child.name: child.name} if isinstance(child, Leaf) else paths[child.name]
            for leaf, path in below.items():
                full = f"{group.name}::{path}"
                if leaf in mine:
                    text = f"task {leaf!r} is reached twice in group {group.name!r}: {mine[leaf]} and {full}"
                    yield plan.known.finding("leaf_reached_twice", text, group.name)
                else:
                    mine[leaf] = full
