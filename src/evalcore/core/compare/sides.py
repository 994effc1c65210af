"""Two runs on the same documents, in every task, metric and group: differences, intervals, tests, what flipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.aggregate.value import Inference
from evalcore.core.compare.differences import Move, Pair, measured
from evalcore.core.compare.flips import DRAWS, flip_lines
from evalcore.core.compare.lines import Comparison, Line, Side
from evalcore.core.compare.pairs import Paired, pair_documents
from evalcore.core.groups.tree import Group, Tree, all_groups, all_tasks, child_names
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.column import Floats
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.estimate import Estimate, Part
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.score import Scored, ScoredColumn, whole_columns
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables

__all__ = ["compare_sides"]

Draft = tuple[Line, tuple[Move, ...], tuple[Estimate, Estimate]]
"""A line without its difference, the tasks that move it, and both runs' numbers."""
Leaves = Mapping[tuple[str, MetricKey], Pair]


def compare_sides(
    a: Side, b: Side, *, confidence: float = 0.95, draws: int = DRAWS, seed: int = 0, tables: Tables = EVALCORE
) -> Comparison:
    """First minus second, for every task, metric and group that both runs have, on the documents that both have.

    0/1 scores get Bonett and Price's interval and McNemar's mid-p test. Clustered scores, other bounded means and
    groups get that interval on an effective count; everything else Student's, by the influence of each document; and
    all of these a sign-flip test over documents, or over clusters where they are declared.
    """
    if seed < 0 or draws < 1:
        raise EvalError(f"expected a seed of at least 0 and at least one draw, got {seed} and {draws}")
    a, b, unlike = _alike(a, b, tables)
    pairs = _paired(a, b)
    trees = a.trees or b.trees
    inference = Inference(confidence=confidence)

    def closed(scored: Iterable[Scored]) -> Report:
        tasks = [_undirected(report_task(one, inference=inference, tables=tables), one) for one in scored]
        return build_report(tasks, trees, inference=inference, tables=tables)

    one, two = closed(pair.a for pair in pairs), closed(pair.b for pair in pairs)
    leaves = {(leaf.task, leaf.key): leaf for pair in pairs for leaf in _leaves(pair, one, two, tables)}
    lone = _lone(a, b), _lone(b, a)
    groups = _group_drafts(one, two, trees, leaves, frozenset(chain(*lone)))
    drafts = [
        (measured(line, moves, ends, confidence), moves)
        for line, moves, ends in chain(map(_leaf_draft, leaves.values()), groups)
    ]
    return Comparison(
        names=(a.name, b.name),
        lines=tuple(flip_lines(drafts, draws, seed, 1 - confidence)),
        documents=tuple(pair.shared for pair in pairs),
        tasks_only_a=lone[0],
        tasks_only_b=lone[1],
        confidence=confidence,
        warnings=(
            *unlike,
            *(told for pair in pairs for told in pair.warnings),
            *_lone_metrics(a, b),
            *_other_groups(a.trees, b.trees),
        ),
    )


def _undirected(report: TaskReport, scored: Scored) -> TaskReport:
    """The report with no direction for metrics of unknown direction."""
    unknown = {one.key for one in scored.columns if "unknown direction" in one.traits}
    estimates = tuple(
        (key, replace(estimate, scale=replace(estimate.scale, higher_is_better=None)) if key in unknown else estimate)
        for key, estimate in report.estimates
    )
    return replace(report, estimates=estimates) if unknown else report


def _paired(a: Side, b: Side) -> list[Paired]:
    theirs = {one.task.name: one for one in b.scored}
    return [
        pair_documents(one, theirs[name], (a.documents.get(name, ()), b.documents.get(name, ())))
        for one in a.scored
        if (name := one.task.name) in theirs
    ]


def _alike(a: Side, b: Side, tables: Tables) -> tuple[Side, Side, list[str]]:
    """The runs without the metrics that they close by different rules, and which these are."""
    told: list[str] = []
    theirs = {one.task.name: one for one in b.scored}
    dropped: set[tuple[str, MetricKey]] = set()
    for one in a.scored:
        other = {column.key: column for column in theirs[one.task.name].columns} if one.task.name in theirs else {}
        for column in one.columns:
            rules = [
                _rule(scored, found, tables)
                for scored, found in ((one, column), (theirs.get(one.task.name, one), other.get(column.key, column)))
            ]
            if rules[0] != rules[1]:
                dropped.add((one.task.name, column.key))
                told.append(
                    f"{one.task.name}: {column.key} is not compared: {rules[0]} in one run, {rules[1]} in the other"
                )
    return _without(a, dropped), _without(b, dropped), told


def _rule(scored: Scored, column: ScoredColumn, tables: Tables) -> str:
    """What a number is made by: its aggregation, and the options that shape it unless they only shape scores."""
    name = aggregation_of(scored.task, column, tables).name
    options = column.spec.options if column.spec is not None and name != "mean" else {}
    return " ".join([name, *(f"{key}={value}" for key, value in sorted(options.items()))])


def _without(side: Side, dropped: set[tuple[str, MetricKey]]) -> Side:
    if not dropped:
        return side
    kept = (
        replace(one, columns=tuple(column for column in one.columns if (one.task.name, column.key) not in dropped))
        for one in side.scored
    )
    return replace(side, scored=tuple(kept))


def _lone(a: Side, b: Side) -> tuple[str, ...]:
    known = {one.task.name for one in b.scored}
    return tuple(one.task.name for one in a.scored if one.task.name not in known)


def _leaves(pair: Paired, one: Report, two: Report, tables: Tables) -> Iterator[Pair]:
    """Every metric of a task that has a value in both runs."""
    name = pair.shared.task
    theirs = {column.key: column for column in whole_columns(pair.b)}
    for column in whole_columns(pair.a):
        other = theirs[column.key]
        first, second = one.task(name)[column.key], two.task(name)[column.key]
        if first.spread.keys != second.spread.keys and first.value is not None and second.value is not None:
            raise EvalError(f"expected both runs to count the same documents of {column.key}{place(name)}")
        yield Pair(
            name,
            column.key,
            first,
            second,
            (column.column, other.column),
            aggregation_of(pair.a.task, column, tables),
            pair.unscored.get(str(column.key), 0),
        )


def _leaf_draft(pair: Pair) -> Draft:
    better, worse = _flips(pair)
    line = replace(_draft(pair.task, pair.key, pair.a, pair.b), unscored=pair.unscored, better=better, worse=worse)
    whole = Part(pair.task, 1.0)
    return line, (Move(pair, whole, whole),), (pair.a, pair.b)


def _draft(name: str, key: MetricKey, a: Estimate, b: Estimate) -> Line:
    return Line(
        name=name,
        key=key,
        a=a.value,
        b=b.value,
        n=a.n,
        higher_is_better=a.scale.higher_is_better,
        reason=next((one.reason for one in (a, b) if one.value is None), None),
    )


def _flips(pair: Pair) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The documents where the first run does better, and worse."""
    one, two = (column.rows for column in pair.columns) if pair.columns is not None else (None, None)
    if not isinstance(one, Floats) or not isinstance(two, Floats) or pair.a.spread.keys is None:
        return (), ()
    keys, apart = pair.a.spread.keys.ints, one.values.floats - two.values.floats
    if len(keys) != len(apart):
        return (), ()
    gain = -apart if pair.a.scale.higher_is_better is False else apart
    return tuple(keys[gain > 0].tolist()), tuple(keys[gain < 0].tolist())


def _group_drafts(
    one: Report, two: Report, trees: Iterable[Tree[object]], leaves: Leaves, lone: frozenset[str]
) -> Iterator[Draft]:
    below = {group.name: {leaf.name for leaf in all_tasks(group)} for group in _groups(trees)}
    for group in one.groups:
        other = two.group(group.name)
        for key, a in group.estimates:
            b = other.get(key)
            if b is None:
                continue
            missing = sorted(below[group.name] & lone)
            lacking = f"without {', '.join(a.group.missing[:5])}, which lacks it" if a.group.missing else None
            line = replace(_draft(group.name, key, a, b), group=True)
            line = replace(line, reason=line.reason or lacking)
            if missing:
                yield replace(line, a=None, b=None, reason=f"only one run has {', '.join(missing[:5])}"), (), (a, b)
            else:
                yield _with_moves(line, a, b, leaves)


def _with_moves(line: Line, a: Estimate, b: Estimate, leaves: Leaves) -> Draft:
    """A group's line with the tasks that move it, in both runs alike."""
    theirs = {part.name: part for part in b.group.parts}
    if not a.group.parts or theirs.keys() != {part.name for part in a.group.parts}:
        why = line.reason or "the group's number is not one of its tasks'"
        return replace(line, a=None, b=None, reason=why), (), (a, b)
    moves = tuple(
        Move(leaves[part.name, line.key], part, theirs[part.name])
        for part in a.group.parts
        if part.slope or theirs[part.name].slope
    )
    return replace(line, unscored=sum(move.pair.unscored for move in moves)), moves, (a, b)


def _groups(trees: Iterable[Tree[object]]) -> list[Group[object]]:
    return [one for tree in trees if isinstance(tree, Group) for one in (tree, *all_groups(tree))]


def _lone_metrics(a: Side, b: Side) -> Iterator[str]:
    theirs = {one.task.name: {column.key for column in one.columns} for one in b.scored}
    for one in a.scored:
        mine, other = {column.key for column in one.columns}, theirs.get(one.task.name)
        for key in sorted(map(str, mine ^ other)) if other is not None else ():
            has = a.name if key in set(map(str, mine)) else b.name
            yield f"{one.task.name}: only {has} has {key}"


def _other_groups(a: Iterable[Tree[object]], b: Iterable[Tree[object]]) -> Iterator[str]:
    mine, theirs = ({group.name: group for group in _groups(trees)} for trees in (a, b))
    for name, group in mine.items():
        if _rules(group) != _rules(theirs.get(name, group)):
            yield f"group {name} differs between the runs; the first run's tasks and weights are used for both"
    for name in theirs if mine else ():
        if name not in mine:
            yield f"group {name} is only in the second run; it is not compared"


def _rules(group: Group[object]) -> tuple[object, ...]:
    """What a group makes of what; the filters it names are among those that are there anyway."""
    return child_names(group), tuple(sorted((replace(one, filters=None) for one in group.metrics), key=repr))
