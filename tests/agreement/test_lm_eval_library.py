"""lm-eval's task library through its TaskManager and through ours: names, kinds, configs, trees.

By default some of its folders; all of it among the slow tests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from counting import count_steps

pytest.importorskip("lm_eval")

from lm_eval.api import task as lm_task
from lm_eval.api.group import Group as TheirGroup
from lm_eval.api.task import Task
from lm_eval.tasks import TaskManager, _factory
from lm_eval.tasks._index import Entry, Kind

from evalcore import EvalError
from evalcore.core.lm_eval.metrics import list_directions
from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.groups import Leaf
from evalcore.shell.config.yaml_file import FunctionTag
from evalcore.shell.tasks.code import FunctionRef, GroupFunction
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.library.index import find_library, read_entry
from evalcore.shell.tasks.resolution import resolve_specs

SAMPLE = ("arc", "bbh", "blimp", "gsm8k", "leaderboard", "mmlu", "super_glue", "tinyBenchmarks")
WHOLE = pytest.param((), id="whole", marks=pytest.mark.slow)

STRUCTURAL = ("tag", "group", "task_list")
KINDS = {Kind.TASK: "task", Kind.PY_TASK: "py_task", Kind.GROUP: "group", Kind.TAG: "tag"}

# What docs/tasks.md lists under "What differs from lm-eval", name by name.
REFUSED_BY_BOTH = {"flan_held_in", "t0_eval"}
REFUSED_BY_LM_EVAL = {"toksuite_abridged": "unhashable type: 'list'"}
DIFFERENT_TREES = {"openllm": ["/openllm: children"], "code2text": ["/code2text: metrics"]}


class Named:
    """A function that a group aggregates by, as lm-eval would import it."""

    def __init__(self, path):
        self.path = path

    def __call__(self, values, sizes):
        raise NotImplementedError


class Kept(Task):
    """A task that keeps its config and loads nothing."""

    def __init__(self, config):
        self._kept = dict(config)

    task_name = property(lambda self: self._kept["task"])


for _abstract in list(Kept.__abstractmethods__):
    setattr(Kept, _abstract, None)
Kept.__abstractmethods__ = frozenset()


@pytest.fixture(scope="module", params=[pytest.param(SAMPLE, id="sample"), WHOLE])
def folders(request):
    """Folders of lm-eval's library; none stand for all of it."""
    return [find_library() / name for name in request.param]


@pytest.fixture(scope="module")
def theirs(folders):
    logging.disable(logging.CRITICAL)
    yield TaskManager(include_path=folders, include_defaults=False) if folders else TaskManager()
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def built(theirs):
    """lm-eval's factory with tasks that load nothing and functions that stay paths."""
    known = {entry.yaml_path: _named(entry.cfg) for entry in theirs.task_index.values() if entry.yaml_path}
    patch = pytest.MonkeyPatch()
    patch.setattr(_factory, "ConfigurableTask", Kept)
    patch.setattr(_factory, "load_yaml", lambda path, resolve_func: known[path])
    patch.setattr(_factory.TaskFactory, "_build_task", _build_task)
    yield theirs
    patch.undo()


def _named(config):
    """A group's own aggregation as something that can be called, which lm-eval checks; also in groups inside it."""
    if not isinstance(config, dict) or "group" not in config:
        return config
    metrics, listed = config.get("aggregate_metric_list"), config.get("task")
    made = dict(config)
    if isinstance(metrics, list):
        made["aggregate_metric_list"] = [
            {**one, "aggregation": Named(one["aggregation"])} if "/" in one.get("aggregation", "") else one
            for one in metrics
        ]
    if isinstance(listed, list):
        made["task"] = [_named(one) for one in listed]
    return made


def _build_task(self, entry, overrides):
    """As lm-eval's own, up to the point where it makes the task; a class is one more key."""
    config = self._load_full_config(entry, overrides)
    return Kept({key: value for key, value in config.items() if key not in STRUCTURAL})


@pytest.fixture(scope="module")
def ours(folders):
    return build_index(folders or [find_library()])


def plain(value: object) -> object:
    """Functions as lm-eval writes them when it does not run them."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, FunctionTag):
        return str(Path(value.path).parent / value.name)
    return value


def same(mine: object, other: object) -> bool:
    """Equal values; a function we found is the one that lm-eval would import."""
    if isinstance(mine, FunctionRef):
        return isinstance(other, str) and (mine.path, mine.name) == imported(other)
    if isinstance(mine, Mapping) and isinstance(other, Mapping):
        return mine.keys() == other.keys() and all(same(mine[key], other[key]) for key in mine)
    if isinstance(mine, list | tuple) and isinstance(other, list | tuple):
        return len(mine) == len(other) and all(map(same, mine, other))
    return type(mine) is type(other) and mine == other


def imported(path: str) -> tuple[str, str]:
    """Where lm-eval's loader would find ``folder/module.name``: beside the YAML, else among the modules."""
    folder, _, dotted = path.rpartition("/")
    module, _, name = dotted.rpartition(".")
    beside = Path(folder, *module.split(".")).with_suffix(".py")
    if beside.exists():
        return str(beside.resolve()), name
    spec = find_spec(module)
    return str(spec.origin if spec else None), name


def without_source(config: Mapping[str, object]) -> dict[str, object]:
    """lm-eval notes the absolute path of the YAML in metadata; ours is in ``Resolved.sources``."""
    metadata = {key: value for key, value in config["metadata"].items() if key != "config_source"}
    return {**config, "metadata": metadata}


def test_every_name_has_the_same_kind(theirs, ours, folders):
    expected = {name: KINDS[entry.kind] for name, entry in theirs.task_index.items()}
    assert len(expected) > (600 if folders else 14_000)
    assert {name: entry.kind for name, entry in ours.entries.items()} == expected


def test_every_file_says_the_same(theirs, ours):
    for name, entry in theirs.task_index.items():
        mine = ours.entries[name]
        assert mine.path == (str(entry.yaml_path) if entry.yaml_path else None)
        if entry.cfg is not None:
            assert plain(read_entry(ours, name)) == entry.cfg, name
        if entry.kind is Kind.TAG:
            assert mine.tags == tuple(sorted(entry.tags))


def test_every_task_resolves_to_the_same_config(built, ours, monkeypatch):
    names = [name for name, entry in built.task_index.items() if entry.kind in (Kind.TASK, Kind.PY_TASK)]
    found = resolve_specs(ours, names, metadata={"run": 1})
    assert sorted(found.tasks) == sorted(names)
    monkeypatch.setattr(built._factory, "_meta", {"run": 1})
    for name in names:
        other = built._factory.build(built.task_index[name], registry=built.task_index)
        assert same(found.tasks[name], without_source(other._kept)), name
        assert found.sources[name] == other._kept["metadata"]["config_source"]


def test_every_tag_stands_for_the_same_tasks(built, ours):
    for name, entry in built.task_index.items():
        if entry.kind is Kind.TAG:
            other = built._factory.build(entry, registry=built.task_index)
            assert [tree.name for tree in resolve_specs(ours, [name]).trees] == [one.task_name for one in other], name


def differences(mine, other, path="") -> list[str]:
    """Where two trees differ: names and order of children, aliases, metadata, metrics, leaf configs."""
    here = f"{path}/{mine.name}"
    if isinstance(mine, Leaf):
        fine = isinstance(other, Kept) and same(mine.value, without_source(other._kept))
        return [] if fine else [f"{here}: config"]
    if not isinstance(other, TheirGroup):
        return [f"{here}: a group here only"]
    told = []
    metadata = {key: value for key, value in (other.metadata or {}).items() if key != "config_source"}
    if (mine.name, mine.alias, dict(mine.metadata)) != (other.name, other.alias, metadata):
        told.append(f"{here}: name, alias or metadata")
    if [_spec(one) for one in mine.metrics] != [_their_spec(one) for one in other.aggregate_metric_list or []]:
        told.append(f"{here}: metrics")
    names = [child.name for child in mine.children]
    if names != other.child_names:
        return [*told, f"{here}: children"]
    return told + [one for child in mine.children for one in differences(child, other.get(child.name), here)]


def _spec(metric) -> tuple[object, ...]:
    how = metric.aggregation
    name = f"{Path(how.ref.path).with_suffix('')}.{how.ref.name}" if isinstance(how, GroupFunction) else how
    return metric.metric, metric.filters, name, metric.weight_by_size


def _their_spec(metric) -> tuple[object, ...]:
    """lm-eval weighs by size if the value is true in Python's eyes; its library has a "truez"."""
    how = metric.aggregation
    filters = None if metric.filter_list is None else tuple(metric.filter_list)
    return metric.metric, filters, how.path if isinstance(how, Named) else how, bool(metric.weight_by_size)


def test_every_group_is_the_same_tree(built, ours):
    found: dict[str, list[str]] = {}
    refused, theirs_refused = set(), {}
    for name, entry in built.task_index.items():
        if entry.kind is not Kind.GROUP:
            continue
        try:
            (mine,) = resolve_specs(ours, [name]).trees
        except EvalError:
            refused.add(name)
            continue
        try:
            other = built._factory.build(entry, registry=dict(built.task_index))
        except TypeError as wrong:
            theirs_refused[name] = str(wrong)
            continue
        told = differences(mine, other)
        if told:
            found[name] = told
    here = built.task_index.keys()
    assert refused == REFUSED_BY_BOTH & here
    assert theirs_refused == {name: why for name, why in REFUSED_BY_LM_EVAL.items() if name in here}
    assert found == {name: told for name, told in DIFFERENT_TREES.items() if name in here}


CHANGED = (
    {"group": "mine", "num_fewshot": 3, "task": ["mmlu_continuation"]},
    {"group": "mine", "task": [{"group": "mmlu_continuation", "num_fewshot": 3}, "arc_easy"]},
    {"group": "mine", "num_fewshot": 1, "task": ["arc_easy", {"group": "sub", "task": ["mmlu_continuation"]}]},
    {"group": "mine", "num_fewshot": 1, "task": [{"group": "sub", "task": [{"group": "in", "task": ["arc_easy"]}]}]},
)


@pytest.mark.parametrize("spec", CHANGED, ids=str)
def test_names_inside_a_group_that_is_referenced_with_changes(built, ours, spec):
    """A known group keeps its name, and so do the groups that it defines (mmlu_continuation::stem)."""
    (mine,) = resolve_specs(ours, [spec]).trees
    entry = Entry(name="mine", kind=Kind.GROUP, yaml_path=None, cfg=spec)
    other = built._factory.build(entry, registry=dict(built.task_index))
    assert list_names(mine, "children") == list_names(other, "_children")


def list_names(tree, key: str) -> list[str]:
    """Every name of a tree, a group before its children."""
    below = getattr(tree, key, ())
    name = tree.task_name if isinstance(tree, Kept) else tree.name
    return [name, *(one for child in getattr(below, "values", lambda: below)() for one in list_names(child, key))]


class NoDataError(Exception):
    """Raised where lm-eval would load data."""


def _refuse_data(self, *_):
    raise NoDataError


def _as_functions(metrics):
    """Metrics and aggregations of a task's own as functions of their names."""
    return [{key: _as_function(one) for key, one in entry.items()} for entry in metrics]


def _as_function(value):
    if not isinstance(value, str) or "/" not in value:
        return value
    return type(value.rpartition(".")[2], (), {"__call__": lambda self, *given: 0.0})


def test_every_task_lists_the_same_directions(built, monkeypatch):
    """What ``higher_is_better`` of a results file says, humaneval_plus among the tasks of the slow test."""
    monkeypatch.setattr(lm_task, "get_metric", lambda *_: None)  # which may ask the network
    monkeypatch.setattr(lm_task.ConfigurableTask, "download", _refuse_data)
    count = 0
    for name, entry in built.task_index.items():
        config = entry.cfg or {}
        if entry.kind is not Kind.TASK or not isinstance(config.get("metric_list"), list):
            continue
        config = {"task": name, "metric_list": _as_functions(config["metric_list"])} | {
            key: config[key] for key in ("output_type", "process_results") if key in config
        }
        made = lm_task.ConfigurableTask.__new__(lm_task.ConfigurableTask)
        try:
            made.__init__(config=dict(config))
        except NoDataError:
            count += 1
        except KeyError:  # an unknown metric without an aggregation: lm-eval refuses the task
            continue
        config.pop("process_results", None)
        ours = dict(list_directions(task_from_config(config), ()))
        assert list(ours.items()) == list(made._higher_is_better.items()), name
    assert count > 100


@pytest.mark.parametrize("folders", [WHOLE], indirect=True)
def test_why_both_refuse(built, ours):
    """lm-eval knows no include in a listed task, and no listed task without a name; the first also names one twice."""
    from lm_eval.config.task import TaskConfig

    flan = built._factory.build(built.task_index["flan_held_in"], registry=dict(built.task_index))
    with pytest.raises(TypeError, match="include"):
        TaskConfig(**flan.get_all_tasks()[0]._kept)
    with pytest.raises(EvalError, match=r"'flan_held_in::rte_flan::rte_prompt-1' is defined twice, and differently"):
        resolve_specs(ours, "flan_held_in")
    with pytest.raises(ValueError, match="must have 'task' or 'group'"):
        built._factory.build(built.task_index["t0_eval"], registry=dict(built.task_index))
    with pytest.raises(EvalError, match="expected a name, or a dict with task or group"):
        resolve_specs(ours, "t0_eval")


@pytest.mark.parametrize("folders", [WHOLE], indirect=True)
def test_where_lm_eval_loses_tasks(built, ours):
    """openllm changes the tag truthfulqa: lm-eval gives its three tasks the tag's name, and keeps the last."""
    other = built._factory.build(built.task_index["openllm"], registry=dict(built.task_index))
    (mine,) = resolve_specs(ours, "openllm").trees
    names = [child.name for child in mine.children]
    assert [name for name in names if name not in other.child_names] == [
        "truthfulqa_gen",
        "truthfulqa_mc1",
        "truthfulqa_mc2",
    ]
    assert [name for name in other.child_names if name not in names] == ["truthfulqa"]


def test_an_index_takes_a_few_steps_a_name_and_from_its_cache_fewer(tmp_path):
    """`python -m bench index` has the ratios to lm-eval's; a file is read by what it says first, and a kept index not at all."""
    folder = find_library() / "mmlu"
    names = len(build_index([folder], cache=tmp_path).entries)
    assert names > 400
    assert count_steps(lambda: build_index([folder])) < 600 * names  # 397 of them; lm-eval's index takes 5,600
    assert count_steps(lambda: build_index([folder], cache=tmp_path)) < 30 * names  # 12 of them
