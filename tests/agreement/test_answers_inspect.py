"""Logs that Inspect itself wrote, as .eval and as .json, read without it to what its own reader says."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest
from inspect_ai import Task, task
from inspect_ai import eval as run_inspect
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score, Target, match, mean, scorer, stderr, value_to_float
from inspect_ai.solver import Generate, TaskState, solver

from evalcore import EvalError
from evalcore.core.records.request import Failure
from evalcore.core.records.request import Generate as Asked
from evalcore.shell.logs.inspect.archive import ZSTD, read_member
from evalcore.shell.logs.inspect.log import INSPECT
from evalcore.shell.logs.inspect.samples import score_value
from evalcore.shell.logs.log import Logged, Problem
from evalcore.shell.logs.open import open_logs

LONG = "a long thought. " * 40


@scorer(metrics={"length": [mean()], "vowels": [mean(), stderr()]})
def two_scores():
    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        return Score(value={"length": len(said), "vowels": sum(one in "aeiou" for one in said)}, answer=said[:3])

    return score


@solver
def say(answers: dict[str, list[str]]):
    """Replies from a table, by sample and epoch; Inspect's own mock model counts tokens with files from the network."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        told = answers[str(state.sample_id)][state.epoch - 1]
        if told == "error":
            raise ValueError(f"no luck with {state.sample_id}")
        state.output = ModelOutput.from_content("mockllm/model", told)
        state.messages.append(state.output.message)
        return state

    return solve


@task
def questions() -> Task:
    samples = [
        Sample(id="b/7", input="Colour of the sky?", target=["blue", "Blue"], metadata={"unit": 3}),
        Sample(id=10, input="2 + 2?", target="4"),
        Sample(id=9, input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content="3 + 3?")], target="6"),
        Sample(id="long", input=LONG, target="no"),
    ]
    told = {"b/7": ["blue", "sky"], "10": ["4", "5"], "9": ["six", "6"], "long": [LONG, "no"]}
    return Task(dataset=samples, solver=say(told), scorer=[match(), two_scores()])


@task
def picks() -> Task:
    samples = [Sample(input="Which?", choices=["one", "two", "three"], target="B") for _ in range(3)]
    told = {"1": ["ANSWER: B"], "2": ["error"], "3": ["ANSWER: C"]}
    return Task(dataset=samples, solver=say(told), scorer=match(location="any"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EvalLog]:
    common = {"log_dir": str(tmp_path_factory.mktemp("logs")), "display": "none", "fail_on_error": False}
    [first] = run_inspect(questions(), model="mockllm/model", epochs=2, **common)
    [second] = run_inspect(picks(), model="mockllm/model", **common)
    assert (first.status, second.status) == ("success", "success")
    return {"questions": read_eval_log(first.location), "picks": read_eval_log(second.location)}


@pytest.fixture(params=["eval", "json"])
def written(request, logs, tmp_path: Path) -> dict[str, Path]:
    """Both logs, in one of the two forms, under a name that tells nothing."""
    out = {}
    for name, log in logs.items():
        named = tmp_path / f"{name}.{request.param}"
        write_eval_log(log, str(named), format=request.param)
        out[name] = named.rename(tmp_path / f"{name}.log")
    return out


def documents(path: Path) -> list[Logged]:
    [found] = open_logs([path])
    return list(found.rows())


def theirs(log: EvalLog) -> dict[object, list]:
    out: dict[object, list] = {}
    for one in sorted(log.samples, key=lambda one: one.epoch):
        out.setdefault(one.id, []).append(one)
    return out


def test_documents_replies_and_scores_are_those_of_inspect(logs, written) -> None:
    wanted, found = theirs(logs["questions"]), documents(written["questions"])
    assert [one.id for one in found] == [9, 10, "b/7", "long"]
    assert [one.doc_id for one in found] == [0, 1, 2, 3]
    assert {one.id for one in found} == set(wanted)
    to_float = value_to_float()
    for one in found:
        epochs = wanted[one.id]
        assert one.replies == (tuple(epoch.output.completion for epoch in epochs),)
        assert len(epochs) == 2
        target = epochs[0].target
        assert one.gold == (tuple(target) if isinstance(target, list) else target)
        assert one.scores["match,none"] == tuple(to_float(epoch.scores["match"].value) for epoch in epochs)
        for part in ("length", "vowels"):
            given = [epoch.scores["two_scores"].value[part] for epoch in epochs]
            assert one.scores[f"two_scores.{part},none"] == tuple(float(value) for value in given)
        assert one.kept == {
            name: tuple(epoch.scores[name].answer for epoch in epochs) for name in ("match", "two_scores")
        }
        assert json.loads(one.doc)["id"] == one.id
    assert json.loads(found[2].doc)["metadata"] == {"unit": 3}
    assert found[3].requests == (Asked(LONG),)
    assert found[0].requests == (Asked("3 + 3?"),)


def test_scores_average_to_their_accuracy(logs, written) -> None:
    for name in logs:
        published = logs[name].results.scores[0].metrics["accuracy"].value
        values = [one.scores["match,none"] for one in documents(written[name]) if "match,none" in one.scores]
        means = [sum(one) / len(one) if isinstance(one, tuple) else one for one in values]
        assert sum(means) / len(means) == pytest.approx(published, rel=1e-15)


def test_choices_and_failures(logs, written) -> None:
    found = documents(written["picks"])
    assert [one.choices for one in found] == [("one", "two", "three")] * 3
    assert [one.gold for one in found] == ["B"] * 3
    (failed,) = [one for one in found if one.id == 2]
    assert isinstance(failed.replies[0][0], Failure)
    assert "no luck with 2" in failed.replies[0][0].reason
    assert failed.scores == {}


def test_what_is_known_of_the_task(logs, written) -> None:
    [task] = open_logs([written["questions"]])
    assert (task.name, task.output_type, task.reader) == ("questions", "generate_until", INSPECT)
    assert task.model["model"] == logs["questions"].eval.model
    assert f"accuracy {accuracy_of(logs['questions']):.4g}" in task.tell_numbers("questions", [])[0]


def accuracy_of(log: EvalLog) -> float:
    return log.results.scores[0].metrics["accuracy"].value


@pytest.mark.parametrize("value", ["C", "I", "P", "N", "yes", "No", "TRUE", "false", "0.25", "7", True, 0, 1.5, -2])
def test_scores_count_as_inspect_counts_them(value) -> None:
    assert score_value(value) == value_to_float()(value)


def test_a_stopped_run_has_no_header(logs, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.eval", tmp_path / "cut.eval"
    write_eval_log(logs["questions"], str(whole), format="eval")
    with zipfile.ZipFile(whole) as given, zipfile.ZipFile(cut, "w") as kept:
        start = {"version": 2, "eval": json.loads(given.read("header.json"))["eval"]}
        kept.writestr("_journal/start.json", json.dumps(start))
        for name in given.namelist():
            if name.startswith("samples/") and "_epoch_1" in name:
                kept.writestr(name, given.read(name))
    assert [one.id for one in documents(cut)] == [9, 10, "b/7", "long"]
    assert all(len(one.replies[0]) == 1 and isinstance(one.scores["match,none"], float) for one in documents(cut))


def test_files_that_inspect_writes_while_it_runs(logs, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(logs["questions"].location.removeprefix("file://"))
    with zipfile.ZipFile(path) as made:
        assert {one.compress_type for one in made.infolist()} == {ZSTD}
    assert [one.id for one in documents(path)] == [9, 10, "b/7", "long"]
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(
        EvalError, match=r"\.eval: header\.json: packed with Zstandard: this needs 'zstandard': pip install"
    ):
        open_logs([path])


def test_a_zstandard_member_that_is_damaged_or_too_large(logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(Path(logs["questions"].location.removeprefix("file://")).read_bytes())
    at = data.index(b"samples/long_epoch_1.json") + 60
    data[at : at + 20] = bytes(20)
    path = tmp_path / "x.eval"
    path.write_bytes(data)
    with zipfile.ZipFile(path) as made:
        changed = made.getinfo("samples/10_epoch_1.json")
        changed.CRC ^= 1
        with pytest.raises(EvalError, match="its checksum is another"):
            read_member(made, changed)
    [task] = open_logs([path], keep_going=True)
    problems = [one for one in task.rows() if isinstance(one, Problem)]
    assert [one.message.partition(": ")[0] for one in problems] == ["samples/long_epoch_1.json"]
    assert "cannot be unpacked" in problems[0].message
    monkeypatch.setattr("evalcore.shell.data.unpack.FREE_BYTES", 100)
    monkeypatch.setattr("evalcore.shell.data.unpack.MOST_FOLD", 0)
    with pytest.raises(EvalError, match=r"header\.json: unpacks to more than 100 bytes"):
        open_logs([path])


def test_a_log_in_other_zip_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("../../evil.json", "{}")
    with pytest.raises(EvalError, match=r"x\.eval: expected an Inspect log with header\.json"):
        open_logs([path])
    assert not (tmp_path.parent.parent / "evil.json").exists()
