"""What a run leaves in its folder: samples, results, and nothing of an earlier run that is not of these results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from evalcore.core.answers.table import AnswerTable
from evalcore.core.records.report import Report
from evalcore.core.records.score import Scored
from evalcore.shell.config.plan import Plan
from evalcore.shell.models.model import Model
from evalcore.shell.output.files.results import RunFacts, run_results
from evalcore.shell.output.files.run_files import samples_path, write_results, write_samples
from evalcore.shell.output.files.sample_lines import sample_lines, task_hash
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.run.folder import earlier_run
from evalcore.shell.run.prepare import Selected

__all__ = ["Part", "drop_stale_samples", "facts_of", "sample_names", "write_folder"]


class Part(Struct, frozen=True):
    """One task after asking: its answers and its scores."""

    built: Built
    answers: AnswerTable
    scored: Scored


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


def sample_names(parts: Iterable[Part]) -> list[str]:
    return [samples_path(Path(), part.built.task.name).name for part in parts]


def drop_stale_samples(folder: Path, written: Sequence[str]) -> None:
    """Samples that an earlier run of this folder wrote, and this one did not, are not of these results."""
    earlier = earlier_run(folder).get("samples")
    for name in earlier if isinstance(earlier, list) else ():
        if isinstance(name, str) and name not in written and STALE.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


STALE = re.compile(r"samples_[^/\\\0]+\.jsonl")


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
        ci=plan.ci,
        on_unscorable=plan.on_unscorable,
        policy=plan.policy,
        trusted=selected.trusted,
    )
