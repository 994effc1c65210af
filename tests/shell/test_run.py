"""Whole runs by the command line: files, resume, exit codes, what is asked and what is not."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import yaml
from fault_server import serve
from small_tasks import TASKS, command, environment, evalcore, evalcore_here, write_tasks


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
    evalcore_here(home, "run", "run.yaml")
    first, asked = (home / "out/results.json").read_bytes(), len(answers(home))
    again = evalcore(home, "run", "run.yaml")
    assert again.returncode == 0, again.stderr
    assert (home / "out/results.json").read_bytes() == first
    assert len(answers(home)) == asked
    assert json.loads((home / "out/run.json").read_text())["asked_now"] == 0


def test_the_resolved_config_runs_from_anywhere(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    evalcore_here(home, "run", "run.yaml")
    first = (home / "out/results.json").read_bytes()
    done = evalcore(tmp_path_factory.mktemp("elsewhere"), "run", home / "out/config.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (home / "out/results.json").read_bytes() == first


def test_changing_a_filter_or_a_metric_asks_nothing_again(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml")
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
    evalcore_here(home, "run", "run.yaml")
    before = len(answers(home))
    other = evalcore(home, "run", "run.yaml", "--model_args", "seed=7")
    assert other.returncode == 2
    assert "of another model" in other.stderr
    done = evalcore(home, "run", "run.yaml", "--model_args", "seed=7", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert len(answers(home)) == 2 * before


def test_identical_requests_are_asked_once(home: Path) -> None:
    rows = (home / "tasks/docs.jsonl").read_text()
    (home / "tasks/docs.jsonl").write_text(rows + rows)
    evalcore_here(home, "run", "run.yaml", "--tasks", "sums")
    assert len(answers(home)) == 10
    assert results(home)["n-samples"]["sums"]["effective"] == 20


def test_recorded_answers_are_replayed_and_not_logged_again(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml")
    done = evalcore(
        home, "run", "run.yaml", "--model", "replay", "--model_args", "path=out/answers.jsonl", "--output_path", "again"
    )
    assert done.returncode == 0, done.stderr
    assert not (home / "again/answers.jsonl").exists()
    assert results(home, "again")["results"] == results(home)["results"]


def test_lm_eval_sample_logs_are_replayed_too(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml", "--tasks", "places,sums")
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
    evalcore_here(home, "run", "run.yaml", "--tasks", "sums", "--limit", 7)
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
        (["--model", "sglang"], "local-completions"),
        (["--model", "hf"], "pretrained"),
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
    done = evalcore_here(home, "run", "run.yaml", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_process_ends_with_that_message_and_code(home: Path) -> None:
    done = evalcore(home, "run", "run.yaml", "--tasks", "smal")
    assert done.returncode == 2
    assert "did you mean" in done.stderr
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
    done = evalcore_here(home, "run", "run.yaml", "--tasks", "places", "--data", '{"pl*": "mine.csv"}')
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
    done = evalcore_here(home, "run", "run.yaml", "--predict_only")
    assert done.returncode == 0, done.stderr
    assert "exact_match,raw" not in results(home)["results"]["sums"]
    assert len((home / "out/samples_places.jsonl").read_text().splitlines()) == 10


def test_write_out_shows_the_first_prompt_of_each_task(home: Path) -> None:
    done = evalcore_here(home, "run", "run.yaml", "--write_out", "--tasks", "sums")
    assert "1 + 1 = 2\n\n2 + 5 = 7\n\n0 + 0 =" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on_and_does(home: Path, how: signal.Signals) -> None:
    """Four of ten requests are answered and two hang, so that the run is surely in their midst."""
    with serve(script=lambda number, body: "hang" if number in (4, 5) else None) as server:
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
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and (len(server.bodies) < 6 or log.read_text().count('"text"') < 4):
            time.sleep(0.01)
        child.send_signal(how)
        _, errors = child.communicate(timeout=600)
        assert child.returncode == 128 + how
        assert "answers are in the answer log" in errors
        assert "Traceback" not in errors
        assert len(answers(home)) == 4
        done = evalcore(home, *arguments)
        assert done.returncode == 0, done.stderr
        assert len(server.bodies) == 10 + 2


def test_one_file_for_every_split_never_makes_a_document_its_own_example(home: Path) -> None:
    task = yaml.safe_load((home / "tasks/sums.yaml").read_text())
    task |= {
        "training_split": "train",
        "fewshot_split": "train",
        "num_fewshot": 5,
        "fewshot_config": {"sampler": "default"},
    }
    (home / "tasks/sums.yaml").write_text(yaml.safe_dump(task))
    done = evalcore_here(home, "run", "run.yaml", "--tasks", "sums", "--data", "sums=tasks/docs.jsonl")
    assert done.returncode == 0, done.stderr
    for line in (home / "out/samples_sums.jsonl").read_text().splitlines():
        row = json.loads(line)
        *examples, question = row["arguments"]["gen_args_0"]["arg_0"].split("\n\n")
        assert len(examples) == 5
        assert not any(one.startswith(question) for one in examples)


def test_data_by_the_name_of_a_group_and_for_a_task_that_is_not_there(home: Path) -> None:
    (home / "mine.jsonl").write_text('{"city": "Atlantis", "a": 1, "b": 2}\n')
    done = evalcore_here(home, "run", "run.yaml", "--data", '{"small": "mine.jsonl"}')
    assert done.returncode == 0, done.stderr
    assert results(home)["n-samples"]["guesses"]["original"] == 1
    wrong = evalcore_here(home, "run", "run.yaml", "--data", '{"smal": "mine.jsonl"}')
    assert wrong.returncode == 2
    assert "did you mean 'small'" in wrong.stderr


def test_a_task_without_documents_is_an_error(home: Path) -> None:
    (home / "empty.jsonl").write_text("")
    done = evalcore_here(home, "run", "run.yaml", "--tasks", "sums", "--data", "sums=empty.jsonl")
    assert done.returncode == 2
    assert "empty.jsonl" in done.stderr or "at least one document" in done.stderr


def test_paths_of_a_config_are_beside_it_and_those_of_flags_are_here(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = tmp_path_factory.mktemp("here")
    (here / "tasks").mkdir()  # a namesake of the config's folder of tasks
    done = evalcore_here(here, "run", home / "run.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    (here / "mine.csv").write_text("city,a,b\nAtlantis,1,2\n")
    (home / "mine.csv").write_text("city,a,b\nBabel,1,2\n")
    done = evalcore(
        here, "run", home / "run.yaml", "--tasks", "places", "--data", "places=mine.csv", "--output_path", "two"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((here / "two/samples_places.jsonl").read_text())["doc"]["city"] == "Atlantis"


def test_a_folder_named_like_a_task_is_not_taken_for_it(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (home / "places").mkdir()
    done = evalcore_here(tmp_path_factory.mktemp("else"), "run", home / "run.yaml", "--tasks", "places", "--quiet")
    assert done.returncode == 0, done.stderr


def test_the_samples_of_an_earlier_run_do_not_stay_beside_other_results(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml")
    (home / "out/samples_mine.jsonl").write_text("kept")
    done = evalcore(home, "run", "run.yaml", "--tasks", "places", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (home / "out").glob("samples_*")} == {"samples_places.jsonl", "samples_mine.jsonl"}
    assert "were replaced" in done.stdout


@pytest.mark.parametrize("flags", [(), ("--overwrite",)])
@pytest.mark.parametrize("name", ["run.json", "results.json"])
def test_a_damaged_note_of_an_earlier_run_stops_no_run(home: Path, name: str, flags: tuple[str, ...]) -> None:
    evalcore_here(home, "run", "run.yaml")
    (home / "out" / name).write_text('{"a": ' + "[" * 100_000)
    assert evalcore_here(home, "show", "out").returncode == (0 if name == "run.json" else 2)
    assert evalcore_here(home, "run", "run.yaml", *flags).returncode == 0
    assert evalcore_here(home, "show", "out").returncode == 0


def test_what_a_task_cannot_close_costs_the_others_nothing(home: Path) -> None:
    task = yaml.safe_load((home / "tasks/places.yaml").read_text())
    task["metric_list"] = [{"metric": "f1"}]
    task["doc_to_target"] = "{{a % 3}}"
    (home / "tasks/places.yaml").write_text(yaml.safe_dump(task))
    done = evalcore_here(home, "run", "run.yaml")
    assert done.returncode == 1
    assert "two classes" in done.stdout
    assert results(home)["results"]["sums"]["exact_match,raw"] is not None


def test_how_fast_it_is_asked_may_change_from_run_to_run(home: Path) -> None:
    with serve() as server:
        for many in (1, 4):
            args = f"model=m,base_url={server.url},num_concurrent={many}"
            done = evalcore(
                home, "run", "run.yaml", "--model", "local-completions", "--tasks", "sums", "--model_args", args
            )
            assert done.returncode == 0, done.stderr
        assert len(server.bodies) == 10


def test_the_resolved_config_holds_prompts_and_documents_as_they_are(home: Path) -> None:
    inline = {
        "task": "mine",
        "test_split": "test",
        "doc_to_text": "Give key=value for {{q}}",
        "doc_to_target": "key",
        "output_type": "generate_until",
        "dataset_path": "none",
    }
    config = {"model": "dummy", "tasks": [inline], "data": {"mine": [{"q": "1", "key": "A"}]}, "output_path": "out"}
    (home / "mine.yaml").write_text(yaml.safe_dump(config))
    assert evalcore_here(home, "run", "mine.yaml").returncode == 0
    kept = yaml.safe_load((home / "out/config.yaml").read_text())
    assert (kept["tasks"], kept["data"]) == ([inline], config["data"])
    assert results(home)["configs"]["mine"]["doc_to_text"] == inline["doc_to_text"]


def test_code_that_leaves_is_an_error(home: Path) -> None:
    (home / "tasks/utils.py").write_text("def text(doc):\n    raise SystemExit(0)\n")
    body = (
        (home / "tasks/places.yaml")
        .read_text()
        .replace("doc_to_text: '{{city}} is a'", "doc_to_text: !function utils.text")
    )
    (home / "tasks/places.yaml").write_text(body)
    assert evalcore_here(home, "run", "run.yaml", "--tasks", "places", "--trust", "tasks/utils.py").returncode == 2


def test_no_tasks_is_no_success(home: Path) -> None:
    assert evalcore_here(home, "run", "run.yaml", "--tasks", "").returncode == 2


def test_two_runs_in_one_folder(home: Path) -> None:
    second_was_told = threading.Event()
    with serve(ready=lambda server: second_was_told.is_set()) as server:
        arguments = [
            "run",
            "run.yaml",
            "--model",
            "local-completions",
            "--tasks",
            "sums",
            "--model_args",
            f"model=m,base_url={server.url}",
        ]
        first = subprocess.Popen(
            command(*arguments, "--quiet"), cwd=home, env=environment(home), stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and not (home / "out/config.yaml").exists():
            time.sleep(0.01)
        before = (home / "out/config.yaml").read_bytes()
        second = evalcore(home, *arguments, "--num_fewshot", 1)
        assert second.returncode == 2
        assert "another run" in second.stderr
        assert (home / "out/config.yaml").read_bytes() == before
        second_was_told.set()
        first.communicate(timeout=600)
        assert first.returncode == 0


def test_a_config_of_the_users_own_is_never_replaced(home: Path) -> None:
    text = (home / "run.yaml").read_text().replace("output_path: out", "output_path: .")
    (home / "config.yaml").write_text(text)
    done = evalcore_here(home, "run", "config.yaml")
    assert done.returncode == 2
    assert "file of your own" in done.stderr
    assert (home / "config.yaml").read_text() == text


def test_a_task_changed_in_the_config_keeps_its_data(home: Path) -> None:
    config = {
        "model": "dummy",
        "tasks": [{"task": "sums", "num_fewshot": 1}],
        "include_path": "tasks",
        "output_path": "out",
    }
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    done = evalcore_here(home, "run", "run.yaml")
    assert done.returncode == 0, done.stderr
    assert results(home)["n-shot"]["sums"] == 1


def test_a_rule_that_fails_the_run_fails_it(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml", "--tasks", "sums", "--limit", 7)
    again = [
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
    ]
    done = evalcore(home, *again, "--on_unscorable", "fail")
    assert done.returncode == 2
    assert "sums" in done.stderr


def test_a_chat_is_replayed(home: Path) -> None:
    chat = ["run", "run.yaml", "--tasks", "sums", "--apply_chat_template", "--system_instruction", "Be brief."]
    with serve() as server:
        done = evalcore(
            home, *chat, "--model", "local-chat-completions", "--model_args", f"model=m,base_url={server.url}"
        )
        assert done.returncode == 0, done.stderr
    again = evalcore(
        home, *chat, "--model", "replay", "--model_args", "path=out/answers.jsonl", "--output_path", "again"
    )
    assert again.returncode == 0, again.stderr
    assert results(home, "again")["results"] == results(home)["results"]
