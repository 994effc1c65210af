"""``run`` and ``score`` as functions: what their commands print and write, and nothing besides."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from small_tasks import write_tasks

from evalcore import EvalError, run, score
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.logs import RunResult
from evalcore.shell.cli import main
from evalcore.shell.output.terminal.show import render

CONFIG = {"model": "dummy", "tasks": ["small"], "include_path": "tasks", "limit": 6}
REGEX = 'regex={"regex_pattern": "([0-9]+)"}'

SCORINGS: list[tuple[list[str], dict[str, object]]] = [
    (["done"], {}),
    (
        ["done", "--only", "sums", "--metric", "f1", "--metric", "exact_match", "--filter", REGEX],
        {"only": ("sums",), "metric": ["f1", "exact_match"], "filter": REGEX},
    ),
    (
        ["done", "--only", "sums", "--limit", "4", "--confidence", "0.9"],
        {"only": "sums", "limit": 4, "confidence": 0.9},
    ),
    (
        ["done", "--only", "guesses", "--reducer", "mean", "--reducer", "maj@3"],
        {"only": "guesses", "reducer": ["mean", "maj@3"]},
    ),
    (
        ["done", "--only", "sums", "--group_by", "a", "--weights", "equal"],
        {"only": "sums", "group_by": "a", "weights": "equal"},
    ),
    (
        ["done", "--task", "tasks/sums.yaml", "--only", "sums", "--include_path", "tasks"],
        {"task": "tasks/sums.yaml", "only": "sums", "include_path": ["tasks"]},
    ),
    (["done", "--parquet", "--overwrite", "--answer", "x"], {"parquet": True, "overwrite": True, "answer": "x"}),
    (["table.csv", "--answer", "reply", "--gold", "target"], {"answer": "reply", "gold": "target"}),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("python")
    write_tasks(folder / "tasks")
    (folder / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    (folder / "table.csv").write_text("reply,target\n4,4\n5,4\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", "run.yaml", "--output_path", "done", "--quiet"]) == 0
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """What is written and does not differ between runs of the same thing."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith(("results", "samples"))}


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_run_returns_what_its_command_prints_and_writes(
    home: Path, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    assert main(["run", "run.yaml", "--output_path", "out", *([] if form == "table" else [f"--{form}"])]) == 0
    printed, written = capsys.readouterr().out, files(home / "out")
    result = run("run.yaml", output_path="out")
    assert render(result.shown(), form) == printed
    assert files(home / "out") == written
    assert capsys.readouterr() == ("", "")
    assert result.complete
    assert result.folder == Path("out")


def test_a_config_is_a_path_a_mapping_or_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    by_path = run(Path("run.yaml"), output_path="out_path", limit=3)
    by_mapping = run({**CONFIG, "output_path": "out_mapping"}, limit=3)
    by_keys = run(**{**CONFIG, "limit": 3}, output_path="out_keys")
    assert files(home / "out_path") == files(home / "out_mapping") == files(home / "out_keys")
    assert by_path.report == by_mapping.report == by_keys.report
    assert thaw_dict(by_path.results) == json.loads((home / "out_path/results.json").read_text())


def test_chunks_of_a_run_go_through_any_map(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    with ThreadPoolExecutor(2) as pool:
        assert run(CONFIG, output_path="out_map", map=pool.map).report == run(CONFIG, output_path="out_one").report


def test_run_warns_in_what_it_returns(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    result = run(CONFIG, output_path="out_warned", device="cuda:0")
    assert [warning for warning in result.warnings if warning.startswith("device has no effect")]
    assert capsys.readouterr() == ("", "")
    with pytest.raises(EvalError, match="did you mean 'limit'"):
        run(CONFIG, limt=3)
    with pytest.raises(EvalError, match="other tasks"):
        run(CONFIG, tasks=["sums"], output_path="out_warned")
    assert run(CONFIG, tasks=["sums"], output_path="out_warned", overwrite=True).report.tasks[0].name == "sums"


@pytest.mark.parametrize(("argv", "keys"), SCORINGS, ids=lambda one: None)
def test_score_returns_what_its_command_prints(
    home: Path,
    argv: list[str],
    keys: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(home)
    for form in ("table", "json", "csv", "markdown"):
        code = main(["score", *argv, *([] if form == "table" else [f"--{form}"])])
        printed = capsys.readouterr().out
        result = score(argv[0], **keys)
        assert render(result.shown(), form) == printed
        assert result.complete == (code == 0)
        assert result.folder is None
    assert capsys.readouterr() == ("", "")


def test_score_writes_what_its_command_writes(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    assert main(["score", "done", "--output_path", "again", "--only", "sums"]) == 0
    printed = capsys.readouterr().out
    result = score(["done"], output_path=Path("again"), only=("sums",), overwrite=True)
    assert render(result.shown(), "table") == printed
    written = files(home / "again")
    score("done", output_path="twice", only="sums")
    assert files(home / "twice") == written
    with pytest.raises(EvalError, match="holds results already"):
        score("done", output_path="again")
    with pytest.raises(EvalError, match="did you mean 'metric'"):
        score("done", metrik="f1")


def test_records_that_cannot_be_read_are_in_the_result(tmp_path: Path, home: Path) -> None:
    log = tmp_path / "samples_sums.jsonl"
    log.write_bytes((home / "done/samples_sums.jsonl").read_bytes() + b"{broken\n")
    with pytest.raises(EvalError, match="samples_sums"):
        score(log)
    result = score(log, keep_going=True)
    assert not result.complete
    assert len(result.problems) == 1


def test_a_result_prints_as_its_table(home: Path) -> None:
    result = score(home / "done", only="sums")
    assert isinstance(result, RunResult)
    assert "exact_match" in str(result)
    assert repr(result) == "RunResult('dummy, scored again', 1 tasks)"
