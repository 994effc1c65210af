"""Logs that lm-eval itself wrote, read as answers: what it asked and heard, and golds that score to its own numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import msgspec
import pytest
from both_sides import LM_EVAL_0_4_13, Case, our_samples, our_task, run_lm_eval
from test_lm_eval_files import CASES, CHOICES, KWARGS, OWN, REPEATS, ROLLING, SEVERAL, TEXTS, metrics, tracked

from evalcore import Answer, Instance, Sample, report_task, score_task
from evalcore.core.records.request import GENERATE_UNTIL, Failure
from evalcore.core.records.task import MetricKey
from evalcore.shell.logs.lm_eval.log import SAMPLES
from evalcore.shell.logs.log import Logged, LogTask
from evalcore.shell.logs.open import open_logs

Row = dict[str, object]
TWO = {(doc, i): [(-1.0 - ((doc + i) % 3), i == 0)] for doc in range(4) for i in range(2)}

TEXT_TARGETS = Case(
    "text_targets",
    "multiple_choice",
    [{"question": f"q{i}?", "choices": ["no", "yes"], "target": ["no", "yes"][i % 2]} for i in range(4)],
    TWO,
    metrics("acc", "acc_norm"),
    config={"target_delimiter": ": "},
)
NUMBERS = Case(  # choices that are numbers, so that a target of 1 may be an index or a text
    "numbers",
    "multiple_choice",
    [{"question": f"q{i}?", "choices": ["1", "0"], "target": str(i % 2)} for i in range(4)],
    TWO,
    metrics("acc"),
)
INDEXES = replace(
    NUMBERS,
    name="indexes",
    rows=[{**row, "target": int(str(row["target"]))} for row in NUMBERS.rows],
)
SEVERAL_GOLDS = Case(
    "several_golds",
    "multiple_choice",
    [{"question": f"q{i}?", "choices": ["a", "b"], "target": [0, 1] if i else [1]} for i in range(4)],
    TWO,
    metrics("acc"),
)
INPUTS = Case(
    "inputs",
    "multiple_choice",
    [{"question": i % 2, "choices": [f"Ann {i}", f"Bo {i}"], "target": "went home"} for i in range(4)],
    TWO,
    metrics("acc"),
)
MUTUAL = Case(
    "mutual",
    "multiple_choice",
    [{"question": f"q{i}?", "choices": ["a", "bb"], "target": i % 2} for i in range(4)],
    {(doc, i): [(-1.0 - ((2 * doc + i) % 5), False)] for doc in range(4) for i in range(4)},
    metrics("acc", "acc_mutual_info"),
)
PICKED = Case(
    "picked",
    "generate_until",
    [{"question": f"q{i}?", "choices": ["red", "blue"], "target": i % 2} for i in range(4)],
    {(doc, 0): [["red", "blue", "blue", "blue"][doc]] for doc in range(4)},
    metrics("exact_match"),
    config={"doc_to_choice": "choices", "generation_kwargs": KWARGS},
)
NOT_FINITE = Case(
    "not_finite",
    "multiple_choice",
    CHOICES.rows,
    {(doc, i): [([-inf, nan, -1.0][(doc + i) % 3], False)] for doc in range(len(CHOICES.rows)) for i in range(2)},
    metrics("acc"),
)
ALL = (*CASES, TEXT_TARGETS, NUMBERS, INDEXES, SEVERAL_GOLDS, INPUTS, MUTUAL, PICKED, NOT_FINITE)


def written(folder: Path, *cases: Case) -> Row:
    return tracked(folder, run_lm_eval(*cases, draws=4), [case.name for case in cases])[0]


def read(folder: Path, **named: object) -> list[tuple[LogTask, list[Logged]]]:
    return [(task, list(task.rows())) for task in open_logs([folder], **named)]


def scored_again(case: Case, rows: Sequence[Logged]) -> dict[str, float | None]:
    """The numbers of a task from what the log holds: its golds, choices and replies."""
    samples = [Sample(one.doc_id, one.gold, one.choices, one.doc) for one in rows]
    answers = [
        Answer(Instance(case.name, one.doc_id, idx, one.requests[idx], len(replies)), replies)
        for one in rows
        for idx, replies in enumerate(one.replies)
    ]
    report = report_task(score_task(our_task(case), samples, answers, tables=LM_EVAL_0_4_13), tables=LM_EVAL_0_4_13)
    return {str(key): one.value for key, one in report.estimates}


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_what_was_asked_and_heard(case: Case, tmp_path: Path) -> None:
    theirs = written(tmp_path, case)
    [(task, rows)] = read(tmp_path)
    assert (task.name, task.output_type, task.reader) == (case.name, case.output_type, SAMPLES)
    assert task.config["task"] == case.name
    assert task.results["results"].keys() == theirs["results"].keys()
    assert [one.doc_id for one in rows] == list(range(len(case.rows)))
    assert [json.loads(one.doc) for one in rows] == [dict(row) for row in case.rows]
    if case.output_type == "multiple_choice":
        assert [list(one.choices) for one in rows] == [row["choices"] for row in case.rows]
    for one in rows:
        wanted = [case.replies[place] for place in sorted(case.replies) if place[0] == one.doc_id]
        heard = [[tuple(reply[:2]) if isinstance(reply, tuple) else reply for reply in each] for each in one.replies]
        assert str(heard) == str([list(each) for each in wanted])  # as text, in which NaN is itself
        assert len(one.requests) == len(wanted)
    [(_, bare)] = read(tmp_path, requests=False)
    assert repr(bare) == repr([msgspec.structs.replace(one, requests=()) for one in rows])


SCORED = [one for one in ALL if one not in (OWN, NOT_FINITE)]  # own code; and NaN, which evalcore does not score


@pytest.mark.parametrize("case", SCORED, ids=lambda case: case.name)
def test_golds_and_choices_score_to_their_numbers(case: Case, tmp_path: Path) -> None:
    theirs = written(tmp_path, case)["results"][case.name]
    [(_, rows)] = read(tmp_path)
    wanted = {key: one for key, one in theirs.items() if MetricKey.parse(key) and isinstance(one, float)}
    found = {key: one for key, one in scored_again(case, rows).items() if key in wanted}
    assert found.keys() == wanted.keys()
    assert wanted
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, rel=1e-12, nan_ok=True), key


@pytest.mark.parametrize("case", [CHOICES, TEXT_TARGETS, SEVERAL_GOLDS, INDEXES, INPUTS, SEVERAL, ROLLING, REPEATS])
def test_without_the_results_file(case: Case, tmp_path: Path) -> None:
    """The log alone: targets are read by their look, and of two inputs by the logged accuracy."""
    written(tmp_path, case)
    (results,) = tmp_path.rglob("results_*.json")
    results.unlink()
    [(task, rows)] = read(tmp_path)
    assert (task.name, task.output_type, task.config) == (case.name, case.output_type, {})
    if case is INPUTS:
        assert [one.gold for one in rows] == [row["question"] for row in case.rows]
        return
    delimiter = ":" if case is TEXT_TARGETS else ""  # all that a log alone cannot tell from a choice
    assert [[end.removeprefix(delimiter).strip() for end in one.choices] for one in rows] == [
        list(row.get("choices", [])) for row in case.rows
    ]
    if case is not TEXT_TARGETS:
        assert [one.gold for one in rows] == [one.gold for one in our_samples(case)]


def test_scores_and_filtered_replies_of_every_filter(tmp_path: Path) -> None:
    _, lines = tracked(tmp_path, run_lm_eval(TEXTS, draws=4), [TEXTS.name])
    [(_, rows)] = read(tmp_path, scores=True)
    logged = [json.loads(line) for line in lines[TEXTS.name]]
    for one in rows:
        mine = [row for row in logged if row["doc_id"] == one.doc_id]
        assert one.kept == {row["filter"]: row["filtered_resps"] for row in mine}
        assert one.scores == {f"{name},{row['filter']}": row[name] for row in mine for name in row["metrics"]}
    assert set(rows[0].kept) == {"strict", "raw"}
    [(_, plain)] = read(tmp_path)
    assert all(one.scores == {} and one.kept == {} for one in plain)


def test_a_reply_that_lm_eval_never_got_is_a_failure(tmp_path: Path) -> None:
    written(tmp_path, REPEATS)
    (log,) = tmp_path.rglob("samples_*.jsonl")
    first, *rest = log.read_text("utf-8").split("\n")
    row = json.loads(first)
    row["resps"][0][1] = None
    log.write_text("\n".join([json.dumps(row), *rest]), "utf-8")
    [(_, rows)] = read(tmp_path)
    assert rows[0].replies == (("0", Failure("the log has no reply")),)


def test_old_layouts_say_the_same(tmp_path: Path) -> None:
    """One log as lm-eval wrote it since 2023: in lines or as an array, arguments listed, numbers bare, of one request."""
    written(tmp_path / "new", CHOICES, TEXTS)
    for case in (CHOICES, TEXTS):
        [(_, new)] = [one for one in read(tmp_path / "new") if one[0].name == case.name]
        (log,) = (tmp_path / "new").rglob(f"samples_{case.name}_*.jsonl")
        rows = [json.loads(line) for line in log.read_text("utf-8").split("\n")[:-1]]
        rows = [row for row in rows if row["filter"] == rows[0]["filter"]]
        for row in rows:
            row["arguments"] = [list(one.values()) for one in row["arguments"].values()]
            del row["filter"], row["metrics"], row["doc_hash"], row["prompt_hash"], row["target_hash"]
            if case is CHOICES:
                row["resps"] = [[[float(v), g == "True"] for v, g in one] for one in row["resps"]]
        layouts = {
            "array": json.dumps(rows, indent=2, ensure_ascii=False),
            "compact": json.dumps(rows),
            "lines": "\n".join(map(json.dumps, rows)),
        }
        for name, text in layouts.items():
            path = tmp_path / f"{name}_{case.name}.jsonl"
            path.write_text(text, "utf-8")
            [(task, old)] = read(path)
            assert [(one.gold, one.replies, one.choices) for one in old] == [
                (one.gold, one.replies, one.choices) for one in new
            ], name
            assert [one.requests for one in old] == [one.requests for one in new]
        single = [{**row, "arguments": row["arguments"][0]} for row in rows]
        path.write_text("\n".join(map(json.dumps, single)), "utf-8")
        [(task, old)] = read(path)
        assert task.output_type == case.output_type
        assert [one.replies for one in old] == [one.replies for one in new]
        assert [one.requests[:1] for one in old] == [one.requests[:1] for one in new]
        assert all(len(one.requests) == len(one.replies) for one in old)
        if task.output_type == GENERATE_UNTIL:
            assert [one.gold for one in old] == [one.gold for one in new]
