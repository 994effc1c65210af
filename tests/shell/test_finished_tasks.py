"""What is finished stays: tasks that were scored before a run was killed, results that others take the place of."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from msgspec.structs import replace
from small_tasks import command, environment, evalcore, write_tasks

from evalcore.core.records.array import frozen
from evalcore.core.records.column import Column
from evalcore.core.records.row import take_rows
from evalcore.shell.cli import main
from evalcore.shell.run import task_unit

WAIT = """
import pathlib, time

def wait(predictions, references):
    pathlib.Path("here").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return 1.0
"""
DEADLINE = 600


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three tasks; the scoring of the second waits for a file called go."""
    monkeypatch.chdir(tmp_path)
    write_tasks(tmp_path / "tasks", 4)
    (tmp_path / "tasks/utils.py").write_text(WAIT)
    body = (tmp_path / "tasks/guesses.yaml").read_text()
    slow = body.replace("task: guesses", "task: waiting").replace("metric: exact_match", "metric: !function utils.wait")
    (tmp_path / "tasks/waiting.yaml").write_text(slow)
    write_config(tmp_path, ["sums", "waiting", "places"])
    return tmp_path


def write_config(home: Path, tasks: list[str], **keys: object) -> None:
    keys = {"include_path": "tasks", "output_path": "out", "trust": ["tasks/utils.py"], **keys}
    (home / "run.yaml").write_text(yaml.safe_dump({"model": "dummy", "tasks": tasks, **keys}))


def results(home: Path, folder: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / folder / "results.json").read_text())
    return found


@contextmanager
def waiting_run(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has scored its first task and hangs in the second."""
    given = command("run", "run.yaml")
    child = subprocess.Popen(given, cwd=home, env=environment(home), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + DEADLINE
    while not (home / "here").exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    yield child
    child.kill()
    child.communicate()
    (home / "here").unlink()


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_finished_tasks_are_on_the_disk_before_the_next_is_scored(home: Path, how: signal.Signals) -> None:
    with waiting_run(home) as child:
        found = results(home)
        assert list(found["results"]) == ["sums"]
        assert found["evalcore"]["not_run"] == ["places", "waiting"]
        assert {
            name: (one["all"], one["scored"], one["not_run"]) for name, one in found["evalcore"]["documents"].items()
        } == {
            "sums": (4, 4, 0),
            "places": (4, 0, 4),
            "waiting": (4, 0, 4),
        }
        assert len((home / "out/samples_sums.jsonl").read_text().splitlines()) == 2 * 4
        child.send_signal(how)
        told = child.communicate(timeout=DEADLINE)[1]
        assert child.returncode == (-how if how == signal.SIGKILL else 128 + how)
        assert how == signal.SIGKILL or "terminated; the same command goes on" in told
    (home / "go").touch()
    assert main(["run", "run.yaml", "--quiet"]) == 0
    assert main(["run", "run.yaml", "--quiet", "--output_path", "whole"]) == 0
    assert (home / "out/results.json").read_bytes() == (home / "whole/results.json").read_bytes()
    assert "not_run" not in results(home)["evalcore"]
    assert not list((home / "out").glob("earlier_*"))


def test_a_run_that_is_killed_over_others_results_loses_neither(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "go").touch()
    assert main(["run", "run.yaml", "--quiet"]) == 0
    old = {path.name: path.read_bytes() for path in (home / "out").glob("*s*.json*") if path.name != "answers.jsonl"}
    (home / "go").unlink()
    (home / "here").unlink()
    rows = (home / "tasks/docs.jsonl").read_text().replace("Cairo", "Accra")
    (home / "tasks/docs.jsonl").write_text(rows)
    with waiting_run(home):
        assert list(results(home)["results"]) == ["sums"]
        assert {name: (home / "out/earlier_1" / name).read_bytes() for name in old} == old
    (home / "go").touch()
    capsys.readouterr()
    assert main(["run", "run.yaml", "--quiet"]) == 0
    told = capsys.readouterr().err
    assert "held results of something else, which are in out/earlier_1 now" in told
    assert "the documents of places (1 changed, the first is doc 1, in its content and prompt)" in told
    assert {name: (home / "out/earlier_1" / name).read_bytes() for name in old} == old
    assert [path.name for path in (home / "out").glob("earlier_*")] == ["earlier_1"]


# --- what changed -----------------------------------------------------------------------------------------------------


def change_prompt(home: Path) -> None:
    path = home / "tasks/places.yaml"
    path.write_text(path.read_text().replace("is a", "is some"))


def change_target(home: Path) -> None:
    path = home / "tasks/places.yaml"
    path.write_text(path.read_text().replace("doc_to_target: 0", "doc_to_target: '{{a % 2}}'"))


def change_metrics(home: Path) -> None:
    path = home / "tasks/places.yaml"
    path.write_text(path.read_text().replace("- metric: acc_norm\n", ""))


def add_document(home: Path) -> None:
    with (home / "tasks/docs.jsonl").open("a") as file:
        file.write('{"a": 9, "b": 1, "city": "Rome"}\n')


CHANGES: dict[str, tuple[Any, tuple[str, ...], str]] = {
    "prompt": (
        change_prompt,
        (),
        "the documents of places (4 changed, the first is doc 0, in its prompt)",
    ),
    "prompt, not examples": (change_prompt, (), "the config of places at doc_to_text\n"),
    "target": (change_target, (), "the documents of places (2 changed, the first is doc 1, in its target)"),
    "data": (add_document, (), "the documents of places (1 came)"),
    "unsampled data": (add_document, ("--log_samples", "false"), "the documents of places"),
    "metrics": (change_metrics, (), "the config of places at metric_list"),
    "limit": (None, ("--limit", "2"), "limit (was null, is 2"),
    "options": (None, ("--gen_kwargs", "temperature=0.5"), 'gen_kwargs (was null, is {"temperature": 0.5})'),
    "rule": (None, ("--confidence", "0.9"), "confidence"),
    "nothing": (None, (), ""),
    "address": (None, ("--include_path", "also"), ""),
}


QUICK = ("prompt", "prompt, not examples", "data", "limit", "nothing")


@pytest.mark.parametrize(
    "change", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in CHANGES]
)
def test_results_of_something_else_are_kept_and_named(
    home: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alter, flags, told = CHANGES[change]
    write_config(home, ["places"])
    before = flags if change == "unsampled data" else ()
    assert main(["run", "run.yaml", "--quiet", *before]) == 0
    old = (home / "out/results.json").read_bytes()
    if alter is not None:
        alter(home)
    if "--include_path" in flags:
        (home / "tasks").rename(home / "also")
        (home / "tasks").mkdir()
        (home / "tasks/utils.py").touch()
    capsys.readouterr()
    assert main(["run", "run.yaml", "--quiet", *flags]) == 0
    err = capsys.readouterr().err
    assert told in err
    assert ("held results" in err) == bool(told)
    kept = home / "out/earlier_1/results.json"
    assert kept.exists() == bool(told)
    if told:
        assert kept.read_bytes() == old
        assert main(["score", "out", "--quiet"]) == 0 or "unsampled" in change  # which reads the new ones


def test_overwrite_keeps_nothing_and_each_change_has_its_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(home, ["places"])
    for limit in (1, 2, 3):
        assert main(["run", "run.yaml", "--quiet", "--limit", str(limit)]) == 0
    assert [results(home, f"out/earlier_{n}")["config"]["limit"] for n in (1, 2)] == [1, 2]
    assert main(["run", "run.yaml", "--quiet", "--limit", "4", "--overwrite"]) == 0
    assert "held results with other limit; they were replaced" in capsys.readouterr().err
    assert len(list((home / "out").glob("earlier_*"))) == 2


def test_replaced_results_are_in_no_later_number(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shards of one run have no document in common either, but these are of another choice of documents."""
    write_config(home, ["places"])
    for one in ("[0, 1, 2]", "[3]"):
        assert main(["run", "run.yaml", "--quiet", "--samples", f'{{"places": {one}}}']) == 0
    capsys.readouterr()
    for folder, count in (("out", 1), ("out/earlier_1", 3)):
        assert main(["score", folder, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["results"]["places"]["sample_len"] == count
    assert main(["explain", "out", "--doc", "3"]) == 0
    assert "earlier_1" not in "".join(capsys.readouterr())
    (home / "out/answers.jsonl").unlink()
    assert main(["run", "run.yaml", "--model", "replay", "--model_args", "path=out", "-o", "more", "--quiet"]) == 1
    assert results(home, "more")["results"]["places"]["sample_len"] == 1


def test_a_run_that_replaced_nothing_leaves_nothing(home: Path) -> None:
    write_config(home, ["places"])
    assert main(["run", "run.yaml", "--quiet"]) == 0
    assert main(["run", "run.yaml", "--quiet", "--model_args", "seed=3"]) == 2
    assert not list((home / "out").glob("earlier_*"))


# --- the invariant ----------------------------------------------------------------------------------------------------


def test_counts_that_do_not_add_up_are_no_results(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scorer that forgets a document of the second task: the first keeps its numbers, and nothing else has any."""
    write_config(home, ["sums", "places"])
    score = task_unit.score_task

    def forget(task: Any, samples: Any, answers: Any, **keys: Any) -> Any:
        scored = score(task, samples, answers, **keys)
        if task.name != "places":
            return scored
        return replace(scored, columns=tuple(replace(one, column=drop_first(one.column)) for one in scored.columns))

    def drop_first(column: Column) -> Column:
        keys, rows, status = (
            column.keys.data[1:],
            take_rows(column.rows, np.arange(1, len(column))),
            column.status.data[1:],
        )
        return Column(frozen(keys), rows, frozen(status))

    monkeypatch.setattr(task_unit, "score_task", forget)
    monkeypatch.setattr(task_unit, "_write", lambda *given: "digest")
    assert main(["run", "run.yaml", "--quiet"]) == 70
    assert "counts do not add up: of 4 documents 3 have an outcome - at places acc,none" in capsys.readouterr().err
    found = results(home)
    assert (list(found["results"]), found["evalcore"]["not_run"]) == (["sums"], ["places"])


ALLOWANCES = {"0": 1, "3": 0, "2": 1, "30%": 0, "29.9%": 1, "some": 2, "-1": 2, "101%": 2}


def test_failures_are_allowed_by_number_or_share(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three of ten documents have no recorded answer."""
    write_tasks(home / "tasks", 10)
    write_config(home, ["sums"])
    assert main(["run", "run.yaml", "--quiet", "--limit", "7"]) == 0
    replay = ["run", "run.yaml", "--model", "replay", "--model_args", "path=out/answers.jsonl", "-o", "again"]
    assert main(replay) == 1
    assert "\n10 documents: 7 scored, 0 unscorable, 3 failed, 0 not run\n" in capsys.readouterr().out
    assert results(home, "again")["evalcore"]["documents"]["sums"]["failed"] == 3
    for allowed, code in ALLOWANCES.items():
        assert main(["score", "again", "--quiet", f"--allow_failures={allowed}"]) == code, allowed
    assert main([*replay, "--quiet", "--allow_failures", "3"]) == 0
    assert main([*replay, "--quiet", "--allow_failures", "2"]) == 1
    write_config(home, ["sums"], allow_failures="30%")
    assert main([*replay, "--quiet"]) == 0
    assert not list((home / "again").glob("earlier_*"))


def test_a_command_line_says_what_became_of_the_documents(home: Path) -> None:
    write_config(home, ["places"])
    assert "\n4 documents: 4 scored, 0 unscorable, 0 failed, 0 not run\n" in evalcore(home, "run", "run.yaml").stdout
