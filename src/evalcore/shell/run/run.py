"""A whole run: config, tasks, model, questions, answers on the disk, scores, report, files."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.answers.table import AnswerTable
from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.pipeline import MapChunks, score_task
from evalcore.core.records.errors import EvalError, require
from evalcore.core.records.frozen_dict import FrozenDict, thaw_value
from evalcore.core.records.score import Scored
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import PATH_ARGS, Plan, Read, read_config
from evalcore.shell.config.values import RunPath
from evalcore.shell.data.readers import DATA_READERS, Readers
from evalcore.shell.files.address import show_address, show_addresses
from evalcore.shell.files.given import parse_path
from evalcore.shell.models import MODELS
from evalcore.shell.models.model import Backend, Model
from evalcore.shell.output.files.results import RunFacts, build_results, title_run
from evalcore.shell.output.files.sample_lines import list_documents
from evalcore.shell.output.terminal.losses import find_losses
from evalcore.shell.output.terminal.notes import group_warnings
from evalcore.shell.output.terminal.progress import UNSEEN, Progress
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.ask import AnswerSheet, ask_agenda, list_questions, replies_of, tell_endings
from evalcore.shell.run.close import close_groups, close_task
from evalcore.shell.run.collector import without_collector
from evalcore.shell.run.failures import offer_others, tell_failures
from evalcore.shell.run.folder import claim_folder, hold_folder, log_path, run_folder
from evalcore.shell.run.prepare import Selected, build_tasks, open_model, select_tasks
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.run.write import write_folder, write_task
from evalcore.shell.safety.safe_text import visible


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
    files of documents by their suffix, ``map`` spreads scoring over workers (a pool's ``map``).

    >>> run(model="dummy", taks=["gsm8k"])
    Traceback (most recent call last):
    evalcore.EvalError: unknown key 'taks'; did you mean 'tasks'?...
    """
    if parquet:  # a package that is missing, before anything is asked
        require("pyarrow.parquet", "parquet")
    read, home = _read(config, keys, tables)
    plan, folder = read.plan, run_folder(read.plan)
    try:
        own = tables or POLICIES[plan.policy]
        ready = _make_ready(plan, home, own, models, data_readers, shown)
        with hold_folder(folder):
            replaced = claim_folder(folder, plan, home, ready.model.identity, overwrite=overwrite)
            result = _run_in(folder, plan, ready, shown, map, parquet)
    except SystemExit as left:
        raise EvalError(f"the code of a task ended the run (exit {left.code})") from left
    return replace(result, warnings=(*read.warnings, *result.warnings, *replaced), early_warnings=ready.warnings)


def _read(
    config: RunPath | Mapping[str, object] | None, keys: Mapping[str, object], tables: Tables | None
) -> tuple[Read, Path | None]:
    """The plan, and the folder that its paths are also looked for in."""
    if config is None or isinstance(config, Mapping):
        return read_config(None, {**(config or {}), **keys}, tables), None
    path = parse_path(config)
    return read_config(path, keys, tables), path.parent


class ReadyRun(Struct, frozen=True):
    """All that a plan needs to be run: nothing was asked yet. ``failed`` are tasks that it goes without."""

    selected: Selected
    model: Model
    tasks: tuple[Built, ...]
    tables: Tables
    failed: FrozenDict[str, str]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What there is to say before anything is asked."""
        own = (warning for built in self.tasks for warning in built.warnings)
        return (*self.selected.warnings, *self.model.warnings, *own)


@without_collector()
def _make_ready(
    plan: Plan,
    home: Path | None,
    tables: Tables,
    models: PMap[str, str | Backend],
    readers: Readers,
    shown: Progress,
) -> ReadyRun:
    """Find every mistake that can be found before anything is asked, and tell what is odd."""
    with offer_others():
        selected, model = select_tasks(plan, home, tables), open_model(plan, home, models)
        tasks, failed = build_tasks(plan, selected, model, home, shown, readers, tables)
    ready = ReadyRun(selected, model, tasks, tables, failed)
    if plan.write_out:
        sys.stderr.write("".join(first_prompt(built) for built in tasks))
    for text in (*tell_failures(failed), *group_warnings(ready.warnings, {built.task.name for built in tasks})):
        shown.warn(text)
    return ready


class ScoredTask(Struct, frozen=True):
    """One task after asking: its answers and its scores."""

    built: Built
    answers: AnswerTable
    scored: Scored


def _run_in(folder: Path, plan: Plan, ready: ReadyRun, shown: Progress, map: MapChunks, parquet: bool) -> RunResult:
    """Ask, score, close and write, in a folder that no other run uses."""
    start, model = time.time(), ready.model
    agenda = list_questions(model.identity, ready.tasks)
    sheet = ask_agenda(model, agenda, log_path(plan, folder), shown)
    shown.stage("scoring", sum(len(built.samples) for built in ready.tasks))
    parts = [_score(plan, ready, built, agenda.keys[built.task.name], sheet, shown, map) for built in ready.tasks]
    closed = [close_task(part.scored, plan, ready.tables, n_original=part.built.n_original) for part in parts]
    report = close_groups(closed, ready.selected.trees, plan, ready.tables)
    warnings = tuple(dict.fromkeys((*ready.warnings, *tell_endings(agenda, sheet))))
    facts = run_facts(plan, ready)
    hashes = {part.built.task.name: _write(folder, part) for part in parts if keeps_samples(plan)}
    configs = {built.task.name: built.config for built in ready.tasks}
    results = build_results(report, facts, configs=configs, hashes=hashes, warnings=warnings)
    source = {"model_identity": model.identity}
    counts = {"questions": len(agenda.items), "asked_now": sheet.asked_now, "log_problems": list(sheet.warnings)}
    counts |= {"failed_tasks": dict(ready.failed)} if ready.failed else {}
    files = write_folder(folder, results, hashes, source=source, start=start, parquet=parquet, **counts)
    unclosed = any(estimate.counts.failed for task in report.tasks for _, estimate in task.estimates)
    return RunResult(
        report=report,
        results=results,
        title=title_run(facts),
        confidence=plan.confidence,
        folder=folder,
        files=files,
        complete=not (find_losses(report) or unclosed or ready.failed),
        warnings=(*warnings, *sheet.warnings),
        failed=ready.failed,
    )


@without_collector()
def _score(
    plan: Plan,
    ready: ReadyRun,
    built: Built,
    keys: Sequence[str],
    sheet: AnswerSheet,
    shown: Progress,
    map: MapChunks,
) -> ScoredTask:
    answers = built.asked.answered(replies_of(keys, sheet.replies), built.requests)
    scored = score_task(
        built.task, built.samples, answers, tables=ready.tables, keep_replies=keeps_samples(plan), map=map
    )
    shown.advance(len(built.samples))
    return ScoredTask(built, answers, scored)


def keeps_samples(plan: Plan) -> bool:
    """Answers that are not measured are worth nothing unless they are written down."""
    return plan.log_samples or plan.predict_only


@without_collector()
def _write(folder: Path, part: ScoredTask) -> str:
    """Write the samples of a task; its hash."""
    keys = (sample.doc_id for sample in part.built.samples)
    targets = dict(zip(keys, map(thaw_value, part.built.targets), strict=True)) if part.built.targets else None
    return write_task(folder, part.built.task.name, [list_documents(part.scored, part.built, part.answers, targets)])


def first_prompt(built: Built) -> str:
    """The first request of a task, for its author to read.

    >>> from evalcore.shell.prompts.ready_task import Asking
    >>> from evalcore.shell.prompts.build import build_task
    >>> config = {"task": "t", "test_split": "test", "doc_to_text": "{{q}}?", "doc_to_target": "a"}
    >>> print(first_prompt(build_task(config, {"test": [{"q": "why", "a": "so"}]}, Asking())), end="")
    --- t: 1 requests, the first one ---
    why?
    ---
    """
    if not built.requests:
        return f"--- {built.task.name}: no requests ---\n"
    request = built.requests[0]
    text = "".join(part for part in map(partial(getattr, request), request.__struct_fields__) if isinstance(part, str))
    shown = "\n".join(map(visible, text.split("\n")))
    return f"--- {built.task.name}: {len(built.requests)} requests, the first one ---\n{shown}\n---\n"


def run_facts(plan: Plan, ready: ReadyRun) -> RunFacts:
    """What the results say about how they were made."""
    return RunFacts(
        model=plan.model,
        model_args={key: show_addresses(one) if key in PATH_ARGS else one for key, one in plan.model_args.items()},
        use_cache=show_address(plan.use_cache) if plan.use_cache else None,
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
        policy=ready.tables.name,
        trusted=ready.selected.trusted,
        failed=ready.failed,
    )
