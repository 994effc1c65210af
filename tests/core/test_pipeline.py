"""The pipe on one page: five verbs, called in one order, from one file; chunks go through any kind of map."""

import ast
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest

import evalcore
from evalcore import (
    GENERATE_UNTIL,
    Answer,
    Failure,
    Generate,
    Instance,
    MetricSpec,
    Pipeline,
    Sample,
    Step,
    Task,
    group_by_doc,
    score_task,
)
from evalcore.core import pipeline
from evalcore.core.groups.tree import leaves
from evalcore.logs import request_table
from evalcore.shell.cli import main

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"
SOURCE = Path(evalcore.__file__).parent
VERBS = ("group_by_doc", "score_batch", "reduce_repeats", "aggregate_metric", "fold_group")


class Recorder:
    """Takes the place of the five verbs, and knows the task and pipeline of a column by its identity."""

    def __init__(self):
        self.real = {verb: getattr(pipeline, verb) for verb in VERBS}
        self.calls, self.grouped, self.owners, self.kept = defaultdict(list), set(), {}, []

    def own(self, column, where):
        self.kept.append(column)  # so that no other object gets its id
        self.owners[id(column)] = where

    def group_by_doc(self, items):
        table = self.real["group_by_doc"](items)
        if len(table.asked.docs.ints if items is table else table):  # a run rehearses its tasks without documents
            self.grouped.add(table.task)
        return table

    def score_batch(self, bound, batch):
        scores, where = self.real["score_batch"](bound, batch), (bound.task.name, bound.pipeline.name)
        if len(batch.samples):
            first = where[0] in self.grouped and where not in self.calls
            self.calls[where] += [*["group_by_doc"] * first, "score_batch"]
            for each in scores:
                self.own(each.column, where)
        return scores

    def reduce_repeats(self, reducer, columns, **options):
        [where] = {self.owners[id(column)] for column in columns}
        self.calls[where].append("reduce_repeats")
        column = self.real["reduce_repeats"](reducer, columns, **options)
        self.own(column, where)
        return column

    def aggregate_metric(self, aggregation, column, **options):
        if len(column):
            self.calls[self.owners[id(column)]].append("aggregate_metric")
        return self.real["aggregate_metric"](aggregation, column, **options)

    def fold_group(self, tree, leaf, group):
        names = {node.name for node in leaves(tree)}
        for where, verbs in self.calls.items():
            verbs.extend(["fold_group"] * (where[0] in names))
        return self.real["fold_group"](tree, leaf, group)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """For each task and pipeline of the quickstart, the verbs as they were called."""
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        for verb in VERBS:
            patch.setattr(pipeline, verb, getattr(recorder, verb))
        assert main(["run", str(QUICKSTART), "--output_path", str(tmp_path_factory.mktemp("run")), "--quiet"]) == 0
    return recorder.calls


def test_every_task_and_pipeline_of_the_quickstart_takes_the_five_steps_in_order(calls):
    assert len(calls) == 9
    assert len({task for task, _ in calls}) == 7
    for where, verbs in calls.items():
        assert tuple(verb for verb, _ in groupby(verbs)) == VERBS, where


def test_the_verbs_are_called_from_the_pipe_alone():
    """``fold_group`` is also the recursion of algebras that make no number; adapters and laws are hosts."""
    called = {
        (name, file.relative_to(SOURCE).as_posix())
        for room in ("core", "shell")
        for file in (SOURCE / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and (name := getattr(node.func, "id", None)) in {*VERBS, "report_groups"}
    }
    assert {(name, file) for name, file in called if name != "fold_group"} == {
        (name, "core/pipeline.py") for name in (*VERBS[:4], "report_groups")
    }
    assert ("fold_group", "core/pipeline.py") in called


def test_a_table_is_grouped_already():
    table = request_table("t", [0, 0, 1], [0, 1, 0]).answered(["a", "b", Failure("gone")])
    assert group_by_doc(table) is table
    assert pipeline.tabulate_answers(table) is table


def test_chunks_go_through_any_map():
    """A map that works backwards, and sees chunks of whole documents under each pipeline."""
    seen = []

    def backwards(function, chunks):
        seen.extend(chunks)
        return [function(chunk) for chunk in reversed(seen)]

    pipelines = Pipeline("none", (Step.of("take_first"),)), Pipeline("low", (Step.of("lowercase"),))
    task = Task("t", GENERATE_UNTIL, (MetricSpec("exact_match"),), pipelines)
    samples = [Sample(i, gold="a") for i in range(5)]
    answers = [Answer(Instance("t", i, 0, Generate("?")), ("aA"[i % 2],)) for i in range(5)]
    assert score_task(task, samples, answers, chunk=2, map=backwards) == score_task(task, samples, answers)
    assert [(chunk.bound.pipeline.name, len(chunk.docs)) for chunk in seen] == [
        (name, count) for name in ("none", "low") for count in (2, 2, 1)
    ]
