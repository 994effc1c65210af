"""Metrics of Hugging Face's ``evaluate``: their scripts, found on this machine, and called as lm-eval calls them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from evalcore.core.lm_eval.task_config import is_from_evaluate
from evalcore.core.records.errors import EvalError, place, require
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.tasks.code import FunctionRef

KINDS = ("metric", "comparison", "measurement")
"""The kinds of scripts, in the order in which ``evaluate.load`` looks for a name."""
HINT = (
    "to keep one here: python -c \"import evaluate; evaluate.load('NAME')\" with a network, or metric: /path/to/NAME.py"
)


class MetricScript(FunctionRef, frozen=True):
    """A metric's script with the hash of its file: code, which runs only if it is trusted."""


class ScriptMetric(Struct, frozen=True):
    """A metric by its script, loaded once in each process."""

    script: MetricScript

    @property
    def __name__(self) -> str:
        return self.script.name

    def __str__(self) -> str:
        return f"evaluate.load({self.script.path!r})"

    def __call__(self, *, references: list[object], predictions: list[object], **options: object) -> object:
        """Score one document as lm-eval does; a script with several numbers gives a mapping."""
        return _load_script(self.script)(references=references, predictions=predictions, **options)


def find_scripts(config: Mapping[str, object], known: Collection[str], folder: str = "") -> dict[str, object]:
    """Find the scripts of the metrics that a task of generated texts takes from ``evaluate``.

    These are metrics with ``hf_evaluate: true``, and names that are not ``known``. Scripts are looked for as
    ``evaluate.load`` does, also from the task's ``folder``, but never on the hub.

    >>> find_scripts({"task": "t", "metric_list": [{"metric": "acc"}]}, ["acc"])
    {'task': 't', 'metric_list': [{'metric': 'acc'}]}
    """
    generates = (config.get("output_type") or GENERATE_UNTIL) == GENERATE_UNTIL
    if not generates or config.get("process_results") is not None:
        return dict(config)

    def replace_metrics(given: object) -> object:
        entries = given if isinstance(given, list | tuple) else [given]
        return [_find_metric(one, known, folder, str(config.get("task"))) for one in entries]

    made = dict(config)
    if made.get("metric_list"):
        made["metric_list"] = replace_metrics(made["metric_list"])
    pipelines = made.get("filter_list")
    if isinstance(pipelines, list | tuple):
        made["filter_list"] = [
            {**one, "metric_list": replace_metrics(one["metric_list"])}
            if isinstance(one, Mapping) and one.get("metric_list")
            else one
            for one in pipelines
        ]
    return made


def _find_metric(entry: object, known: Collection[str], folder: str, task: str) -> object:
    if not isinstance(entry, Mapping) or not is_from_evaluate(entry, known):
        return entry
    name = str(entry["metric"])
    found = _find_file(name, folder) if name.strip("/") else None
    if found is None and entry.get("hf_evaluate") is not True:
        return entry  # an unknown name, about which scoring says more
    if found is None:
        raise EvalError(
            f"metric {name!r}: hf_evaluate: true asks for Hugging Face's script, and there is none on this machine; "
            f"{HINT.replace('NAME', name)}{place(task)}"
        )
    return {**entry, "metric": MetricScript(found, Path(found).stem, sha256(Path(found).read_bytes()).hexdigest())}


def _find_file(name: str, folder: str) -> str | None:
    """Find a script: a file, a folder with a script of its name, or one that ``evaluate`` has kept."""
    return next((os.path.realpath(one) for one in _list_places(name, folder) if os.path.isfile(one)), None)


def _list_places(name: str, folder: str) -> Iterator[str]:
    last = name.rstrip("/").rpartition("/")[2]
    for base in dict.fromkeys(("", folder)):
        path = os.path.join(base, os.path.expanduser(name))
        yield path if last.endswith(".py") else os.path.join(path, f"{last}.py")
    if not os.path.isabs(name) and name.count("/") <= 1:
        names = [name.replace("/", "--")] if "/" in name else [f"evaluate-{kind}--{name}" for kind in KINDS]
        for one in names:
            kept = (_find_modules() / "metrics" / one).glob(f"*/{last}.py")
            yield from map(str, sorted(kept, key=lambda path: path.stat().st_mtime, reverse=True))


def _find_modules() -> Path:
    """Find the folder where ``evaluate`` keeps scripts, as its ``config`` does; the package is not imported."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("HF_HOME", os.path.join(cache_home, "huggingface"))
    modules = os.environ.get("HF_MODULES_CACHE", os.path.join(home, "modules"))
    return Path(os.path.expanduser(modules)) / "evaluate_modules"


def load_script(script: MetricScript) -> ScriptMetric:
    """Load a trusted script now, so that what it lacks is known before anything is asked."""
    _load_script(script)
    return ScriptMetric(script)


@cache
def _load_script(script: MetricScript) -> Callable[..., object]:
    """Load the ``compute`` of a script; what is run is what was hashed."""
    if sha256(Path(script.path).read_bytes()).hexdigest() != script.sha256:
        raise EvalError(f"{script.path} changed after it was hashed; run again")
    try:
        made: object = require("evaluate", "lm-eval").load(script.path, keep_in_memory=True)
    except EvalError:
        raise
    except Exception as wrong:
        raise EvalError(f"{script.path} cannot be run: {type(wrong).__name__}: {wrong}") from wrong
    compute: object = getattr(made, "compute", None)
    if not callable(compute):
        raise EvalError(f"expected a metric of Hugging Face's evaluate in {script.path}, found {made!r}")
    return compute
