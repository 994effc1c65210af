"""``results.json`` as data: lm-eval's result file, run-level keys included, with nothing in it that differs by run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import isfinite

from evalcore.core.aggregate.signature import VERSION
from evalcore.core.groups.config import group_to_dict
from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.tree import Group
from evalcore.core.lm_eval.result_file import lm_eval_results
from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.report import Report, TaskReport
from evalcore.shell.files.address import show_dataset
from evalcore.shell.output.terminal.losses import find_losses, list_ledgers
from evalcore.shell.safety.safe_text import shorten
from evalcore.shell.safety.secrets import redact, redact_task
from evalcore.shell.safety.strict_json import to_plain

Plain = dict[str, object]

VARYING = (
    "git_hash",
    "date",
    "pretty_env_info",
    "transformers_version",
    "lm_eval_version",
    "upper_git_hash",
    "start_time",
    "end_time",
    "total_evaluation_time_seconds",
)
"""lm-eval's keys whose values differ between two runs of the same thing: null in results.json, told in run.json."""

UNFINISHED = "not_run"
"""The key of results that were written while tasks were still to be scored: their names."""

SCHEMA = "1.0"
"""The version of ``results.schema.json`` that results are written by: 1.1 may add keys, 2.0 may change any."""

NAMING = ("peft", "delta", "pretrained", "model", "path", "engine")
"""The model arguments that name a model, the most telling first (lm_eval/loggers/evaluation_tracker.py)."""

LONGEST = 160
"""Of what a title shows of the arguments of a model."""


class RunFacts(FrozenRecord, frozen=True, kw_only=True):
    """What results say about a run besides numbers, in lm-eval's words. ``seeds``: python, numpy, torch, few-shot;
    ``failed``: the tasks that could not be built, and why; ``not_run``: those that are still to be scored,
    with their documents; None if the run is finished.
    """

    model: str
    model_args: Mapping[str, object] | str = FrozenDict()
    model_info: Mapping[str, object] = FrozenDict()
    batch_size: int | str | None = None
    device: str | None = None
    use_cache: str | None = None
    limit: float | None = None
    bootstrap_iters: int | None = None
    gen_kwargs: Mapping[str, object] | str | None = None
    seeds: tuple[int | None, int | None, int | None, int | None] = (0, 1234, 1234, 1234)
    system_instruction: str | None = None
    chat_template: str | None = None
    fewshot_as_multiturn: bool | None = None
    confidence: float = 0.95
    ci: str = "wilson"
    stderr: str = "cr2"
    on_unscorable: str = "exclude"
    policy: str = "evalcore"
    trusted: Mapping[str, str] = FrozenDict()
    failed: Mapping[str, str] = FrozenDict()
    not_run: Mapping[str, int | None] | None = None


def build_results(
    report: Report,
    facts: RunFacts,
    *,
    configs: Mapping[str, Mapping[str, object]] | None = None,
    hashes: Mapping[str, str] | None = None,
    warnings: Iterable[str] = (),
    secrets: Iterable[str] = (),
) -> Plain:
    """What ``results.json`` holds. ``configs`` are the tasks' as built, ``hashes`` lm-eval's of them."""
    known = list(secrets)
    out = lm_eval_results(report)
    extras = out.pop("evalcore")
    for part in ("results", "groups"):
        if part in out:
            out[part] = {name: _write_row(row) for name, row in _list_items(out[part])}
    chosen = {name: (configs or {}).get(name, config) for name, config in _list_items(out["configs"])}
    out["configs"] = {name: _redact_config(config, known) for name, config in chosen.items()}
    out["config"] = redact(_list_config(facts), known)
    out |= dict.fromkeys(VARYING)
    out["task_hashes"] = dict(sorted((hashes or {}).items()))
    out |= _list_experiment(facts, known)
    out["evalcore"] = {
        "schema": SCHEMA,
        "version": VERSION,
        "policy": facts.policy,
        "confidence": facts.confidence,
        "ci": facts.ci,
        "stderr": facts.stderr,
        "on_unscorable": facts.on_unscorable,
        "trusted": dict(sorted(facts.trusted.items())),
        "groups": [redact(thaw(group_to_dict(group)), known) for group in _list_groups(report)],
        **_list_extras(extras, warnings, known),
        **({"failed_tasks": redact(dict(sorted(facts.failed.items())), known)} if facts.failed else {}),
        **({} if facts.not_run is None else {UNFINISHED: sorted(facts.not_run)}),
        "documents": list_ledgers(report, facts.not_run or {}),
        "unscored": [_order_values(lost) for lost in find_losses(report)],
        "differs_between_runs": {"file": "run.json", "keys": list(VARYING)},
    }
    return out


def find_model_name(facts: RunFacts) -> str:
    """The name a model goes by: what its arguments call it, else its kind.

    >>> find_model_name(RunFacts(model="local-completions", model_args={"model": "org/m", "num_concurrent": 8}))
    'org/m'
    >>> find_model_name(RunFacts(model="dummy"))
    'dummy'
    """
    given = facts.model_args
    pairs = (part.partition("=") for part in given.split(",")) if isinstance(given, str) else ()
    named = given if isinstance(given, Mapping) else {key.strip(): value for key, _, value in pairs}
    return str(next((named[key] for key in NAMING if named.get(key)), facts.model))


def title_run(facts: RunFacts) -> str:
    """What was run, in a line above the table.

    >>> title_run(RunFacts(model="local-completions", model_args={"model": "m", "api_key": "k"}, limit=20))
    'local-completions (model=m, api_key=[redacted]), limit 20'
    """
    given = redact(facts.model_args)
    args = ", ".join(f"{key}={value}" for key, value in given.items()) if isinstance(given, Mapping) else str(given)
    parts = [
        f"{facts.model} ({shorten(args, LONGEST)})" if args else facts.model,
        *([f"limit {facts.limit:g}"] if facts.limit is not None else []),
        *([f"gen_kwargs {shorten(str(redact(facts.gen_kwargs)), LONGEST)}"] if facts.gen_kwargs else []),
        *([f"policy {facts.policy}"] if facts.policy != "evalcore" else []),
    ]
    return ", ".join(parts)


def hash_text(text: str | None) -> str | None:
    """As lm-eval hashes instructions and templates; None where there is none.

    >>> hash_text("")
    """
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if text else None


def _list_groups(report: Report) -> list[Group[TaskReport]]:
    """Every group once, parents before children."""
    return list({one.name: one for one in list_groups(report.trees)}.values())


def _redact_config(config: object, known: list[str]) -> Plain:
    """A task's config; its prompts and documents stay as they are."""
    return show_dataset(redact_task(dict(_list_items(_order_values(config))), known))


def _list_config(facts: RunFacts) -> Plain:
    python, numpy, torch, fewshot = facts.seeds
    return {
        "model": facts.model,
        "model_args": _order_values(facts.model_args),
        **{key: _order_values(value) for key, value in facts.model_info.items()},
        "batch_size": facts.batch_size,
        "batch_sizes": [],
        "device": facts.device,
        "use_cache": facts.use_cache,
        "limit": facts.limit,
        "bootstrap_iters": facts.bootstrap_iters,
        "gen_kwargs": _order_values(facts.gen_kwargs),
        "random_seed": python,
        "numpy_seed": numpy,
        "torch_seed": torch,
        "fewshot_seed": fewshot,
    }


def _list_experiment(facts: RunFacts, secrets: list[str]) -> Plain:
    name = str(redact(find_model_name(facts), secrets))
    return {
        "model_source": facts.model,
        "model_name": name,
        "model_name_sanitized": re.sub(r'["<>:/|\\?*\[\]]+', "__", name),
        "system_instruction": facts.system_instruction,
        "system_instruction_sha": hash_text(facts.system_instruction),
        "fewshot_as_multiturn": facts.fewshot_as_multiturn,
        "chat_template": facts.chat_template,
        "chat_template_sha": hash_text(facts.chat_template),
    }


def _write_row(row: object) -> Plain:
    """lm-eval's table code takes numbers and its own word for none, never NaN, infinity or null."""
    return {
        key: "N/A" if isinstance(value, float) and not isfinite(value) else value for key, value in _list_items(row)
    }


def _list_extras(extras: object, warnings: Iterable[str], secrets: list[str]) -> Plain:
    out = dict(_list_items(extras))
    out["estimates"] = {
        name: {key: _explain_nonfinite(one) for key, one in _list_items(rows)}
        for name, rows in _list_items(out["estimates"])
    }
    given = out["warnings"]
    every = dict.fromkeys([*(given if isinstance(given, list) else ()), *warnings])
    out["warnings"] = redact(list(every), secrets)
    return out


def _explain_nonfinite(estimate: object) -> Plain:
    """Null for what is not finite, and the reason."""
    clean = dict(_list_items(estimate))
    lost = [key for key, value in clean.items() if isinstance(value, float) and not isfinite(value)]
    for key in lost:
        clean["reason"] = "; ".join(filter(None, [str(clean["reason"] or ""), f"{key} is {clean[key]}"]))
        clean[key] = None
    ci = clean.get("ci")
    if isinstance(ci, list):
        clean["ci"] = [end if isfinite(end) else None for end in ci]
    return clean


def _order_values(value: object) -> object:
    """Plain data in the order it was given; callables by name."""
    if isinstance(value, dict | FrozenDict):
        return {str(key): _order_values(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_order_values(one) for one in value]
    return value if value is None or isinstance(value, str | bool | int | float) else _order_values(to_plain(value))


def _list_items(value: object) -> Iterable[tuple[str, object]]:
    return value.items() if isinstance(value, Mapping) else ()
