"""Rules, metrics and groups in which two runs differ: not compared, or warned of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from inspect import signature

from msgspec.structs import replace
from toolz import unique

from evalcore.core.aggregate.task_report import aggregation_of
from evalcore.core.compare.lines import ComparisonSide
from evalcore.core.compare.rules import RuleMismatch, RuleSource
from evalcore.core.filters.letter import KEY, LIKELIHOOD
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Group, Tree, child_names
from evalcore.core.lm_eval.recorded_code import RecordedCode, are_alike, read_code, read_rule
from evalcore.core.lm_eval.task_config import repeats_of
from evalcore.core.records.errors import EvalError
from evalcore.core.records.score import Scored, ScoredColumn
from evalcore.core.records.task import MetricKey, MetricSpec, Step, Task
from evalcore.core.tables import Tables, known_metrics, pipelines_of

# --- rules ------------------------------------------------------------------------------------------------------------

TABLES = "tables"
"""The one rule that is about all numbers of a task."""
CHAIN = "filters"
Unknown = tuple[str, int, str]


def compare_rules(
    a: ComparisonSide, b: ComparisonSide, tables: Tables
) -> tuple[tuple[RuleMismatch, ...], tuple[Unknown, ...]]:
    """Find the rules in which two runs differ, and the tasks whose rules are not known in one of them."""
    theirs = {one.task.name: one for one in b.scored}
    found: list[RuleMismatch] = []
    unknown: list[Unknown] = []
    for mine in a.scored:
        name = mine.task.name
        if name in theirs:
            pair = mine, theirs[name]
            sources = [_find_source(one, side, tables) for one, side in zip(pair, (a, b), strict=True)]
            unknown += _list_unknown(name, sources)
            if not any(source.unknown for source in sources):
                found += _compare_tasks(pair, (sources[0], sources[1]), tables)
    return tuple(found), tuple(unknown)


def _find_source(scored: Scored, side: ComparisonSide, tables: Tables) -> RuleSource:
    return side.sources.get(scored.task.name) or RuleSource(maker=scored.tables, tables=tables)


def _list_unknown(task: str, sources: Sequence[RuleSource]) -> Iterator[Unknown]:
    """Say what is not known of the rules of either run."""
    for at, (own, other) in enumerate(zip(sources, reversed(sources), strict=True)):
        foreign = own.maker is None and other.maker is not None and not other.tables.as_host
        if own.unknown:
            yield task, at, own.unknown
        elif foreign and not other.unknown:
            yield task, at, f"scores made by another program, not by the tables {other.maker}"
        yield from ((task, at, f"only the name of the filter {name}") for name in sorted(own.unnamed))


def _compare_tasks(
    pair: tuple[Scored, Scored], sources: tuple[RuleSource, RuleSource], tables: Tables
) -> Iterator[RuleMismatch]:
    """Compare the rules of each number that both runs have; one that many numbers share stands once."""
    name, known = pair[0].task.name, {one.key: one for one in pair[1].columns}
    makers = [source.maker for source in sources]
    if None not in makers and makers[0] != makers[1]:
        yield RuleMismatch(name, TABLES, _show(makers[0]), _show(makers[1]))
    once = all(_asks_once(one) for one in pair)
    unnamed = sources[0].unnamed | sources[1].unnamed
    found: dict[tuple[str, str, str], list[MetricKey]] = {}
    for column in pair[0].columns:
        other = known.get(column.key)
        if other is None or column.key.filter in unnamed:
            continue
        mine = _gather_rules(pair[0].task, column, sources[0], tables, once=once)
        others = _gather_rules(pair[1].task, other, sources[1], tables, once=once)
        for part in [*mine, *(part for part in others if part not in mine)]:
            one, two = mine.get(part), others.get(part)
            if not are_alike(one, two):
                found.setdefault((part, *_show_both(one, two)), []).append(column.key)
    for (part, one, two), keys in found.items():
        yield RuleMismatch(name, part, one, two, tuple(keys))


def _asks_once(scored: Scored) -> bool:
    """Whether every document has one reply, so that nothing that chooses among replies matters."""
    try:
        counted = repeats_of(scored.task.config)
    except EvalError:  # whatever a damaged log says
        return False
    return counted == 1 and all(one.repeats is None or one.repeats[1] == 1 for one in scored.columns)


def _gather_rules(
    task: Task, column: ScoredColumn, source: RuleSource, tables: Tables, *, once: bool
) -> dict[str, object]:
    """List all that decides a number of a task, by what it is called; options that are left out as what they are."""
    spec, code = column.spec or MetricSpec(column.key.metric), dict(source.code)
    closing = aggregation_of(task, column, tables)
    coded = "process_results" in code or task.process_results is not None
    rules: dict[str, object] = {
        "output type": str(task.output_type),
        "aggregation": read_code(code[own]) if (own := f"aggregation {spec.name}") in code else closing.name,
        "reducer": None if once else column.reducer or source.tables.unreduced,
    }
    if coded:
        given = code.get("process_results", task.process_results)
        rules["process_results"] = read_code(given)
    elif (own := f"metric {spec.name}") in code or spec.function is not None:
        rules["metric"] = read_code(code.get(own, getattr(spec.function, "function", spec.function)))
    if not (coded and closing.even):  # what a function emits is the score, whatever the options of a metric
        rules |= {f"{name} of the metric": value for name, value in _fill_metric(task, spec, source.tables).items()}
    return rules | _list_steps(task, column.key, source.tables, once=once)


def _fill_metric(task: Task, spec: MetricSpec, tables: Tables) -> Mapping[str, object]:
    """The options of a metric that it takes and that are not off."""
    entry = known_metrics(task.output_type, tables).get(spec.name)
    usual = entry.defaults if entry is not None else {}
    taken = entry.options if entry is not None else None
    given = {**usual, **{name: value for name, value in spec.options.items() if taken is None or name in taken}}
    return {name: read_rule(value) for name, value in given.items() if value is not False and value not in OFF}


OFF: tuple[object, ...] = (None, (), "")


def _list_steps(task: Task, key: MetricKey, tables: Tables, *, once: bool) -> dict[str, object]:
    """The filters of a pipeline and every option of each; without those that only choose one of several replies."""
    pipeline = next((one for one in pipelines_of(task, tables) if one.name == key.filter), None)
    steps = pipeline.steps if pipeline is not None else ()
    if once:
        steps = tuple(one for one in steps if (entry := tables.filters.get(one.name)) is None or entry.leaves == "all")
    names = [_show(read_rule(step.name)).strip("'") for step in steps]
    rules: dict[str, object] = {CHAIN: " > ".join(names)}
    for at, step in enumerate(steps):
        which = f"{names[at]} ({names[:at].count(names[at]) + 1})" if names.count(names[at]) > 1 else names[at]
        rules |= {f"{name} of filter {which}": value for name, value in _fill_step(step, tables).items()}
    return rules


def _fill_step(step: Step, tables: Tables) -> Mapping[str, object]:
    entry = tables.filters.get(step.name)
    known = signature(entry.make).parameters if entry is not None else {}
    usual = {name: one.default for name, one in known.items() if one.default is not one.empty}
    given = {name: value for name, value in step.options.items() if value is not None or name in known}
    return {name: read_rule(value) for name, value in {**usual, **given}.items()}


def _show_both(one: object, two: object) -> tuple[str, str]:
    if isinstance(one, RecordedCode) and isinstance(two, RecordedCode) and one.name == two.name:
        return one.whole, two.whole
    return _show(one), _show(two)


def _show(value: object) -> str:
    if isinstance(value, RecordedCode):
        return value.name
    text = "none" if value in OFF else repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- metrics ----------------------------------------------------------------------------------------------------------


def drop_mismatches(
    a: ComparisonSide, b: ComparisonSide, tables: Tables
) -> tuple[ComparisonSide, ComparisonSide, list[str]]:
    """Drop the metrics that the runs close by different rules, and say which."""
    mine, theirs = (
        {
            (one.task.name, column.key): _describe_rule(one, column, tables)
            for one in side.scored
            for column in one.columns
        }
        for side in (a, b)
    )
    unlike = {at: (rule, theirs[at]) for at, rule in mine.items() if rule != theirs.get(at, rule)}
    warnings = [
        f"{name}: {key} is not compared: {one} in one run, {other} in the other"
        for (name, key), (one, other) in unlike.items()
    ]
    return _drop_metrics(a, unlike.keys()), _drop_metrics(b, unlike.keys()), warnings


def _describe_rule(scored: Scored, column: ScoredColumn, tables: Tables) -> str:
    """Describe what makes a number: its aggregation, and its options unless they only shape scores."""
    closing = aggregation_of(scored.task, column, tables)
    options = column.spec.options if column.spec is not None and not closing.even else {}
    return " ".join([closing.name, *(f"{key}={value}" for key, value in sorted(options.items()))])


def _drop_metrics(side: ComparisonSide, dropped: Set[tuple[str, MetricKey]]) -> ComparisonSide:
    kept = (
        replace(one, columns=tuple(column for column in one.columns if (one.task.name, column.key) not in dropped))
        for one in side.scored
    )
    return replace(side, scored=tuple(kept)) if dropped else side


def warn_of_metrics(a: ComparisonSide, b: ComparisonSide) -> Iterator[str]:
    """Name the metrics of each common task that only one run has, and filters that may be the same by other names."""
    theirs = {one.task.name: {column.key for column in one.columns} for one in b.scored}
    ours = {one.task.name: {column.key for column in one.columns} for one in a.scored if one.task.name in theirs}
    kinds = {one.task.name: _show_kind(one.task) for one in b.scored}
    unlike = {one.task.name for one in a.scored if _show_kind(one.task) != kinds.get(one.task.name)}
    for one in a.scored:
        if one.task.name in unlike & ours.keys():
            told = f"{_show_kind(one.task)} in {a.name}, {kinds[one.task.name]} in {b.name}"
            yield f"{one.task.name}: asked in other ways, which are no measure of each other: {told}"
    alone = [(mine - theirs[task], theirs[task] - mine) for task, mine in ours.items() if task not in unlike]
    yield from unique(hint for first, second in alone for hint in _match_filters(first, second))
    for task, mine in ours.items():
        for key in sorted(mine ^ theirs[task], key=str):
            yield f"{task}: only {a.name if key in mine else b.name} has {key}"


def _show_kind(task: Task) -> str:
    """By what multiple choice is asked."""
    return f"multiple choice by {task.config.get(KEY) or LIKELIHOOD}"


def _match_filters(mine: Iterable[MetricKey], theirs: Iterable[MetricKey]) -> Iterator[str]:
    """Say how to compare a metric that each of two runs has alone, under one filter each."""
    ours, others = ({key.filter for key in keys} for keys in (mine, theirs))
    if len(ours) == len(others) == 1 and {key.metric for key in mine} & {key.metric for key in theirs}:
        yield f"--match-filter {ours.pop()}={others.pop()} compares two runs under filters of other names"


def warn_of_groups(a: Iterable[Tree[object]], b: Iterable[Tree[object]]) -> Iterator[str]:
    """Name the groups that differ between the runs, and those that only the second run has."""
    mine, theirs = ({group.name: group for group in list_groups(trees)} for trees in (a, b))
    for name, group in mine.items():
        if _list_rules(group) != _list_rules(theirs.get(name, group)):
            yield f"group {name} differs between the runs; the first run's tasks and weights are used for both"
    for name in theirs if mine else ():
        if name not in mine:
            yield f"group {name} is only in the second run and is not compared"


def _list_rules(group: Group[object]) -> tuple[object, ...]:
    """List what decides a group's numbers: its children and metrics, without the filters, which its tasks decide."""
    return child_names(group), tuple(sorted((replace(one, filters=None) for one in group.metrics), key=repr))
