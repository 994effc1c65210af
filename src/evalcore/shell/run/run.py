"""A whole run: plan, tasks, model, questions, answers on the disk, scores, report, files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap
from toolz import unique

from evalcore.core.lm_eval.policy import POLICIES
from evalcore.core.pipeline import build_report, report_task, score_task
from evalcore.core.records.errors import EvalError, locate, place
from evalcore.core.records.report import Report
from evalcore.core.records.request import Generate
from evalcore.shell.config.plan import Plan
from evalcore.shell.models import MODELS
from evalcore.shell.models.model import Model
from evalcore.shell.output.files.environment import describe_run
from evalcore.shell.output.files.results import run_title
from evalcore.shell.output.files.run_files import write_run
from evalcore.shell.output.terminal.losses import lost_of
from evalcore.shell.output.terminal.notes import group_warnings
from evalcore.shell.output.terminal.progress import Progress, progress
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.ask import Asked, ask_agenda, list_questions, replies_of, told_endings
from evalcore.shell.run.close import close_task, inference_of
from evalcore.shell.run.folder import claim_folder, hold_folder, log_path, run_folder
from evalcore.shell.run.prepare import Selected, build_tasks, open_model, select_tasks
from evalcore.shell.run.write import Part, drop_stale_samples, facts_of, sample_names, write_folder
from evalcore.shell.safety.safe_text import visible

__all__ = ["Ran", "run"]


class Ran(Struct, frozen=True):
    """A finished run. ``unscored`` counts the documents that some metric has no score for; ``known`` are those of its
    warnings that were told before anything was asked.
    """

    folder: Path
    report: Report
    results: Mapping[str, object]
    unscored: int
    warnings: tuple[str, ...]
    title: str = ""
    known: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        unclosed = any(estimate.counts.failed for task in self.report.tasks for _, estimate in task.estimates)
        return 1 if self.unscored or unclosed else 0


def run(
    plan: Plan,
    *,
    home: Path | None = None,
    quiet: bool = False,
    overwrite: bool = False,
    models: PMap[str, str] = MODELS,
) -> Ran:
    """Do what a plan says. ``home`` is the folder of its config file; ``models`` the table of backends."""
    folder = run_folder(plan)
    with progress(quiet) as shown:
        selected = select_tasks(plan, home)
        model = open_model(plan, home, models)
        tasks = build_tasks(plan, selected, model, home, shown)
        if plan.write_out:
            sys.stderr.write("".join(map(first_prompt, tasks)))
        for built in tasks:  # a metric nobody knows, or a package that is missing, before anything is asked
            report_task(score_task(built.task, [], [], tables=POLICIES[plan.policy]), tables=POLICIES[plan.policy])
        _refuse_options(model, tasks)
        known = known_warnings(selected, model, tasks)
        for text in group_warnings(known, {built.task.name for built in tasks}):
            shown.warn(text)
        with hold_folder(folder):
            replaced = claim_folder(folder, plan, home, model.identity, overwrite=overwrite)
            ran = _run_in(folder, plan, selected, model, tasks, shown)
    return replace(ran, warnings=(*ran.warnings, *replaced), known=known)


def _run_in(folder: Path, plan: Plan, selected: Selected, model: Model, tasks: Sequence[Built], shown: Progress) -> Ran:
    """Ask, score, report and write, in a folder that no other run uses."""
    start = time.time()
    agenda = list_questions(model.identity, tasks)
    asked = ask_agenda(model, agenda, log_path(plan, folder), shown)
    shown.stage("scoring", sum(len(built.samples) for built in tasks))
    parts = [_score(plan, built, asked, agenda.keys[built.task.name], shown) for built in tasks]
    report = _report(plan, selected, parts)
    warnings = tuple(dict.fromkeys((*known_warnings(selected, model, tasks), *told_endings(agenda, asked))))
    facts = facts_of(plan, selected, model)
    results = write_folder(folder, facts, parts, report, warnings, samples=keeps_samples(plan))
    drop_stale_samples(folder, written := sample_names(parts) if keeps_samples(plan) else [])
    counts = {"questions": len(agenda.items), "asked_now": asked.asked_now, "log_problems": list(asked.warnings)}
    write_run(folder, describe_run(start, time.time(), model_identity=model.identity, samples=written, **counts))
    lost = sum(one.documents for one in lost_of(report))
    return Ran(folder, report, results, lost, (*warnings, *asked.warnings), run_title(facts))


def known_warnings(selected: Selected, model: Model, tasks: Sequence[Built]) -> tuple[str, ...]:
    """What there is to say before anything is asked."""
    return (*selected.warnings, *model.warnings, *(one for built in tasks for one in built.warnings))


def _refuse_options(model: Model, tasks: Sequence[Built]) -> None:
    """Refuse generation options that the model cannot honour, before anything is asked."""
    for built in tasks:
        for request in unique(built.requests, key=lambda one: id(getattr(one, "options", None))):
            if isinstance(request, Generate):
                try:
                    model.check(request.options)
                except EvalError as wrong:
                    raise locate(wrong, place(built.task.name)) from wrong


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


def _score(plan: Plan, built: Built, asked: Asked, keys: Iterable[str], shown: Progress) -> Part:
    answers = built.asked.answered(replies_of(keys, asked.replies))
    tables = POLICIES[plan.policy]
    scored = score_task(built.task, built.samples, answers, tables=tables, keep_replies=keeps_samples(plan))
    shown.advance(len(built.samples))
    return Part(built, answers, scored)


def keeps_samples(plan: Plan) -> bool:
    """Answers that are not measured are worth nothing unless they are written down."""
    return plan.log_samples or plan.predict_only


def _report(plan: Plan, selected: Selected, parts: Iterable[Part]) -> Report:
    tables, inference = POLICIES[plan.policy], inference_of(plan)
    closed = [close_task(part.scored, inference, tables, part.built.n_original) for part in parts]
    return build_report(closed, selected.trees, inference=inference, tables=tables)
