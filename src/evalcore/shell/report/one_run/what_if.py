"""Numbers of other documents and weights: scores by document in chunks, sums and group rules in the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from msgspec import Struct

from evalcore.core.aggregate.task_report import Estimand
from evalcore.core.groups.averages import over_children, over_leaves, own_size
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, fold_group
from evalcore.core.records.array import Ints64
from evalcore.core.records.column import Column
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.outcome import FAILED, UNSCORABLE
from evalcore.core.records.report import GroupReport, TaskReport
from evalcore.core.records.score import Scored
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.links import IDENTITY, LOG
from evalcore.core.tables import Tables
from evalcore.shell.logs.runs.run_record import find_rule
from evalcore.shell.output.report.page_chunk import PageChunk, list_keys, pack_chunk
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.one_run.ratio_form import counts_zero, find_influences, find_ratio

Plain = dict[str, object]
T = TypeVar("T")
OVER = {over_leaves: "leaves", over_children: "children"}


class WhatIf(Struct, frozen=True):
    """What a page needs for numbers of other documents and weights; ``chunks`` hold the scores by document."""

    head: Mapping[str, object]
    chunks: tuple[PageChunk, ...]


def prepare_what_if(run: GatheredRun, *, samples: bool) -> WhatIf | None:
    """Prepare the what-ifs of a run with scores; without ``samples``, whole tasks and weights are all that can change.

    None where no score is known by document.
    """
    if not run.sampled:
        return None
    tasks: dict[str, Plain] = {}
    chunks: list[PageChunk] = []
    for scored in run.recorded.side.scored:
        found = _describe_task(run, scored)
        if found is None:
            continue
        head, content = found
        if samples:
            chunks.append(pack_chunk(content))
            head["chunk"] = chunks[-1].id
        tasks[scored.task.name] = head
    groups = {one.name: one for one in run.report.groups}
    trees = [_describe_tree(tree, groups, run.tables) for tree in run.report.trees if isinstance(tree, Group)]
    return WhatIf({"rule": find_rule(run.results), "tasks": tasks, "trees": trees}, tuple(chunks)) if tasks else None


# --- tasks ------------------------------------------------------------------------------------------------------------


def _describe_task(run: GatheredRun, scored: Scored) -> tuple[Plain, Plain] | None:
    """The sums of each number of a task, and its scores by document."""
    report, asked = run.report.task(scored.task.name), run.list_estimands(scored)
    every = [one.scored.column for one in asked if one.scored.column.times is None]
    keys = np.unique(np.concatenate([one.keys.ints for one in every])) if every else np.zeros(0, np.int64)
    numbers: dict[str, Plain] = {}
    content: dict[str, Plain] = {}
    for one in asked:
        estimate = report.get(one.scored.key)
        if estimate is not None and estimate.value is not None:
            numbers[str(one.scored.key)], content[str(one.scored.key)] = _describe_number(one, estimate, keys)
    return ({"n": len(keys), "numbers": numbers}, {"keys": _write_keys(keys), "numbers": content}) if numbers else None


def _describe_number(asked: Estimand, estimate: Estimate, keys: Ints64) -> tuple[Plain, Plain]:
    column, ratio = asked.scored.column, find_ratio(asked)
    lost = _find_lost(column)
    facts: Plain = {"value": estimate.value, "n": estimate.count, "lost": len(lost), "link": _name_link(estimate)}
    if ratio is not None:
        form = {
            "factor": ratio.factor,
            "log": ratio.log,
            "zero": counts_zero(column) and estimate.scale.higher_is_better is True,
            "average": estimate.scale.average,
        }
        sums = {"a": float(ratio.a.sum()), "b": float(ratio.b.sum()), "scored": len(ratio.a)}
        each: Plain = {"a": ratio.a.tolist(), "lost": list_keys(lost.tolist())} | _write_places(ratio.keys, keys)
        each |= {} if bool((ratio.b == 1).all()) else {"b": ratio.b.tolist()}
        return facts | {"exact": True} | form | sums, each
    moves = find_influences(estimate, column) if column.times is None else None
    facts |= {"exact": False, "average": estimate.scale.average, "known": moves is not None}
    facts["size"] = estimate.scale.size
    if moves is None:
        return facts, {}
    return facts, {"i": moves[1].tolist(), "lost": list_keys(lost.tolist())} | _write_places(moves[0], keys)


def _find_lost(column: Column) -> Ints64:
    """The documents that should have a score, and have none."""
    if column.times is not None:
        return np.zeros(0, np.int64)
    status = column.status.data
    return np.asarray(column.keys.ints[(status == UNSCORABLE) | (status == FAILED)], np.int64)


def _write_keys(keys: Ints64) -> object:
    """Keys, or their number where they count from 0."""
    return len(keys) if bool((keys == np.arange(len(keys))).all()) else list_keys(keys.tolist())


def _write_places(own: Ints64, keys: Ints64) -> Plain:
    """The documents of a number, where they are not all of the task's."""
    return {} if len(own) == len(keys) else {"keys": list_keys(own.tolist())}


def _name_link(estimate: Estimate) -> str | None:
    """The scale on which a group averages a number: as it is, by logarithm, or another that the page does not have."""
    link = estimate.scale.link if estimate.scale.average else IDENTITY
    return "plain" if link is IDENTITY else "log" if link is LOG else None


# --- groups -----------------------------------------------------------------------------------------------------------


def _describe_tree(tree: Group[TaskReport], groups: Mapping[str, GroupReport], tables: Tables) -> Plain:
    def leaf(node: Leaf[TaskReport]) -> Plain:
        return {"name": node.name}

    def group(node: Group[TaskReport], parts: tuple[Plain, ...]) -> Plain:
        made = groups.get(node.name)
        rules = (
            {} if made is None else {str(key): _describe_rule(node, key, one, tables) for key, one in made.estimates}
        )
        return {"name": node.name, "children": list(parts), "rules": rules}

    return fold_group(tree, leaf, group)


def _describe_rule(node: Group[T], key: MetricKey, estimate: Estimate, tables: Tables) -> Plain:
    """How a group makes its number; by slopes, which is of first order, where it is no average that the page knows."""
    slopes = {part.name: part.slope for part in estimate.group.parts if part.influence is None}
    out: Plain = {"value": estimate.value, "n": estimate.count, "slopes": slopes}
    spec = next((one for one in node.metrics if _fits(one, key)), None)
    over = None if spec is None else OVER.get(tables.averages.get(spec.average))  # type: ignore[arg-type]
    if spec is None or over is None or tables.size_of is not own_size:
        return out
    rule = None if callable(spec.aggregation) else tables.group_rules.get(spec.aggregation)
    weights = {name: one for name, one in spec.weights.items() if isinstance(one, int | float)}
    out |= {"over": over, "size": spec.weight_by_size, "weights": weights or None}
    return out | {"mean": rule is not None and rule.mean, "pools": rule is not None and rule.pools}


def _fits(spec: GroupMetric, key: MetricKey) -> bool:
    return spec.metric == key.metric and (spec.filters is None or key.filter in spec.filters)
