"""Logs opened, and each scored by its recipe; its samples are written as they are scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.score import Scored
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.config.values import RunPath
from evalcore.shell.logs.declarations import declare_column, declare_task
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import Logged, LogTask, Problem, Reader
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.score.groups import group_by_field
from evalcore.shell.score.labels import find_recorded_name
from evalcore.shell.score.pieces import claim_output, write_pieces
from evalcore.shell.score.recipes import Recipe, choose_config, choose_recipe, looks_wide
from evalcore.shell.score.rules import Rules
from evalcore.shell.score.stream import (
    PIECE,
    LogPass,
    Piece,
    merge_pieces,
    rename_recipe,
    score_rows,
    score_split,
    without_collector,
)
from evalcore.shell.score.verdicts import share_scores

if TYPE_CHECKING:
    from evalcore.shell.run.prepare import Selected

Plain = Mapping[str, object]


class ScorePlan(Struct, frozen=True, kw_only=True):
    """What to do with logs: how to read them, by which rules to score them, how to close them, where to write."""

    plan: Plan
    rules: Rules = Rules()
    columns: ColumnMap | None = None
    tasks: tuple[str, ...] = ()
    group_by: str | None = None
    by_size: bool = True
    groups: Path | None = None
    only: tuple[str, ...] = ()
    folder: Path | None = None
    parquet: bool = False
    overwrite: bool = False
    keep_going: bool = False
    readers: PMap[str, Reader] = READERS

    @property
    def tables(self) -> Tables:
        return self.rules.tables

    @property
    def unchanged(self) -> bool:
        """Whether the same samples are scored by the same rules."""
        rules = self.rules.changes or self.rules.unscorable or self.plan.on_unscorable != "exclude"
        return not (rules or self.tasks or self.plan.limit or self.plan.cluster or self.group_by)


class ScoredLog(Struct, frozen=True):
    """A log after scoring: its task, or a task for each value of a field, and the warnings.

    ``shares`` are recorded scores that are 0 or 1 throughout, whatever a reducer makes of them.
    """

    log: LogTask
    scored: Mapping[str, Scored]
    hashes: Mapping[str, str]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def score_logs(
    paths: Sequence[RunPath], asked: ScorePlan, shown: Progress
) -> tuple[tuple[ScoredLog, ...], Selected | None]:
    """Score every log that the paths hold; also return the tasks chosen for them, if any."""
    selected = _select(asked) if asked.tasks else None
    logs = open_logs(
        paths,
        mapping=asked.columns,
        keep_going=asked.keep_going,
        scores=bool(asked.rules.scores),
        requests=asked.folder is not None,  # only written down, never scored
        readers=asked.readers,
    )
    if asked.folder is not None:
        claim_output(asked.folder, logs, paths, overwrite=asked.overwrite)
    logs = tuple(choose_logs(logs, asked.only))
    shown.stage("scoring", len(logs))
    parts = []
    for part in score_each(logs, asked, selected.configs if selected else {}):
        parts.append(part)
        shown.advance()
    if asked.group_by is not None:
        refuse_namesakes(parts)
    return tuple(parts), selected


def score_each(logs: Sequence[LogTask], asked: ScorePlan, configs: Mapping[str, Plain]) -> Iterator[ScoredLog]:
    """Score each log by the config chosen for it, if any, and by those of the recorded scores that it has."""
    for log, scores in zip(logs, share_scores(logs, asked.rules.scores), strict=True):
        own = replace(asked, rules=replace(asked.rules, scores=scores))
        with without_collector():
            scored = score_log(log, own, choose_config(log, configs))
        yield scored


def refuse_namesakes(parts: Sequence[ScoredLog]) -> None:
    """Refuse values of a field that give a task the name of another log, or of a task of another log."""
    owner = {part.log.name: part.log.name for part in parts}
    for part in parts:
        for name in part.scored:
            other = owner.setdefault(name, part.log.name)
            if other != part.log.name:
                raise EvalError(
                    f"--group_by: {other} and {part.log.name} both have a task or group {name}; score these logs one "
                    f"at a time (--only {other}, then --only {part.log.name})"
                )


def choose_logs(logs: Sequence[LogTask], only: Sequence[str]) -> Sequence[LogTask]:
    """Choose the logs that match any glob; all if none is given."""
    for glob in only:
        if not any(_matches(glob, log) for log in logs):
            raise unknown("task of the logs", glob, [log.name for log in logs])
    return [log for log in logs if not only or any(_matches(glob, log) for glob in only)]


def _matches(glob: str, log: LogTask) -> bool:
    return fnmatchcase(log.name, glob) or fnmatchcase(find_recorded_name(log), glob)


def _select(asked: ScorePlan) -> Selected:
    """Select the tasks of files or names, with the code that is trusted; no data set is needed here."""
    from evalcore.shell.run.prepare import select_tasks  # only here: with prompts come templates, which take time

    try:
        return select_tasks(replace(asked.plan, tasks=asked.tasks, data={"*": "-"}), None, asked.tables)
    except EvalError as wrong:
        beside = next((Path(task).parent for task in asked.tasks if Path(task).is_file()), None)
        if beside is None or asked.plan.include_path or "unknown task or group" not in str(wrong):
            raise
        raise EvalError(f"{wrong}; --include_path {beside} also looks for tasks there") from wrong


def score_log(log: LogTask, asked: ScorePlan, config: Plain | None) -> ScoredLog:
    """Score a log by the recipe that fits it."""
    golds = asked.columns is not None and asked.columns.gold is not None
    cluster = asked.plan.cluster if isinstance(asked.plan.cluster, str) else None
    config = add_repeats(config, log) if config is not None else None
    recipe = choose_recipe(log, asked.rules, config, cluster=cluster, golds=golds)
    recipe = add_version(recipe, log) if config is None else recipe
    recipe = declare_recipe(recipe, asked.rules)
    going = LogPass(log, recipe, asked.plan.limit)
    scored, hashes = _score_tasks(going, asked)
    wide = f"{log.name}: a filter looks at all documents at once, so all were held in memory"
    held = [wide] if looks_wide(recipe.task, asked.tables) else []
    warnings = (*log.warnings, *recipe.warnings, *held, *tell_lost(log, going.lost))
    if not scored:  # how nothing was scored is of no use
        warnings = log.warnings if going.problems else (*log.warnings, f"{log.name}: {log.path} has no documents")
    within = (key.metric for key in recipe.scores if key.metric not in going.beyond)
    shares = tuple(dict.fromkeys((*recipe.shares, *within)))
    problems = tuple(going.problems)
    return ScoredLog(log, FrozenDict(scored), FrozenDict(hashes), problems, warnings, shares, recipe.hints)


def tell_lost(log: LogTask, lost: Mapping[int, int]) -> list[str]:
    """Warn of epochs that ended in an error, and of repeats without a score.

    >>> reader = Reader(harness="Inspect")
    >>> log = LogTask(name="t", path=Path("t"), output_type="generate_until", rows=lambda: iter(()), reader=reader)
    >>> tell_lost(log, {0: 1, 4: 2})
    ['t: epochs without an answer and a score: 3, in 2 documents, which count by their other epochs, as in Inspect']
    """
    if not lost:
        return []
    count = f"{sum(lost.values()):,}, in {len(lost):,} document{'s' * (len(lost) != 1)}"
    if not log.reader.harness:
        return [f"{log.name}: repeats without a score: {count}, which count by their other repeats"]
    epochs = f"epochs without an answer and a score: {count}, which count by their other epochs"
    return [f"{log.name}: {epochs}, as in {log.reader.harness}"]


def add_version(recipe: Recipe, log: LogTask) -> Recipe:
    """Add the version of a task that only the results beside its log have."""
    version = find_part(log.results, "versions").get(find_recorded_name(log))
    if recipe.task.version is not None or version == "N/A" or type(version) not in (str, int, float):
        return recipe
    kept = recipe.kept and replace(recipe.kept, task=replace(recipe.kept.task, version=version))
    return replace(recipe, task=replace(recipe.task, version=version), kept=kept)


def declare_recipe(recipe: Recipe, rules: Rules) -> Recipe:
    """Declare what flags say of metrics, in the scores that stand as well."""
    declared, kept = rules.declared, recipe.kept
    task = declare_task(recipe.task, declared, rules.tables)
    if kept is not None and declared.names:
        columns = tuple(declare_column(one, declared, task.name) for one in kept.columns)
        kept = replace(kept, task=declare_task(kept.task, declared, rules.tables), columns=columns)
    return replace(recipe, task=task, kept=kept)


def add_repeats(config: Plain, log: LogTask) -> Plain:
    """Give a chosen task the number of repeats that the log has, which may not be what its file asks for."""
    recorded = log.config.get("repeats")
    first = (row for row in islice(log.rows(), PIECE) if isinstance(row, Logged))
    counted = max((len(replies) for row in first for replies in row.replies), default=1)
    return {**config, "repeats": recorded if type(recorded) is int else counted}


def _score_tasks(going: LogPass, asked: ScorePlan) -> tuple[dict[str, Scored], dict[str, str]]:
    """The scores of each task of a log and, where samples are written, their hashes."""
    log, recipe, folder, tables = going.log, going.recipe, asked.folder, asked.tables
    name_of = group_by_field(log.name, asked.group_by) if asked.group_by else None
    if folder is None:
        rows = going.rows()
        pieces = score_split(rows, recipe, name_of, tables) if name_of else score_rows(rows, recipe, tables)
        return merge_pieces(piece.scored for piece in pieces), {}

    def pieces_of(name: str) -> Iterator[Piece]:
        rows = going.rows() if name_of is None else (row for row in going.rows() if name_of(row) == name)
        return score_rows(rows, rename_recipe(recipe, name), tables, keep=True)

    names = dict.fromkeys(map(name_of, going.rows())) if name_of else [log.name]
    each = {name: write_pieces(folder, name, pieces_of(name), log.written) for name in names}
    done = merge_pieces(one for task in each.values() for one in task.scored)
    return done, {name: task.hash for name, task in each.items() if task.scored}
