"""Metrics of Hugging Face's ``evaluate``: a script on this machine is trusted and run as lm-eval runs it, else named."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pickle
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from small_tasks import CITIES, share_index

from evalcore import EvalError, Generate, MetricKey, run
from evalcore.extensions import MODELS, Backend, Heard, Model, Question
from evalcore.shell.cli import main
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.tasks.evaluate_scripts import find_scripts
from evalcore.shell.tasks.trust import load_functions, read_trust

pytest.importorskip("evaluate")

SCRIPT = """
import datasets
import evaluate

INFO = {"description": "Word error rate.", "citation": "", "inputs_description": ""}


class Rate(evaluate.Metric):
    def _info(self):
        kinds = {name: datasets.Value("string") for name in ("predictions", "references")}
        return evaluate.MetricInfo(features=datasets.Features(kinds), **INFO)

    def _compute(self, predictions, references, scale=1.0):
        wrong = total = 0
        for said, wanted in zip(predictions, references):
            said, wanted = said.split(), wanted.split()
            row = list(range(len(said) + 1))
            for i, word in enumerate(wanted, 1):
                before, row[0] = row[0], i
                for j, other in enumerate(said, 1):
                    before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
            wrong, total = wrong + row[-1], total + len(wanted)
        return RETURNED
"""
ONE = SCRIPT.replace("RETURNED", "scale * wrong / total")
TWO = SCRIPT.replace("RETURNED", '{"errors": float(wrong), "rate": wrong / total}')


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task and a metric's script; nothing is kept from other tests, and no hub is there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(share_index(tmp_path / "cache")))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.delenv("HF_MODULES_CACHE", raising=False)
    (tmp_path / "metrics/wer").mkdir(parents=True)
    (tmp_path / "metrics/wer/wer.py").write_text(ONE)
    rows = [{"q": f"Say {city}", "a": f"{city} lies on a hill"} for city in CITIES]
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


REPLIES = ["Lisbon lies on a hill", "Cairo is on a hill", "", "Oslo", "no", "Hanoi lies on", "a hill", "Minsk lies"]
REPLIES += ["x y z", "Sofia lies on a hill"]


def task(home: Path, **metric: object) -> Path:
    """Write the task with this entry of its metric list."""
    config = {
        "task": "t",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(home / "tasks/docs.jsonl")}},
        "test_split": "test",
        "doc_to_text": "q",
        "doc_to_target": "a",
        "metric_list": [{"aggregation": "mean", "higher_is_better": False, **metric}],
    }
    (home / "tasks/t.yaml").write_text(yaml.safe_dump(config))
    return home / "tasks/t.yaml"


def run_ours(home: Path, *trust: object, **keys: object) -> RunResult:
    """A run whose model gives these replies."""

    def answer(questions: Sequence[Question]) -> Iterator[Heard]:
        for at, one in enumerate(questions):
            assert isinstance(one.request, Generate)
            yield Heard(at, REPLIES[CITIES.index(one.request.prompt.removeprefix("Say "))])

    said = MODELS.set("said", Backend(lambda args: Model("said", "said", answer), "the replies above"))
    named = {"tasks": [str(home / "tasks/t.yaml")], "output_path": str(home / "out"), **keys}
    return run(model="said", trust=[str(one) for one in trust], models=said, **named)


def run_theirs(home: Path, entry: dict[str, object]) -> dict[str, object]:
    """lm-eval's results for the same documents and replies."""
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("lm_eval")
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.evaluator import evaluate

    class Said(LM):
        def generate_until(self, requests):
            return [REPLIES[CITIES.index(one.args[0].removeprefix("Say "))] for one in requests]

        loglikelihood = loglikelihood_rolling = generate_until

    rows = [json.loads(line) for line in (home / "tasks/docs.jsonl").read_text().splitlines()]
    config = {
        "task": "t",
        "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(rows)},
        "test_split": "test",
        "doc_to_text": "q",
        "doc_to_target": "a",
        "metric_list": [{"aggregation": "mean", "higher_is_better": False, **entry}],
    }
    logging.getLogger("lm_eval").setLevel(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = evaluate(Said(), {"tasks": {"t": ConfigurableTask(config=config)}}, bootstrap_iters=0)
    return found["results"]["t"]


# --- as lm-eval runs them -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "more"),
    [
        ("metrics/wer", {"hf_evaluate": True}),
        ("metrics/wer/wer.py", {}),
        ("metrics/wer", {"hf_evaluate": True, "scale": 100.0}),
    ],
)
def test_a_local_script_gives_what_lm_eval_gives(home: Path, named: str, more: dict[str, object]) -> None:
    path = str(home / named)
    task(home, metric=path, **more)
    theirs = run_theirs(home, {"metric": path, **more})
    ours = run_ours(home, home / "metrics").report.task("t").get(MetricKey("wer"))
    assert ours.value == pytest.approx(theirs[f"{path},none"], rel=1e-12)
    assert 0.3 < ours.value / more.get("scale", 1.0) < 0.9  # it is the replies that count
    assert (ours.n, ours.scale.higher_is_better) == (10, False)


def test_a_script_with_several_numbers_makes_several_metrics(home: Path) -> None:
    (home / "metrics/wer/wer.py").write_text(TWO)
    path = str(home / "metrics/wer")
    task(home, metric=path, hf_evaluate=True)
    theirs = run_theirs(home, {"metric": path, "hf_evaluate": True})
    found = run_ours(home, home / "metrics").report.task("t")
    for name in ("errors", "rate"):
        assert found.get(MetricKey(name)).value == pytest.approx(theirs[f"{name},none"], rel=1e-12)


# --- found, trusted, recorded -------------------------------------------------------------------------------------


def test_a_name_is_found_where_evaluate_keeps_its_scripts(home: Path) -> None:
    kept = home / "cache/huggingface/modules/evaluate_modules/metrics/evaluate-metric--wer"
    for digest, text, time in (("0" * 64, TWO, 1), ("1" * 64, ONE, 2)):
        (kept / digest).mkdir(parents=True)
        (kept / digest / "wer.py").write_text(text)
        os.utime(kept / digest / "wer.py", (time, time))
    task(home, metric="wer")
    with pytest.raises(EvalError, match=f"not trusted:\n  {kept}/{'1' * 64}/wer.py: wer"):  # the younger
        run_ours(home)
    assert run_ours(home, kept).report.task("t").get(MetricKey("wer")).n == 10


def test_a_script_is_code_and_runs_only_when_trusted(home: Path) -> None:
    script = home / "metrics/wer/wer.py"
    script.write_text(f"open({str(home / 'ran')!r}, 'w')\n{ONE}")
    task(home, metric="../metrics/wer", hf_evaluate=True)  # from the task's folder
    with pytest.raises(
        EvalError, match=r"t: would run code that is not trusted:\n  .*metrics/wer/wer\.py: wer\nTo run"
    ):
        run_ours(home)
    assert main(["tasks", "check", "t", "--include_path", str(home / "tasks")]) == 0
    assert not (home / "ran").exists()
    result = run_ours(home, f"{script}@sha256:{sha256(script.read_bytes()).hexdigest()}")
    assert (home / "ran").exists()
    assert result.results["evalcore"]["trusted"] == {str(script): sha256(script.read_bytes()).hexdigest()}
    script.write_text(ONE + "\n")
    with pytest.raises(EvalError, match="its content changed"):
        run_ours(home, f"{script}@sha256:{'0' * 64}")


def test_scoring_a_log_again_uses_the_script(home: Path) -> None:
    task(home, metric=str(home / "metrics/wer"))
    first = run_ours(home, home / "metrics").report.task("t").get(MetricKey("wer"))
    from evalcore import score

    again = score(home / "out/samples_t.jsonl", task=str(home / "tasks/t.yaml"), trust=[str(home / "metrics")])
    assert again.report.task("t").get(MetricKey("wer")).value == first.value


def test_a_script_travels_to_workers_by_its_name(home: Path) -> None:
    config = find_scripts({"task": "t", "metric_list": [{"metric": str(home / "metrics/wer")}]}, ())
    loaded = load_functions(config, read_trust([str(home)]))["metric_list"][0]["metric"]
    copied = pickle.loads(pickle.dumps(loaded))
    assert copied == loaded
    assert copied(references=["a b"], predictions=["a c"]) == 0.5


# --- not here -------------------------------------------------------------------------------------------------------


def test_a_metric_that_is_not_here_is_an_error_that_says_what_to_do(home: Path) -> None:
    task(home, metric="rouge_of_the_hub", hf_evaluate=True)
    with pytest.raises(EvalError) as refused:
        run_ours(home)
    told = str(refused.value)
    assert "metric 'rouge_of_the_hub': hf_evaluate: true asks for Hugging Face's script, and there is none" in told
    assert "import evaluate; evaluate.load('rouge_of_the_hub')" in told
    assert told.endswith(" - at t")
    assert run_ours(home, predict_only=True).complete  # which measures nothing
    task(home, metric="wer")
    with pytest.raises(
        EvalError, match=r"unknown metric 'wer'.* - at t .*nor is a script of Hugging Face's evaluate here"
    ):
        run_ours(home)


def test_names_that_evalcore_knows_are_its_own(home: Path) -> None:
    """exact_match is the same there; another metric with hf_evaluate is Hugging Face's, whatever evalcore has."""
    task(home, metric="exact_match", hf_evaluate=True)
    assert run_ours(home).report.task("t").get(MetricKey("exact_match")).value == 0.2
    task(home, metric="bleu", hf_evaluate=True)
    with pytest.raises(EvalError, match="metric 'bleu': hf_evaluate: true"):
        run_ours(home)
    choices = {"task": "t", "output_type": "multiple_choice", "metric_list": [{"metric": "f1", "hf_evaluate": True}]}
    assert find_scripts(choices, ["f1"]) == choices  # lm-eval calls no function for choices


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import no_such_package_at_all\n" + ONE, "cannot be run: "),
        ("x = 1\n", "cannot be run: "),
        (ONE.replace("return scale", "raise OSError('no network')\n        return scale"), None),
    ],
)
def test_a_script_that_cannot_run_says_why(home: Path, text: str, told: str | None) -> None:
    (home / "metrics/wer/wer.py").write_text(text)
    task(home, metric=str(home / "metrics/wer"))
    if told:
        with pytest.raises(EvalError, match=rf"wer\.py {told}"):
            run_ours(home, home / "metrics")
    else:
        found = run_ours(home, home / "metrics")
        assert not found.complete
        assert "no network" in str(found)
