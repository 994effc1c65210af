"""Two runs on the same documents, in every task, metric and group: differences, intervals, tests, what flipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec.structs import replace
from toolz import unique

from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.compare.differences import measure_line
from evalcore.core.compare.flips.significance import DRAWS, flip_lines
from evalcore.core.compare.lines import Comparison, ComparisonLine, ComparisonSide
from evalcore.core.compare.mismatches import compare_rules, drop_mismatches, warn_of_groups, warn_of_metrics
from evalcore.core.compare.moves import Move, Pair
from evalcore.core.compare.pairs import Paired, pair_documents
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Tree, all_tasks
from evalcore.core.pipeline import build_report, report_task
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.estimate import Estimate, Part
from evalcore.core.records.report import Report, TaskReport
from evalcore.core.records.row import Floats
from evalcore.core.records.score import Scored, whole_columns
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE, Tables

Draft = tuple[ComparisonLine, tuple[Move, ...], tuple[Estimate, Estimate]]
"""A line without its difference, the tasks that move it, and both runs' numbers."""
Leaves = Mapping[tuple[str, MetricKey], Pair]


def compare_sides(
    a: ComparisonSide,
    b: ComparisonSide,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    tables: Tables = EVALCORE,
) -> Comparison:
    """Compare two runs, first minus second, in every task, metric and group of both, on the documents of both.

    0/1 scores get Bonett and Price's interval and McNemar's mid-p test. Other scores between bounds, clusters and
    groups get an interval on an effective count, everything else Student's from the influence of each document. All of
    these get a sign-flip test over documents, or over clusters if any are declared: without draws where the difference
    is a sum over documents, else of so many draws.
    """
    if seed < 0 or draws < 1:
        raise EvalError(f"expected a seed of at least 0 and at least one draw, got {seed} and {draws}")
    rules, unknown_rules = compare_rules(a, b, tables)
    a, b, unlike = drop_mismatches(a, b, tables)
    pairs = _pair_tasks(a, b)
    trees = a.trees or b.trees
    inference = Inference(confidence=confidence)

    def close(scored: Iterable[Scored]) -> Report:
        tasks = [_drop_direction(report_task(one, inference=inference, tables=tables), one) for one in scored]
        return build_report(tasks, trees, inference=inference, tables=tables)

    first, second = close(pair.a for pair in pairs), close(pair.b for pair in pairs)
    leaves = {(leaf.task, leaf.key): leaf for pair in pairs for leaf in _pair_metrics(pair, first, second, tables)}
    lone = _list_lone_tasks(a, b), _list_lone_tasks(b, a)
    groups = _draft_groups(first, second, trees, leaves, frozenset(chain(*lone)))
    drafts = [
        (measure_line(line, moves, ends, confidence), moves)
        for line, moves, ends in chain(map(_draft_leaf, leaves.values()), groups)
    ]
    doubts = tuple(_doubt_errors(first))
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
            *unique(told for *_, told in doubts),
            *warn_of_metrics(a, b),
            *warn_of_groups(a.trees, b.trees),
        ),
        rules=rules,
        unknown_rules=unknown_rules,
        doubts=doubts,
    )


def _doubt_errors(report: Report) -> Iterator[tuple[str, MetricKey, str]]:
    """Say what makes the errors of tasks doubtful, and so those of their differences; each with its number."""
    for task in report.tasks:
        yield from ((task.name, key, f"{task.name}: {told}") for key, one in task.estimates for told in one.warnings)


def _drop_direction(report: TaskReport, scored: Scored) -> TaskReport:
    """Leave metrics of unknown direction without one."""
    unknown = {one.key for one in scored.columns if "unknown direction" in one.traits}
    estimates = tuple(
        (key, replace(estimate, scale=replace(estimate.scale, higher_is_better=None)) if key in unknown else estimate)
        for key, estimate in report.estimates
    )
    return replace(report, estimates=estimates) if unknown else report


def _pair_tasks(a: ComparisonSide, b: ComparisonSide) -> list[Paired]:
    theirs = {one.task.name: one for one in b.scored}
    return [
        pair_documents(one, theirs[name], (a.documents.get(name, ()), b.documents.get(name, ())))
        for one in a.scored
        if (name := one.task.name) in theirs
    ]


def _list_lone_tasks(a: ComparisonSide, b: ComparisonSide) -> tuple[str, ...]:
    known = {one.task.name for one in b.scored}
    return tuple(one.task.name for one in a.scored if one.task.name not in known)


def _pair_metrics(pair: Paired, report_a: Report, report_b: Report, tables: Tables) -> Iterator[Pair]:
    """Pair every metric of a task in both runs."""
    name = pair.shared.task
    theirs = {column.key: column for column in whole_columns(pair.b)}
    for column in whole_columns(pair.a):
        other = theirs[column.key]
        first, second = report_a.task(name)[column.key], report_b.task(name)[column.key]
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


def _draft_leaf(pair: Pair) -> Draft:
    better, worse = _find_flips(pair)
    line = replace(_draft_line(pair.task, pair.key, pair.a, pair.b), unscored=pair.unscored, better=better, worse=worse)
    whole = Part(pair.task, 1.0)
    return line, (Move(pair, whole, whole),), (pair.a, pair.b)


def _draft_line(name: str, key: MetricKey, a: Estimate, b: Estimate) -> ComparisonLine:
    return ComparisonLine(
        name=name,
        key=key,
        a=a.value,
        b=b.value,
        n=a.count,
        higher_is_better=a.scale.higher_is_better,
        reason=next((one.reason for one in (a, b) if one.value is None), None),
    )


def _find_flips(pair: Pair) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the documents where the first run does better, and those where it does worse."""
    first, second = (column.rows for column in pair.columns) if pair.columns is not None else (None, None)
    if not isinstance(first, Floats) or not isinstance(second, Floats) or pair.a.spread.keys is None:
        return (), ()
    keys, apart = pair.a.spread.keys.ints, first.values.floats - second.values.floats
    if len(keys) != len(apart):
        return (), ()
    gain = -apart if pair.a.scale.higher_is_better is False else apart
    return tuple(keys[gain > 0].tolist()), tuple(keys[gain < 0].tolist())


def _draft_groups(
    report_a: Report, report_b: Report, trees: Iterable[Tree[object]], leaves: Leaves, lone: frozenset[str]
) -> Iterator[Draft]:
    below = {group.name: {leaf.name for leaf in all_tasks(group)} for group in list_groups(trees)}
    for group in report_a.groups:
        other = report_b.group(group.name)
        for key, a in group.estimates:
            b = other.get(key)
            if b is None:
                continue
            missing = sorted(below[group.name] & lone)
            lacking = f"without {', '.join(a.group.missing[:5])}: they lack the metric" if a.group.missing else None
            line = replace(_draft_line(group.name, key, a, b), group=True)
            line = replace(line, reason=line.reason or lacking)
            if missing:
                yield replace(line, a=None, b=None, reason=f"only one run has {', '.join(missing[:5])}"), (), (a, b)
            else:
                yield _add_moves(line, a, b, leaves)


def _add_moves(line: ComparisonLine, a: Estimate, b: Estimate, leaves: Leaves) -> Draft:
    """Add to a group's line the tasks that move it, the same in both runs."""
    theirs = {part.name: part for part in b.group.parts}
    if not a.group.parts or theirs.keys() != {part.name for part in a.group.parts}:
        why = line.reason or "the group's number does not rest on the same tasks in both runs"
        return replace(line, a=None, b=None, reason=why), (), (a, b)
    moves = tuple(
        Move(leaves[part.name, line.key], part, theirs[part.name])
        for part in a.group.parts
        if part.slope or theirs[part.name].slope
    )
    return replace(line, unscored=sum(move.pair.unscored for move in moves)), moves, (a, b)
