"""One task with canned answers, put through lm-eval 0.4.13 and through evalcore; and how close is the same."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose, isnan

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["DISABLE_MULTIPROC"] = "1"

pytest.importorskip("lm_eval")

import datasets
from lm_eval.api.group import Group as LmGroup
from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask
from lm_eval.config.group import AggMetricConfig
from lm_eval.evaluator import evaluate

from evalcore import (
    EVALCORE,
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    Answer,
    Generate,
    Instance,
    LogLikelihood,
    MetricSpec,
    OutputType,
    Pipeline,
    Report,
    Rolling,
    Sample,
    Step,
    Tables,
    Task,
    TaskReport,
    build_report,
    freeze_options,
    report_task,
    score_task,
)
from evalcore.groups import Group, GroupMetric, Leaf, Tree
from evalcore.lm_eval import LM_EVAL_0_4_13, lm_eval_results
from evalcore.stats import Inference, Resampling

logging.getLogger("lm_eval").setLevel(logging.CRITICAL)

Row = dict[str, object]
NOT_NUMBERS = ("name", "alias", "sample_len", "sample_count")
SPEC_KEYS = ("metric", "aggregation", "higher_is_better", "hf_evaluate")


@dataclass(frozen=True)
class Case:
    """A task in lm-eval's words, and the replies of a model: (document, idx) -> one per repeat."""

    name: str
    output_type: str
    rows: Sequence[Row]
    replies: Mapping[tuple[int, int], Sequence[object]]
    metrics: Sequence[Row] | None = None
    filters: Sequence[Row] | None = None
    process_results: Callable[..., object] | None = None
    repeats: int = 1
    config: Mapping[str, object] = field(default_factory=dict)


# --- lm-eval ------------------------------------------------------------------------------------------------


class Canned(LM):
    """A model that knows its answers by heart."""

    def __init__(self, cases: Sequence[Case]) -> None:
        super().__init__()
        self.left = {(c.name, *place): list(given) for c in cases for place, given in c.replies.items()}

    def _answers(self, requests: Sequence[object]) -> list[object]:
        return [self.left[(one.task_name, one.doc_id, one.idx)].pop(0) for one in requests]

    loglikelihood = loglikelihood_rolling = generate_until = _answers


def quiet(function: Callable[..., object], *args: object, **named: object) -> object:
    """Call it without its prints and progress bars."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return function(*args, **named)


def lm_task(case: Case) -> ConfigurableTask:
    config: Row = {
        "task": case.name,
        "dataset_path": "none",
        "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list([dict(row) for row in case.rows])},
        "test_split": "test",
        "output_type": case.output_type,
        "doc_to_text": "question",
        "doc_to_target": "target",
        "repeats": case.repeats,
        "metadata": {"version": 1.5},
        **({"doc_to_choice": "choices"} if case.output_type == "multiple_choice" else {}),
        **({"metric_list": [dict(one) for one in case.metrics]} if case.metrics is not None else {}),
        **({"filter_list": case.filters} if case.filters is not None else {}),
        **({"process_results": case.process_results} if case.process_results is not None else {}),
        **case.config,
    }
    return quiet(ConfigurableTask, config=config)


def run_lm_eval(
    *cases: Case, groups: Mapping[str, LmGroup] | None = None, draws: int = 2000, limit: float | None = None
) -> Row:
    tasks = {case.name: lm_task(case) for case in cases}
    for group in (groups or {}).values():
        for name in [name for name in group.child_names if group.get(name) is None]:
            group._children[name] = tasks[name]
    given = {"tasks": tasks, "groups": dict(groups or {})}
    return quiet(evaluate, lm=Canned(cases), task_dict=given, bootstrap_iters=draws, limit=limit)


def lm_group(name: str, children: Sequence[str | LmGroup], metrics: Sequence[Row] = (), **more: object) -> LmGroup:
    """A group whose tasks are named now and put in by ``run_lm_eval``."""
    group = LmGroup(name, aggregate_metric_list=[AggMetricConfig(**one) for one in metrics] or None, **more)
    for child in children:
        group._children[child if isinstance(child, str) else child.name] = None if isinstance(child, str) else child
    return group


# --- evalcore -----------------------------------------------------------------------------------------------


def spec_of(one: Row) -> MetricSpec:
    given = {key: value for key, value in one.items() if key not in SPEC_KEYS}
    return MetricSpec(
        str(one["metric"]), one.get("aggregation"), (), one.get("higher_is_better"), freeze_options(given)
    )


def pipeline_of(one: Row) -> Pipeline:
    steps = [dict(step) for step in one["filter"]]
    return Pipeline(str(one["name"]), tuple(Step.of(step.pop("function"), **step) for step in steps))


def our_task(case: Case) -> Task:
    return Task(
        case.name,
        OutputType(case.output_type),
        tuple(map(spec_of, case.metrics or ())),
        tuple(map(pipeline_of, case.filters or ())),
        case.process_results,
        alias=case.config.get("task_alias"),
        version=1.5,
        num_fewshot=case.config.get("num_fewshot"),
    )


def our_samples(case: Case) -> list[Sample]:
    return [
        Sample(
            i,
            gold=tuple(row["target"]) if isinstance(row.get("target"), list) else row.get("target"),
            choices=tuple(row.get("choices") or ()),
            doc=json.dumps(row).encode(),
        )
        for i, row in enumerate(case.rows)
    ]


def our_answers(case: Case) -> list[Answer]:
    def request(doc: int) -> object:
        if case.output_type == GENERATE_UNTIL:
            return Generate("?")
        return Rolling("?") if case.output_type == LOGLIKELIHOOD_ROLLING else LogLikelihood("?", "!")

    return [
        Answer(Instance(case.name, doc, idx, request(doc), case.repeats), tuple(given))
        for (doc, idx), given in case.replies.items()
    ]


def our_report(case: Case, tables: Tables = LM_EVAL_0_4_13, *, draws: int | None = 2000) -> TaskReport:
    scored = score_task(our_task(case), our_samples(case), our_answers(case), tables=tables)
    return report_task(scored, tables=tables, inference=Inference(resampling=Resampling(draws)))


def run_evalcore(
    *cases: Case,
    trees: Sequence[Tree[None]] = (),
    tables: Tables = LM_EVAL_0_4_13,
    draws: int | None = 2000,
) -> Row:
    report = build_report([our_report(c, tables, draws=draws) for c in cases], trees, tables=tables)
    return lm_eval_results(report)


def our_group(
    name: str, children: Sequence[str | Group[None]], metrics: Sequence[Row] = (), **more: object
) -> Group[None]:
    specs = []
    for one in metrics:
        filters = one.get("filter_list")
        specs.append(
            GroupMetric(
                one["metric"],
                (filters,) if isinstance(filters, str) else None if filters is None else tuple(filters),
                one.get("aggregation", "mean"),
                one.get("weight_by_size", True),
            )
        )
    nodes = tuple(Leaf(child, None) if isinstance(child, str) else child for child in children)
    return Group(name, nodes, tuple(specs), **more)


# --- the same -----------------------------------------------------------------------------------------------


def same_number(theirs: object, ours: object, *, stderr: bool = False, exact: bool = False) -> bool:
    """Contract A8: values to 1e-12 (0/1 scores to the last bit), errors to 1e-12 relative or 1e-15 absolute."""
    if isinstance(theirs, str) or isinstance(ours, str):
        return theirs == ours
    a, b = float(theirs), float(ours)
    if isnan(a) or isnan(b):
        return isnan(a) and isnan(b)
    if exact:
        return a == b
    return isclose(a, b, rel_tol=1e-12, abs_tol=1e-15 if stderr else 1e-12)


def assert_same_row(theirs: Row, ours: Row, *, exact: Sequence[str] = ()) -> None:
    """The same keys with the same numbers; ``exact`` names metrics whose scores are 0 or 1."""
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        if key in NOT_NUMBERS:
            assert ours[key] == value, key
        else:
            metric = key.partition(",")[0]
            stderr = metric.endswith("_stderr")
            assert same_number(value, ours[key], stderr=stderr, exact=metric in exact), (key, value, ours[key])


def assert_same_results(theirs: Row, ours: Row, *, exact: Sequence[str] = ()) -> None:
    """lm-eval's result schema key by key."""
    assert set(ours["results"]) == set(theirs["results"])
    for name, row in theirs["results"].items():
        assert_same_row(row, ours["results"][name], exact=exact)
    assert set(ours.get("groups", {})) == set(theirs.get("groups", {}))
    for name, row in theirs.get("groups", {}).items():
        assert_same_row(row, ours["groups"][name], exact=exact)
    for key in ("versions", "n-shot", "higher_is_better", "n-samples", "group_subtasks"):
        assert ours[key] == theirs[key], key


__all__ = [
    "EVALCORE",
    "LM_EVAL_0_4_13",
    "Canned",
    "Case",
    "Report",
    "assert_same_results",
    "assert_same_row",
    "lm_group",
    "lm_task",
    "our_answers",
    "our_group",
    "our_report",
    "our_samples",
    "our_task",
    "quiet",
    "run_evalcore",
    "run_lm_eval",
    "same_number",
]
