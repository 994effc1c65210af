"""What logs say of their runs, and labels for several logs of one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from evalcore.core.records.report import TaskReport
from evalcore.core.tables import Tables
from evalcore.shell.config.plan import Plan
from evalcore.shell.files.given import find_shared_folder
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.logs.lm_eval.names import list_filters
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.output.files.results import RunFacts, find_model_name
from evalcore.shell.score.rules import Rules

Plain = Mapping[str, object]


def find_recorded_name(log: LogTask) -> str:
    """Find the name of a task in its log's results; logs of one task from several runs have longer names here.

    >>> log = LogTask(name="t (a/s.jsonl)", path=Path("a/s.jsonl"), output_type="x", rows=lambda: iter(()))
    >>> find_recorded_name(log)
    't'
    """
    return log.name.removesuffix(f" ({where})") if (where := _where(log)) else log.name


def _where(log: LogTask) -> str:
    """The end of a log's path that its name here includes to distinguish it; else nothing."""
    if not log.name.endswith(")"):
        return ""
    found, path = log.name[:-1].split(" (")[1:], "/".join(("", *log.path.resolve().parts[1:]))
    ends = (" (".join(found[at:]) for at in range(len(found)))
    return next((one for one in ends if path.endswith(f"/{one}")), "")


def list_model_facts(log: LogTask) -> Plain:
    """List the model and its arguments, if the log or its results have them."""
    return {key: log.model[key] for key in ("model", "model_args") if log.model.get(key)}


def find_log_model(log: LogTask) -> str:
    """Name the model of a log; empty if it is unknown."""
    given, told = log.model.get("model_name"), list_model_facts(log)
    if isinstance(given, str) and given:
        return given
    args = told.get("model_args")
    return find_model_name(
        RunFacts(model=str(told.get("model", "")), model_args=args if isinstance(args, Mapping | str) else {})
    )


def label_logs(logs: Sequence[LogTask]) -> list[str]:
    """Label each of several logs of one task: by model if all differ, else by path; a single log has no label.

    >>> made = [LogTask(name=f"t ({one}.jsonl)", path=Path(f"{one}.jsonl"), output_type="x", rows=lambda: iter(()),
    ...     model={"model_name": one}) for one in "ab"]
    >>> label_logs(made), label_logs([replace(one, model={}) for one in made]), label_logs(made[:1])
    (['a', 'b'], ['a.jsonl', 'b.jsonl'], [''])
    """
    same: dict[str, list[int]] = {}
    for at, log in enumerate(logs):
        same.setdefault(find_recorded_name(log), []).append(at)
    several = {name: places for name, places in same.items() if len(places) > 1}
    models = {name: [find_log_model(logs[at]) for at in places] for name, places in several.items()}
    by_model = all(all(found) and len(set(found)) == len(found) for found in models.values())
    told = models if by_model else {name: label_paths([logs[at].path for at in several[name]]) for name in several}
    found = {at: label for name, places in several.items() for at, label in zip(places, told[name], strict=True)}
    return [found.get(at, "") for at in range(len(logs))]


def label_paths(paths: Sequence[Path]) -> list[str]:
    """Label logs by the part of their folders that differs, or by file if some share a folder; if one folder holds the
    others, its own name is included.

    >>> label_paths([Path("a/out/s.jsonl"), Path("b/out/s.jsonl")]), label_paths([Path("a/s.jsonl"), Path("a/t.jsonl")])
    (['a/out', 'b/out'], ['s.jsonl', 't.jsonl'])
    >>> label_paths([Path("a/s.jsonl"), Path("a/a/s.jsonl")])
    ['a', 'a/a']
    """
    if not paths:
        return []
    whole = [path.resolve() for path in paths]
    folders = [path.parent for path in whole]
    told = folders if len(set(folders)) == len(folders) else whole
    shared = find_shared_folder(whole)
    base = shared.parent if shared in told else shared
    return ["/".join(one.relative_to(base).parts) for one in told]


def label_task(task: TaskReport, log: LogTask, label: str) -> TaskReport:
    """Add a label to the alias of a task; a part of a split log goes by its own name."""
    part = task.name.removeprefix(log.name)
    if part and not label:
        return replace(task, alias=None, config=task.config.discard("task_alias"))
    if not label:
        return task
    alias = (
        f"{find_recorded_name(log)}{part} ({label})" if part else f"{task.alias or find_recorded_name(log)} ({label})"
    )
    return replace(task, alias=alias, config=task.config.set("task_alias", alias))


def drop_shared_aliases(tasks: Sequence[TaskReport], logs: Sequence[LogTask]) -> tuple[TaskReport, ...]:
    """Drop aliases that one task file gives to several tasks."""
    filed = Counter(
        task.alias
        for task, log in zip(tasks, logs, strict=True)
        if task.alias and log.config.get("task_alias") != task.alias
    )
    return tuple(replace(task, alias=None) if task.alias and filed[task.alias] > 1 else task for task in tasks)


# --- how answers came to be -----------------------------------------------------------------------------------------

ASKED = ("system_instruction", "chat_template", "fewshot_as_multiturn")
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")
"""What lm-eval's results and their config record of how a model was asked."""


def gather_facts(logs: Iterable[LogTask], plan: Plan, tables: Tables, trusted: Mapping[str, str]) -> RunFacts:
    """Gather how answers were obtained, for new results: the facts on which all old results agree."""
    told = find_agreed(map(list_run_facts, logs))
    given, gen_kwargs = told.get("model"), told.get("gen_kwargs")
    model, args = (given.get(key) for key in ("model", "model_args")) if isinstance(given, Mapping) else (None, None)
    system, template, turns = (told.get(key) for key in ASKED)
    python, numpy, torch, fewshot = (one if type(one) is int else None for one in map(told.get, SEEDS))
    return RunFacts(
        model=str(model or plan.model),
        model_args=args if isinstance(args, Mapping | str) else {},
        gen_kwargs=gen_kwargs if isinstance(gen_kwargs, Mapping | str) else None,
        seeds=(python, numpy, torch, fewshot),
        system_instruction=system if isinstance(system, str) else None,
        chat_template=template if isinstance(template, str) else None,
        fewshot_as_multiturn=turns if isinstance(turns, bool) else None,
        limit=plan.limit,
        bootstrap_iters=plan.bootstrap_iters,
        confidence=plan.confidence,
        ci=plan.ci,
        stderr=plan.stderr,
        on_unscorable=plan.on_unscorable,
        policy=tables.name,
        trusted=trusted,
    )


def list_run_facts(log: LogTask) -> Plain:
    """List how the answers of a log were obtained, from the results beside it."""
    known = find_part(log.results, "config")
    asked = {key: log.results.get(key) for key in ASKED}
    return {**asked, **{key: known.get(key) for key in ("gen_kwargs", *SEEDS)}, "model": list_model_facts(log)}


def find_agreed(told: Iterable[Plain]) -> Plain:
    """Find the entries on which all mappings agree.

    >>> find_agreed([{"a": 1, "b": 2}, {"a": 1, "b": 3}])
    {'a': 1}
    """
    first, *others = list(told) or [{}]
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)}


SEVERAL = (
    "it had several filters ({}), and these steps are called {}; compare and diff pair numbers by that name, "
    "which --filter_name NAME chooses"
)


def keep_filter_name(log: LogTask, rules: Rules) -> tuple[Rules, tuple[str, ...]]:
    """Give steps that nobody named the name of the log's one filter, so that old and new numbers can be paired."""
    if not rules.unnamed or rules.scores:
        return rules, ()
    names = _list_old_filters(log)
    if len(names) > 1:
        return rules, (f"{log.name}: {SEVERAL.format(', '.join(names), rules.pipelines[0].name)}",)
    return replace(rules, pipelines=tuple(replace(one, name=name) for one in rules.pipelines for name in names)), ()


def _list_old_filters(log: LogTask) -> tuple[str, ...]:
    """The filters by which a log was scored: those of its config, else of the rows of its first document."""
    if log.config or log.past is None:
        return list_filters(log.config, ())
    first = next((one.doc_id for one in log.rows() if isinstance(one, Logged)), None)
    past = (log.past(first) if first is not None else None) or {}
    return tuple(past.get("kept", ())) or list_filters(log.config, ())
