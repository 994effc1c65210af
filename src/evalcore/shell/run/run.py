"""A whole run: config, tasks, model, questions, answers on the disk, scores, report, files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.guard import MapChunks
from evalcore.core.ledger import count_outcomes, sum_ledgers
from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.frozen_dict import FrozenDict, thaw_dict
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import PATH_ARGS, Read, read_config
from evalcore.shell.config.values import RunPath, is_allowed
from evalcore.shell.data.readers import DATA_READERS, Readers
from evalcore.shell.engines.engines import find_engine
from evalcore.shell.engines.interface import SERIAL
from evalcore.shell.files.address import show_address, show_addresses
from evalcore.shell.files.given import parse_path
from evalcore.shell.models import MODELS
from evalcore.shell.models.model import Backend, Model
from evalcore.shell.output.files.earlier_results import hold_earlier, settle_earlier
from evalcore.shell.output.files.results import RunFacts, title_run
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.prompts.ready_task import Built, first_prompt
from evalcore.shell.run.ask import ask_agenda
from evalcore.shell.run.collector import without_collector
from evalcore.shell.run.failures import count_endings, offer_others, refuse_exit, tell_early, tell_endings
from evalcore.shell.run.folder import claim_folder, hold_folder, log_path, run_folder
from evalcore.shell.run.live.interim_scores import InterimScores
from evalcore.shell.run.live.progress_file import leave_progress
from evalcore.shell.run.prepare import Selected, build_tasks, open_model, select_tasks
from evalcore.shell.run.questions.agenda import list_questions
from evalcore.shell.run.questions.budget import find_budget
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.run.task_unit import ScoredRun, TaskWork, score_built, spread_tasks
from evalcore.shell.run.write import Closing, Finish, find_page, write_folder, write_page
from evalcore.shell.safety.timer import allow_seconds


def run(
    config: RunPath | Mapping[str, object] | None = None,
    *,
    overwrite: bool = False,
    parquet: bool = False,
    shown: Progress = UNSEEN,
    models: PMap[str, str | Backend] = MODELS,
    tables: Tables | None = None,
    data_readers: Readers = DATA_READERS,
    map: MapChunks = map,
    **keys: object,
) -> RunResult:
    """Ask a model the questions of some tasks, score its answers, write results and return them.

    ``config`` is the path of a run config or a mapping of its keys; ``keys`` go over it, as flags do on the command
    line. ``models`` is the table of backends, ``tables`` what scores (in place of ``policy``), ``data_readers`` reads
    files of documents by their suffix, ``map`` spreads scoring over workers (a pool's ``map``) where no engine does.

    >>> run(model="dummy", taks=["gsm8k"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown key 'taks'; did you mean 'tasks'?...
    """
    if parquet:  # a package that is missing, before anything is asked
        require("pyarrow.parquet", "parquet")
    read, home = _read(config, keys, tables)
    plan, folder = read.plan, run_folder(read.plan)
    page = find_page(plan.report, folder)
    work = TaskWork(plan, home, folder, tables or POLICIES[plan.policy], models, data_readers)
    with refuse_exit(), allow_seconds(plan.doc_timeout):
        ready = _make_ready(work, shown)
        with hold_folder(folder), hold_earlier(folder, overwrite=overwrite) as earlier:
            changed, notes = claim_folder(folder, plan, home, ready.model, overwrite=overwrite)
            # A model that is asked may take hours, in which cycles pile up.
            collected = without_collector() if ready.model.recorded else nullcontext()
            with collected, leave_progress(folder, shown) as told_on:
                result, inputs = _run_in(work, ready, told_on, map, parquet)
            told = settle_earlier(folder, earlier, result.results, inputs, changed)
    if overwrite and changed:
        told = (f"{folder} held results with other {', '.join(changed)}; they were replaced",)
    done = replace(result, warnings=(*read.warnings, *result.warnings, *notes, *told))
    return done if page is None else replace(done, files=(*done.files, write_page(page, folder)))


def _read(
    config: RunPath | Mapping[str, object] | None, keys: Mapping[str, object], tables: Tables | None
) -> tuple[Read, Path | None]:
    """The plan, and the folder that its paths are also looked for in."""
    given = {**(config if isinstance(config, Mapping) else {}), **keys}
    texts = {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}
    if config is None or isinstance(config, Mapping):
        return read_config(None, texts, tables), None
    path = parse_path(config)
    return read_config(path, texts, tables), path.parent


class ReadyRun(Struct, frozen=True):
    """All that a plan needs to be run: nothing was asked yet. ``failed`` are tasks that it goes without.

    ``spread``: no task was built, as workers do that.
    """

    selected: Selected
    model: Model
    tasks: tuple[Built, ...] = ()
    failed: FrozenDict[str, str] = FrozenDict()
    spread: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """What there is to say before anything is asked."""
        own = (warning for built in self.tasks for warning in built.warnings)
        return (*self.selected.warnings, *self.model.warnings, *own)


@without_collector()
def _make_ready(work: TaskWork, shown: Progress) -> ReadyRun:
    """Find every mistake that can be found before anything is asked, and tell what is odd."""
    plan, home = work.plan, work.home
    spread = find_engine(plan.engine) is not SERIAL
    with offer_others():
        selected, model = select_tasks(plan, home, work.tables), open_model(plan, home, work.models, unread=spread)
        if spread and model.recorded:
            return ReadyRun(selected, model, spread=True)
        tasks, failed = build_tasks(plan, selected, model, home, shown, work.readers, work.tables)
    ready = ReadyRun(selected, model, tasks, failed)
    prompts = map(first_prompt, tasks) if plan.write_out else ()
    tell_early(prompts, failed, ready.warnings, (built.task.name for built in tasks), shown)
    if spread:
        shown.warn(f"engine {plan.engine} is for recorded answers: {plan.model} is asked, and scored, by this process")
    return ready


def _run_in(
    work: TaskWork, ready: ReadyRun, shown: Progress, map: MapChunks, parquet: bool
) -> tuple[RunResult, Mapping[str, str]]:
    """Ask, score, close and write, in a folder that no other run uses; also what tells its documents from others."""
    start, plan, folder = time.time(), work.plan, work.folder
    closing = _begin_closing(work, ready)
    try:
        if ready.spread:
            done = spread_tasks(work, ready.selected, ready.model, closing.finish, shown)
        else:
            done = _score_here(work, ready, closing.finish, shown, map)
        report = closing.close_groups()
    except BaseException:
        with suppress(EvalError):  # what went wrong first is what there is to say
            closing.so_far.flush()
        raise
    warnings = tuple(dict.fromkeys((*done.warnings, *done.endings)))
    facts = run_facts(work, ready, done.failed)
    results, inputs = closing.build_results(report, facts, warnings), closing.inputs
    counts = {"questions": done.questions, "asked_now": done.asked_now, "log_problems": list(done.log_problems)}
    counts |= {"failed_tasks": dict(done.failed)} if done.failed else {}
    counts |= {"usage": done.usage.to_json()} if done.usage else {}
    counts |= {"endings": thaw_dict(done.ends)} if done.ends else {}
    source = {"model_identity": ready.model.identity, "batches": dict(ready.model.batches), "inputs": inputs}
    files = write_folder(folder, results, closing.sampled, source=source, start=start, parquet=parquet, **counts)
    ledger = sum_ledgers(count_outcomes(task) for task in report.tasks)
    result = RunResult(
        report=report,
        results=results,
        title=title_run(facts),
        confidence=plan.confidence,
        folder=folder,
        files=files,
        ledger=ledger,
        complete=not done.failed and is_allowed(ledger.lost, ledger.documents, plan.allow_failures),
        warnings=(*warnings, *done.log_problems),
        early_warnings=done.warnings,
        failed=done.failed,
        usage=done.usage,
    )
    return result, inputs


def _begin_closing(work: TaskWork, ready: ReadyRun) -> Closing:
    sizes = {built.task.name: len(built.samples) for built in ready.tasks}
    left = {name: sizes.get(name) for name in ready.selected.configs if name not in ready.failed}
    return Closing(
        work.folder, work.plan, work.tables, ready.selected.trees, run_facts(work, ready, ready.failed), left
    )


def _score_here(work: TaskWork, ready: ReadyRun, finish: Finish, shown: Progress, map: MapChunks) -> ScoredRun:
    """Ask what all tasks ask, each question once, and score the replies."""
    plan, folder = work.plan, work.folder
    agenda = list_questions("" if ready.model.recorded else ready.model.identity, ready.tasks)
    watch = InterimScores(ready.tasks, agenda.keys, ready.selected.trees, plan, work.tables)
    sheet = ask_agenda(ready.model, agenda, log_path(plan, folder), shown, find_budget(plan), watch)
    shown.stage("scoring", sum(len(built.samples) for built in ready.tasks))
    for built in ready.tasks:
        finish(score_built(built, folder, plan, work.tables, agenda.keys[built.task.name], sheet, map))
        shown.advance(len(built.samples))
    endings = tell_endings(agenda, sheet)
    counts = len(agenda.items), sheet.asked_now
    return ScoredRun(
        ready.failed, ready.warnings, endings, *counts, sheet.warnings, sheet.usage, count_endings(agenda, sheet)
    )


def run_facts(work: TaskWork, ready: ReadyRun, failed: Mapping[str, str]) -> RunFacts:
    """What the results say about how they were made."""
    plan = work.plan
    return RunFacts(
        model=plan.model,
        model_args={key: show_addresses(one) if key in PATH_ARGS else one for key, one in plan.model_args.items()},
        use_cache=show_address(plan.use_cache) if plan.use_cache else None,
        batch_size=plan.batch_size,
        device=plan.device,
        limit=plan.limit,
        bootstrap_iters=plan.bootstrap_iters,
        gen_kwargs=plan.gen_kwargs or None,
        seeds=plan.seed,
        system_instruction=plan.system_instruction,
        chat_template=ready.model.template if plan.apply_chat_template else None,
        fewshot_as_multiturn=bool(plan.apply_chat_template)
        if plan.fewshot_as_multiturn is None
        else plan.fewshot_as_multiturn,
        confidence=plan.confidence,
        ci=plan.ci,
        stderr=plan.stderr,
        on_unscorable=plan.on_unscorable,
        policy=work.tables.name,
        trusted=ready.selected.trusted,
        failed=failed,
    )
