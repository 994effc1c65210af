"""Whole runs by the command line: files, resume, exit codes, what is asked and what is not."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from fault_server import serve
from small_tasks import TASKS, command, environment, evalcore, write_tasks


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_tasks(tmp_path / "tasks")
    config = {"model": "dummy", "tasks": ["small"], "include_path": "tasks", "output_path": "out"}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def results(home: Path, folder: str = "out") -> dict[str, dict[str, object]]:
    return json.loads((home / folder / "results.json").read_text())


def answers(home: Path, folder: str = "out") -> list[dict[str, object]]:
    lines = (home / folder / "answers.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "key" in row]


def test_a_run_leaves_results_samples_config_and_log(home: Path) -> None:
    done = evalcore(home, "run", "run.yaml")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (home / "out").iterdir()}
    assert names >= {
        "results.json",
        "config.yaml",
        "answers.jsonl",
        "run.json",
        *(f"samples_{name}.jsonl" for name in TASKS),
    }
    found = results(home)
    assert set(found["results"]) == {*TASKS, "small", "small::texts"}
    assert found["n-samples"]["sums"] == {"original": 10, "effective": 10}
    assert found["n-shot"]["sums"] == 2
    assert "95 % interval" in done.stdout
    assert "small" in done.stdout


def test_the_same_run_again_asks_nothing_and_gives_the_same_bytes(home: Path) -> None:
    evalcore(home, "run", "run.yaml")
    first, asked = (home / "out/results.json").read_bytes(), len(answers(home))
    again = evalcore(home, "run", "run.yaml")
    assert again.returncode == 0, again.stderr
    assert (home / "out/results.json").read_bytes() == first
    assert len(answers(home)) == asked
    assert json.loads((home / "out/run.json").read_text())["asked_now"] == 0


def test_the_resolved_config_runs_from_anywhere(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    evalcore(home, "run", "run.yaml")
    first = (home / "out/results.json").read_bytes()
    done = evalcore(tmp_path_factory.mktemp("elsewhere"), "run", home / "out/config.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (home / "out/results.json").read_bytes() == first


def test_changing_a_filter_or_a_metric_asks_nothing_again(home: Path) -> None:
    evalcore(home, "run", "run.yaml")
    asked = len(answers(home))
    task = yaml.safe_load((home / "tasks/sums.yaml").read_text())
    task["filter_list"] = [
        {
            "name": "last",
            "filter": [
                {"function": "regex", "regex_pattern": "(\\d+)", "group_select": -1},
                {"function": "take_first"},
            ],
        }
    ]
    (home / "tasks/sums.yaml").write_text(yaml.safe_dump(task))
    done = evalcore(home, "run", "run.yaml")
    assert done.returncode == 0, done.stderr
    assert "exact_match,last" in results(home)["results"]["sums"]
    assert len(answers(home)) == asked


def test_another_model_never_gets_these_answers(home: Path) -> None:
    evalcore(home, "run", "run.yaml")
    before = len(answers(home))
    other = evalcore(home, "run", "run.yaml", "--model_args", "seed=7")
    assert other.returncode == 2
    assert "holds a run with another model_args" in other.stderr
    done = evalcore(home, "run", "run.yaml", "--model_args", "seed=7", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert len(answers(home)) == 2 * before


def test_identical_requests_are_asked_once(home: Path) -> None:
    rows = (home / "tasks/docs.jsonl").read_text()
    (home / "tasks/docs.jsonl").write_text(rows + rows)
    evalcore(home, "run", "run.yaml", "--tasks", "sums")
    assert len(answers(home)) == 10
    assert results(home)["n-samples"]["sums"]["effective"] == 20


def test_recorded_answers_are_replayed_and_not_logged_again(home: Path) -> None:
    evalcore(home, "run", "run.yaml")
    done = evalcore(
        home, "run", "run.yaml", "--model", "replay", "--model_args", "path=out/answers.jsonl", "--output_path", "again"
    )
    assert done.returncode == 0, done.stderr
    assert not (home / "again/answers.jsonl").exists()
    assert results(home, "again")["results"] == results(home)["results"]


def test_lm_eval_sample_logs_are_replayed_too(home: Path) -> None:
    evalcore(home, "run", "run.yaml", "--tasks", "places,sums")
    done = evalcore(
        home,
        "run",
        "run.yaml",
        "--tasks",
        "places,sums",
        "--model",
        "replay",
        "--model_args",
        "path=out/samples_*.jsonl",
        "--output_path",
        "again",
    )
    assert done.returncode == 0, done.stderr
    assert results(home, "again")["results"] == results(home)["results"]


def test_a_missing_answer_is_a_failed_document_and_exit_code_1(home: Path) -> None:
    evalcore(home, "run", "run.yaml", "--tasks", "sums", "--limit", 7)
    done = evalcore(
        home,
        "run",
        "run.yaml",
        "--tasks",
        "sums",
        "--model",
        "replay",
        "--model_args",
        "path=out/answers.jsonl",
        "--output_path",
        "again",
    )
    assert done.returncode == 1
    assert "3 of 10 documents failed" in done.stdout
    assert results(home, "again")["n-samples"]["sums"] == {"original": 10, "effective": 7}
    assert results(home, "again")["evalcore"]["estimates"]["sums"]["exact_match,raw"]["n"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "smal"], "did you mean"),
        (["--model", "lama"], "did you mean 'llama'"),
        (["--model", "hf"], "local-completions"),
        (["--model_args", "seeed=1"], "seed"),
        (["--samples", '{"nope": [1]}'], "unknown task in samples"),
        (["--samples", '{"sums": [99]}'], "between 0 and 9"),
        (
            [
                "--apply_chat_template",
                "--model",
                "local-completions",
                "--model_args",
                "model=m,base_url=http://localhost:1",
            ],
            "no chat template",
        ),
        (["--include_path", "nowhere"], "expected a folder"),
        (["--data", '{"sums": "nowhere.jsonl"}'], "nowhere.jsonl"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(home: Path, arguments: list[str], message: str) -> None:
    done = evalcore(home, "run", "run.yaml", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_code_in_task_files_runs_only_when_trusted(home: Path) -> None:
    (home / "tasks/utils.py").write_text(
        "from pathlib import Path\nPath('ran').write_text('yes')\ndef text(doc):\n    return doc['city']\n"
    )
    body = (
        (home / "tasks/places.yaml")
        .read_text()
        .replace("doc_to_text: '{{city}} is a'", "doc_to_text: !function utils.text")
    )
    (home / "tasks/places.yaml").write_text(body)
    refused = evalcore(home, "run", "run.yaml", "--tasks", "places")
    assert refused.returncode == 2
    assert "utils.py" in refused.stderr
    assert "--trust" in refused.stderr
    assert not (home / "ran").exists()
    done = evalcore(home, "run", "run.yaml", "--tasks", "places", "--trust", "tasks/utils.py")
    assert done.returncode == 0, done.stderr
    assert (home / "ran").exists()
    assert [Path(path).name for path in results(home)["evalcore"]["trusted"]] == ["utils.py"]


def test_data_for_a_task_from_another_file(home: Path) -> None:
    (home / "mine.csv").write_text("city,a,b\nAtlantis,1,2\n")
    done = evalcore(home, "run", "run.yaml", "--tasks", "places", "--data", '{"pl*": "mine.csv"}')
    assert done.returncode == 0, done.stderr
    row = json.loads((home / "out/samples_places.jsonl").read_text().splitlines()[0])
    assert row["doc"]["city"] == "Atlantis"


@pytest.mark.parametrize("form", ["--json", "--csv", "--markdown"])
def test_what_is_printed_can_be_piped(home: Path, form: str) -> None:
    done = evalcore(home, "run", "run.yaml", form, "--quiet")
    assert done.returncode == 0
    assert done.stdout
    if form == "--json":
        assert json.loads(done.stdout) == results(home)


def test_quiet_prints_the_folder_alone(home: Path) -> None:
    assert evalcore(home, "run", "run.yaml", "--quiet").stdout.strip() == "out"


def test_predict_only_records_and_measures_nothing(home: Path) -> None:
    done = evalcore(home, "run", "run.yaml", "--predict_only")
    assert done.returncode == 0, done.stderr
    assert "exact_match,raw" not in results(home)["results"]["sums"]
    assert len((home / "out/samples_places.jsonl").read_text().splitlines()) == 10


def test_write_out_shows_the_first_prompt_of_each_task(home: Path) -> None:
    done = evalcore(home, "run", "run.yaml", "--write_out", "--tasks", "sums")
    assert "1 + 1 = 2\n\n2 + 5 = 7\n\n0 + 0 =" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on_and_does(home: Path, how: signal.Signals) -> None:
    with serve(latency=0.05) as server:
        arguments = [
            "run",
            "run.yaml",
            "--model",
            "local-completions",
            "--tasks",
            "sums",
            "--model_args",
            f"model=m,base_url={server.url},num_concurrent=2",
        ]
        child = subprocess.Popen(
            command(*arguments), cwd=home, env=environment(home), stderr=subprocess.PIPE, text=True
        )
        log = home / "out/answers.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (log.exists() and log.read_text().count('"text"') >= 2):
            time.sleep(0.01)
        child.send_signal(how)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 130
        assert "answers are in the answer log" in errors
        assert "Traceback" not in errors
        kept = len(answers(home))
        assert 2 <= kept < 10
        done = evalcore(home, *arguments)
        assert done.returncode == 0, done.stderr
        assert len(server.bodies) <= 10 + 2
