"""One of lm-eval's tasks on documents of ours: its requests, its numbers, its config, from both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from inspect import getsource
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import NamedTuple

import pytest

pytest.importorskip("lm_eval")

import datasets
import lm_eval.evaluator
import lm_eval.tasks
from both_sides import assert_same_results, quiet
from lm_eval.tasks._factory import TaskFactory
from lm_eval.tasks._index import Entry, Kind
from lm_eval.tasks._yaml_loader import load_yaml
from lm_eval_docs import CASES, OURS, Case, splits_of
from lm_eval_docs.fake import Fake

from evalcore import EvalError, Generate, LogLikelihood, build_report, report_task, score_task
from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.request import Request
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results
from evalcore.shell.prompts.ready_task import Asking, Built
from evalcore.stats import Inference, Resampling

FOLDER = Path(lm_eval.tasks.__file__).parent
DRAWS = 20
BITS = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match", "em")
REFUSALS = re.compile("fewshot samples requested|Sample larger than population|Answer is not a string")
Plain = dict[str, object]
Splits = Mapping[str, list[Plain]]


class Side(NamedTuple):
    """What lm-eval asks, in order; what it is answered; what it makes of it."""

    requests: list[tuple[object, ...]]
    replies: list[object]
    results: Plain
    config: Plain


# --- lm-eval ------------------------------------------------------------------------------------------------


def lm_config(path: Path) -> Plain:
    return load_yaml(path, resolve_func=False)


def missing(name: str) -> str:
    """What lm-eval's code for a task needs and this environment lacks, in its own words; empty if nothing."""
    try:
        quiet(load_yaml, FOLDER / CASES[name].path)
    except ImportError as wrong:
        return str(wrong)
    return ""


def documents(name: str) -> dict[str, list[Plain]]:
    case = CASES[name]
    return splits_of(lm_config(FOLDER / case.path), case.family)


def run_theirs(name: str, path: Path, case: Case, splits: Splits, patch: pytest.MonkeyPatch, **run: object) -> Side:
    """lm-eval's own run, from its task file to its results."""
    tables = {split: datasets.Dataset.from_list(deepcopy(docs)) for split, docs in splits.items()}
    patch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.DatasetDict(tables))
    for slow in ("add_env_info", "add_tokenizer_info"):
        patch.setattr(lm_eval.evaluator, slow, lambda *_: None)
    patch.setattr(lm_eval.evaluator, "get_git_commit_hash", lambda: None)
    entry = Entry(name=name, kind=Kind.TASK, yaml_path=path)
    task = quiet(TaskFactory().build, entry, registry={})
    model = Fake(task, case)
    loader = SimpleNamespace(load=lambda _: {"tasks": {name: task}, "groups": {}}, task_index={})
    out = quiet(
        lm_eval.evaluator.simple_evaluate,
        model=model,
        tasks=[name],
        task_manager=loader,
        bootstrap_iters=DRAWS,
        confirm_run_unsafe_code=True,
        **run,
    )
    asked = [model.asked[place] for place in sorted(model.asked)]
    replies = [reply for _, heard in asked for reply in heard]
    return Side([args for args, _ in asked], replies, out, out["configs"][name])


# --- evalcore -----------------------------------------------------------------------------------------------


@cache
def index() -> object:
    from evalcore.shell.tasks.library.cache import build_index

    return build_index([FOLDER, OURS])


def our_config(name: str) -> Plain:
    """The task's config with its functions, from lm-eval's folder, which the test trusts."""
    from evalcore.shell.tasks.resolution import resolve_specs
    from evalcore.shell.tasks.trust import load_functions, read_trust

    found = resolve_specs(index(), [name])
    config = dict(found.tasks[name])
    config["metadata"] = {**(config.get("metadata") or {}), "config_source": found.sources[name]}
    return load_functions(config, read_trust([str(FOLDER), str(OURS)]), local_data=True)


def build_ours(config: Plain, splits: Splits, **run: object) -> Built:
    """What evalcore asks, with a local file for each split."""
    from evalcore.shell.data.splits import load_splits
    from evalcore.shell.prompts.build import build_task

    with TemporaryDirectory() as folder:
        files = {split: Path(folder, f"{at}.jsonl") for at, split in enumerate(splits)}
        for split, file in files.items():
            file.write_text("".join(f"{json.dumps(doc)}\n" for doc in splits[split]))
        return build_task(
            config, load_splits(config, {split: str(file) for split, file in files.items()}), Asking(**run)
        )


def run_ours(built: Built, replies: Sequence[object]) -> Plain:
    """evalcore's results under lm-eval's tables, for the same replies."""
    scored = score_task(built.task, built.samples, built.asked.answered(list(replies)), tables=LM_EVAL_0_4_13)
    inference, documents = Inference(resampling=Resampling(DRAWS)), built.n_original
    report = report_task(scored, tables=LM_EVAL_0_4_13, inference=inference, n_original=documents)
    return lm_eval_results(build_report([report], tables=LM_EVAL_0_4_13))


def arguments(request: Request) -> tuple[object, ...]:
    """A request as lm-eval's argument tuple."""
    if isinstance(request, LogLikelihood):
        return request.context, request.continuation
    return (request.prompt, thaw(request.options)) if isinstance(request, Generate) else (request.text,)


# --- the same -----------------------------------------------------------------------------------------------


def compare(name: str, patch: pytest.MonkeyPatch, *, theirs: Plain, ours: Plain, numbers: bool = True) -> Plain | None:
    """The results, once both sides agree on all there is; None where lm-eval itself refuses, and so does evalcore."""
    case, splits = CASES[name], documents(name)
    try:
        expected = run_theirs(name, FOLDER / case.path, case, splits, patch, **theirs)
    except (AssertionError, ValueError) as refused:
        if not REFUSALS.search(str(refused)):
            raise
        with pytest.raises(EvalError):
            build_ours(our_config(name), splits, **ours)
        return None
    built = build_ours(our_config(name), splits, **ours)
    assert_same_requests(expected, built)
    results = run_ours(built, expected.replies)
    if numbers:
        assert_same_results(in_json(expected.results), results, exact=BITS)
    config, wanted = plain(built.config), plain(expected.config)
    for key in {**wanted, **config}:
        assert config.get(key, "missing") == wanted.get(key, "missing"), key
    return results


def assert_same_requests(theirs: Side, built: Built) -> None:
    """Character by character, in order, with the options of generation and the number of repeats."""
    ours = list(map(arguments, built.requests))
    for at, (expected, found) in enumerate(zip(theirs.requests, ours, strict=False)):
        assert found == expected, at
    assert len(ours) == len(theirs.requests)
    assert sum(built.asked.repeats.ints) == len(theirs.replies)


def in_json(results: Plain) -> Plain:
    """lm-eval's results without NaN where nothing can be said (no JSON; its other word for that is "N/A")."""
    rows = {
        name: {key: "N/A" if value != value else value for key, value in row.items()}
        for name, row in results["results"].items()
    }
    return {**results, "results": rows}


def plain(value: object) -> object:
    """A config as text could hold it: functions by their source, or by what they print without their address."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if callable(value):
        try:
            return getsource(value)
        except (TypeError, OSError):
            return plain(str(value))
    return re.sub(r" at 0x[0-9a-f]+", "", value) if isinstance(value, str) else value
