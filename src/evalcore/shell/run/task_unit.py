"""A task as a unit of work: built, scored and written here or, where answers are recorded, by a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.answers.table import AnswerTable
from evalcore.core.guard import MapChunks
from evalcore.core.partials.codec import RECORDS, pack, unpack
from evalcore.core.pipeline import score_task
from evalcore.core.records.array import Array
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.frozen_dict import FrozenDict, freeze_dict, thaw_dict, thaw_value
from evalcore.core.records.score import Scored, adopt_scores
from evalcore.core.tables import Tables, specs_of
from evalcore.shell.config.plan import Plan
from evalcore.shell.config.plan_secrets import find_credentials
from evalcore.shell.data.readers import Readers
from evalcore.shell.engines.deadline import Deadline
from evalcore.shell.engines.engines import find_engine
from evalcore.shell.engines.interface import Means
from evalcore.shell.models.model import Backend, Model
from evalcore.shell.output.files.plain_lines import list_lines
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.prompts.build import settle_task
from evalcore.shell.prompts.overrides import fill_config
from evalcore.shell.prompts.ready_task import Built, first_prompt
from evalcore.shell.run.ask import AnswerSheet, ask_agenda, replies_of
from evalcore.shell.run.collector import without_collector
from evalcore.shell.run.failures import (
    note_failure,
    offer_others,
    refuse_exit,
    refuse_failures,
    tell_early,
    tell_endings,
)
from evalcore.shell.run.prepare import Selected, asking_of, build_one, open_model, select_tasks
from evalcore.shell.run.questions.agenda import list_questions
from evalcore.shell.run.questions.usage import Usage
from evalcore.shell.run.write import Finish, ScoredTask, keeps_samples, write_task
from evalcore.shell.safety.credentials import note_credentials
from evalcore.shell.safety.timer import allow_seconds


class ScoredRun(Struct, frozen=True):
    """A run whose tasks are scored: those that could not be built, what was said at first, and how replies ended."""

    failed: FrozenDict[str, str]
    warnings: tuple[str, ...]
    endings: tuple[str, ...]
    questions: int
    asked_now: int
    log_problems: tuple[str, ...] = ()
    usage: Usage | None = None
    ends: FrozenDict[str, FrozenDict[str, int]] = FrozenDict()


# --- one task ---------------------------------------------------------------------------------------------------------


@without_collector()
def score_built(
    built: Built, folder: Path, plan: Plan, tables: Tables, keys: Sequence[str], sheet: AnswerSheet, map: MapChunks
) -> ScoredTask:
    """Score a task whose questions were asked, and write its samples."""
    answers, kept = built.asked.answered(replies_of(keys, sheet.replies), built.requests), keeps_samples(plan)
    guard = Deadline(plan.doc_timeout)
    scored = score_task(built.task, built.samples, answers, tables=tables, keep_replies=kept, map=map, guard=guard)
    digest = _write(folder, built, answers, scored) if kept else _digest_inputs(built, keys)
    slim = replace(scored, provenance=())
    return ScoredTask(slim, built.config, built.n_original, len(built.samples), digest)


def _digest_inputs(built: Built, keys: Sequence[str]) -> str:
    golds = repr([one.gold for one in built.samples])
    return sha256("".join([*keys, golds]).encode("utf-8", "surrogatepass")).hexdigest()


def _write(folder: Path, built: Built, answers: AnswerTable, scored: Scored) -> str:
    keys = (sample.doc_id for sample in built.samples)
    targets = dict(zip(keys, map(thaw_value, built.targets), strict=True)) if built.targets else None
    return write_task(folder, built.task.name, [list_lines(scored, built, answers, targets)])


# --- what a worker does -----------------------------------------------------------------------------------------------


class TaskUnit(NamedTuple):
    """A task by its name. ``hinted``: no other task has a recorded answer either, so failures hint at why."""

    name: str
    hinted: bool = False


class TaskScores(Struct, frozen=True, kw_only=True):
    """What comes back of a task: why it cannot be built, or its scores and all else that the run says of it.

    ``questions`` are the keys of what was asked, cut to 64 bits, for the run counts equal questions once.
    """

    name: str
    failure: str = ""
    scored: Scored | None = None
    n_original: int | None = None
    documents: int = 0
    digest: str = ""
    prompt: str = ""
    model_warnings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    questions: Array = Array(np.empty(0, np.uint64))
    unrecorded: bool = False


KNOWN: Mapping[str, type[Struct]] = {**RECORDS, TaskScores.__name__: TaskScores}


class TaskWork(Struct, frozen=True, eq=False):
    """Builds, scores and writes the task that it is given; importable, so that it can be sent to any worker."""

    plan: Plan
    home: Path | None
    folder: Path
    tables: Tables
    models: PMap[str, str | Backend]
    readers: Readers

    def __call__(self, unit: object) -> bytes:
        if not isinstance(unit, TaskUnit):
            raise TypeError(f"expected a task, got {unit!r}")
        with refuse_exit(), allow_seconds(self.plan.doc_timeout):
            done = _score_unit(self, unit)
        try:
            return pack([done], KNOWN)
        except EvalError as wrong:
            raise EvalError(f"{wrong}; use engine: serial for it{place(unit.name)}") from wrong


@lru_cache(maxsize=1)
def _open(work: TaskWork) -> tuple[Selected, Model]:
    sent = {key: getattr(work.plan, key) for key in ("model_args", "gen_kwargs", "tasks")}
    note_credentials(find_credentials(sent))
    return select_tasks(work.plan, work.home, work.tables), open_model(work.plan, work.home, work.models)


@without_collector()
def _score_unit(work: TaskWork, unit: TaskUnit) -> TaskScores:
    plan, (selected, model), name = work.plan, _open(work), unit.name
    failed: dict[str, str] = {}
    with note_failure(failed, name, keep_going=True):
        built = build_one(name, plan, selected, model, work.home, work.readers, work.tables)
    if failed:
        return TaskScores(name=name, failure=failed[name])
    agenda = list_questions("" if model.recorded else model.identity, [built])
    sheet = ask_agenda(model if unit.hinted else replace(model, hint=""), agenda, work.folder, UNSEEN)
    scored = score_built(built, work.folder, plan, work.tables, agenda.keys[name], sheet, map)
    return TaskScores(
        name=name,
        scored=scored.scored,
        n_original=built.n_original,
        documents=scored.documents,
        digest=scored.digest,
        prompt=first_prompt(built) if plan.write_out else "",
        model_warnings=model.warnings,
        warnings=built.warnings,
        endings=tell_endings(agenda, sheet),
        questions=Array(np.frombuffer(bytes.fromhex("".join(key[:16] for key in agenda.items)), np.uint64)),
        unrecorded=bool(model.hint) and sheet.unrecorded,
    )


def read_scores(data: bytes) -> list[TaskScores]:
    """Read what workers returned."""
    found = unpack(data, KNOWN)
    return [one for one in found if isinstance(one, TaskScores)] if isinstance(found, list) else []


def join_scores(results: Sequence[bytes]) -> bytes:
    """Join what workers returned, in order."""
    return pack([one for data in results for one in read_scores(data)], KNOWN)


# --- all tasks --------------------------------------------------------------------------------------------------------


def spread_tasks(work: TaskWork, selected: Selected, model: Model, finish: Finish, shown: Progress) -> ScoredRun:
    """Spread tasks over the workers of the plan's engine, which read recorded answers and write samples."""
    failed = dict(selected.failed)
    with offer_others():
        found = _gather(work, selected, failed, shown)
        if found and all(one.unrecorded for one in found):
            found = _gather(work, selected, failed, shown, hinted=True)
        refuse_failures(selected.trees, failed, [one.name for one in found])
    heard = found[0].model_warnings
    warnings = (*selected.warnings, *heard, *(warning for one in found for warning in one.warnings))
    tell_early((one.prompt for one in found), failed, warnings, (one.name for one in found), shown)
    for one in found:
        finish(_adopt(one, work, selected, model))
    asked = len(np.unique(np.concatenate([one.questions.data for one in found])))
    return ScoredRun(
        FrozenDict(failed),
        warnings,
        tuple(ending for one in found for ending in one.endings),
        questions=asked,
        asked_now=asked,
    )


def _gather(
    work: TaskWork, selected: Selected, failed: dict[str, str], shown: Progress, *, hinted: bool = False
) -> list[TaskScores]:
    """Gather the scores of all tasks that can be built, in their order; note the others."""
    plan, names, out = work.plan, list(selected.configs), list[TaskScores]()
    shown.stage("scoring tasks", len(names))
    means, units = Means(workers=plan.workers, address=plan.address), [TaskUnit(name, hinted) for name in names]
    for result in find_engine(plan.engine).spread(work, units, join_scores, means) if units else ():
        for one in read_scores(result):
            shown.advance()
            with note_failure(failed, one.name, keep_going=plan.keep_going, others=len(names) - 1):
                if one.failure:
                    raise EvalError(one.failure)
                out.append(one)
    return out


def _adopt(one: TaskScores, work: TaskWork, selected: Selected, model: Model) -> ScoredTask:
    """Give scores the task that they are of, as it is known here: with its functions."""
    cluster = selected.clusters.get(one.name)
    asking = asking_of(work.plan, model, one.name, cluster, as_host=work.tables.as_host)
    settings, task = settle_task(thaw_dict(selected.configs[one.name]), asking)
    task = task if task.metrics else replace(task, metrics=specs_of(task, work.tables))
    scored = adopt_scores(one.scored or Scored(task), task)
    return ScoredTask(scored, freeze_dict(fill_config(settings)), one.n_original, one.documents, one.digest)
