"""A run as a frozen plan: its config with flags over it, decoded and checked."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.core.records.outcome import Rule
from evalcore.shell.config.keys import KEYS
from evalcore.shell.config.locations import anchor_paths, is_path, locate_key, locate_message
from evalcore.shell.config.plan_secrets import find_credentials, refuse_hidden
from evalcore.shell.config.prices import Prices
from evalcore.shell.config.values import parse_allowance, parse_pairs, split_tasks
from evalcore.shell.files.given import parse_path
from evalcore.shell.safety.credentials import note_credentials
from evalcore.shell.safety.timer import BUDGET

if TYPE_CHECKING:
    from evalcore.core.tables import Tables

SEEDS = (0, 1234, 1234, 1234)
PATH_ARGS = ("path", "paths")
"""The model arguments that are paths."""
HERE = "serial"
"""The engine of a plan that names none."""
GIVEN = "the flags or keys given"
"""Where a key is that no file has: typed, or an argument in Python."""


class Pin(Struct, frozen=True, forbid_unknown_fields=True):
    """A file or folder whose code may run; with a hash, only if its content has that hash."""

    path: str
    sha256: str | None = None


DataFiles = str | tuple[str | Mapping[str, object], ...] | Mapping[str, str | tuple[str, ...]]


class Plan(FrozenRecord, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a run does. Its keys are those of ``KEYS`` that are not ignored."""

    model: str
    tasks: tuple[str | Mapping[str, object], ...]
    model_args: Mapping[str, object] = FrozenDict()
    num_fewshot: int | None = None
    limit: float | None = None
    samples: Mapping[str, tuple[int, ...]] | None = None
    gen_kwargs: Mapping[str, object] = FrozenDict()
    include_path: tuple[str, ...] = ()
    output_path: str | None = None
    log_samples: bool = True
    predict_only: bool = False
    system_instruction: str | None = None
    multiple_choice_by: str | None = None
    batch_size: int | str | None = None
    max_batch_size: int | None = None
    device: str | None = None
    apply_chat_template: bool | str = False
    fewshot_as_multiturn: bool | None = None
    seed: tuple[int | None, int | None, int | None, int | None] = SEEDS
    bootstrap_iters: int | None = None
    use_cache: str | None = None
    metadata: Mapping[str, object] = FrozenDict()
    write_out: bool = False
    confirm_run_unsafe_code: bool = False
    data: Mapping[str, DataFiles] = FrozenDict()
    policy: str = "evalcore"
    confidence: float = 0.95
    ci: str = "wilson"
    stderr: str = "cr2"
    cluster: str | Mapping[str, str] | None = None
    on_unscorable: Rule = "exclude"
    allow_failures: str = "0"
    keep_going: bool = False
    engine: str = HERE
    workers: int | None = None
    address: str | None = None
    doc_timeout: float = BUDGET
    prices: Prices | None = None
    max_cost: float | None = None
    max_requests: int | None = None
    report: bool | str = False
    trust: tuple[str | Pin, ...] = ()


def list_choices(tables: Tables | None = None) -> Mapping[str, tuple[str, ...]]:
    """List the values of keys that take only a few; a host's tables may have more intervals.

    >>> sorted(list_choices()["policy"])
    ['evalcore', 'lm-eval-0.4.13']
    """
    from evalcore.core.filters.letter import KEY, WAYS
    from evalcore.core.lm_eval.policy import POLICIES  # here, because these tables take time to load
    from evalcore.core.stats.influence import ERROR_FORMS
    from evalcore.core.stats.intervals import INTERVALS
    from evalcore.shell.engines.engines import ENGINES

    few = {"on_unscorable": ("exclude", "zero", "fail"), "engine": tuple(ENGINES), "stderr": tuple(ERROR_FORMS)}
    return {"policy": tuple(POLICIES), "ci": tuple(tables.intervals if tables else INTERVALS), KEY: WAYS, **few}


class Read(NamedTuple):
    """A plan, and warnings about what it was read from."""

    plan: Plan
    warnings: tuple[str, ...]


def read_config(path: Path | None, flags: Mapping[str, object], tables: Tables | None = None) -> Read:
    """Read the plan of a config file with flags over it; either may be missing."""
    from evalcore.shell.config.config_file import read_file

    flags = {key: _anchor_flag(key, value) for key, value in flags.items()}
    if path is None:
        return make_plan(flags, GIVEN, "", tables)
    value, text = read_file(path)
    whole = {**value, **flags}
    try:
        return make_plan(whole, str(path), text, tables)
    except EvalError:
        if not flags:
            raise
        own = {key: one for key, one in value.items() if key not in flags}
        make_plan({"model": "dummy", "tasks": "any", **own}, str(path), text, tables)  # wrong in the file: its line
        return make_plan(whole, GIVEN, "", tables)


def _anchor_flag(key: str, value: object) -> object:
    """Anchor the paths of a flag: they start at the working directory, wherever the config is."""
    if key in ("include_path", "trust", "data"):
        return anchor_paths(value, None)
    if key == "tasks" and isinstance(value, list):
        return [anchor_paths(one, None) if isinstance(one, str) and is_path(one) else one for one in value]
    if key == "model_args" and isinstance(value, Mapping):
        return {name: anchor_paths(one, None) if name in PATH_ARGS else one for name, one in value.items()}
    return value


def make_plan(
    given: Mapping[str, object], where: str = "the run config", text: str = "", tables: Tables | None = None
) -> Read:
    """Make a plan of checked keys and values; warn of keys without effect.

    >>> read = make_plan({"model": "dummy", "tasks": "a,b", "verbosity": "INFO"})
    >>> read.plan.tasks, read.warnings
    (('a', 'b'), ('verbosity has no effect: use --quiet',))
    """
    note_credentials(find_credentials(given))
    for key in given:
        if key not in KEYS:
            raise unknown("key", str(key), KEYS, f" - at {locate_key(where, text, str(key))}")
    idle = [key for key, value in given.items() if KEYS[key].ignored and value not in (None, False, {}, [])]
    warnings = tuple(f"{key} has no effect: {KEYS[key].ignored}" for key in idle)
    kept = {key: value for key, value in given.items() if not KEYS[key].ignored and value is not None}
    for key, hint in (("model", "see `evalcore models`"), ("tasks", "see `evalcore tasks`")):
        if not kept.get(key):
            raise EvalError(f"expected {key} in {where}, got none; {hint}")
    for key, choices in list_choices(tables).items():
        if key in kept and kept[key] not in choices:
            raise unknown(key, str(kept[key]), choices, f" - at {locate_key(where, text, key)}")
    shaped = {key: _unify_value(key, value, locate_key(where, text, key)) for key, value in kept.items()}
    try:
        plan = msgspec.convert(shaped, Plan)
    except msgspec.ValidationError as wrong:
        raise EvalError(locate_message(str(wrong), where, text)) from None
    _check_plan(plan, kept, where)
    if isinstance(plan.apply_chat_template, str):
        warnings += (
            f"apply_chat_template: the model's own template is used, not one called {plan.apply_chat_template!r}",
        )
    return Read(plan, warnings)


def _unify_value(key: str, value: object, where: str) -> object:
    """Bring what lm-eval writes in several ways into one form."""
    match key, value:
        case (("model_args" | "gen_kwargs" | "metadata" | "prices"), str()):
            return parse_pairs(value, key)
        case "tasks", (str() | dict()):
            return split_tasks([value])
        case "tasks", list():
            return split_tasks(value)
        case "trust", (str() | dict()):
            return [value]
        case "include_path", str():
            return [value]
        case (("apply_chat_template" | "report"), ("true" | "True" | "false" | "False")):
            return value in ("true", "True")
        case "samples", str():
            return _read_samples(value, where)
        case "allow_failures", _:
            return parse_allowance(value, where)
        case "seed", _:
            return _spread_seeds(value, where)
    return value


def _read_samples(given: str, where: str) -> object:
    try:
        raw = given if given.lstrip().startswith("{") else parse_path(given).read_text("utf-8")
        return msgspec.json.decode(raw)
    except (OSError, ValueError, RecursionError) as wrong:
        message = f"expected samples as JSON or the path of a JSON file, got {given!r}: {wrong} - at {where}"
        raise EvalError(message) from None


def _spread_seeds(given: object, where: str) -> object:
    values = list(given) if isinstance(given, list | tuple) else [given]
    values = values * 4 if len(values) == 1 else values + list(SEEDS[3:]) if len(values) == 3 else values
    if len(values) != 4 or not all(one is None or type(one) is int for one in values):
        raise EvalError(f"expected seed as one integer or four, got {given!r} - at {where}")
    return values


def _check_plan(plan: Plan, given: Mapping[str, object], where: str) -> None:
    """Refuse what makes no sense, in the words in which it was ``given``."""
    if not plan.tasks:
        raise EvalError(f"expected tasks in {where}, got none; see `evalcore tasks`")
    refuse_hidden({"model_args": plan.model_args, "gen_kwargs": plan.gen_kwargs, "tasks": plan.tasks}, where)
    if plan.limit is not None and plan.samples is not None:
        raise EvalError(f"expected limit or samples, got both - at {where}")
    if plan.max_cost is not None and plan.prices is None:
        raise EvalError(f"max_cost needs prices, such as prices: {{input: 0.15, output: 0.60}} - at {where}")
    if plan.fewshot_as_multiturn and not plan.apply_chat_template:
        raise EvalError(f"fewshot_as_multiturn needs apply_chat_template: true - at {where}")
    for key, good, wanted in (
        ("limit", plan.limit is None or 0 < plan.limit < inf, "a number above 0"),
        ("num_fewshot", (plan.num_fewshot or 0) >= 0, "at least 0"),
        ("workers", plan.workers is None or plan.workers >= 1, "at least 1"),
        ("max_cost", plan.max_cost is None or 0 <= plan.max_cost < inf, "a number of dollars"),
        ("max_requests", (plan.max_requests or 0) in range(1 << 63), "at least 0, below 2^63"),
        ("doc_timeout", 0 <= plan.doc_timeout < 1e9, "below 1e9 seconds, or 0 for no limit"),
        ("confidence", 0 < plan.confidence < 1, "between 0 and 1"),
    ):
        if not good:
            raise EvalError(f"expected {key} to be {wanted}, got {given[key]} - at {where}")
    named = {"output_path": [plan.output_path or ""], "use_cache": [plan.use_cache or ""]}
    for key, paths in {"include_path": plan.include_path, **named}.items():
        if any("\0" in path for path in paths) or (
            key == "use_cache" and plan.use_cache and not Path(plan.use_cache).name
        ):
            raise EvalError(f"expected a path in {key}, got {paths[0]!r} - at {where}")
