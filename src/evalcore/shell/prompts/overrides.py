"""What a run changes in a task's settings, and the settings as lm-eval reports them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import getsource

from msgspec.structs import asdict, replace

from evalcore.core.lm_eval.result_file import BYPASS
from evalcore.core.records.errors import EvalError, place
from evalcore.core.records.frozen_dict import FrozenDict, thaw_dict, thaw_value
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.prompts.ready_task import Asking
from evalcore.shell.prompts.settings import TaskSettings, refuse_length

Plain = dict[str, object]
ADDRESS = re.compile(" at 0x[0-9a-f]+")
RECORDED = (FrozenDict({"metric": BYPASS}),)


def override_settings(settings: TaskSettings, asking: Asking) -> TaskSettings:
    """Override the settings by a run's: few-shot count (a task's own 0 stays), generation options, answers only.

    >>> override_settings(TaskSettings(task="t", num_fewshot=0), Asking(num_fewshot=5)).num_fewshot
    0
    >>> override_settings(TaskSettings(task="t"), Asking(num_fewshot=5)).num_fewshot
    5
    """
    shots = settings.num_fewshot
    if asking.num_fewshot is not None and shots != 0:
        shots = asking.num_fewshot
    if (shots or 0) < 0:
        raise EvalError(f"expected num_fewshot to be at least 0, got {shots}{place(settings.task)}")
    generation = settings.generation_kwargs
    if asking.gen_kwargs is not None and settings.output_type == GENERATE_UNTIL:
        generation = {**(generation or {}), **asking.gen_kwargs}
        refuse_length(generation, settings.task)
    changed = replace(settings, num_fewshot=shots or 0, generation_kwargs=generation)
    if not asking.predict_only:
        return changed
    return replace(changed, metric_list=RECORDED, process_results="process_results")


def fill_config(settings: TaskSettings) -> Plain:
    """Write the settings as lm-eval does under ``configs``: with defaults, without nulls, functions as source.

    >>> fill_config(TaskSettings(task="t"))["fewshot_config"]["sampler"]
    'default'
    """
    given = {key: value for key, value in asdict(settings).items() if value is not None}
    return {key: _write_plain(value) for key, value in given.items()} | {
        "fewshot_config": _write_plain(asdict(settings.fewshot_config))
    }


def select_scoring(settings: TaskSettings) -> Plain:
    """Select what scoring reads of the settings. With ``predict_only`` nothing is measured, whatever a pipeline
    asks for.
    """
    read = {key: value for key, value in asdict(settings).items() if value is not None and key != "fewshot_config"}
    given = thaw_dict(read)
    if settings.process_results != "process_results":
        return given
    filters = settings.filter_list if isinstance(settings.filter_list, tuple) else ()
    bare = [{key: thaw_value(value) for key, value in one.items() if key != "metric_list"} for one in filters]
    repeats = {
        key: thaw_value(value) for key, value in (settings.repeat_cfg or {}).items() if not key.startswith("reducer")
    }
    return {key: value for key, value in given.items() if key != "process_results"} | {
        "metric_list": [{**one, "reducer": "first"} for one in RECORDED],  # several replies are no reason to stop
        **({"filter_list": bare} if bare else {}),
        **({"repeat_cfg": repeats} if settings.repeat_cfg else {}),
    }


def _write_plain(value: object) -> object:
    """Write plain data all the way down. lm-eval writes a nested function by its address, which differs in
    every run.
    """
    if isinstance(value, Mapping):
        return {key: _write_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_write_plain(item) for item in value]
    return _get_source(value) if callable(value) else value


def _get_source(function: object) -> str:
    try:
        return getsource(function)  # type: ignore[arg-type]  # without source it raises TypeError
    except (TypeError, OSError):
        return ADDRESS.sub("", str(function))
