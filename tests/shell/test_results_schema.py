"""Every results.json that evalcore writes is of the schema that it ships, and what is not is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from small_tasks import write_tasks

import evalcore
from evalcore.shell.output.files.results import SCHEMA

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart" / "config.yaml"
DATA = json.loads((resources.files("evalcore") / "results.schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(DATA)
Results = dict[str, Any]


def list_faults(results: object) -> list[str]:
    """Where a file is not of the schema."""
    return [f"{fault.json_path}: {fault.message}"[:300] for fault in VALIDATOR.iter_errors(results)]


def read(folder: Path) -> Results:
    return dict(json.loads((folder / "results.json").read_text("utf-8")))


def test_the_schema_is_one_and_names_its_version() -> None:
    Draft202012Validator.check_schema(DATA)
    assert DATA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert DATA["$id"] == f"urn:evalcore:results:{SCHEMA}"
    assert SCHEMA in DATA["title"]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    evalcore.run(QUICKSTART, output_path=folder)
    return folder


def test_a_run(quickstart: Path) -> None:
    results = read(quickstart)
    assert list_faults(results) == []
    assert results["evalcore"]["schema"] == SCHEMA


def test_a_run_under_the_policy_of_lm_eval(tmp_path: Path) -> None:
    evalcore.run(QUICKSTART, output_path=tmp_path, policy="lm-eval-0.4.13", ci="z")
    assert list_faults(read(tmp_path)) == []


def test_a_run_that_only_records(tmp_path: Path) -> None:
    evalcore.run(QUICKSTART, output_path=tmp_path, predict_only=True)
    assert list_faults(read(tmp_path)) == []


@pytest.mark.parametrize(
    "keys", [{"metric": "f1"}, {"group_by": "question"}, {"bootstrap_iters": 0}, {"on_unscorable": "zero"}]
)
def test_what_was_scored_again(quickstart: Path, tmp_path: Path, keys: dict[str, Any]) -> None:
    evalcore.score(quickstart, only="quickstart_one_step", output_path=tmp_path / "again", **keys)
    assert list_faults(read(tmp_path / "again")) == []


def test_a_table_with_documents_that_failed_or_cannot_be_scored(tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    rows = [{"q": at, "reply": None if at == 1 else "4", "gold": None if at == 2 else "4"} for at in range(6)]
    table.write_text("\n".join(map(json.dumps, rows)))
    done = evalcore.score(
        table, answer="reply", gold="gold", id="q", metric="exact_match", output_path=tmp_path / "out"
    )
    assert not done.complete
    results = read(tmp_path / "out")
    assert results["evalcore"]["unscored"]
    assert list_faults(results) == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tasks(tmp_path / "tasks", 4)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_without_a_task_that_cannot_be_built(home: Path) -> None:
    task = home / "tasks/guesses.yaml"
    task.write_text(task.read_text().replace("metric: exact_match", "metric: exact_mtch"))
    done = evalcore.run(
        model="dummy", tasks=["sums", "guesses"], include_path="tasks", output_path="out", keep_going=True
    )
    results = read(home / "out")
    assert set(done.failed) == set(results["evalcore"]["failed_tasks"]) == {"guesses"}
    assert list_faults(results) == []


def test_a_run_that_was_stopped(home: Path) -> None:
    (home / "tasks/utils.py").write_text(STOP)
    task = home / "tasks/guesses.yaml"
    task.write_text(task.read_text().replace("metric: exact_match", "metric: !function utils.stop"))
    with pytest.raises(KeyboardInterrupt):
        evalcore.run(
            model="dummy", tasks=["sums", "guesses"], include_path="tasks", output_path="out", trust=["tasks/utils.py"]
        )
    results = read(home / "out")
    assert results["evalcore"]["not_run"] == ["guesses"]
    assert list_faults(results) == []


def drop(results: Results, *path: str) -> None:
    for name in path[:-1]:
        results = results[name]
    del results[path[-1]]


def put(results: Results, *path: Any) -> None:
    *way, last, value = path
    for name in way:
        results = results[name]
    results[last] = value


STOP = "def stop(predictions, references):\n    raise KeyboardInterrupt\n"
ESTIMATE = ("evalcore", "estimates", "quickstart_nature", "acc,none")
WRONG: dict[str, Callable[[Results], None]] = {
    "no schema": lambda r: drop(r, "evalcore", "schema"),
    "another schema": lambda r: put(r, "evalcore", "schema", "2.0"),
    "a number as the schema": lambda r: put(r, "evalcore", "schema", 1),
    "no key of evalcore": lambda r: drop(r, "evalcore"),
    "an unknown key": lambda r: put(r, "evalcore", "extra", 1),
    "an unknown key of an estimate": lambda r: put(r, *ESTIMATE, "extra", 1),
    "no n": lambda r: drop(r, *ESTIMATE, "n"),
    "a negative n": lambda r: put(r, *ESTIMATE, "n", -1),
    "a text as a value": lambda r: put(r, *ESTIMATE, "value", "N/A"),
    "an interval of one end": lambda r: put(r, *ESTIMATE, "ci", [0.5]),
    "a negative error": lambda r: put(r, *ESTIMATE, "stderr", -0.1),
    "a date": lambda r: put(r, "date", 1.0),
    "a null in lm-eval's rows": lambda r: put(r, "results", "quickstart_nature", "acc,none", None),
    "a percentage": lambda r: put(r, "evalcore", "confidence", 95),
    "a ledger without failures": lambda r: drop(r, "evalcore", "documents", "quickstart_nature", "failed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused(quickstart: Path, name: str) -> None:
    results = copy.deepcopy(read(quickstart))
    WRONG[name](results)
    assert list_faults(results) != []


def test_others_may_add_keys_beside_evalcore(quickstart: Path) -> None:
    results = {**read(quickstart), "eval_time": 3.5, "plugin": {"any": ["thing"]}}
    results["config"]["model_revision"] = "main"
    assert list_faults(results) == []
