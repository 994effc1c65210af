"""A whole run: plan, tasks, model, questions, answers on the disk, scores, report, files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from evalcore.core.aggregate import Inference
from evalcore.core.answers import AnswerTable
from evalcore.core.closing import report_task
from evalcore.core.estimate import Resampling
from evalcore.core.pipeline import build_report
from evalcore.core.policy import POLICIES
from evalcore.core.reports import Report
from evalcore.core.scored import Scored
from evalcore.core.scoring import score_task
from evalcore.shell.asking import Asked, ask_agenda, list_questions, replies_of, told_endings
from evalcore.shell.config.plan import Plan
from evalcore.shell.folder import claim_folder, log_path, run_folder
from evalcore.shell.models.model import Model
from evalcore.shell.output.environment import describe_run
from evalcore.shell.output.files import write_results, write_run, write_samples
from evalcore.shell.output.losses import lost_of
from evalcore.shell.output.progress import Progress, progress
from evalcore.shell.output.results import RunFacts, run_results
from evalcore.shell.output.samples import sample_lines, task_hash
from evalcore.shell.output.text import visible
from evalcore.shell.prepare import Selected, build_tasks, open_model, select_tasks
from evalcore.shell.prompts.built import Built

__all__ = ["Ran", "run"]


class Ran(Struct, frozen=True):
    """A finished run. ``unscored`` counts the documents that some metric has no score for."""

    folder: Path
    report: Report
    results: Mapping[str, object]
    unscored: int
    warnings: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return 1 if self.unscored else 0


class Part(Struct, frozen=True):
    """One task after asking: its answers and its scores."""

    built: Built
    answers: AnswerTable
    scored: Scored


def run(plan: Plan, *, home: Path | None = None, quiet: bool = False, overwrite: bool = False) -> Ran:
    """Do what a plan says. ``home`` is the folder of its config file."""
    start, folder = time.time(), run_folder(plan)
    with progress(quiet) as shown:
        selected = select_tasks(plan, home)
        model = open_model(plan, home)
        tasks = build_tasks(plan, selected, model, home, shown)
        if plan.write_out:
            sys.stderr.write("".join(map(first_prompt, tasks)))
        claim_folder(folder, plan, home, overwrite=overwrite)
        agenda = list_questions(model.identity, tasks)
        asked = ask_agenda(model, agenda, log_path(plan, folder), shown)
        shown.stage("scoring", sum(len(built.samples) for built in tasks))
        parts = [_score(plan, built, asked, agenda.keys[built.task.name], shown) for built in tasks]
    report = _report(plan, selected, parts)
    lasting = (selected.warnings, model.warnings, *(built.warnings for built in tasks), told_endings(agenda, asked))
    warnings = tuple(dict.fromkeys(one for some in lasting for one in some))
    results = write_folder(folder, facts_of(plan, selected, model), parts, report, warnings, samples=plan.log_samples)
    counts = {"questions": len(agenda.items), "asked_now": asked.asked_now, "log_problems": list(asked.warnings)}
    write_run(folder, describe_run(start, time.time(), model_identity=model.identity, **counts))
    lost = sum(one.documents for one in lost_of(report))
    return Ran(folder, report, results, lost, (*warnings, *asked.warnings))


def first_prompt(built: Built) -> str:
    """The first request of a task, for its author to read.

    >>> from evalcore.shell.prompts import Asking, build_task
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
    scored = score_task(built.task, built.samples, answers, tables=tables, keep_replies=plan.log_samples)
    shown.advance(len(built.samples))
    return Part(built, answers, scored)


def _report(plan: Plan, selected: Selected, parts: Iterable[Part]) -> Report:
    tables = POLICIES[plan.policy]
    inference = Inference(
        confidence=plan.confidence,
        on_unscorable=plan.on_unscorable,
        resampling=Resampling(plan.bootstrap_iters),
    )
    closed = [
        report_task(part.scored, inference=inference, tables=tables, n_original=part.built.n_original) for part in parts
    ]
    return build_report(closed, selected.trees, inference=inference, tables=tables)


def write_folder(
    folder: Path, facts: RunFacts, parts: Iterable[Part], report: Report, warnings: Iterable[str], *, samples: bool
) -> Mapping[str, object]:
    """The samples of each task, then the results."""
    hashes: dict[str, str] = {}
    for part in parts if samples else ():
        name, targets = part.built.task.name, part.built.targets
        shown = (
            {one.doc_id: target for one, target in zip(part.built.samples, targets, strict=True)} if targets else None
        )
        rows = sample_lines(part.scored, part.built, part.answers, shown)
        hashes[name] = task_hash(rows)
        write_samples(folder, name, rows)
    configs = {part.built.task.name: part.built.config for part in parts}
    results = run_results(report, facts, configs=configs, hashes=hashes, warnings=warnings)
    write_results(folder, results)
    return results


def facts_of(plan: Plan, selected: Selected, model: Model) -> RunFacts:
    """What the results say about how they were made."""
    return RunFacts(
        model=plan.model,
        model_args=plan.model_args,
        use_cache=plan.use_cache,
        limit=plan.limit,
        bootstrap_iters=plan.bootstrap_iters,
        gen_kwargs=plan.gen_kwargs or None,
        seeds=plan.seed,
        system_instruction=plan.system_instruction,
        chat_template=model.template if plan.apply_chat_template else None,
        fewshot_as_multiturn=bool(plan.apply_chat_template)
        if plan.fewshot_as_multiturn is None
        else plan.fewshot_as_multiturn,
        confidence=plan.confidence,
        policy=plan.policy,
        trusted=selected.trusted,
    )
