"""Numbers made of what Inspect recorded, against those that Inspect itself made of it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from math import nan
from pathlib import Path
from random import Random
from typing import Any

import pytest
from inspect_ai import Epochs, Task
from inspect_ai import eval as run_inspect
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, accuracy, grouped, match, mean, scorer, std, stderr
from inspect_ai.solver import Generate, TaskState, solver

from evalcore.adapters.inspect import evalcore_metrics, evalcore_reducers
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.task import MetricKey
from evalcore.core.tables import EVALCORE
from evalcore.shell.cli import main
from evalcore.shell.config.plan import Plan
from evalcore.shell.logs.inspect.numbers import find_our_reducer, tell_numbers
from evalcore.shell.logs.inspect.samples import score_value
from evalcore.shell.logs.open import open_logs
from evalcore.shell.score.report import close_logs
from evalcore.shell.score.rules import Rules
from evalcore.shell.score.scored_log import ScorePlan, score_each

MEANS = [accuracy(), mean(), stderr()]
REDUCERS = ["mean", "median", "mode", "max", "at_least_2", "pass_at_2", "pass_k_2"]


def draw(name: str, choices: object, metrics: Any = MEANS) -> Any:
    """A scorer that draws one of these for a sample and epoch, or a number."""

    @scorer(metrics=metrics, name=name)
    def make():
        async def score(state: TaskState, target: object) -> Score:
            luck = Random(f"{name} {state.sample_id} {state.epoch}")
            if isinstance(choices, Mapping):
                parted = {key: luck.choice(one) for key, one in choices.items()}
                return Score(value=nan if state.sample_id == 1 else parted)  # the first sample is not scored
            return Score(value=luck.choice(choices) if choices else 3 * luck.random(), answer=state.output.completion)

        return score

    return make()


@solver
def say():
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        luck = Random(f"{state.sample_id} {state.epoch}").randrange(4)
        if luck == 3 and state.metadata["fails"]:
            raise ValueError("no luck")
        state.output = ModelOutput.from_content("mockllm/model", str(luck % 3))
        return state

    return solve


def run(folder: Path, scorers: list[Any], epochs: Epochs | None, *, fails: bool = False, **more: Any) -> EvalLog:
    samples = [Sample(id=i, input="?", target=str(i % 3), metadata={"fails": fails, "odd": i % 2}) for i in range(1, 9)]
    common = {"log_dir": str(folder), "display": "none", "fail_on_error": False, **more}
    task = Task(dataset=samples, solver=say(), scorer=scorers, epochs=epochs, name="draws")
    [log] = run_inspect(task, model="mockllm/model", **common)
    return log


def score(log: EvalLog | Path, rules: Rules | None = None) -> tuple[dict[str, Estimate], tuple[str, ...], Any]:
    """Our numbers by metric, what is told of them, and what is told of Inspect's own beside them."""
    path = log if isinstance(log, Path) else Path(log.location.removeprefix("file://"))
    [found] = open_logs([path])
    [part] = score_each([found], ScorePlan(plan=Plan(tasks=(), model="-"), rules=rules or Rules()), {})
    [task] = close_logs([part], Plan(tasks=(), model="-"), EVALCORE)
    told = found.tell_numbers(found.name, task.estimates)
    return {key.metric: one for key, one in task.estimates}, part.warnings, told


def scorers() -> list[Any]:
    return [
        match(),
        match(),
        draw("letters", "CIP"),
        draw("bools", [True, False]),
        draw("words", ["yes", "no", "0.25", "2"]),
        draw("floats", None),
        draw("parts", {"right": "CI", "part": [0.25, 1.0, 1.0]}, {"*": MEANS}),
    ]


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory) -> EvalLog:
    return run(tmp_path_factory.mktemp("reduced"), scorers(), Epochs(4, list(REDUCERS)))


@pytest.mark.parametrize("form", ["eval", "json"])
def test_every_reducer_gives_the_numbers_of_inspect(reduced: EvalLog, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"x.{form}"
    write_eval_log(read_eval_log(reduced.location), str(path), format=form)
    found, warnings, told = score(path)
    assert len(found) == len(reduced.results.scores) == 8 * len(REDUCERS)
    for one in reduced.results.scores:
        name = one.name if one.name == one.scorer else f"{one.scorer}.{one.name}"
        ours = found[f"{name}@{find_our_reducer(one.reducer)}"]
        assert ours.value == pytest.approx(one.metrics["accuracy"].value, rel=1e-12)
        assert ours.stderr == pytest.approx(one.metrics["stderr"].value, rel=1e-9)
        assert ours.counts.scored == one.scored_samples
    assert told == ()
    shown = "mean, median, mode, max, at_least(2), pass@2, pass^2"
    assert any(f"that Inspect recorded, its epochs reduced by {shown};" in one for one in warnings)
    values = {round(found[f"match@{find_our_reducer(name)}"].value, 9) for name in REDUCERS}
    assert len(values) > 4  # or else a reducer in place of another would not show


def test_one_reducer_leaves_the_name_alone_and_a_flag_wins(tmp_path: Path) -> None:
    log = run(tmp_path, [match()], Epochs(3, "max"))
    best = log.results.scores[0].metrics["accuracy"].value
    found, _, told = score(log)
    assert found["match"].value == pytest.approx(best)
    assert told == ()
    named, _, _ = score(log, Rules(scores=("match",)))
    assert named["match"].value == pytest.approx(best)
    other, _, told = score(log, Rules(reducers=("mean",)))
    assert other["match"].value < best
    assert told[0].startswith(f"draws: numbers here are other than what Inspect recorded: match accuracy {best:.4g} (")


def test_epochs_without_a_score_are_left_out_as_inspect_does(tmp_path: Path) -> None:
    unscored = draw("unscored", [nan, nan, 0.5, 1.0])
    log = run(tmp_path, [match(), unscored], Epochs(3, ["mean", "max", "pass_at_2"]), fails=True)
    assert any(one.error for one in log.samples)
    found, _, told = score(log)
    assert told == ()
    for one in log.results.scores:
        ours = found[f"{one.name}@{find_our_reducer(one.reducer)}"]
        assert ours.counts.scored == one.scored_samples


def test_a_reducer_without_an_equal_is_named(tmp_path: Path) -> None:
    found, warnings, told = score(run(tmp_path, [match()], Epochs(3, ["majority", "max"])))
    assert list(found) == ["match"]
    assert any(
        "reduced epochs by majority, which is not made of recorded scores here; they are reduced by max" in w
        for w in warnings
    )
    assert told == ()


def test_estimates_of_our_own_are_the_same_here(tmp_path: Path) -> None:
    epochs = Epochs(3, evalcore_reducers("mean", "pass@2", "min", "maj@3"))
    log = run(tmp_path, [draw("bools", [True, False], evalcore_metrics())], epochs)
    assert set(log.results.scores[0].metrics) == {"value", "stderr", "ci_low", "ci_high", "n"}
    found, warnings, told = score(log)
    assert list(found) == ["bools@mean", "bools@pass@2", "bools@min"]
    assert told == ()
    assert any("Inspect reduced epochs by evalcore/maj@3, which" in one for one in warnings)
    log.results.scores[1].metrics["ci_low"].value += 0.01
    [changed] = tell_numbers(log.results.model_dump(), "t", [(MetricKey(name), one) for name, one in found.items()])
    assert "bools@pass@2 estimate ci_low" in changed


def test_metrics_that_are_not_measured_are_told(tmp_path: Path) -> None:
    metrics = [mean(), std(), grouped(mean(), "odd"), stderr(cluster="odd")]
    _, _, told = score(run(tmp_path, [draw("floats", None, metrics), draw("marks", ["A+", "1"])], None))
    other, lost = told
    assert "marks accuracy" in other  # Inspect counts a word that is no number as 0
    assert [one.rsplit(" ", 1)[0] for one in lost.partition("here: ")[2].split(", ")] == [
        "floats std",
        "floats grouped 1",
        "floats grouped 0",
        "floats grouped all",
        "floats stderr",
    ]


def test_score_tells_of_numbers_that_differ_from_inspects(
    reduced: EvalLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, changed = tmp_path / "good.json", tmp_path / "changed.json"
    write_eval_log(read_eval_log(reduced.location), str(good), format="json")
    log = json.loads(good.read_text())
    log["results"]["scores"][0]["metrics"]["accuracy"]["value"] += 0.25
    log["results"]["scores"][0]["metrics"]["std"] = {"name": "std", "value": 0.5, "params": {}}
    changed.write_text(json.dumps(log))

    def told(*argv: object) -> list[str]:
        assert main(["score", *map(str, argv), "--json", "--quiet"]) == 1  # a sample has no score under "parts"
        warnings: list[str] = json.loads(capsys.readouterr().out)["evalcore"]["warnings"]
        return [one for one in warnings if "what Inspect recorded" in one or "not measured" in one]

    assert told(good) == []
    other, lost = told(changed)
    assert "draws: numbers here are other than what Inspect recorded: match@mean accuracy" in other
    assert "match@mean std 0.5" in lost
    assert told(changed, "--reducer", "mean") == told(changed, "--limit", 3) == []  # other rules, other numbers


def test_logs_of_several_models_show_them(reduced: EvalLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    write_eval_log(read_eval_log(reduced.location), str(first), format="json")
    log = json.loads(first.read_text())
    log["eval"]["model"] = "org/other"
    second.write_text(json.dumps(log))
    assert main(["score", str(first), str(second), "--score", "match", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "draws (mockllm/model)" in shown
    assert "draws (org/other)" in shown


def test_a_scorer_that_the_first_sample_lacks_is_not_lost(reduced: EvalLog, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_eval_log(read_eval_log(reduced.location), str(path), format="json")
    log = json.loads(path.read_text())
    for one in log["samples"][:20]:
        del one["scores"]["match1"]
    log["samples"][-1]["scores"]["match"]["value"] = {"odd": 1}
    path.write_text(json.dumps(log))
    found, _, _ = score(path, Rules(reducers=("mean",)))
    assert {"match", "match1", "match.odd", "parts.right"} < set(found)
    assert "parts" not in found


def test_a_run_that_did_not_finish_says_so(reduced: EvalLog, tmp_path: Path) -> None:
    path, cut = tmp_path / "x.json", tmp_path / "cut.eval"
    write_eval_log(read_eval_log(reduced.location), str(path), format="json")
    log = json.loads(path.read_text())
    ended = {"status": "error", "error": {"message": "out of memory"}, "samples": log["samples"][:5], "results": None}
    path.write_text(json.dumps({**log, **ended}))
    [told] = open_logs([path])[0].warnings
    assert told == "draws: the run did not finish (error: out of memory); 5 of its 32 samples are here"
    with zipfile.ZipFile(cut, "w") as made:
        made.writestr("_journal/start.json", json.dumps({"version": 2, "eval": log["eval"]}))
        made.writestr("samples/1_epoch_1.json", json.dumps(log["samples"][0]))
    assert open_logs([cut])[0].warnings == ("draws: the run did not finish (no end); 1 of its 32 samples are here",)
    assert open_logs([reduced.location.removeprefix("file://")])[0].warnings == ()


@pytest.mark.parametrize("results", [{"scores": {"a": 1}}, {"scores": [5, {"name": None, "metrics": [1]}]}])
def test_strange_results_tell_nothing(results: dict[str, object]) -> None:
    assert tell_numbers(results, "t", []) == ()


def test_a_score_too_large_for_a_number_is_none() -> None:
    assert score_value(10**400) is None
