"""The whole flow of the design of metrics and scoring: its two walk-throughs, step by step and by whole runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from tempfile import gettempdir

import pytest
import yaml
from msgspec.structs import replace
from scoring_parts import likelihoods, score_texts, scores_of

import evalcore
from evalcore import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    Answer,
    Generate,
    Instance,
    MetricSpec,
    Ok,
    Pipeline,
    Sample,
    Step,
    Task,
    build_report,
    group_by_doc,
    report_task,
    score_doc,
    score_task,
)
from evalcore.extensions import GenResult, MCResult, result_of
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.lm_eval import lm_eval_results, task_from_config

EXACT = (MetricSpec("exact_match"),)
OPTIONS = tuple(f"{letter}) option{i}" for i, letter in enumerate("ABCD", 1))
LLS = (-2.1, -1.5, -0.8, -3.2)
ANATOMY = Sample(0, gold=2, choices=OPTIONS)


# --- step by step, and in numbers -------------------------------------------------------------------------------------

GSM8K = {
    "task": "gsm8k_like",
    "output_type": "generate_until",
    "metric_list": [{"metric": "exact_match"}],
    "num_fewshot": 0,
    "repeats": 1,
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 256, "do_sample": False},
    "filter_list": [{"name": "default", "metric_list": [{"metric": "exact_match"}]}],
}


def test_generation_step_by_step() -> None:
    task = task_from_config(GSM8K)
    asked = Generate("What is 2+2?\n", GSM8K["generation_kwargs"])  # type: ignore[arg-type]
    instances = [Instance("gsm8k_like", i, 0, asked) for i in range(2)]
    answers = [Answer(one, (text,)) for one, text in zip(instances, ["4", "The answer is 4"], strict=True)]
    samples = [Sample(i, "4", doc={"question": "2+2=?", "answer": "4"}) for i in range(2)]  # type: ignore[arg-type]
    assert list(group_by_doc(answers)) == [0, 1]
    made = result_of(samples[0], answers)
    assert isinstance(made, GenResult)
    assert (made.generations, made.golds, made.repeats) == (("4",), ("4",), 1)
    assert scores_of(score_task(task, samples, answers)) == {("exact_match", "default"): [1.0, 0.0]}


def test_the_first_of_three_generations() -> None:
    first = Pipeline("default", (Step.of("take_first"),))
    scored = score_texts(Task("t", GENERATE_UNTIL, EXACT, (first,)), [["4", "4\n", "The answer is 4"]], ["4"])
    assert scores_of(scored) == {("exact_match", "default"): [1.0]}


def test_the_numbers_of_the_generation_task() -> None:
    """8,236 right answers to 8,919 questions; the error is the closed form, sqrt(p (1 - p) / (n - 1))."""
    right, n = 8236, 8919
    texts = ["4"] * right + ["5"] * (n - right)
    report = report_task(score_texts(replace(task_from_config(GSM8K), name="gsm8k"), texts, ["4"] * n))
    row = lm_eval_results(build_report([report]))["results"]["gsm8k"]  # type: ignore[index]
    assert (row["alias"], row["sample_len"]) == ("gsm8k", n)
    assert round(row["exact_match,default"], 4) == 0.9234
    p = right / n
    assert row["exact_match_stderr,default"] == pytest.approx(sqrt(p * (1 - p) / (n - 1)), rel=1e-12)
    assert round(row["exact_match_stderr,default"], 4) == 0.0028


def test_choices_step_by_step() -> None:
    answers = likelihoods(*LLS, choices=OPTIONS)
    made = result_of(ANATOMY, answers)
    assert isinstance(made, MCResult)
    assert (made.lls, made.greedy, made.gold, made.choices) == (LLS, (True,) * 4, (2,), OPTIONS)
    assert made.best == 2
    task = Task("t", LOGLIKELIHOOD, (MetricSpec("acc"), MetricSpec("acc_norm")), (Pipeline("default"),))
    assert score_doc(task, ANATOMY, answers) == {("acc", "default"): Ok(1.0), ("acc_norm", "default"): Ok(1.0)}
    long = replace(ANATOMY, choices=(*OPTIONS[:3], "D) " + "option4" * 9))
    assert score_doc(task, long, answers) == {("acc", "default"): Ok(1.0), ("acc_norm", "default"): Ok(0.0)}


def test_the_numbers_of_the_choice_task() -> None:
    """Of 7,180 questions 82.34 % are right, 78.91 % by length: no number of questions gives both of the errors told."""
    n, right, by_length = 7180, 5912, 5666
    long = (*OPTIONS[:3], "D) " + "option4" * 9)
    samples = [Sample(i, 2 if i < right else 0, OPTIONS if i < by_length else long) for i in range(n)]
    answers = [one for i in range(n) for one in likelihoods(*LLS, choices=samples[i].choices, doc=i)]
    task = Task("t", LOGLIKELIHOOD, (MetricSpec("acc"), MetricSpec("acc_norm")), (Pipeline("default"),))
    row = lm_eval_results(build_report([report_task(score_task(task, samples, answers))]))["results"]["t"]  # type: ignore[index]
    assert {key: round(value, 4) for key, value in row.items() if "," in key} == {
        "acc,default": 0.8234,
        "acc_stderr,default": 0.0045,
        "acc_norm,default": 0.7891,
        "acc_norm_stderr,default": 0.0048,
    }


def test_groups_average_their_tasks() -> None:
    reports = [
        report_task(score_texts(Task(name, GENERATE_UNTIL, EXACT), texts, "4" * len(texts)))
        for name, texts in [("a", "45"), ("b", "44")]
    ]
    tree = Group("both", (Leaf("a", None), Leaf("b", None)), (GroupMetric("exact_match"),))
    results = lm_eval_results(build_report(reports, [tree]))
    assert results["groups"]["both"]["exact_match,none"] == 0.75  # type: ignore[index]


# --- from a task file to results --------------------------------------------------------------------------------------

ROWS = [{"question": f"Which bone is number {i}?", "choices": OPTIONS, "answer": i % 4} for i in range(6)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task of choices asked by likelihood, and what a model said about it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(gettempdir()) / "evalcore-tests"))
    data = {"test": "test.jsonl", "dev": "dev.jsonl"}
    anatomy = {
        "task": "anatomy_like",
        "output_type": "loglikelihood",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": data},
        "test_split": "test",
        "fewshot_split": "dev",
        "fewshot_config": {"sampler": "first_n"},
        "num_fewshot": 5,
        "doc_to_text": "{{question}}",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
        "filter_list": [{"name": "default"}],
    }
    sums = {
        **GSM8K,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "sums.jsonl"}},
        "test_split": "test",
        "doc_to_text": "What is {{question}}?\n",
        "doc_to_target": "answer",
    }
    for task in (anatomy, sums):
        (tmp_path / f"{task['task']}.yaml").write_text(yaml.safe_dump(task))
    write_lines(tmp_path / "test.jsonl", ROWS)
    write_lines(tmp_path / "dev.jsonl", [{**row, "question": f"Example {i}"} for i, row in enumerate(ROWS)])
    write_lines(tmp_path / "sums.jsonl", [{"question": f"{i}+{i}", "answer": str(2 * i)} for i in range(4)])
    return tmp_path


def write_lines(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def run_task(home: Path, task: str, **model: object) -> dict[str, object]:
    keys = {"model": "dummy", "tasks": [task], "include_path": str(home), "output_path": str(home / "out"), **model}
    done = evalcore.run({**keys, "log_samples": True})
    assert done.complete
    return dict(done.results["results"][task])  # type: ignore[index]


def test_a_run_of_choices_asked_by_likelihood(home: Path) -> None:
    shots = [f"Example {i} {OPTIONS[i % 4]}" for i in range(5)]
    prompts = ["\n\n".join([*shots, str(row["question"])]) for row in ROWS]
    exchanges = [
        {"arguments": [[prompt, f" {option}"] for option in OPTIONS], "resps": [[[ll, True]] for ll in LLS]}
        for prompt in prompts
    ]
    write_lines(home / "samples_said.jsonl", exchanges)
    row = run_task(home, "anatomy_like", model="replay", model_args={"path": str(home / "samples_said.jsonl")})
    assert row == {
        "name": "anatomy_like",
        "alias": "anatomy_like",
        "sample_len": 6,
        "acc,default": 1 / 6,
        "acc_stderr,default": pytest.approx(1 / 6, rel=1e-12),
        "acc_norm,default": 1 / 6,
        "acc_norm_stderr,default": pytest.approx(1 / 6, rel=1e-12),
    }
    lines = (home / "out" / "samples_anatomy_like.jsonl").read_text().splitlines()
    assert [json.loads(line)["acc"] for line in lines] == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_run_asks_for_mutual_information_if_a_metric_needs_it(home: Path) -> None:
    path = home / "anatomy_like.yaml"
    task = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**task, "metric_list": [{"metric": "acc"}, {"metric": "acc_mutual_info"}]}))
    assert "acc_mutual_info,default" in run_task(home, "anatomy_like")
    line = (home / "out" / "samples_anatomy_like.jsonl").read_text().splitlines()[0]
    asked = json.loads(line)["arguments"]
    assert [asked[f"gen_args_{i}"]["arg_0"] == "" for i in range(8)] == [False] * 4 + [True] * 4


def test_a_run_of_generations(home: Path) -> None:
    row = run_task(home, "gsm8k_like", model_args={"text": "4"})
    assert (row["exact_match,default"], row["alias"]) == (0.25, "gsm8k_like")
    assert row["exact_match_stderr,default"] == pytest.approx(0.25, rel=1e-12)
    lines = [json.loads(one) for one in (home / "out" / "samples_gsm8k_like.jsonl").read_text().splitlines()]
    assert lines[2]["arguments"]["gen_args_0"]["arg_0"] == "What is 2+2?\n"
    assert lines[2]["arguments"]["gen_args_0"]["arg_1"]["max_gen_toks"] == 256
    assert [(one["target"], one["filter"], one["exact_match"]) for one in lines] == [
        (str(2 * i), "default", float(i == 2)) for i in range(4)
    ]
