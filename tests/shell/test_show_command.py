"""``show``: the table of a finished run again, with the numbers of its results file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from fault_server import serve
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tasks import evalcore_here, write_tasks

from evalcore import EvalError
from evalcore.logs import show_run
from evalcore.shell.report.recorded_report import read_ledger, read_losses, read_report

POLICIES = ["evalcore", "lm-eval-0.4.13"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_tasks(tmp_path / "tasks")
    config = {"model": "dummy", "tasks": ["small"], "include_path": "tasks", "output_path": "out"}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def results(home: Path, folder: str = "out") -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = json.loads((home / folder / "results.json").read_text())
    return found


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--policy", "lm-eval-0.4.13"),
        ("--log_samples", "false"),
        ("--predict_only",),
        ("--confidence", "0.9", "--ci", "exact"),
        ("--limit", "3", "--gen_kwargs", "temperature=0.5"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_it_prints_what_run_printed(home: Path, flags: tuple[str, ...], form: str) -> None:
    forms = () if form == "table" else (f"--{form}",)
    ran = evalcore_here(home, "run", "run.yaml", *flags, *forms)
    assert ran.returncode == 0, ran.stderr
    again = evalcore_here(home, "show", "out", *forms)
    assert again.returncode == 0, again.stderr
    assert again.stdout == ran.stdout.replace("\nWritten to out: ", "\nFiles in out: ")  # this time nothing is
    assert ("Files in" in again.stdout) is (form == "table")


def test_a_results_file_alone_is_enough(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml")
    (home / "alone").mkdir()
    (home / "out/results.json").rename(home / "alone/mine.json")
    whole, alone = (evalcore_here(home, "show", "alone/mine.json", "--csv") for _ in range(2))
    assert whole.stdout == alone.stdout
    rows = list(csv.DictReader(io.StringIO(alone.stdout)))
    found = json.loads((home / "alone/mine.json").read_text())["evalcore"]["estimates"]
    shown = {(row["task"], f"{row['metric']},{row['filter']}"): row for row in rows if row["metric"]}
    assert set(shown) == {(name, key) for name, below in found.items() for key in below}
    for (name, key), row in shown.items():
        told = found[name][key]
        assert (row["value"], row["ci_low"]) == (repr(told["value"]), repr(told["ci"][0])) or told["ci"] is None


def test_failures_and_their_reasons_are_told_again(home: Path) -> None:
    with serve(script=lambda number, body: (400, {}, b"no") if number % 3 == 0 else None) as server:
        args = f"model=m,base_url={server.url},max_retries=0,num_concurrent=1"
        given = ("--model", "local-completions", "--model_args", args, "--tasks", "sums,guesses")
        ran = evalcore_here(home, "run", "run.yaml", *given)
    assert ran.returncode == 1
    again = evalcore_here(home, "show", "out")
    assert again.returncode == 0
    assert again.stdout == ran.stdout.replace("\nWritten to out: ", "\nFiles in out: ")  # this time nothing is
    assert "Files in out" in again.stdout
    assert "sums: 4 of 10 documents failed (4 http_400: no)" in again.stdout
    assert " requests, " in again.stdout or "median" in again.stdout


def test_several_runs_are_told_apart(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml", "--output_path", "a")
    evalcore_here(home, "run", "run.yaml", "--output_path", "b", "--limit", 4)
    text = evalcore_here(home, "show", "a", "b").stdout
    assert text.count("Files in ") == 2
    assert len(json.loads(evalcore_here(home, "show", "a", "b", "--json").stdout)) == 2
    rows = list(csv.DictReader(io.StringIO(evalcore_here(home, "show", "a", "b", "--csv").stdout)))
    assert {row["run"] for row in rows} == {"a", "b"}
    assert {row["n"] for row in rows if row["run"] == "b" and row["kind"] == "task"} == {"4"}
    marked = evalcore_here(home, "show", "a", "b", "--markdown").stdout
    assert marked.count("|Tasks") == 2


def test_an_unfinished_run_says_so(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml")
    found = results(home)
    found["evalcore"]["not_run"] = ["lines", "more"]  # type: ignore[assignment]
    (home / "out/results.json").write_text(json.dumps(found))
    shown = evalcore_here(home, "show", "out")
    assert shown.returncode == 1
    assert "this run is unfinished, 2 tasks have no numbers yet; the same `evalcore run` goes on" in shown.stdout
    assert any(line.startswith("more ") and "not run yet" in line for line in shown.stdout.splitlines())
    assert show_run(home / "out").unfinished == ("lines", "more")


def test_a_run_without_a_scored_task_says_how_to_go_on(home: Path) -> None:
    evalcore_here(home, "run", "run.yaml")
    (home / "out/results.json").unlink()
    shown = evalcore_here(home, "show", "out")
    assert "has not written its results yet: the same `evalcore run` goes on" in shown.stderr
    for path in (home / "out").glob("samples_*"):
        path.unlink()
    for command in ("show", "report"):
        shown = evalcore_here(home, command, "out")
        assert shown.returncode == 2
        assert "has not scored a task yet: the same `evalcore run` goes on" in shown.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("questions.jsonl", '{"q": "Why?", "a": "so"}\n{"q": "Who?", "a": "me"}\n', "rows of JSON, but no sample log"),
        ("questions.csv", "q,a\nWhy?,so\n", "of a table of answers, `evalcore score "),
        ("nothing.json", "", "it is empty"),
    ],
)
def test_a_file_that_is_no_run_is_called_what_it_is(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(EvalError) as told:
        show_run(tmp_path / name)
    assert message in str(told.value)
    assert "not JSON" not in str(told.value)


def test_lm_evals_results_get_the_intervals_that_their_errors_give(tmp_path: Path) -> None:
    rows = {
        "g": {"alias": "g", "acc,none": 0.6, "acc_stderr,none": 0.04, "sample_len": 150},
        "a": {"alias": " - a", "acc,none": 0.5, "acc_stderr,none": 0.0503, "sample_len": 100},
        "b": {"alias": " - b", "acc,none": 0.8, "acc_stderr,none": 0.0571, "sample_len": 50},
    }
    found = {
        "results": rows,
        "groups": {"g": rows["g"]},
        "group_subtasks": {"g": ["a", "b"]},
        "n-shot": {"a": 5},
        "versions": {"a": 1.0},
        "higher_is_better": {"a": {"acc": True}},
        "config": {"model": "hf", "model_args": "pretrained=x", "limit": None},
    }
    file = tmp_path / "model" / "results_2025-01-01T00-00-00.000000.json"
    file.parent.mkdir()
    file.write_text(json.dumps(found))
    for path in (tmp_path, file.parent, file):
        shown = show_run(path)
        lines = str(shown).splitlines()
        assert lines[0] == "hf (pretrained=x)"
        assert [line.split("  ")[0] for line in lines[4:7]] == ["g", " - a", " - b"]
        assert lines[5].split() == [
            "-",
            "a",
            "1.0",
            "none",
            "5",
            "acc",
            "↑",
            "0.5000",
            "0.4026",
            "to",
            "0.5974",
            "100",
        ]  # Wilson, t


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    for path in ("", "nowhere", tmp_path):
        with pytest.raises(EvalError):
            show_run(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
KEYS = st.sampled_from(["results", "groups", "group_subtasks", "n-shot", "versions", "higher_is_better", "evalcore"])
OWN = st.sampled_from(["estimates", "groups", "warnings", "unscored", "documents", "failed_tasks", "not_run"])


@settings(max_examples=60)
@given(st.dictionaries(KEYS, JSON, max_size=6), st.dictionaries(OWN, JSON, max_size=6))
def test_no_results_file_breaks_the_reader(found: dict[str, object], own: dict[str, object]) -> None:
    for results in (found, {**found, "evalcore": own}):
        read_report(results)
        read_ledger(results)
        read_losses(results)
