"""By which rules a log is scored again: those of a task file, else of its own config, else its kind's usual ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.filters.chain import leaves_of, scope_of
from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.core.records.request import LOGLIKELIHOOD, MULTIPLE_CHOICE
from evalcore.core.records.task import MetricKey, MetricSpec, Task
from evalcore.core.tables import Tables, specs_of
from evalcore.shell.logs.log import RECORDED, Epochs, Logged, LogTask
from evalcore.shell.score.carryover import Kept, drop_metrics, find_coded, read_kept
from evalcore.shell.score.labels import find_recorded_name, keep_filter_name
from evalcore.shell.score.rules import Rules, lay_over, refuse_kind
from evalcore.shell.score.sample import ReadSample, add_cluster, has_fields, read_as_logged, read_by_task
from evalcore.shell.score.verdicts import (
    SHARES,
    find_first_scored,
    find_scores,
    list_values,
    make_verdict_task,
    name_scores,
)

Plain = Mapping[str, object]
LIKELIHOODS = (LOGLIKELIHOOD, MULTIPLE_CHOICE)
STANDING = "these are the scores that {} recorded{}; --metric NAME scores its answers again"
NO_REDUCER = (
    "{} reduced epochs by {}, which is not made of recorded scores here; they are reduced by {} (--reducer NAME)"
)
AS_REDUCED = "its epochs are reduced by {}, as the log says; --reducer NAME reduces them by another"
NO_SCORES = "{} recorded no scores; its answers are scored by exact_match, or by --metric NAME"
FIRST = "take_first leaves the first of {} replies to a document; --reducer NAME (mean, pass@1, ...) uses them all"
USUAL = "the usual metrics of such answers; --score NAME takes a recorded score, --task FILE or --metric NAME others"


class Recipe(Struct, frozen=True):
    """How a log is scored: the task, how a document is read, and which scores are taken as they were recorded.

    ``scores`` are recorded scores to measure by; ``kept`` are metrics whose recorded values stand, for lack of code.
    ``hints`` are those of its warnings that say what other flags would do.
    """

    task: Task
    read: ReadSample
    scores: tuple[MetricKey, ...] = ()
    kept: Kept | None = None
    warnings: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def choose_recipe(
    log: LogTask,
    rules: Rules,
    config: Plain | None,
    *,
    task: Task | None = None,
    cluster: str | None = None,
    golds: bool = False,
) -> Recipe:
    """The recipe for a log. ``config`` is that of a task file, with its code loaded; ``golds`` keeps the log's own.

    A host may give the ``task`` itself.
    """
    refuse_kind(log, rules, _first_row)
    rules, told = keep_filter_name(log, rules)
    hints = _usual(log, rules)
    if log.reader.harness and config is None:
        flagged = rules.measures or rules.pipelines
        rules, more = (_with_epochs if rules.metrics or rules.pipelines else _as_recorded)(log, rules)
        told = (*told, *more)
        hints = () if flagged else (_tell_standing(log, rules),)
    if task is not None:
        made = Recipe(lay_over(replace(task, name=log.name), rules), read_as_logged)
        _expect_kind(made.task, log, rules)
    elif config is not None:
        made = _by_file(log, rules, config, _first_row(log), golds)
    elif log.config:
        made = _by_record(log, rules)
    else:
        usual = lay_over(Task(log.name, log.output_type, tuple(map(MetricSpec, log.usual))), rules)
        made = Recipe(usual, read_as_logged, warnings=hints, hints=hints)
    made = replace(made, warnings=(*made.warnings, *told))
    if rules.scores:
        keys = find_scores(log, rules.scores)
        made = replace(made, task=make_verdict_task(made.task, rules, keys, log.pointed()), scores=keys, kept=None)
    made = replace(made, warnings=(*made.warnings, *_tell_first(log, rules)))
    return made if cluster is None else replace(made, read=add_cluster(made.read, cluster))


def _tell_first(log: LogTask, rules: Rules) -> tuple[str, ...]:
    """That filters of flags leave only the first of several replies."""
    left = (leaves_of(one, rules.tables.filters) for one in rules.pipelines)
    if rules.reduces or rules.scores or not any("first" in one and "one" not in one for one in left):
        return ()
    several = _count_replies(log)
    return (f"{log.name}: {FIRST.format(several)}",) if several > 1 else ()


def _count_replies(log: LogTask) -> int:
    """The replies to the first document."""
    first = _first_row(log)
    return max(map(len, first.replies), default=0) if first is not None else 0


def _with_epochs(log: LogTask, rules: Rules) -> tuple[Rules, tuple[str, ...]]:
    """Rules that name metrics or filters, with the log's reducers of epochs where nothing else leaves one reply."""
    one_left = any(left != "all" for one in rules.pipelines for left in leaves_of(one, rules.tables.filters))
    if rules.reduces or one_left or (log.epochs.count < 2 and _count_replies(log) < 2):
        return rules, ()
    reducers, told = log.epochs.reducers, _tell_strange(log, log.epochs.strange, log.epochs.reducers)
    if reducers != Epochs().reducers:
        told.append(f"{log.name}: {AS_REDUCED.format(', '.join(reducers))}")
    if any(one.reducers for one in rules.metrics):
        own = tuple(one if one.reducers else replace(one, reducers=reducers) for one in rules.metrics)
        return replace(rules, metrics=own), tuple(told)
    return replace(rules, reducers=reducers), tuple(told)


def _as_recorded(log: LogTask, rules: Rules) -> tuple[Rules, tuple[str, ...]]:
    """The rules by which a harness made its numbers: the scores that it recorded, and the reducers of its epochs."""
    reducers, strange = (rules.reducers, ()) if rules.reducers else (log.epochs.reducers, log.epochs.strange)
    names = rules.scores or _recorded_scores(log)
    return replace(rules, scores=names, reducers=reducers), tuple(_tell_strange(log, strange, reducers))


def _tell_standing(log: LogTask, rules: Rules) -> str:
    """By what a log of a harness is scored where no flag says it."""
    how = "" if rules.reducers == Epochs().reducers else f", its epochs reduced by {', '.join(rules.reducers)}"
    told = STANDING.format(log.reader.harness, how) if rules.scores else NO_SCORES.format(log.reader.harness)
    return f"{log.name}: {told}"


def _tell_strange(log: LogTask, strange: Sequence[str], reducers: Sequence[str]) -> list[str]:
    named = ", ".join(reducers)
    return [f"{log.name}: {NO_REDUCER.format(log.reader.harness, one, named)}" for one in strange]


def _recorded_scores(log: LogTask) -> tuple[str, ...]:
    """The scores of the first document that has any; of all documents, where the results tell of others.

    A scorer that gives several numbers for one document may have said NaN, under its own name, for another.
    """
    first = find_first_scored(log)
    names = name_scores(first) if first is not None else ()
    if not names or log.covers(names):
        return names
    counts: Counter[str] = Counter()
    for one in log.rows():
        if isinstance(one, Logged):
            counts.update({name: sum(isfinite(each) for each in _floats(one, name)) for name in name_scores(one)})
    parted = {name.partition(".")[0] for name in counts if "." in name}
    return tuple(name for name, numbers in counts.items() if numbers or name not in parted)


def _floats(one: Logged, name: str) -> list[float]:
    return [each for each in list_values(one, MetricKey(name)) if isinstance(each, float)]


def _usual(log: LogTask, rules: Rules) -> tuple[str, ...]:
    """That a log is scored by no rules of its own, for lack of results beside it."""
    if not log.reader.results_beside or rules.measures:
        return ()
    names = ", ".join(spec.name for spec in specs_of(Task(log.name, log.output_type), rules.tables))
    return (f"{log.name}: no results with its rules lie beside {log.path.name}; {names}: {USUAL}",)


def _first_row(log: LogTask) -> Logged | None:
    return next((one for one in log.rows() if isinstance(one, Logged)), None)


def choose_config(log: LogTask, configs: Mapping[str, Plain]) -> Plain | None:
    """The config that was chosen for a log: the one of its name; a single task is for every log, whatever its name.

    >>> log = LogTask(name="mine", path=None, output_type="generate_until", rows=lambda: iter(()))
    >>> choose_config(log, {"gsm8k": {"task": "gsm8k"}})["task"], choose_config(log, {})
    ('gsm8k', None)
    """
    if not configs:
        return None
    name = find_recorded_name(log)
    if name in configs or len(configs) == 1:
        return thaw_dict(configs.get(name) or next(iter(configs.values())))
    raise unknown("task of the chosen task files", log.name, configs, f" - at {log.path}")


def looks_wide(task: Task, tables: Tables) -> bool:
    """Whether a filter looks at all documents of a task at once, so that none can be scored before all are read."""
    return any(scope_of(one, tables.filters) == "task" for one in task.filters)


def _by_file(log: LogTask, rules: Rules, config: Plain, first: Logged | None, golds: bool) -> Recipe:
    from evalcore.shell.prompts.overrides import override_settings, select_scoring
    from evalcore.shell.prompts.ready_task import Asking
    from evalcore.shell.prompts.settings import decode_settings

    named = {**config, "task": log.name}
    settings = override_settings(decode_settings(named), Asking())
    task = lay_over(task_from_config(select_scoring(settings)), rules)
    _expect_kind(task, log, rules)
    by_task = first is not None and not golds and config.get("doc_to_target") is not None and has_fields(first)
    read = read_by_task(named, first, as_host=rules.tables.as_host) if by_task and first else read_as_logged
    return Recipe(task, read)


def _expect_kind(task: Task, log: LogTask, rules: Rules) -> None:
    alike = {task.output_type, log.output_type} <= set(LIKELIHOODS) or task.output_type == log.output_type
    if not alike and not rules.scores:
        raise EvalError(
            f"the task measures {task.output_type}, but {log.path} has answers of {log.output_type}{place(log.name)}"
        )


def _by_record(log: LogTask, rules: Rules) -> Recipe:
    from evalcore.shell.logs.lm_eval.names import list_filters
    from evalcore.shell.logs.runs.tasks import build_recorded_task, refuse_unnamed

    if not rules.measures:
        refuse_unnamed(log.config)
    filters = list_filters(log.config, ())
    recorded = build_recorded_task(log.name, log.config, log.output_type, filters, tables=rules.tables)
    coded = frozenset[str]() if rules.measures else find_coded(recorded.task, recorded.coded, rules.tables)
    if coded and (rules.pipelines or rules.reducers) and log.config.get("process_results") == RECORDED:
        raise EvalError(
            f"{', '.join(sorted(coded))}: taken as recorded when this was written, which no other filter or reducer "
            f"can be made of; score the first log again, or name what to measure (--metric NAME){place(log.name)}"
        )
    if coded and (rules.pipelines or rules.reducers):
        raise EvalError(
            f"{', '.join(sorted(coded))}: scored by code of the task's own, which no log holds; name the task file "
            f"(--task FILE --trust CODE) or what to measure (--metric NAME){place(log.name)}"
        )
    task = lay_over(recorded.task, rules)
    if not coded:
        return Recipe(task, read_as_logged, warnings=recorded.warnings)
    kept, told = read_kept(log, task, coded, rules.tables)
    given = log.config.get(SHARES)
    shares = tuple(map(str, given)) if isinstance(given, tuple) else ()
    return Recipe(drop_metrics(task, coded), read_as_logged, (), kept, (*recorded.warnings, *told), shares)
