"""Metrics and reducers of a task file's own, from the run to every command that reads it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evalcore
from evalcore import EvalError
from evalcore.comparisons import check_run
from evalcore.logs import RunResult

CODE = """
from evalcore.extensions import GenResult, MCResult


def margin(result: MCResult) -> float:
    return max(result.lls) - min(result.lls)


def asked(result: MCResult) -> float:
    return float(all(one.request.continuation == " " + choice for one, choice in zip(result.instances, result.choices)))


def distinct(result: GenResult) -> float:
    return len(set(result.generations)) / result.repeats


def same(prediction, gold):
    return float(prediction == gold)


def spread(scores):
    return max(scores) - min(scores)
"""
COMMON = """
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
doc_to_text: "{{q}}"
"""
CHOICES = (
    "task: choices\noutput_type: loglikelihood\ndoc_to_choice: '{{choices}}'\ndoc_to_target: answer\n"
    "metric_list:\n  - metric: acc\n  - metric: acc_norm\n"
    "  - metric: !function own.margin\n  - metric: !function own.asked\n" + COMMON
)
TEXTS = (
    "task: texts\noutput_type: generate_until\ndoc_to_target: '{{choices[answer]}}'\nrepeats: 3\n"
    "metric_list:\n  - metric: exact_match\n    reducer: !function own.spread\n  - metric: !function own.distinct\n"
    "  - metric: !function own.same\n    reducer: mean\n" + COMMON
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    docs = [{"q": f"What is {i}?", "choices": ["one", "two", "three"], "answer": i % 3} for i in range(9)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    for name, text in (("own.py", CODE), ("choices.yaml", CHOICES), ("texts.yaml", TEXTS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, **keys: object) -> RunResult:
    return evalcore.run(
        model="dummy",
        tasks=["choices.yaml", "texts.yaml"],
        trust=[str(folder / "own.py")],
        output_path=str(folder / "out"),
        **keys,
    )


def test_a_run_scores_by_own_functions_on_every_output_type(folder: Path) -> None:
    report = run(folder).report
    choices, texts = report.task("choices"), report.task("texts")
    assert [str(key) for key, _ in choices.estimates] == ["acc,none", "acc_norm,none", "margin,none", "asked,none"]
    assert [str(key) for key, _ in texts.estimates] == ["exact_match,none", "distinct,none", "same,none"]
    assert choices["asked,none"].value == 1.0  # the function saw the requests that were made
    assert choices["margin,none"].value > 0  # type: ignore[operator]
    assert texts["distinct,none"].value > 1 / 3  # type: ignore[operator]
    assert all(estimate.n == 9 for _, estimate in (*choices.estimates, *texts.estimates))


def test_likelihoods_with_choices_are_asked_choice_by_choice(folder: Path) -> None:
    """As multiple choice, to the last bit."""
    plain = run(folder, num_fewshot=2).report.task("choices")
    (folder / "choices.yaml").write_text(CHOICES.replace("output_type: loglikelihood", "output_type: multiple_choice"))
    again = evalcore.run(
        model="dummy", tasks=["choices.yaml"], trust=[str(folder / "own.py")], output_path="other", num_fewshot=2
    )
    assert [(key, one.value, one.ci) for key, one in again.report.task("choices").estimates] == [
        (key, one.value, one.ci) for key, one in plain.estimates
    ]


def test_code_is_not_run_untrusted(folder: Path) -> None:
    with pytest.raises(EvalError, match="would run code that is not trusted"):
        evalcore.run(model="dummy", tasks=["texts.yaml"], output_path="out")


def test_what_code_scored_stands_where_it_is_read_back(folder: Path) -> None:
    first = run(folder).report
    again = evalcore.score(str(folder / "out"))
    for task in first.tasks:
        old, new = dict(task.estimates), dict(again.report.task(task.name).estimates)
        assert {key: (one.value, one.n) for key, one in old.items()} == {
            key: (one.value, one.n) for key, one in new.items()
        }
    assert any("exact_match" in warning and "code of the task's own" in warning for warning in again.warnings)
    compared = evalcore.compare("out", "out")
    assert {line.difference for one in compared.comparisons for line in one.lines} == {0.0}
    assert check_run("out", baseline="out").passed


def test_likelihoods_with_choices_have_the_usual_metrics_of_choices(folder: Path) -> None:
    head, _, tail = CHOICES.partition("metric_list:")
    (folder / "choices.yaml").write_text(head + tail[tail.index("\ndataset_path") :])
    report = evalcore.run(model="dummy", tasks=["choices.yaml"], output_path="out").report
    assert [str(key) for key, _ in report.task("choices").estimates] == ["acc,none", "acc_norm,none"]


def test_scores_under_names_that_nothing_declares_stand_too(folder: Path) -> None:
    (folder / "two.py").write_text("def two(prediction, gold):\n    return {'x': len(prediction), 'y': 0.5}\n")
    head = "task: texts\noutput_type: generate_until\ndoc_to_target: '{{choices[answer]}}'\nmetric_list:\n  - metric: exact_match\n"
    (folder / "texts.yaml").write_text(head + "  - metric: !function two.two\n" + COMMON)
    keys = {"model": "dummy", "tasks": ["texts.yaml"], "trust": [str(folder / "two.py")], "output_path": "out"}
    first, again = evalcore.run(**keys).report.task("texts"), evalcore.score("out")  # type: ignore[arg-type]
    assert {str(key): one.value for key, one in first.estimates} == {
        str(key): one.value for key, one in again.report.task("texts").estimates
    }
    assert any("two, x, y: scored by code of the task's own" in warning for warning in again.warnings)
