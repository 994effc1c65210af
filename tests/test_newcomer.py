"""What a newcomer types: the whole path as a script, and mistakes on the way, each of which ends in a sentence that helps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalcore.shell.cli import main
from evalcore.shell.starter.guess import look_at_file
from evalcore.shell.starter.table import read_table

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_newcomer_gets_from_the_first_command_to_a_task_of_their_own() -> None:
    """The virtualenv of its own, and the installation in it, are left to .ci/run."""
    if shutil.which("evalcore", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("evalcore is not installed beside this Python: pip install -e .")
    told = [sys.executable, str(ROOT / ".ci" / "newcomer"), "--python", sys.executable]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("A newcomer gets there.\n")
    print(done.stdout)


PLAIN = {"question": "Capital of France?", "answer": "Paris"}
TABLES = {
    "semicolons beside decimal commas": (
        b"question;answer\nWhat is 1,5 plus 1?;2,5\n",
        {"question": "What is 1,5 plus 1?", "answer": "2,5"},
    ),
    "semicolons and quotes": (b'"question";"answer"\n"Capital of France?";"Paris"\n', PLAIN),
    "commas in one name": (b"question;answer (a, b);id\nx;y;1\n", {"question": "x", "answer (a, b)": "y", "id": 1}),
    "Excel's own first line": (b"sep=;\r\nquestion;answer\r\nCapital of France?;Paris\r\n", PLAIN),
    "empty rows": (b"question,answer\nCapital of France?,Paris\n\n,\n,\n", PLAIN),
    "empty columns": (b"question,answer,,\nCapital of France?,Paris,,\n", PLAIN),
    "ends of lines in a cell": (
        b'question,answer\r\n"Capital of\r\nFrance?",Paris\r\n',
        {"question": "Capital of\nFrance?", "answer": "Paris"},
    ),
    "a byte order mark": (b"\xef\xbb\xbfquestion,answer\nCapital of France?,Paris\n", PLAIN),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_of_a_spreadsheet_is_read_as_it_was_meant(case: str, here: Path) -> None:
    content, row = TABLES[case]
    (here / "a.csv").write_bytes(content)
    assert read_table(here / "a.csv") == (row,)


NOTES = {
    "question,answer\na?,b\n": "1 row says little: intervals will be wide",
    "question,answer,answer\na?,b,c\n": "1 other column has another name in documents.jsonl, which templates can use",
    "question,answer\na?,b\nc?,\n": "1 of 2 rows has no answer, and is left out",
    "Capital of France?,Paris\nCapital of Italy?,Rome\n": (
        "the first line is taken as the header, but 'Capital of France?' looks like data"
    ),
}


@pytest.mark.parametrize("content", NOTES)
def test_what_is_odd_about_a_table_is_said_in_a_sentence(content: str, here: Path) -> None:
    (here / "a.csv").write_text(content)
    assert NOTES[content] in look_at_file(here / "a.csv").notes


def test_commands_that_are_told_can_be_typed_where_paths_have_spaces(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "my file.csv").write_text("question,answer\na?,b\n")
    assert main(["init", "my file.csv", "--yes", "--no_run", "-o", "my tasks"]) == 0
    said = capsys.readouterr().out
    assert said.count("evalcore run 'my tasks/config.yaml'") == 2
    assert "evalcore run 'my tasks/config.yaml'" in (here / "my tasks/config.yaml").read_text()
    assert main(["run", "my tasks/config.yaml", "--output_path", "my runs/a"]) == 0
    assert capsys.readouterr().err.endswith("\nNext, as a page for a browser: evalcore report 'my runs/a'\n")
    assert main(["compare", "my runs/a", "my runs/a"]) == 0
    both = capsys.readouterr()
    assert both.err.endswith("Next, as a page for a browser: evalcore report 'my runs/a' 'my runs/a'\n")
    assert "\nIn short:\n- my_file exact_match (trimmed): no evidence of a difference: both runs " in both.out
    for name in ("c.csv", "d.csv"):
        (here / name).write_text("q,said\n1,0\n2,1\n")
    assert main(["compare", "c.csv", "d.csv", "--names", "c,d", "--id", "q", "--score", "said"]) == 0
    told = capsys.readouterr().err.rpartition("evalcore ")[2].split()
    assert told == ["report", "c.csv", "d.csv", "--id", "q", "--score", "said"]
    assert main(told) == 0
    capsys.readouterr()
    assert main(["report", "my runs/a"]) == 0
    assert capsys.readouterr().err.endswith(f"open it in a browser: {here.as_uri()}/report.html\n")


@pytest.mark.parametrize("form", [["--json"], ["--csv"], ["--markdown"], ["--quiet"]])
def test_programs_are_told_nothing_of_what_comes_next(
    form: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "new", "t"]) == 0
    capsys.readouterr()
    assert main(["run", "t/config.yaml", *form]) == 0
    said = capsys.readouterr()
    assert "Next" not in said.out + said.err


MISTAKES = {
    "init a.csv --anwser x": "unknown flag '--anwser'; did you mean '--answer'?",
    "report a --no_sampels": "unknown flag '--no_sampels'; did you mean '--no_samples'?",
    "compare a b --flip=3 --flipz 3": "unknown flag '--flipz'; did you mean '--flips'?",
    "init a.xlsx": "a.xlsx: a spreadsheet cannot be read; save its sheet as CSV (UTF-8), and take that file",
    "init ragged.csv": "ragged.csv:2: expected 2 cells, got 3; a cell with ',' in it needs quotes",
    "init latin.csv": "not utf-8: invalid continuation byte in b'caf\\xe9,b'; save the file as UTF-8",
    "run nothere.yaml": "cannot read the run config nothere.yaml: No such file or directory",
    "run t": "cannot read the run config t: Is a directory; did you mean t/config.yaml?",
    "run t/t.yaml": "t/t.yaml: expected a run config, got a task file; `evalcore run --model dummy --tasks t/t.yaml` runs it",
    "run ragged.csv": "of a file of questions, `evalcore init ragged.csv` makes one",
    "run t/config.yaml --model dummy --model_args path=x": "a flag replaces the model_args of a config: --model_args ''",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_told_with_what_to_do(typed: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "new", "t"]) == 0
    (here / "ragged.csv").write_text("question,answer\na,b,c\n")
    (here / "latin.csv").write_bytes(b"question,answer\ncaf\xe9,b\n")
    capsys.readouterr()
    assert main(typed.split()) == 2
    said = capsys.readouterr().err
    assert MISTAKES[typed] in said
    assert said.count("\n") == 1


def test_a_task_file_runs_by_the_command_that_its_mistake_names(here: Path) -> None:
    assert main(["tasks", "new", "t"]) == 0
    assert main(["run", "--model", "dummy", "--tasks", "t/t.yaml"]) == 0
