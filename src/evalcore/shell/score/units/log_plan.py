"""What is done with logs, and the recipe of each."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.task import Task
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.engines.interface import SERIAL, Engine, Means
from evalcore.shell.logs.declarations import declare_column, declare_task
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.log import Logged, LogTask, Reader
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.score.labels import find_recorded_name
from evalcore.shell.score.recipes import Recipe, choose_recipe, looks_wide
from evalcore.shell.score.rules import Rules
from evalcore.shell.score.stream import PIECE

if TYPE_CHECKING:
    from evalcore.shell.run.prepare import Selected

Plain = Mapping[str, object]


class ScorePlan(Struct, frozen=True, kw_only=True):
    """What to do with logs: how to read them, by which rules to score them, how to close them, where to write.

    ``samples`` are written to the folder, too; ``engine`` does the work by its ``means``; ``kept`` is the folder of
    partials. ``keys`` are the keys that this plan was read from, ``code`` the hashes of trusted code. With ``tally``
    scores are counted, not kept.
    """

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
    tally: bool = False
    readers: PMap[str, Reader] = READERS
    samples: bool = True
    engine: Engine = SERIAL
    means: Means = Means()
    kept: Path | None = None
    keys: Mapping[str, object] = FrozenDict()
    code: Mapping[str, str] = FrozenDict()

    @property
    def written(self) -> Path | None:
        """Where samples are written, if they are."""
        return self.folder if self.samples else None

    @property
    def tables(self) -> Tables:
        return self.rules.tables

    @property
    def unchanged(self) -> bool:
        """Whether the same samples are scored by the same rules."""
        rules = self.rules.changes or self.rules.unscorable or self.plan.on_unscorable != "exclude"
        return not (rules or self.tasks or self.plan.limit or self.plan.cluster or self.group_by)


class LogPlan(Struct, frozen=True):
    """A log, the plan for it, and the recipe that fits it."""

    log: LogTask
    asked: ScorePlan
    recipe: Recipe

    @property
    def whole(self) -> str:
        """Why all documents are scored at once, if they are."""
        if looks_wide(self.recipe.task, self.asked.tables):
            return "a filter looks at all documents at once"
        if self.recipe.kept is not None:
            return "recorded scores that stand are held in memory"
        if self.asked.keep_going:
            return "damaged records are listed in their order"
        return "only the first documents are scored" if self.asked.plan.limit is not None else self.log.cut.why


def plan_log(log: LogTask, asked: ScorePlan, config: Plain | None, task: Task | None = None) -> LogPlan:
    """Plan how a log is scored: by the ``config`` of the task file chosen for it, or by a host's own ``task``."""
    golds = asked.columns is not None and asked.columns.gold is not None
    cluster = asked.plan.cluster if isinstance(asked.plan.cluster, str) else None
    config = add_repeats(config, log) if config is not None else None
    recipe = choose_recipe(log, asked.rules, config, task=task, cluster=cluster, golds=golds)
    recipe = add_version(recipe, log) if config is None else recipe
    return LogPlan(log, asked, declare_recipe(recipe, asked.rules))


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


def select_chosen(asked: ScorePlan) -> Selected:
    """Select the tasks of files or names, with the code that is trusted; no data set is needed here."""
    from evalcore.shell.run.prepare import select_tasks  # only here: with prompts come templates, which take time

    try:
        return select_tasks(replace(asked.plan, tasks=asked.tasks, data={"*": "-"}), None, asked.tables)
    except EvalError as wrong:
        beside = next((Path(task).parent for task in asked.tasks if Path(task).is_file()), None)
        if beside is None or asked.plan.include_path or "unknown task or group" not in str(wrong):
            raise
        raise EvalError(f"{wrong}; --include_path {beside} also looks for tasks there") from wrong
