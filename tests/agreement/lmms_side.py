"""lmms-eval 0.7.3 itself: its task outputs as every rank fills them, gathered as it gathers them, and its own numbers.

What is heavy and plays no part (torch, transformers, accelerate) need not be installed: names imported from there are
empty classes, unless they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

INSTALL = "pip install --no-deps lmms_eval==0.7.3 loguru==0.7.3 pillow==13.0.0"
HEAVY = ("torch", "transformers", "accelerate")

pytest.importorskip("lmms_eval", reason=f"lmms-eval is not installed: {INSTALL}")
pytest.importorskip("evaluate")  # looks for torch, and must not find the stand-in

Row = dict[str, object]
Key = tuple[str, str]


class StandIn(ModuleType):
    """A module of a package that is not installed."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class StandIns(MetaPathFinder, Loader):
    """The last to be asked for a module, so that what is installed is what is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in HEAVY else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


sys.meta_path.append(finder := StandIns())
theirs = import_module("lmms_eval.evaluator_utils")
metrics = import_module("lmms_eval.api.metrics")
make_table = import_module("lmms_eval.utils").make_table
ConfigurableGroup = import_module("lmms_eval.api.group").ConfigurableGroup
LmmsTask = import_module("lmms_eval.api.task").Task
import_module("loguru").logger.disable("lmms_eval")
sys.meta_path.remove(finder)
for standing in [name for name, module in sys.modules.items() if isinstance(module, StandIn)]:
    del sys.modules[standing]

RESAMPLED = (metrics.median, metrics.perplexity, metrics.f1_score, metrics.matthews_corrcoef, metrics.bleu)
"""Functions of its own that it resamples, in processes of their own."""


@dataclass
class Drawn:
    """A task as drawn: what each document emits under each filter, and what the task says about itself."""

    name: str
    docs: list[dict[str, dict[str, object]]]  # document -> filter -> metric -> score
    functions: dict[str, Callable[..., object]]
    config: Row = field(default_factory=dict)
    higher: dict[str, bool] = field(default_factory=dict)
    version: object = 1.0
    log: bool = True
    repeats: dict[Key, list[list[object]]] = field(default_factory=dict)  # by document


class OwnTask(LmmsTask):  # type: ignore[misc, valid-type]
    """A task of lmms-eval's class, which says what was drawn."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.VERSION, self.args = drawn, drawn.version, "command line"

    task_name = property(lambda self: self.drawn.name)

    def aggregation(self) -> Mapping[str, Callable[..., object]]:
        return self.drawn.functions

    def higher_is_better(self) -> Mapping[str, bool]:
        return self.drawn.higher

    def dump_config(self) -> Row:
        return {"task": self.drawn.name, "num_fewshot": 0, **self.drawn.config}


OwnTask.__abstractmethods__ = frozenset()


def fill_outputs(drawn: Drawn, size: int = 1, padding: Sequence[int] = ()) -> list[object]:
    """Fill every rank's output as lmms-eval does: every size-th document, filter by filter, metrics as they come.

    ``padding``: how often each rank repeats its last document.
    """
    outputs = []
    for rank in range(size):
        output = theirs.TaskOutput.from_taskdict(drawn.name, OwnTask(drawn))
        mine = list(range(rank, len(drawn.docs), size))
        mine += mine[-1:] * (padding[rank] if padding else 0)
        for name in drawn.docs[0]:
            for doc_id in mine:
                found = deepcopy(drawn.docs[doc_id][name])
                if drawn.log:
                    output.logged_samples.append({"doc_id": doc_id, "doc": {"n": doc_id}, "target": "x", **found})
                for metric, value in found.items():
                    output.sample_metrics[metric, name].append(value)
                    if (metric, name) in drawn.repeats:
                        output.per_sample_metrics[metric, name].append(deepcopy(drawn.repeats[metric, name][doc_id]))
        outputs.append(output)
    return outputs


def gather_outputs(ranks: Sequence[object]) -> object:
    """Gather the outputs of a task as lmms-eval does: rank after rank, under every key that any rank has."""
    first, *others = deepcopy(list(ranks))
    if not others:
        return first
    first.logged_samples = [row for one in (first, *others) for row in one.logged_samples]
    for part in ("sample_metrics", "per_sample_metrics"):
        lists = [getattr(one, part) for one in (first, *others)]
        for key in sorted({key for one in lists for key in one}, key=str):
            getattr(first, part)[key] = [item for one in deepcopy(lists) for item in one.get(key, [])]
    return first


def calculate(output: object, draws: int = 0) -> object:
    """Let lmms-eval calculate what its consolidate step lists; what it would resample, with so many draws."""
    output = deepcopy(output)
    functions, every = output.task.aggregation(), output.sample_metrics
    for key, items in every.items():
        output.sample_metrics = {key: items}
        output.calculate_aggregate_metric(draws if functions.get(key[0]) in RESAMPLED else 1000)
    output.sample_metrics = every
    output.calculate_clt_aggregate_metric()
    output.calculate_stability_metrics()
    return output
