"""From a plan to tasks ready to be asked: names to trees, trusted code, documents, requests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from pyrsistent import PMap
from toolz import unique

from evalcore.core.groups.tree import Tree
from evalcore.core.pipeline import report_task, score_task
from evalcore.core.records.errors import EvalError, located, place, require_known
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord, thaw_dict, thaw_value
from evalcore.core.records.request import GENERATE_UNTIL, Generate, Options
from evalcore.core.tables import EVALCORE, Tables
from evalcore.shell.config.locations import find_path, find_paths
from evalcore.shell.config.plan import PATH_ARGS, Pin, Plan
from evalcore.shell.data.local import find_override
from evalcore.shell.data.readers import DATA_READERS, Readers
from evalcore.shell.data.splits import load_splits
from evalcore.shell.engines.deadline import Deadline
from evalcore.shell.files.confinement import allow_any, confine_paths
from evalcore.shell.models import BESIDE, MODELS, add_arguments, find_backend, open_backend
from evalcore.shell.models.model import Backend, Model
from evalcore.shell.output.terminal.progress import Progress
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking, Built
from evalcore.shell.run.by_task import clusters_by_task, has_include, list_paths, spread_data
from evalcore.shell.run.failures import note_failure, refuse_failures
from evalcore.shell.tasks.code import hash_code
from evalcore.shell.tasks.evaluate_scripts import HINT, find_scripts
from evalcore.shell.tasks.library.cache import open_library
from evalcore.shell.tasks.library.includes import is_shipped
from evalcore.shell.tasks.resolution import INLINE, resolve_specs
from evalcore.shell.tasks.trust import (
    Trust,
    load_functions,
    load_groups,
    read_trust,
    refuse_model_code,
    refuse_untrusted,
)

ALLOWING = (
    "To allow it: --trust {path} (which lets code there run as well), or choose the task's data yourself: "
    '--data \'{"%s": "FILE"}\''
)
"""What to type where a task file names data that is not of its folders."""


class Selected(FrozenRecord, frozen=True):
    """The tasks of a plan: trees, configs with their code loaded, local data, files, warnings, code that may run.

    ``readable`` are the files and folders whose data any of its task files may name.
    """

    trees: tuple[Tree[Options], ...]
    configs: Mapping[str, Mapping[str, object]]
    data: Mapping[str, object]
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
    trusted: Mapping[str, str]
    clusters: Mapping[str, str] = FrozenDict()
    failed: Mapping[str, str] = FrozenDict()
    readable: tuple[str, ...] = ()


class Prepared(NamedTuple):
    """The tasks that are ready to be asked, and why others are not."""

    tasks: tuple[Built, ...]
    failed: FrozenDict[str, str]


def select_tasks(plan: Plan, home: Path | None, tables: Tables = EVALCORE) -> Selected:
    """Find the tasks that a plan names, and load the code that it trusts."""
    index = open_library([find_path(one, home) for one in plan.include_path])
    named = [one if not isinstance(one, str) or one in index.entries else find_path(one, home) for one in plan.tasks]
    found = resolve_specs(index, named, metadata={**plan.model_args, **plan.metadata}, known=tables.group_tables)
    trust = read_trust(_seen_from(one, home) for one in plan.trust)
    data = spread_data(plan.data, found.trees, found.tasks)
    local = [name for name in found.tasks if find_override(data, name) is not None]
    named_data = [find_path(one, home) for one in list_paths(plan.data)]
    own = [root for root in index.roots if not is_shipped(root)]
    _refuse_strangers(plan, found.tasks)
    configs: dict[str, Mapping[str, object]] = {}
    failed: dict[str, str] = {}
    others = len(found.tasks) - 1
    for name, config in found.tasks.items():
        with note_failure(failed, name, keep_going=plan.keep_going, others=others):
            configs[name] = _add_scripts(config, found.sources[name], plan, tables)
    coded: dict[str, Mapping[str, object]] = {}
    together = [configs] if configs and not plan.keep_going else [{name: config} for name, config in configs.items()]
    for some in together:
        with note_failure(failed, next(iter(some)), keep_going=plan.keep_going, others=others):
            refuse_untrusted(some, trust, local_data=local)
            _refuse_unsafe(plan, some)
            coded |= {name: _loaded(one, found.sources[name], trust, name in local) for name, one in some.items()}
    hashes = {path: sha for name in coded for path, sha in hash_code(configs[name]).items()}
    return Selected(
        load_groups(found.trees, trust),
        coded,
        data,
        found.sources,
        found.warnings,
        dict(sorted(hashes.items())),
        clusters_by_task(plan.cluster, found.trees, found.tasks),
        failed,
        (*own, *(str(home),) * (home is not None), *named_data, *trust.paths),
    )


def _add_scripts(config: Mapping[str, object], source: str, plan: Plan, tables: Tables) -> Mapping[str, object]:
    """A config with the scripts of metrics that are Hugging Face's; answers alone need none."""
    known = tables.metrics.get(GENERATE_UNTIL, ())
    return config if plan.predict_only else find_scripts(config, known, _find_folder(source))


def _find_folder(source: str) -> str:
    """Find the folder of a task's file; empty if no file defines it."""
    return "" if source == INLINE else str(Path(source).parent)


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


def open_model(
    plan: Plan, home: Path | None, models: PMap[str, str | Backend] = MODELS, *, unread: bool = False
) -> Model:
    """The model of a plan; ``unread``: without recorded answers, if it can do without."""
    paths = {key: plan.model_args[key] for key in PATH_ARGS if key in plan.model_args}
    found = {key: find_paths(one, home) for key, one in paths.items()}
    backend = find_backend(plan.model, models)
    more = {key: value for key in BESIDE if (value := getattr(plan, key)) is not None}
    given, warnings = add_arguments(backend, thaw_dict({**plan.model_args, **found}), more)
    if asked := backend.list_code(given):
        refuse_model_code(asked, read_trust(_seen_from(one, home) for one in plan.trust), " - at model_args")
    opened = open_backend(backend, given, unread=unread)
    return replace(opened, warnings=(*warnings, *opened.warnings)) if warnings else opened


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
    for name in selected.configs:
        with note_failure(failed, name, keep_going=plan.keep_going, others=len(selected.configs) - 1):
            out.append(build_one(name, plan, selected, model, home, readers, tables))
        shown.advance()
    refuse_failures(selected.trees, failed, [built.task.name for built in out])
    return Prepared(tuple(out), FrozenDict(failed))


def build_one(
    name: str,
    plan: Plan,
    selected: Selected,
    model: Model,
    home: Path | None,
    readers: Readers = DATA_READERS,
    tables: Tables = EVALCORE,
) -> Built:
    """The requests of one task."""
    with located(place(name)):
        config, override = thaw_dict(selected.configs[name]), thaw_value(find_override(selected.data, name))
        folder = _find_folder(selected.sources[name])
        beside = [Path(folder)] if folder and override is None else []
        places = [*beside, *([home] if home else [])]
        inside = [*map(str, places), *selected.readable]
        own = not places and not has_include(plan.tasks)  # the words of who calls us, of no file
        allow = allow_any if own else confine_paths(inside, ALLOWING % name)
        splits = load_splits(config, override, root=places, readers=readers, allow=allow)
        asking = asking_of(plan, model, name, selected.clusters.get(name), as_host=tables.as_host)
        built = build_task(config, splits, asking)
        _check_task(built, model, tables)
        return replace(built, warnings=(*splits.warnings, *built.warnings))


def _check_task(built: Built, model: Model, tables: Tables) -> None:
    """Find a metric nobody knows, a package that is missing, a generation option that the model cannot honour."""
    try:
        report_task(score_task(built.task, [], [], tables=tables, guard=Deadline()), tables=tables)
    except EvalError as wrong:
        if "unknown metric" not in str(wrong) or built.task.output_type != GENERATE_UNTIL:
            raise
        raise EvalError(f"{wrong}; nor is a script of Hugging Face's evaluate here ({HINT})") from wrong
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
        multiple_choice_by=plan.multiple_choice_by,
        chat=model.chat if plan.apply_chat_template else None,
        multiturn=bool(plan.apply_chat_template) if turns is None else turns,
        gen_kwargs=plan.gen_kwargs or None,
        predict_only=plan.predict_only,
        cluster=cluster,
        as_host=as_host,
    )
