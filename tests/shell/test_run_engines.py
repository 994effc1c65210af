"""Engines of a run: recorded answers scored task by task by workers, to the same bytes as by one process."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from small_tasks import evalcore, share_index, write_tasks

from evalcore import EvalError, run
from evalcore.logs import RunResult
from evalcore.shell.engines.engines import ENGINES
from evalcore.shell.engines.interface import Engine, Means, Merge, Work

CODE = """
class Pair:
    pass


def length(predictions, references):
    return float(len(predictions[0]))


def spread(scores):
    return max(scores) - min(scores)


def results(doc, results):
    return {"long": len(results[0]) > 3, "kind": results[0][:1]}


def own_type(doc, results):
    return {"long": Pair()}


def most(items):
    return max(set(items), key=items.count) > "m"


def leave(doc):
    raise SystemExit(3)
"""
COMMON = """
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
output_type: generate_until
doc_to_target: "{{a}}"
"""
OWN = {
    "own": """
doc_to_text: "{{city}} and"
repeats: 2
filter_list:
  - {name: short, filter: [{function: take_first_k, k: 2}]}
metric_list:
  - {metric: !function code.length, aggregation: !function code.spread, reducer: !function code.spread}
  - {metric: exact_match, reducer: mean}
""",
    "processed": """
doc_to_text: "{{city}} or"
process_results: !function code.results
metric_list:
  - {metric: long, aggregation: mean}
  - {metric: kind, aggregation: !function code.most}
""",
    "leaver": "doc_to_text: !function code.leave\n",
    "typed": "doc_to_text: '{{city}} or'\nprocess_results: !function code.own_type\nmetric_list: [{metric: long}]\n",
}


def spread_copies(work: Work, units: Sequence[object], merge: Merge, means: Means) -> Iterator[bytes]:
    """What a worker in another process does, here: a copy of the work, results merged in pairs."""
    results = [pickle.loads(pickle.dumps(work))(pickle.loads(pickle.dumps(unit))) for unit in units]
    return (merge(results[at : at + 2]) for at in range(0, len(results), 2))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_tasks(tmp_path / "tasks")
    (folder / "code.py").write_text(CODE)
    for name, text in OWN.items():
        (folder / f"{name}.yaml").write_text(f"task: {name}\n{text}{COMMON}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(share_index(tmp_path / "cache")))
    known = ENGINES.set("copies", Engine(title="copies", spread=spread_copies))
    monkeypatch.setattr("evalcore.shell.engines.engines.ENGINES", known)
    go("dummy", model="dummy", model_args={})
    return tmp_path


def go(output: str, **keys: object) -> RunResult:
    given: dict[str, object] = {"tasks": ["small", "own", "processed"], "include_path": "tasks", "trust": "tasks"}
    recorded = {"model": "replay", "model_args": {"path": "dummy/answers.jsonl"}, "output_path": output}
    return run({**given, **recorded, **keys}, overwrite=True)


def files(folder: str) -> dict[str, object]:
    """What a run left: bytes, and of run.json and config.yaml what does not depend on when and where."""
    out: dict[str, object] = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    told, config = (
        json.loads(Path(folder, "run.json").read_text()),
        yaml.safe_load(Path(folder, "config.yaml").read_text()),
    )
    out["run.json"] = {
        key: told.get(key) for key in ("model_identity", "questions", "asked_now", "samples", "failed_tasks")
    }
    return out | {"config.yaml": {**config, "output_path": ""}}


def expect_same(engine: str, **keys: object) -> RunResult:
    one, other = go("by_one", **keys), go("by_many", engine=engine, workers=2, **keys)
    assert files("by_many") == files("by_one")
    assert repr(other.report) == repr(one.report)
    for name in ("results", "title", "files", "complete", "warnings", "early_warnings", "failed"):
        assert getattr(other, name) == getattr(one, name)
    return other


def lose_data(*tasks: str) -> None:
    for name in tasks:
        path = Path("tasks", f"{name}.yaml")
        path.write_text(path.read_text().replace("docs.jsonl", f"no_{name}.jsonl"))


def test_processes_leave_the_same_files_and_read_the_answers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = go("by_one")
    monkeypatch.setattr("evalcore.shell.models.replay.read_recordings", None)  # here nobody reads them
    other = go("by_many", engine="processes", workers=2)
    assert files("by_many") == files("by_one")
    assert {"samples_guesses.jsonl", "samples_own.jsonl"} < files("by_many").keys()
    assert str(other) == str(one).replace("by_one", "by_many")
    assert {task.name for task in other.report.tasks} == {*["places", "sums", "guesses", "lines", "own", "processed"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"log_samples": False},
        {"predict_only": True, "limit": 3},
        {"policy": "lm-eval-0.4.13", "cluster": "city"},
        {"write_out": True, "tasks": "sums"},
        {"model_args": {"paths": ["dummy/samples_sums.jsonl", "dummy/samples_places.jsonl"]}},
    ],
)
def test_every_kind_of_run_leaves_the_same(
    home: Path, keys: dict[str, object], capfd: pytest.CaptureFixture[str]
) -> None:
    expect_same("copies", **keys)
    told = capfd.readouterr().err
    assert told[: len(told) // 2] * 2 == told


@pytest.mark.parametrize("tasks", [["small", "own"], ["small"]])
def test_answers_that_are_missing_say_why_only_if_all_are(home: Path, tasks: list[str]) -> None:
    told = expect_same("copies", model_args={"path": "dummy/samples_own.jsonl"}, tasks=tasks)
    assert ("none to any question" in str(told.results)) == (tasks == ["small"])


def test_equal_questions_of_several_tasks_count_once(home: Path) -> None:
    copy = Path("tasks/sums.yaml").read_text().replace("task: sums", "task: again")
    Path("tasks/again.yaml").write_text(copy)
    expect_same("copies", tasks=["sums", "again"])
    assert json.loads(Path("by_many/run.json").read_text())["questions"] == 10


def test_failed_tasks_are_left_out_as_by_one_process(home: Path) -> None:
    lose_data("guesses", "processed")
    told = expect_same("processes", keep_going=True)
    assert list(told.failed) == ["guesses", "processed"]
    assert not told.complete


def test_the_first_error_is_told_as_by_one_process(home: Path) -> None:
    lose_data("guesses", "sums", "processed")
    told = []
    for engine in ("serial", "copies", "processes"):
        with pytest.raises(EvalError) as wrong:
            go("out", engine=engine)
        told.append(str(wrong.value))
    assert told[0] == told[1] == told[2]
    assert "no_sums.jsonl" in told[0]
    assert told[0].endswith("(to run the other tasks without it: --keep_going)")


def test_code_that_ends_its_process_is_an_error_and_no_lost_worker(home: Path) -> None:
    with pytest.raises(EvalError, match=r"its code ended the run \(exit 3\) - at leaver"):
        go("out", engine="processes", workers=1, tasks=["leaver"])
    expect_same("copies", tasks=["leaver", "sums"], keep_going=True)


def test_scores_that_cannot_travel_name_their_task(home: Path) -> None:
    with pytest.raises(EvalError, match=r"of type Pair, .* use engine: serial for it - at typed"):
        go("out", engine="copies", tasks=["typed"])


def test_a_model_that_is_asked_stays_here_and_says_so(home: Path) -> None:
    given = ["run", "--model", "dummy", "--tasks", "sums", "--include_path", "tasks", "--output_path"]
    one, other = evalcore(home, *given, "by_one"), evalcore(home, *given, "by_many", "--engine", "processes")
    assert one.stderr.count("engine") == 0
    told = "warning: engine processes is for recorded answers: dummy is asked, and scored, by this process\n"
    assert other.stderr.count(told) == 1
    assert files("by_many") == files("by_one")
    assert other.stdout == one.stdout.replace("by_one", "by_many")


def test_wrong_engines_are_named(home: Path) -> None:
    with pytest.raises(EvalError, match=r"unknown engine 'procesess'; did you mean 'processes'\?"):
        go("out", engine="procesess")
    with pytest.raises(EvalError, match="expected workers to be at least 1, got 0"):
        go("out", engine="processes", workers=0)


def test_the_same_folder_is_found_whoever_does_the_work(home: Path) -> None:
    assert go("", engine="copies", tasks=["sums"]).folder == go("", tasks=["sums"]).folder
