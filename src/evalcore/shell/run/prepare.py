"""From a plan to tasks ready to be asked: names to trees, trusted code, documents, requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec.structs import replace
from pyrsistent import PMap
from toolz import unique

from evalcore.core.groups.edit import list_groups
from evalcore.core.groups.rules import GROUP_TABLES, GroupTables
from evalcore.core.groups.tree import Tree, leaves
from evalcore.core.pipeline import report_task, score_task
from evalcore.core.records.errors import EvalError, located, place, require_known, unknown
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord, thaw_dict, thaw_value
from evalcore.core.records.request import Generate, Options
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.config.locations import find_path
from evalcore.shell.config.plan import PATH_ARGS, Pin, Plan
from evalcore.shell.data.local import find_override
from evalcore.shell.data.readers import DATA_READERS, Readers
from evalcore.shell.data.splits import load_splits
from evalcore.shell.models import MODELS, find_backend
from evalcore.shell.models.model import Backend, Model
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking, Built
from evalcore.shell.run.failures import note_failure, refuse_failures
from evalcore.shell.tasks.code import hash_code
from evalcore.shell.tasks.library.cache import open_library
from evalcore.shell.tasks.resolution import resolve_specs
from evalcore.shell.tasks.trust import Trust, load_functions, load_groups, read_trust, refuse_untrusted

T = TypeVar("T")


class Selected(FrozenRecord, frozen=True):
    """The tasks of a plan: trees, configs with their code loaded, local data, files, warnings, code that may run."""

    trees: tuple[Tree[Options], ...]
    configs: Mapping[str, Mapping[str, object]]
    data: Mapping[str, object]
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
    trusted: Mapping[str, str]
    clusters: Mapping[str, str] = FrozenDict()
    failed: Mapping[str, str] = FrozenDict()


class Prepared(NamedTuple):
    """The tasks that are ready to be asked, and why others are not."""

    tasks: tuple[Built, ...]
    failed: FrozenDict[str, str]


def select_tasks(plan: Plan, home: Path | None, known: GroupTables = GROUP_TABLES) -> Selected:
    """Find the tasks that a plan names, and load the code that it trusts."""
    index = open_library([find_path(one, home) for one in plan.include_path])
    named = [one if not isinstance(one, str) or one in index.entries else find_path(one, home) for one in plan.tasks]
    found = resolve_specs(index, named, metadata={**plan.model_args, **plan.metadata}, known=known)
    trust = read_trust(_seen_from(one, home) for one in plan.trust)
    data = spread_data(plan.data, found.trees, found.tasks)
    local = [name for name in found.tasks if find_override(data, name) is not None]
    _refuse_strangers(plan, found.tasks)
    configs: dict[str, dict[str, object]] = {}
    failed: dict[str, str] = {}
    several = {"all": found.tasks} if not plan.keep_going else {name: {name: one} for name, one in found.tasks.items()}
    for label, some in several.items():
        with note_failure(failed, label, keep_going=plan.keep_going, others=len(found.tasks) - 1):
            refuse_untrusted(some, trust, local_data=local)
            _refuse_unsafe(plan, some)
            configs |= {name: _loaded(one, found.sources[name], trust, name in local) for name, one in some.items()}
    hashes = {path: sha for name in configs for path, sha in hash_code(found.tasks[name]).items()}
    return Selected(
        load_groups(found.trees, trust),
        configs,
        data,
        found.sources,
        found.warnings,
        dict(sorted(hashes.items())),
        clusters_by_task(plan.cluster, found.trees, found.tasks),
        failed,
    )


def spread_data(
    data: Mapping[str, T], trees: Iterable[Tree[Options]], tasks: Iterable[str], key: str = "data"
) -> Mapping[str, T]:
    """``data:`` by task: the name of a group stands for its tasks, and a name or glob that fits none is a mistake.

    >>> from evalcore.core.groups.tree import Group, Leaf
    >>> spread_data({"g": "x.jsonl"}, [Group("g", (Leaf("a", None), Leaf("b", None)))], ["a", "b"])
    {'a': 'x.jsonl', 'b': 'x.jsonl'}
    """
    groups = {one.name: one for one in list_groups(trees)}
    names, out = list(tasks), dict[str, T]()
    for name, value in data.items():
        if name in groups and name not in names:
            out |= {leaf.name: value for leaf in leaves(groups[name]) if leaf.name not in data}
        elif any(task == name or fnmatchcase(task, name) for task in names):
            out[name] = value
        else:
            raise unknown(f"task in {key}", name, [*names, *groups])
    return out


def clusters_by_task(
    given: str | Mapping[str, str] | None, trees: Iterable[Tree[Options]], tasks: Iterable[str]
) -> Mapping[str, str]:
    """What a run's ``cluster`` says of each task: one field for all, or by the names or globs of tasks and groups.

    >>> clusters_by_task("passage", [], ["a"]), clusters_by_task({"*_en": "id", "a": "key"}, [], ["a", "b_en", "c"])
    ({'a': 'passage'}, {'a': 'key', 'b_en': 'id'})
    """
    names = list(tasks)
    if given is None or isinstance(given, str):
        return dict.fromkeys(names, given) if given else {}
    known = spread_data(given, trees, names, "cluster")
    found = {name: known.get(name) or _fitting(known, name) for name in names}
    return {name: field for name, field in found.items() if field}


def _fitting(known: Mapping[str, str], task: str) -> str | None:
    return next((field for glob, field in known.items() if fnmatchcase(task, glob)), None)


def _loaded(config: Mapping[str, object], source: str, trust: Trust, local: bool) -> dict[str, object]:
    """A config with its code, and with the file it is from where lm-eval says so too."""
    own = config.get("metadata")
    metadata = {**(own if isinstance(own, Mapping) else {}), "config_source": source}
    return load_functions({**config, "metadata": metadata}, trust, local_data=local)


def _seen_from(one: str | Pin, home: Path | None) -> str | Pin:
    if isinstance(one, Pin):
        return Pin(find_path(one.path, home), one.sha256)
    path, at, digest = one.partition("@sha256:")
    return find_path(path, home) + at + digest


def _refuse_unsafe(plan: Plan, configs: Mapping[str, Mapping[str, object]]) -> None:
    unsafe = [name for name, config in configs.items() if config.get("unsafe_code")]
    if unsafe and not plan.confirm_run_unsafe_code:
        raise EvalError(
            f"{', '.join(unsafe[:5])}: executes what the model writes; to allow it, best in a container, add "
            "confirm_run_unsafe_code: true (--confirm_run_unsafe_code)"
        )


def _refuse_strangers(plan: Plan, configs: Mapping[str, object]) -> None:
    """Documents chosen for a task that is not run are a mistake."""
    require_known("task in samples", plan.samples or (), configs)


def open_model(plan: Plan, home: Path | None, models: PMap[str, str | Backend] = MODELS) -> Model:
    """The model of a plan."""
    paths = {key: plan.model_args[key] for key in PATH_ARGS if key in plan.model_args}
    found = {key: _found(one, home) for key, one in paths.items()}
    return find_backend(plan.model, models).open(thaw_dict({**plan.model_args, **found}))


def _found(given: object, home: Path | None) -> object:
    """Paths anywhere inside a value, as they are found from here or from the config's folder."""
    if isinstance(given, str):
        return find_path(given, home)
    if isinstance(given, Mapping):
        return {key: _found(one, home) for key, one in given.items()}
    return [_found(one, home) if isinstance(one, str) else one for one in given] if isinstance(given, tuple) else given


def build_tasks(
    plan: Plan,
    selected: Selected,
    model: Model,
    home: Path | None,
    shown: Progress,
    readers: Readers = DATA_READERS,
    tables: Tables = EVALCORE,
) -> Prepared:
    """The requests of every task, each checked against the model and the tables that will score it."""
    shown.stage("building requests", len(selected.configs))
    out: list[Built] = []
    failed = dict(selected.failed)
    for name, frozen in selected.configs.items():
        noted = note_failure(failed, name, keep_going=plan.keep_going, others=len(selected.configs) - 1)
        with noted, located(place(name)):
            config, override = thaw_dict(frozen), thaw_value(find_override(selected.data, name))
            source = selected.sources[name]
            beside = [Path(source).parent] if source != "inline" and override is None else []
            splits = load_splits(config, override, root=[*beside, *([home] if home else [])], readers=readers)
            asking = asking_of(plan, model, name, selected.clusters.get(name), as_host=tables.as_host)
            built = build_task(config, splits, asking)
            _check_task(built, model, tables)
            out.append(replace(built, warnings=(*splits.warnings, *built.warnings)))
        shown.advance()
    refuse_failures(selected.trees, failed, [built.task.name for built in out])
    return Prepared(tuple(out), FrozenDict(failed))


def _check_task(built: Built, model: Model, tables: Tables) -> None:
    """Find a metric nobody knows, a package that is missing, a generation option that the model cannot honour."""
    report_task(score_task(built.task, [], [], tables=tables), tables=tables)
    for request in unique(built.requests, key=lambda request: id(getattr(request, "options", None))):
        if isinstance(request, Generate):
            model.check(request.options)


def asking_of(plan: Plan, model: Model, task: str, cluster: str | None = None, *, as_host: bool = False) -> Asking:
    """How a plan asks a task: the few-shot seed is the fourth, the chat template the model's own."""
    if plan.apply_chat_template and model.chat is None:
        raise EvalError(
            f"apply_chat_template: {plan.model} has no chat template for {model.name}; "
            "use a chat model (local-chat-completions) or leave apply_chat_template out"
        )
    turns = plan.fewshot_as_multiturn
    return Asking(
        num_fewshot=plan.num_fewshot,
        seed=plan.seed[3],
        limit=plan.limit,
        samples=(plan.samples or {}).get(task),
        system_instruction=plan.system_instruction,
        chat=model.chat if plan.apply_chat_template else None,
        multiturn=bool(plan.apply_chat_template) if turns is None else turns,
        gen_kwargs=plan.gen_kwargs or None,
        predict_only=plan.predict_only,
        cluster=cluster,
        as_host=as_host,
    )
