"""A task from its config to its results and its sample log, through lm-eval's ``simple_evaluate`` and through evalcore."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import lm_eval.evaluator
import pytest
from both_sides import LM_EVAL_0_4_13, Canned, Case, lm_task, quiet
from lm_eval.loggers import EvaluationTracker

from evalcore import Tables, build_report, report_task, score_task
from evalcore.core.lm_eval.sample_log import join_rows
from evalcore.core.records.frozen_dict import thaw_value
from evalcore.lm_eval import lm_eval_results
from evalcore.shell.output.files.sample_lines import list_documents
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking
from evalcore.stats import Inference, Resampling

Row = dict[str, object]


class Whole(NamedTuple):
    """The results of a task, and the lines of its sample log."""

    results: Row
    lines: list[Row]


def run_theirs(case: Case, folder: Path, *, draws: int = 200, **run: object) -> Whole:
    """lm-eval's own run, its sample log as its tracker writes it."""
    with pytest.MonkeyPatch.context() as patch:
        for slow in ("add_env_info", "add_tokenizer_info"):
            patch.setattr(lm_eval.evaluator, slow, lambda *_: None)
        patch.setattr(lm_eval.evaluator, "get_git_commit_hash", lambda: None)
        task = lm_task(case)
        found = SimpleNamespace(load=lambda _: {"tasks": {case.name: task}, "groups": {}}, task_index={})
        out = quiet(
            lm_eval.evaluator.simple_evaluate,
            model=Canned([case]),
            tasks=[case.name],
            task_manager=found,
            bootstrap_iters=draws,
            **run,
        )
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.date_id, tracker.general_config_tracker.model_name_sanitized = "2026", "m"
    quiet(tracker.save_results_samples, task_name=case.name, samples=out["samples"][case.name])
    (path,) = folder.rglob("samples_*.jsonl")
    return Whole(out, [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]])


def run_ours(case: Case, tables: Tables = LM_EVAL_0_4_13, *, draws: int = 200, **run: object) -> Whole:
    """The same config and replies through evalcore; ``run`` are settings of ``Asking``."""
    config = {
        "task": case.name,
        "test_split": "test",
        "output_type": case.output_type,
        "doc_to_text": "question",
        "doc_to_target": "target",
        "repeats": case.repeats,
        **({"doc_to_choice": "choices"} if case.output_type == "multiple_choice" else {}),
        **({"metric_list": [dict(one) for one in case.metrics]} if case.metrics is not None else {}),
        **({"filter_list": case.filters} if case.filters is not None else {}),
        **({"process_results": case.process_results} if case.process_results is not None else {}),
        **case.config,
    }
    built = build_task(config, {"test": [dict(row) for row in case.rows]}, Asking(**run))
    said = [reply for place in sorted(case.replies) for reply in case.replies[place]]
    answers = built.asked.answered(said, built.requests)
    scored = score_task(built.task, built.samples, answers, tables=tables, keep_replies=True)
    inference = Inference(resampling=Resampling(draws))
    report = report_task(scored, tables=tables, inference=inference, n_original=built.n_original)
    targets = dict(zip((one.doc_id for one in built.samples), map(thaw_value, built.targets), strict=True))
    rows = join_rows(list_documents(scored, built, answers, targets), [one.filter for one in scored.provenance])
    lines = json.loads(json.dumps(rows))
    return Whole(lm_eval_results(build_report([report], tables=tables)), lines)
