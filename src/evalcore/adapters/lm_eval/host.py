"""The parts of lm-eval 0.4.13 that the adapter uses, as small protocols, and the only place that imports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from types import ModuleType
from typing import Protocol

from evalcore.core.records.errors import EvalError, require


class LmInstance(Protocol):
    """One request, with the model's replies."""

    request_type: str
    doc: object
    idx: int
    doc_id: int | None
    repeats: int | None
    resps: list[object]
    arguments: Sequence[object]

    @property
    def args(self) -> Sequence[object]: ...


class LmConfig(Protocol):
    """What a task's config says about scoring."""

    metric_list: Sequence[Mapping[str, object]] | None
    process_results: object
    doc_to_choice: object
    doc_to_target: object


class LmFilters(Protocol):
    """A named chain of filters, each a function that makes one."""

    name: str
    filters: Sequence[Callable[[], object]]


class LmTask(Protocol):
    """A task made from YAML or from a Python class."""

    VERSION: str | int | float | None
    OUTPUT_TYPE: str | None

    @property
    def config(self) -> LmConfig: ...
    @property
    def instances(self) -> Sequence[LmInstance] | None: ...
    @property
    def eval_docs(self) -> Sized: ...
    def set_fewshot_seed(self, seed: int | None = None) -> None: ...
    def build_all_requests(self, **named: object) -> None: ...
    def doc_to_target(self, doc: object) -> object: ...
    def process_results(self, doc: object, results: list[object]) -> Mapping[str, object]: ...
    def aggregation(self) -> Mapping[str, Callable[..., object]]: ...
    def higher_is_better(self) -> Mapping[str, bool]: ...
    def dump_config(self) -> Mapping[str, object]: ...


class LmGroupMetric(Protocol):
    """How a group makes one number of its tasks' metric."""

    metric: str
    filter_list: Sequence[str] | None
    aggregation: str | Callable[..., object]
    weight_by_size: bool


LmChild = object
"""A task or a group; its attributes say which."""


class LmGroup(Protocol):
    """A named collection of tasks and groups."""

    name: str
    alias: str | None
    aggregate_metric_list: Sequence[LmGroupMetric] | None
    metadata: Mapping[str, object] | None

    @property
    def child_names(self) -> list[str]: ...
    @property
    def version(self) -> str: ...
    def __iter__(self) -> Iterator[LmChild]: ...


class LmModel(Protocol):
    """What running requests on one of several ranks needs of a model."""

    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    def gather_object(self, obj: object, dst: int = 0) -> Sequence[object] | None: ...
    def barrier(self) -> None: ...


TaskDict = Mapping[str, object] | Mapping[object, object]
"""What ``TaskManager.load`` returns, the older nested mapping, or plain tasks by name."""


def import_lm_eval(name: str) -> ModuleType:
    """Import one of lm-eval's modules; if it is missing, say how to install it."""
    return require(f"lm_eval.{name}", "lm-eval")


def read_task_dict(given: TaskDict) -> tuple[dict[str, LmTask], dict[str, LmGroup]]:
    """Read tasks and groups by name from any form that lm-eval's ``evaluate`` takes."""
    known: Mapping[object, object] = dict(given.items())
    if "tasks" not in known:
        groups, tasks = import_lm_eval("evaluator_utils")._handle_back_comp(dict(known))
        return dict(tasks), dict(groups)
    tasks, groups = known["tasks"], known.get("groups") or {}
    if not isinstance(tasks, Mapping) or not isinstance(groups, Mapping):
        raise EvalError(f"expected what TaskManager().load(...) returns, got {given!r:.80}")
    return dict(tasks), dict(groups)
