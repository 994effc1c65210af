"""Commands, help pages, what starting loads: what a user meets before anything runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_tasks import environment, evalcore, evalcore_here, write_tasks

from evalcore.shell.cli import COMMANDS, main


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert "example" in said
    assert f"evalcore {command}" in said


def test_no_command_and_a_wrong_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert main(["rnu"]) == 2
    assert "unknown command 'rnu'; did you mean 'run'" in capsys.readouterr().err
    assert main(["ls", "tasks"]) == 2
    assert "lm-eval's ls is `evalcore tasks`" in capsys.readouterr().err


def test_flags_without_a_command_mean_run(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks")
    done = evalcore(
        tmp_path, "--model", "dummy", "--tasks", "places", "--include_path", "tasks", "--output_path", "out", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/results.json").exists()


@pytest.mark.parametrize("flag", ["-o", "--output", "--output_path", "--output-path"])
def test_every_command_takes_what_it_writes_to_by_the_same_flags(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tasks(tmp_path / "tasks")
    Path("quiz.csv").write_text("question,answer\n1 + 1?,2\n2 + 1?,3\n", "utf-8")
    asked = ["--model", "dummy", "--tasks", "places", "--include_path", "tasks", "--quiet"]
    assert main(["run", *asked, "--output_path", "made"]) == 0
    assert main(["score", "made", "--partials", "parts", "--partial_only", "--quiet"]) == 0
    for name, words in {
        "run": asked,
        "score": ["made", "--quiet"],
        "merge": ["parts", "--quiet"],
        "report": ["made"],
        "init": ["quiz.csv", "--yes", "--no_run"],
        "tasks": ["new", "mine"],
    }.items():
        assert main([name, *words, flag, f"written/{name}"]) == 0
        assert (tmp_path / "written" / name).exists()


def test_models_as_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    assert "local-completions" in capsys.readouterr().out
    assert main(["models", "replay", "--json"]) == 0
    assert "path" in json.loads(capsys.readouterr().out)["replay"]["arguments"]


def test_tasks_listed_searched_shown_and_checked(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks")
    listed = evalcore(tmp_path, "tasks", "search", "guess", "--include-path", "tasks")
    assert "guesses" in listed.stdout
    shown = evalcore_here(tmp_path, "tasks", "show", "small", "--include-path", "tasks", "--json")
    tree = json.loads(shown.stdout)["tree"]
    assert [child.get("task") if "group" not in child else child["group"] for child in tree["task"]] == [
        "places",
        "small::texts",
        "lines",
    ]
    everything = json.loads(
        evalcore_here(tmp_path, "tasks", "list", "--kind", "group", "--include-path", "tasks", "--json").stdout
    )
    assert {"small"} <= {row["name"] for row in everything}
    assert evalcore_here(tmp_path, "tasks", "check", "small", "--include-path", "tasks").returncode == 0
    with (tmp_path / "tasks/places.yaml").open("a") as file:
        file.write("doc_to_txt: x\n")
    bad = evalcore_here(tmp_path, "tasks", "check", "small", "--include-path", "tasks")
    assert bad.returncode == 1
    assert "doc_to_text" in bad.stdout
    assert "places.yaml:" in bad.stdout


LOADED = """
import sys
before = set(sys.modules)
from evalcore.shell.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*set(sys.modules) - before, file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["run", "--help"], ["tasks", "--help"], ["models", "--help"], ["models"]])
def test_starting_loads_little(tmp_path: Path, arguments: list[str]) -> None:
    """The time it takes is that of `python -m bench startup`; what takes it is the modules."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = set(done.stderr.split())
    assert "evalcore.shell.cli" in found
    assert not found & {"numpy", "jinja2", "httpx", "rich", "asyncio", "ssl", "toolz", "hypothesis"}
    assert len(found) < 250  # 95 to 177


def test_listing_tasks_does_not_load_numpy_or_httpx(tmp_path: Path) -> None:
    code = "import sys; from evalcore.shell.cli import main; main(sys.argv[1:]); print(sorted({'numpy', 'httpx', 'jinja2', 'rich'} & set(sys.modules)), file=sys.stderr)"
    write_tasks(tmp_path / "tasks")
    done = subprocess.run(
        [sys.executable, "-c", code, "tasks", "search", "guesses", "--include-path", "tasks"],
        cwd=tmp_path, env={**os.environ, **environment(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.strip().endswith("[]"), done.stderr
