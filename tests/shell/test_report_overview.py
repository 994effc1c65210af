"""The page of a run says what its results say, whatever kind of run it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copy

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli import main
from evalcore.shell.output.report.bundle import PAGE, WORKER, bundle_modules
from evalcore.shell.report.report import report
from evalcore.shell.run.run import run

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"


def read_head(page: Path) -> dict:
    found = re.search(r'<script type="application/json" id="head">(.*?)</script>', page.read_text("utf-8"))
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "a"
    run(QUICKSTART, output_path=str(out))
    return out


@pytest.fixture(scope="module")
def head(folder: Path, tmp_path_factory) -> dict:
    return read_head(report(folder, output=tmp_path_factory.mktemp("pages") / "a.html").path)


def check_numbers(shown: dict, folder: Path) -> None:
    """Every number of the results is on the page, as it is there, and no other."""
    results = json.loads((folder / "results.json").read_text("utf-8"))
    wanted = {
        (name, key): {**row, "higher": results["higher_is_better"][name][key.rpartition(",")[0]]}
        for name, below in results["evalcore"]["estimates"].items()
        for key, row in below.items()
    }
    found = {(one["name"], f"{n['metric']},{n['filter']}"): n for one in shown["tree"] for n in one["numbers"]}
    assert found.keys() == wanted.keys()
    for where, row in wanted.items():
        told = {key: value for key, value in row.items() if value not in (None, [], "")}
        assert {key: found[where].get(key) for key in told} == told, where


def test_the_numbers_are_those_of_the_results(head: dict, folder: Path) -> None:
    check_numbers(head["runs"][0], folder)


def test_results_without_samples_give_the_same_numbers(head: dict, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "only").mkdir()
    copy(folder / "results.json", tmp_path / "only")
    bare = read_head(report(tmp_path / "only", output=tmp_path / "page.html").path)["runs"][0]
    check_numbers(bare, folder)
    assert not bare["sampled"]
    assert [(one["depth"], one["name"], one["alias"]) for one in bare["tree"]] == [
        (one["depth"], one["name"], one["alias"]) for one in head["runs"][0]["tree"]
    ]


def test_the_tree_stands_as_in_the_terminal(head: dict) -> None:
    places = [(one["depth"], one["alias"], one["group"]) for one in head["runs"][0]["tree"]]
    assert places[:4] == [(0, "quickstart", True), (1, "knowledge", True), (2, "nature", False), (2, "world", False)]


def test_same_runs_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    pages = [report(folder, output=tmp_path / name).path.read_bytes() for name in ("one.html", "two.html")]
    assert pages[0] == pages[1]


def test_the_script_is_small() -> None:
    assert len(bundle_modules(PAGE).encode()) + len(bundle_modules(WORKER).encode()) <= 60_000


def test_the_terminal_says_what_to_know_of_the_runs(folder: Path, tmp_path: Path, capsys) -> None:
    assert main(["report", str(folder), str(folder), "-o", str(tmp_path / "p.html")]) == 0
    assert f"warning: A and B are the same run: {folder}\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["report", "RUN", "-o"], ["check", "RUN", "--min", "acc=0", "--junit"]])
def test_a_page_is_no_folder(words: list[str], folder: Path, tmp_path: Path, capsys) -> None:
    for place in (str(tmp_path), "."):
        assert main([*(str(folder) if one == "RUN" else one for one in words), place]) == 2
        assert f"cannot write {place}: Is a directory; name a file in it\n" in capsys.readouterr().err


def test_confidence_and_choice(folder: Path, tmp_path: Path) -> None:
    page = report(folder, output=tmp_path / "p.html", confidence=0.5, task="*knowledge,*nature", metric="acc")
    shown = read_head(page.path)["runs"][0]
    rows = {one["name"]: one["numbers"] for one in shown["tree"] if one["numbers"]}
    assert {name: [one["metric"] for one in some] for name, some in rows.items()} == {
        "quickstart_knowledge": ["acc"],
        "quickstart_nature": ["acc"],
    }
    low, high = rows["quickstart_nature"][0]["ci"]
    assert high - low < 0.15  # of 0.3 at 95 %
    with pytest.raises(EvalError, match="unknown metric 'ac'"):
        report(folder, output=tmp_path / "p.html", metric="ac")
